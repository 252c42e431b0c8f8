// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that all replicas of an element write. Each replica formats the packets of its worker, and holds the lock only
//! while it writes the formatted bytes of a batch.

use crate::handover;
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use parking_lot::Mutex;

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
pub(super) struct SharedFile<W>(Mutex<State<W>>);

struct State<W> {
    file: File<W>,
    /// Whether opening or writing has failed. If so, the failure has been reported.
    failed: bool,
}

enum File<W> {
    /// Not opened yet, because the router does not run yet.
    Fresh,
    Open(Box<W>),
    /// Closed, or never opened because of an error, or owned by another router now.
    Gone,
}

impl<W> Default for SharedFile<W> {
    fn default() -> Self {
        SharedFile(Mutex::new(State { file: File::Fresh, failed: false }))
    }
}

impl<W: FileWriter> SharedFile<W> {
    /// Whether no replica has tried to open the file yet.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.0.lock().file, File::Fresh)
    }
    /// Opens the file with `create`, unless that was tried before. Returns whether the file is open, and the error, if
    /// there is one to report.
    pub(super) fn open<E>(&self, create: impl FnOnce() -> Result<W, E>) -> (bool, Option<E>) {
        let mut state = self.0.lock();
        if matches!(state.file, File::Fresh) {
            match create() {
                Ok(w) => state.file = File::Open(Box::new(w)),
                Err(e) => {
                    *state = State { file: File::Gone, failed: true };
                    return (false, Some(e));
                }
            }
        }
        (matches!(state.file, File::Open(_)), None)
    }
    /// Writes packets until a write fails. `bytes` holds the packets one after the other, and `ends` the offset of the
    /// end of each. Returns the number of packets written, and the error, if there is one to report.
    pub(super) fn write(&self, bytes: &[u8], ends: &[usize]) -> (usize, Option<CaptureError>) {
        let mut state = self.0.lock();
        let State { file: File::Open(w), failed } = &mut *state else { return (0, None) };
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
    /// Calls `f` with the open file. Returns none if the file is not open.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut W) -> R) -> Option<R> {
        match &mut self.0.lock().file {
            File::Open(w) => Some(f(w)),
            File::Fresh | File::Gone => None,
        }
    }
    /// Closes the file. If the router never ran, removes the file if `made` is true: initialisation created it.
    ///
    /// # Errors
    /// When the rest of the file cannot be written, or an earlier write failed.
    pub(super) fn close(&self, name: &str, made: bool) -> Result<(), ElementError> {
        let mut state = self.0.lock();
        if matches!(state.file, File::Fresh) {
            // A file that existed before may belong to another router.
            if made {
                handover::unmake(name);
            }
            return Ok(());
        }
        let closed = match std::mem::replace(&mut state.file, File::Gone) {
            File::Open(mut w) => w.flush().map_err(ElementError::refused),
            File::Fresh | File::Gone => Ok(()),
        };
        match std::mem::take(&mut state.failed) {
            // A message has already given the reason.
            true => Err(ElementError::Incomplete(format!("{name}: not all packets were written"))),
            false => closed,
        }
    }
    /// Takes over the file of the old router (hot swap). Called for each pair of replicas; the first call does the work.
    pub(super) fn take_over(&self, old: &SharedFile<W>) {
        if std::ptr::eq(self, old) {
            return;
        }
        let mut old = old.0.lock();
        if old.failed || !matches!(old.file, File::Gone) {
            *self.0.lock() = std::mem::replace(&mut *old, State { file: File::Gone, failed: false });
        }
    }
}
