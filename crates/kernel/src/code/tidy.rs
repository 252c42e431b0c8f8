// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes steps that do nothing.

use crate::step::{Size, Step, Value};

/// Removes jumps to the next step, and turns branches around that skip only a jump.
pub(super) fn without_jumps(steps: Vec<Step>) -> Vec<Step> {
    let mut kept: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Step::Bind(here) = step {
            if kept.last() == Some(&Step::Jump(here)) {
                kept.pop();
            } else if let [.., branch, Step::Jump(other)] = kept.as_slice()
                && let Some(turned) = branch.turned(here, *other)
            {
                kept.truncate(kept.len() - 2);
                kept.push(turned);
            }
        }
        kept.push(step);
    }
    kept
}

/// Removes steps that only compute values which no other step uses.
pub(super) fn without_unused(steps: Vec<Step>, values: usize) -> Vec<Step> {
    let mut used = vec![false; values];
    let mut kept = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        let wanted = |v: Value| used.get(v.0 as usize).copied().unwrap_or(true);
        if step.calls() || matches!(step, Step::Increment { .. }) || step.computed().is_none_or(wanted) {
            for v in step.used().into_iter().flatten() {
                if let Some(u) = used.get_mut(v.0 as usize) {
                    *u = true;
                }
            }
            kept.push(step);
        }
    }
    kept.reverse();
    kept
}

/// The longest part of some bytes that one comparison or store can have as a constant, as a number in the order of memory.
pub(super) fn front(bytes: &[u8]) -> Option<(Size, u32, &[u8])> {
    if let Some((word, rest)) = bytes.split_first_chunk::<4>() {
        return Some((Size::Word, u32::from_ne_bytes(*word), rest));
    }
    if let Some((half, rest)) = bytes.split_first_chunk::<2>() {
        return Some((Size::Half, u16::from_ne_bytes(*half).into(), rest));
    }
    bytes.split_first().map(|(byte, rest)| (Size::Byte, u32::from(*byte), rest))
}
