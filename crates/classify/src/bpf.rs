// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture filters: the expression language of tcpdump (pcap-filter(7)), compiled to the classic packet filter
//! (McCanne and Jacobson, 1993). Linux runs the filter before a socket sees a frame.
//!
//! - `lex`, `parse`: the language. `terms`: words, addresses and ports as tests on bytes.
//! - `code`: generates instructions from tests.

mod code;
mod lex;
mod parse;
mod terms;

use crate::error::PatternError;
use crate::names::Names;

/// One instruction, in the encoding that `tcpdump -ddd` prints and the kernel accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Opcode: class, size, mode, operation.
    pub code: u16,
    /// Number of instructions to skip if the condition holds.
    pub jt: u8,
    /// Number of instructions to skip if the condition does not hold.
    pub jf: u8,
    /// The operand: an offset, a constant or a jump distance.
    pub k: u32,
}

/// The form in which the filter sees frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Ethernet frames as on the wire.
    Ethernet,
    /// Ethernet frames in the kernel. The outer VLAN tag was removed and is kept in the frame's metadata.
    EthernetUntagged,
    /// IP packets without a link header.
    Ip,
}

/// The return value for an accepted frame: the number of bytes to deliver, more than any frame has.
const TAKE: u32 = 262_144;
/// The largest program that the kernel accepts, in instructions.
const MAX_INSTRUCTIONS: usize = 4096;

/// Compiles a capture filter. The empty filter accepts every frame.
///
/// A filter that reads beyond the end of a frame rejects it, even if another part of the filter would match.
///
/// # Errors
/// If the text cannot be parsed: the position and the reason. If the program would have more
/// instructions than the kernel accepts: the number of instructions.
pub fn compile(text: &str, frames: Frames, names: &dyn Names) -> Result<Vec<Instruction>, PatternError> {
    let node = parse::parse(text, frames, names).map_err(|f| f.in_pattern(0))?;
    let program = code::program(&node);
    if program.len() > MAX_INSTRUCTIONS {
        let message =
            format!("the filter needs {} instructions, more than {MAX_INSTRUCTIONS}", program.len());
        return Err(PatternError { pattern: 0, range: 0..text.len(), message, expected: None });
    }
    Ok(program)
}
