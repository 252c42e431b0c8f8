// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port lists: how many ports one means, and which.

use crate::syntax::ast::{PortItem, Ports};

/// Ports of one element on one side of a link.
#[derive(Clone, Copy)]
pub(super) struct PortList<'a> {
    /// None: nothing is written.
    written: Option<&'a [PortItem]>,
    /// How many a group implies; zero for anything else.
    implied: usize,
}

impl<'a> PortList<'a> {
    pub fn new(written: Option<&'a Ports>, implied: usize) -> PortList<'a> {
        PortList { written: written.map(|p| p.items.as_slice()), implied }
    }
    /// Whether it may not be taken for as many as the other side has.
    pub fn given(self) -> bool {
        self.written.is_some() || self.implied > 0
    }
    /// The only port, if that is clear at once.
    pub fn single(self) -> Option<usize> {
        match (self.written, self.implied) {
            (None, 0 | 1) => Some(0),
            (Some(&[PortItem::Range(a, b)]), _) if a == b => Some(a),
            _ => None,
        }
    }
    /// How many ports it has without those that the other side decides.
    pub fn fixed(self) -> usize {
        let Some(items) = self.written else { return self.implied.max(1) };
        items
            .iter()
            .map(|item| if let PortItem::Range(a, b) = *item { (b + 1).saturating_sub(a) } else { 0 })
            .sum()
    }
    /// From which port on it takes as many as the other side needs.
    pub fn open(self) -> Option<usize> {
        self.written?.iter().find_map(|item| if let PortItem::From(a) = *item { Some(a) } else { None })
    }
    /// All its ports; `more` of them from the open end, which is `from` if nothing is written.
    pub fn ports(self, more: usize, from: Option<usize>) -> Vec<usize> {
        match (self.written, from) {
            (None, Some(from)) => (from..from + more).collect(),
            (None, None) => (0..self.implied.max(1)).collect(),
            (Some(items), _) => items
                .iter()
                .flat_map(|item| match *item {
                    PortItem::Range(a, b) => a..b + 1,
                    PortItem::From(a) => a..a + more,
                })
                .collect(),
        }
    }
}
