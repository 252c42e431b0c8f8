// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of a count.

/// A number that an element keeps: packets, bytes or events since the element was made or reset. Or several of them, which
/// differ in the value of a label.
///
/// The replicas of an element add theirs up, and hot swap moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountSpec {
    /// Its name: that of the handler that shows it, unless it has none.
    pub name: &'static str,
    /// The unit, such as `packets` or `bytes`.
    pub unit: &'static str,
    /// One line for the manual.
    pub doc: &'static str,
    /// The name of the label, such as `reason`; empty: there is one number.
    pub label: &'static str,
    /// The values of the label in the order of the numbers; empty: there is one number.
    pub values: &'static [&'static str],
}

impl CountSpec {
    /// A declaration without content, to fill arrays with.
    pub const EMPTY: CountSpec = CountSpec { name: "", unit: "", doc: "", label: "", values: &[] };
}
