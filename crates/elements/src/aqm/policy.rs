// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushes and pulls packets through a dropping policy: packets pass, or leave on output 1.

use castanet_element::prelude::*;

/// Decides for each packet, in order, whether it is dropped.
pub(super) trait Policy {
    /// A copy of the state, for decisions about packets that arrive together.
    type Run;
    /// Whether other workers read and change the same state. Each packet then needs a run of its own, because what
    /// another worker changes during a run is lost.
    fn is_shared(&self) -> bool;
    /// Begins decisions about packets that arrive now.
    fn begin(&self, cx: &mut Cx<'_>) -> Self::Run;
    /// Returns whether the next packet is to be dropped, and counts the drop. `ahead` packets that were not dropped are on
    /// their way to the queue.
    fn refuses(&mut self, run: &mut Self::Run, ahead: usize) -> bool;
    /// Stores what the decisions have changed.
    fn end(&self, run: Self::Run);
}

/// Decides about one packet.
#[inline]
fn refuses_one(policy: &mut impl Policy, ahead: usize, cx: &mut Cx<'_>) -> bool {
    let mut run = policy.begin(cx);
    let refused = policy.refuses(&mut run, ahead);
    policy.end(run);
    refused
}

/// The effects of a policy. Each decision needs the current length of the queues. So the declared effects make pushed packets
/// arrive one at a time. They are not needed if the queue comes next (its length follows from the packets `ahead`) or if
/// there is no queue (its length is 0). Pulled packets are pulled one by one in any case.
pub(super) fn effects(declared: Effects, pulled: bool, knows_queue: bool) -> Effects {
    if pulled || knows_queue { Effects::empty() } else { declared }
}

/// Pushes packets through a policy.
pub(super) fn push(policy: &mut impl Policy, batch: &mut Batch, cx: &mut Cx<'_>) {
    let mut ahead = 0;
    if policy.is_shared() {
        for p in batch.drain() {
            ahead += usize::from(emit(policy, ahead, p, cx));
        }
        return;
    }
    let mut run = policy.begin(cx);
    cx.forward_by(batch, Reason::EarlyDrop, |_| {
        let refused = policy.refuses(&mut run, ahead);
        ahead += usize::from(!refused);
        usize::from(refused)
    });
    policy.end(run);
}

/// Emits a packet as the policy decides. Returns whether it was not dropped.
#[inline]
fn emit(policy: &mut impl Policy, ahead: usize, p: Packet, cx: &mut Cx<'_>) -> bool {
    let refused = refuses_one(policy, ahead, cx);
    cx.emit_or(usize::from(refused), p, Reason::EarlyDrop);
    !refused
}

/// Pushes a packet through a policy.
#[inline]
pub(super) fn push_one(policy: &mut impl Policy, p: Packet, cx: &mut Cx<'_>) {
    emit(policy, 0, p, cx);
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
        if !refuses_one(policy, 0, cx) {
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
