// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushes and pulls packets through a dropping policy: packets pass, or leave on output 1.

use castanet_element::prelude::*;

/// Decides for each packet, in order, whether it is dropped.
pub(super) trait Policy {
    /// Returns whether the next packet is to be dropped, and counts the drop.
    fn refuses(&mut self, cx: &mut Cx<'_>) -> bool;
}

/// Pushes packets through a policy.
pub(super) fn push(policy: &mut impl Policy, batch: &mut Batch, cx: &mut Cx<'_>) {
    for p in batch.drain() {
        push_one(policy, p, cx);
    }
}

/// Pushes a packet through a policy.
#[inline]
pub(super) fn push_one(policy: &mut impl Policy, p: Packet, cx: &mut Cx<'_>) {
    if policy.refuses(cx) {
        cx.emit_or(1, p, Reason::EarlyDrop);
    } else {
        cx.emit(0, p);
    }
}

/// Pulls packets through a policy. Each packet is pulled after the policy has decided about the previous one, so the
/// policy sees the same queue lengths as with single pulls.
pub(super) fn pull(policy: &mut impl Policy, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
    for _ in 0..max {
        let Some(p) = pull_one(policy, cx) else { break };
        into.push(p);
    }
}

/// Pulls packets until one is not dropped, and returns it.
#[inline]
pub(super) fn pull_one(policy: &mut impl Policy, cx: &mut Cx<'_>) -> Option<Packet> {
    cx.pull_until(0, |p, cx| {
        if !policy.refuses(cx) {
            return Some(p);
        }
        cx.emit_or(1, p, Reason::EarlyDrop);
        None
    })
}

/// Checks a probability. The error does not name the argument; the caller does.
pub(super) fn check_probability(value: f64) -> Result<f64, ValueError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("must lie between 0 and 1".into()) }
}
