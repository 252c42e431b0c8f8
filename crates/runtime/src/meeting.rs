// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the workers of a router wait for each other before another router takes its place.

use crate::mail::Inbox;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often who is there looks for mail.
const LOOK: Duration = Duration::from_micros(50);

#[derive(Default)]
struct State {
    there: usize,
    /// All were there at the same time: none waits for an answer of another, and so none will.
    over: bool,
}

/// A meeting of all workers. Who is there answers those who still ask, until all are there and none can ask.
#[derive(Default)]
pub(crate) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

impl Meeting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits until all workers are there, or `ended`; `answer` is called when worker `me` has mail.
    pub fn wait(&self, inboxes: &[Inbox], me: usize, ended: impl Fn() -> bool, mut answer: impl FnMut()) {
        let mail = || inboxes.get(me).is_some_and(|i| i.full.load(Ordering::SeqCst));
        let mut state = self.lock();
        state.there += 1;
        loop {
            if state.there == inboxes.len() {
                state.over = true;
                self.changed.notify_all();
            }
            if state.over || ended() {
                return;
            }
            if mail() {
                // To answer may mean to ask: meanwhile this one is not there.
                state.there -= 1;
                drop(state);
                answer();
                state = self.lock();
                state.there += 1;
            } else {
                state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
    /// Ready for the next meeting.
    pub fn open(&self) {
        *self.lock() = State::default();
    }
}
