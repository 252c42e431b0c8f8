// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes instructions from steps.
//!
//! Register 6 holds the context of the program, 7 the start of the frame, and 9 the address of the counters. Registers 0
//! and 5 are used within one step. The others hold values ([`crate::registers`]).

use crate::code::DECAYED;
use crate::instruction::{Instruction, code, helper};
use crate::registers::Place;
use crate::step::{Arithmetic, Base, MapName, Operand, Size, Step, Test, Value};
use std::collections::HashMap;

pub(crate) const CONTEXT: u8 = 6;
pub(crate) const FRAME: u8 = 7;
pub(crate) const COUNTERS: u8 = 9;
pub(crate) const STACK: u8 = 10;
/// Registers for use within one step.
const FIRST: u8 = 0;
const SECOND: u8 = 5;

/// Offsets in the context (struct xdp_md).
pub(crate) mod context {
    pub const DATA: i16 = 0;
    pub const DATA_END: i16 = 4;
    pub const META: i16 = 8;
    pub const QUEUE: i16 = 16;
}

/// A place in the program that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The start of a fragment.
    Fragment(usize),
    /// A label of a fragment.
    Label(usize, u32),
    /// The code at the end of a program, by number.
    Tail(usize),
    /// The code at the start of a part for those of its entries that have at least this number.
    Entries(usize),
}

/// The instructions of a program, while it is made.
#[derive(Default)]
pub(crate) struct Assembly {
    pub instructions: Vec<Instruction>,
    /// The instructions that name a map.
    pub maps: Vec<(usize, MapName)>,
    places: HashMap<Target, usize>,
    jumps: Vec<(usize, Target)>,
}

pub(crate) fn size_code(size: Size) -> u8 {
    match size {
        Size::Byte => code::B,
        Size::Half => code::H,
        Size::Word => code::W,
        Size::Double => code::DW,
    }
}

fn arithmetic_code(operation: Arithmetic) -> u8 {
    match operation {
        Arithmetic::Add => code::ADD,
        Arithmetic::Subtract => code::SUB,
        Arithmetic::Multiply => code::MUL,
        Arithmetic::Divide => code::DIV,
        Arithmetic::Remainder => code::MOD,
        Arithmetic::And => code::AND,
        Arithmetic::Or => code::OR,
        Arithmetic::Xor => code::XOR,
        Arithmetic::ShiftLeft => code::LSH,
        Arithmetic::ShiftRight => code::RSH,
    }
}

fn test_code(test: Test) -> u8 {
    match test {
        Test::Equal => code::JEQ,
        Test::Differ => code::JNE,
        Test::Greater => code::JGT,
        Test::AtLeast => code::JGE,
        Test::Less => code::JLT,
        Test::AtMost => code::JLE,
        Test::Common => code::JSET,
    }
}

impl Assembly {
    pub fn push(&mut self, code: u8, to: u8, from: u8, offset: i32, immediate: i32) {
        // Offsets are those of the stack, the context, headers and entries, which fit.
        let offset = i16::try_from(offset).unwrap_or(i16::MAX);
        self.instructions.push(Instruction::new(code, to, from, offset, immediate));
    }
    /// Says that a target is here.
    pub fn place(&mut self, target: Target) {
        self.places.insert(target, self.instructions.len());
    }
    pub fn is_placed(&self, target: Target) -> bool {
        self.places.contains_key(&target)
    }
    /// A jump to a target. `code` is that of the instruction.
    pub fn jump(&mut self, code: u8, to: u8, from: u8, immediate: i32, target: Target) {
        self.jumps.push((self.instructions.len(), target));
        self.push(code, to, from, 0, immediate);
    }
    pub fn go(&mut self, target: Target) {
        self.jump(code::JUMP | code::JA, 0, 0, 0, target);
    }
    pub fn copy(&mut self, to: u8, from: u8) {
        if to != from {
            self.push(code::ALU64 | code::MOV | code::REGISTER, to, from, 0, 0);
        }
    }
    pub fn constant(&mut self, to: u8, n: i64) {
        match i32::try_from(n) {
            Ok(n) => self.push(code::ALU64 | code::MOV, to, 0, 0, n),
            Err(_) => match u32::try_from(n) {
                // The upper half becomes 0.
                Ok(n) => self.push(code::ALU | code::MOV, to, 0, 0, n.cast_signed()),
                Err(_) => {
                    self.push(code::WIDE, to, 0, 0, n as i32);
                    self.push(0, 0, 0, 0, (n >> 32) as i32);
                }
            },
        }
    }
    pub fn add(&mut self, to: u8, n: i32) {
        if n != 0 {
            self.push(code::ALU64 | code::ADD, to, 0, 0, n);
        }
    }
    pub fn load(&mut self, to: u8, from: u8, offset: i32, size: Size) {
        self.push(code::LOAD | size_code(size), to, from, offset, 0);
    }
    pub fn store(&mut self, to: u8, offset: i32, from: u8, size: Size) {
        self.push(code::STORE | size_code(size), to, from, offset, 0);
    }
    pub fn store_constant(&mut self, to: u8, offset: i32, n: i32, size: Size) {
        self.push(code::STORE_CONSTANT | size_code(size), to, 0, offset, n);
    }
    /// Loads the reference to a map.
    pub fn map(&mut self, to: u8, name: MapName) {
        self.maps.push((self.instructions.len(), name));
        self.push(code::WIDE, to, code::MAP, 0, 0);
        self.push(0, 0, 0, 0, 0);
    }
    /// Loads the address of the value of a map with one value.
    pub fn map_value(&mut self, to: u8, name: MapName) {
        self.maps.push((self.instructions.len(), name));
        self.push(code::WIDE, to, code::MAP_VALUE, 0, 0);
        self.push(0, 0, 0, 0, 0);
    }
    pub fn call(&mut self, number: i32) {
        self.push(code::CALL, 0, 0, 0, number);
    }
    /// Adds `by` (in a register, or 1) to a counter.
    pub fn count(&mut self, counter: u32, by: Result<u8, i64>) {
        // The number of counters is bounded when the program is finished.
        let offset = i32::try_from(counter).unwrap_or(i32::MAX).saturating_mul(8);
        self.load(FIRST, COUNTERS, offset, Size::Double);
        match by {
            Ok(register) => self.push(code::ALU64 | code::ADD | code::REGISTER, FIRST, register, 0, 0),
            Err(n) => self.add(FIRST, i32::try_from(n).unwrap_or(i32::MAX)),
        }
        self.store(COUNTERS, offset, FIRST, Size::Double);
    }
    /// The targets of jumps that are not in this part of the program, except the ends of paths.
    pub fn elsewhere(&self) -> Vec<Target> {
        let mut all = Vec::new();
        for (_, target) in &self.jumps {
            if !matches!(target, Target::Tail(_)) && !self.is_placed(*target) && !all.contains(target) {
                all.push(*target);
            }
        }
        all
    }
    /// Sets the distances of all jumps. An error if one is too far or leads nowhere.
    pub fn link(&mut self) -> Result<(), &'static str> {
        for &(at, target) in &self.jumps {
            let place = self.places.get(&target).ok_or("a jump leads nowhere")?;
            let distance = *place as i64 - at as i64 - 1;
            if let Some(i) = self.instructions.get_mut(at) {
                i.offset =
                    i16::try_from(distance).map_err(|_| "the program is too large: a jump is too far")?;
            }
        }
        Ok(())
    }
}

/// Makes the instructions of a fragment's steps.
pub(crate) struct Emitter<'a> {
    pub out: &'a mut Assembly,
    pub fragment: usize,
    pub places: &'a [Place],
}

impl Emitter<'_> {
    fn place(&self, value: Value) -> Place {
        self.places.get(value.0 as usize).copied().unwrap_or(Place::Register(FIRST))
    }
    /// Returns the register with a value. A value on the stack is loaded into `spare`.
    fn read(&mut self, value: Value, spare: u8) -> u8 {
        match self.place(value) {
            Place::Register(r) => r,
            Place::Stack(offset) => {
                self.out.load(spare, STACK, offset, Size::Double);
                spare
            }
        }
    }
    /// Returns the register in which a value is to be computed.
    fn write(&self, value: Value) -> u8 {
        match self.place(value) {
            Place::Register(r) => r,
            Place::Stack(_) => FIRST,
        }
    }
    /// Stores a value that was computed in the register of [`Emitter::write`], if it belongs on the stack.
    fn written(&mut self, value: Value) {
        if let Place::Stack(offset) = self.place(value) {
            self.out.store(STACK, offset, FIRST, Size::Double);
        }
    }
    /// Calls a function of the kernel, of which the result is a value.
    fn call(&mut self, function: i32, to: Value) {
        self.out.call(function);
        self.keep(to);
    }
    /// Puts the number in register [`FIRST`] where the value belongs.
    fn keep(&mut self, to: Value) {
        let r = self.write(to);
        self.out.copy(r, FIRST);
        self.written(to);
    }
    fn label(&self, label: u32) -> Target {
        Target::Label(self.fragment, label)
    }
    fn base(&mut self, base: Base) -> u8 {
        match base {
            Base::Frame => FRAME,
            Base::Stack => STACK,
            Base::Entry(v) => self.read(v, SECOND),
        }
    }

    /// Makes the instructions of a step that is not an exit.
    pub fn step(&mut self, step: &Step) {
        match *step {
            Step::Constant { to, n } => {
                let r = self.write(to);
                self.out.constant(r, n);
                self.written(to);
            }
            Step::Load { to, base, offset, size } => {
                let from = self.base(base);
                let r = self.write(to);
                self.out.load(r, from, offset, size);
                self.written(to);
            }
            Step::Store { base, offset, size, from } => {
                let to = self.base(base);
                match from {
                    Operand::Value(v) => {
                        let from = self.read(v, FIRST);
                        self.out.store(to, offset, from, size);
                    }
                    Operand::Constant(n) => self.store_constant(to, offset, n, size),
                }
            }
            Step::Arithmetic { operation, to, left, right } => self.arithmetic(operation, to, left, right),
            Step::Swap { to, from, size } => {
                let from = self.read(from, FIRST);
                let r = self.write(to);
                self.out.copy(r, from);
                let bits = size.bytes().cast_signed() * 8;
                self.out.push(code::ALU | code::END | code::REGISTER, r, 0, 0, bits);
                self.written(to);
            }
            Step::Branch { test, left, right, wide, to } => {
                let left = self.read(left, FIRST);
                let class = if wide { code::JUMP } else { code::JUMP32 };
                let target = self.label(to.0);
                let (extra, from, immediate) = match right {
                    Operand::Value(v) => (code::REGISTER, self.read(v, SECOND), 0),
                    Operand::Constant(n) => match i32::try_from(n) {
                        Ok(n) => (0, 0, n),
                        Err(_) if !wide => (0, 0, n as i32),
                        Err(_) => {
                            self.out.constant(SECOND, n);
                            (code::REGISTER, SECOND, 0)
                        }
                    },
                };
                self.out.jump(class | test_code(test) | extra, left, from, immediate, target);
            }
            Step::Jump(label) => {
                let target = self.label(label.0);
                self.out.go(target);
            }
            Step::Bind(label) => {
                let target = self.label(label.0);
                self.out.place(target);
            }
            Step::Present { end, otherwise } => {
                let target = self.label(otherwise.0);
                self.out.load(FIRST, CONTEXT, context::DATA_END.into(), Size::Word);
                self.out.copy(SECOND, FRAME);
                self.out.add(SECOND, end.cast_signed());
                self.out.jump(code::JUMP | code::JGT | code::REGISTER, SECOND, FIRST, 0, target);
            }
            Step::Length { to } => {
                self.out.copy(1, CONTEXT);
                self.call(helper::LENGTH, to);
            }
            Step::BranchLength { than, plus, shorter, longer } => {
                // Compares the end of the frame with an address in it, because the kernel's verifier does not permit the
                // difference of two addresses without CAP_PERFMON.
                match than {
                    Operand::Value(v) => {
                        let than = self.read(v, SECOND);
                        self.out.copy(FIRST, FRAME);
                        self.out.push(code::ALU64 | code::ADD | code::REGISTER, FIRST, than, 0, 0);
                        self.out.add(FIRST, plus);
                    }
                    Operand::Constant(n) => {
                        self.out.copy(FIRST, FRAME);
                        // Frames are shorter than the limit.
                        let n = n.saturating_add(plus.into()).clamp(0, 0xffff);
                        self.out.add(FIRST, n as i32);
                    }
                }
                self.out.load(SECOND, CONTEXT, context::DATA_END.into(), Size::Word);
                for (test, to) in [(code::JLT, shorter), (code::JGT, longer)] {
                    if let Some(to) = to {
                        let target = self.label(to.0);
                        self.out.jump(code::JUMP | test | code::REGISTER, SECOND, FIRST, 0, target);
                    }
                }
            }
            Step::Address { to, map, offset } => {
                match offset {
                    Operand::Value(offset) => {
                        let offset = self.read(offset, SECOND);
                        self.out.map_value(FIRST, map);
                        self.out.push(code::ALU64 | code::ADD | code::REGISTER, FIRST, offset, 0, 0);
                    }
                    Operand::Constant(n) => {
                        self.out.map_value(FIRST, map);
                        self.out.add(FIRST, i32::try_from(n).unwrap_or(i32::MAX));
                    }
                }
                self.keep(to);
            }
            Step::Increment { to, base, offset, by } => {
                let base = self.base(base);
                match by {
                    Operand::Value(v) => {
                        let by = self.read(v, FIRST);
                        self.out.copy(FIRST, by);
                    }
                    Operand::Constant(n) => self.out.constant(FIRST, n),
                }
                self.out.push(code::ATOMIC | code::DW, base, FIRST, offset, code::FETCH);
                self.keep(to);
            }
            Step::Decay { to, epochs } => self.decay(to, epochs),
            Step::Time { to, exact } => {
                self.call(if exact { helper::KTIME } else { helper::KTIME_COARSE }, to);
            }
            Step::Random { to } => self.call(helper::RANDOM, to),
            Step::LookUp { table, key, to } => {
                self.out.map(1, table);
                self.out.copy(2, STACK);
                self.out.add(2, key);
                self.call(helper::MAP_LOOKUP, to);
            }
            Step::MoveStart { by, otherwise } => {
                let target = self.label(otherwise.0);
                self.out.copy(1, CONTEXT);
                self.out.constant(2, by.into());
                self.out.call(helper::ADJUST_HEAD);
                // The frame may have moved, whatever the result.
                self.out.load(FRAME, CONTEXT, context::DATA.into(), Size::Word);
                self.out.jump(code::JUMP | code::JNE, FIRST, 0, 0, target);
            }
            Step::Count { counter, by } => {
                let by = match by {
                    Operand::Value(v) => Ok(self.read(v, SECOND)),
                    Operand::Constant(n) => Err(n),
                };
                self.out.count(counter, by);
            }
            Step::Exit(_) => {}
        }
    }

    /// A loop of its own, so that jumps between steps still lead forward only. Its bound tells the kernel's verifier that it ends.
    fn decay(&mut self, to: Value, epochs: Value) {
        let average = self.read(to, FIRST);
        self.out.copy(FIRST, average);
        let epochs = self.read(epochs, SECOND);
        self.out.copy(SECOND, epochs);
        self.out.push(code::JUMP | code::JLE, SECOND, 0, 1, DECAYED);
        self.out.constant(SECOND, DECAYED.into());
        self.out.push(code::JUMP | code::JEQ, SECOND, 0, 5, 0);
        self.out.push(code::ALU64 | code::MUL, FIRST, 0, 0, 15);
        self.out.push(code::ALU64 | code::ADD, FIRST, 0, 0, 8);
        self.out.push(code::ALU64 | code::RSH, FIRST, 0, 0, 4);
        self.out.push(code::ALU64 | code::SUB, SECOND, 0, 0, 1);
        self.out.push(code::JUMP | code::JA, 0, 0, -6, 0);
        self.keep(to);
    }

    fn store_constant(&mut self, to: u8, offset: i32, n: i64, size: Size) {
        match i32::try_from(n) {
            Ok(n) => self.out.store_constant(to, offset, n, size),
            Err(_) if size != Size::Double => self.out.store_constant(to, offset, n as i32, size),
            Err(_) => {
                self.out.constant(FIRST, n);
                self.out.store(to, offset, FIRST, size);
            }
        }
    }

    fn arithmetic(&mut self, operation: Arithmetic, to: Value, left: Value, right: Operand) {
        let operation = code::ALU64 | arithmetic_code(operation);
        let left = self.read(left, FIRST);
        match right {
            Operand::Constant(n) => {
                let r = self.write(to);
                match i32::try_from(n) {
                    Ok(n) => {
                        self.out.copy(r, left);
                        self.out.push(operation, r, 0, 0, n);
                    }
                    Err(_) => {
                        self.out.constant(SECOND, n);
                        self.out.copy(r, left);
                        self.out.push(operation | code::REGISTER, r, SECOND, 0, 0);
                    }
                }
            }
            Operand::Value(v) => {
                let right = self.read(v, SECOND);
                let r = self.write(to);
                if r == right && r != left {
                    // The result replaces the second operand.
                    self.out.copy(FIRST, left);
                    self.out.push(operation | code::REGISTER, FIRST, right, 0, 0);
                    self.out.copy(r, FIRST);
                } else {
                    self.out.copy(r, left);
                    self.out.push(operation | code::REGISTER, r, right, 0, 0);
                }
            }
        }
        self.written(to);
    }
}
