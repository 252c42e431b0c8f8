// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about a packet, established along one path through the tree.

use crate::dag::base;
use crate::expr::{Atom, Expr};
use crate::program::OffsetBase;

/// An inequality: the fact that a test has failed. Either the word is not `value` under `mask`, or the packet ends
/// before `need`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Unequal {
    mask: u32,
    value: u32,
    need: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Word {
    offset: u32,
    /// The bits whose values are known.
    mask: u32,
    /// The values of these bits.
    value: u32,
    unequal: Vec<Unequal>,
}

/// The facts known on a path. Dropping facts is sound; it only leaves redundant tests in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Facts {
    kind: OffsetBase,
    /// For each header, an offset, coded as `OffsetBase` says. All bytes before this offset are known to be present.
    min: [u32; 3],
    /// For each header, an offset, coded as `OffsetBase` says. All bytes at or after this offset are known to be
    /// missing. `u32::MAX` if no bytes are known to be missing.
    max: [u32; 3],
    /// What is known about each word, sorted by offset.
    words: Vec<Word>,
}

impl Facts {
    /// Makes the facts at the start of a path. With `all_present`, all bytes are known to be present. Otherwise nothing
    /// is known.
    pub(crate) fn new(kind: OffsetBase, all_present: bool) -> Facts {
        let min = if all_present { u32::MAX } else { 0 };
        Facts { kind, min: [min; 3], max: [u32::MAX; 3], words: Vec::new() }
    }

    /// The number of facts: one for each word, plus one for each inequality.
    pub(crate) fn size(&self) -> usize {
        self.words.iter().map(|w| 1 + w.unequal.len()).sum()
    }

    fn word(&self, offset: u32) -> Option<&Word> {
        let at = self.words.binary_search_by_key(&offset, |w| w.offset).ok()?;
        self.words.get(at)
    }

    /// The outcome of the test `atom`; `None` if the known facts do not determine it.
    pub(crate) fn decide(&self, atom: &Atom) -> Option<bool> {
        let header = base(self.kind, atom.offset);
        let (min, max) = (self.min[header], self.max[header]);
        if atom.need > max {
            return Some(false);
        }
        let there = atom.need <= min;
        let Some(word) = self.word(atom.offset) else {
            return (atom.mask == 0 && there).then_some(true);
        };
        if (word.value ^ atom.value) & word.mask & atom.mask != 0 {
            return Some(false);
        }
        if atom.mask & !word.mask == 0 && there {
            return Some(true);
        }
        // The outcome is false if every word that passes this test also passes a test that is known to have failed.
        let holds = atom.need.max(min);
        let refuted = |u: &Unequal| {
            u.mask & !(atom.mask | word.mask) == 0
                && (u.value ^ atom.value) & u.mask & atom.mask == 0
                && u.need <= holds
        };
        word.unequal.iter().any(refuted).then_some(false)
    }

    /// The facts that are known after the undecided test `atom` had this `outcome`. Keeps at most `keep` inequalities
    /// per word.
    pub(crate) fn learn(&self, atom: &Atom, outcome: bool, keep: usize) -> Facts {
        let mut facts = self.clone();
        let header = base(self.kind, atom.offset);
        let at = match facts.words.binary_search_by_key(&atom.offset, |w| w.offset) {
            Ok(at) => at,
            Err(at) => {
                let word = Word { offset: atom.offset, mask: 0, value: 0, unequal: Vec::new() };
                facts.words.insert(at, word);
                at
            }
        };
        if let Some(word) = facts.words.get_mut(at) {
            if outcome {
                word.mask |= atom.mask;
                word.value |= atom.value;
                facts.min[header] = facts.min[header].max(atom.need);
            } else {
                word.unequal.push(Unequal { mask: atom.mask, value: atom.value, need: atom.need });
            }
        }
        for word in &mut facts.words {
            let header = base(self.kind, word.offset);
            word.settle(facts.min[header], &mut facts.max[header], keep);
        }
        facts.words.retain(|w| w.mask != 0 || !w.unequal.is_empty());
        facts
    }

    /// The facts that are known if `e` has this `outcome`; `None` if it cannot have it. Keeps no inequalities. Each test that is
    /// looked at is taken from `effort`; what is left when it is used up teaches nothing. The parsers limit the recursion depth by
    /// limiting the depth of `e`.
    pub(crate) fn assume(&self, e: &Expr, outcome: bool, effort: &mut usize) -> Option<Facts> {
        if *effort == 0 {
            return Some(self.clone());
        }
        *effort = effort.saturating_sub(1 + self.words.len());
        match e {
            Expr::Const(b) => (*b == outcome).then(|| self.clone()),
            Expr::Atom(atom) => match self.decide(atom) {
                Some(decided) => (decided == outcome).then(|| self.clone()),
                None => Some(self.learn(atom, outcome, 0)),
            },
            Expr::Not(e) => self.assume(e, !outcome, effort),
            // All parts have the outcome.
            Expr::And(v) | Expr::Or(v) if matches!(e, Expr::And(_)) == outcome => {
                v.iter().try_fold(self.clone(), |facts, e| facts.assume(e, outcome, effort))
            }
            // At least one part has it.
            Expr::And(v) | Expr::Or(v) => {
                let mut common: Option<Facts> = None;
                for e in v {
                    if *effort == 0 {
                        return Some(self.clone());
                    }
                    let Some(facts) = self.assume(e, outcome, effort) else { continue };
                    common = Some(common.map_or(facts.clone(), |c| c.common(&facts)));
                }
                common
            }
            Expr::If(v) => {
                let [condition, then, otherwise] = &**v;
                let mut branch =
                    |holds: bool, e: &Expr| self.assume(condition, holds, effort)?.assume(e, outcome, effort);
                match (branch(true, then), branch(false, otherwise)) {
                    (Some(a), Some(b)) => Some(a.common(&b)),
                    (a, b) => a.or(b),
                }
            }
        }
    }

    /// The facts that follow from `self` and from `other`, without inequalities.
    fn common(&self, other: &Facts) -> Facts {
        let words = self.words.iter().filter_map(|a| {
            let b = other.word(a.offset)?;
            let mask = a.mask & b.mask & !(a.value ^ b.value);
            let word = Word { offset: a.offset, mask, value: a.value & mask, unequal: Vec::new() };
            (mask != 0).then_some(word)
        });
        Facts {
            kind: self.kind,
            min: [0, 1, 2].map(|i| self.min[i].min(other.min[i])),
            max: [0, 1, 2].map(|i| self.max[i].max(other.max[i])),
            words: words.collect(),
        }
    }

    /// The known bits of each word: its offset, their mask, and their values.
    pub(crate) fn bits(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        self.words.iter().map(|w| (w.offset, w.mask, w.value))
    }

    /// The known bits of the word at `offset`.
    pub(crate) fn mask(&self, offset: u32) -> u32 {
        self.word(offset).map_or(0, |w| w.mask)
    }

    /// All bytes of a header before this offset are known to be present.
    pub(crate) fn present(&self, header: usize) -> u32 {
        self.min.get(header).copied().unwrap_or(0)
    }

    /// Drops facts that no later test depends on. `asked` returns the bits that later tests read from the word at an
    /// offset. For each header, `ends` holds the end of the bytes that later tests need.
    pub(crate) fn restrict(&mut self, asked: impl Fn(u32) -> u32, ends: [u32; 3]) {
        for word in &mut self.words {
            let mask = asked(word.offset);
            word.mask &= mask;
            word.value &= mask;
            word.unequal.retain(|u| u.mask & !mask == 0);
        }
        self.words.retain(|w| w.mask != 0 || !w.unequal.is_empty());
        for ((min, max), end) in self.min.iter_mut().zip(&mut self.max).zip(ends) {
            if *min != u32::MAX {
                *min = (*min).min(end);
            }
            if *max >= end {
                *max = u32::MAX;
            }
        }
    }
}

impl Word {
    /// Derives further facts from the facts about one word.
    fn settle(&mut self, min: u32, max: &mut u32, keep: usize) {
        loop {
            let mut learnt = false;
            let (mut mask, mut value) = (self.mask, self.value);
            self.unequal.retain_mut(|u| {
                if u.need > *max || (u.value ^ value) & u.mask & mask != 0 {
                    return false;
                }
                u.mask &= !mask;
                u.value &= u.mask;
                if u.mask == 0 {
                    // All bits that the failed test compared are known, and they equal the test's value. So the test
                    // can only have failed because bytes are missing.
                    *max = (*max).min(u.need.saturating_sub(1).max(min));
                    return false;
                }
                if u.need <= min && u.mask.is_power_of_two() {
                    mask |= u.mask;
                    value |= !u.value & u.mask;
                    learnt = true;
                    return false;
                }
                true
            });
            (self.mask, self.value) = (mask, value);
            if !learnt {
                break;
            }
        }
        self.unequal.sort_unstable();
        self.unequal.dedup();
        if self.unequal.len() > keep {
            self.unequal.truncate(keep);
        }
    }
}
