// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture filters: the expression language of tcpdump (pcap-filter(7)), compiled to the classic packet filter
//! (McCanne and Jacobson, 1993) that Linux runs before a socket sees a frame.
//!
//! - `lex`, `parse`: the language; `terms`: what a word, an address or a port means in terms of bytes.
//! - `code`: tests to instructions.

mod code;
mod lex;
mod parse;
mod terms;

use crate::error::PatternError;
use crate::names::Names;

/// One instruction, in the numbers that `tcpdump -ddd` writes and that the system takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Class, size, mode, operation.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// An offset, a number, a distance.
    pub k: u32,
}

/// What frames look like to the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Ethernet frames as they are on the wire.
    Ethernet,
    /// Ethernet frames in the kernel, where the outer VLAN tag was taken out of them and stands beside.
    EthernetUntagged,
    /// IP packets without link header.
    Ip,
}

/// What a filter gives for a frame that it takes: all bytes of it are wanted.
const TAKE: u32 = 262_144;
/// The most instructions that the kernel takes.
const MAX_INSTRUCTIONS: usize = 4096;

/// Compiles a capture filter; the empty one takes every frame.
///
/// A filter that looks behind the end of a frame does not take it, whatever else it says.
///
/// # Errors
/// What in the text cannot be understood.
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
