// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decision trees as cranelift's intermediate code: a block for each test, and one for each output.

use crate::memory::{entry, signature};
use castanet_classify::{FastLengths, Header, Output, Program, Step, Target};
use castanet_native::SHORT;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use std::collections::HashMap;

/// The words lie in the packet, and nothing changes it meanwhile. They must not be read before the lengths are tested.
const FLAGS: MemFlagsData = MemFlagsData::new().with_notrap().with_readonly();

/// The shortest chain of tests of one field that becomes a switch, which searches for the value.
const SWITCH: usize = 5;

/// Returns the function that classifies packets of these lengths with `program.steps()`.
pub(crate) fn function(program: &Program, lengths: FastLengths, module: &JITModule) -> Context {
    let mut context = module.make_context();
    context.func.signature = signature(module, 2, &[types::I32]);
    let mut builders = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builders);
    let entry = entry(&mut builder);
    let (data, length) = match *builder.block_params(entry) {
        [data, length, ..] => (data, length),
        // The signature has two parameters.
        _ => unreachable!("a function without parameters"),
    };
    let short = builder.create_block();
    builder.set_cold_block(short);
    let transport = lengths_hold(&mut builder, lengths, (data, length), short);
    let mut lower = Lower {
        program,
        builder,
        bases: [data, transport],
        steps: vec![None; program.steps().len()],
        outputs: HashMap::new(),
        switches: switches(program),
    };
    let root = lower.block(program.root());
    lower.builder.ins().jump(root, &[]);
    // Targets come after the steps that refer to them, so all blocks that can be reached are known when their turn comes.
    for at in 0..program.steps().len() {
        lower.step(at);
    }
    let outputs =
        std::mem::take(&mut lower.outputs).into_iter().map(|(output, block)| (block, output.number()));
    for (block, number) in outputs.chain([(short, SHORT)]) {
        lower.builder.switch_to_block(block);
        let number = lower.builder.ins().iconst(types::I32, i64::from(number));
        lower.builder.ins().return_(&[number]);
    }
    lower.builder.seal_all_blocks();
    lower.builder.finalize(module.target_config());
    context
}

/// Leads packets that are too short to the block `short`. Returns the address of the transport header, or of the packet if the
/// program does not read this header.
fn lengths_hold(
    builder: &mut FunctionBuilder<'_>,
    lengths: FastLengths,
    (data, length): (Value, Value),
    short: Block,
) -> Value {
    let longer = |builder: &mut FunctionBuilder<'_>, least: Value| {
        let next = builder.create_block();
        let enough = builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, length, least);
        builder.ins().brif(enough, next, &[], short, &[]);
        builder.switch_to_block(next);
    };
    let pointer = builder.func.dfg.value_type(data);
    // The length of the IP header is in its first byte (RFC 791 section 3.1).
    let front = lengths.front.max(usize::from(lengths.transport > 0));
    let least = builder.ins().iconst(pointer, front as i64);
    longer(builder, least);
    if lengths.transport == 0 {
        return data;
    }
    let first = builder.ins().uload8(pointer, FLAGS, data, 0);
    let words = builder.ins().band_imm_s(first, 0x0f);
    let header = builder.ins().ishl_imm_u(words, 2);
    let least = builder.ins().iadd_imm_s(header, lengths.transport as i64);
    longer(builder, least);
    builder.ins().iadd(data, header)
}

/// For each step, how many targets name it.
fn named(program: &Program) -> Vec<u32> {
    let mut named = vec![0; program.steps().len()];
    let targets = program.steps().iter().flat_map(|s| [s.yes, s.no]);
    for target in targets.chain([program.root()]) {
        if let Target::Step(at) = target
            && let Some(n) = named.get_mut(at as usize)
        {
            *n += 1;
        }
    }
    named
}

/// For each step, the steps from it on that test one field and that nothing but the step before leads to, if they are enough for a
/// switch. Empty for all other steps, and for those behind the first of a switch.
fn switches(program: &Program) -> Vec<Vec<Step>> {
    let named = named(program);
    let mut switches = vec![Vec::new(); named.len()];
    let mut inside = vec![false; named.len()];
    // Targets come after the steps that refer to them, so the first step of a chain comes first.
    for at in 0..named.len() {
        if inside.get(at) == Some(&true) {
            continue;
        }
        let mut chain: Vec<(usize, Step)> = Vec::new();
        let mut next = at;
        while let Some(step) = program.steps().get(next)
            && (next == at || named.get(next) == Some(&1))
            && chain.last().is_none_or(|(_, last)| (last.offset, last.mask) == (step.offset, step.mask))
        {
            chain.push((next, *step));
            match step.no {
                Target::Step(no) => next = no as usize,
                Target::Output(_) => break,
            }
        }
        if chain.len() >= SWITCH {
            for &(i, _) in chain.iter().skip(1) {
                inside.get_mut(i).into_iter().for_each(|i| *i = true);
            }
            switches.get_mut(at).into_iter().for_each(|s| *s = chain.iter().map(|c| c.1).collect());
        }
    }
    switches
}

/// The largest number of tests that a packet passes. A switch counts as the tests of a binary search.
pub(crate) fn depth(program: &Program) -> usize {
    let mut depths = vec![0usize; program.steps().len()];
    let switches = switches(program);
    let of = |depths: &[usize], target: Target| match target {
        Target::Step(at) => depths.get(at as usize).copied().unwrap_or(0),
        Target::Output(_) => 0,
    };
    // Targets come after the steps that refer to them.
    for (at, (step, chain)) in program.steps().iter().zip(&switches).enumerate().rev() {
        let depth = if !chain.is_empty() {
            let targets = chain.iter().map(|s| s.yes).chain(chain.last().map(|s| s.no));
            let longest = targets.map(|t| of(&depths, t)).max().unwrap_or(0);
            longest + chain.len().ilog2() as usize + 1
        } else {
            1 + of(&depths, step.yes).max(of(&depths, step.no))
        };
        if let Some(d) = depths.get_mut(at) {
            *d = depth;
        }
    }
    of(&depths, program.root())
}

/// The part of a word that a test compares, as the processor reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Field {
    /// 0: packet data or the IP header; 1: the transport header.
    base: usize,
    offset: i32,
    size: Type,
    /// The bits that count; None if all of them do.
    mask: Option<u32>,
}

/// Returns the field that a step compares, and the value that it must have.
fn field(program: &Program, step: &Step) -> (Field, u32) {
    let (header, offset) = program.place(step.offset);
    let base = usize::from(header == Header::Transport);
    let (mask, value) = (step.mask.to_be_bytes(), step.value.to_be_bytes());
    let whole = |at: usize, len: usize| {
        let inside = |i: usize| (at..at + len).contains(&i);
        (0..4).all(|i| mask[i] == if inside(i) { 0xff } else { 0 })
    };
    let part = |at: usize, size: Type, value: u32| {
        (Field { base, offset: offset.saturating_add(at as u32) as i32, size, mask: None }, value)
    };
    for at in 0..4 {
        if whole(at, 1) {
            return part(at, types::I8, u32::from(value[at]));
        }
        if at < 3 && whole(at, 2) {
            return part(at, types::I16, u32::from(u16::from_ne_bytes([value[at], value[at + 1]])));
        }
    }
    let mask = u32::from_ne_bytes(mask);
    let field =
        Field { base, offset: offset as i32, size: types::I32, mask: (mask != u32::MAX).then_some(mask) };
    (field, u32::from_ne_bytes(value))
}

struct Lower<'a, 'b> {
    program: &'a Program,
    builder: FunctionBuilder<'b>,
    /// The addresses of packet data or the IP header, and of the transport header.
    bases: [Value; 2],
    /// The blocks of the steps that other blocks lead to.
    steps: Vec<Option<Block>>,
    outputs: HashMap<Output, Block>,
    switches: Vec<Vec<Step>>,
}

impl Lower<'_, '_> {
    /// Returns the block of a target.
    fn block(&mut self, target: Target) -> Block {
        match target {
            Target::Output(output) => {
                *self.outputs.entry(output).or_insert_with(|| self.builder.create_block())
            }
            Target::Step(at) => match self.steps.get_mut(at as usize) {
                Some(block) => *block.get_or_insert_with(|| self.builder.create_block()),
                // INVARIANT: targets are steps of the program. If one were not, its packets would be dropped.
                None => self.block(Target::Output(Output::DROP)),
            },
        }
    }

    /// Fills the block of a step, if any packet reaches it.
    fn step(&mut self, at: usize) {
        let (Some(Some(block)), Some(step)) = (self.steps.get(at).copied(), self.program.steps().get(at))
        else {
            return;
        };
        self.builder.switch_to_block(block);
        let chain = self.switches.get_mut(at).map(std::mem::take).unwrap_or_default();
        let (field, value) = field(self.program, step);
        let loaded = self.load(field);
        if !chain.is_empty() {
            return self.switch(&chain, loaded);
        }
        let equal = self.builder.ins().icmp_imm_s(IntCC::Equal, loaded, constant(field.size, value));
        let (yes, no) = (self.block(step.yes), self.block(step.no));
        self.builder.ins().brif(equal, yes, &[], no, &[]);
    }

    fn switch(&mut self, chain: &[Step], loaded: Value) {
        let mut targets = HashMap::new();
        for step in chain {
            // The first of equal values decides.
            let value = u128::from(field(self.program, step).1);
            targets.entry(value).or_insert(step.yes);
        }
        let mut switch = Switch::new();
        for (value, target) in targets {
            let block = self.block(target);
            switch.set_entry(value, block);
        }
        let otherwise = self.block(chain.last().map_or(Target::Output(Output::DROP), |s| s.no));
        switch.emit(&mut self.builder, loaded, otherwise);
    }

    /// Reads a field of the packet.
    fn load(&mut self, field: Field) -> Value {
        let base = self.bases.get(field.base).copied().unwrap_or(self.bases[0]);
        let loaded = self.builder.ins().load(field.size, FLAGS, base, field.offset);
        match field.mask {
            Some(mask) => self.builder.ins().band_imm_s(loaded, constant(field.size, mask)),
            None => loaded,
        }
    }
}

/// A number as cranelift writes constants of a type: extended with its sign.
fn constant(size: Type, n: u32) -> i64 {
    match size {
        types::I8 => i64::from(n as u8 as i8),
        types::I16 => i64::from(n as u16 as i16),
        _ => i64::from(n as i32),
    }
}
