//! Chat templates as Transformers renders them: Jinja2 with trimmed blocks, loop controls, and Python's methods.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::python::{self, JsonStyle};
use crate::{budget, Outcome};

/// Instructions after which a template is taken for one that does not end.
const FUEL: u64 = 10_000_000;
/// What a template may hold in memory besides a multiple of what it is given; and what it may take in all.
const MOST_LIVE: usize = 64 << 20;
const MOST_TIMES: usize = 64;
const MOST_TOTAL: u64 = 32 << 30;

/// Templates that did not end within the limits, by their hash: they are not tried again.
static REFUSED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Errors: what the template raises, and that it takes more instructions or memory than a template needs.
pub fn render(source: &str, variables: &[u8]) -> Outcome<String> {
    let too_much = || "the template takes more memory than a conversation needs".to_string();
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let hash = hasher.finish();
    let refused = || REFUSED.lock().unwrap_or_else(|e| e.into_inner());
    if refused().contains(&hash) {
        return Err(too_much());
    }
    let most = MOST_LIVE + MOST_TIMES * (source.len() + variables.len());
    let (source, variables) = (source.to_string(), variables.to_vec());
    budget::run(most, MOST_TOTAL, move || render_here(&source, &variables)).unwrap_or_else(|| {
        refused().insert(hash);
        Err(too_much())
    })
}

fn render_here(source: &str, variables: &[u8]) -> Outcome<String> {
    let variables: serde_json::Value = serde_json::from_slice(variables).map_err(|e| e.to_string())?;
    let source = without_generation_tags(&source.replace("\r\n", "\n").replace('\r', "\n"));
    let environment = environment();
    let template = environment.template_from_named_str("chat template", &source).map_err(described)?;
    template.render(Value::from_serialize(&variables)).map_err(described)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(write_value);
    environment.set_unknown_method_callback(call_method);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: Value| python::str_of(&value));
    environment.add_filter("trim", trim);
    environment.add_test("sequence", |value: Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    environment
        .add_test("iterable", |value: Value| value.kind() == ValueKind::String || value.try_iter().is_ok());
    environment
}

/// The message of an error, with its line: what `raise_exception` was given, for one.
fn described(error: Error) -> String {
    let what = match (error.kind(), error.detail()) {
        (ErrorKind::InvalidOperation, Some(detail)) => detail.to_string(),
        (ErrorKind::OutOfFuel, _) => "the template does not end".to_string(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    match error.line() {
        Some(line) => format!("{what} (line {line} of the chat template)"),
        None => what,
    }
}

/// `{% generation %}` only marks what the assistant said; here it is a block like any other.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |i| i + 2);
        out.push_str(&plain_tag(&tag[..end]));
        rest = &tag[end..];
    }
    out.push_str(rest);
    out
}

fn plain_tag(tag: &str) -> String {
    let inside = tag.trim_start_matches("{%").trim_end_matches("%}");
    let name = inside.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
    match name {
        "generation" => tag.replace(name, "if true"),
        "endgeneration" => tag.replace(name, "endif"),
        _ => tag.to_string(),
    }
}

fn write_value(out: &mut Output, _: &State, value: &Value) -> Result<(), Error> {
    out.write_str(&python::str_of(value)?).map_err(Error::from)
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, python::str_of(&message)?))
}

/// datetime.now().strftime(format): the C library's, as Python's.
fn strftime_now(format: &str) -> Result<String, Error> {
    let failed = |why: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {why}"));
    if format.is_empty() {
        return Ok(String::new());
    }
    let pattern = CString::new(format).map_err(|_| failed("the format has a zero byte"))?;
    let mut buffer = vec![0u8; 256 + 64 * format.len()];
    // SAFETY: all pointers are to locals that outlive the calls; `buffer`'s length is given.
    let written = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() {
            return Err(failed("the system has no local time"));
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), pattern.as_ptr(), &local)
    };
    buffer.truncate(written);
    String::from_utf8(buffer).map_err(|_| failed("the time is not UTF-8"))
}

fn trim(value: Value, characters: Option<String>) -> Result<String, Error> {
    let text = python::str_of(&value)?;
    Ok(match characters {
        Some(characters) => text.trim_matches(|c| characters.contains(c)).to_string(),
        None => text.trim().to_string(),
    })
}

fn tojson(value: Value, ensure_ascii: Option<bool>, kwargs: Kwargs) -> Result<String, Error> {
    let indent = match kwargs.get::<Option<Value>>("indent")? {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) => Some(match value.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(value.as_usize().unwrap_or(0).min(64)),
        }),
    };
    let separators = kwargs.get::<Option<Vec<String>>>("separators")?;
    let default_item = if indent.is_some() { "," } else { ", " };
    let part = |i: usize, default: &str| {
        separators.as_ref().and_then(|s| s.get(i).cloned()).unwrap_or_else(|| default.to_string())
    };
    let style = JsonStyle {
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.or(ensure_ascii).unwrap_or(false),
        item_separator: part(0, default_item),
        key_separator: part(1, ": "),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
    };
    kwargs.assert_all_used()?;
    python::json_of(&value, &style)
}

/// The string methods of Python that minijinja-contrib lacks; the rest is its.
fn call_method(state: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match (value.as_str(), args.first().and_then(Value::as_str)) {
        (Some(text), Some(part)) => string_method(text, method, part, args.get(1)),
        _ => None,
    };
    own.map_or_else(|| unknown_method_callback(state, value, method, args), Ok)
}

fn string_method(text: &str, method: &str, part: &str, limit: Option<&Value>) -> Option<Value> {
    let list = |parts: &[&str]| Value::from_iter(parts.iter().copied().map(Value::from));
    Some(match method {
        "removeprefix" => Value::from(text.strip_prefix(part).unwrap_or(text)),
        "removesuffix" => Value::from(text.strip_suffix(part).unwrap_or(text)),
        "partition" => match text.split_once(part) {
            Some((before, after)) => list(&[before, part, after]),
            None => list(&[text, "", ""]),
        },
        "rpartition" => match text.rsplit_once(part) {
            Some((before, after)) => list(&[before, part, after]),
            None => list(&["", "", text]),
        },
        "rsplit" => list(&rsplit(text, part, limit.and_then(Value::as_i64))),
        _ => return None,
    })
}

fn rsplit<'a>(text: &'a str, separator: &str, limit: Option<i64>) -> Vec<&'a str> {
    let mut parts: Vec<&str> = match limit.and_then(|n| usize::try_from(n).ok()) {
        Some(n) => text.rsplitn(n.saturating_add(1), separator).collect(),
        None => text.rsplit(separator).collect(),
    };
    parts.reverse();
    parts
}
