// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that all replicas of an element write. If there are several, each collects formatted packets in a buffer of its
//! own, and the buffers are merged in the order of the packets' times.

use super::merge::{HOLD, Merge, Records};
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A worker's buffer is merged with the others when it has this many bytes.
const BUFFER: usize = 1 << 16;

/// Writes formatted packets to an open file.
pub(super) trait FileWriter: Send {
    /// Writes the bytes of one packet. Returns false, and writes nothing, after an error. Only the call in which an error
    /// occurs returns it.
    fn write(&mut self, bytes: &[u8]) -> Result<bool, CaptureError>;
    /// Writes what is still in memory.
    fn flush(&mut self) -> Result<(), CaptureError>;
}

/// Reports that opening or writing a file failed.
#[cold]
pub(super) fn report(error: &dyn std::error::Error, cx: &mut Cx<'_>) {
    cx.message(&format!("{}: {error}", cx.declaration()));
}

/// A file that all replicas of an element write.
///
/// Locks are taken in this order: the state, then buffers.
pub(super) struct SharedFile<W> {
    state: CachePadded<Mutex<State<W>>>,
    /// The buffers of the workers; none if packets are written immediately.
    buffers: Vec<CachePadded<Mutex<Records>>>,
    /// Whether packets are accepted: the file is open, and no write has failed.
    accepts: AtomicBool,
}

struct State<W> {
    file: File<W>,
    /// Whether opening or writing has failed. A message has said so.
    failed: bool,
    /// The packets that were taken from the buffers, but not written yet.
    merge: Merge,
}

enum File<W> {
    /// Not opened yet, because the router does not run yet.
    Fresh,
    Open(Box<W>),
    /// Closed, or never opened because of an error, or owned by another router now.
    Gone,
}

impl<W: FileWriter> State<W> {
    /// Writes packets in the order of their times. Without `now`, writes all of them. With `now`, writes only those
    /// that no other packet can precede.
    fn write_merged(&mut self, now: Option<i64>) -> Result<(), CaptureError> {
        let State { file: File::Open(w), failed, merge } = self else {
            self.merge.clear();
            return Ok(());
        };
        merge.write(now, |record| w.write(record).map(|_| ())).inspect_err(|_| {
            *failed = true;
            merge.clear();
        })
    }
}

impl<W: FileWriter> SharedFile<W> {
    /// Creates the state of a file that is not open yet. The packets of several workers are merged, unless they are to
    /// be written immediately.
    pub(super) fn new(workers: usize, at_once: bool) -> SharedFile<W> {
        let buffers = if workers > 1 && !at_once { workers } else { 0 };
        SharedFile {
            state: CachePadded::new(Mutex::new(State {
                file: File::Fresh,
                failed: false,
                merge: Merge::default(),
            })),
            buffers: (0..buffers).map(|_| CachePadded::default()).collect(),
            accepts: AtomicBool::new(false),
        }
    }
    /// Whether nobody has tried to open the file yet.
    fn is_fresh(&self) -> bool {
        matches!(self.state.lock().file, File::Fresh)
    }
    /// Calls `f` with the state, after the packets in the buffers have been moved there.
    fn with_state<R>(&self, f: impl FnOnce(&mut State<W>) -> R) -> R {
        let mut state = self.state.lock();
        for (worker, buffer) in self.buffers.iter().enumerate() {
            state.merge.take(worker, &mut buffer.lock());
        }
        let result = f(&mut state);
        let accepts = matches!(state.file, File::Open(_)) && !state.failed;
        // All workers read the flag for each batch, so it is written only if it changes.
        if self.accepts.load(Ordering::Relaxed) != accepts {
            self.accepts.store(accepts, Ordering::Relaxed);
        }
        result
    }
    /// Opens the file with `create`, unless that was tried before. Returns whether the file is open, and the error, if
    /// there is one to report.
    fn open<E>(&self, create: impl FnOnce() -> Result<W, E>) -> (bool, Option<E>) {
        self.with_state(|state| {
            if matches!(state.file, File::Fresh) {
                match create() {
                    Ok(w) => state.file = File::Open(Box::new(w)),
                    Err(e) => {
                        (state.file, state.failed) = (File::Gone, true);
                        return (false, Some(e));
                    }
                }
            }
            (matches!(state.file, File::Open(_)), None)
        })
    }
    /// Writes packets immediately. See [`Replica::write`].
    fn write_at_once(&self, bytes: &[u8], ends: &[usize]) -> (usize, Option<CaptureError>) {
        let mut state = self.state.lock();
        let State { file: File::Open(w), failed, .. } = &mut *state else { return (0, None) };
        let mut start = 0;
        for (i, &end) in ends.iter().enumerate() {
            match w.write(bytes.get(start..end).unwrap_or_default()) {
                Ok(true) => {}
                Ok(false) => return (i, None),
                Err(e) => {
                    *failed = true;
                    return (i, Some(e));
                }
            }
            start = end;
        }
        (ends.len(), None)
    }
}

/// The part of a [`SharedFile`] that one worker uses.
pub(super) struct Replica<W> {
    shared: Arc<SharedFile<W>>,
    worker: usize,
    /// Whether the timer is set that merges the packets in the buffer.
    timed: bool,
}

impl<W: FileWriter> Replica<W> {
    /// The number of the element's timer for [`Self::timer`].
    pub(super) const TIMER: u16 = 1;

    /// Adds a worker to a file.
    pub(super) fn new(shared: Arc<SharedFile<W>>, worker: usize) -> Replica<W> {
        Replica { shared, worker, timed: false }
    }
    /// Whether nobody has tried to open the file yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.shared.is_fresh()
    }
    /// Opens the file with `create`, unless that was tried before. Returns whether the file is open, and the error, if
    /// there is one to report.
    pub(super) fn open<E>(&self, create: impl FnOnce() -> Result<W, E>) -> (bool, Option<E>) {
        if self.accepts() { (true, None) } else { self.shared.open(create) }
    }
    /// Whether the file is open, and no write has failed.
    pub(super) fn accepts(&self) -> bool {
        self.shared.accepts.load(Ordering::Relaxed)
    }

    /// Writes packets until a write fails. `bytes` holds the packets one after the other, `ends` the offset at which
    /// each of them ends, and `times` their times. Returns the number of packets that were written or accepted for
    /// writing. Reports the first error.
    pub(super) fn write(&mut self, bytes: &[u8], ends: &[usize], times: &[i64], cx: &mut Cx<'_>) -> usize {
        let Some(buffer) = self.shared.buffers.get(self.worker) else {
            let (written, error) = self.shared.write_at_once(bytes, ends);
            if let Some(e) = error {
                self.shared.accepts.store(false, Ordering::Relaxed);
                report(&e, cx);
            }
            return written;
        };
        if !self.accepts() {
            return 0;
        }
        let now = cx.recent();
        let full = {
            let mut records = buffer.lock();
            records.append(bytes, ends, times, now);
            records.size() >= BUFFER
        };
        if full {
            self.merge(Some(now), cx);
        }
        if !self.timed {
            self.timed = true;
            cx.set_timer(Self::TIMER, now.saturating_add(HOLD));
        }
        ends.len()
    }
    /// Writes the packets that have waited for others to precede them. Called when the timer expires.
    pub(super) fn timer(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.merge(Some(now), cx);
        self.timed = !self.shared.state.lock().merge.is_done(self.worker);
        if self.timed {
            cx.set_timer(Self::TIMER, now.saturating_add(HOLD));
        }
    }
    /// Merges the packets of all workers, and writes them. With `now`, writes only those that no other packet can
    /// precede.
    fn merge(&self, now: Option<i64>, cx: &mut Cx<'_>) {
        if let Err(e) = self.shared.with_state(|state| state.write_merged(now)) {
            report(&e, cx);
        }
    }

    /// Calls `f` with the open file, after all packets have been written. Returns none if the file is not open.
    pub(super) fn with<R>(&self, cx: &mut Cx<'_>, f: impl FnOnce(&mut W) -> R) -> Option<R> {
        self.merge(None, cx);
        match &mut self.shared.state.lock().file {
            File::Open(w) => Some(f(w)),
            File::Fresh | File::Gone => None,
        }
    }
    /// Calls `f` with the open file and the number of packets that were accepted, but not written yet. Returns none if the
    /// file is not open.
    pub(super) fn peek<R>(&self, f: impl FnOnce(&W, usize) -> R) -> Option<R> {
        self.shared.with_state(|state| match &state.file {
            File::Open(w) => Some(f(w, state.merge.len())),
            File::Fresh | File::Gone => None,
        })
    }
    /// Closes the file. If the router never ran, removes the file if `made` says that initialisation created it.
    ///
    /// # Errors
    /// When the rest of the file cannot be written, or something could not be written before.
    pub(super) fn close(&self, name: &str, made: bool, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.is_fresh() {
            // A file that existed before may belong to another router.
            if made {
                handover::unmake(name);
            }
            return Ok(());
        }
        self.merge(None, cx);
        let (file, failed) = self.shared.with_state(|state| {
            (std::mem::replace(&mut state.file, File::Gone), std::mem::take(&mut state.failed))
        });
        let closed = match file {
            File::Open(mut w) => w.flush().map_err(ElementError::refused),
            File::Fresh | File::Gone => Ok(()),
        };
        match failed {
            // A message has already given the reason.
            true => Err(ElementError::Incomplete(format!("{name}: not all packets were written"))),
            false => closed,
        }
    }
    /// Takes over the file of the old router (hot swap). Called for each pair of replicas; the first call does the work.
    pub(super) fn take_over(&self, old: &Replica<W>, cx: &mut Cx<'_>) {
        if Arc::ptr_eq(&self.shared, &old.shared) {
            return;
        }
        old.merge(None, cx);
        let taken = old.shared.with_state(|old| {
            let some = old.failed || !matches!(old.file, File::Gone);
            some.then(|| (std::mem::replace(&mut old.file, File::Gone), std::mem::take(&mut old.failed)))
        });
        if let Some((file, failed)) = taken {
            self.shared.with_state(|state| (state.file, state.failed) = (file, failed));
        }
    }
}
