// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interpreter: programs in a form for fast execution, and the loops that run them.

use crate::chain::Chains;
use crate::dag::{LEAF, base, first};
use crate::expr::BASES;
use crate::program::{OffsetBase, Output, Program, Shape, Step, Target, Tree};

/// The longest list of values that is searched linearly; longer lists use binary search. Also the limit on the
/// number of tests that are reordered.
pub(crate) const LINEAR: usize = 8;

/// A step of the fast loop. In memory, mask and value have the byte order of packets, so that loaded words need no byte
/// swap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastStep {
    pub(crate) offset: u32,
    /// All ones if the offset counts from the transport header, otherwise zero.
    pub(crate) transport: u32,
    pub(crate) mask: u32,
    pub(crate) value: u32,
    pub(crate) yes: u32,
    pub(crate) no: u32,
}

impl FastStep {
    pub(crate) fn new(kind: OffsetBase, s: &Step) -> FastStep {
        let header = base(kind, s.offset);
        FastStep {
            offset: s.offset - BASES[header],
            transport: if header == 2 { u32::MAX } else { 0 },
            mask: u32::from_ne_bytes(s.mask.to_be_bytes()),
            value: u32::from_ne_bytes(s.value.to_be_bytes()),
            yes: s.yes.raw(),
            no: s.no.raw(),
        }
    }

    /// A step that sends every packet to the same output. Like every step, it loads a word, so the packet must have at
    /// least one word.
    fn always(out: Output) -> FastStep {
        let leaf = Target::Output(out).raw();
        FastStep { offset: 0, transport: 0, mask: 0, value: 0, yes: leaf, no: leaf }
    }

    fn is_same_word(&self, other: &FastStep) -> bool {
        (self.offset, self.transport, self.mask) == (other.offset, other.transport, other.mask)
    }
}

/// The fast tree, by form.
#[derive(Clone, Debug)]
enum Fast {
    Always(Output),
    OneStep,
    /// The masked word of `step` is looked up in `values`. They are sorted if binary search is used.
    Values {
        step: FastStep,
        values: Vec<(u32, Output)>,
        otherwise: Output,
    },
    General(Vec<FastStep>),
    /// As [`Fast::General`], with long chains of tests of one word.
    Chained(Vec<FastStep>, Chains),
    /// The fast tree tests the Ethernet header too, which the fast loop cannot do. Such programs are rare, so they use
    /// the checked tree for all packets.
    Unsuited,
}

/// All data that classifying a packet accesses.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    kind: OffsetBase,
    /// The first test, which decides most packets. It is the root of the tree in every form but
    /// [`Fast::Values`].
    first: FastStep,
    fast: Fast,
    /// The numbers of bytes that must be present for the fast loop, because the loop loads whole words. `front` counts
    /// from the start of the packet data or of the IP header, and `transport` from the start of the transport header.
    front: usize,
    transport: usize,
}

impl Runner {
    pub(crate) fn new(kind: OffsetBase, fast: &Tree, loads: [u32; 3]) -> Runner {
        let [ether, network, transport] = loads.map(|n| n as usize);
        let front = if kind == OffsetBase::Data { ether } else { network };
        let mut steps: Vec<_> = fast.steps.iter().map(|s| FastStep::new(kind, s)).collect();
        let (first, form) = match (fast.root, &steps[..]) {
            _ if kind == OffsetBase::Ip && ether > 0 => (FastStep::always(Output::DROP), Fast::Unsuited),
            (Target::Output(out), _) => (FastStep::always(out), Fast::Always(out)),
            (_, [one]) => (*one, Fast::OneStep),
            (Target::Step(root), _) => values(&fast.steps, &steps).unwrap_or_else(|| {
                outputs_first(&mut steps, root);
                let chains = Chains::new(&mut steps);
                let first = steps.get(root as usize).copied();
                let form = match chains.is_empty() {
                    true => Fast::General(steps),
                    false => Fast::Chained(steps, chains),
                };
                (first.unwrap_or(FastStep::always(Output::DROP)), form)
            }),
        };
        Runner { kind, first, fast: form, front, transport }
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.fast {
            Fast::Always(out) if self.front == 0 && self.transport == 0 => Shape::Always(out),
            Fast::OneStep => Shape::OneStep,
            Fast::Values { .. } => Shape::Values,
            Fast::Always(_) | Fast::General(_) | Fast::Chained(..) | Fast::Unsuited => Shape::General,
        }
    }

    /// Classifies with the fast tree.
    ///
    /// INVARIANT: `data` is long enough for every word that the fast tree reads. The transport header starts at
    /// `transport`. If `data` were too short, the packet would be dropped, without a panic.
    #[inline(always)]
    fn fast(&self, data: &[u8], transport: usize) -> Output {
        let s = &self.first;
        // `data` is always long enough, unless the tree has no steps. Such a tree needs no word, and `rest` returns its
        // output.
        let Some(word) = load(data, s, transport) else { return self.rest(0, data, transport) };
        if word == s.value {
            if s.yes & LEAF != 0 { Output(s.yes & !LEAF) } else { self.rest(s.yes, data, transport) }
        } else if s.no & LEAF != 0 {
            Output(s.no & !LEAF)
        } else {
            self.rest(s.no, data, transport)
        }
    }

    /// Continues at step `next` after the first test.
    #[inline(never)]
    fn rest(&self, next: u32, data: &[u8], transport: usize) -> Output {
        match &self.fast {
            Fast::Always(out) => *out,
            Fast::Values { step, values, otherwise } => {
                let Some(word) = load(data, step, transport) else { return Output::DROP };
                if values.len() <= LINEAR {
                    return values.iter().find(|v| v.0 == word).map_or(*otherwise, |v| v.1);
                }
                let found = values.binary_search_by_key(&word, |v| v.0).ok();
                found.and_then(|i| values.get(i)).map_or(*otherwise, |v| v.1)
            }
            Fast::General(steps) => {
                let leaf = walk(steps, next, data, transport).unwrap_or(LEAF | Output::DROP.0);
                Output(leaf & !LEAF)
            }
            Fast::Chained(steps, chains) => {
                chained(steps, chains, next, data, transport).unwrap_or(Output::DROP)
            }
            Fast::OneStep | Fast::Unsuited => Output::DROP,
        }
    }
}

/// Follows the steps from target `at`, to the first target that is not the index of a step: a leaf, or an entry of a chain. None
/// if a word is missing.
///
/// Each outcome continues separately, so that it becomes a branch that the processor can predict. A conditional move would make
/// every step wait for the previous load. The steps form no cycle, so the loop ends.
#[inline(always)]
fn walk(steps: &[FastStep], at: u32, data: &[u8], transport: usize) -> Option<u32> {
    let Some(mut s) = steps.get(at as usize) else { return Some(at) };
    loop {
        let word = load(data, s, transport)?;
        if word == s.value {
            let Some(next) = steps.get(s.yes as usize) else { return Some(s.yes) };
            s = next;
        } else {
            let Some(next) = steps.get(s.no as usize) else { return Some(s.no) };
            s = next;
        }
    }
}

/// Follows the steps from target `at`, and searches the chains. None if a word is missing.
#[inline]
fn chained(steps: &[FastStep], chains: &Chains, at: u32, data: &[u8], transport: usize) -> Option<Output> {
    let mut end = walk(steps, at, data, transport)?;
    while end & LEAF == 0 {
        let (number, mut position) = chains.entered(end)?;
        let found = chains.get(number)?.search(|s| load(data, s, transport))?;
        // The steps behind a true step often lead back to the chain, to a later position.
        loop {
            end = walk(steps, found.target(position), data, transport)?;
            match chains.entered(end) {
                Some((same, later)) if same == number && end & LEAF == 0 => position = later,
                _ => break,
            }
        }
    }
    Some(Output(end & !LEAF))
}

/// The masked word of `s`.
#[inline(always)]
fn load(data: &[u8], s: &FastStep, transport: usize) -> Option<u32> {
    let at = s.offset as usize + (transport & s.transport as usize);
    let bytes = data.get(at..at + 4)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes) & s.mask)
}

/// The four bytes at `offset` in network order; missing bytes are zero. `start` is the offset of the first byte of
/// `data`.
fn partial_word(data: &[u8], offset: u32, start: u32) -> u32 {
    u32::from_be_bytes([0, 1, 2, 3].map(|i| {
        let at = (offset + i).checked_sub(start).map(|at| at as usize);
        at.and_then(|at| data.get(at)).copied().unwrap_or(0)
    }))
}

/// Converts the steps to a lookup of one word, if they all test the same word.
fn values(steps: &[Step], fast: &[FastStep]) -> Option<(FastStep, Fast)> {
    let (first, step) = (steps.first()?, *fast.first()?);
    let mut list = Vec::new();
    let mut otherwise = None;
    for (i, (s, f)) in steps.iter().zip(fast).enumerate() {
        let (Target::Output(out), true) = (s.yes, (s.offset, s.mask) == (first.offset, first.mask)) else {
            return None;
        };
        list.push((f.value, out));
        match s.no {
            Target::Step(next) if next as usize == i + 1 => {}
            Target::Output(out) if i + 1 == steps.len() => otherwise = Some(out),
            _ => return None,
        }
    }
    if list.len() > LINEAR {
        // The sort is stable, so among equal values the first one wins, as in the chain of tests.
        list.sort_by_key(|v| v.0);
        list.dedup_by_key(|v| v.0);
    }
    Some((FastStep { no: 0, ..step }, Fast::Values { step, values: list, otherwise: otherwise? }))
}

/// Reorders the chain of tests that starts at `root` and compares the same word with different values. Tests that lead
/// directly to an output move to the front. At most one test of the chain can succeed, so any order is correct. Packets
/// decided by one test are usually more frequent than packets that need several.
fn outputs_first(steps: &mut [FastStep], root: u32) {
    let mut chain: Vec<(usize, FastStep)> = Vec::new();
    let mut at = root;
    // If a step outside the chain leads to a test, that test must stay in place. So the chain ends before it.
    let named = |at: u32| steps.iter().flat_map(|s| [s.yes, s.no]).filter(|&t| t == at).count();
    while let Some(s) = steps.get(at as usize) {
        let alike = chain.iter().all(|(_, c)| c.is_same_word(s) && c.value != s.value);
        if !alike || chain.len() == LINEAR || named(at) > usize::from(at != root) {
            break;
        }
        chain.push((at as usize, *s));
        at = s.no;
    }
    let is_output = |s: &&(usize, FastStep)| s.1.yes & LEAF != 0;
    let ordered = chain.iter().filter(is_output).chain(chain.iter().filter(|s| !is_output(s)));
    for ((place, _), (_, test)) in chain.iter().zip(ordered) {
        if let Some(s) = steps.get_mut(*place) {
            (s.value, s.yes) = (test.value, test.yes);
        }
    }
}

/// The numbers of bytes that a packet must have for all words of [`Program::steps`] to lie in it. Steps that need a part of a
/// word only are loaded as whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastLengths {
    /// From the start of the packet data, or of the IP header.
    pub front: usize,
    /// From the start of the transport header.
    pub transport: usize,
}

impl Program {
    /// The lengths of packets for which [`Program::steps`] may be followed without a test of lengths, with loads of whole words.
    /// None if the program tests the Ethernet header in front of an IP header.
    pub fn fast_lengths(&self) -> Option<FastLengths> {
        let r = &self.runner;
        let lengths = FastLengths { front: r.front, transport: r.transport };
        (!matches!(r.fast, Fast::Unsuited)).then_some(lengths)
    }

    /// Whether the interpreter looks tests up instead of trying them, if each pattern has a few tests of which one is looked up.
    pub(crate) fn is_well_searched(&self) -> bool {
        match &self.runner.fast {
            Fast::General(steps) => steps.len() <= LINEAR,
            Fast::Chained(steps, chains) => chains.searched() * 8 >= steps.len(),
            Fast::Always(_) | Fast::OneStep | Fast::Values { .. } => true,
            Fast::Unsuited => false,
        }
    }

    /// Whether the interpreter searches long chains of tests, so that packets pass few of [`Program::steps`].
    pub fn is_searched(&self) -> bool {
        matches!(self.runner.fast, Fast::Chained(..))
    }

    /// Runs the checked tree, which tests lengths first. `headers` holds three slices: the Ethernet header or the
    /// packet data, the packet from the IP header on, and the packet from the transport header on.
    #[cold]
    fn classify_checked(&self, headers: [&[u8]; 3]) -> Output {
        let mut at = self.checked_root();
        loop {
            let step = match at {
                Target::Output(out) => return out,
                Target::Step(i) => self.checked_steps().get(i as usize),
            };
            let Some(step) = step else { return Output::DROP };
            let header = base(self.kind(), step.offset);
            let start = first(self.kind(), header);
            let data = headers[header];
            let there = data.len() >= step.need.saturating_sub(start) as usize;
            let yes = there && partial_word(data, step.offset, start) & step.mask == step.value;
            at = if yes { step.yes } else { step.no };
        }
    }

    /// Classifies packet data. For a program of kind [`OffsetBase::Ip`], `data` begins at the IP header.
    #[inline(always)]
    pub fn classify(&self, data: &[u8]) -> Output {
        let r = &self.runner;
        if r.kind == OffsetBase::Ip {
            return self.classify_ip(data);
        }
        if data.len() >= r.front { r.fast(data, 0) } else { self.classify_checked([data, &[], &[]]) }
    }

    /// Classifies a packet. `network` begins at its IP header and extends to the end of the packet. The
    /// transport header's offset comes from the IP header's length field (RFC 791 §3.1). Tests on Ethernet
    /// addresses are false.
    #[inline]
    pub fn classify_ip(&self, network: &[u8]) -> Output {
        self.classify_frame(&[], network)
    }

    /// Like [`Program::classify_ip`]. `ether` holds the packet's Ethernet header, or is empty if it has none.
    #[inline]
    pub fn classify_frame(&self, ether: &[u8], network: &[u8]) -> Output {
        let r = &self.runner;
        if r.kind == OffsetBase::Data {
            return self.classify(network);
        }
        let header = network.first().map_or(0, |b| usize::from(b & 0x0f) * 4);
        let long_enough = network.len() >= r.front && network.len() >= header + r.transport;
        if long_enough && !matches!(r.fast, Fast::Unsuited) {
            return r.fast(network, header);
        }
        self.classify_checked([ether, network, network.get(header..).unwrap_or_default()])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests;
