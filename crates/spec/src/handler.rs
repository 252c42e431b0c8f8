// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of a handler.

use crate::class::Merge;

/// What the value of a read handler is, so that tools need not guess it from its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    /// A number that only grows until it is reset: packets, bytes, events.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A number per second.
    Rate,
    /// Seconds: a time or a span of time.
    Time,
    /// `true` or `false`.
    Flag,
    /// A network address, or several.
    Address,
    /// Lines of columns.
    Table,
    /// Any other text.
    #[default]
    Text,
}

impl ValueKind {
    /// One word for the manual and for JSON.
    pub const fn word(self) -> &'static str {
        match self {
            ValueKind::Counter => "counter",
            ValueKind::Gauge => "gauge",
            ValueKind::Rate => "rate",
            ValueKind::Time => "seconds",
            ValueKind::Flag => "flag",
            ValueKind::Address => "address",
            ValueKind::Table => "table",
            ValueKind::Text => "text",
        }
    }
    /// Whether the text of a value is one number.
    pub const fn is_number(self) -> bool {
        matches!(self, ValueKind::Counter | ValueKind::Gauge | ValueKind::Rate | ValueKind::Time)
    }
}

/// One handler of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSpec {
    /// Its name.
    pub name: &'static str,
    /// Flags as the `handlers` listing prints them: `r`, `w`, `rw`, `+` read with parameters, `b` button, `U` uncommon...
    pub flags: &'static str,
    /// One line for the manual.
    pub doc: &'static str,
    /// What its value is, if it can be read.
    pub kind: ValueKind,
    /// The unit of its value, such as `packets`; empty when the value has none or its text gives it.
    pub unit: &'static str,
    /// How the values of several workers become one; none: as the class says.
    pub merge: Option<Merge>,
}

impl HandlerSpec {
    /// A handler without unit whose values merge as its class says.
    pub const fn new(
        name: &'static str,
        flags: &'static str,
        doc: &'static str,
        kind: ValueKind,
    ) -> HandlerSpec {
        HandlerSpec { name, flags, doc, kind, unit: "", merge: None }
    }
    /// Whether it can be read.
    pub fn readable(&self) -> bool {
        self.flags.contains('r')
    }
    /// Whether it can be written.
    pub fn writable(&self) -> bool {
        self.flags.contains('w')
    }
    /// Whether reading takes parameters.
    pub fn takes_parameters(&self) -> bool {
        self.flags.contains('+')
    }
    /// Puts lists of handlers one behind the other. `N` is the number of all, see [`HandlerSpec::count`].
    pub const fn concat<const N: usize>(lists: &[&[HandlerSpec]]) -> [HandlerSpec; N] {
        let mut out = [HandlerSpec::new("", "", "", ValueKind::Text); N];
        let (mut n, mut list) = (0, 0);
        while list < lists.len() {
            let mut i = 0;
            while i < lists[list].len() {
                out[n] = lists[list][i];
                (n, i) = (n + 1, i + 1);
            }
            list += 1;
        }
        out
    }
    /// The number of handlers in all lists.
    pub const fn count(lists: &[&[HandlerSpec]]) -> usize {
        let (mut n, mut list) = (0, 0);
        while list < lists.len() {
            n += lists[list].len();
            list += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_in_order() {
        const A: HandlerSpec = HandlerSpec::new("a", "r", "", ValueKind::Counter);
        const B: HandlerSpec = HandlerSpec::new("b", "w", "", ValueKind::Text);
        const LISTS: &[&[HandlerSpec]] = &[&[A], &[], &[B, A]];
        const ALL: [HandlerSpec; HandlerSpec::count(LISTS)] = HandlerSpec::concat(LISTS);
        assert_eq!(ALL, [A, B, A]);
    }
}
