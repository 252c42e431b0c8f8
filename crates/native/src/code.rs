// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine code of a classifier.

use std::any::Any;
use std::fmt;

/// A compiled classifier. The arguments are the address of a packet's first byte, and the number of its bytes. The result is the
/// number of an output, or [`SHORT`].
pub type Entry = unsafe extern "C" fn(*const u8, usize) -> u32;

/// The result of an [`Entry`] for a packet that is too short for it.
pub const SHORT: u32 = u32::MAX;

/// Machine code of a classifier, with the memory that holds it.
pub struct Code {
    entry: Entry,
    /// Freed with the code.
    _memory: Box<dyn Any + Send + Sync>,
}

impl Code {
    /// Takes over compiled code.
    ///
    /// # Safety
    /// As long as `memory` exists, any thread may call `entry` with the address and the number of bytes that can be read. It
    /// reads no other bytes, writes none, and returns.
    pub unsafe fn new(entry: Entry, memory: Box<dyn Any + Send + Sync>) -> Code {
        Code { entry, _memory: memory }
    }

    /// Runs the code on packet data, or on an IP packet. None if the packet is too short for the code.
    #[inline(always)]
    pub fn run(&self, data: &[u8]) -> Option<u32> {
        // SAFETY: `data` can be read, and the memory of the code exists as long as `self`. By the contract of `Code::new`, the
        // code needs no more.
        let output = unsafe { (self.entry)(data.as_ptr(), data.len()) };
        (output != SHORT).then_some(output)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third byte.
    unsafe extern "C" fn third(data: *const u8, len: usize) -> u32 {
        // SAFETY: the caller says that `len` bytes can be read.
        if len < 3 { SHORT } else { unsafe { u32::from(*data.add(2)) } }
    }

    #[test]
    fn packets_that_are_too_short_are_left() {
        // SAFETY: `third` reads none but the bytes that are there.
        let code = unsafe { Code::new(third, Box::new(())) };
        assert_eq!(code.run(&[1, 2, 3, 4]), Some(3));
        assert_eq!(code.run(&[1, 2, 3]), Some(3));
        assert_eq!(code.run(&[1, 2]), None);
        assert_eq!(code.run(&[]), None);
    }
}
