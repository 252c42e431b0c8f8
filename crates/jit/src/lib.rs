// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the decision trees of classifiers, and paths of elements, to machine code, with cranelift.
//!
//! - `lower`: a decision tree as cranelift's intermediate code.
//! - `path`: a region, the elements behind one input, as cranelift's intermediate code.
//! - `memory`: compiled code in executable memory.
//!
//! The interpreter of [`castanet_classify`] stays: it runs before the code is ready, for packets that are too short for the code,
//! for programs that are not compiled, and on machines that do not allow memory to become executable.

mod lower;
mod memory;
mod path;

use castanet_classify::Program;
use castanet_kernel::Region;
pub use castanet_native::When;
use castanet_native::{Code, Compiler, Entry, Path, PathEntry};

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
    let (address, memory) = memory::load(|module| lower::function(program, lengths, module))?;
    // SAFETY: the address is that of a function of this signature: two pointer-sized arguments and a 32-bit result, by the C
    // calling convention of this machine.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
    // SAFETY: the function tests first that the packet has `lengths`, and then reads only words of `program.steps()`, which by the
    // contract of `Program::fast_lengths` lie in these bytes; each step leads to later ones, so it returns. It has the signature
    // of `Entry`, and exists as long as `memory`.
    Some(unsafe { Code::new(entry, Box::new(memory)) })
}

/// A compiler of regions.
pub fn path_compiler(when: When) -> Compiler<Region, Path> {
    Compiler::new(compile_path, when)
}

/// Returns the machine code of a region. None if the machine does not allow new code, or is not one of 64 bits with the lowest byte
/// first.
pub fn compile_path(region: &Region) -> Option<Path> {
    if !cfg!(all(target_endian = "little", target_pointer_width = "64")) {
        return None;
    }
    let (address, memory) = memory::load(|module| path::function(region, module))?;
    // SAFETY: the address is that of a function of this signature: four pointer-sized arguments and no result, by the C calling
    // convention of this machine.
    let entry = unsafe { std::mem::transmute::<*const u8, PathEntry>(address) };
    // SAFETY: the function processes a packet only if its flags say that nobody else uses its buffer. By the invariant of `Region`, it
    // accesses only bytes of the packet that it has tested to be present, and the first annotations. At an end, the start of the
    // data is at most the number of present bytes, and the end is not behind the former end, so the data still lie in the buffer. Each
    // packet leaves by an end, because regions have no loops. Counters have the numbers of `Region::counters`.
    Some(unsafe { Path::new(entry, region.counters().len(), Box::new(memory)) })
}
