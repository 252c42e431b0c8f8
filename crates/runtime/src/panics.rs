// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panics of elements: which element it was, what becomes of its packets, and how the router goes on.
//!
//! The packet path pays nothing: a panic is caught around the run loop of a worker, and what is needed to name the element and to
//! go on is collected while the stack unwinds, by guards that are forgotten when a call returns.

use crate::nodes::{Body, Nodes, deliver};
use crate::push::Rest;
use crate::worker::Worker;
use castanet_element::{
    Action, CallError, Core, Cx, Element, HandlerError, Instance, Lifecycle, Object, Verdict,
};
use castanet_packet::{Batch, Packet, pool};
use castanet_spec::Reason;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::sync::Once;
use std::sync::atomic::Ordering;

/// What a router does when an element has panicked over a packet, in its task or in a timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// It stops, in good order.
    // An element that panicked may be inconsistent. A run that ends says so; one that goes on may give wrong results unnoticed.
    #[default]
    Stop,
    /// It goes on without the element, which drops its packets from then on.
    Disable,
    /// It goes on with the element.
    Continue,
}

/// What is known of the panic that unwinds a thread.
#[derive(Default)]
struct Trail {
    /// Its message, and the place in the source.
    what: String,
    /// [`pool::dropped`] before unwinding.
    dropped: Option<usize>,
    /// The element that ran.
    culprit: Option<u32>,
    /// Bodies that were taken out of their nodes while they ran, innermost first.
    bodies: Vec<(usize, Body)>,
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
        // There may be nobody to read it.
        let _ = writeln!(std::io::stderr().lock(), "{trace}");
    }
}

/// Calls `f`; the result of a panic is what is known of it. Panics of other threads are reported as before.
fn caught<R>(f: impl FnOnce() -> R) -> Result<R, (Trail, Box<dyn Any + Send>)> {
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

/// Calls what puts packets into a batch of somebody else, or works on them there. A panic clears the batch: packets that an element
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

/// Stands in the place of an element that is disabled.
struct Disabled {
    /// How many inputs it has.
    inputs: usize,
}

impl Object for Disabled {
    fn read_handler(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Option<Result<String, HandlerError>> {
        None
    }
    fn write_handler(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Option<Result<(), HandlerError>> {
        None
    }
    fn take_counts(&mut self, _: &mut dyn Any) {}
    fn take_over_from(&mut self, _: &mut dyn Any, _: &mut Cx<'_>) -> Result<(), String> {
        Ok(())
    }
    fn take_state_from(&mut self, _: &mut dyn Any, _: &mut Cx<'_>) -> Result<(), String> {
        Ok(())
    }
}

impl Lifecycle for Disabled {}

impl Action for Disabled {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Drop(Reason::Panicked)
    }
}

impl Element for Disabled {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.drop_all(batch, Reason::Panicked);
    }
    // Whoever pulls is told that there are packets as long as they wait upstream: they must not wait for ever.
    fn pull(&mut self, _: usize, max: usize, _: &mut Batch, cx: &mut Cx<'_>) {
        for input in 0..self.inputs {
            let mut batch = cx.spare_batch();
            cx.pull(input, max, &mut batch);
            cx.drop_all(&mut batch, Reason::Panicked);
            cx.return_batch(batch);
        }
    }
}

/// The elements of a worker that have panicked.
#[derive(Default)]
pub(crate) struct Casualties {
    /// Those that are disabled; [`Disabled`] stands in their places.
    pub disabled: Vec<(u32, Instance)>,
    /// How often each has panicked.
    counts: Vec<(u32, u64)>,
}

impl Casualties {
    /// Counts a panic of an element; the number of its panics.
    fn count(&mut self, element: u32) -> u64 {
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

impl Nodes {
    /// Puts what ran when a panic came back in its place, and counts the packets that unwinding dropped. The element, how many
    /// packets, and the message.
    fn collect(&mut self, core: &mut Core, trail: Trail, caller: Option<u32>) -> (Option<u32>, u64, String) {
        let culprit = trail.culprit.or(caller);
        let mut lost = trail.dropped.map_or(0, |before| pool::dropped().wrapping_sub(before)) as u64;
        for (n, body) in trail.bodies {
            self.put_back(n, body, 1);
        }
        lost += self.abandon(core);
        if let Some(c) = culprit {
            core.count_drops(c, Reason::Panicked, lost);
        }
        self.shared.running.panics.fetch_add(1, Ordering::Relaxed);
        (culprit, lost, trail.what)
    }

    /// Drops what was between two elements when the run loop was left; what waits on edges is to go on.
    fn abandon(&mut self, core: &mut Core) -> u64 {
        let mut lost = self.current.len() + core.abandon();
        self.current.clear();
        if let Some(Rest::Queue(..)) = self.rest.take() {
            lost += 1;
        }
        for n in 0..self.nodes.len() {
            let Nodes { nodes, edges, .. } = self;
            if let Some(node) = nodes.get_mut(n)
                && let Body::Reaching(_, outbox) = &mut node.body
            {
                deliver(outbox, edges, node.base);
            }
            self.defer(n);
        }
        lost as u64
    }

    /// Calls `f` for element `me` from outside the run loop: a handler, or what happens once. A panic becomes an error.
    pub(crate) fn guard<R>(
        &mut self,
        core: &mut Core,
        me: u32,
        f: impl FnOnce(&mut Nodes, &mut Core) -> R,
    ) -> Result<R, CallError> {
        let (nesting, calls, origin) = (core.nesting, self.calls, core.origin);
        caught(|| f(self, core)).map_err(|(trail, _)| {
            // A call that unwinding has left must not leave its rights to the next one.
            (core.nesting, self.calls, core.origin) = (nesting, calls, origin);
            let (culprit, _, what) = self.collect(core, trail, Some(me));
            let who = self.shared.declared_at(culprit.unwrap_or(me));
            CallError::Failed(format!("{who} panicked: {what}"))
        })
    }

    /// Takes an element out of service: its packets are dropped from now on, and its task and timers do nothing.
    fn disable(&mut self, element: u32) {
        let Some(&(n, member)) = self.places.get(element as usize) else { return };
        let inputs = self.shared.graph.inputs(element as usize);
        let Some(node) = self.nodes.get_mut(n as usize) else { return };
        let instance = match &mut node.body {
            Body::Element(e) | Body::Reaching(e, _) => {
                Instance::Element(std::mem::replace(e, Box::new(Disabled { inputs })))
            }
            Body::Chain(members) => match members.get_mut(member as usize) {
                Some(m) => Instance::Action(std::mem::replace(&mut m.action, Box::new(Disabled { inputs }))),
                None => return,
            },
            Body::Busy => return,
        };
        self.casualties.disabled.push((element, instance));
        self.tasks.remove(element);
    }
}

impl Worker {
    /// Runs until the router has ended, or until all workers have met because another router is to take its place. After
    /// the panic of an element it goes on as the router is told to.
    pub(crate) fn run(&mut self) {
        while let Err((trail, panic)) = caught(|| self.run_loop()) {
            let (culprit, lost, what) = self.nodes.collect(&mut self.core, trail, None);
            let shared = self.nodes.shared.clone();
            let Some(culprit) = culprit else {
                shared.running.say(crate::running::DEFAULT, &format!("the run loop panicked: {what}"));
                resume_unwind(panic);
            };
            let policy = shared.running.settings.on_panic;
            let times = self.nodes.casualties.count(culprit);
            // A packet may come as often as its sender likes.
            if times.is_power_of_two() {
                let who = shared.declared_at(culprit);
                let again = if times > 1 { format!(" {times} times, the last time") } else { String::new() };
                let next = match policy {
                    OnPanic::Stop => "the router stops",
                    OnPanic::Disable => "it is disabled and drops its packets from now on",
                    OnPanic::Continue => "it goes on",
                };
                let text = format!("{who} panicked{again}: {what}; packets dropped: {lost}; {next}");
                shared.running.say(crate::running::DEFAULT, &text);
            }
            match policy {
                OnPanic::Stop => shared.end(),
                OnPanic::Disable => self.nodes.disable(culprit),
                OnPanic::Continue => {}
            }
            (self.core.nesting, self.nodes.calls) = (0, 0);
            self.core.origin = self.core.home;
        }
    }
}
