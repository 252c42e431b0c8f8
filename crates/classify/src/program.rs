// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compiled classifier: read access to its steps, and its text form. `compile` makes it from patterns, `assembly` from
//! text that a program has written, and `join` from several programs.

mod assembly;
mod compile;
mod join;

pub use join::{Exit, Part};

use std::fmt;

use crate::dag::{DROP, LEAF, base, first};
use crate::expr::BASES;
use crate::run::Runner;

/// The positions from which a program's offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffsetBase {
    /// Offsets count from the start of packet data.
    Data,
    /// Offsets 0 to 255 count from two bytes before the Ethernet header, offsets 256 to 511 from the IP header, and
    /// offsets from 512 on from the transport header.
    Ip,
}

/// The classification of a packet: an output port, or a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Output(pub(crate) u32);

impl Output {
    /// The packet matches no pattern, or a rule drops it.
    pub const DROP: Output = Output(DROP);

    /// The output with the number that [`Output::number`] returns.
    #[inline]
    pub fn from_number(number: u32) -> Output {
        Output(number & !LEAF)
    }

    /// The output port; `None` if the packet is dropped.
    #[inline]
    pub fn port(self) -> Option<usize> {
        (self != Output::DROP).then_some(self.0 as usize)
    }

    /// The port as a number; 2147483647 for a drop.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The continuation after one outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Continue at the step with this index, always a later one.
    Step(u32),
    /// End of the program.
    Output(Output),
}

impl Target {
    fn new(raw: u32) -> Target {
        if raw & LEAF != 0 { Target::Output(Output(raw & !LEAF)) } else { Target::Step(raw) }
    }

    pub(crate) fn raw(self) -> u32 {
        match self {
            Target::Step(at) => at,
            Target::Output(out) => out.0 | LEAF,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Step(at) => write!(f, "step {at}"),
            Target::Output(Output::DROP) => f.write_str("[X]"),
            Target::Output(out) => write!(f, "[{}]", out.0),
        }
    }
}

/// One test: does the aligned 4-byte word at `offset`, in network order, equal `value` under `mask`?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset of the word, coded according to the program's [`OffsetBase`].
    pub offset: u32,
    /// The bits to compare.
    pub mask: u32,
    /// The required value of the compared bits; a subset of `mask`.
    pub value: u32,
    /// End of the last byte that must be present, coded like `offset`. If this byte is missing, the outcome is no.
    pub need: u32,
    /// The continuation if the test succeeds.
    pub yes: Target,
    /// The continuation if the test fails.
    pub no: Target,
}

impl Step {
    /// End of the last byte that has bits in the mask, coded like `offset`.
    fn end(&self) -> u32 {
        self.offset + 4 - (self.mask.trailing_zeros() / 8).min(4)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { offset, mask, value, yes, no, .. } = self;
        write!(f, "{offset:3}/{value:08x}%{mask:08x}  yes->{yes}  no->{no}")
    }
}

/// The header that a test reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// Packet data, or the Ethernet header in front of an IP header.
    Front,
    /// The IP header.
    Network,
    /// The transport header.
    Transport,
}

/// The form of a program, which selects the interpreter loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every packet goes to one output.
    Always(Output),
    /// A single test.
    OneStep,
    /// One word under one mask, looked up in a list of values.
    Values,
    /// Anything else.
    General,
}

/// A tree in execution order: targets come after the steps that refer to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) steps: Vec<Step>,
    pub(crate) root: Target,
}

/// A classifier: patterns compiled to a decision tree.
///
/// There are two trees. The *fast* tree assumes that every byte it tests is present, and is used for packets
/// that are long enough. The *checked* tree tests the length first and is used for all other packets. Both are
/// equivalent to trying the patterns in order, where a test on missing bytes is false.
#[derive(Clone, Debug)]
pub struct Program {
    kind: OffsetBase,
    outputs: usize,
    fast: Tree,
    checked: Tree,
    safe_length: u32,
    pub(crate) runner: Runner,
}

impl Program {
    /// The positions from which offsets count.
    pub fn kind(&self) -> OffsetBase {
        self.kind
    }

    /// The number of outputs that the program was compiled for.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The form of the program, which selects the interpreter loop.
    pub fn shape(&self) -> Shape {
        self.runner.shape()
    }

    /// The steps for packets of at least [`Program::safe_lengths`]. Targets come after the steps that refer to
    /// them.
    pub fn steps(&self) -> &[Step] {
        &self.fast.steps
    }

    /// The first step of [`Program::steps`], or an output if there are no steps.
    pub fn root(&self) -> Target {
        self.fast.root
    }

    /// The steps for shorter packets. A test whose `need` exceeds the packet fails.
    pub fn checked_steps(&self) -> &[Step] {
        &self.checked.steps
    }

    /// The first step of [`Program::checked_steps`], or an output.
    pub fn checked_root(&self) -> Target {
        self.checked.root
    }

    /// The offset just behind the last byte that [`Program::steps`] compare, coded like [`Step::offset`].
    /// [`Program::program_text`] prints this number.
    pub fn safe_length(&self) -> u32 {
        self.safe_length
    }

    /// Decodes a [`Step::offset`]: the header that it counts from, and the offset in this header. Offsets in an Ethernet header
    /// count from two bytes before it.
    pub fn place(&self, offset: u32) -> (Header, u32) {
        let header = base(self.kind, offset);
        let name = [Header::Front, Header::Network, Header::Transport].get(header).copied();
        (name.unwrap_or(Header::Front), offset.saturating_sub(BASES.get(header).copied().unwrap_or(0)))
    }

    /// For each header (Ethernet header or packet data, IP, transport), the number of bytes that must be
    /// present for [`Program::steps`] to be valid.
    pub fn safe_lengths(&self) -> [u32; 3] {
        needs(self.kind, [&self.fast, &self.checked])
    }

    /// The program as text: one line for each step, the safe length and the alignment offset.
    pub fn program_text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Target::Output(_) = self.fast.root {
            writeln!(f, "all->{}", self.fast.root)?;
        }
        for (i, s) in self.fast.steps.iter().enumerate() {
            writeln!(f, "{i:2} {s}")?;
        }
        write!(f, "safe length {}\nalignment offset 0\n", self.safe_length)
    }
}

/// For each header, the number of bytes that the tests of the trees require.
fn needs(kind: OffsetBase, trees: [&Tree; 2]) -> [u32; 3] {
    let mut needs = [0u32; 3];
    for step in trees.iter().flat_map(|t| &t.steps) {
        let header = base(kind, step.offset);
        let need = step.need.saturating_sub(first(kind, header));
        needs[header] = needs[header].max(need);
    }
    needs
}
