// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine code of a classifier.

use std::any::Any;
use std::fmt;

/// A compiled classifier. The arguments are the address of a packet's first byte, and the distance from there to its
/// transport header. The result is the number of an output.
pub type Entry = unsafe extern "C" fn(*const u8, usize) -> u32;

/// Machine code of a classifier, with the memory that holds it.
pub struct Code {
    entry: Entry,
    front: usize,
    transport: usize,
    /// Freed with the code.
    _memory: Box<dyn Any + Send + Sync>,
}

impl Code {
    /// Takes over compiled code.
    ///
    /// # Safety
    /// As long as `memory` exists, any thread may call `entry` with an address `data` and a distance `header`, if `front`
    /// bytes from `data` on and `transport` bytes from `data + header` on can be read. It reads no other bytes, writes none,
    /// and returns.
    pub unsafe fn new(
        entry: Entry,
        front: usize,
        transport: usize,
        memory: Box<dyn Any + Send + Sync>,
    ) -> Code {
        Code { entry, front, transport, _memory: memory }
    }

    /// Runs the code on a packet. `header` is the offset of the transport header in `data`, and is ignored by programs that
    /// do not read this header. None if the packet is too short for the code.
    #[inline(always)]
    pub fn run(&self, data: &[u8], header: usize) -> Option<u32> {
        let behind = data.len().checked_sub(header)?;
        if data.len() < self.front || behind < self.transport {
            return None;
        }
        // SAFETY: `front` bytes from the first on and `transport` bytes from `header` on lie in `data`, and the memory of the
        // code exists as long as `self`. By the contract of `Code::new`, the code needs no more.
        Some(unsafe { (self.entry)(data.as_ptr(), header) })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("front", &self.front)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of byte 2 and of the second byte of the transport header.
    unsafe extern "C" fn sum(data: *const u8, header: usize) -> u32 {
        // SAFETY: the code below says that it needs three bytes, and two bytes of the transport header.
        unsafe { u32::from(*data.add(2)) + u32::from(*data.add(header + 1)) }
    }

    #[test]
    fn packets_that_are_too_short_are_left() {
        // SAFETY: `sum` reads the bytes that it says.
        let code = unsafe { Code::new(sum, 3, 2, Box::new(())) };
        assert_eq!(code.run(&[1, 2, 3, 4, 5], 3), Some(8));
        assert_eq!(code.run(&[1, 2, 3], 1), Some(6));
        assert_eq!(code.run(&[1, 2, 3, 4], 3), None, "one byte of the transport header is missing");
        assert_eq!(code.run(&[1, 2], 0), None);
        assert_eq!(code.run(&[1, 2, 3], 4), None);
        assert_eq!(code.run(&[1, 2, 3], usize::MAX), None);
    }
}
