// SPDX-License-Identifier: MIT OR Apache-2.0
//! The count of the packets that a source has sent, and its limit.

use castanet_element::prelude::*;

/// Whether `limit` packets have been sent, if `sent` is the number of packets sent. A negative limit means no limit.
#[inline(always)]
pub(crate) fn is_reached(limit: i64, sent: u64) -> bool {
    u64::try_from(limit).is_ok_and(|limit| limit <= sent)
}

/// The number of packets that a source has sent.
#[derive(Counts, Default)]
pub(super) struct SentCount {
    /// Packets sent.
    #[count(unit = "packets")]
    count: Count,
}

impl SentCount {
    /// The number.
    pub(super) fn get(&self) -> u64 {
        self.count.get()
    }
    /// Resets the count to 0.
    pub(super) fn reset(&mut self) {
        self.count.reset();
    }
    /// Counts `n` packets that the source sends now.
    #[inline(always)]
    pub(super) fn add(&mut self, n: usize, cx: &mut Cx<'_>) {
        self.count.add(n as u64);
        cx.entered(n as u64);
    }
    /// Whether `limit` packets have been sent. A negative limit means no limit.
    #[inline(always)]
    pub(super) fn has_reached(&self, limit: i64) -> bool {
        is_reached(limit, self.count.get())
    }
    /// Returns how many packets may still be sent under a limit. A negative limit means no limit.
    #[inline]
    pub(super) fn left(&self, limit: i64) -> usize {
        match u64::try_from(limit) {
            Ok(limit) => usize::try_from(limit.saturating_sub(self.count.get())).unwrap_or(usize::MAX),
            Err(_) => usize::MAX,
        }
    }
    /// Makes at most `n` packets, until `packet` returns `None`. Counts them and appends them to `into`. With
    /// `timestamp`, they get the current time. Returns the number of packets.
    #[inline]
    pub(super) fn fill(
        &mut self,
        into: &mut Batch,
        n: usize,
        timestamp: bool,
        cx: &mut Cx<'_>,
        mut packet: impl FnMut() -> Option<Packet>,
    ) -> usize {
        let before = into.len();
        for _ in 0..n {
            let Some(p) = packet() else { break };
            into.push(p);
        }
        let packets = into.as_mut_slice().get_mut(before..).unwrap_or_default();
        if timestamp {
            stamp(packets, cx);
        }
        self.add(packets.len(), cx);
        packets.len()
    }
}

/// Sets the timestamps of packets that leave now. Real time is read once for all packets. Simulated time is read for
/// each packet, because each read advances it.
fn stamp(packets: &mut [Packet], cx: &mut Cx<'_>) {
    if cx.is_simulated() {
        for p in packets {
            p.set_timestamp(cx.now());
        }
    } else {
        let now = cx.now();
        for p in packets {
            p.set_timestamp(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let mut sent = SentCount::default();
        sent.count.add(5);
        for (limit, left) in [(-1, usize::MAX), (0, 0), (5, 0), (7, 2)] {
            assert_eq!((sent.left(limit), sent.has_reached(limit)), (left, left == 0), "{limit}");
        }
    }
}
