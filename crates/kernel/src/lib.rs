// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles elements to programs that the kernel runs at the driver of a device (XDP).
//!
//! An element describes its code to a [`Code`]. From the elements downstream of a device, [`Router::compile`] makes one program of
//! eBPF instructions (RFC 9669). A packet that reaches an element that cannot run in the kernel goes up: a record precedes
//! the frame ([`handover`]), and the router at user level continues exactly there.
#![forbid(unsafe_code)]

mod assembly;
mod code;
mod compile;
mod emit;
pub mod handover;
pub mod instruction;
pub mod interpreter;
pub mod order;
pub mod region;
mod registers;
mod split;
mod state;
mod step;
mod table;

pub use code::{Code, DeviceName, Lowered, Refused, Sender, Shared, TableKind, TableSpec, stack};
pub use compile::{Network, Part, Point, Program, Reasons, Report, Router};
pub use emit::PASSED;
pub use instruction::Instruction;
pub use region::Region;
pub use split::PART;
pub use state::{ANNOTATIONS, State};
pub use step::{Arithmetic, Base, Counter, Exit, Label, MapName, Operand, Size, Step, Test, Value, counts};
pub use table::Table;
