// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine code of a path: the elements that packets pass one after the other.

use castanet_packet::{Batch, Packet};
use std::any::Any;
use std::fmt;

/// A compiled path. The arguments are the address of an array of packets, the number of packets, the address of an array with room
/// for one end for each packet, and the address of the counters. Only for machines of 64 bits, lowest byte first.
pub type PathEntry = unsafe extern "C" fn(*mut Packet, usize, *mut u16, *mut u64);

/// Machine code of a path, with the memory that holds it.
pub struct Path {
    entry: PathEntry,
    /// The number of counters.
    counters: usize,
    /// Freed with the code.
    _memory: Box<dyn Any + Send + Sync>,
}

impl Path {
    /// Takes over compiled code.
    ///
    /// # Safety
    /// As long as `memory` exists, any thread may call `entry` with the addresses of packets that nobody else uses meanwhile, of as
    /// many ends, and of `counters` counters. It changes the packets only as a handle may that owns them, writes an end for each,
    /// adds to counters, accesses no other memory, and returns.
    pub unsafe fn new(entry: PathEntry, counters: usize, memory: Box<dyn Any + Send + Sync>) -> Path {
        Path { entry, counters, _memory: memory }
    }

    /// Moves packets along the path. For each of the first [`Batch::MAX`] packets, `ends` gets the number of the end by which it leaves
    /// the path. Returns the number of these packets; 0, without any change, if there are fewer counters than the path has.
    #[inline]
    pub fn run(&self, packets: &mut [Packet], ends: &mut [u16; Batch::MAX], counters: &mut [u64]) -> usize {
        let n = packets.len().min(ends.len());
        if counters.len() < self.counters {
            return 0;
        }
        // SAFETY: the slices have room for `n` packets and ends, and for the counters. Nobody else has access to them or to the
        // packets, and the memory of the code exists as long as `self`. By the contract of `Path::new`, the code needs no more.
        unsafe { (self.entry)(packets.as_mut_ptr(), n, ends.as_mut_ptr(), counters.as_mut_ptr()) }
        n
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Removes a byte from each packet, and counts it.
    unsafe extern "C" fn strip(packets: *mut Packet, n: usize, ends: *mut u16, counters: *mut u64) {
        for i in 0..n {
            // SAFETY: the caller says that there are `n` packets and ends, and a counter.
            unsafe {
                *ends.add(i) = u16::from((*packets.add(i)).strip(1));
                *counters += 1;
            }
        }
    }

    #[test]
    fn all_packets_get_an_end() {
        // SAFETY: `strip` accesses only what it may.
        let path = unsafe { Path::new(strip, 1, Box::new(())) };
        let mut batch: Batch = [&b"ab"[..], b""].iter().filter_map(|d| Packet::copy_of(d)).collect();
        let (mut ends, mut counters) = ([7; Batch::MAX], [40]);
        assert_eq!(path.run(batch.as_mut_slice(), &mut ends, &mut []), 0);
        assert_eq!((batch.as_slice()[0].len(), ends[0]), (2, 7));
        assert_eq!(path.run(batch.as_mut_slice(), &mut ends, &mut counters), 2);
        assert_eq!((batch.as_slice()[0].data(), &ends[..3], counters), (&b"b"[..], &[1, 0, 7][..], [42]));
    }
}
