// SPDX-License-Identifier: MIT OR Apache-2.0
//! Open files and directories: their contents at opening, and the data written since.

use fuser::{Errno, FileType};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest value that may be written, in bytes.
pub(crate) const LONGEST_WRITE: usize = 16 << 20;
/// The memory limit for all open files and directories together, in bytes.
pub(crate) const MOST_HELD: usize = 256 << 20;
/// The bytes charged for an open file in addition to its contents.
const OVERHEAD: usize = 256;

/// Memory charged for open files. Dropping it returns the charge.
struct Held {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Held {
    fn more(&mut self, bytes: usize) -> Result<(), Errno> {
        let fits = |all: usize| all.checked_add(bytes).filter(|&all| all <= MOST_HELD);
        self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| Errno::ENOMEM)?;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Data that was written but not yet passed to the handler.
#[derive(Default)]
struct Collected {
    text: Vec<u8>,
    /// The file offset of the first byte of `text`.
    base: u64,
    /// Whether a call of the handler is pending, possibly with an empty text.
    pending: bool,
    /// Whether the file was ever written to, even if no write could be accepted.
    used: bool,
    /// The error of a write that could not be accepted; `None` if there was none. After the error, the whole text is
    /// discarded. Further writes fail until [`Pending::take`] returns the error.
    spoilt: Option<Errno>,
    held: Option<Held>,
}

/// An open file.
pub(crate) struct File {
    pub(crate) inode: u64,
    pub(crate) mode: u16,
    /// The number of swaps of the router when the file was opened.
    pub(crate) generation: u64,
    /// The element; `None` for a global handler.
    pub(crate) element: Option<String>,
    pub(crate) handler: String,
    pub(crate) raw: bool,
    /// The contents of the file when it was opened. `None` if the file was not opened for reading.
    pub(crate) contents: Option<Vec<u8>>,
    /// Whether writes are appended, whatever their offset.
    pub(crate) append: bool,
    /// Whether the file was truncated when it was opened for writing.
    pub(crate) emptied: bool,
}

/// A directory entry: inode number, type, name.
pub(crate) type Entry = (u64, FileType, String);

/// An open file or directory.
pub(crate) enum Open {
    /// A file, and the data written to it.
    File(File, Pending),
    /// A directory, as it was when opened.
    Folder(Vec<Entry>),
}

/// The data written to one open file.
pub(crate) struct Pending {
    all: Arc<AtomicUsize>,
    collected: Mutex<Collected>,
}

impl Pending {
    fn lock(&self) -> parking_lot::MutexGuard<'_, Collected> {
        self.collected.lock()
    }

    /// Collects data written at an offset.
    pub(crate) fn write(&self, offset: u64, data: &[u8], append: bool) -> Result<(), Errno> {
        let mut c = self.lock();
        if let Some(e) = c.spoilt {
            return Err(e);
        }
        let put = Self::put(&self.all, &mut c, offset, data, append);
        if let Err(e) = put {
            // Discard all of the data, because a handler must never receive part of a value.
            *c = Collected { used: true, spoilt: Some(e), ..Collected::default() };
        }
        put
    }

    fn put(
        all: &Arc<AtomicUsize>,
        c: &mut Collected,
        offset: u64,
        data: &[u8],
        append: bool,
    ) -> Result<(), Errno> {
        if !c.pending {
            // A program that writes several values does not go back to offset 0 for each value: a value begins where
            // the previous one ended. So the offsets in a value count from the offset of its first write.
            c.base = offset;
        }
        let at = match offset.checked_sub(c.base).and_then(|at| usize::try_from(at).ok()) {
            _ if append => c.text.len(),
            Some(at) if at <= c.text.len() => at,
            // A gap between two writes would have to be filled with zeros, which no handler expects.
            _ => return Err(Errno::EINVAL),
        };
        let end = at.checked_add(data.len()).filter(|&end| end <= LONGEST_WRITE).ok_or(Errno::EFBIG)?;
        let growth = end.saturating_sub(c.text.len());
        c.held.get_or_insert_with(|| Held { bytes: 0, all: all.clone() }).more(growth)?;
        (c.pending, c.used) = (true, true);
        let (old, new) = data.split_at_checked(data.len() - growth).unwrap_or((data, &[]));
        if let Some(place) = c.text.get_mut(at..at + old.len()) {
            place.copy_from_slice(old);
        }
        c.text.extend_from_slice(new);
        Ok(())
    }

    /// Takes the collected data for the handler; `None` if nothing was written.
    pub(crate) fn take(&self) -> Result<Option<Vec<u8>>, Errno> {
        let mut c = self.lock();
        if let Some(e) = c.spoilt.take() {
            return Err(e);
        }
        if !c.pending {
            return Ok(None);
        }
        let all = std::mem::take(&mut *c);
        c.used = true;
        Ok(Some(all.text))
    }

    /// Discards the collected data, because the file was truncated.
    pub(crate) fn clear(&self) {
        let mut c = self.lock();
        let used = c.used;
        *c = Collected { used, ..Collected::default() };
    }

    /// Whether the file was never written to.
    pub(crate) fn unused(&self) -> bool {
        !self.lock().used
    }
}

/// All open files and directories, by handle.
#[derive(Default)]
pub(crate) struct OpenFiles {
    table: Mutex<Table>,
    all: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Table {
    last: u64,
    open: HashMap<u64, (Arc<Open>, Held)>,
}

impl OpenFiles {
    fn lock(&self) -> parking_lot::MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn insert(&self, open: Open, bytes: usize) -> Result<u64, Errno> {
        let mut held = Held { bytes: 0, all: self.all.clone() };
        held.more(bytes.saturating_add(OVERHEAD))?;
        let mut t = self.lock();
        t.last = t.last.wrapping_add(1);
        let handle = t.last;
        t.open.insert(handle, (Arc::new(open), held));
        Ok(handle)
    }

    /// Creates a handle for a file.
    pub(crate) fn file(&self, file: File) -> Result<u64, Errno> {
        let bytes = file.contents.as_ref().map_or(0, Vec::len);
        let pending = Pending { all: self.all.clone(), collected: Mutex::default() };
        self.insert(Open::File(file, pending), bytes)
    }

    /// Creates a handle for a directory.
    pub(crate) fn folder(&self, entries: Vec<Entry>) -> Result<u64, Errno> {
        let bytes = entries.iter().map(|e| size_of::<Entry>() + e.2.len()).sum();
        self.insert(Open::Folder(entries), bytes)
    }

    /// The file or directory of a handle.
    pub(crate) fn get(&self, handle: u64) -> Result<Arc<Open>, Errno> {
        self.lock().open.get(&handle).map(|o| o.0.clone()).ok_or(Errno::EBADF)
    }

    /// Closes a handle.
    pub(crate) fn close(&self, handle: u64) -> Option<Arc<Open>> {
        self.lock().open.remove(&handle).map(|o| o.0)
    }

    /// The permissions of an open file with this inode number; `None` if no such file is open.
    pub(crate) fn mode(&self, inode: u64) -> Option<u16> {
        self.lock().open.values().find_map(|o| match &*o.0 {
            Open::File(f, _) if f.inode == inode => Some(f.mode),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn pending(files: &OpenFiles) -> Pending {
        Pending { all: files.all.clone(), collected: Mutex::default() }
    }

    #[test]
    fn writes_are_one_text() {
        let files = OpenFiles::default();
        let p = pending(&files);
        assert!(p.unused() && p.take().unwrap().is_none());
        // The offsets start at 5, as if a program appended to a file that it believes to be 5 bytes long.
        p.write(5, b"hello ", false).unwrap();
        p.write(11, b"world", false).unwrap();
        p.write(5, b"J", false).unwrap();
        assert_eq!(p.take().unwrap().unwrap(), b"Jello world");
        assert_eq!(files.all.load(Ordering::Relaxed), 0);
        assert!(p.take().unwrap().is_none() && !p.unused());
        p.write(16, b"more", false).unwrap();
        p.write(0, b"!", true).unwrap();
        assert_eq!(p.take().unwrap().unwrap(), b"more!");
        p.write(0, b"gone", false).unwrap();
        p.clear();
        assert!(p.take().unwrap().is_none());
        p.write(3, b"", false).unwrap();
        assert_eq!(p.take().unwrap().unwrap(), b"", "an empty write is a write");
    }

    #[test]
    fn no_handler_gets_part_of_a_value() {
        let files = OpenFiles::default();
        for (offset, data, errno) in
            [(4, &b"gap"[..], Errno::EINVAL), (0, &vec![0; LONGEST_WRITE + 1], Errno::EFBIG)]
        {
            let p = pending(&files);
            p.write(0, b"abc", false).unwrap();
            assert_eq!(p.write(offset, data, false), Err(errno));
            assert_eq!(p.write(3, b"d", false), Err(errno), "what follows is void too");
            assert_eq!(p.take().map(drop), Err(errno));
            assert!(p.take().unwrap().is_none() && !p.unused(), "nothing is left to be written");
        }
        assert_eq!(files.all.load(Ordering::Relaxed), 0);
        let p = pending(&files);
        p.write(u64::MAX, b"ab", false).unwrap();
        assert_eq!(p.write(0, b"c", false), Err(Errno::EINVAL), "before the first byte");
    }

    #[test]
    fn memory_of_open_files_is_bounded() {
        let files = OpenFiles::default();
        let full = vec![b'x'; LONGEST_WRITE];
        let all: Vec<_> = (0..MOST_HELD / LONGEST_WRITE).map(|_| pending(&files)).collect();
        for p in &all {
            p.write(0, &full, false).unwrap();
        }
        assert_eq!(pending(&files).write(0, b"x", false), Err(Errno::ENOMEM));
        assert_eq!(files.folder(Vec::new()).map(drop), Err(Errno::ENOMEM));
        drop(all);
        let handle = files.folder(vec![(1, FileType::Directory, "name".into())]).unwrap();
        assert!(files.all.load(Ordering::Relaxed) > OVERHEAD);
        assert!(matches!(*files.get(handle).unwrap(), Open::Folder(ref e) if e.len() == 1));
        assert!(files.close(handle).is_some());
        assert_eq!(files.get(handle).map(drop), Err(Errno::EBADF));
        assert_eq!(files.all.load(Ordering::Relaxed), 0);
    }

    proptest! {
        /// Compares the collected data with a plain vector that is written at the same offsets.
        #[test]
        fn writes_land_where_they_say(
            base in 0u64..1000, writes in proptest::collection::vec((0usize..40, "[a-z]{0,9}"), 1..9),
        ) {
            let files = OpenFiles::default();
            let p = pending(&files);
            let mut model: Option<Vec<u8>> = Some(Vec::new());
            for (i, (at, data)) in writes.iter().enumerate() {
                let at = if i == 0 { 0 } else { *at };
                let written = p.write(base + at as u64, data.as_bytes(), false);
                model = model.filter(|m| at <= m.len()).map(|mut m| {
                    let tail = m.get(at + data.len()..).unwrap_or_default().to_vec();
                    m.truncate(at);
                    m.extend_from_slice(data.as_bytes());
                    m.extend(tail);
                    m
                });
                prop_assert_eq!(written.is_ok(), model.is_some());
            }
            prop_assert_eq!(p.take().ok().flatten(), model);
            prop_assert_eq!(files.all.load(Ordering::Relaxed), 0);
        }
    }
}
