// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that several workers reach although their class allows one instance only: the instance, its lock, its
//! timers and its descriptors.

use castanet_element::Instance;
use castanet_element::run_loop::Core;
use castanet_element::watch::{Change, Watch, Watches};
use castanet_tables::timer_queue::TimerQueue;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the timer that a home worker sets for the earliest timer of a locked element. No class uses this
/// number.
pub(crate) const TIMER: u16 = u16::MAX;

/// An element with a lock.
pub(crate) struct Locked {
    pub element: u32,
    /// The worker that runs its task and timers and answers its handlers.
    pub home: usize,
    state: Mutex<State>,
    /// The worker that holds the lock. If the lock is free, the last worker that held it.
    pub holder: AtomicUsize,
}

/// The instance, its timers and its descriptors.
pub(crate) struct State {
    pub instance: Instance,
    /// The instance that has panicked, if a substitute has replaced it.
    pub disabled: Option<Instance>,
    /// The timers of the element. During a call, the worker uses these timers instead of its own.
    timers: TimerQueue<(u32, u16)>,
    /// The earliest expiry that the home worker has been told of; none if it has not been told of any.
    announced: Option<i64>,
    /// The descriptors that the element waits for. During a call, the worker uses these watches instead of its own.
    watches: Watches,
    /// The home worker's watch for each descriptor, by the key of the element's own watch.
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
    /// Returns the state; none while a worker holds the lock. After a panic it returns none until
    /// [`Locked::recover`], because the worker on which the element panicked must decide first how to continue.
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
    /// Whether the home worker must be told that a timer is set for an earlier time, or that descriptors have
    /// changed.
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
    /// Marks as ready the descriptors that the home worker no longer waits for. It stopped waiting for them because
    /// they became ready.
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
    /// To push packets. They can stay on their edge if the element is in use.
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
        // Each worker caches the time. Advance this worker's cache, so that time never runs backwards for the element.
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
