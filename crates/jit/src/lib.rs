// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the decision trees of classifiers to machine code, with cranelift.
//!
//! - `lower`: a decision tree as cranelift's intermediate code.
//! - `memory`: compiled code in executable memory.
//!
//! The interpreter of [`castanet_classify`] stays: it runs before the code is ready, for packets that are too short for the code,
//! for programs that are not compiled, and on machines that do not allow memory to become executable.

mod lower;
mod memory;

use castanet_classify::Program;
pub use castanet_native::When;
use castanet_native::{Code, Compiler};

/// The largest number of tests that are compiled. The interpreter searches larger trees well, and compiling them takes long.
pub const MAX_STEPS: usize = 4096;

/// The largest number of tests that a packet passes in machine code, if the interpreter searches instead.
const MAX_DEPTH: usize = 64;

/// A compiler of classifiers.
pub fn compiler(when: When) -> Compiler<Program> {
    Compiler::new(compile, when)
}

/// Returns the machine code of a program. None if the interpreter is as good, if the program reads the Ethernet header in front
/// of an IP packet, if it has more than [`MAX_STEPS`] tests or the
/// interpreter finds its way through long chains of them faster, or if the machine does not allow new code.
pub fn compile(program: &Program) -> Option<Code> {
    let lengths = program.fast_lengths()?;
    if program.steps().is_empty() || program.steps().len() > MAX_STEPS {
        return None;
    }
    if program.is_searched() && lower::depth(program) > MAX_DEPTH {
        return None;
    }
    let (entry, memory) = memory::load(|module| lower::function(program, lengths, module))?;
    // SAFETY: the function tests first that the packet has `lengths`, and then reads only words of `program.steps()`, which by the
    // contract of `Program::fast_lengths` lie in these bytes; each step leads to later ones, so it returns. It has the signature
    // of `Entry`, and exists as long as `memory`.
    Some(unsafe { Code::new(entry, Box::new(memory)) })
}
