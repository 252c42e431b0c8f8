// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions of eBPF (RFC 9669).

/// An instruction (RFC 9669 section 3). A 64-bit constant takes two.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation code: class, size, mode and operation.
    pub code: u8,
    /// The numbers of the destination and the source register, four bits each.
    pub registers: u8,
    /// The distance of a jump, or an offset from the address in a register.
    pub offset: i16,
    /// A constant operand.
    pub immediate: i32,
}

impl Instruction {
    /// Makes an instruction. `to` and `from` are the numbers of the destination and the source register.
    pub const fn new(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        Instruction { code, registers, offset, immediate }
    }
    /// The number of the destination register.
    pub const fn to(self) -> u8 {
        if cfg!(target_endian = "little") { self.registers & 15 } else { self.registers >> 4 }
    }
    /// The number of the source register.
    pub const fn from(self) -> u8 {
        if cfg!(target_endian = "little") { self.registers >> 4 } else { self.registers & 15 }
    }
}

/// Operation codes (RFC 9669 sections 4 and 5).
pub mod code {
    /// Loads a 64-bit constant; takes two instructions. With [`MAP`] as source register, the constant is a map.
    pub const WIDE: u8 = 0x18;
    /// Marks the constant of [`WIDE`] as the descriptor of a map.
    pub const MAP: u8 = 1;
    /// Marks the constant of [`WIDE`] as the address of the value of a map with one value. The second immediate is the
    /// offset in the value.
    pub const MAP_VALUE: u8 = 2;
    /// Loads from memory; add a size.
    pub const LOAD: u8 = 0x61;
    /// Stores a register to memory; add a size.
    pub const STORE: u8 = 0x63;
    /// Stores a constant to memory; add a size.
    pub const STORE_CONSTANT: u8 = 0x62;
    /// Loads from memory with sign extension; add a size other than [`DW`].
    pub const LOAD_SIGNED: u8 = 0x81;
    /// Adds a register to memory in one step; add [`W`] or [`DW`]. The immediate is 0 or [`FETCH`].
    pub const ATOMIC: u8 = 0xc3;
    /// Immediate of [`ATOMIC`]: the register receives the value before the addition.
    pub const FETCH: i32 = 1;
    /// Size: 4 bytes.
    pub const W: u8 = 0x00;
    /// Size: 2 bytes.
    pub const H: u8 = 0x08;
    /// Size: 1 byte.
    pub const B: u8 = 0x10;
    /// Size: 8 bytes.
    pub const DW: u8 = 0x18;
    /// Class: arithmetic on 32 bits. The upper half of the destination becomes 0.
    pub const ALU: u8 = 0x04;
    /// Class: arithmetic on 64 bits.
    pub const ALU64: u8 = 0x07;
    /// Class: jumps that compare 64 bits.
    pub const JUMP: u8 = 0x05;
    /// Class: jumps that compare 32 bits.
    pub const JUMP32: u8 = 0x06;
    /// The second operand is a register, not a constant.
    pub const REGISTER: u8 = 0x08;
    /// Arithmetic: addition.
    pub const ADD: u8 = 0x00;
    /// Arithmetic: subtraction.
    pub const SUB: u8 = 0x10;
    /// Arithmetic: multiplication.
    pub const MUL: u8 = 0x20;
    /// Arithmetic: division; 0 if the divisor is 0. Unsigned if the offset is 0, signed if it is 1.
    pub const DIV: u8 = 0x30;
    /// Arithmetic: bitwise or.
    pub const OR: u8 = 0x40;
    /// Arithmetic: bitwise and.
    pub const AND: u8 = 0x50;
    /// Arithmetic: shift to the left.
    pub const LSH: u8 = 0x60;
    /// Arithmetic: logical shift to the right.
    pub const RSH: u8 = 0x70;
    /// Arithmetic: negation, without a second operand.
    pub const NEG: u8 = 0x80;
    /// Arithmetic: remainder; the dividend if the divisor is 0. Unsigned if the offset is 0, signed if it is 1.
    pub const MOD: u8 = 0x90;
    /// Arithmetic: bitwise exclusive or.
    pub const XOR: u8 = 0xa0;
    /// Arithmetic: copy. With [`REGISTER`], an offset of 8, 16 or 32 copies that many bits with sign extension.
    pub const MOV: u8 = 0xb0;
    /// Arithmetic: arithmetic shift to the right.
    pub const ARSH: u8 = 0xc0;
    /// Arithmetic of class [`ALU`]: to network order if combined with [`REGISTER`], else from little-endian order. Of
    /// class [`ALU64`]: reverses the bytes. The immediate is the width in bits: 16, 32 or 64.
    pub const END: u8 = 0xd0;
    /// Jump: always.
    pub const JA: u8 = 0x00;
    /// Jump: equal.
    pub const JEQ: u8 = 0x10;
    /// Jump: greater, unsigned.
    pub const JGT: u8 = 0x20;
    /// Jump: greater or equal, unsigned.
    pub const JGE: u8 = 0x30;
    /// Jump: a common bit is set.
    pub const JSET: u8 = 0x40;
    /// Jump: not equal.
    pub const JNE: u8 = 0x50;
    /// Jump: greater, signed.
    pub const JSGT: u8 = 0x60;
    /// Jump: greater or equal, signed.
    pub const JSGE: u8 = 0x70;
    /// Jump: less, unsigned.
    pub const JLT: u8 = 0xa0;
    /// Jump: less or equal, unsigned.
    pub const JLE: u8 = 0xb0;
    /// Jump: less, signed.
    pub const JSLT: u8 = 0xc0;
    /// Jump: less or equal, signed.
    pub const JSLE: u8 = 0xd0;
    /// Calls the helper function whose number is the immediate.
    pub const CALL: u8 = 0x85;
    /// Ends the program. Register 0 is the result.
    pub const EXIT: u8 = 0x95;
}

/// Helper functions of the kernel (bpf-helpers(7)).
pub mod helper {
    /// Looks up the value of a key in a map.
    pub const MAP_LOOKUP: i32 = 1;
    /// Sets the value of a key in a map.
    pub const MAP_UPDATE: i32 = 2;
    /// Removes a key from a map.
    pub const MAP_DELETE: i32 = 3;
    /// Returns the time since boot in nanoseconds.
    pub const KTIME: i32 = 5;
    /// Returns a pseudo-random number of 32 bits.
    pub const RANDOM: i32 = 7;
    /// Goes on with another program of a map, and does not return unless the map has no such program.
    pub const TAIL_CALL: i32 = 12;
    /// Moves the start of the frame.
    pub const ADJUST_HEAD: i32 = 44;
    /// Redirects a frame to the ingress or the egress of a device.
    pub const REDIRECT: i32 = 23;
    /// Reads the kernel's memory.
    pub const PROBE_READ_KERNEL: i32 = 113;
    /// Redirects the frame by a map of devices or sockets.
    pub const REDIRECT_MAP: i32 = 51;
    /// Moves the start of the metadata before the frame.
    pub const ADJUST_META: i32 = 54;
    /// Returns the time since boot in nanoseconds, as of the last tick of the system.
    pub const KTIME_COARSE: i32 = 160;
    /// Returns the length of the frame.
    pub const LENGTH: i32 = 188;
    /// Moves the end of the frame.
    pub const ADJUST_TAIL: i32 = 65;
}
