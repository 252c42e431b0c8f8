// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value of a map in the memory of this process.
#![allow(unsafe_code)]

use super::{Map, MapKind};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The values of a map of kind [`MapKind::Shared`], as words of 8 bytes, which programs and this process change at the same time.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl Send for SharedWords {}
// SAFETY: this process accesses the memory only by atomic operations.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps the values.
    ///
    /// # Errors
    /// EINVAL if the map is of another kind; the error of mmap(2).
    pub fn of(map: &Map) -> Result<SharedWords, Errno> {
        let shape = map.shape();
        if shape.kind != MapKind::Shared {
            return Err(Errno::INVAL);
        }
        let words = (shape.value as usize / 8).saturating_mul(shape.entries as usize);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: this creates a new shared mapping at an address that the kernel chooses. No memory that the program
        // already uses is touched.
        let p = unsafe {
            libc::mmap(std::ptr::null_mut(), words * 8, access, libc::MAP_SHARED, map.fd().as_raw_fd(), 0)
        };
        if p == libc::MAP_FAILED {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM));
        }
        let start = NonNull::new(p.cast()).ok_or(Errno::NOMEM)?;
        Ok(SharedWords { start, words })
    }
    /// The values, one after the other.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mmap has succeeded for this many words, so the value is at least that long. The mapping begins at a page, so the words
        // are aligned, and stays until self is dropped. The kernel and its programs write whole aligned words, as atomic operations may.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value alone, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}
