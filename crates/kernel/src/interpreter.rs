// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interpreter of eBPF (RFC 9669) for XDP programs, the oracle of tests.
//!
//! It executes a program on a frame, counts the instructions, and ends with a [`Fault`] where a processor would do
//! something undefined: registers have types, and each access is checked. It sees only the path that a frame takes, so
//! a program that it accepts may still be rejected by the verifier of the kernel, which sees all paths.
//!
//! ```
//! use castanet_kernel::Instruction;
//! use castanet_kernel::instruction::code;
//! use castanet_kernel::interpreter::{Frame, Machine};
//!
//! let program = [
//!     Instruction::new(code::ALU64 | code::MOV, 0, 0, 0, 2),
//!     Instruction::new(code::EXIT, 0, 0, 0, 0),
//! ];
//! let run = Machine::default().run(&program, &mut Frame::new(&[0; 60]))?;
//! assert_eq!((run.result, run.executed), (2, 2));
//! # Ok::<(), castanet_kernel::interpreter::Fault>(())
//! ```

mod arithmetic;
mod call;
mod execution;
mod fault;
mod frame;
mod map;
mod memory;
mod stack;
#[cfg(test)]
mod tests;
mod value;

pub use fault::{Fault, Reason, Refusal};
pub use frame::Frame;
pub use map::{ANY, EXIST, Map, MapKind, NO_EXIST};

use crate::Instruction;
use execution::Execution;

/// Result of a program that redirects the frame (`XDP_REDIRECT`).
pub const REDIRECT: u32 = 4;

/// The surroundings of a program, which stay from one frame to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The maps. Programs refer to them by their index: it is the immediate of [`WIDE`](crate::instruction::code::WIDE)
    /// with [`MAP`](crate::instruction::code::MAP) or [`MAP_VALUE`](crate::instruction::code::MAP_VALUE) as source
    /// register.
    pub maps: Vec<Map>,
    /// The programs that maps of programs refer to, by index.
    pub programs: Vec<Vec<Instruction>>,
    /// The time since boot in nanoseconds. It stands still while a program runs.
    pub now: u64,
    /// The state of the pseudo-random numbers. The next number is its lower half; then the state changes.
    pub random: u64,
    /// The index of the interface that received the frame (`ingress_ifindex`).
    pub interface: u32,
    /// The index of the queue that received the frame (`rx_queue_index`).
    pub queue: u32,
    /// The most instructions that a program may execute on one frame.
    pub limit: u64,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            maps: Vec::new(),
            programs: Vec::new(),
            now: 0,
            random: 0,
            interface: 1,
            queue: 0,
            limit: 1_000_000,
        }
    }
}

/// The outcome of a program on one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The lower half of register 0.
    pub result: u32,
    /// The number of executed instructions. A 64-bit constant counts as one.
    pub executed: u64,
    /// The index of the map and the key that the frame is redirected by, if the result is [`REDIRECT`].
    pub redirect: Option<(usize, u32)>,
}

impl Machine {
    /// Executes a program on a frame. After a fault, the maps and the frame are as the program left them.
    pub fn run(&mut self, program: &[Instruction], frame: &mut Frame) -> Result<Run, Fault> {
        // The programs are lent to the execution, which changes the maps.
        let programs = std::mem::take(&mut self.programs);
        let run = Execution::new(self, frame, (program, &programs)).run();
        self.programs = programs;
        run
    }
}
