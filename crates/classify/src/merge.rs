// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long lists of rules, divided so that a packet is compared with few of them instead of with one after the other.
//!
//! A rule requires bits of words, and bytes that must be present ([`Facts::assume`]). A *cut* tests one bit.
//! Behind its `yes` are the rules that do not require the bit to be clear, behind its `no` those that do not require it to be set,
//! both in their order; rules that leave the bit open are in both ("A modular approach to packet classification", INFOCOM 2000,
//! describes trees of this kind). The longest list is cut first, until all lists are short, or the copies of rules are too many.
//!
//! Many rules leave many bits open, so cuts alone would copy them too often. A list is not cut if the interpreter can search it
//! (`chain`) and finds few rules: then each rule begins with its most selective test (`order`), and the rest of its tests is
//! reached only by packets that pass this one.

mod order;
mod rules;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::BinaryHeap;

use crate::dag::{DROP, Dag, LEAF, MAX_NODES, Node, TooLarge};
use crate::expr::{Atom, Expr};
use crate::facts::Facts;
use crate::optimise::{optimise_part, without_facts};
use crate::program::OffsetBase;
use order::Ordered;
pub(crate) use rules::Rules;

/// Lists of this length are not cut.
const FEW: usize = 3;
/// In longer lists, the rules begin with their most selective tests, so that the interpreter can search the list.
const LONG: usize = 16;
/// The shortest list that is searched instead of divided. Machine code is made of shorter ones, which it cannot search.
const SEARCHED: usize = 256;
/// If a search finds no more rules than this, the list is divided only by tests that copy no rule and that no search makes.
const FOUND: usize = 8;
/// If a cut copies all rules of a list, a search may find so many times more rules than [`FOUND`].
const COPY: usize = 40;
/// The inequalities that are remembered for each word on the way to a list.
const KEEP: usize = 16;
/// Limit on the rules that are looked at to choose all cuts.
const WORK: usize = 2_000_000;
/// Limit on the tests of the rules in all lists, for each test of the rules. Each rule in two lists counts twice.
const GROWTH: usize = 2;

/// The rules that may match a packet of which some bits are known.
struct Part {
    /// Indices of rules, in their order.
    rules: Vec<u32>,
    /// The facts that the cuts before have shown.
    known: Facts,
    /// The test, and the index of the part behind `yes`. The part behind `no` is the next one.
    cut: Option<(Atom, usize)>,
}

/// A list of rules in parts. INVARIANT: the parts behind a cut have larger indices than the part that it divides.
pub(crate) struct Parts<'a> {
    kind: OffsetBase,
    exprs: Vec<&'a Expr>,
    /// For each rule, its number in the list that was given.
    numbers: Vec<u32>,
    parts: Vec<Part>,
}

/// The rules of a part.
fn list<'a>(exprs: &[&'a Expr], part: &Part) -> Vec<&'a Expr> {
    part.rules.iter().filter_map(|&rule| exprs.get(rule as usize).copied()).collect()
}

impl<'a> Parts<'a> {
    /// Divides a list of rules. None if neither cuts nor searches help.
    pub(crate) fn new(mut all: Rules<'a>) -> Option<Parts<'a>> {
        let (kind, exprs, numbers) =
            (all.kind, std::mem::take(&mut all.exprs), std::mem::take(&mut all.numbers));
        let known = Facts::new(kind, false);
        let rules = all.remaining(0..exprs.len() as u32, None, &known);
        let mut size = all.size(&rules);
        let most = (size * GROWTH).min(2 * MAX_NODES);
        let mut work = 0;
        let mut searched = false;
        let mut lists = BinaryHeap::from([(rules.len(), 0)]);
        let mut parts = vec![Part { rules, known, cut: None }];
        while let Some((length, at)) = lists.pop()
            && length > FEW
            && work < WORK
        {
            let Some(part) = parts.get_mut(at) else { continue };
            work += length;
            let ordered = (length >= SEARCHED).then(|| Ordered::new(&list(&exprs, part), &part.known));
            let found = ordered.as_ref().and_then(|o| o.found(kind));
            searched |= found.is_some();
            let offsets = ordered.map(|o| o.offsets()).filter(|_| found.is_some_and(|f| f <= FOUND));
            let Some((atom, copies)) = all.cut(part, offsets.as_deref()) else { continue };
            // A search costs little if it finds few rules, so it is better than many copies of rules.
            if found.is_some_and(|f| f * length <= FOUND * (length + COPY * copies)) && offsets.is_none() {
                continue;
            }
            let [yes, no] = [true, false].map(|outcome| {
                let known = part.known.learn(&atom, outcome, KEEP);
                let rules = all.remaining(part.rules.iter().copied(), Some((&atom, outcome)), &known);
                Part { rules, known, cut: None }
            });
            let grown = size - all.size(&part.rules) + all.size(&yes.rules) + all.size(&no.rules);
            if grown > most {
                continue;
            }
            size = grown;
            let next = parts.len();
            if let Some(part) = parts.get_mut(at) {
                part.cut = Some((atom, next));
            }
            lists.extend([(yes.rules.len(), next), (no.rules.len(), next + 1)]);
            parts.extend([yes, no]);
        }
        // Without searches, packets must be compared with less than half of the rules on average.
        let lists = parts.iter().filter(|p| p.cut.is_none()).map(|p| p.rules.len());
        let (sum, squares) = lists.fold((0, 0), |(sum, squares), n| (sum + n, squares + n * n));
        let helps = searched || squares * 2 <= sum * parts.first().map_or(0, |p| p.rules.len());
        helps.then_some(Parts { kind, exprs, numbers, parts })
    }

    /// The tree of the parts. `actions` maps rules to outputs if the mapping is not one to one. If the tree is too large, the last
    /// cuts are left out. None if the tree is still too large.
    pub(crate) fn tree(&self, actions: Option<&[u32]>, all_present: bool) -> Option<(Dag, u32)> {
        [0, 2].into_iter().find_map(|fewer| {
            let count = (self.parts.len() >> fewer) | 1;
            self.first(count.min(self.parts.len()), actions, all_present).ok()
        })
    }

    /// The tree of the first `count` parts.
    fn first(
        &self,
        count: usize,
        actions: Option<&[u32]>,
        all_present: bool,
    ) -> Result<(Dag, u32), TooLarge> {
        let parts = self.parts.get(..count).unwrap_or(&self.parts);
        let cut = |part: &Part| part.cut.filter(|(_, yes)| yes + 1 < count);
        let mut known = vec![Facts::new(self.kind, all_present); parts.len()];
        for (at, part) in parts.iter().enumerate() {
            let Some((atom, yes)) = cut(part) else { continue };
            for (behind, outcome) in [(yes, true), (yes + 1, false)] {
                let facts = known.get(at).map(|k| k.learn(&atom, outcome, KEEP));
                if let (Some(facts), Some(place)) = (facts, known.get_mut(behind)) {
                    *place = facts;
                }
            }
        }
        let mut out = Dag::new(self.kind);
        let mut roots = vec![LEAF | DROP; parts.len()];
        for (at, (part, known)) in parts.iter().zip(&known).enumerate().rev() {
            let root = match cut(part) {
                Some((atom, behind)) => {
                    let find = |at: usize| roots.get(at).copied().unwrap_or(LEAF | DROP);
                    let (yes, no) = (find(behind), find(behind + 1));
                    // With all bytes present, more is known than when the test was chosen.
                    match known.decide(&atom) {
                        Some(true) => yes,
                        Some(false) => no,
                        None => out.merged_node(Node { atom, yes, no })?,
                    }
                }
                None => {
                    let rules = list(&self.exprs, part);
                    let output = |at: usize| {
                        let rule = part.rules.get(at).and_then(|r| self.numbers.get(*r as usize).copied());
                        let rule = rule.unwrap_or(DROP);
                        LEAF | actions.map_or(rule, |a| a.get(rule as usize).copied().unwrap_or(DROP))
                    };
                    let mut dag = Dag::new(self.kind);
                    let mut root = LEAF | DROP;
                    if rules.len() > LONG {
                        let ordered = Ordered::new(&rules, known);
                        for at in (0..rules.len()).rev() {
                            root = ordered.compile(at, &mut dag, output(at), root)?;
                        }
                        without_facts(&dag, root, all_present, &mut out)?
                    } else {
                        for (at, e) in rules.iter().enumerate().rev() {
                            root = dag.compile(e, output(at), root)?;
                        }
                        optimise_part(&dag, root, known, all_present, &mut out)?
                    }
                }
            };
            if let Some(place) = roots.get_mut(at) {
                *place = root;
            }
        }
        Ok((out, roots.first().copied().unwrap_or(LEAF | DROP)))
    }
}
