// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of the kinds of an element's ports.

use castanet_graph::PortKind;

/// An element with at most this many inputs and outputs is built without memory for lists of them.
pub(crate) const FEW: usize = 8;

/// Returns which of the first `n` ports push. The list is in `few`, or in `many` if there are many ports.
pub(crate) fn pushes<'a>(
    n: usize,
    few: &'a mut [bool; FEW],
    many: &'a mut Vec<bool>,
    kind: impl Fn(usize) -> PortKind,
) -> &'a [bool] {
    let all = match few.get_mut(..n) {
        Some(few) => few,
        None => {
            many.resize(n, false);
            many
        }
    };
    all.iter_mut().enumerate().for_each(|(p, push)| *push = kind(p) == PortKind::Push);
    all
}
