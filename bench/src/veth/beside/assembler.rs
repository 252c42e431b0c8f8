// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small assembler for eBPF (RFC 9669), with forward jumps.

use castanet_kernel::Instruction;
use castanet_kernel::instruction::code;

/// A place that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program in the making. Registers are numbers: 0 has results, 1 to 5 have arguments, calls keep 6 to 9, and 10 is the end of
/// the stack.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    /// The places of the labels.
    labels: Vec<Option<usize>>,
    /// Jumps, with the labels that they lead to.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// Adds an instruction.
    pub fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.instructions.push(Instruction::new(code, to, from, offset, immediate));
    }
    /// `to = *(from + offset)`
    pub fn load(&mut self, size: u8, to: u8, from: u8, offset: i16) {
        self.put(code::LOAD | size, to, from, offset, 0);
    }
    /// `*(to + offset) = from`
    pub fn store(&mut self, size: u8, to: u8, offset: i16, from: u8) {
        self.put(code::STORE | size, to, from, offset, 0);
    }
    /// `to = operation(to, n)`
    pub fn constant(&mut self, operation: u8, to: u8, n: i32) {
        self.put(code::ALU64 | operation, to, 0, 0, n);
    }
    /// `to = operation(to, from)`
    pub fn register(&mut self, operation: u8, to: u8, from: u8) {
        self.put(code::ALU64 | code::REGISTER | operation, to, from, 0, 0);
    }
    /// Loads the map with a number.
    pub fn map(&mut self, to: u8, number: i32) {
        self.put(code::WIDE, to, code::MAP, 0, number);
        self.put(0, 0, 0, 0, 0);
    }
    /// Calls a function of the kernel.
    pub fn call(&mut self, function: i32) {
        self.put(code::CALL, 0, 0, 0, function);
    }
    /// Ends the program with a result.
    pub fn exit(&mut self, result: i32) {
        self.constant(code::MOV, 0, result);
        self.put(code::EXIT, 0, 0, 0, 0);
    }

    /// Makes a label.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }
    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        if let Some(at) = self.labels.get_mut(label.0) {
            *at = Some(self.instructions.len());
        }
    }
    /// Jumps if a 32-bit comparison of a register with a constant is true.
    pub fn jump(&mut self, test: u8, left: u8, n: u32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code::JUMP32 | test, left, 0, 0, n.cast_signed());
    }
    /// Jumps if a 64-bit comparison of two registers is true.
    pub fn jump_register(&mut self, test: u8, left: u8, right: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code::JUMP | code::REGISTER | test, left, right, 0, 0);
    }
    /// Jumps if a register is 0, a null pointer.
    pub fn jump_null(&mut self, register: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code::JUMP | code::JEQ, register, 0, 0, 0);
    }
    /// Jumps.
    pub fn go(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(code::JUMP | code::JA, 0, 0, 0, 0);
    }

    /// The program. Jumps to labels that have no place lead to the next instruction.
    pub fn end(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let place = self.labels.get(label.0).copied().flatten();
            let distance = place.and_then(|to| i16::try_from(to.checked_sub(at + 1)?).ok());
            if let Some(jump) = self.instructions.get_mut(at) {
                jump.offset = distance.unwrap_or(0);
            }
        }
        self.instructions
    }
}
