// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls locked elements: elements that several workers reach although their class allows one instance only.
//!
//! All these workers run the one instance, under a lock that a worker holds for one call. Each locked element has a
//! home worker, which runs its task and its timers, waits for its descriptors, and answers its handlers. If a call on
//! another worker changes the timers or descriptors, that worker sends the home worker [`Mail::Attend`].
//!
//! There are no deadlocks, for these reasons:
//!
//! - A worker that holds a lock waits for another lock only in order to pull or to call a handler. The graph has no
//!   cycle of pulls.
//! - If a worker that holds a lock has to push packets to an element in use, the packets wait on their edge until the
//!   worker holds no lock.
//! - A worker that waits still answers the handler calls of other workers.
//! - Two kinds of worker never wait for a lock whose holder is waiting too: a worker that calls a handler while it
//!   holds a lock, and a worker that answers a handler call. Instead, the call fails with the error that the element is
//!   busy.

use crate::lock::{Locked, Purpose, State, Visit};
use crate::mail::Mail;
use crate::node::Body;
use crate::nodes::Nodes;
use crate::reach::Reached;
use crate::unwind::{Taken, blamed};
use castanet_element::run_loop::{Core, EdgeRange, Internals as _};
use castanet_element::{Action, AnyElement, Busy, CallError, Cx, Instance, Object};
use castanet_packet::Batch;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

/// The number of times that a worker tries to get a lock before it yields the processor.
const SPINS: u32 = 100;
/// How often a waiting worker checks for mail: after this many tries to get the lock.
const TRIES: u32 = 64;

impl Nodes {
    /// Gets the lock of an element. Returns none if another worker has the lock and this worker must not wait for it.
    fn acquire<'l>(
        &mut self,
        core: &mut Core,
        lock: &'l Locked,
        purpose: Purpose,
    ) -> Option<MutexGuard<'l, State>> {
        let (mut tries, mut waiting) = (0u32, false);
        let state = loop {
            if let Some(state) = lock.state() {
                break Some(state);
            }
            if !self.may_wait(lock, purpose) {
                break None;
            }
            tries = tries.wrapping_add(1);
            if tries < SPINS && !waiting {
                std::hint::spin_loop();
                continue;
            }
            if !std::mem::replace(&mut waiting, true) {
                self.begin_wait(core);
            }
            if tries.is_multiple_of(TRIES) {
                self.answer_urgent(core);
            }
            std::thread::yield_now();
        };
        if waiting {
            self.end_wait(core);
        }
        if state.is_some() {
            lock.holder.store(core.worker() as usize, Ordering::SeqCst);
        }
        state
    }

    /// Whether this worker may wait for a lock that another worker holds. `purpose` is the reason for the call.
    fn may_wait(&self, lock: &Locked, purpose: Purpose) -> bool {
        let dependent = match purpose {
            Purpose::Push => return self.locks == 0,
            Purpose::Turn => self.answering > 0,
            Purpose::Handler => self.answering > 0 || self.locks > 0,
        };
        // The holder of the lock may be waiting for this worker. If this worker waited for the holder too, neither
        // would continue.
        let holder = self.shared.inboxes.get(lock.holder.load(Ordering::SeqCst));
        !dependent || holder.is_none_or(|inbox| !inbox.waiting.load(Ordering::SeqCst))
    }

    /// Begins a wait for another worker, and shows it to the other workers.
    pub(crate) fn begin_wait(&mut self, core: &Core) {
        self.waits += 1;
        self.show_waits(core);
    }
    /// Ends a wait that [`Nodes::begin_wait`] has begun.
    pub(crate) fn end_wait(&mut self, core: &Core) {
        self.waits -= 1;
        self.show_waits(core);
    }
    fn show_waits(&self, core: &Core) {
        if let Some(inbox) = self.shared.inboxes.get(core.worker() as usize) {
            inbox.waiting.store(self.waits > 0, Ordering::SeqCst);
        }
    }
    /// After a panic, resets the numbers of held locks, of waits and of answers in progress to the given values, which
    /// they had before the call that panicked.
    pub(crate) fn unwind_to(&mut self, core: &Core, (locks, waits, answering): (u32, u32, u32)) {
        (self.locks, self.waits, self.answering) = (locks, waits, answering);
        self.show_waits(core);
        self.remind(core);
    }

    /// Moves the mail that has arrived from the channel to the worker's own queue.
    pub(crate) fn collect_mail(&mut self) {
        self.inbox.extend(self.mail.iter().flat_map(|m| m.try_iter()));
    }
    /// Answers the handler calls for which other workers wait. All other mail stays in the queue until this worker is
    /// between two turns again.
    pub(crate) fn answer_urgent(&mut self, core: &mut Core) {
        self.collect_mail();
        while let Some(m) = self.inbox.iter().position(Mail::is_urgent).and_then(|i| self.inbox.remove(i)) {
            self.answering += 1;
            self.answer(core, m);
            self.answering -= 1;
        }
        self.remind(core);
    }
    /// If there is mail that has not been answered, makes the run loop check its mail again.
    pub(crate) fn remind(&self, core: &Core) {
        if let Some(inbox) =
            self.shared.inboxes.get(core.worker() as usize).filter(|_| !self.inbox.is_empty())
        {
            inbox.full.store(true, Ordering::SeqCst);
        }
    }

    /// Calls the locked element of node `n`. [`Nodes::reach`] does the same for other elements. Returns none if this
    /// worker is already running the element, or if another worker is running it and this worker must not wait.
    pub(crate) fn visit<R>(
        &mut self,
        core: &mut Core,
        n: usize,
        purpose: Purpose,
        single: bool,
        f: impl FnOnce(&mut State, &mut Cx<'_>) -> R,
    ) -> Option<Reached<R>> {
        let Body::Locked(lock, _) = &self.nodes.get(n)?.body else { return None };
        let lock = lock.clone();
        let mut state = self.acquire(core, &lock, purpose)?;
        let meter = self.sampler.meter.clone();
        let node = self.nodes.get_mut(n)?;
        let (me, base) = (node.me, node.base as usize);
        let mut taken = Taken::new(n, &mut node.body);
        let Body::Locked(_, outbox) = &mut taken.body else { return None };
        let own = EdgeRange { me, base: 0, count: outbox.len() as u32, skip: 0 };
        let at_home = core.worker() as usize == lock.home;
        if at_home {
            state.look(core);
        }
        self.locks += 1;
        let visit = Visit::new(core, &mut state);
        let mut cx = Cx::over(outbox, &mut *visit.core, Some(self), own, single);
        let out = blamed(&mut cx, |cx| match &meter {
            None => f(&mut *visit.state, cx),
            Some(meter) => meter.measure(me, || f(&mut *visit.state, cx)),
        });
        let emitted = cx.outputs().take_slot().map(|(i, p)| (i + base, p));
        let touched = cx.outputs().touched();
        drop(visit);
        if at_home {
            state.register(me, core);
        } else {
            self.tell_home(core, &lock, &mut state);
        }
        drop(state);
        self.locks -= 1;
        self.put_back(n, taken.back(), touched);
        if self.locks == 0 && !self.contended.is_empty() {
            let Nodes { stack, contended, .. } = self;
            stack.append(contended);
        }
        Some(Reached { out, emitted, touched })
    }

    /// Called after an element has run on this worker. Informs the home worker of the element if timers or descriptors
    /// have changed, or if the element requests that its task be scheduled.
    fn tell_home(&self, core: &mut Core, lock: &Locked, state: &mut State) {
        let Some(home) = self.shared.inboxes.get(lock.home) else { return };
        if state.has_news() {
            home.send(Mail::Attend(lock.element));
        }
        if core.unschedule(lock.element) {
            home.send(Mail::Wake(lock.element));
        }
    }

    /// Calls `f` with the locked element of node `n`, as [`Nodes::with`] does with other elements.
    pub(crate) fn with_locked<R>(
        &mut self,
        core: &mut Core,
        n: usize,
        element: u32,
        f: impl FnOnce(&mut (dyn Object + 'static), &mut Cx<'_>) -> R,
    ) -> Option<Result<R, CallError>> {
        if self.lock_of(element)?.home != core.worker() as usize {
            return None;
        }
        let called = self.guard(core, element, |nodes, core| {
            nodes.visit(core, n, Purpose::Handler, false, |state, cx| {
                let State { instance, disabled, .. } = state;
                f(disabled.as_mut().unwrap_or(instance).common(), cx)
            })
        });
        self.defer(n);
        self.settle(core);
        Some(called.and_then(|reached| {
            Ok(reached.ok_or_else(|| Busy::Element(core.name(element).to_string()))?.out)
        }))
    }

    /// Whether an element is locked: several workers run it under a lock.
    pub(crate) fn is_locked(&self, element: u32) -> bool {
        self.lock_of(element).is_some()
    }

    /// Calls `f` with the instance of a locked element. `f` may replace the instance.
    ///
    /// # Errors
    /// When the element is not locked or is running, or when `f` panics.
    pub(crate) fn with_instance<R>(
        &mut self,
        core: &mut Core,
        element: u32,
        f: impl FnOnce(&mut Instance, &mut Cx<'_>) -> R,
    ) -> Result<R, CallError> {
        let n = self.node_of(element);
        let called = self.guard(core, element, |nodes, core| {
            nodes.visit(core, n?, Purpose::Handler, false, |state, cx| f(&mut state.instance, cx))
        })?;
        Ok(called.ok_or_else(|| Busy::Element(core.name(element).to_string()))?.out)
    }

    /// Pulls through the locked element of node `n`, as [`Nodes::pull_node`] does through other nodes.
    pub(crate) fn pull_locked(
        &mut self,
        core: &mut Core,
        n: usize,
        port: usize,
        max: usize,
        into: &mut Batch,
    ) {
        self.visit(core, n, Purpose::Turn, false, |state, cx| match &mut state.instance {
            Instance::Element(e) => e.pull(port, max, into, cx),
            Instance::Action(a) => pull_action(a.as_mut(), max, into, cx),
        });
    }

    /// Runs the timers of a locked element that have expired.
    pub(crate) fn run_timers_of(&mut self, core: &mut Core, element: u32, now: i64) {
        let mut due = true;
        while due {
            due = self
                .run(core, element, |e, cx| {
                    let timer = cx.core().timers().pop_due(now);
                    timer.map(|(_, (_, id))| e.timer(id, cx)).is_some()
                })
                .unwrap_or(false);
        }
    }

    /// Updates the home worker's timer and descriptors for an element, after a call on another worker has changed the
    /// element's timers or descriptors.
    pub(crate) fn attend(&mut self, core: &mut Core, element: u32) {
        if let Some(n) = self.node_of(element) {
            self.visit(core, n, Purpose::Turn, false, |_, _| ());
        }
    }

    /// Returns the lock of an element. None if the element is not locked.
    pub(crate) fn lock_of(&self, element: u32) -> Option<&Arc<Locked>> {
        match &self.nodes.get(self.node_of(element)?)?.body {
            Body::Locked(lock, _) => Some(lock),
            _ => None,
        }
    }
    /// Disables a locked element on all workers. Returns false if the element is not locked.
    pub(crate) fn disable_locked(
        &mut self,
        element: u32,
        substitute: impl FnOnce() -> Box<dyn AnyElement>,
    ) -> bool {
        let Some(lock) = self.lock_of(element) else { return false };
        let mut state = lock.wait();
        let old = std::mem::replace(&mut state.instance, Instance::Element(substitute()));
        state.disabled.get_or_insert(old);
        true
    }
    /// Lets workers use a locked element again after a panic.
    pub(crate) fn recover(&self, element: u32) {
        if let Some(lock) = self.lock_of(element) {
            lock.recover();
        }
    }
}

/// Pulls at most `max` packets through an action, one at a time. Ends early if a pull returns none, or if the action
/// does not pass on a packet.
fn pull_action(a: &mut dyn Action, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
    let mut one = cx.spare_batch();
    for _ in 0..max {
        cx.pull(0, 1, &mut one);
        a.action_batch(&mut one, cx);
        if one.is_empty() {
            break;
        }
        into.append(&mut one);
    }
    cx.return_batch(one);
}
