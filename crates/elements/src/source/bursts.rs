// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bursts of a source that pushes as fast as its packets are accepted.

use castanet_element::prelude::*;

/// How far the task of a source is in its burst, and the queues downstream that must have free space.
pub(super) struct Bursts {
    /// Packets of the current burst that earlier turns have sent.
    sent: usize,
    downstream: Signal,
}

impl Bursts {
    pub(super) fn new() -> Bursts {
        Bursts { sent: 0, downstream: Signal::always() }
    }
    /// Makes the task sleep while every queue downstream of output 0 that has a notifier is full.
    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        self.downstream = cx.downstream(0);
    }
    /// Makes the next turn begin a burst.
    pub(super) fn restart(&mut self) {
        self.sent = 0;
    }
    /// Continues the burst of the old source (hot swap).
    pub(super) fn go_on_from(&mut self, old: &Bursts) {
        self.sent = old.sent;
    }
    /// Returns how many packets of a burst of `burst` packets this turn may send, if there is free space downstream.
    #[inline]
    pub(super) fn rest(&self, burst: usize, cx: &Cx<'_>) -> usize {
        burst.saturating_sub(self.sent).min(cx.limit())
    }
    /// Returns how many of `want` packets this turn may send now. If there is no free space downstream, the error is
    /// the `Turn` that the task must return.
    #[inline]
    pub(super) fn room(&self, want: usize, cx: &mut Cx<'_>) -> Result<usize, Turn> {
        cx.room(&self.downstream, want, self.sent > 0)
    }
    /// Like [`Bursts::room`] for a single packet that begins a burst.
    #[inline(always)]
    pub(super) fn room_for_one(&self, cx: &mut Cx<'_>) -> Result<usize, Turn> {
        cx.room(&self.downstream, 1, false)
    }
    /// Whether the next turn begins a burst, and there is free space downstream.
    pub(super) fn is_plain(&self, cx: &Cx<'_>) -> bool {
        self.sent == 0 && cx.is_on(&self.downstream)
    }
    /// Ends a turn that sent `n` packets of a burst. `left` is the number of packets that LIMIT still allowed before
    /// this turn.
    pub(super) fn end_turn(&mut self, n: usize, left: usize, burst: usize) -> Turn {
        self.sent += n;
        // If no packet was sent, the pool is empty: other tasks must get a turn, so that buffers are returned.
        if n == 0 || n >= left || self.sent >= burst {
            self.sent = 0;
            return Turn::Again;
        }
        Turn::More
    }
}
