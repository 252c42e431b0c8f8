// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that several workers reach although their class allows one instance only.
//!
//! All these workers run the instance, under a lock that is held for one call. The element has a home worker,
//! which runs its task and its timers, waits for its descriptors, and answers its handlers. Calls on other
//! workers send it [`Mail::Attend`] when something of this has changed.
//!
//! No deadlock is possible. A worker that holds a lock waits for another lock only in order to pull, and the
//! graph has no cycle of pulls. Packets that it would have to push to an element in use wait on their edge
//! until it holds no lock. A worker that waits answers the handler calls of other workers meanwhile. Such a
//! call never waits for a lock whose holder waits itself: it fails, because the element is busy.

use crate::mail::Mail;
use crate::node::Body;
use crate::nodes::Nodes;
use crate::reach::Reached;
use crate::trail::{Taken, blamed};
use castanet_element::seam::{EdgeRange, Seam as _};
use castanet_element::watch::{Change, Watch, Watches};
use castanet_element::{Action, CallError, Core, Cx, Element, Instance, Object, Verdict};
use castanet_packet::Batch;
use castanet_spec::Reason;
use castanet_tables::timer_queue::TimerQueue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The number of the timer by which a home worker wakes for the timers of a locked element. No class uses it.
pub(crate) const TIMER: u16 = u16::MAX;

/// How often a worker tries to get a lock before it lets other threads run.
const SPINS: u32 = 100;
/// While a worker waits for a lock, it looks for mail after this number of tries.
const TRIES: u32 = 64;

/// An element with a lock.
pub(crate) struct Locked {
    pub element: u32,
    /// The worker that runs its task and timers and answers its handlers.
    pub home: usize,
    state: Mutex<State>,
    /// The worker that holds the lock, or held it last.
    holder: AtomicUsize,
}

/// The instance, and what else belongs to the element.
pub(crate) struct State {
    pub instance: Instance,
    /// The instance that has panicked, if a substitute has taken its place.
    pub disabled: Option<Instance>,
    /// The timers of the element. They take the place of the worker's own during a call.
    timers: TimerQueue<(u32, u16)>,
    /// The expiry for which the home worker has been told to wake.
    announced: Option<i64>,
    /// The descriptors that the element waits for. They take the place of the worker's own during a call.
    watches: Watches,
    /// The home worker's watch for each of them, by the key of the element's watch.
    registered: HashMap<u64, Watch>,
    /// The latest value of [`Core::recent`] that the element may have seen.
    recent: i64,
}

impl Locked {
    pub fn new(element: u32, home: usize, instance: Instance) -> Arc<Locked> {
        let state = State {
            instance,
            disabled: None,
            timers: TimerQueue::new(),
            announced: None,
            watches: Watches::default(),
            registered: HashMap::new(),
            recent: i64::MIN,
        };
        Arc::new(Locked { element, home, state: Mutex::new(state), holder: AtomicUsize::new(home) })
    }
    /// The state, if no worker holds the lock.
    pub fn state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            // An element that has panicked is disabled, or goes on as it is; so says `OnPanic`.
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    /// Whether the element is an action.
    pub fn is_action(&self) -> bool {
        matches!(self.wait().instance, Instance::Action(_))
    }
    /// The state, for a thread that may wait for it: no worker runs.
    pub fn wait(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a worker calls a locked element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To push packets, which can wait.
    Push,
    /// To pull packets, or to give a task or a timer its turn.
    Turn,
    /// To call a handler.
    Handler,
}

/// A call of a locked element. The worker uses the timers and descriptors of the element meanwhile.
struct Visit<'a> {
    core: &'a mut Core,
    state: &'a mut State,
}

impl<'a> Visit<'a> {
    fn new(core: &'a mut Core, state: &'a mut State) -> Visit<'a> {
        // Time never runs backwards for an element, although each worker reads the clock at times of its own.
        core.recent = core.recent.max(state.recent);
        std::mem::swap(&mut core.timers, &mut state.timers);
        std::mem::swap(&mut core.watches, &mut state.watches);
        Visit { core, state }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let Visit { core, state } = self;
        std::mem::swap(&mut core.timers, &mut state.timers);
        std::mem::swap(&mut core.watches, &mut state.watches);
        state.recent = core.recent;
    }
}

impl State {
    /// Whether the home worker must be told of timers or descriptors.
    fn has_news(&mut self) -> bool {
        let next = self.timers.next_time();
        let sooner = next.is_some_and(|t| self.announced.is_none_or(|a| t < a));
        if sooner {
            self.announced = next;
        }
        sooner || self.watches.has_changes()
    }
    /// Sets the home worker's timer for the timers of `element`, and passes on its descriptors.
    fn register(&mut self, element: u32, core: &mut Core) {
        self.announced = self.timers.next_time();
        match self.announced {
            Some(t) => core.timers.schedule((element, TIMER), t),
            None => drop(core.timers.cancel((element, TIMER))),
        }
        let State { watches, registered, .. } = self;
        for change in watches.changes() {
            match change {
                Change::Wait(key, fd, interest) => {
                    let watch =
                        *registered.entry(key).or_insert_with(|| core.watches.add(element, fd, interest));
                    core.watches.wait(watch);
                }
                Change::Forget(key, _) => {
                    registered.remove(&key).into_iter().for_each(|w| core.watches.remove(w))
                }
            }
        }
    }
    /// Takes note of the descriptors that have become ready.
    fn look(&mut self, core: &Core) {
        for (&key, &watch) in &self.registered {
            if !core.watches.waits(watch) {
                self.watches.ready(key);
            }
        }
    }
}

impl Nodes {
    /// Gets the lock of an element. Returns none if the caller must not wait for it.
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
            lock.holder.store(core.worker as usize, Ordering::SeqCst);
        }
        state
    }

    /// Whether this worker may wait for a lock that another worker holds.
    fn may_wait(&self, lock: &Locked, purpose: Purpose) -> bool {
        let dependent = match purpose {
            Purpose::Push => return self.locks == 0,
            Purpose::Turn => self.answering > 0,
            Purpose::Handler => self.answering > 0 || self.locks > 0,
        };
        // The holder may wait for this worker, which would then wait for itself.
        let holder = self.shared.inboxes.get(lock.holder.load(Ordering::SeqCst));
        !dependent || holder.is_none_or(|inbox| !inbox.waiting.load(Ordering::SeqCst))
    }

    /// Makes known that this worker waits for another one.
    pub(crate) fn begin_wait(&mut self, core: &Core) {
        self.waits += 1;
        self.show_waits(core);
    }
    /// Ends what [`Nodes::begin_wait`] has begun.
    pub(crate) fn end_wait(&mut self, core: &Core) {
        self.waits -= 1;
        self.show_waits(core);
    }
    fn show_waits(&self, core: &Core) {
        if let Some(inbox) = self.shared.inboxes.get(core.worker as usize) {
            inbox.waiting.store(self.waits > 0, Ordering::SeqCst);
        }
    }
    /// Restores the counts of locks, waits and answers after a panic.
    pub(crate) fn unwind_to(&mut self, core: &Core, (locks, waits, answering): (u32, u32, u32)) {
        (self.locks, self.waits, self.answering) = (locks, waits, answering);
        self.show_waits(core);
        self.remind(core);
    }

    /// Takes the mail that has arrived.
    pub(crate) fn collect_mail(&mut self) {
        self.inbox.extend(self.mail.iter().flat_map(|m| m.try_iter()));
    }
    /// Answers the handler calls for which other workers wait. All other mail waits until this worker is
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
    /// Lets the run loop look at the mail that is not answered yet.
    pub(crate) fn remind(&self, core: &Core) {
        if let Some(inbox) = self.shared.inboxes.get(core.worker as usize).filter(|_| !self.inbox.is_empty())
        {
            inbox.full.store(true, Ordering::SeqCst);
        }
    }

    /// Calls the locked element of node `n`, as [`Nodes::reach`] calls others. Returns none if the element is
    /// running on this worker already, or on another one for which this one must not wait.
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
        let node = self.nodes.get_mut(n)?;
        let (me, base) = (node.me, node.base as usize);
        let mut taken = Taken::new(n, &mut node.body);
        let Body::Locked(_, outbox) = &mut taken.body else { return None };
        let own = EdgeRange { me, base: 0, count: outbox.len() as u32, skip: 0 };
        let at_home = core.worker as usize == lock.home;
        if at_home {
            state.look(core);
        }
        let wakes = core.wakes.len();
        self.locks += 1;
        let visit = Visit::new(core, &mut state);
        let mut cx = Cx::over(outbox, &mut *visit.core, Some(self), own, single);
        let out = blamed(&mut cx, |cx| f(&mut *visit.state, cx));
        let emitted = cx.outputs().take_slot().map(|(i, p)| (i + base, p));
        let touched = cx.outputs().touched();
        drop(visit);
        if at_home {
            state.register(me, core);
        } else {
            let news = state.has_news();
            let woken = core.wakes.iter().skip(wakes).any(|&e| e == me);
            core.wakes.retain(|&e| e != me);
            if let Some(inbox) = self.shared.inboxes.get(lock.home) {
                [(news, Mail::Attend(me)), (woken, Mail::Wake(me))]
                    .into_iter()
                    .filter(|m| m.0)
                    .for_each(|m| inbox.send(m.1));
            }
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

    /// Implements [`Nodes::with`] for the locked element of node `n`.
    pub(crate) fn with_locked<R>(
        &mut self,
        core: &mut Core,
        n: usize,
        element: u32,
        f: impl FnOnce(&mut (dyn Object + 'static), &mut Cx<'_>) -> R,
    ) -> Option<Result<R, CallError>> {
        let Body::Locked(lock, _) = &self.nodes.get(n)?.body else { return None };
        if lock.home != core.worker as usize {
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
        let busy = || CallError::Busy(format!("element '{}' is busy", core.name(element)));
        Some(called.and_then(|reached| reached.map(|r| r.out).ok_or_else(busy)))
    }

    /// Whether several workers run an element under a lock.
    pub(crate) fn is_locked(&self, element: u32) -> bool {
        self.node_of(element)
            .and_then(|n| self.nodes.get(n))
            .is_some_and(|n| matches!(n.body, Body::Locked(..)))
    }

    /// Runs `f` on the instance of a locked element, which it may replace.
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
        called
            .map(|r| r.out)
            .ok_or_else(|| CallError::Busy(format!("element '{}' is busy", core.name(element))))
    }

    /// Pushes the current batch to the locked element of node `n`. Returns the edges with packets, as bits;
    /// none, with the batch as it was, if this worker must not wait for the element.
    pub(crate) fn push_locked(&mut self, core: &mut Core, n: usize, port: usize) -> Option<u64> {
        let mut batch = std::mem::replace(&mut self.current, self.spare.pop().unwrap_or_default());
        let reached = self.visit(core, n, Purpose::Push, false, |state, cx| match &mut state.instance {
            Instance::Element(e) => {
                e.push(port, &mut batch, cx);
                leftover(&mut batch, cx);
            }
            Instance::Action(a) => {
                a.action_batch(&mut batch, cx);
                cx.forward(0, &mut batch);
            }
        });
        self.spare.push(std::mem::replace(&mut self.current, batch));
        Some(reached?.touched)
    }

    /// Pulls through the locked element of node `n`, as [`Nodes::pull_node`] does.
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

    /// Calls a locked element for its timers that have expired.
    pub(crate) fn run_timers_of(&mut self, core: &mut Core, element: u32, now: i64) {
        let mut due = true;
        while due {
            due = self
                .run(core, element, |e, cx| {
                    let timer = cx.core().timers.pop_due(now);
                    timer.map(|(_, (_, id))| e.timer(id, cx)).is_some()
                })
                .unwrap_or(false);
        }
    }

    /// Takes note of what calls on other workers have changed in the timers and descriptors of an element.
    pub(crate) fn attend(&mut self, core: &mut Core, element: u32) {
        if let Some(n) = self.node_of(element) {
            self.visit(core, n, Purpose::Turn, false, |_, _| ());
        }
    }

    /// Takes a locked element out of service on all workers. Returns false if the element is not locked.
    pub(crate) fn disable_locked(
        &mut self,
        core: &mut Core,
        element: u32,
        substitute: impl FnOnce() -> Box<dyn Element>,
    ) -> bool {
        let Some(n) = self.node_of(element) else { return false };
        self.visit(core, n, Purpose::Turn, false, |state, _| {
            let old = std::mem::replace(&mut state.instance, Instance::Element(substitute()));
            state.disabled.get_or_insert(old);
        })
        .is_some()
    }
}

/// Pulls packets through an action. If it does not pass a packet on, the burst ends.
fn pull_action(a: &mut dyn Action, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
    for _ in 0..max {
        let Some(mut p) = cx.pull_one(0) else { return };
        match a.action(&mut p, cx) {
            Verdict::Next => into.push(p),
            Verdict::Several => {
                into.push(p);
                into.append(cx.core().behind());
            }
            Verdict::Out(port) => return cx.emit(port as usize, p),
            Verdict::Drop(reason) => return cx.drop(p, reason),
        }
    }
}

/// Drops the packets that an element left in a batch that was pushed to it.
fn leftover(batch: &mut Batch, cx: &mut Cx<'_>) {
    if !batch.is_empty() {
        cx.drop_all(batch, Reason::Discarded);
    }
}
