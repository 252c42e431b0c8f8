// SPDX-License-Identifier: MIT OR Apache-2.0
//! The barrier at which the workers of a configuration wait for each other before another configuration replaces it.

use crate::mail::Inbox;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The interval at which a waiting worker checks for mail.
const LOOK: Duration = Duration::from_micros(50);

#[derive(Default)]
struct State {
    /// The number of workers that are waiting now.
    waiting: usize,
    /// Set as soon as all workers wait at the same time. From then on, no worker runs an element, so no worker sends a
    /// request to another.
    over: bool,
}

/// A barrier for all workers of a configuration. A waiting worker still answers requests of other workers, until all of
/// them wait.
#[derive(Default)]
pub(crate) struct Barrier {
    state: Mutex<State>,
    changed: Condvar,
}

impl Barrier {
    /// Waits until all workers wait here, or until `ended` returns true. `me` is the number of the calling worker.
    /// Calls `answer` each time this worker has mail.
    pub fn wait(&self, inboxes: &[Inbox], me: usize, ended: impl Fn() -> bool, mut answer: impl FnMut()) {
        let mail = || inboxes.get(me).is_some_and(|i| i.full.load(Ordering::SeqCst));
        let mut state = self.state.lock();
        state.waiting += 1;
        loop {
            if state.waiting == inboxes.len() {
                state.over = true;
                self.changed.notify_all();
            }
            if state.over || ended() {
                return;
            }
            if mail() {
                // This worker may have to send a request to another worker in order to answer. So it does not count as
                // waiting while it answers.
                state.waiting -= 1;
                drop(state);
                answer();
                state = self.state.lock();
                state.waiting += 1;
            } else {
                self.changed.wait_for(&mut state, LOOK);
            }
        }
    }
    /// Resets the barrier, so that it can be used again.
    pub fn open(&self) {
        *self.state.lock() = State::default();
    }
}
