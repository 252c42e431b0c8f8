// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a dropping policy, pushed and pulled: they pass, or leave on output 1.

use castanet_element::prelude::*;

/// Decides about packets, one after the other.
pub(super) trait Policy {
    /// Whether the packet that is passing is to be dropped, which is counted.
    fn refuses(&mut self, cx: &mut Cx<'_>) -> bool;
}

/// Packets that are pushed.
pub(super) fn push(policy: &mut impl Policy, batch: &mut Batch, cx: &mut Cx<'_>) {
    for p in batch.drain() {
        push_one(policy, p, cx);
    }
}

/// A packet that is pushed.
#[inline]
pub(super) fn push_one(policy: &mut impl Policy, p: Packet, cx: &mut Cx<'_>) {
    if policy.refuses(cx) {
        cx.emit_or(1, p, Reason::EarlyDrop);
    } else {
        cx.emit(0, p);
    }
}

/// Packets that are pulled. Each is asked for when the one before has been decided about, so that queues are as long as single
/// pulls would find them.
pub(super) fn pull(policy: &mut impl Policy, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
    for _ in 0..max {
        let Some(p) = pull_one(policy, cx) else { break };
        into.push(p);
    }
}

/// The first packet that is not dropped.
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
