// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long lists of rules that are not divided: the order of the tests of each rule, so that the interpreter can search the list.

use std::collections::{BTreeMap, HashMap};

use crate::chain;
use crate::dag::{Dag, TooLarge};
use crate::expr::{Atom, Expr};
use crate::facts::Facts;
use crate::program::OffsetBase;

/// The number of packets that are tried to count the rules that a search finds.
const SAMPLES: usize = 16;

/// The rules of a long list. Each has its tests in an order in which the most selective one comes first.
pub(super) struct Ordered<'a> {
    /// For each rule, what must hold.
    rules: Vec<Vec<&'a Expr>>,
}

impl<'a> Ordered<'a> {
    pub(super) fn new(rules: &[&'a Expr], known: &Facts) -> Ordered<'a> {
        let mut all: Vec<Vec<&Expr>> = Vec::with_capacity(rules.len());
        let mut uses: HashMap<Atom, u64> = HashMap::new();
        for e in rules {
            let mut parts = Vec::new();
            flatten(e, &mut parts);
            parts.retain(|e| !matches!(e, Expr::Atom(atom) if known.decide(atom) == Some(true)));
            for e in &parts {
                if let Expr::Atom(atom) = e {
                    *uses.entry(*atom).or_default() += 1;
                }
            }
            all.push(parts);
        }
        let count = rules.len().max(1) as u64;
        for parts in &mut all {
            // An estimate of the packets that pass, from the rules that have the test, and from its bits.
            let passing = |e: &&Expr| match e {
                Expr::Atom(atom) if atom.mask != 0 => {
                    let bits = atom.mask.count_ones();
                    let shared = uses.get(atom).copied().unwrap_or(1);
                    ((shared << 32) / count).max(1 << (32 - bits))
                }
                _ => u64::MAX,
            };
            let best = parts.iter().map(passing).enumerate().min_by_key(|(at, p)| (*p, *at));
            if let Some((at, _)) = best
                && let Some(before) = parts.get_mut(..=at)
            {
                before.rotate_right(1);
            }
        }
        Ordered { rules: all }
    }

    /// The test with which each rule begins. `None` if this is not a single test.
    fn first(&self) -> impl Iterator<Item = Option<&Atom>> {
        self.rules.iter().map(|parts| match parts.first() {
            Some(Expr::Atom(atom)) if atom.mask != 0 => Some(atom),
            _ => None,
        })
    }

    /// The offsets of the words that a search compares.
    pub(super) fn offsets(&self) -> Vec<u32> {
        let mut offsets: Vec<u32> = self.first().flatten().map(|atom| atom.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// How many rules a search of the list finds for the average packet. `None` if the list cannot be searched.
    pub(super) fn found(&self, kind: OffsetBase) -> Option<usize> {
        let first: Vec<Atom> = self.first().flatten().copied().collect();
        let others = self.rules.len() - first.len();
        // A packet has in each word the value that some rule asks for, and other bits at random.
        let mut found = others * SAMPLES;
        let mut random = 0x5eed_0008u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 32) as u32
        };
        let mut of_word: BTreeMap<u32, Vec<&Atom>> = BTreeMap::new();
        first.iter().for_each(|atom| of_word.entry(atom.offset).or_default().push(atom));
        for _ in 0..SAMPLES {
            for atoms in of_word.values() {
                let Some(atom) = atoms.get(next() as usize % atoms.len().max(1)) else { continue };
                let word = atom.value | (next() & !atom.mask);
                found += atoms.iter().filter(|a| word & a.mask == a.value).count();
            }
        }
        (others * 8 <= first.len() && chain::is_searched(kind, &first)).then_some(found / SAMPLES)
    }

    /// Compiles the rule at a position so that it continues at `yes` or `no`.
    pub(super) fn compile(&self, at: usize, dag: &mut Dag, yes: u32, no: u32) -> Result<u32, TooLarge> {
        let parts = self.rules.get(at).map(Vec::as_slice).unwrap_or_default();
        parts.iter().rev().try_fold(yes, |next, e| dag.compile(e, next, no))
    }
}

/// Divides `e` into parts that must all hold.
fn flatten<'a>(e: &'a Expr, parts: &mut Vec<&'a Expr>) {
    match e {
        Expr::And(v) => v.iter().for_each(|e| flatten(e, parts)),
        Expr::Or(v) if v.len() == 1 => v.iter().for_each(|e| flatten(e, parts)),
        _ => parts.push(e),
    }
}
