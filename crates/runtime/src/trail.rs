// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trail of a panic: the element that ran, its message, and the parts of nodes that unwinding took out of their places.
//!
//! The packet path pays nothing: guards collect the trail while the stack unwinds, and are forgotten when a call returns.

use crate::node::Body;
use castanet_element::{Cx, Instance};
use castanet_packet::{Batch, pool};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// Facts about the panic that unwinds a thread.
#[derive(Default)]
pub(crate) struct Trail {
    /// Its message, and the place in the source.
    pub what: String,
    /// [`pool::dropped`] before unwinding.
    pub dropped: Option<usize>,
    /// The element that ran.
    pub culprit: Option<u32>,
    /// Bodies that were taken out of their nodes while they ran, innermost first.
    pub bodies: Vec<(usize, Body)>,
}

thread_local! {
    /// Whether panics of this thread are caught here.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static TRAIL: RefCell<Trail> =
        const { RefCell::new(Trail { what: String::new(), dropped: None, culprit: None, bodies: Vec::new() }) };
}

/// Adds to what is known of the panic.
fn note(f: impl FnOnce(&mut Trail)) {
    // A destructor of the thread may run after that of the trail.
    let _ = TRAIL.try_with(|t| t.try_borrow_mut().map(|mut t| f(&mut t)));
}

/// Begins the trail of a panic, while the stack still stands.
fn begin(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a panic without text");
    let what = match info.location() {
        Some(place) => format!("{message} (at {place})"),
        None => message.to_string(),
    };
    note(|t| *t = Trail { what, dropped: Some(pool::dropped()), ..Trail::default() });
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr().lock(), "{trace}");
    }
}

/// Calls `f`; the result of a panic is what is known of it. Panics of other threads are reported as before.
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, (Trail, Box<dyn Any + Send>)> {
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
        let mut trail = TRAIL.with(RefCell::take);
        // A panic that a package raises again does not pass the hook.
        if trail.what.is_empty() {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            trail.what = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().into();
        }
        (trail, panic)
    })
}

/// Calls an element, or several in turn. If one panics, it is the one that `cx` names.
#[inline(always)]
pub(crate) fn blamed<'a, R>(cx: &mut Cx<'a>, f: impl FnOnce(&mut Cx<'a>) -> R) -> R {
    struct Guard<'c, 'a>(&'c mut Cx<'a>);
    impl Drop for Guard<'_, '_> {
        #[cold]
        #[inline(never)]
        fn drop(&mut self) {
            let me = self.0.me();
            // A panic that a package raises again has not passed the hook: its unwinding here begins with this frame.
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

/// Calls code that puts packets into a batch of its caller, or works on packets there. A panic clears the batch: packets that an element
/// has not finished with must not go on as if it had.
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

/// A body that was taken out of its node while it runs; a panic leaves it on the trail.
pub(crate) struct Taken {
    n: usize,
    pub body: Body,
}

impl Taken {
    #[inline(always)]
    pub fn new(n: usize, body: &mut Body) -> Taken {
        Taken { n, body: std::mem::replace(body, Body::Busy) }
    }
    /// The body, to be put back.
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
pub(crate) struct Casualties {
    /// Elements that are disabled; their places have substitutes that drop all packets.
    pub disabled: Vec<(u32, Instance)>,
    /// The number of panics of each.
    counts: Vec<(u32, u64)>,
}

impl Casualties {
    /// Counts a panic of an element; the number of its panics.
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
