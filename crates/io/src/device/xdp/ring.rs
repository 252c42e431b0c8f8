// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rings that an AF_XDP socket shares with the kernel. One side adds entries, the other takes them.
#![allow(unsafe_code)]

use super::sys::{self, Offsets};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A frame, or a piece of one, in the UMEM (struct xdp_desc).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The offset of the frame. The upper 16 bits are added to the lower 48.
    pub address: u64,
    /// The length in bytes.
    pub len: u32,
    /// Flags: [`Descriptor::MORE`].
    pub options: u32,
}

/// The maximum number of buffers of a frame: the kernel's limit for the pieces of a packet.
pub const MOST_PIECES: usize = 17;

impl Descriptor {
    /// Flag: the frame goes on in the next entry of the ring.
    pub const MORE: u32 = 1;
}

/// An entry of a ring: plain bytes, for which any value is valid.
pub trait Entry: Copy {}
impl Entry for Descriptor {}
impl Entry for u64 {}

/// A ring in shared memory.
struct Ring<T> {
    map: NonNull<u8>,
    len: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// The number of entries minus 1; a power of two minus 1.
    mask: u32,
    /// The index that this side advances.
    mine: u32,
    /// The last known index of the kernel's side.
    theirs: u32,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps a ring of `size` entries. `page` selects the ring.
    fn map(fd: BorrowedFd<'_>, page: u64, at: &Offsets, size: u32) -> Result<Ring<T>, Errno> {
        let place = |offset: u64, bytes: usize| {
            let from = usize::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
            from.checked_add(bytes).map(|end| (from, end)).ok_or(Errno::OVERFLOW)
        };
        let entries = place(at.entries, size as usize * size_of::<T>())?;
        let [producer, consumer, flags] = [at.producer, at.consumer, at.flags].map(|o| place(o, 4));
        let (producer, consumer, flags) = (producer?, consumer?, flags?);
        let len = entries.1.max(producer.1).max(consumer.1).max(flags.1);
        let page = libc::off_t::try_from(page).map_err(|_| Errno::OVERFLOW)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: this creates a new shared mapping at an address that the kernel chooses. No memory that the program
        // already uses is touched.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, fd.as_raw_fd(), page) };
        if p == libc::MAP_FAILED {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM));
        }
        let map = NonNull::new(p.cast::<u8>()).ok_or(Errno::NOMEM)?;
        // SAFETY: all four offsets, with the lengths of what is there, are inside the mapping.
        let at = |offset: usize| unsafe { map.add(offset) };
        Ok(Ring {
            map,
            len,
            producer: at(producer.0).cast(),
            consumer: at(consumer.0).cast(),
            flags: at(flags.0).cast(),
            entries: at(entries.0).cast(),
            mask: size.wrapping_sub(1),
            mine: 0,
            theirs: 0,
        })
    }

    /// One of the three shared words.
    #[inline(always)]
    fn word(&self, word: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: the three words are inside of the mapping, which lives as long as self. The kernel aligns them, and
        // also accesses them as words.
        unsafe { word.as_ref() }
    }

    /// A pointer to the entry with this index.
    #[inline(always)]
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the masked index is smaller than the number of entries, all of which are inside of the mapping.
        unsafe { self.entries.add((index & self.mask) as usize) }
    }

    /// Whether the kernel waits for a system call to continue.
    #[inline(always)]
    fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & sys::RING_NEEDS_WAKEUP != 0
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value alone, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.len) };
    }
}

/// A ring to which this program adds entries: buffers to fill, or frames to send.
pub struct Producer<T: Entry>(Ring<T>);

impl<T: Entry> Producer<T> {
    /// Maps the ring. It must have `size` entries, a power of two.
    pub fn map(fd: BorrowedFd<'_>, page: u64, at: &Offsets, size: u32) -> Result<Producer<T>, Errno> {
        Ring::map(fd, page, at, size).map(Producer)
    }
    /// The number of entries that can be added.
    #[inline]
    pub fn room(&mut self) -> u32 {
        // Acquire: the kernel has read the entries that it has taken.
        self.0.theirs = self.0.word(self.0.consumer).load(Ordering::Acquire);
        (self.0.mask + 1).saturating_sub(self.0.mine.wrapping_sub(self.0.theirs))
    }
    /// Adds an entry, which the kernel does not see before [`Producer::publish`]. There must be room, or the oldest
    /// entry is overwritten.
    #[inline(always)]
    pub fn put(&mut self, entry: T) {
        // SAFETY: the entry is inside of the mapping and aligned. The kernel does not write entries of this ring, and
        // reads this one only after `publish`.
        unsafe { self.0.entry(self.0.mine).write(entry) };
        self.0.mine = self.0.mine.wrapping_add(1);
    }
    /// Shows the added entries to the kernel.
    #[inline]
    pub fn publish(&mut self) {
        self.0.word(self.0.producer).store(self.0.mine, Ordering::Release);
    }
    /// The number of published entries that the kernel has not taken yet.
    #[inline]
    pub fn waiting(&mut self) -> u32 {
        self.0.theirs = self.0.word(self.0.consumer).load(Ordering::Acquire);
        self.0.mine.wrapping_sub(self.0.theirs)
    }
    /// Whether the kernel waits for a system call to take the entries.
    pub fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }
}

impl Producer<Descriptor> {
    /// Puts the frame that the kernel has taken last before the entries that it has not taken, so that it takes the frame
    /// once more. The kernel must have taken one since [`Producer::publish`], and take entries only during system calls of
    /// this thread. Calls `each` with the address of each piece.
    pub fn put_back(&mut self, mut each: impl FnMut(u64)) {
        let waiting = self.waiting();
        let end = self.0.mine.wrapping_sub(waiting);
        let mut pieces = [Descriptor::default(); MOST_PIECES];
        let mut n = 0;
        // The last piece has no flag, and those before it have. The kernel has taken these entries, and no later ones have
        // overwritten them, because there was room for all.
        for (back, piece) in (1..).zip(pieces.iter_mut()) {
            // SAFETY: the entry is inside of the mapping and aligned, and any bytes are a valid entry. The kernel does not
            // write entries of this ring.
            let before = unsafe { self.0.entry(end.wrapping_sub(back)).read() };
            if n > 0 && before.options & Descriptor::MORE == 0 {
                break;
            }
            *piece = before;
            n += 1;
        }
        let later: Vec<Descriptor> = (0..waiting)
            // SAFETY: as above.
            .map(|i| unsafe { self.0.entry(end.wrapping_add(i)).read() })
            .collect();
        self.0.mine = end;
        for &piece in pieces.iter().take(n).rev() {
            each(piece.address);
            self.put(piece);
        }
        for entry in later {
            self.put(entry);
        }
        self.publish();
    }
}

/// A ring from which this program takes entries: received frames, or buffers of sent frames.
pub struct Consumer<T: Entry>(Ring<T>);

impl<T: Entry> Consumer<T> {
    /// Maps the ring. It must have `size` entries, a power of two.
    pub fn map(fd: BorrowedFd<'_>, page: u64, at: &Offsets, size: u32) -> Result<Consumer<T>, Errno> {
        Ring::map(fd, page, at, size).map(Consumer)
    }
    /// The number of entries that can be taken.
    #[inline]
    pub fn available(&mut self) -> u32 {
        if self.0.theirs == self.0.mine {
            // Acquire: the kernel has written the entries before their number.
            self.0.theirs = self.0.word(self.0.producer).load(Ordering::Acquire);
        }
        self.0.theirs.wrapping_sub(self.0.mine).min(self.0.mask + 1)
    }
    /// Takes an entry. There must be one, or the result is an old entry.
    #[inline(always)]
    pub fn take(&mut self) -> T {
        // SAFETY: the entry is inside of the mapping and aligned, and any bytes are a valid entry. The kernel does not
        // write an available entry until `release`.
        let entry = unsafe { self.0.entry(self.0.mine).read() };
        self.0.mine = self.0.mine.wrapping_add(1);
        entry
    }
    /// Gives the entries that were taken back to the kernel.
    #[inline]
    pub fn release(&mut self) {
        self.0.word(self.0.consumer).store(self.0.mine, Ordering::Release);
    }
}

impl<T: Entry> std::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Producer({} entries)", self.0.mask + 1)
    }
}

impl<T: Entry> std::fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Consumer({} entries)", self.0.mask + 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_frame_that_is_put_back_comes_before_those_that_wait() {
        let memory = tempfile::tempfile().unwrap();
        memory.set_len(4096).unwrap();
        let at = Offsets { producer: 0, consumer: 64, entries: 192, flags: 128 };
        let mut tx = Producer::<Descriptor>::map(memory.as_fd(), 0, &at, 8).unwrap();
        // The kernel's side of the ring.
        let mut kernel = Consumer::<Descriptor>::map(memory.as_fd(), 0, &at, 8).unwrap();
        let piece = |address, more| Descriptor { address, len: 60, options: u32::from(more) };
        // The ring is full, and begins at each of its places.
        for start in 0..8 {
            for (address, more) in
                [(1, false), (2, true), (3, true), (4, false), (5, false), (6, true), (7, false), (8, false)]
            {
                tx.put(piece(address, more));
            }
            tx.publish();
            assert_eq!(kernel.available(), 8);
            for _ in 0..4 {
                kernel.take();
            }
            kernel.release();
            let mut again = Vec::new();
            tx.put_back(|address| again.push(address));
            assert_eq!((again, tx.waiting(), tx.room()), (vec![2, 3, 4], 7, 1), "{start}");
            // The next round begins three places further.
            let taken: Vec<_> =
                std::iter::from_fn(|| (kernel.available() > 0).then(|| kernel.take())).collect();
            kernel.release();
            let want = [(2, true), (3, true), (4, false), (5, false), (6, true), (7, false), (8, false)];
            assert_eq!(taken, want.map(|(address, more)| piece(address, more)), "{start}");
        }
    }
}
