//! A limit to the memory of one call. A chat template of a few lines can double a text until no memory is left,
//! and Rust's strings then end the process: there is no way back from an allocation that fails.
//!
//! So a limited call runs on a thread of its own, whose allocations are counted. When it wants too much, that
//! thread is left standing inside the allocator for good, with what it holds, and the caller goes on with an
//! error. That costs the limit once: whoever calls remembers what did not fit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

use crate::{panic_message, Outcome, INSIDE};

const RUNNING: u8 = 0;
const DONE: u8 = 1;
const STOPPED: u8 = 2;

/// Small requests go on up to twice the limit, so that no thread stops while it sets up something that others
/// wait for.
const SMALL: i64 = 1 << 16;
const STACK_BYTES: usize = 16 << 20;

/// What a limited thread has taken. Only that thread writes to the counters.
struct Account {
    most_live: i64,
    most_total: u64,
    live: AtomicI64,
    total: AtomicU64,
    state: AtomicU8,
    caller: Thread,
}

thread_local! {
    static ACCOUNT: Cell<*const Account> = const { Cell::new(ptr::null()) };
}

impl Account {
    fn take(&self, bytes: i64, copied: usize) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let total = self.total.fetch_add(copied as u64, Ordering::Relaxed) + copied as u64;
        let is_over = live > self.most_live && (bytes >= SMALL || live > 2 * self.most_live);
        if bytes > 0 && (is_over || total > self.most_total) {
            self.state.store(STOPPED, Ordering::Release);
            self.caller.unpark();
            loop {
                thread::park();
            }
        }
    }
}

fn take(bytes: i64, copied: usize) {
    let account = ACCOUNT.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: run() keeps the account alive as long as the thread has it.
    if let Some(account) = unsafe { account.as_ref() } {
        account.take(bytes, copied);
    }
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: System's allocations, counted; a thread that may not go on never returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size() as i64, layout.size());
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size() as i64, layout.size());
        System.alloc_zeroed(layout)
    }
    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size as i64 - layout.size() as i64, size);
        System.realloc(data, layout, size)
    }
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        take(-(layout.size() as i64), 0);
        System.dealloc(data, layout);
    }
}

/// Runs `body` on a thread of its own; nothing if it held more than `most_live` bytes at once, or took more
/// than `most_total` in all.
pub fn run<T: Send + 'static>(
    most_live: usize,
    most_total: u64,
    body: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Option<Outcome<T>> {
    let account = Arc::new(Account {
        most_live: most_live as i64,
        most_total,
        live: AtomicI64::new(0),
        total: AtomicU64::new(0),
        state: AtomicU8::new(RUNNING),
        caller: thread::current(),
    });
    let result = Arc::new(Mutex::new(None));
    let (its_account, its_result) = (account.clone(), result.clone());
    let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        INSIDE.with(|inside| inside.set(true));
        ACCOUNT.with(|cell| cell.set(Arc::as_ptr(&its_account)));
        let outcome = catch_unwind(AssertUnwindSafe(body));
        ACCOUNT.with(|cell| cell.set(ptr::null()));
        let outcome = outcome.unwrap_or_else(|payload| Err(panic_message(payload.as_ref())));
        *its_result.lock().unwrap_or_else(|e| e.into_inner()) = Some(outcome);
        its_account.state.store(DONE, Ordering::Release);
        its_account.caller.unpark();
    });
    if let Err(error) = spawned {
        return Some(Err(format!("no thread could be started: {error}")));
    }
    while account.state.load(Ordering::Acquire) == RUNNING {
        thread::park();
    }
    if account.state.load(Ordering::Acquire) == STOPPED {
        return None;
    }
    let outcome = result.lock().unwrap_or_else(|e| e.into_inner()).take();
    outcome.or_else(|| Some(Err("the thread ended without a result".to_string())))
}
