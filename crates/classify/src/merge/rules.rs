// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requirements of the rules of a long list, and the test that divides a list best.

use std::collections::HashMap;

use super::Part;
use crate::dag::base;
use crate::expr::{Atom, Expr};
use crate::facts::Facts;
use crate::program::OffsetBase;

/// Shorter lists of rules are compiled as they are.
const MANY: usize = 33;
/// Limit on the tests and facts that are looked at to find what one rule requires.
const EFFORT: usize = 2000;
/// In so many different ways, rules that are much the same may test a word.
const ALIKE: usize = 8;
/// The number of words whose bits may be cut.
const COLUMNS: usize = 32;

/// The requirements of a rule.
struct Rule {
    /// Facts about all packets that match. `None` if no packet does.
    facts: Option<Facts>,
    /// The known bits of the words that may be cut: the column, the mask and the values.
    bits: Vec<(usize, u32, u32)>,
    /// The tests of the rule, if it matches exactly when all of them hold.
    tests: Option<Vec<Atom>>,
    /// The number of tests.
    size: usize,
}

impl Rule {
    /// Whether the rule matches each packet with these facts.
    fn holds(&self, known: &Facts) -> bool {
        self.tests.as_ref().is_some_and(|tests| tests.iter().all(|t| known.decide(t) == Some(true)))
    }
}

/// Adds the tests of `e` to `tests`. False if it is not their conjunction, or if they are many.
fn conjunction(e: &Expr, tests: &mut Vec<Atom>) -> bool {
    match e {
        Expr::Const(b) => *b,
        Expr::Atom(atom) => {
            tests.push(*atom);
            tests.len() <= 16
        }
        Expr::And(v) => v.iter().all(|e| conjunction(e, tests)),
        Expr::Or(v) => matches!(&v[..], [one] if conjunction(one, tests)),
        Expr::Not(_) | Expr::If(_) => false,
    }
}

/// Adds the parts of a disjunction to a list.
fn split<'a>(e: &'a Expr, number: u32, all: &mut Vec<(&'a Expr, u32)>) {
    match e {
        Expr::Or(v) => v.iter().for_each(|e| split(e, number, all)),
        // Rules are often conjunctions of a single part.
        Expr::And(v) if v.len() == 1 => v.iter().for_each(|e| split(e, number, all)),
        _ => all.push((e, number)),
    }
}

/// A long list of rules: what they require, and the words whose bits may be cut.
pub(crate) struct Rules<'a> {
    /// The rules. A disjunction is several rules, because the first one that matches decides.
    pub(super) exprs: Vec<&'a Expr>,
    /// For each rule, its number in the list that was given.
    pub(super) numbers: Vec<u32>,
    pub(super) kind: OffsetBase,
    rules: Vec<Rule>,
    columns: Vec<u32>,
    /// For each bit of each column, how many rules of a list require 0, and how many 1.
    counts: Vec<[u32; 2]>,
}

impl<'a> Rules<'a> {
    /// Finds out what rules require. None if the list is short.
    pub(crate) fn new(kind: OffsetBase, exprs: &'a [Expr]) -> Option<Rules<'a>> {
        if exprs.len() < MANY {
            return None;
        }
        let mut all = Vec::with_capacity(exprs.len());
        for (number, e) in (0..).zip(exprs) {
            split(e, number, &mut all);
        }
        let (exprs, numbers): (Vec<&Expr>, Vec<u32>) = all.into_iter().unzip();
        let start = Facts::new(kind, false);
        let mut rules = Vec::with_capacity(exprs.len());
        let mut uses: HashMap<u32, usize> = HashMap::new();
        for e in &exprs {
            let facts = start.assume(e, true, &mut EFFORT.clone());
            for (offset, ..) in facts.iter().flat_map(Facts::bits) {
                *uses.entry(offset).or_default() += 1;
            }
            let mut tests = Vec::new();
            let tests = conjunction(e, &mut tests).then_some(tests);
            rules.push(Rule { facts, bits: Vec::new(), tests, size: e.size().max(1) });
        }
        let mut columns: Vec<(usize, u32)> = uses.into_iter().map(|(offset, n)| (n, offset)).collect();
        columns.sort_unstable_by(|a, b| b.cmp(a));
        columns.truncate(COLUMNS);
        let columns: Vec<u32> = columns.into_iter().map(|c| c.1).collect();
        for rule in &mut rules {
            let place = |offset: u32| columns.iter().position(|c| *c == offset);
            let bits = rule.facts.iter().flat_map(Facts::bits);
            rule.bits = bits.filter_map(|(o, mask, value)| Some((place(o)?, mask, value))).collect();
        }
        let counts = vec![[0; 2]; columns.len() * 32];
        Some(Rules { exprs, numbers, kind, rules, columns, counts })
    }

    /// Whether the rules require different things of one word at most, and much the same of all others.
    pub(crate) fn vary_in_one_word(&self) -> bool {
        let mut seen = vec![Vec::new(); self.columns.len()];
        for &(column, mask, value) in self.rules.iter().flat_map(|r| &r.bits) {
            if let Some(seen) = seen.get_mut(column)
                && seen.len() <= ALIKE
                && !seen.contains(&(mask, value))
            {
                seen.push((mask, value));
            }
        }
        seen.iter().filter(|s| s.len() > ALIKE).count() <= 1
    }

    fn rule(&self, at: u32) -> Option<&Rule> {
        self.rules.get(at as usize)
    }

    /// The number of tests of a list of rules.
    pub(super) fn size(&self, rules: &[u32]) -> usize {
        rules.iter().filter_map(|r| self.rule(*r)).map(|r| r.size).sum()
    }

    /// The rules of a list that may match packets with these facts, up to the first one that matches all of them. If `test` is
    /// given, packets have shown its outcome.
    pub(super) fn remaining(
        &self,
        rules: impl IntoIterator<Item = u32>,
        test: Option<(&Atom, bool)>,
        known: &Facts,
    ) -> Vec<u32> {
        let mut left = Vec::new();
        for at in rules {
            let Some(rule) = self.rule(at) else { continue };
            let Some(facts) = &rule.facts else { continue };
            if test.is_some_and(|(atom, outcome)| facts.decide(atom) == Some(!outcome)) {
                continue;
            }
            left.push(at);
            if rule.holds(known) {
                break;
            }
        }
        left
    }

    /// The test that divides the rules best. None if no test helps much. With `searched`, the offsets of words that a search
    /// compares, only tests of other words that put no rule into both parts.
    pub(super) fn cut(&mut self, part: &Part, searched: Option<&[u32]>) -> Option<(Atom, usize)> {
        self.counts.fill([0; 2]);
        let is_open = |offset: &u32| searched.is_none_or(|s| !s.contains(offset));
        let open = self.columns.iter().map(|o| if is_open(o) { !part.known.mask(*o) } else { 0 });
        let open: Vec<u32> = open.collect();
        let all = part.rules.len() as u64;
        // For each column, what the first rule requires, and how many rules require the same.
        let mut same = vec![((0, 0), 0u64); self.columns.len()];
        for rule in part.rules.iter().filter_map(|&r| self.rules.get(r as usize)) {
            for &(column, mask, value) in &rule.bits {
                let mut open = mask & open.get(column).copied().unwrap_or(0);
                if let Some((first, count)) = same.get_mut(column)
                    && open != 0
                {
                    if *count == 0 {
                        *first = (mask, value);
                    }
                    *count += u64::from(*first == (mask, value));
                }
                while open != 0 {
                    let bit = open.trailing_zeros();
                    open &= open - 1;
                    if let Some(counts) = self.counts.get_mut(column * 32 + bit as usize) {
                        counts[(value >> bit & 1) as usize] += 1;
                    }
                }
            }
        }
        // If all rules require the same of a word, one test replaces theirs.
        if let Some(column) = same.iter().position(|(_, count)| *count == all) {
            let (mask, value) = same.get(column)?.0;
            return Some((self.test(part, column, mask, value)?, 0));
        }
        let cost = |counts: &[u32; 2]| {
            let [no, yes] = counts.map(|n| all - u64::from(n));
            let copies = yes + no - all;
            if searched.is_some() && copies > 0 {
                (u64::MAX, all)
            } else {
                (no * no + yes * yes, no.max(yes))
            }
        };
        let costs = self.counts.iter().map(cost).enumerate();
        let (at, (_, longest)) = costs.min_by_key(|(at, cost)| (cost.0, *at))?;
        if longest * 20 > all * 19 {
            return None;
        }
        let mask = 1 << (at % 32);
        let [no, yes] = *self.counts.get(at)?;
        let copies = part.rules.len().saturating_sub((no + yes) as usize);
        Some((self.test(part, at / 32, mask, mask)?, copies))
    }

    /// A test of bits of a column. It needs the bytes that all rules with these bits require.
    fn test(&self, part: &Part, column: usize, mask: u32, value: u32) -> Option<Atom> {
        let offset = *self.columns.get(column)?;
        let header = base(self.kind, offset);
        let with_bits = |rule: &&Rule| rule.bits.iter().any(|b| b.0 == column && b.1 & mask == mask);
        let rules = part.rules.iter().filter_map(|r| self.rule(*r)).filter(with_bits);
        let need = rules.filter_map(|r| Some(r.facts.as_ref()?.present(header))).min()?;
        let end = offset + 4 - mask.trailing_zeros() / 8;
        Some(Atom { offset, mask, value, need: need.clamp(end, offset + 4) })
    }
}
