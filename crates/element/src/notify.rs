// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifiers: handles by which an element says that it has something, or room for something, and by which others sleep.
//!
//! The one who sleeps clears nothing: the owner of a note clears it when there is nothing left, and must look again after
//! clearing (`clear`, then recheck), because another worker may have put something there in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A notifier of an element, by its number in the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(pub(crate) u32);

impl Note {
    /// The notifier of that number.
    pub fn new(number: u32) -> Note {
        Note(number)
    }
}

/// One notifier: whether it is on, and which tasks to wake when it goes on.
#[derive(Debug, Default)]
struct State {
    on: AtomicBool,
    /// (worker, element) of each listening task.
    listeners: OnceLock<Vec<(u32, u32)>>,
}

/// All notifiers of a router, shared by its workers.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<[State]>);

impl Notes {
    /// `n` notifiers, all off.
    pub fn new(n: usize) -> Notes {
        Notes((0..n).map(|_| State::default()).collect())
    }
    /// Says once which tasks listen to a notifier.
    pub fn listen(&self, note: usize, listeners: Vec<(u32, u32)>) {
        if let Some(s) = self.0.get(note) {
            // A second list is a mistake of the caller; the first one stays.
            let _ = s.listeners.set(listeners);
        }
    }
    /// Whether a notifier is on.
    #[inline]
    pub fn is_on(&self, note: usize) -> bool {
        self.0.get(note).is_some_and(|s| s.on.load(Ordering::SeqCst))
    }
    /// Whether setting a notifier would change nothing. Relaxed is enough: `clear` is followed by a recheck in the one who clears.
    #[inline]
    pub fn seems_on(&self, note: Note) -> bool {
        self.0.get(note.0 as usize).is_none_or(|s| s.on.load(Ordering::Relaxed))
    }
    /// Turns a notifier on; `wake` is called for each listener when it was off.
    #[inline]
    pub fn set(&self, note: Note, mut wake: impl FnMut(u32, u32)) {
        let Some(s) = self.0.get(note.0 as usize) else { return };
        if s.on.swap(true, Ordering::SeqCst) {
            return;
        }
        for &(w, e) in s.listeners.get().into_iter().flatten() {
            wake(w, e);
        }
    }
    /// Turns a notifier off. The caller must look again afterwards and [`Notes::set`] it if there is something after all.
    #[inline]
    pub fn clear(&self, note: Note) {
        if let Some(s) = self.0.get(note.0 as usize) {
            s.on.store(false, Ordering::SeqCst);
        }
    }
}

/// The OR of notifiers: what a puller sleeps on. It is always on when some path leads to an element without notifier.
#[derive(Clone, Debug)]
pub struct Signal {
    /// The notifier to look at first; often the only one. `NONE` if there is none.
    first: u32,
    rest: Vec<u32>,
    always: bool,
}

/// No notifier has this number.
const NONE: u32 = u32::MAX;

impl Default for Signal {
    /// A signal that is never on.
    fn default() -> Signal {
        Signal::new(Vec::new(), false)
    }
}

impl Signal {
    /// A signal that is never off.
    pub fn always() -> Signal {
        Signal::new(Vec::new(), true)
    }
    /// The OR of notifiers, by number; with `always`, never off.
    pub fn new(notes: Vec<u32>, always: bool) -> Signal {
        match notes.split_first() {
            Some((&first, rest)) => Signal { first, rest: rest.to_vec(), always },
            None => Signal { first: NONE, rest: notes, always },
        }
    }
    /// Whether one of them is on.
    #[inline]
    pub fn is_on(&self, notes: &Notes) -> bool {
        self.always || notes.is_on(self.first as usize) || self.is_on_besides(notes)
    }
    #[cold]
    #[inline(never)]
    fn is_on_besides(&self, notes: &Notes) -> bool {
        self.rest.iter().any(|&n| notes.is_on(n as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_the_or_of_its_notifiers() {
        let notes = Notes::new(4);
        for set in 0..16u32 {
            for n in 0..4 {
                if set >> n & 1 == 1 { notes.set(Note(n), |_, _| ()) } else { notes.clear(Note(n)) }
            }
            for of in [&[][..], &[2], &[0, 3], &[3, 1, 2], &[9]] {
                let any = of.iter().any(|&n| n < 4 && set >> n & 1 == 1);
                assert_eq!(Signal::new(of.to_vec(), false).is_on(&notes), any, "{set:b} {of:?}");
                assert!(Signal::new(of.to_vec(), true).is_on(&notes));
            }
        }
        assert!(!Signal::default().is_on(&notes) && Signal::always().is_on(&notes));
    }
}
