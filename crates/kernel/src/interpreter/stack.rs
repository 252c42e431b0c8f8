// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stack of a program, which remembers the bytes that were written and the pointers in it.

use super::fault::Reason;
use super::value::Value;

/// Size of the stack in bytes.
const SIZE: usize = 512;

/// The stack. Offsets are relative to register 10, from -512 to -1.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    bytes: [u8; SIZE],
    written: [bool; SIZE],
    /// Pointers that were stored as aligned words. INVARIANT: their bytes count as not written.
    pointers: [Option<Value>; SIZE / 8],
}

impl Stack {
    pub(super) fn new() -> Stack {
        Stack { bytes: [0; SIZE], written: [false; SIZE], pointers: [None; SIZE / 8] }
    }

    /// Copies bytes out of the stack.
    pub(super) fn read(&self, offset: i64, out: &mut [u8]) -> Result<(), Reason> {
        let first = position(offset, out.len())?;
        for (index, byte) in out.iter_mut().enumerate() {
            let at = first + index;
            if self.pointers.get(at / 8).is_some_and(Option::is_some) {
                return Err(Reason::PartOfPointer);
            }
            match (self.bytes.get(at), self.written.get(at)) {
                (Some(value), Some(true)) => *byte = *value,
                _ => return Err(Reason::UnwrittenStack(offset + index as i64)),
            }
        }
        Ok(())
    }

    /// Copies bytes into the stack. A pointer of which a part is overwritten is lost.
    pub(super) fn write(&mut self, offset: i64, data: &[u8]) -> Result<(), Reason> {
        let first = position(offset, data.len())?;
        for (at, &byte) in (first..).zip(data) {
            if let Some(pointer) = self.pointers.get_mut(at / 8) {
                *pointer = None;
            }
            if let (Some(place), Some(written)) = (self.bytes.get_mut(at), self.written.get_mut(at)) {
                (*place, *written) = (byte, true);
            }
        }
        Ok(())
    }

    /// The pointer in the word at this offset.
    pub(super) fn pointer(&self, offset: i64) -> Result<Option<Value>, Reason> {
        let first = position(offset, 8)?;
        Ok(self.pointers.get(first / 8).copied().flatten().filter(|_| first % 8 == 0))
    }

    /// Stores a pointer in the word at this offset.
    pub(super) fn set_pointer(&mut self, offset: i64, value: Value) -> Result<(), Reason> {
        let first = position(offset, 8)?;
        if first % 8 != 0 {
            return Err(Reason::PointerStored);
        }
        if let Some(pointer) = self.pointers.get_mut(first / 8) {
            *pointer = Some(value);
        }
        if let Some(written) = self.written.get_mut(first..first + 8) {
            written.fill(false);
        }
        Ok(())
    }
}

/// The index of the byte at `offset`, if `size` bytes from there are in the stack.
fn position(offset: i64, size: usize) -> Result<usize, Reason> {
    let first = offset + SIZE as i64;
    if first >= 0 && first as usize <= SIZE && size <= SIZE - first as usize {
        Ok(first as usize)
    } else {
        Err(Reason::OutsideStack { offset, size })
    }
}
