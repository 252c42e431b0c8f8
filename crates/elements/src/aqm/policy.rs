// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushes and pulls packets through a dropping policy: packets pass, or leave on output 1.

use castanet_element::prelude::*;

/// Decides for each packet, in order, whether it is dropped.
pub(super) trait Policy {
    /// Returns whether the next packet is to be dropped, and counts the drop. `ahead` packets that were not dropped are on their way
    /// to the queue.
    fn refuses(&mut self, ahead: usize, cx: &mut Cx<'_>) -> bool;
}

/// The effects of a policy. Each decision needs the current length of the queues, and the declared effects make pushed packets arrive one
/// at a time. They are not needed if the queue comes next, because its length follows from the packets `ahead`. Pulled packets are pulled one
/// by one in any case.
pub(super) fn effects(declared: Effects, pulled: bool, before_queue: bool) -> Effects {
    if pulled || before_queue { Effects::empty() } else { declared }
}

/// Pushes packets through a policy.
pub(super) fn push(policy: &mut impl Policy, batch: &mut Batch, cx: &mut Cx<'_>) {
    let mut ahead = 0;
    for p in batch.drain() {
        if policy.refuses(ahead, cx) {
            cx.emit_or(1, p, Reason::EarlyDrop);
        } else {
            ahead += 1;
            cx.emit(0, p);
        }
    }
}

/// Pushes a packet through a policy.
#[inline]
pub(super) fn push_one(policy: &mut impl Policy, p: Packet, cx: &mut Cx<'_>) {
    if policy.refuses(0, cx) {
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
        if !policy.refuses(0, cx) {
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
