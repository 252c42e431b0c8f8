// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decision trees in the kernel: a comparison for each test.

use super::patterns::Classify;
use castanet_classify::{Header, Output, Program, Step, Target};
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Size, Test};
use castanet_element::prelude::*;
use std::collections::BTreeMap;

/// The largest number of tests of a tree in the kernel. Their programs have many parts.
const STEPS: usize = 1 << 16;

/// The part of a word that a test compares: its offset in the word, its size, and the value in the order of memory. The mask is 0
/// if all bits count.
struct Field {
    skip: i32,
    size: Size,
    mask: u32,
    value: u32,
}

fn field(step: &Step) -> Field {
    let (mask, value) = (step.mask.to_be_bytes(), step.value.to_be_bytes());
    for (skip, byte) in value.iter().enumerate() {
        let only = |n: usize| {
            (0..4).all(|i| mask.get(i) == Some(&if (skip..skip + n).contains(&i) { 0xff } else { 0 }))
        };
        if only(1) {
            return Field { skip: skip as i32, size: Size::Byte, mask: 0, value: u32::from(*byte) };
        }
        if only(2)
            && let Some(half) = value.get(skip..).and_then(|v| v.first_chunk())
        {
            let value = u16::from_ne_bytes(*half).into();
            return Field { skip: skip as i32, size: Size::Half, mask: 0, value };
        }
    }
    let mask = u32::from_ne_bytes(mask);
    let mask = if mask == u32::MAX { 0 } else { mask };
    Field { skip: 0, size: Size::Word, mask, value: u32::from_ne_bytes(value) }
}

/// The labels of a tree while its code is written.
struct Tree<'a> {
    program: &'a Program,
    steps: Vec<Option<Label>>,
    outputs: BTreeMap<Output, Label>,
}

impl Tree<'_> {
    fn label(&mut self, target: Target, code: &mut Code<'_>) -> Label {
        match target {
            Target::Output(output) => *self.outputs.entry(output).or_insert_with(|| code.label()),
            Target::Step(at) => match self.steps.get_mut(at as usize) {
                Some(label) => *label.get_or_insert_with(|| code.label()),
                // INVARIANT: targets are steps of the program. If one were not, its packets would be dropped.
                None => self.label(Target::Output(Output::DROP), code),
            },
        }
    }
}

impl Classify {
    /// Describes the decision tree. Packets that lack a byte that it reads go up.
    pub(super) fn lower(&self, code: &mut Code<'_>) -> Lowered {
        let program = self.program();
        if program.steps().len() > STEPS {
            return Err("it has too many tests".into());
        }
        let short = code.label();
        // The tree is valid only for packets that have all these bytes: some patterns need a byte, whatever its value.
        let mut ends = program.safe_lengths();
        // Tests read whole words.
        for step in program.steps() {
            let (header, offset) = program.place(step.offset);
            let field = field(step);
            let end = offset + field.skip as u32 + field.size.bytes();
            let longest = match header {
                Header::Front => &mut ends[0],
                Header::Network => &mut ends[1],
                Header::Transport => &mut ends[2],
            };
            *longest = end.max(*longest);
        }
        let is_data = program.kind() == castanet_classify::OffsetBase::Data;
        let (network, transport) = match code.network() {
            _ if is_data => (0, 0),
            // The transport header is where the IP header says.
            Some(_) if ends[2] > 0 && code.plain_header().is_none() => {
                code.up();
                return Ok(());
            }
            Some((at, length)) => (at, at + length as i32),
            None => {
                code.drop(Reason::NoIpHeader as u16);
                return Ok(());
            }
        };
        if !is_data && ends[0] > 0 {
            return Err("it tests the Ethernet header before an IP header".into());
        }
        for (at, end) in [(0, ends[0]), (network, ends[1]), (transport, ends[2])] {
            if end > 0 {
                code.need_at(at, end, short);
            }
        }
        let mut tree = Tree { program, steps: vec![None; program.steps().len()], outputs: BTreeMap::new() };
        let root = tree.label(program.root(), code);
        code.jump(root);
        for (number, step) in program.steps().iter().enumerate() {
            // Targets come after the steps that refer to them, so steps without a label are never reached.
            let Some(label) = tree.steps.get(number).copied().flatten() else { continue };
            code.bind(label);
            let (header, offset) = tree.program.place(step.offset);
            let base = match header {
                Header::Front => 0,
                Header::Network => network,
                Header::Transport => transport,
            };
            let field = field(step);
            let mut found = code.load(base + offset as i32 + field.skip, field.size);
            if field.mask != 0 {
                found = code.compute(Arithmetic::And, found, field.mask);
            }
            let (yes, no) = (tree.label(step.yes, code), tree.label(step.no, code));
            code.branch(found, Test::Equal, field.value, yes);
            code.jump(no);
        }
        for (output, label) in tree.outputs {
            code.bind(label);
            match output.port() {
                Some(port) => code.next(port),
                None => code.drop(Reason::NoMatch as u16),
            }
        }
        code.bind(short);
        code.up();
        Ok(())
    }
}
