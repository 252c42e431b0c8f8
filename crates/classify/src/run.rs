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
    fn new(kind: OffsetBase, s: &Step) -> FastStep {
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
                let mut at = next;
                loop {
                    let Some(end) = walk(steps, at, data, transport) else { return Output::DROP };
                    if end & LEAF != 0 {
                        return Output(end & !LEAF);
                    }
                    let Some((chain, position)) = chains.entered(end) else { return Output::DROP };
                    let Some(word) = load(data, chain.word(), transport) else { return Output::DROP };
                    at = chain.target(position, word);
                }
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
mod tests {
    use super::*;

    /// Patterns of two words, with few and with many tests of the first word: each packet takes the first pattern that
    /// matches, and most programs have chains.
    #[test]
    fn chains_are_searched_from_every_entry() {
        let mut state = 0x5eed_0005u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut searched = 0;
        for count in [5, 12, 40, 300, 2000] {
            let range = count / 2 + 3;
            let rules: Vec<(usize, usize)> = (0..count).map(|_| (below(range), below(4))).collect();
            let texts: Vec<String> = rules.iter().map(|(a, b)| format!("0/{a:08x} 4/{b:08x}")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let program = Program::from_classifier(&texts).unwrap().0;
            searched += usize::from(matches!(program.runner.fast, Fast::Chained(..)));
            for (a, b) in (0..range + 2).flat_map(|a| (0..5).map(move |b| (a, b))) {
                let data = [(a as u32).to_be_bytes(), (b as u32).to_be_bytes()].concat();
                let want = rules.iter().position(|&rule| rule == (a, b));
                assert_eq!(program.classify(&data).port(), want, "{count} rules, {a} {b}");
            }
        }
        assert!(searched >= 3, "{searched} programs with chains");
    }

    /// Random steps, with chains that other steps enter anywhere, with values that occur again in a chain, and with masks of
    /// different lengths.
    #[test]
    fn chains_end_where_their_steps_end() {
        let mut random = 0x5eed_0006u64;
        let mut below = |n: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) as u32) % n
        };
        let (mut inside, mut mixed) = (0, 0);
        for round in 0..600 {
            let count = 40;
            let mut word = 0;
            let masks: &[u32] =
                [&[0xff][..], &[0xff, 0xfe, 0xf0, 0xfc, 0], &[0x0f, 0xf0, 0x3c, 0xff]][round % 3];
            let steps: Vec<FastStep> = (0..count)
                .map(|i| {
                    if below(14) == 0 {
                        word = 4 - word;
                    }
                    let later = i + 1 + below(count);
                    let yes = if later < count { later } else { LEAF | i };
                    let no = if i + 1 < count { i + 1 } else { LEAF | 1000 };
                    let mask = masks[below(masks.len() as u32) as usize];
                    let [mask, value] =
                        [mask, (below(13) * 21) & mask].map(|n: u32| u32::from_ne_bytes(n.to_be_bytes()));
                    FastStep { offset: word, transport: 0, mask, value, yes, no }
                })
                .collect();
            let mut changed = steps.clone();
            let chains = Chains::new(&mut changed);
            let positions = changed.iter().filter_map(|s| Some(chains.entered(s.yes)?.1));
            inside += positions.filter(|&p| p > 0).count();
            mixed += usize::from(!chains.is_empty() && round % 3 == 1);
            let runner = Runner {
                kind: OffsetBase::Data,
                first: changed[0],
                fast: Fast::Chained(changed, chains),
                front: 8,
                transport: 0,
            };
            for (a, b) in (0..256u32).flat_map(|a| (0..256u32).step_by(21).map(move |b| (a, b))) {
                for (a, b) in [(a, b), (b, a)] {
                    let data = [a.to_be_bytes(), b.to_be_bytes()].concat();
                    let want = walk(&steps, 0, &data, 0).map(|leaf| Output(leaf & !LEAF));
                    assert_eq!(Some(runner.fast(&data, 0)), want, "{steps:?} {a} {b}");
                }
            }
        }
        assert!(
            inside > 500 && mixed > 100,
            "chains were entered {inside} times behind their first step, {mixed} mixed"
        );
    }

    /// Filters of nets of all lengths. The first rule that matches decides, and no rule is tried.
    #[test]
    fn nets_of_different_lengths_are_searched() {
        let mut random = 0x5eed_0007u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 32) as u32
        };
        let nets: Vec<(u32, u32)> = (0..800)
            .map(|_| {
                let mask = u32::MAX << (next() % 25);
                (next() & 0x0fff_ffff & mask, mask)
            })
            .collect();
        let rule = |(i, (net, mask)): (usize, &(u32, u32))| {
            let [net, mask] = [*net, *mask].map(std::net::Ipv4Addr::from);
            format!("{} src net {net} mask {mask}", i % 7)
        };
        let rules: Vec<String> = nets.iter().enumerate().map(rule).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let program = Program::from_ip_filter(&rules, &crate::NoNames, 7).unwrap().0;
        let Fast::Chained(steps, chains) = &program.runner.fast else { panic!("{:?}", program.runner.fast) };
        let mut found = 0;
        for round in 0..20_000 {
            let (net, mask) = nets[round % nets.len()];
            let source = if round % 3 == 0 { next() & 0x0fff_ffff } else { net | (next() & !mask) };
            let mut packet = [0u8; 20];
            packet[0] = 0x45;
            packet[12..16].copy_from_slice(&source.to_be_bytes());
            let want = nets.iter().position(|(net, mask)| source & mask == *net).map(|i| i % 7);
            assert_eq!(program.classify_ip(&packet).port(), want, "{source:08x}");
            let end = walk(steps, program.runner.first.no, &packet, 20).unwrap();
            found += usize::from(chains.entered(end).is_some());
        }
        assert!(found > 19_000, "{found}");
    }
}
