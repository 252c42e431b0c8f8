// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slot for the candidate, a configuration that is ready to replace the running one. There is at most one
//! candidate.

use super::candidate::Candidate;
use super::error::SwapError;
use parking_lot::{Condvar, Mutex};

enum State {
    /// No swap is under way.
    Free,
    /// A thread is preparing a candidate, or the candidate is being committed.
    Taken,
    /// A candidate waits to be committed.
    Ready(Box<Candidate>),
    /// The router has stopped.
    Closed,
}

/// The slot for one candidate. A thread that requests a swap needs the permit, which only one thread has at a time.
pub(crate) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

/// The permit to submit a candidate. It is free again when the thread drops it unused, or when the submitted candidate
/// has been committed or refused.
pub(crate) struct Permit<'a>(Option<&'a Slot>);

impl Slot {
    pub fn new() -> Slot {
        Slot { state: Mutex::new(State::Free), changed: Condvar::new() }
    }
    /// Takes the permit. If `wait` is true and another thread has the permit, waits until it is free.
    ///
    /// # Errors
    /// When the router has stopped. If `wait` is false, also when another thread has the permit.
    pub fn acquire(&self, wait: bool) -> Result<Permit<'_>, SwapError> {
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Free => break,
                State::Closed => return Err(SwapError::Stopped),
                _ if !wait => return Err(SwapError::Busy),
                _ => self.changed.wait(&mut state),
            }
        }
        *state = State::Taken;
        Ok(Permit(Some(self)))
    }
    /// Takes the candidate out of the slot. None if no candidate waits.
    pub fn take(&self) -> Option<Box<Candidate>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Ready(c) => Some(c),
            other => {
                *state = other;
                None
            }
        }
    }
    /// Makes the permit free again, after the candidate has been committed or refused.
    pub fn release(&self) {
        let mut state = self.state.lock();
        if matches!(*state, State::Taken) {
            *state = State::Free;
            self.changed.notify_one();
        }
    }
    /// Ends all hot swaps, because the router has stopped. From now on, no thread gets the permit, and new
    /// configurations are refused.
    pub fn close(&self) {
        let last = std::mem::replace(&mut *self.state.lock(), State::Closed);
        self.changed.notify_all();
        if let State::Ready(candidate) = last {
            candidate.discard();
        }
    }
}

impl Permit<'_> {
    /// Submits a candidate to be committed.
    ///
    /// # Errors
    /// When the router has stopped.
    pub fn submit(mut self, candidate: Candidate) -> Result<(), SwapError> {
        let Some(slot) = self.0.take() else { return Err(SwapError::Stopped) };
        let mut state = slot.state.lock();
        if matches!(*state, State::Closed) {
            drop(state);
            candidate.discard();
            return Err(SwapError::Stopped);
        }
        *state = State::Ready(Box::new(candidate));
        Ok(())
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.release();
        }
    }
}
