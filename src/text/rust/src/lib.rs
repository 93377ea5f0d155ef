//! A small C ABI over the `tokenizers` crate and `minijinja`; the other side is `src/text/rust_abi.h`.
//!
//! Ownership: `Text` and `Encoded` are filled by this side and given back to `tranship_text_free` and
//! `tranship_encoded_free`; a tokenizer is given back to `tranship_tokenizer_free`. Input ranges are borrowed
//! for the call. Every function returns true if it succeeded; if not, `error` holds the reason and other
//! outputs are untouched. No panic leaves this crate.

mod budget;
mod python;
mod template;
mod tokenizer;

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;
use std::str;
use std::sync::Once;

use tokenizer::{Prepend, Tokenizer};

/// UTF-8 bytes owned by this side.
#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

/// The ids and type ids of a text, `size` of each, owned by this side.
#[repr(C)]
pub struct Encoded {
    ids: *mut u32,
    type_ids: *mut u32,
    size: usize,
}

type Outcome<T> = Result<T, String>;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}
static QUIET: Once = Once::new();

/// Panics inside this crate are reported as errors, so the hook must not print them.
fn quiet_panics() {
    QUIET.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !INSIDE.with(Cell::get) {
                previous(info);
            }
        }));
    });
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the parser gave up".to_string())
}

/// Runs `body`; a failure or a panic becomes text in `error`.
unsafe fn guarded<T>(error: *mut Text, body: impl FnOnce() -> Outcome<T>) -> Option<T> {
    quiet_panics();
    INSIDE.with(|inside| inside.set(true));
    let outcome = catch_unwind(AssertUnwindSafe(body));
    INSIDE.with(|inside| inside.set(false));
    match outcome {
        Ok(Ok(value)) => Some(value),
        Ok(Err(message)) => {
            give_text(error, message);
            None
        }
        Err(payload) => {
            give_text(error, panic_message(payload.as_ref()));
            None
        }
    }
}

unsafe fn give_text(out: *mut Text, text: String) {
    let bytes = Box::leak(text.into_bytes().into_boxed_slice());
    out.write(Text { data: bytes.as_mut_ptr(), size: bytes.len() });
}

unsafe fn borrow_bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    slice::from_raw_parts(data, size)
}

unsafe fn borrow_text<'a>(data: *const u8, size: usize) -> Outcome<&'a str> {
    str::from_utf8(borrow_bytes(data, size))
        .map_err(|e| format!("the text is not UTF-8 at byte {}", e.valid_up_to()))
}

unsafe fn free_array<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)));
    }
}

#[no_mangle]
pub extern "C" fn tranship_tokenizer_available() -> bool {
    true
}

/// Frees what a function of this crate put into a `Text`.
///
/// # Safety
/// `text` came from this crate and is freed once.
#[no_mangle]
pub unsafe extern "C" fn tranship_text_free(text: Text) {
    free_array(text.data, text.size);
}

/// Frees what `tranship_tokenizer_encode` made.
///
/// # Safety
/// `encoded` came from this crate and is freed once.
#[no_mangle]
pub unsafe extern "C" fn tranship_encoded_free(encoded: Encoded) {
    free_array(encoded.ids, encoded.size);
    free_array(encoded.type_ids, encoded.size);
}

/// Reads a tokenizer.json; its own truncation and padding are switched off.
///
/// # Safety
/// The range is readable; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_new(
    json: *const u8,
    json_size: usize,
    out: *mut *mut Tokenizer,
    error: *mut Text,
) -> bool {
    let made = guarded(error, || Tokenizer::new(borrow_bytes(json, json_size)));
    made.map(|t| out.write(Box::into_raw(Box::new(t)))).is_some()
}

/// # Safety
/// `tokenizer` came from `tranship_tokenizer_new` and is freed once.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// What the file says, as a JSON object: see `Tokenizer::describe`.
///
/// # Safety
/// `tokenizer` is alive; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_describe(
    tokenizer: *const Tokenizer,
    out: *mut Text,
    error: *mut Text,
) -> bool {
    guarded(error, || (*tokenizer).describe()).map(|t| give_text(out, t)).is_some()
}

/// Replaces the file's steps by those of Transformers' LlamaTokenizer.
///
/// # Safety
/// `tokenizer` is alive and nobody else uses it; `prepend` is one of the enum's; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_use_llama_steps(
    tokenizer: *mut Tokenizer,
    prepend: Prepend,
    error: *mut Text,
) -> bool {
    guarded(error, || (*tokenizer).use_llama_steps(prepend)).is_some()
}

/// Adds tokens: a JSON array of objects as in tokenizer.json's "added_tokens", "id" not needed.
///
/// # Safety
/// `tokenizer` is alive and nobody else uses it; the range is readable; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_add_tokens(
    tokenizer: *mut Tokenizer,
    json: *const u8,
    json_size: usize,
    error: *mut Text,
) -> bool {
    guarded(error, || (*tokenizer).add_tokens(borrow_bytes(json, json_size))).is_some()
}

/// With `yes`, special tokens in a text are encoded as the text they are.
///
/// # Safety
/// `tokenizer` is alive and nobody else uses it; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_split_special_tokens(
    tokenizer: *mut Tokenizer,
    yes: bool,
    error: *mut Text,
) -> bool {
    guarded(error, || {
        (*tokenizer).split_special_tokens(yes);
        Ok(())
    })
    .is_some()
}

/// Encodes one text. At most `max_length` ids, special ones included; `truncate_left` drops from the start.
///
/// # Safety
/// `tokenizer` is alive; the range is readable; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: *const u8,
    text_size: usize,
    add_special_tokens: bool,
    max_length: usize,
    truncate_left: bool,
    out: *mut Encoded,
    error: *mut Text,
) -> bool {
    let encoded = guarded(error, || {
        let text = borrow_text(text, text_size)?;
        (*tokenizer).encode(text, add_special_tokens, max_length, truncate_left)
    });
    let Some((ids, type_ids)) = encoded else { return false };
    let size = ids.len();
    let ids = Box::leak(ids.into_boxed_slice()).as_mut_ptr();
    let type_ids = Box::leak(type_ids.into_boxed_slice()).as_mut_ptr();
    out.write(Encoded { ids, type_ids, size });
    true
}

/// # Safety
/// `tokenizer` is alive; the range is readable; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    size: usize,
    skip_special_tokens: bool,
    out: *mut Text,
    error: *mut Text,
) -> bool {
    let ids = if size == 0 { &[] } else { slice::from_raw_parts(ids, size) };
    let text = guarded(error, || (*tokenizer).decode(ids, skip_special_tokens));
    text.map(|t| give_text(out, t)).is_some()
}

/// The id of a token, or -1.
///
/// # Safety
/// `tokenizer` is alive; the range is readable; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    token: *const u8,
    token_size: usize,
    out: *mut i64,
    error: *mut Text,
) -> bool {
    let id = guarded(error, || Ok((*tokenizer).token_to_id(borrow_text(token, token_size)?)));
    id.map(|id| out.write(id.map_or(-1, i64::from))).is_some()
}

/// The token of an id: its text, and 0 if there is none, 1 if it is an ordinary one, 2 if it is special.
///
/// # Safety
/// `tokenizer` is alive; all outputs are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_tokenizer_id_to_token(
    tokenizer: *const Tokenizer,
    id: u32,
    out: *mut Text,
    kind: *mut i32,
    error: *mut Text,
) -> bool {
    let Some(token) = guarded(error, || Ok((*tokenizer).id_to_token(id))) else { return false };
    kind.write(token.as_ref().map_or(0, |(_, special)| if *special { 2 } else { 1 }));
    give_text(out, token.map_or_else(String::new, |(text, _)| text));
    true
}

/// Renders a chat template with the variables of a JSON object.
///
/// # Safety
/// The ranges are readable; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn tranship_template_render(
    source: *const u8,
    source_size: usize,
    variables: *const u8,
    variables_size: usize,
    out: *mut Text,
    error: *mut Text,
) -> bool {
    let text = guarded(error, || {
        let source = borrow_text(source, source_size)?;
        template::render(source, borrow_bytes(variables, variables_size))
    });
    text.map(|t| give_text(out, t)).is_some()
}
