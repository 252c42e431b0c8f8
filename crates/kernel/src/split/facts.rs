// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts that decide where a fragment can be cut: what is needed at a step, and what is known there.

use super::Entry;
use crate::code::stack;
use crate::compile::{Fragment, Way};
use crate::state::{State, WORDS};
use crate::step::{Base, Label, Size, Step};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of the stack: bit `n` stands for the byte `n + 1` bytes before its end.
pub(super) type Bytes = u128;

/// The bytes that can be passed to another part: annotations, the end, and the ticket.
const PASSED: i32 = -stack::TICKET;

fn bytes(offset: i32, length: u32) -> Bytes {
    let bit = |n: u32| 1u128.checked_shl((-1 - offset).wrapping_sub_unsigned(n).cast_unsigned()).unwrap_or(0);
    (0..length).map(bit).fold(0, |all, b| all | b)
}

/// The end of a packet in this state, if it is on the stack.
pub(super) fn end(state: &State) -> Bytes {
    if state.shortened { bytes(stack::END, 8) } else { 0 }
}

/// The bytes that are on the stack for a packet in this state.
pub(super) fn stored(state: &State) -> Bytes {
    let words = state.dynamic_words().map(|w| bytes(stack::ANNOTATIONS + 4 * w as i32, 4));
    let ticket = if state.ticket { bytes(stack::TICKET, 8) } else { 0 };
    words.fold(end(state) | ticket, |all, w| all | w)
}

/// The values and bytes that are needed from a step on.
#[derive(Clone, Default)]
struct Needed {
    values: BTreeSet<u32>,
    bytes: Bytes,
}

/// The facts that hold at a step on all paths to it.
#[derive(Clone, Copy)]
struct Known {
    /// The number of bytes of the frame that are present.
    present: u32,
    /// The bytes of the stack that were stored on all paths.
    stored: Bytes,
}

impl Known {
    fn meet(self, other: Known) -> Known {
        Known { present: self.present.min(other.present), stored: self.stored & other.stored }
    }
}

/// The places of a fragment at which another part can go on.
pub(super) struct Facts {
    /// By the number of the step.
    pub entries: BTreeMap<usize, Entry>,
    /// The bytes of the stack that the fragment needs.
    pub wanted: Bytes,
}

impl Facts {
    /// Returns the facts of a fragment. `wanted` says what of the stack is needed when a packet leaves it on a way.
    pub fn of(fragment: &Fragment, number: usize, wanted: impl Fn(&Way) -> Bytes) -> Facts {
        let wanted: Vec<Bytes> = fragment.ways.iter().map(wanted).collect();
        let needed = needed(fragment, &wanted);
        let loads = Loads::of(&fragment.steps);
        let entries = known(fragment).into_iter().filter_map(|(at, known)| {
            let needed = needed.get(&at)?;
            let loads: Option<Vec<Step>> = needed.values.iter().map(|v| loads.again(*v, at, known)).collect();
            let words = words(needed.bytes, known.stored)?;
            Some((at, Entry { words, present: known.present, loads: loads?, fragment: number }))
        });
        let wanted = needed.get(&0).map_or(0, |n| n.bytes);
        Facts { entries: entries.collect(), wanted }
    }

    /// The steps before which the fragment can be cut, the first included: no jump from before leads to a later place at which
    /// another part cannot go on.
    pub fn cuts(&self, steps: &[Step]) -> Vec<usize> {
        let mut sources: HashMap<Label, usize> = HashMap::new();
        let mut closed: Vec<(usize, usize)> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            for label in step.targets().into_iter().flatten() {
                sources.entry(label).or_insert(at);
            }
            if let Step::Bind(label) = step
                && !self.entries.contains_key(&at)
                && let Some(from) = sources.get(label)
            {
                // Spans that overlap are one.
                let mut from = *from;
                while let Some((earlier, _)) = closed.pop_if(|(_, to)| *to > from) {
                    from = from.min(earlier);
                }
                closed.push((from, at));
            }
        }
        let is_open = |cut: &usize| {
            let next = closed.partition_point(|(_, to)| to < cut);
            closed.get(next).is_none_or(|(from, _)| cut <= from)
        };
        let mut cuts: Vec<usize> = self.entries.keys().copied().filter(is_open).collect();
        if cuts.first() != Some(&0) {
            cuts.insert(0, 0);
        }
        cuts
    }
}

/// The words of the stack that must be passed on. None if something is needed that cannot be.
fn words(needed: Bytes, stored: Bytes) -> Option<Vec<(i32, Size)>> {
    if needed >> PASSED != 0 {
        return None;
    }
    let annotations = (0..WORDS).map(|w| (stack::ANNOTATIONS + 4 * w as i32, Size::Word));
    let all = [(stack::TICKET, Size::Double), (stack::END, Size::Double)].into_iter().chain(annotations);
    all.filter(|(at, size)| needed & bytes(*at, size.bytes()) != 0)
        .map(|(at, size)| {
            let whole = bytes(at, size.bytes());
            (stored & whole == whole).then_some((at, size))
        })
        .collect()
}

/// Returns what is needed at the start of a fragment and where labels are, by the numbers of steps.
fn needed(fragment: &Fragment, wanted: &[Bytes]) -> HashMap<usize, Needed> {
    let mut found = HashMap::new();
    let mut labels: HashMap<Label, Needed> = HashMap::new();
    let (mut exits, mut now) = (wanted.iter().rev(), Needed::default());
    for (at, step) in fragment.steps.iter().enumerate().rev() {
        match step {
            Step::Exit(_) => {
                now = Needed { bytes: exits.next().copied().unwrap_or(0), ..Needed::default() };
            }
            Step::Jump(_) => now = Needed::default(),
            _ => {}
        }
        for there in step.targets().into_iter().flatten().filter_map(|l| labels.get(&l)) {
            now.values.extend(&there.values);
            now.bytes |= there.bytes;
        }
        if let Some(value) = step.computed() {
            now.values.remove(&value.0);
        }
        match *step {
            Step::Store { base: Base::Stack, offset, size, .. } => now.bytes &= !bytes(offset, size.bytes()),
            Step::Load { base: Base::Stack, offset, size, .. } => now.bytes |= bytes(offset, size.bytes()),
            // The first byte stands for the whole key.
            Step::LookUp { key, .. } => now.bytes |= bytes(key, 1),
            _ => {}
        }
        now.values.extend(step.used().into_iter().flatten().map(|v| v.0));
        if let Step::Bind(label) = step {
            labels.insert(*label, now.clone());
        }
        if at == 0 || matches!(step, Step::Bind(_)) {
            found.insert(at, now.clone());
        }
    }
    found
}

/// Returns what is known at the start of a fragment and where labels are, by the numbers of steps.
fn known(fragment: &Fragment) -> Vec<(usize, Known)> {
    let mut found = Vec::new();
    let mut labels: HashMap<Label, Known> = HashMap::new();
    let start = Known { present: fragment.state.present, stored: stored(&fragment.state) };
    let mut now = Some(start);
    for (at, step) in fragment.steps.iter().enumerate() {
        if let Step::Bind(label) = step
            && let Some(there) = labels.remove(label)
        {
            now = Some(now.map_or(there, |n| n.meet(there)));
        }
        let Some(here) = &mut now else { continue };
        if at == 0 || matches!(step, Step::Bind(_)) {
            found.push((at, *here));
        }
        if let Step::MoveStart { .. } = step {
            here.present = 0;
        }
        for label in step.targets().into_iter().flatten() {
            let there = labels.entry(label).or_insert(*here);
            *there = there.meet(*here);
        }
        match *step {
            Step::Present { end, .. } => here.present = here.present.max(end),
            Step::Store { base: Base::Stack, offset, size, .. } => here.stored |= bytes(offset, size.bytes()),
            Step::Jump(_) | Step::Exit(_) => now = None,
            _ => {}
        }
    }
    found
}

/// The values that are loaded from the frame, and the steps that change the frame.
struct Loads<'a> {
    /// The only step that computes a value, if it has only one.
    computed: HashMap<u32, Option<(usize, &'a Step)>>,
    /// The steps, each with the bytes that it changes.
    changes: Vec<(usize, i32, i32)>,
}

impl<'a> Loads<'a> {
    fn of(steps: &'a [Step]) -> Loads<'a> {
        let mut loads = Loads { computed: HashMap::new(), changes: Vec::new() };
        for (at, step) in steps.iter().enumerate() {
            if let Some(value) = step.computed() {
                loads.computed.entry(value.0).and_modify(|c| *c = None).or_insert(Some((at, step)));
            }
            match *step {
                Step::Store { base: Base::Frame, offset, size, .. } => {
                    loads.changes.push((at, offset, offset + size.bytes().cast_signed()));
                }
                Step::MoveStart { .. } => loads.changes.push((at, 0, i32::MAX)),
                _ => {}
            }
        }
        loads
    }

    /// The step that computes a value again at step `at`, if a load or a constant can.
    fn again(&self, value: u32, at: usize, known: Known) -> Option<Step> {
        let (made, step) = (*self.computed.get(&value)?)?;
        match *step {
            Step::Constant { .. } => Some(step.clone()),
            Step::Load { base: Base::Frame, offset, size, .. } => {
                let end = offset + size.bytes().cast_signed();
                let first = self.changes.partition_point(|c| c.0 < made);
                let mut since = self.changes.iter().skip(first).take_while(|c| c.0 < at);
                let same = since.all(|(_, from, to)| end <= *from || *to <= offset);
                (same && end.cast_unsigned() <= known.present).then(|| step.clone())
            }
            _ => None,
        }
    }
}
