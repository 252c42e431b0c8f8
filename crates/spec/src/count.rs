// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of a count.

/// The declaration of a number that an element keeps: packets, bytes or events since the element was made or
/// reset. If the count has a label, there is one such number for each value of the label.
///
/// The counts of replicas are added, and a hot swap moves counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountSpec {
    /// The name of the count. If a handler shows the count, it has the same name.
    pub name: &'static str,
    /// The unit, such as `packets` or `bytes`.
    pub unit: &'static str,
    /// One line for the manual.
    pub doc: &'static str,
    /// The name of the label, such as `reason`; empty if there is only one number.
    pub label: &'static str,
    /// The values of the label, one for each number of the count, in the same order. Empty if the count has only one
    /// number.
    pub values: &'static [&'static str],
}

impl CountSpec {
    /// A declaration without content, to fill arrays with.
    pub const EMPTY: CountSpec = CountSpec { name: "", unit: "", doc: "", label: "", values: &[] };
}
