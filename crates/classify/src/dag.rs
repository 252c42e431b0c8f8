// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decision trees with shared branches, and their construction from expressions.

use std::collections::HashMap;

use crate::expr::{Atom, BASES, ETHER, Expr, NETWORK, TRANSPORT};
use crate::program::OffsetBase;

/// This bit marks a target as the number of an output, not the index of a node.
pub(crate) const LEAF: u32 = 1 << 31;
/// The output number that means "drop".
pub(crate) const DROP: u32 = LEAF - 1;
/// Limit on the number of tests in a program. Larger programs are refused.
pub(crate) const MAX_NODES: usize = 1 << 17;

/// The number of the header that contains an offset: 0 Ethernet header or plain packet data, 1 IP, 2 transport. The
/// offset is coded as [`OffsetBase`] says.
pub(crate) fn base(kind: OffsetBase, offset: u32) -> usize {
    match kind {
        OffsetBase::Data => 0,
        OffsetBase::Ip if offset >= TRANSPORT => 2,
        OffsetBase::Ip if offset >= NETWORK => 1,
        OffsetBase::Ip => 0,
    }
}

/// The offset of the first byte of a header, coded as [`OffsetBase`] says.
pub(crate) fn first(kind: OffsetBase, header: usize) -> u32 {
    match (kind, header) {
        (OffsetBase::Ip, 0) => ETHER,
        _ => BASES.get(header).copied().unwrap_or(0),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) atom: Atom,
    pub(crate) yes: u32,
    pub(crate) no: u32,
}

/// The expressions need more than [`MAX_NODES`] tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Nodes by index. INVARIANT: a node's targets are leaves or nodes with a smaller index.
#[derive(Clone, Debug)]
pub(crate) struct Dag {
    pub(crate) kind: OffsetBase,
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Node, u32>,
}

impl Dag {
    pub(crate) fn new(kind: OffsetBase) -> Dag {
        Dag { kind, nodes: Vec::new(), known: HashMap::new() }
    }

    /// Returns a node with this test and these targets. Equal nodes are shared.
    pub(crate) fn node(&mut self, node: Node) -> Result<u32, TooLarge> {
        if node.yes == node.no {
            return Ok(node.yes);
        }
        if let Some(&at) = self.known.get(&node) {
            return Ok(at);
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(TooLarge);
        }
        let at = self.nodes.len() as u32;
        self.nodes.push(node);
        self.known.insert(node, at);
        Ok(at)
    }

    /// Removes all nodes but the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        for node in self.nodes.drain(count.min(self.nodes.len())..) {
            self.known.remove(&node);
        }
    }

    /// Like [`Dag::node`], but merges two tests of the same word into one if both have the same target `no`.
    pub(crate) fn merged_node(&mut self, mut node: Node) -> Result<u32, TooLarge> {
        while let Some(&next) = self.get(node.yes)
            && next.no == node.no
        {
            let (a, b) = (node.atom, next.atom);
            if a.mask == 0 && base(self.kind, a.offset) == base(self.kind, b.offset) && a.need <= b.need {
                return Ok(node.yes);
            }
            if a.offset != b.offset {
                break;
            }
            if (a.value ^ b.value) & a.mask & b.mask != 0 {
                return Ok(node.no);
            }
            let (mask, value, need) = (a.mask | b.mask, a.value | b.value, a.need.max(b.need));
            node = Node { atom: Atom { offset: a.offset, mask, value, need }, ..next };
        }
        self.node(node)
    }

    pub(crate) fn get(&self, target: u32) -> Option<&Node> {
        // A leaf is not a valid index, because LEAF is above MAX_NODES.
        self.nodes.get(target as usize)
    }

    /// Compiles `e` so that it continues at `yes` or `no`. Each test adds at most one node. The parsers limit
    /// the recursion depth by limiting the depth of `e`.
    pub(crate) fn compile(&mut self, e: &Expr, yes: u32, no: u32) -> Result<u32, TooLarge> {
        match e {
            Expr::Const(b) => Ok(if *b { yes } else { no }),
            Expr::Atom(atom) => self.node(Node { atom: *atom, yes, no }),
            Expr::Not(e) => self.compile(e, no, yes),
            Expr::And(v) => v.iter().rev().try_fold(yes, |next, e| self.compile(e, next, no)),
            Expr::Or(v) => v.iter().rev().try_fold(no, |next, e| self.compile(e, yes, next)),
            Expr::If(v) => {
                let [condition, then, otherwise] = &**v;
                let then = self.compile(then, yes, no)?;
                let otherwise = self.compile(otherwise, yes, no)?;
                self.compile(condition, then, otherwise)
            }
        }
    }

    /// The nodes reachable from `root`, in topological order: each before its targets.
    pub(crate) fn order(&self, root: u32) -> Vec<u32> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        let mut stack = vec![(root, false)];
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
                continue;
            }
            let (Some(node), Some(mark)) = (self.get(at), seen.get_mut(at as usize)) else { continue };
            if std::mem::replace(mark, true) {
                continue;
            }
            stack.extend([(at, true), (node.yes, false), (node.no, false)]);
        }
        order.reverse();
        order
    }
}
