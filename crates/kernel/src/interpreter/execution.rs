// SPDX-License-Identifier: MIT OR Apache-2.0
//! The execution of a program on a frame.

use std::collections::BTreeMap;

use super::fault::{Fault, Reason};
use super::stack::Stack;
use super::value::Value;
use super::{Frame, Machine, MapKind, REDIRECT, Run, arithmetic};
use crate::Instruction;
use crate::instruction::{code, helper};

/// The most tail calls on the way of a frame (MAX_TAIL_CALL_CNT of the kernel).
const TAIL_CALLS: u32 = 33;
/// The part of an operation code that names the class.
const CLASS: u8 = 7;
/// The part of an operation code that names the operation.
const OPERATION: u8 = 0xf0;
/// The register that points to the end of the stack.
const FRAME_POINTER: u8 = 10;
/// Added to positions in the frame's buffer before a comparison, so that none is negative.
const BIAS: i64 = 1 << 40;

/// An entry of a map that the program has a pointer to.
pub(super) struct Entry {
    pub map: usize,
    pub key: Vec<u8>,
    /// Whether the value is still the one that the program looked up.
    pub valid: bool,
}

/// The state of a program.
pub(super) struct Execution<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) frame: &'a mut Frame,
    program: &'a [Instruction],
    /// The programs that tail calls can go on with.
    programs: &'a [Vec<Instruction>],
    tail_calls: u32,
    pub(super) registers: [Value; 11],
    pub(super) stack: Stack,
    /// Changes with the bounds of the frame.
    pub(super) epoch: u64,
    pub(super) entries: Vec<Entry>,
    /// The index in `entries` of each valid entry.
    pub(super) valid: BTreeMap<(usize, Vec<u8>), usize>,
    pub(super) redirect: Option<(usize, u32)>,
}

/// The way to the next instruction.
enum Next {
    /// The given number of instructions further, as a constant takes two.
    Following(i64),
    /// The distance is relative to the following instruction.
    Distance(i64),
    /// The start of another program.
    Program(usize),
    Exit(u32),
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        machine: &'a mut Machine,
        frame: &'a mut Frame,
        (program, programs): (&'a [Instruction], &'a [Vec<Instruction>]),
    ) -> Self {
        Execution {
            machine,
            frame,
            program,
            programs,
            tail_calls: 0,
            registers: at_start(),
            stack: Stack::new(),
            epoch: 0,
            entries: Vec::new(),
            valid: BTreeMap::new(),
            redirect: None,
        }
    }

    pub(super) fn run(mut self) -> Result<Run, Fault> {
        let (mut at, mut executed) = (0, 0);
        loop {
            let fault = |reason| Fault { at, reason };
            let instruction = *self.program.get(at).ok_or(fault(Reason::NoExit))?;
            if executed >= self.machine.limit {
                return Err(fault(Reason::Limit(self.machine.limit)));
            }
            executed += 1;
            let (position, length) = (at as i64, self.program.len() as i64);
            let target = match self.execute(at, instruction).map_err(fault)? {
                Next::Exit(result) => {
                    let redirect = self.redirect.filter(|_| result == REDIRECT);
                    return Ok(Run { result, executed, redirect });
                }
                Next::Program(index) => {
                    self.program = self.programs.get(index).ok_or(fault(Reason::NoProgram(index)))?;
                    (self.registers, self.stack) = (at_start(), Stack::new());
                    self.tail_calls += 1;
                    at = 0;
                    continue;
                }
                Next::Following(count) if position + count >= length => return Err(fault(Reason::NoExit)),
                Next::Following(count) => position + count,
                Next::Distance(distance) => position + 1 + distance,
            };
            if !(0..length).contains(&target) {
                return Err(fault(Reason::JumpOutside(target)));
            }
            at = target as usize;
        }
    }

    fn execute(&mut self, at: usize, i: Instruction) -> Result<Next, Reason> {
        match i.code {
            code::WIDE => return self.constant(at, i),
            code::CALL => {
                require(i.to() == 0 && i.from() == 0 && i.offset == 0)?;
                if i.immediate == helper::TAIL_CALL {
                    let program = self.tail_call()?.filter(|_| self.tail_calls < TAIL_CALLS);
                    return Ok(program.map_or(Next::Following(1), Next::Program));
                }
                self.call(i.immediate)?;
                return Ok(Next::Following(1));
            }
            code::EXIT => {
                require(i.registers == 0 && i.offset == 0 && i.immediate == 0)?;
                return match self.register(0)? {
                    Value::Number(number) => Ok(Next::Exit(number as u32)),
                    _ => Err(Reason::PointerResult),
                };
            }
            _ => {}
        }
        match i.code & CLASS {
            code::ALU => self.arithmetic(i, false)?,
            code::ALU64 => self.arithmetic(i, true)?,
            code::JUMP => return self.jump(i, true),
            code::JUMP32 => return self.jump(i, false),
            _ => self.access(i)?,
        }
        Ok(Next::Following(1))
    }

    /// Loads a constant of two instructions.
    fn constant(&mut self, at: usize, i: Instruction) -> Result<Next, Reason> {
        let second = *self.program.get(at + 1).ok_or(Reason::HalfConstant)?;
        require(i.offset == 0 && second.code == 0 && second.registers == 0 && second.offset == 0)?;
        let map = i.immediate as usize;
        let value = match i.from() {
            0 => Value::Number(u64::from(second.immediate as u32) << 32 | u64::from(i.immediate as u32)),
            code::MAP => {
                require(second.immediate == 0)?;
                self.machine.maps.get(map).ok_or(Reason::UnknownMap(i.immediate))?;
                Value::Map(map)
            }
            code::MAP_VALUE => {
                let found = self.machine.maps.get(map).ok_or(Reason::UnknownMap(i.immediate))?;
                // The kernel allows it for arrays with one value.
                if found.kind() != MapKind::Array || found.capacity() != 1 {
                    return Err(Reason::MapKind);
                }
                let (offset, size) = (second.immediate as u32, found.value_size());
                if offset as usize >= size {
                    return Err(Reason::OutsideValue { offset: i64::from(offset), size: 1 });
                }
                Value::Entry { entry: self.entry(map, vec![0; 4]), offset: i64::from(offset) }
            }
            _ => return Err(Reason::InvalidField),
        };
        self.set_register(i.to(), value)?;
        Ok(Next::Following(2))
    }

    fn arithmetic(&mut self, i: Instruction, wide: bool) -> Result<(), Reason> {
        let operation = i.code & OPERATION;
        let register = i.code & code::REGISTER != 0;
        if operation == code::END {
            return self.order(i, wide, register);
        }
        if operation == code::NEG {
            require(!register && i.immediate == 0)?;
        }
        let from = self.operand(i, register)?;
        let value = if operation == code::MOV {
            match from {
                _ if i.offset != 0 && !register => return Err(Reason::InvalidField),
                value if i.offset == 0 && wide => value,
                Value::Number(number) => {
                    require(wide || i.offset != 32)?;
                    let number = match i.offset {
                        0 => number,
                        width => arithmetic::extended(number, width).ok_or(Reason::InvalidField)?,
                    };
                    Value::Number(if wide { number } else { u64::from(number as u32) })
                }
                _ => return Err(Reason::PointerArithmetic),
            }
        } else {
            let signed = matches!(operation, code::DIV | code::MOD) && i.offset == 1;
            require(signed || i.offset == 0)?;
            match (self.register(i.to())?, from) {
                (Value::Number(to), Value::Number(from)) => Value::Number(
                    arithmetic::result(operation, wide, signed, to, from)
                        .ok_or(Reason::UnknownCode(i.code))?,
                ),
                (to, from) if wide => self.pointer_arithmetic(operation, to, from)?,
                _ => return Err(Reason::PointerArithmetic),
            }
        };
        self.set_register(i.to(), value)
    }

    fn pointer_arithmetic(&self, operation: u8, to: Value, from: Value) -> Result<Value, Reason> {
        match (operation, to, from) {
            (code::ADD, Value::Number(number), pointer) | (code::ADD, pointer, Value::Number(number)) => {
                pointer.moved(number as i64, self.epoch)
            }
            (code::SUB, pointer, Value::Number(number)) => {
                let distance = (number as i64).checked_neg().ok_or(Reason::FarPointer)?;
                pointer.moved(distance, self.epoch)
            }
            (code::SUB, Value::Packet { position, .. }, Value::Packet { position: other, .. }) => {
                self.fresh(&[to, from])?;
                Ok(Value::Number((position - other) as u64))
            }
            _ => Err(Reason::PointerArithmetic),
        }
    }

    /// Changes the order of bytes (RFC 9669 section 4.2).
    fn order(&mut self, i: Instruction, wide: bool, register: bool) -> Result<(), Reason> {
        if wide && register {
            return Err(Reason::UnknownCode(i.code));
        }
        require(i.from() == 0 && i.offset == 0)?;
        let Value::Number(number) = self.register(i.to())? else {
            return Err(Reason::PointerArithmetic);
        };
        // The machine is little-endian: only the conversion to network order changes something.
        let number =
            arithmetic::ordered(number, i.immediate, wide || register).ok_or(Reason::InvalidField)?;
        self.set_register(i.to(), Value::Number(number))
    }

    fn jump(&mut self, i: Instruction, wide: bool) -> Result<Next, Reason> {
        let comparison = i.code & OPERATION;
        let register = i.code & code::REGISTER != 0;
        if comparison == code::JA {
            require(!register && i.registers == 0)?;
            let (distance, unused) =
                if wide { (i64::from(i.offset), i.immediate) } else { (i.immediate.into(), i.offset.into()) };
            require(unused == 0)?;
            return Ok(Next::Distance(distance));
        }
        let from = self.operand(i, register)?;
        let to = self.register(i.to())?;
        self.fresh(&[to, from])?;
        let holds = match (to, from) {
            (Value::Number(to), Value::Number(from)) => {
                arithmetic::holds(comparison, wide, to, from).ok_or(Reason::UnknownCode(i.code))?
            }
            (Value::Packet { position: to, .. }, Value::Packet { position: from, .. })
                if wide && is_unsigned(comparison) =>
            {
                arithmetic::holds(comparison, true, (to + BIAS) as u64, (from + BIAS) as u64)
                    .ok_or(Reason::UnknownCode(i.code))?
            }
            // A pointer is never null: a lookup that finds nothing returns the number 0.
            (_, Value::Number(0)) | (Value::Number(0), _)
                if wide && matches!(comparison, code::JEQ | code::JNE) =>
            {
                comparison == code::JNE
            }
            _ => return Err(Reason::PointerComparison),
        };
        Ok(if holds { Next::Distance(i.offset.into()) } else { Next::Following(1) })
    }

    /// The second operand: a register or the constant.
    fn operand(&self, i: Instruction, register: bool) -> Result<Value, Reason> {
        if register {
            require(i.immediate == 0)?;
            self.register(i.from())
        } else {
            require(i.from() == 0)?;
            Ok(Value::Number(i64::from(i.immediate) as u64))
        }
    }

    /// Fails if one of the values is a packet pointer from before a change of the frame's bounds.
    pub(super) fn fresh(&self, values: &[Value]) -> Result<(), Reason> {
        let stale = |value: &Value| matches!(value, Value::Packet { epoch, .. } if *epoch != self.epoch);
        if values.iter().any(stale) { Err(Reason::StalePointer) } else { Ok(()) }
    }

    /// The value of a register, which has to have one.
    pub(super) fn register(&self, number: u8) -> Result<Value, Reason> {
        match self.registers.get(usize::from(number)) {
            None => Err(Reason::UnknownRegister(number)),
            Some(Value::Uninitialized) => Err(Reason::Uninitialized(number)),
            Some(value) => Ok(*value),
        }
    }

    pub(super) fn set_register(&mut self, number: u8, value: Value) -> Result<(), Reason> {
        if number == FRAME_POINTER {
            return Err(Reason::FramePointer);
        }
        *self.registers.get_mut(usize::from(number)).ok_or(Reason::UnknownRegister(number))? = value;
        Ok(())
    }

    /// The index in `entries` of an entry of a map.
    pub(super) fn entry(&mut self, map: usize, key: Vec<u8>) -> usize {
        let entries = &mut self.entries;
        *self.valid.entry((map, key)).or_insert_with_key(|(map, key)| {
            entries.push(Entry { map: *map, key: key.clone(), valid: true });
            entries.len() - 1
        })
    }
}

/// The registers at the start of a program.
fn at_start() -> [Value; 11] {
    let mut registers = [Value::Uninitialized; 11];
    registers[1] = Value::Context;
    registers[FRAME_POINTER as usize] = Value::Stack(0);
    registers
}

/// Fails unless the fields of an instruction are as RFC 9669 section 3 requires.
pub(super) fn require(fields: bool) -> Result<(), Reason> {
    if fields { Ok(()) } else { Err(Reason::InvalidField) }
}

fn is_unsigned(comparison: u8) -> bool {
    use code::{JEQ, JGE, JGT, JLE, JLT, JNE};
    matches!(comparison, JEQ | JNE | JGT | JGE | JLT | JLE)
}
