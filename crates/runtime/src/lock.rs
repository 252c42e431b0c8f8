// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locked elements: several workers reach them although their class allows one instance only. Each has an instance, a
//! lock, timers and descriptors.

use castanet_element::Instance;
use castanet_element::run_loop::Core;
use castanet_element::watch::{Change, Watch, Watches};
use castanet_tables::timer_queue::TimerQueue;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the timer that the home worker has for each of its locked elements. This timer expires together with
/// the earliest timer of the element. No class uses this number for its own timers.
pub(crate) const TIMER: u16 = u16::MAX;

/// A locked element: one instance that several workers run, one at a time.
pub(crate) struct Locked {
    pub element: u32,
    /// The worker that runs the element's task and timers, and answers its handlers.
    pub home: usize,
    state: Mutex<State>,
    /// The worker that holds the lock. While the lock is free, the last worker that held it.
    pub holder: AtomicUsize,
}

/// The part of a locked element that the lock protects.
pub(crate) struct State {
    pub instance: Instance,
    /// The original instance, if it has panicked and was replaced by a substitute that drops all packets. None
    /// otherwise.
    pub disabled: Option<Instance>,
    /// The timers of the element. While a worker runs the element, these timers replace those of the worker.
    timers: TimerQueue<(u32, u16)>,
    /// The earliest expiry of the element's timers that has been reported to the home worker. None if none has been
    /// reported.
    announced: Option<i64>,
    /// The descriptors that the element watches. While a worker runs the element, these watches replace those of the
    /// worker.
    watches: Watches,
    /// The watches with which the home worker waits for the element's descriptors. Each is stored under the key of the
    /// element's own watch of the same descriptor.
    registered: HashMap<u64, Watch>,
    /// The latest time ([`Core::recent`]) on any worker that has run the element.
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
    /// Returns the state. None while a worker holds the lock. Also none after a panic of the element, until
    /// [`Locked::recover`] is called: the worker on which the element panicked must first decide how to continue.
    pub fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }
    /// Lets workers use the element again after a panic.
    pub fn recover(&self) {
        self.state.clear_poison();
    }
    /// Whether the element is an action.
    pub fn is_action(&self) -> bool {
        matches!(self.wait().instance, Instance::Action(_))
    }
    /// Waits for the lock and returns the state, even after a panic.
    pub fn wait(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the home worker must update its timer or its descriptors: the element has set an earlier timer, or has
    /// changed its descriptors.
    pub fn has_news(&mut self) -> bool {
        let next = self.timers.next_time();
        let sooner = next.is_some_and(|t| self.announced.is_none_or(|a| t < a));
        if sooner {
            self.announced = next;
        }
        sooner || self.watches.has_changes()
    }
    /// Updates the home worker: sets its timer to the earliest timer of `element`, and starts or stops its waits for
    /// the element's descriptors.
    pub fn register(&mut self, element: u32, core: &mut Core) {
        self.announced = self.timers.next_time();
        match self.announced {
            Some(t) => core.timers().schedule((element, TIMER), t),
            None => drop(core.timers().cancel((element, TIMER))),
        }
        let State { watches, registered, .. } = self;
        for change in watches.changes() {
            match change {
                Change::Wait(key, fd, interest) => {
                    let watch =
                        *registered.entry(key).or_insert_with(|| core.watches().add(element, fd, interest));
                    core.watches().wait(watch);
                }
                Change::Forget(key, _) => {
                    registered.remove(&key).into_iter().for_each(|w| core.watches().remove(w))
                }
            }
        }
    }
    /// Marks the descriptors of the element that have become ready. A descriptor has become ready if the home worker's
    /// watch on it no longer waits.
    pub fn look(&mut self, core: &mut Core) {
        for (&key, &watch) in &self.registered {
            if !core.watches().waits(watch) {
                self.watches.ready(key);
            }
        }
    }
}

/// The purpose of a call to a locked element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To push packets. If another worker runs the element, the packets can stay on their edge.
    Push,
    /// To pull packets, or to run a task or a timer.
    Turn,
    /// To call a handler.
    Handler,
}

/// The period during which a worker runs a locked element. The worker uses the timers and descriptors of the element in
/// place of its own.
pub(crate) struct Visit<'a> {
    pub core: &'a mut Core,
    pub state: &'a mut State,
}

impl<'a> Visit<'a> {
    pub fn new(core: &'a mut Core, state: &'a mut State) -> Visit<'a> {
        // Each worker keeps a time of its own that may be old. Advance this worker's time to the latest that the
        // element has seen, so that time never runs backwards for the element.
        core.advance_recent(state.recent);
        core.exchange(&mut state.timers, &mut state.watches);
        Visit { core, state }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let Visit { core, state } = self;
        core.exchange(&mut state.timers, &mut state.watches);
        state.recent = core.recent();
    }
}
