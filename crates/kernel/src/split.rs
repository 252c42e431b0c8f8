// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cuts large programs into parts, which call each other by tail calls.
//!
//! A part ends where an element ends, or between the tests of a large decision tree. A map passes the state of a frame to the
//! next part: the words of the stack that are still needed. Values in registers are not stored, so a program is cut only where
//! all of them can be loaded from the frame again.
//!
//! The fragments of a program are in topological order, so jumps and tail calls lead forward only, and a frame passes each part at
//! most once.

mod facts;

use crate::assembly::Target;
use crate::code::Refused;
use crate::compile::{Fragment, Point, Way};
use crate::step::{Size, Step};
use facts::{Bytes, Facts};
use std::collections::HashMap;
use std::ops::Range;

/// The number of instructions up to which a part is filled. The kernel's verifier follows all paths of a part, and refuses it when they
/// have a million instructions together, or when more than 8,192 branches wait to be followed.
pub const PART: usize = 8000;
/// The most instructions of a part, so that the distances of jumps fit.
const LARGEST: usize = 30_000;
/// The most tail calls on the way of a frame (MAX_TAIL_CALL_CNT of the kernel).
pub(crate) const CALLS: usize = 33;

/// A place at which a part can begin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The words on the stack that are needed from here on.
    pub words: Vec<(i32, Size)>,
    /// The number of bytes that are known to be present.
    pub present: u32,
    /// Loads of the values that are needed.
    pub loads: Vec<Step>,
    /// The fragment, which says where its values are kept.
    pub fragment: usize,
}

/// Steps of a fragment that stay together.
#[derive(Debug)]
pub(crate) struct Unit {
    pub fragment: usize,
    pub steps: Range<usize>,
    /// The number of exits of the fragment before this unit.
    pub exit: usize,
    /// The places that it leads to.
    leads: Vec<Target>,
    /// The number of instructions.
    pub size: usize,
}

impl Unit {
    /// Whether the fragment begins here.
    pub fn begins(&self) -> bool {
        self.steps.start == 0
    }
}

/// The units of a program in their order, and the places at which parts can go on, each with its unit.
pub(crate) struct Units {
    pub all: Vec<Unit>,
    pub entries: HashMap<Target, (usize, Entry)>,
}

/// Returns the fragments that can be reached, each before those that it leads to.
fn sorted(fragments: &[Fragment]) -> Vec<usize> {
    let mut seen = vec![false; fragments.len()];
    let mut order = Vec::with_capacity(fragments.len());
    // Each entry is a fragment and the number of its ways that remain to be followed. The last way is followed first, so that the
    // fragment of the first way comes right after this one.
    let ways = |n: usize| fragments.get(n).map_or(0, |f| f.ways.len());
    let mut stack = vec![(0, ways(0))];
    seen.iter_mut().take(1).for_each(|s| *s = true);
    while let Some((number, rest)) = stack.pop() {
        let Some(at) = rest.checked_sub(1) else {
            order.push(number);
            continue;
        };
        stack.push((number, at));
        let way = fragments.get(number).and_then(|f| f.ways.get(at));
        if let Some(Way::Fragment(next)) = way
            && let Some(s) = seen.get_mut(*next)
            && !std::mem::replace(s, true)
        {
            stack.push((*next, ways(*next)));
        }
    }
    order.reverse();
    order
}

/// Cuts fragments into units. `points` are those at which packets go up.
pub(crate) fn units(fragments: &[Fragment], points: &[Point]) -> Units {
    let order = sorted(fragments);
    // The needs of a fragment follow from those of the later ones.
    let mut wanted: Vec<Bytes> = vec![0; fragments.len()];
    let mut found: Vec<Option<Facts>> = fragments.iter().map(|_| None).collect();
    for &number in order.iter().rev() {
        let Some(fragment) = fragments.get(number) else { continue };
        let facts = Facts::of(fragment, number, |way| match way {
            Way::Fragment(next) => wanted.get(*next).copied().unwrap_or(0),
            Way::Up(point) => points.get(*point as usize).map_or(0, |p| facts::stored(&p.state)),
            Way::Send { state, .. } | Way::Host { state, .. } => facts::end(state),
            Way::Drop => 0,
        });
        if let Some(w) = wanted.get_mut(number) {
            *w = facts.wanted;
        }
        if let Some(f) = found.get_mut(number) {
            *f = Some(facts);
        }
    }
    let mut units = Units { all: Vec::new(), entries: HashMap::new() };
    for &number in &order {
        if let Some((fragment, facts)) =
            fragments.get(number).zip(found.get_mut(number).and_then(Option::take))
        {
            units.add(fragment, number, facts);
        }
    }
    units
}

impl Units {
    fn add(&mut self, fragment: &Fragment, number: usize, facts: Facts) {
        let cuts = facts.cuts(&fragment.steps);
        let ends = cuts.iter().copied().skip(1).chain([fragment.steps.len()]);
        let (mut exit, first) = (0, self.all.len());
        for (from, to) in cuts.iter().copied().zip(ends) {
            let steps = fragment.steps.get(from..to).unwrap_or_default();
            let mut unit = Unit { fragment: number, steps: from..to, exit, leads: Vec::new(), size: 0 };
            for step in steps {
                unit.leads.extend(step.targets().into_iter().flatten().map(|l| Target::Label(number, l.0)));
                if matches!(step, Step::Exit(_)) {
                    if let Some(Way::Fragment(next)) = fragment.ways.get(exit) {
                        unit.leads.push(Target::Fragment(*next));
                    }
                    exit += 1;
                }
            }
            if let Some(label) = falls_to(fragment, to) {
                unit.leads.push(Target::Label(number, label));
            }
            self.all.push(unit);
        }
        for (at, entry) in facts.entries {
            let unit = first + cuts.partition_point(|c| *c <= at).saturating_sub(1);
            if let Some(Step::Bind(label)) = fragment.steps.get(at) {
                self.entries.insert(Target::Label(number, label.0), (unit, entry.clone()));
            }
            if at == 0 {
                self.entries.insert(Target::Fragment(number), (unit, entry));
            }
        }
    }

    /// Returns the units of each part. `limit` is the number of instructions up to which parts are filled, unless a frame would then pass
    /// through too many of them.
    ///
    /// # Errors
    /// A frame would pass through too many parts, however they are filled.
    pub fn parts(&self, limit: usize) -> Result<Vec<Range<usize>>, Refused> {
        let mut limit = limit.max(1);
        loop {
            let parts = self.filled(limit);
            if self.calls(&parts) <= CALLS {
                return Ok(parts);
            }
            if limit >= LARGEST {
                return Err(Refused(format!(
                    "the program is too large: a packet would pass through more than {} parts of it",
                    CALLS + 1
                )));
            }
            limit = limit.saturating_mul(2).min(LARGEST);
        }
    }

    fn filled(&self, limit: usize) -> Vec<Range<usize>> {
        let (mut parts, mut from, mut size) = (Vec::new(), 0, 0);
        for (at, unit) in self.all.iter().enumerate() {
            let same = |u: &&Unit| u.fragment == unit.fragment;
            let whole: usize = match unit.begins() {
                true => self.all.iter().skip(at).take_while(same).map(|u| u.size).sum(),
                false => 0,
            };
            // An element that fits into a part is not cut.
            let fits = size + unit.size <= limit && (whole > limit || size + whole <= limit);
            if size > 0 && !fits {
                parts.push(from..at);
                (from, size) = (at, 0);
            }
            size += unit.size;
        }
        parts.push(from..self.all.len());
        parts
    }

    /// The largest number of tail calls on the way of a frame.
    fn calls(&self, parts: &[Range<usize>]) -> usize {
        let mut calls = vec![0; parts.len()];
        for (number, range) in parts.iter().enumerate() {
            let so_far = calls.get(number).copied().unwrap_or(0);
            let leads = self.all.get(range.clone()).unwrap_or_default().iter().flat_map(|u| &u.leads);
            for target in leads {
                let to = self.entries.get(target).map(|(unit, _)| part_of(parts, *unit));
                if let Some(to) = to.filter(|to| *to > number)
                    && let Some(c) = calls.get_mut(to)
                {
                    *c = (*c).max(so_far + 1);
                }
            }
        }
        calls.into_iter().max().unwrap_or(0)
    }
}

/// The label at which the steps before number `at` of a fragment go on, if they do.
pub(crate) fn falls_to(fragment: &Fragment, at: usize) -> Option<u32> {
    let before = fragment.steps.get(at.checked_sub(1)?)?;
    match (before, fragment.steps.get(at)?) {
        (Step::Jump(_) | Step::Exit(_), _) => None,
        (_, Step::Bind(label)) => Some(label.0),
        _ => None,
    }
}

/// The part that has a unit.
pub(crate) fn part_of(parts: &[Range<usize>], unit: usize) -> usize {
    parts.partition_point(|p| p.end <= unit)
}

#[cfg(test)]
mod tests;
