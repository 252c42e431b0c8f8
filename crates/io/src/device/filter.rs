// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions of the classic packet filter (McCanne and Jacobson, 1993), which Linux runs before a socket
//! sees a frame.

/// One instruction (struct sock_filter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode: class, size, mode and operation.
    pub code: u16,
    /// The number of instructions that a conditional jump skips if its condition holds.
    pub jt: u8,
    /// The number of instructions that a conditional jump skips if its condition does not hold.
    pub jf: u8,
    /// The operand: an offset, a constant, or the distance of a jump.
    pub k: u32,
}

impl Instruction {
    /// The instruction `ret #0`. A filter that has only this instruction drops every frame.
    pub const NOTHING: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 0 };
    /// Makes an instruction from its four numbers, in the order of `tcpdump -ddd`.
    pub fn new(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }
}
