// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where hot swaps are asked for, one at a time.

use super::{Candidate, STOPPED};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

enum State {
    /// Nobody wants anything.
    Free,
    /// Somebody prepares.
    Taken,
    /// A router waits to take the place of the one that runs.
    Ready(Box<Candidate>),
    /// The router has stopped.
    Closed,
}

/// Where hot swaps are asked for.
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

/// The right to offer a candidate; the next one has it when this is dropped, or when the candidate has been dealt with.
pub(crate) struct Turn<'a>(Option<&'a Desk>);

impl Desk {
    pub fn new() -> Desk {
        Desk { state: Mutex::new(State::Free), changed: Condvar::new() }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes a turn; with `wait`, as soon as those who came before have had theirs.
    pub fn take(&self, wait: bool) -> Result<Turn<'_>, String> {
        let mut state = self.lock();
        loop {
            match *state {
                State::Free => break,
                State::Closed => return Err(STOPPED.into()),
                _ if !wait => return Err("another hot swap is under way".into()),
                _ => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        *state = State::Taken;
        Ok(Turn(Some(self)))
    }
    /// The candidate, if one waits.
    pub fn candidate(&self) -> Option<Box<Candidate>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Ready(c) => Some(c),
            other => {
                *state = other;
                None
            }
        }
    }
    /// The candidate has been dealt with.
    pub fn free(&self) {
        let mut state = self.lock();
        if matches!(*state, State::Taken) {
            *state = State::Free;
            self.changed.notify_one();
        }
    }
    /// The router has stopped: who waits, or comes, is told.
    pub fn close(&self) {
        let last = std::mem::replace(&mut *self.lock(), State::Closed);
        self.changed.notify_all();
        if let State::Ready(candidate) = last {
            candidate.discard();
        }
    }
}

impl Turn<'_> {
    /// Hands a candidate in.
    pub fn offer(mut self, candidate: Candidate) -> Result<(), String> {
        let Some(desk) = self.0.take() else { return Err(STOPPED.into()) };
        let mut state = desk.lock();
        if matches!(*state, State::Closed) {
            drop(state);
            candidate.discard();
            return Err(STOPPED.into());
        }
        *state = State::Ready(Box::new(candidate));
        Ok(())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(desk) = self.0 {
            desk.free();
        }
    }
}
