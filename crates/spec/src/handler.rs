// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of a handler.

use crate::flags::HandlerFlags;

/// How the values of one handler are combined over the replicas of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Numbers are added.
    Sum,
    /// All replicas have the same value, so the value of the first replica is used.
    First,
    /// The result is the largest number of all replicas.
    Max,
}

/// The kind of value that a read handler returns, so that tools need not guess it from the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    /// A number that only grows until it is reset: packets, bytes, events.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A number per second, or a bandwidth with its unit, such as `80kbps`.
    Rate,
    /// A time or a span of time: a number of seconds, or a number with its unit, such as `500ms`.
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
    /// Returns the word for this kind in the manual and in JSON.
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
    /// How the values of several workers are combined, unless the handler says otherwise. Counters and rates
    /// are added. For all other kinds, the workers are assumed to have the same value.
    pub const fn merge(self) -> Merge {
        match self {
            ValueKind::Counter | ValueKind::Rate => Merge::Sum,
            _ => Merge::First,
        }
    }
}

/// One handler of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSpec {
    /// The name of the handler.
    pub name: &'static str,
    /// What can be done with the handler, and how clients show it.
    pub flags: HandlerFlags,
    /// One line for the manual.
    pub doc: &'static str,
    /// The kind of the handler's value, if the handler can be read.
    pub kind: ValueKind,
    /// The unit of the value, such as `packets`; empty if the value has no unit, or if its text contains the unit.
    pub unit: &'static str,
    /// How the values of several workers are combined.
    pub merge: Merge,
}

impl HandlerSpec {
    /// A declaration without content, to fill arrays with.
    pub const EMPTY: HandlerSpec = HandlerSpec::new("", HandlerFlags::empty(), "", ValueKind::Text);

    /// A handler without a unit, whose values are combined as usual for their kind.
    pub const fn new(
        name: &'static str,
        flags: HandlerFlags,
        doc: &'static str,
        kind: ValueKind,
    ) -> HandlerSpec {
        HandlerSpec { name, flags, doc, kind, unit: "", merge: kind.merge() }
    }
    /// Whether the handler can be read.
    pub fn readable(&self) -> bool {
        self.flags.is_readable()
    }
    /// Whether the handler can be written.
    pub fn writable(&self) -> bool {
        self.flags.is_writable()
    }
    /// Whether a read takes parameters.
    pub fn takes_parameters(&self) -> bool {
        self.flags.contains(HandlerFlags::PARAMETERS)
    }
}
