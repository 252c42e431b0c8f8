// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port lists: counting and enumerating the ports of a list.

use crate::syntax::ast::{PortItem, Ports};

/// The ports of one element on one side of a link.
#[derive(Clone, Copy)]
pub(super) struct PortList<'a> {
    /// The port list as written; `None` if the text has none.
    written: Option<&'a [PortItem]>,
    /// The number of ports that a group implies; zero for anything else.
    implied: usize,
}

impl<'a> PortList<'a> {
    pub fn new(written: Option<&'a Ports>, implied: usize) -> PortList<'a> {
        PortList { written: written.map(|p| p.items.as_slice()), implied }
    }
    /// Whether the text fixes the number of ports. Without a port list, an element may take as many ports as the
    /// other side of the link has.
    pub fn given(self) -> bool {
        self.written.is_some() || self.implied > 0
    }
    /// The number of the port if there is only one, else `None`. Without a written list, the only port is port 0,
    /// unless a group implies several ports.
    pub fn single(self) -> Option<usize> {
        match (self.written, self.implied) {
            (None, 0 | 1) => Some(0),
            (Some(&[PortItem::Range(a, b)]), _) if a == b => Some(a),
            _ => None,
        }
    }
    /// The number of ports, without those of an open range such as `[2-]`.
    pub fn fixed(self) -> usize {
        let Some(items) = self.written else { return self.implied.max(1) };
        items
            .iter()
            .map(|item| if let PortItem::Range(a, b) = *item { (b + 1).saturating_sub(a) } else { 0 })
            .sum()
    }
    /// The first port of an open range such as `[2-]`; `None` if the list has none. An open range takes as many ports
    /// as the other side of the link needs.
    pub fn open(self) -> Option<usize> {
        self.written?.iter().find_map(|item| if let PortItem::From(a) = *item { Some(a) } else { None })
    }
    /// Returns all ports of the list. An open range such as `[2-]` stands for `more` ports. If no list is written and
    /// `from` is given, returns `more` ports, from port `from` on.
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
