// SPDX-License-Identifier: MIT OR Apache-2.0
//! The optimiser: removes tests whose outcome is known on a path, and shares equal branches.

use std::collections::HashMap;

use crate::dag::{Dag, LEAF, Node, TooLarge, base};
use crate::facts::Facts;

/// The maximum number of excluded values (`word != value`) that are remembered for each word of the packet on a path
/// through the tree. The optimiser tries these limits in order, until a search remembers no more than [`MAX_FACTS`]
/// results of tests.
const LEVELS: [usize; 4] = [16, 4, 1, 0];
/// As [`LEVELS`], for the parts of a tree that is optimised in parts.
const PART_LEVELS: [usize; 2] = [4, 0];
/// Limit on the facts held by one search. It bounds the memory and time of the search, whatever the patterns are.
const MAX_FACTS: usize = 400_000;
/// Limit on the nodes that one search passes because their tests are decided. Each test that is true can decide all later tests of
/// its word, so without this limit the time could grow with the square of the number of patterns.
const MAX_SKIPS: usize = 8_000_000;
/// The maximum size of the table of tested bits (nodes times words). A larger table is replaced by one row
/// for all nodes.
const MAX_TABLE: usize = 1 << 21;

/// Returns an equivalent tree with fewer tests on each path. With `all_present` the tree is valid only for packets that
/// contain every byte it tests.
///
/// Pruning by facts can duplicate branches, so the number of facts in one search has a limit, the budget. If a search
/// exceeds the budget, the next one remembers fewer facts (`LEVELS`). If all searches exceed the budget, no facts are
/// used. The tree then has at most as many nodes as before.
pub(crate) fn optimise(dag: &Dag, root: u32, all_present: bool) -> Result<(Dag, u32), TooLarge> {
    let asked = Asked::new(dag);
    let budget = (dag.nodes.len() * 16 + 20_000).min(MAX_FACTS);
    // In very large trees, a search that exceeds the budget takes long, so only two levels are tried.
    let few = [LEVELS[0], 0];
    let levels: &[usize] = if dag.nodes.len() * LEVELS[0] > MAX_FACTS { &few } else { &LEVELS };
    for &keep in levels {
        let mut out = Dag::new(dag.kind);
        let search = Search { dag, asked: &asked, keep, budget };
        if let Some(root) = search.run(root, Facts::new(dag.kind, all_present), &mut out)? {
            return Ok((out, root));
        }
    }
    let mut out = Dag::new(dag.kind);
    let root = without_facts(dag, root, all_present, &mut out)?;
    Ok((out, root))
}

/// Adds to `out` a tree that is equivalent to `dag` for the packets of which `facts` are known, and returns its root. The nodes
/// that are already in `out` belong to other trees.
pub(crate) fn optimise_part(
    dag: &Dag,
    root: u32,
    facts: &Facts,
    all_present: bool,
    out: &mut Dag,
) -> Result<u32, TooLarge> {
    let asked = Asked::new(dag);
    let budget = (dag.nodes.len() * 32).min(MAX_FACTS);
    let before = out.nodes.len();
    for keep in PART_LEVELS {
        let search = Search { dag, asked: &asked, keep, budget };
        if let Some(root) = search.run(root, facts.clone(), out)? {
            return Ok(root);
        }
        out.truncate(before);
    }
    without_facts(dag, root, all_present, out)
}

/// Optimises without facts: merges only adjacent tests. Used when the search with facts exceeds its budget at every
/// level.
pub(crate) fn without_facts(dag: &Dag, root: u32, all_present: bool, out: &mut Dag) -> Result<u32, TooLarge> {
    let mut placed: Vec<u32> = Vec::with_capacity(dag.nodes.len());
    let find = |placed: &[u32], at: u32| placed.get(at as usize).copied().unwrap_or(at);
    for node in &dag.nodes {
        let (yes, no) = (find(&placed, node.yes), find(&placed, node.no));
        let at = if all_present && node.atom.mask == 0 {
            yes
        } else {
            out.merged_node(Node { atom: node.atom, yes, no })?
        };
        placed.push(at);
    }
    Ok(find(&placed, root))
}

/// For each node, the bits and packet lengths that are tested at or below it.
struct Asked {
    columns: HashMap<u32, usize>,
    masks: Vec<u32>,
    /// True if a row for each node would take too much memory. `masks` then has one row for all nodes.
    shared: bool,
    ends: Vec<[u32; 3]>,
}

impl Asked {
    fn new(dag: &Dag) -> Asked {
        let mut columns = HashMap::new();
        for node in &dag.nodes {
            let next = columns.len();
            columns.entry(node.atom.offset).or_insert(next);
        }
        let width = columns.len();
        let shared = dag.nodes.len().saturating_mul(width) > MAX_TABLE;
        let mut masks = vec![0u32; if shared { width } else { dag.nodes.len() * width }];
        let mut ends: Vec<[u32; 3]> = Vec::with_capacity(dag.nodes.len());
        for (at, node) in dag.nodes.iter().enumerate() {
            let column = columns.get(&node.atom.offset).copied().unwrap_or(0);
            let mut end = [0; 3];
            for below in [node.yes, node.no] {
                if let Some(theirs) = ends.get(below as usize) {
                    end.iter_mut().zip(theirs).for_each(|(e, t)| *e = (*e).max(*t));
                }
                // INVARIANT: the targets of a node have smaller indices than the node, so their rows of `masks` are
                // complete.
                if !shared && below < LEAF {
                    let (done, rest) = masks.split_at_mut(at * width);
                    let from = below as usize * width;
                    let theirs = done.get(from..from + width).unwrap_or_default();
                    rest.iter_mut().zip(theirs).for_each(|(m, t)| *m |= *t);
                }
            }
            let header = &mut end[base(dag.kind, node.atom.offset)];
            *header = (*header).max(node.atom.need);
            ends.push(end);
            let row = if shared { 0 } else { at * width };
            if let Some(m) = masks.get_mut(row + column) {
                *m |= node.atom.mask;
            }
        }
        Asked { columns, masks, shared, ends }
    }

    fn restrict(&self, node: u32, facts: &mut Facts) {
        let row = if self.shared { 0 } else { node as usize * self.columns.len() };
        let mask = |offset: u32| {
            let column = self.columns.get(&offset)?;
            self.masks.get(row + column).copied()
        };
        let ends = self.ends.get(node as usize).copied().unwrap_or([u32::MAX; 3]);
        facts.restrict(|offset| mask(offset).unwrap_or(0), ends);
    }
}

struct Search<'a> {
    dag: &'a Dag,
    asked: &'a Asked,
    keep: usize,
    /// Limit on the number of facts, summed over all nodes built.
    budget: usize,
}

/// A node whose branches are being built, with the facts of its path.
struct Frame {
    at: u32,
    node: Node,
    facts: Facts,
    /// The tree of the node's `yes` branch, once it is built. The `yes` branch is built before the `no` branch.
    yes: Option<u32>,
}

/// The state of a search.
#[derive(Default)]
struct Progress {
    /// The nodes from the root to the present one. This stack replaces recursion, because the depth grows with the
    /// number of patterns.
    open: Vec<Frame>,
    /// The trees built so far. The key is the node that the tree replaces, and what is known about the packet at that
    /// node.
    built: HashMap<(u32, Facts), u32>,
    /// The total number of facts (test results known at a node) of all nodes opened so far.
    spent: usize,
    /// The number of nodes passed because their tests were decided.
    skips: usize,
}

/// What the search does next after it has built a tree.
enum Next {
    /// Build the tree for this node next. The facts are what the tests on the way to the node have shown.
    Build(u32, Facts),
    /// This tree is the result.
    Done(u32),
}

impl Search<'_> {
    /// Builds the tree for `root` under `facts` into `out`; `None` if the budget is exceeded.
    fn run(&self, root: u32, facts: Facts, out: &mut Dag) -> Result<Option<u32>, TooLarge> {
        let mut progress = Progress::default();
        let (mut at, mut facts) = (root, facts);
        loop {
            let Some(tree) = self.descend(at, facts, &mut progress) else { return Ok(None) };
            match self.ascend(tree, &mut progress, out)? {
                Next::Build(branch, known) => (at, facts) = (branch, known),
                Next::Done(tree) => return Ok(Some(tree)),
            }
        }
    }

    /// Follows `yes` branches down to a branch whose tree is known, and adds each node on the way to the open nodes.
    /// Returns the known tree; `None` if the budget is exceeded.
    fn descend(&self, mut at: u32, mut facts: Facts, progress: &mut Progress) -> Option<u32> {
        loop {
            (at, facts) = self.skip_decided(at, facts, &mut progress.skips);
            let Some(&node) = self.dag.get(at) else { return Some(at) };
            let key = (at, facts);
            if let Some(&tree) = progress.built.get(&key) {
                return Some(tree);
            }
            facts = key.1;
            progress.spent += 1 + facts.size();
            if progress.spent > self.budget || progress.skips > MAX_SKIPS {
                return None;
            }
            let yes_facts = facts.learn(&node.atom, true, self.keep);
            progress.open.push(Frame { at, node, facts, yes: None });
            (at, facts) = (node.yes, yes_facts);
        }
    }

    /// Makes `tree` a branch of the innermost open node. If the node then has both branches, closes it and makes its
    /// tree a branch of the node above, and so on. Ends at a node whose `no` branch has to be built, or after the
    /// root.
    fn ascend(&self, mut tree: u32, progress: &mut Progress, out: &mut Dag) -> Result<Next, TooLarge> {
        while let Some(frame) = progress.open.pop() {
            let Some(yes) = frame.yes else {
                let next = Next::Build(frame.node.no, frame.facts.learn(&frame.node.atom, false, self.keep));
                progress.open.push(Frame { yes: Some(tree), ..frame });
                return Ok(next);
            };
            let node = Node { atom: frame.node.atom, yes, no: tree };
            tree = match self.superfluous(&node, &frame.facts, out) {
                Some(instead) => instead,
                None => out.merged_node(node)?,
            };
            progress.built.insert((frame.at, frame.facts), tree);
        }
        Ok(Next::Done(tree))
    }

    /// If the test of `node` is redundant, returns the tree that replaces `node`; otherwise `None`. Let A be one branch
    /// of `node` and B the other. The test is redundant if A can also handle the packets of B: the first test of A
    /// sends each of them to B. Then A replaces `node`.
    fn superfluous(&self, node: &Node, facts: &Facts, out: &Dag) -> Option<u32> {
        let leads = |from: u32, outcome: bool, to: u32| {
            let next = out.get(from).filter(|n| n.yes == to || n.no == to)?;
            let decided = facts.learn(&node.atom, outcome, self.keep).decide(&next.atom)?;
            (if decided { next.yes == to } else { next.no == to }).then_some(from)
        };
        leads(node.no, true, node.yes).or_else(|| leads(node.yes, false, node.no))
    }

    /// Follows tests with a known outcome, then drops facts that are irrelevant further down.
    fn skip_decided(&self, mut at: u32, mut facts: Facts, skips: &mut usize) -> (u32, Facts) {
        while let Some(node) = self.dag.get(at) {
            match facts.decide(&node.atom) {
                Some(outcome) => {
                    at = if outcome { node.yes } else { node.no };
                    *skips += 1;
                }
                None => {
                    self.asked.restrict(at, &mut facts);
                    break;
                }
            }
        }
        (at, facts)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::expr::Atom;
    use crate::program::OffsetBase;

    /// The output for a packet of two words, of which the first `len` bytes are present.
    fn walk(dag: &Dag, root: u32, words: [u32; 2], len: u32) -> u32 {
        let mut at = root;
        while let Some(n) = dag.get(at) {
            let a = n.atom;
            let holds = a.need <= len && words[a.offset as usize / 4] & a.mask == a.value;
            at = if holds { n.yes } else { n.no };
        }
        at
    }

    /// Random trees test three bits of two words. At every optimisation level, packets of every length still go to the
    /// same outputs.
    #[test]
    fn every_level_keeps_the_meaning() {
        let mut state = 0x5eed_0004u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        for _ in 0..300 {
            let mut dag = Dag::new(OffsetBase::Data);
            let mut targets: Vec<u32> = (0..3).map(|i| LEAF | i).collect();
            for _ in 0..10 {
                let (offset, mask) = (below(2) as u32 * 4, below(8) as u32);
                let atom =
                    Atom { offset, mask, value: below(8) as u32 & mask, need: offset + 1 + below(4) as u32 };
                // Long paths through the graph offer the most pruning. To get long paths, `no` leads to one of the last
                // two targets.
                let last = targets.len() - 1;
                let (yes, no) = (targets[below(targets.len())], targets[last - below(2)]);
                targets.push(dag.node(Node { atom, yes, no }).unwrap());
            }
            let root = *targets.last().unwrap();
            let asked = Asked::new(&dag);
            for all_present in [false, true] {
                let mut levels = vec![optimise(&dag, root, all_present).unwrap()];
                for (keep, budget) in [(16, usize::MAX), (1, usize::MAX), (0, usize::MAX)] {
                    let mut out = Dag::new(OffsetBase::Data);
                    let search = Search { dag: &dag, asked: &asked, keep, budget };
                    let found =
                        search.run(root, Facts::new(OffsetBase::Data, all_present), &mut out).unwrap();
                    levels.push((out, found.unwrap()));
                }
                let mut out = Dag::new(OffsetBase::Data);
                let found = without_facts(&dag, root, all_present, &mut out).unwrap();
                levels.push((out, found));
                for len in if all_present { 8 } else { 0 }..=8 {
                    for bits in 0..64 {
                        let words = [bits & 7, bits >> 3];
                        let want = walk(&dag, root, words, len);
                        for (level, (out, root)) in levels.iter().enumerate() {
                            assert_eq!(walk(out, *root, words, len), want, "level {level} {dag:?} {out:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_stops_at_its_budget() {
        let mut dag = Dag::new(OffsetBase::Data);
        let mut root = LEAF;
        for i in 0..40 {
            let atom = Atom { offset: i * 4, mask: 1, value: 1, need: i * 4 + 4 };
            root = dag.node(Node { atom, yes: LEAF | (i + 1), no: root }).unwrap();
        }
        let asked = Asked::new(&dag);
        let run = |budget| {
            let search = Search { dag: &dag, asked: &asked, keep: 16, budget };
            search.run(root, Facts::new(OffsetBase::Data, false), &mut Dag::new(OffsetBase::Data)).unwrap()
        };
        assert_eq!((run(39), run(10_000)), (None, Some(39)));
    }
}
