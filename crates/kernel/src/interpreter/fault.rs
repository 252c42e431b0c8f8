// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the interpreter.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The error that ends a program: the instruction and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The index of the instruction in the program.
    pub at: usize,
    /// The rule that the instruction breaks.
    pub reason: Reason,
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}: {}", self.at, self.reason)
    }
}

impl Error for Fault {}

/// The rule that an instruction breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The operation code is unknown, or the interpreter does not implement it.
    UnknownCode(u8),
    /// A field that the operation does not use is not 0, or a field has a value that the interpreter does not know.
    InvalidField,
    /// A 64-bit constant lacks its second instruction.
    HalfConstant,
    /// There is no register of this number.
    UnknownRegister(u8),
    /// The register has no value.
    Uninitialized(u8),
    /// Register 10 (the frame pointer) cannot be written.
    FramePointer,
    /// The target of a jump is outside the program.
    JumpOutside(i64),
    /// The last instruction does not end the program.
    NoExit,
    /// The program has executed as many instructions as it may.
    Limit(u64),
    /// The address of an access is 0.
    NullPointer,
    /// The address of an access is a number, a map or the context, but not memory of the program.
    NotMemory,
    /// The pointer to the frame was made before the frame's bounds were changed.
    StalePointer,
    /// The pointer belongs to a value that was removed from its map, or replaced.
    RemovedValue,
    /// The end of the frame may be compared and subtracted, but neither moved nor accessed.
    EndPointer,
    /// An access outside the frame and its metadata. The offset is relative to the start of the frame.
    OutsideFrame {
        /// The offset of the first byte.
        offset: i64,
        /// The number of bytes.
        size: usize,
    },
    /// An access outside the stack. The offset is relative to register 10.
    OutsideStack {
        /// The offset of the first byte.
        offset: i64,
        /// The number of bytes.
        size: usize,
    },
    /// An access outside the value of a map.
    OutsideValue {
        /// The offset of the first byte.
        offset: i64,
        /// The number of bytes.
        size: usize,
    },
    /// The context has no field that this access could mean.
    ContextAccess,
    /// The offset is not a multiple of the size, where it has to be.
    Misaligned,
    /// Atomic operations work on the stack and on the values of maps only.
    AtomicPlace,
    /// The program reads a byte of the stack that it has not written.
    UnwrittenStack(i64),
    /// The program reads a part of a pointer in the stack.
    PartOfPointer,
    /// The operation is not defined for a pointer.
    PointerArithmetic,
    /// A pointer is moved 512 MiB or more away from its memory.
    FarPointer,
    /// The comparison is not defined for a pointer.
    PointerComparison,
    /// A pointer is stored outside the stack, or not as an aligned word of 8 bytes.
    PointerStored,
    /// The result of the program is a pointer.
    PointerResult,
    /// The function is unknown, or the interpreter does not implement it.
    UnknownFunction(i32),
    /// The argument in this register is not of the type that the function takes.
    Argument(u8),
    /// The function does not accept these flags.
    Flags(u64),
    /// The machine has no map of this index.
    UnknownMap(i32),
    /// The operation is not defined for a map of this kind.
    MapKind,
    /// The machine has no program of this index.
    NoProgram(usize),
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reason::UnknownCode(code) => write!(f, "unknown operation code {code:#04x}"),
            Reason::InvalidField => write!(f, "a field of the instruction has an invalid value"),
            Reason::HalfConstant => write!(f, "a 64-bit constant lacks its second instruction"),
            Reason::UnknownRegister(register) => write!(f, "there is no register {register}"),
            Reason::Uninitialized(register) => write!(f, "register {register} has no value"),
            Reason::FramePointer => write!(f, "register 10 is written"),
            Reason::JumpOutside(target) => write!(f, "jump to {target}, outside the program"),
            Reason::NoExit => write!(f, "the program ends without an exit instruction"),
            Reason::Limit(limit) => write!(f, "more than {limit} instructions are executed"),
            Reason::NullPointer => write!(f, "access through a null pointer"),
            Reason::NotMemory => write!(f, "access through a register that does not point to memory"),
            Reason::StalePointer => write!(f, "packet pointer from before a change of the frame's bounds"),
            Reason::RemovedValue => write!(f, "pointer to a map value that was removed or replaced"),
            Reason::EndPointer => write!(f, "the end of the frame is moved or accessed"),
            Reason::OutsideFrame { offset, size } => {
                write!(f, "access to {size} bytes at {offset}, outside the frame")
            }
            Reason::OutsideStack { offset, size } => {
                write!(f, "access to {size} bytes at {offset}, outside the stack")
            }
            Reason::OutsideValue { offset, size } => {
                write!(f, "access to {size} bytes at {offset}, outside the map value")
            }
            Reason::ContextAccess => write!(f, "invalid access to the context"),
            Reason::Misaligned => write!(f, "the access is not aligned to its size"),
            Reason::AtomicPlace => write!(f, "atomic operation outside the stack and the values of maps"),
            Reason::UnwrittenStack(offset) => write!(f, "the stack at {offset} is read before it is written"),
            Reason::PartOfPointer => write!(f, "a part of a pointer in the stack is read"),
            Reason::PointerArithmetic => write!(f, "arithmetic that is not defined for a pointer"),
            Reason::FarPointer => write!(f, "a pointer is moved 512 MiB or more away"),
            Reason::PointerComparison => write!(f, "comparison that is not defined for a pointer"),
            Reason::PointerStored => write!(f, "a pointer is stored other than as an aligned stack word"),
            Reason::PointerResult => write!(f, "the result is a pointer"),
            Reason::UnknownFunction(number) => write!(f, "unknown function {number}"),
            Reason::Argument(register) => write!(f, "the argument in register {register} has a wrong type"),
            Reason::Flags(flags) => write!(f, "the function does not accept the flags {flags:#x}"),
            Reason::UnknownMap(index) => write!(f, "there is no map {index}"),
            Reason::NoProgram(index) => write!(f, "there is no program {index}"),
            Reason::MapKind => write!(f, "the operation is not defined for this kind of map"),
        }
    }
}

/// The error that a helper function returns to the program, which goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such key (`ENOENT`).
    Missing,
    /// The map has no room, or the index is outside the array (`E2BIG`).
    TooBig,
    /// The metadata has a forbidden length (`EACCES`).
    Access,
    /// The key exists already (`EEXIST`).
    Exists,
    /// Invalid argument (`EINVAL`).
    Invalid,
    /// The trie has no room (`ENOSPC`).
    NoSpace,
}

impl Refusal {
    /// The number of the error in Linux, positive.
    pub fn number(self) -> i64 {
        match self {
            Refusal::Missing => 2,
            Refusal::TooBig => 7,
            Refusal::Access => 13,
            Refusal::Exists => 17,
            Refusal::Invalid => 22,
            Refusal::NoSpace => 28,
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Missing => "no such key",
            Refusal::TooBig => "the map is full or the index is outside the array",
            Refusal::Access => "the metadata has a forbidden length",
            Refusal::Exists => "the key exists already",
            Refusal::Invalid => "invalid argument",
            Refusal::NoSpace => "the trie is full",
        })
    }
}

impl Error for Refusal {}
