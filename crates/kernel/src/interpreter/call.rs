// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helper functions of the kernel (bpf-helpers(7)).

use super::execution::Execution;
use super::fault::{Reason, Refusal};
use super::value::Value;
use super::{Frame, Map, MapKind, REDIRECT};
use crate::instruction::helper;

/// The flags of a redirection that are its result if the map lacks the key.
const RESULT: u64 = 3;

impl Execution<'_> {
    /// Calls a function with the arguments in registers 1 to 5, which have no value afterwards.
    pub(super) fn call(&mut self, function: i32) -> Result<(), Reason> {
        let result = match function {
            helper::MAP_LOOKUP => self.lookup()?,
            helper::MAP_UPDATE => self.update()?,
            helper::MAP_DELETE => self.delete()?,
            helper::KTIME | helper::KTIME_COARSE => Value::Number(self.machine.now),
            helper::RANDOM => self.random(),
            helper::ADJUST_HEAD => self.adjust(Frame::adjust_head)?,
            helper::ADJUST_META => self.adjust(Frame::adjust_meta)?,
            helper::LENGTH => self.length()?,
            helper::ADJUST_TAIL => self.adjust(Frame::adjust_tail)?,
            helper::REDIRECT_MAP => self.redirect()?,
            _ => return Err(Reason::UnknownFunction(function)),
        };
        self.registers.iter_mut().skip(1).take(5).for_each(|register| *register = Value::Uninitialized);
        self.set_register(0, result)
    }

    /// The program that a tail call goes on with: its index. None if the map has none, or after too many tail calls.
    pub(super) fn tail_call(&mut self) -> Result<Option<usize>, Reason> {
        if self.register(1)? != Value::Context {
            return Err(Reason::Argument(1));
        }
        let Value::Map(map) = self.register(2)? else {
            return Err(Reason::Argument(2));
        };
        let key = self.integer(3)? as u32;
        let found = self.map(map)?;
        if found.kind() != MapKind::Programs {
            return Err(Reason::MapKind);
        }
        let index =
            found.get(&key.to_le_bytes()).and_then(|value| value.try_into().ok()).map(u32::from_le_bytes);
        // The kernel does not say what register 0 is after a call that failed.
        self.registers.iter_mut().take(6).for_each(|register| *register = Value::Uninitialized);
        Ok(index.map(|index| index as usize))
    }

    fn lookup(&mut self) -> Result<Value, Reason> {
        let (map, key) = self.map_and_key()?;
        Ok(match self.map(map)?.find(&key) {
            Some(key) => Value::Entry { entry: self.entry(map, key), offset: 0 },
            None => Value::Number(0),
        })
    }

    fn update(&mut self) -> Result<Value, Reason> {
        let (map, key) = self.map_and_key()?;
        let value = self.bytes(3, self.map(map)?.value_size())?;
        let flags = self.integer(4)?;
        let result = self.map_mut(map)?.update(&key, &value, flags);
        if result.is_ok() && !self.map(map)?.is_array() {
            self.forget(map, &key)?;
        }
        Ok(status(result))
    }

    fn delete(&mut self) -> Result<Value, Reason> {
        let (map, key) = self.map_and_key()?;
        let result = self.map_mut(map)?.remove(&key);
        if result.is_ok() {
            self.forget(map, &key)?;
        }
        Ok(status(result))
    }

    fn random(&mut self) -> Value {
        let number = self.machine.random;
        // SplitMix64 (Steele, Lea and Flood, figure 15), with its output as the next state.
        let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.machine.random = mixed ^ mixed >> 31;
        Value::Number(u64::from(number as u32))
    }

    fn length(&mut self) -> Result<Value, Reason> {
        if self.register(1)? != Value::Context {
            return Err(Reason::Argument(1));
        }
        Ok(Value::Number(self.frame.data().len() as u64))
    }

    /// Changes the bounds of the frame. The kernel's verifier forgets all packet pointers even if the call fails.
    fn adjust(&mut self, change: fn(&mut Frame, i32) -> Result<(), Refusal>) -> Result<Value, Reason> {
        if self.register(1)? != Value::Context {
            return Err(Reason::Argument(1));
        }
        let distance = self.integer(2)? as i32;
        self.epoch += 1;
        Ok(status(change(self.frame, distance)))
    }

    fn redirect(&mut self) -> Result<Value, Reason> {
        let Value::Map(map) = self.register(1)? else {
            return Err(Reason::Argument(1));
        };
        let key = self.integer(2)? as u32;
        let flags = self.integer(3)?;
        let found = self.map(map)?;
        if !found.is_redirect() {
            return Err(Reason::MapKind);
        }
        if flags & !RESULT != 0 {
            return Err(Reason::Flags(flags));
        }
        self.redirect = found.get(&key.to_le_bytes()).map(|_| (map, key));
        Ok(Value::Number(if self.redirect.is_some() { REDIRECT.into() } else { flags }))
    }

    /// The map in register 1 and the key that register 2 points to.
    fn map_and_key(&self) -> Result<(usize, Vec<u8>), Reason> {
        let Value::Map(map) = self.register(1)? else {
            return Err(Reason::Argument(1));
        };
        let found = self.map(map)?;
        if found.is_closed() {
            return Err(Reason::MapKind);
        }
        Ok((map, self.bytes(2, found.key_size())?))
    }

    /// Makes the pointers to an entry invalid, because its value was removed or replaced.
    fn forget(&mut self, map: usize, key: &[u8]) -> Result<(), Reason> {
        let key = self.map(map)?.canonical(key).ok_or(Reason::RemovedValue)?;
        let entry = self.valid.remove(&(map, key));
        if let Some(entry) = entry.and_then(|index| self.entries.get_mut(index)) {
            entry.valid = false;
        }
        Ok(())
    }

    fn map(&self, map: usize) -> Result<&Map, Reason> {
        self.machine.maps.get(map).ok_or(Reason::UnknownMap(map as i32))
    }
    fn map_mut(&mut self, map: usize) -> Result<&mut Map, Reason> {
        self.machine.maps.get_mut(map).ok_or(Reason::UnknownMap(map as i32))
    }
    /// The number in a register.
    fn integer(&self, register: u8) -> Result<u64, Reason> {
        match self.register(register)? {
            Value::Number(number) => Ok(number),
            _ => Err(Reason::Argument(register)),
        }
    }
    /// The bytes that a register points to.
    fn bytes(&self, register: u8, size: usize) -> Result<Vec<u8>, Reason> {
        let mut bytes = vec![0; size];
        self.read(self.register(register)?, 0, &mut bytes).map_err(|reason| match reason {
            Reason::NotMemory => Reason::Argument(register),
            other => other,
        })?;
        Ok(bytes)
    }
}

/// The result of a function that returns 0 or a negative error number.
fn status(result: Result<(), Refusal>) -> Value {
    Value::Number(result.map_or_else(|refusal| refusal.number().wrapping_neg() as u64, |()| 0))
}
