// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifiers tell sleeping tasks that an element has packets, or free space for packets. The element turns its notifier
//! on, and this wakes the tasks.
//!
//! The element turns its notifier off when no packets, or no free space, are left. Another worker may have added
//! packets or freed space in the meantime, so the element checks once more afterwards. If it finds packets or free
//! space, it turns the notifier on again.

use castanet_tables::Flag;
use std::sync::{Arc, OnceLock};

/// The number of a notifier in its router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(pub(crate) u32);

impl Note {
    /// The notifier with this number.
    pub fn new(number: u32) -> Note {
        Note(number)
    }
}

/// The free space of a queue that several workers share, for the sources that fill the queue.
pub trait Room: Send + Sync {
    /// Returns how many of `want` packets fit into the queue now. They still fit later, unless another source fills the
    /// queue.
    fn room(&self, want: usize) -> usize;
    /// Whether the queue is full. For a short time, this may be false although [`Room::room`] returns 0.
    fn is_full(&self) -> bool;
}

/// One notifier: whether it is on, and which tasks to wake when it is turned on.
#[derive(Default)]
struct State {
    on: Flag,
    /// The queue whose free space the notifier reports, if several workers use the queue.
    room: OnceLock<Arc<dyn Room>>,
    /// The worker and the element of each task to wake.
    listeners: OnceLock<Vec<(u32, u32)>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("on", &self.on).field("listeners", &self.listeners).finish()
    }
}

/// All notifiers of a router, shared by its workers.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<[State]>);

impl Notes {
    /// `n` notifiers, all off.
    pub fn new(n: usize) -> Notes {
        Notes((0..n).map(|_| State::default()).collect())
    }
    /// Sets the tasks that a notifier wakes, as pairs of worker and element. Must be called once per notifier.
    pub fn listen(&self, note: usize, listeners: Vec<(u32, u32)>) {
        if let Some(s) = self.0.get(note) {
            // A second call would be a bug in the caller. The first list stays.
            let _ = s.listeners.set(listeners);
        }
    }
    /// Sets the queue whose free space a notifier reports. Only the first call for a notifier has an effect. A queue of
    /// a single worker needs no call, because its notifier is on exactly when the queue has free space.
    pub fn measure(&self, note: Note, queue: Arc<dyn Room>) {
        if let Some(s) = self.0.get(note.0 as usize) {
            // Each replica of a queue element sets the same shared queue, so calls after the first are ignored.
            let _ = s.room.set(queue);
        }
    }
    /// Returns how many of `want` packets a source may send to the queue of a notifier. While the notifier is off, the
    /// number is 0, except in the middle of a burst (`begun`). Otherwise the number is `want`, limited to the free
    /// space if several workers share the queue.
    #[inline]
    pub fn room(&self, note: usize, want: usize, begun: bool) -> usize {
        match self.0.get(note) {
            Some(s) if begun || s.on.is_up() => s.room.get().map_or(want, |queue| queue.room(want)),
            _ => 0,
        }
    }
    /// Whether the queue of a notifier is full. Always false for a queue of a single worker.
    pub fn is_full(&self, note: Note) -> bool {
        self.0.get(note.0 as usize).and_then(|s| s.room.get()).is_some_and(|queue| queue.is_full())
    }
    /// Whether a notifier is on.
    #[inline]
    pub fn is_on(&self, note: usize) -> bool {
        self.0.get(note).is_some_and(|s| s.on.is_up())
    }
    /// Whether [`Notes::set`] would change nothing: the notifier is on already, or does not exist.
    #[inline]
    pub(crate) fn seems_on(&self, note: Note) -> bool {
        self.0.get(note.0 as usize).is_none_or(|s| s.on.is_up())
    }
    /// Turns a notifier on. If it was off, calls `wake` with the worker and the element of each listening task.
    #[inline]
    pub fn set(&self, note: Note, mut wake: impl FnMut(u32, u32)) {
        let Some(s) = self.0.get(note.0 as usize) else { return };
        if !s.on.raise() {
            return;
        }
        for &(w, e) in s.listeners.get().into_iter().flatten() {
            wake(w, e);
        }
    }
    /// Turns a notifier off. Another worker may have added packets or freed space in the meantime. So the caller must
    /// check once more afterwards, and call [`Notes::set`] if there are packets or free space.
    #[inline]
    pub fn clear(&self, note: Note) {
        if let Some(s) = self.0.get(note.0 as usize) {
            s.on.lower();
        }
    }
}

/// The condition that a sleeping task waits for: the logical OR of some notifiers. The signal is always on if a path
/// leads to an element without a notifier.
#[derive(Clone, Debug)]
pub struct Signal {
    /// The notifier that is tested first. `NONE` if the signal has no notifier.
    first: u32,
    rest: Vec<u32>,
    always: bool,
}

/// Stands for "no notifier" in [`Signal`].
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
    /// The OR of the notifiers with these numbers. If `always` is true, the signal is never off.
    pub fn new(notes: Vec<u32>, always: bool) -> Signal {
        match notes.split_first() {
            Some((&first, rest)) => Signal { first, rest: rest.to_vec(), always },
            None => Signal { first: NONE, rest: notes, always },
        }
    }
    /// Whether the signal is on.
    #[inline]
    pub fn is_on(&self, notes: &Notes) -> bool {
        self.always || notes.is_on(self.first as usize) || self.is_on_besides(notes)
    }
    /// Returns how many of `want` packets a source that sleeps on this signal may send: as many as fit into the queue
    /// with the most free space. `begun` means that the source is in the middle of a burst.
    #[inline]
    pub fn room(&self, notes: &Notes, want: usize, begun: bool) -> usize {
        if self.always {
            return want;
        }
        match notes.room(self.first as usize, want, begun) {
            room if room >= want || self.rest.is_empty() => room,
            room => self.room_besides(notes, room, want, begun),
        }
    }
    /// The notifiers of the signal.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        std::iter::once(self.first).filter(|n| *n != NONE).chain(self.rest.iter().copied()).map(Note)
    }
    #[cold]
    #[inline(never)]
    fn room_besides(&self, notes: &Notes, room: usize, want: usize, begun: bool) -> usize {
        self.rest.iter().fold(room, |room, &n| room.max(notes.room(n as usize, want, begun)))
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A queue with `free` slots. A puller is about to free `soon` more.
    struct Queue {
        free: AtomicUsize,
        soon: AtomicUsize,
    }

    impl Room for Queue {
        fn room(&self, want: usize) -> usize {
            self.free.load(Ordering::SeqCst).min(want)
        }
        fn is_full(&self) -> bool {
            self.free.load(Ordering::SeqCst) + self.soon.load(Ordering::SeqCst) == 0
        }
    }

    #[test]
    fn room_is_what_the_queue_has() {
        let notes = Notes::new(3);
        let queue = Arc::new(Queue { free: AtomicUsize::new(5), soon: AtomicUsize::new(0) });
        notes.measure(Note(1), queue.clone());
        let (one, both) = (Signal::new(vec![1], false), Signal::new(vec![1, 2], false));
        assert_eq!(
            (one.room(&notes, 8, false), Signal::always().room(&notes, 8, false)),
            (0, 8),
            "the note is off"
        );
        assert_eq!(
            (one.room(&notes, 8, true), both.room(&notes, 8, true)),
            (5, 8),
            "a burst goes on where it may"
        );
        notes.set(Note(1), |_, _| ());
        assert_eq!(
            (one.room(&notes, 8, false), one.room(&notes, 3, false), both.room(&notes, 8, false)),
            (5, 3, 5)
        );
        // The notifier of a queue of one worker reports only that there is free space, not how much.
        notes.set(Note(2), |_, _| ());
        assert_eq!(both.room(&notes, 8, false), 8);
        notes.clear(Note(2));
        // For a moment, a queue may take no packet and yet not be full, because a puller is about to free
        // some space.
        queue.free.store(0, Ordering::SeqCst);
        queue.soon.store(1, Ordering::SeqCst);
        assert_eq!((one.room(&notes, 8, false), one.is_on(&notes), notes.is_full(Note(1))), (0, true, false));
        queue.soon.store(0, Ordering::SeqCst);
        assert_eq!(
            (both.room(&notes, 8, false), notes.is_full(Note(1)), notes.is_full(Note(2))),
            (0, true, false)
        );
        assert_eq!(both.notes().collect::<Vec<_>>(), [Note(1), Note(2)]);
        assert_eq!((Signal::always().notes().count(), Signal::default().notes().count()), (0, 0));
        assert_eq!((Notes::new(0).room(0, 1, true), Signal::default().room(&notes, 1, false)), (0, 0));
    }

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
