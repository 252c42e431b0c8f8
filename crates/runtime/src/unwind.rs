// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a panic: the element that panicked, the message, and the node bodies that were running.
//!
//! The report adds no cost to the packet path. Destructors of guard values collect the report while the stack unwinds.
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

/// What is known about a panic while it unwinds the stack.
#[derive(Default)]
pub(crate) struct PanicReport {
    /// The message of the panic, and its position in the source.
    pub message: String,
    /// The value of [`pool::dropped`] when the panic began, before unwinding drops packets.
    pub dropped: Option<usize>,
    /// The element that was running when the panic began.
    pub culprit: Option<u32>,
    /// The bodies that were taken out of their nodes while they ran, each with the number of its node. The innermost
    /// call comes first.
    pub bodies: Vec<(usize, Body)>,
}

thread_local! {
    /// Whether [`caught`] catches the panics of this thread.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static REPORT: RefCell<PanicReport> =
        const { RefCell::new(PanicReport { message: String::new(), dropped: None, culprit: None, bodies: Vec::new() }) };
}

/// Adds information to the report of this thread's panic.
fn note(f: impl FnOnce(&mut PanicReport)) {
    // A thread-local destructor may call this after the report has been destroyed.
    let _ = REPORT.try_with(|t| t.try_borrow_mut().map(|mut t| f(&mut t)));
}

/// Starts the report of a panic. Called by the panic hook, before the stack unwinds.
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

/// Called when a panic begins in a shared library, before the stack unwinds there. The panic hook of this program does not
/// run for such a panic.
pub fn panic_began() {
    if WATCHED.try_with(Cell::get) == Ok(true) {
        note(|t| *t = PanicReport { dropped: Some(pool::dropped()), ..PanicReport::default() });
    }
}

/// Calls `f`. If it panics, returns the report and the payload of the panic. The panic hook that was set before still
/// handles the panics of other threads.
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
        // The panic hook has not run if the panic came from a package: the package has caught the panic, and this
        // program has raised it again with `resume_unwind`. In that case, take the message from the payload.
        if report.message.is_empty() {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            report.message =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().into();
        }
        (report, panic)
    })
}

/// Calls `f`, which runs one or several elements with `cx`. If `f` panics, records the culprit: the element that was
/// running, according to `cx`.
#[inline(always)]
pub(crate) fn blamed<'a, R>(cx: &mut Cx<'a>, f: impl FnOnce(&mut Cx<'a>) -> R) -> R {
    struct Guard<'c, 'a>(&'c mut Cx<'a>);
    impl Drop for Guard<'_, '_> {
        #[cold]
        #[inline(never)]
        fn drop(&mut self) {
            let me = self.0.me();
            note(|t| t.culprit = t.culprit.or(Some(me)));
        }
    }
    let guard = Guard(cx);
    let out = f(guard.0);
    std::mem::forget(guard);
    out
}

/// Calls `f`, which adds packets to `batch` or changes packets in it. A panic clears the batch, because packets that an
/// element has only half processed must not continue.
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

/// The body of a node, which is taken out of the node while it runs. If it panics, the body goes into the report.
pub(crate) struct Taken {
    n: usize,
    pub body: Body,
}

impl Taken {
    #[inline(always)]
    pub fn new(n: usize, body: &mut Body) -> Taken {
        Taken { n, body: std::mem::replace(body, Body::Busy) }
    }
    /// Returns the body, so that the caller can put it back into its node.
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

/// The elements that have panicked on a worker.
#[derive(Default)]
pub(crate) struct PanickedElements {
    /// The disabled elements. In the nodes, substitutes that drop all packets have replaced them.
    pub disabled: Vec<(u32, Instance)>,
    /// The number of panics of each element.
    counts: Vec<(u32, u64)>,
}

impl PanickedElements {
    /// Counts a panic of an element. Returns the number of its panics so far.
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
