//! Values as Python writes them: chat templates are written for Jinja2, whose output is Python's.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// str(value).
pub fn str_of(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_string()),
        None if value.is_undefined() => Ok(String::new()),
        None => repr_of(value),
    }
}

/// repr(value).
pub fn repr_of(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(&mut out, value)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number_of(value)?),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            write_list(out, '[', ']', value.try_iter()?, |out, item| write_repr(out, &item))?
        }
        ValueKind::Map => write_map(out, value)?,
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn write_map(out: &mut String, map: &Value) -> Result<(), Error> {
    write_list(out, '{', '}', map.try_iter()?, |out, key| {
        write_repr(out, &key)?;
        out.push_str(": ");
        write_repr(out, &map.get_item(&key)?)
    })
}

fn write_list(
    out: &mut String,
    open: char,
    close: char,
    items: impl Iterator<Item = Value>,
    mut write: impl FnMut(&mut String, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(open);
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(out, item)?;
    }
    out.push(close);
    Ok(())
}

/// Python prefers single quotes, unless the text has them and no double ones.
fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn number_of(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    Ok(float_of(f64::try_from(value.clone())?, "inf", "nan"))
}

/// repr(float): Rust's shortest digits and thresholds are Python's; the exponent has a sign and two digits.
fn float_of(number: f64, infinity: &str, nan: &str) -> String {
    if number.is_nan() {
        return nan.to_string();
    }
    if number.is_infinite() {
        return if number.is_sign_negative() { format!("-{infinity}") } else { infinity.to_string() };
    }
    let text = format!("{number:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The arguments of json.dumps that templates use.
pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

/// json.dumps(value, ...).
pub fn json_of(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(&mut out, value, style, 0)?;
    Ok(out)
}

fn write_json(out: &mut String, value: &Value, style: &JsonStyle, depth: usize) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&json_number(value)?),
        ValueKind::String => write_json_text(out, value.as_str().unwrap_or_default(), style),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.collect();
            write_json_items(out, ['[', ']'], items, style, depth, |out, item| {
                write_json(out, &item, style, depth + 1)
            })?
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            write_json_items(out, ['{', '}'], keys, style, depth, |out, key| {
                write_json_text(out, &json_key(&key)?, style);
                out.push_str(&style.key_separator);
                write_json(out, &value.get_item(&key)?, style, depth + 1)
            })?
        }
        kind => {
            let why = format!("a value of type {kind} is not JSON serializable");
            return Err(Error::new(ErrorKind::InvalidOperation, why));
        }
    }
    Ok(())
}

fn write_json_items(
    out: &mut String,
    [open, close]: [char; 2],
    items: Vec<Value>,
    style: &JsonStyle,
    depth: usize,
    mut write: impl FnMut(&mut String, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let empty = items.is_empty();
    out.push(open);
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(&style.item_separator);
        }
        break_line(out, style, depth + 1);
        write(out, item)?;
    }
    if !empty {
        break_line(out, style, depth);
    }
    out.push(close);
    Ok(())
}

fn break_line(out: &mut String, style: &JsonStyle, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
}

fn json_number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    Ok(float_of(f64::try_from(value.clone())?, "Infinity", "NaN"))
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(key.is_true().to_string()),
        ValueKind::Number => json_number(key),
        kind => {
            let why = format!("a key of type {kind} is not JSON serializable");
            Err(Error::new(ErrorKind::InvalidOperation, why))
        }
    }
}

fn write_json_text(out: &mut String, text: &str, style: &JsonStyle) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c if style.ensure_ascii && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
