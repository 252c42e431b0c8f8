// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that several workers reach although their class allows one instance only: the instance, its lock,
//! and what else belongs to the element.

use castanet_element::Instance;
use castanet_element::run_loop::Core;
use castanet_element::watch::{Change, Watch, Watches};
use castanet_tables::timer_queue::TimerQueue;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the timer by which a home worker wakes for the timers of a locked element. No class uses it.
pub(crate) const TIMER: u16 = u16::MAX;

/// An element with a lock.
pub(crate) struct Locked {
    pub element: u32,
    /// The worker that runs its task and timers and answers its handlers.
    pub home: usize,
    state: Mutex<State>,
    /// The worker that holds the lock, or held it last.
    pub holder: AtomicUsize,
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
    /// The state, if no worker holds the lock. After a panic there is none until [`Locked::recover`]: the worker on
    /// which the element panicked first decides what becomes of it.
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
    /// The state, also after a panic, for a thread that may wait for it.
    pub fn wait(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the home worker must be told of timers or descriptors.
    pub fn has_news(&mut self) -> bool {
        let next = self.timers.next_time();
        let sooner = next.is_some_and(|t| self.announced.is_none_or(|a| t < a));
        if sooner {
            self.announced = next;
        }
        sooner || self.watches.has_changes()
    }
    /// Sets a timer of the home worker to the earliest timer of `element`, and has the home worker wait for the
    /// element's descriptors.
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
    /// Takes note of the descriptors that have become ready.
    pub fn look(&mut self, core: &mut Core) {
        for (&key, &watch) in &self.registered {
            if !core.watches().waits(watch) {
                self.watches.ready(key);
            }
        }
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
pub(crate) struct Visit<'a> {
    pub core: &'a mut Core,
    pub state: &'a mut State,
}

impl<'a> Visit<'a> {
    pub fn new(core: &'a mut Core, state: &'a mut State) -> Visit<'a> {
        // Time never runs backwards for an element, although each worker reads the clock at times of its own.
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
