// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles elements to programs that the kernel runs at the driver of a device (XDP).
#![forbid(unsafe_code)]

pub mod instruction;

pub use instruction::Instruction;
