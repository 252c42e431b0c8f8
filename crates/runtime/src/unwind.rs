// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a panic: the element that ran, the message, and the node bodies that were running.
//!
//! The packet path pays nothing for it: the destructors of guards collect the report while the stack unwinds.
//! When a call returns normally, `mem::forget` prevents the destructor of its guard from running.

use crate::node::Body;
use castanet_element::{Cx, Instance};
use castanet_packet::{Batch, pool};
use castanet_spec::bytes::line;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// What is known about the panic that is unwinding a thread.
#[derive(Default)]
pub(crate) struct PanicReport {
    /// The message of the panic, and its place in the source.
    pub message: String,
    /// The value of [`pool::dropped`] before unwinding.
    pub dropped: Option<usize>,
    /// The element that ran when the panic began.
    pub culprit: Option<u32>,
    /// Bodies that were taken out of their nodes while they ran, innermost first.
    pub bodies: Vec<(usize, Body)>,
}

thread_local! {
    /// Whether the panics of this thread are caught by `caught`.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static REPORT: RefCell<PanicReport> =
        const { RefCell::new(PanicReport { message: String::new(), dropped: None, culprit: None, bodies: Vec::new() }) };
}

/// Adds facts to the report of this thread's panic.
fn note(f: impl FnOnce(&mut PanicReport)) {
    // This may be called in a thread-local destructor, after the report itself was destroyed.
    let _ = REPORT.try_with(|t| t.try_borrow_mut().map(|mut t| f(&mut t)));
}

/// Starts the report of a panic, before the stack unwinds.
fn begin(info: &PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or("a panic without text");
    let message = match info.location() {
        Some(place) => format!("{text} (at {place})"),
        None => text.to_string(),
    };
    note(|t| *t = PanicReport { message, dropped: Some(pool::dropped()), ..PanicReport::default() });
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        // Ignore the error: standard error may be closed.
        let _ = std::io::stderr().lock().write_all(&line(&trace.to_string()));
    }
}

/// Calls `f`. If it panics, returns the report and the payload of the panic. Panics of other threads are
/// reported as before.
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, (PanicReport, Box<dyn Any + Send>)> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match WATCHED.try_with(Cell::get) {
            Ok(true) => begin(info),
            _ => previous(info),
        }));
    });
    let before = WATCHED.replace(true);
    let out = catch_unwind(AssertUnwindSafe(f));
    WATCHED.set(before);
    out.map_err(|panic| {
        let mut report = REPORT.with(RefCell::take);
        // A package catches a panic in its own code. The program raises it again with `resume_unwind`, which does not
        // run the panic hook.
        if report.message.is_empty() {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            report.message =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().into();
        }
        (report, panic)
    })
}

/// Calls `f`, which runs an element, or several in turn. If one of them panics, it is recorded as the culprit: `cx` has
/// its number.
#[inline(always)]
pub(crate) fn blamed<'a, R>(cx: &mut Cx<'a>, f: impl FnOnce(&mut Cx<'a>) -> R) -> R {
    struct Guard<'c, 'a>(&'c mut Cx<'a>);
    impl Drop for Guard<'_, '_> {
        #[cold]
        #[inline(never)]
        fn drop(&mut self) {
            let me = self.0.me();
            // For a panic in the code of a package, the panic hook has not run (see `caught`). In this
            // program, its unwinding begins with this frame, so read the counter of dropped packets here.
            let dropped = pool::dropped();
            note(|t| {
                t.culprit = t.culprit.or(Some(me));
                t.dropped = t.dropped.or(Some(dropped));
            });
        }
    }
    let guard = Guard(cx);
    let out = f(guard.0);
    std::mem::forget(guard);
    out
}

/// Calls `f`, which adds packets to the caller's batch or changes them there. A panic clears the batch,
/// because packets that an element has not finished must not go on.
#[inline(always)]
pub(crate) fn spoiled<R>(batch: &mut Batch, f: impl FnOnce(&mut Batch) -> R) -> R {
    struct Guard<'b>(&'b mut Batch);
    impl Drop for Guard<'_> {
        #[cold]
        #[inline(never)]
        fn drop(&mut self) {
            self.0.clear();
        }
    }
    let guard = Guard(batch);
    let out = f(guard.0);
    std::mem::forget(guard);
    out
}

/// The body of a node, taken out of the node while it runs. A panic puts it into the report.
pub(crate) struct Taken {
    n: usize,
    pub body: Body,
}

impl Taken {
    #[inline(always)]
    pub fn new(n: usize, body: &mut Body) -> Taken {
        Taken { n, body: std::mem::replace(body, Body::Busy) }
    }
    /// Returns the body, to be put back into its node.
    #[inline(always)]
    pub fn back(mut self) -> Body {
        let body = std::mem::replace(&mut self.body, Body::Busy);
        std::mem::forget(self);
        body
    }
}

impl Drop for Taken {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let body = std::mem::replace(&mut self.body, Body::Busy);
        if !matches!(body, Body::Busy) {
            note(|t| t.bodies.push((self.n, body)));
        }
    }
}

/// The elements of a worker that have panicked.
#[derive(Default)]
pub(crate) struct PanickedElements {
    /// The disabled elements. Substitutes that drop all packets have taken their places.
    pub disabled: Vec<(u32, Instance)>,
    /// By element: the number of its panics.
    counts: Vec<(u32, u64)>,
}

impl PanickedElements {
    /// Counts a panic of an element, and returns the number of its panics.
    pub fn count(&mut self, element: u32) -> u64 {
        match self.counts.iter_mut().find(|c| c.0 == element) {
            Some(c) => {
                c.1 += 1;
                c.1
            }
            None => {
                self.counts.push((element, 1));
                1
            }
        }
    }
}
