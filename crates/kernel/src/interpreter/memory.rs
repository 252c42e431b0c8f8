// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to memory: the context, the stack, the frame and the values of maps.

use super::execution::{Execution, require};
use super::fault::Reason;
use super::value::Value;
use crate::Instruction;
use crate::instruction::code;

/// The part of an operation code that names the size.
const SIZE: u8 = 0x18;

impl Execution<'_> {
    /// Executes a load, a store or an atomic addition (RFC 9669 section 5).
    pub(super) fn access(&mut self, i: Instruction) -> Result<(), Reason> {
        let size = match i.code & SIZE {
            code::B => 1,
            code::H => 2,
            code::W => 4,
            _ => 8,
        };
        match i.code & !SIZE {
            code::LOAD => self.load(i, size, false),
            code::LOAD_SIGNED if size < 8 => self.load(i, size, true),
            code::STORE => {
                require(i.immediate == 0)?;
                self.store(i, size, self.register(i.from())?)
            }
            code::STORE_CONSTANT => {
                require(i.from() == 0)?;
                self.store(i, size, Value::Number(i64::from(i.immediate) as u64))
            }
            code::ATOMIC if size >= 4 => self.add(i, size),
            _ => Err(Reason::UnknownCode(i.code)),
        }
    }

    fn load(&mut self, i: Instruction, size: usize, signed: bool) -> Result<(), Reason> {
        require(i.immediate == 0)?;
        let base = self.register(i.from())?;
        let value = match base {
            Value::Context if size == 4 && !signed => self.field(i.offset)?,
            Value::Context => return Err(Reason::ContextAccess),
            _ => match self.spilled(base, i.offset, size)? {
                Some(pointer) => pointer,
                None => {
                    let number = self.number(base, i.offset, size)?;
                    // Moves the sign to the highest bit and back.
                    let unused = 64 - 8 * size as u32;
                    let extended = ((number << unused) as i64 >> unused) as u64;
                    Value::Number(if signed { extended } else { number })
                }
            },
        };
        self.set_register(i.to(), value)
    }

    /// The pointer that an access to the stack reads, if it reads one.
    fn spilled(&self, base: Value, offset: i16, size: usize) -> Result<Option<Value>, Reason> {
        match base {
            Value::Stack(base) if size == 8 => self.stack.pointer(base + i64::from(offset)),
            _ => Ok(None),
        }
    }

    fn store(&mut self, i: Instruction, size: usize, value: Value) -> Result<(), Reason> {
        match (self.register(i.to())?, value) {
            (Value::Context, _) => Err(Reason::ContextAccess),
            (base, Value::Number(number)) => self.set_number(base, i.offset, size, number),
            (Value::Stack(base), pointer) if size == 8 => {
                self.stack.set_pointer(base + i64::from(i.offset), pointer)
            }
            _ => Err(Reason::PointerStored),
        }
    }

    /// Adds a register to memory in one step.
    fn add(&mut self, i: Instruction, size: usize) -> Result<(), Reason> {
        require(i.immediate & !code::FETCH == 0)?;
        let Value::Number(number) = self.register(i.from())? else {
            return Err(Reason::PointerArithmetic);
        };
        let base = self.register(i.to())?;
        match base {
            Value::Stack(_) => {}
            Value::Entry { offset, .. } => aligned(offset + i64::from(i.offset), size)?,
            Value::Packet { .. } | Value::Context => return Err(Reason::AtomicPlace),
            _ => {}
        }
        let before = self.number(base, i.offset, size)?;
        self.set_number(base, i.offset, size, before.wrapping_add(number))?;
        if i.immediate == code::FETCH {
            self.set_register(i.from(), Value::Number(before))?;
        }
        Ok(())
    }

    /// A field of the context (`struct xdp_md`).
    fn field(&self, offset: i16) -> Result<Value, Reason> {
        let [meta, start, end] = self.frame.bounds().map(|position| position as i64);
        let packet = |position, end| Value::Packet { epoch: self.epoch, end, position };
        match offset {
            0 => Ok(packet(start, false)),
            4 => Ok(packet(end, true)),
            8 => Ok(packet(meta, false)),
            12 => Ok(Value::Number(self.machine.interface.into())),
            16 => Ok(Value::Number(self.machine.queue.into())),
            _ => Err(Reason::ContextAccess),
        }
    }

    fn number(&self, base: Value, offset: i16, size: usize) -> Result<u64, Reason> {
        let mut bytes = [0; 8];
        // The kernel's verifier requires alignment for the stack only.
        if let Value::Stack(base) = base {
            aligned(base + i64::from(offset), size)?;
        }
        self.read(base, offset.into(), bytes.get_mut(..size).unwrap_or_default())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set_number(&mut self, base: Value, offset: i16, size: usize, number: u64) -> Result<(), Reason> {
        if let Value::Stack(base) = base {
            aligned(base + i64::from(offset), size)?;
        }
        self.write(base, offset.into(), number.to_le_bytes().get(..size).unwrap_or_default())
    }

    /// Copies bytes from an address.
    pub(super) fn read(&self, base: Value, offset: i64, out: &mut [u8]) -> Result<(), Reason> {
        let size = out.len();
        match base {
            Value::Stack(base) => self.stack.read(base + offset, out),
            Value::Packet { .. } => {
                let position = self.position(base, offset)?;
                let outside = self.outside(position, size);
                self.frame.read(position, out).ok_or(outside)
            }
            Value::Entry { entry, offset: base } => {
                let entry =
                    self.entries.get(entry).filter(|entry| entry.valid).ok_or(Reason::RemovedValue)?;
                let map = self.machine.maps.get(entry.map);
                let value = map.and_then(|map| map.get(&entry.key)).ok_or(Reason::RemovedValue)?;
                let outside = Reason::OutsideValue { offset: base + offset, size };
                let first = usize::try_from(base + offset).map_err(|_| outside)?;
                out.copy_from_slice(value.get(first..).and_then(|rest| rest.get(..size)).ok_or(outside)?);
                Ok(())
            }
            _ => Err(no_memory(base)),
        }
    }

    /// Copies bytes to an address.
    pub(super) fn write(&mut self, base: Value, offset: i64, data: &[u8]) -> Result<(), Reason> {
        let size = data.len();
        match base {
            Value::Stack(base) => self.stack.write(base + offset, data),
            Value::Packet { .. } => {
                let position = self.position(base, offset)?;
                let outside = self.outside(position, size);
                self.frame.write(position, data).ok_or(outside)
            }
            Value::Entry { entry, offset: base } => {
                let entry =
                    self.entries.get(entry).filter(|entry| entry.valid).ok_or(Reason::RemovedValue)?;
                let map = self.machine.maps.get_mut(entry.map);
                let value = map.and_then(|map| map.get_mut(&entry.key)).ok_or(Reason::RemovedValue)?;
                let outside = Reason::OutsideValue { offset: base + offset, size };
                let first = usize::try_from(base + offset).map_err(|_| outside)?;
                let place = value.get_mut(first..).and_then(|rest| rest.get_mut(..size)).ok_or(outside)?;
                place.copy_from_slice(data);
                Ok(())
            }
            _ => Err(no_memory(base)),
        }
    }

    /// The position in the frame's buffer of an access through a packet pointer.
    fn position(&self, base: Value, offset: i64) -> Result<i64, Reason> {
        self.fresh(&[base])?;
        match base {
            Value::Packet { end: false, position, .. } => Ok(position + offset),
            _ => Err(Reason::EndPointer),
        }
    }
    fn outside(&self, position: i64, size: usize) -> Reason {
        let [_, start, _] = self.frame.bounds();
        Reason::OutsideFrame { offset: position - start as i64, size }
    }
}

/// Fails unless the offset is a multiple of the size.
fn aligned(offset: i64, size: usize) -> Result<(), Reason> {
    if offset % size as i64 == 0 { Ok(()) } else { Err(Reason::Misaligned) }
}

/// The reason why a value is not an address of memory.
fn no_memory(value: Value) -> Reason {
    if value == Value::Number(0) { Reason::NullPointer } else { Reason::NotMemory }
}
