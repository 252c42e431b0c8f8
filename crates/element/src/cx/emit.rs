// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an element emits, drops and counts packets.

use crate::class::Verdict;
use crate::cx::Cx;
use crate::run_loop::Entry;
use castanet_packet::{Batch, Packet};
use castanet_spec::Reason;

impl Cx<'_> {
    /// Whether an output exists.
    #[inline(always)]
    pub fn has_output(&self, port: usize) -> bool {
        self.out.index(port).is_some()
    }
    /// Returns the verdict that sends a packet to a side output. If the output does not exist, the verdict
    /// drops the packet for `reason`.
    #[inline]
    pub fn out_or(&self, port: u16, reason: Reason) -> Verdict {
        if self.has_output(port as usize) { Verdict::Out(port) } else { Verdict::Drop(reason) }
    }
    /// Sends a packet to an output, or drops it as `no-port` if the output does not exist.
    #[inline(always)]
    pub fn emit(&mut self, port: usize, p: Packet) {
        self.emit_or(port, p, Reason::NoPort);
    }
    /// Sends a packet to an output, or drops it for `reason` if the output does not exist.
    #[inline(always)]
    pub fn emit_or(&mut self, port: usize, p: Packet, reason: Reason) {
        if port < self.out.open as usize {
            self.out.fill_slot(port, p);
            return;
        }
        self.emit_to_edge(port, p, reason);
    }
    /// Puts a packet on the edge of an output. Called when the slot is not open for this output.
    #[inline(never)]
    fn emit_to_edge(&mut self, port: usize, p: Packet, reason: Reason) {
        self.emit_beside(port, p, reason);
    }
    /// Like [`Cx::emit_or`], but never uses the slot: always puts the packet on the edge of the output. For elements
    /// that emit several packets at a time.
    #[inline(always)]
    pub fn emit_beside(&mut self, port: usize, p: Packet, reason: Reason) {
        match self.out.edge(port) {
            Some(e) => e.batch.push(p),
            None => self.drop(p, reason),
        }
    }
    /// Sends all packets of a batch to an output, and leaves the batch empty. If no packets wait at the output, the
    /// batch is swapped with the empty batch there, so that no packet is copied.
    #[inline(always)]
    pub fn forward(&mut self, port: usize, batch: &mut Batch) {
        self.forward_or(port, batch, Reason::NoPort);
    }
    /// Like [`Cx::forward`], but drops the packets for `reason` if the output does not exist.
    #[inline(always)]
    pub fn forward_or(&mut self, port: usize, batch: &mut Batch, reason: Reason) {
        if self.out.open > 0 && batch.len() == 1 {
            if let Some(p) = batch.pop() {
                self.emit_or(port, p, reason);
            }
            return;
        }
        match self.out.edge(port) {
            Some(e) => e.batch.append(batch),
            None => self.drop_all(batch, reason),
        }
    }
    /// Sends each packet of a batch to the output that `output` returns for it, and leaves the batch empty. `output` is
    /// called once for each packet, in order. If all packets go to one output, the batch moves as a whole. Packets for an output
    /// that does not exist are dropped for `reason`.
    #[inline(always)]
    pub fn forward_by(
        &mut self,
        batch: &mut Batch,
        reason: Reason,
        mut output: impl FnMut(&Packet) -> usize,
    ) {
        let mut ports = batch.iter().map(&mut output);
        let Some(first) = ports.next() else { return };
        let (mut alike, mut other) = (1, None);
        for port in ports {
            if port != first {
                other = Some(port);
                break;
            }
            alike += 1;
        }
        match other {
            None => self.forward_or(first, batch, reason),
            Some(other) => self.forward_rest_by(batch, (alike, first), other, reason, output),
        }
    }
    /// The second half of [`Cx::forward_by`]. The first `alike` packets go to the output `first`, and the packet after them
    /// to `other`.
    #[inline(never)]
    fn forward_rest_by(
        &mut self,
        batch: &mut Batch,
        (alike, first): (usize, usize),
        other: usize,
        reason: Reason,
        mut output: impl FnMut(&Packet) -> usize,
    ) {
        let mut packets = batch.drain();
        self.emit_from(packets.by_ref().take(alike), reason, |_| Ok(first), Self::lose);
        self.emit_from(packets.by_ref().take(1), reason, |_| Ok(other), Self::lose);
        self.emit_from(packets, reason, |p| Ok(output(p)), Self::lose);
    }
    /// Sends each packet of a batch to the output that `output` returns for it, in order, and leaves the batch empty. If `output`
    /// returns a reason, the packet is dropped for it. Packets for an output that does not exist are dropped for `none`.
    /// Never uses the slot, like [`Cx::emit_beside`].
    #[inline(always)]
    pub fn emit_each(
        &mut self,
        batch: &mut Batch,
        none: Reason,
        output: impl FnMut(&mut Packet) -> Result<usize, Reason>,
    ) {
        self.emit_from(batch.drain(), none, output, Self::lose);
    }
    /// Like [`Cx::emit_each`], but passes the packets that have no output to `other`, with the reason.
    #[inline(always)]
    pub fn emit_each_or(
        &mut self,
        batch: &mut Batch,
        none: Reason,
        output: impl FnMut(&mut Packet) -> Result<usize, Reason>,
        other: impl FnMut(&mut Self, Packet, Reason),
    ) {
        self.emit_from(batch.drain(), none, output, other);
    }
    /// Like [`Cx::emit_each_or`], for any packets.
    #[inline(always)]
    fn emit_from(
        &mut self,
        mut packets: impl Iterator<Item = Packet>,
        none: Reason,
        mut output: impl FnMut(&mut Packet) -> Result<usize, Reason>,
        mut other: impl FnMut(&mut Self, Packet, Reason),
    ) {
        while let Some((p, reason)) = self.out.scatter(&mut packets, none, &mut output) {
            other(self, p, reason);
        }
    }
    /// Drops a packet that has no output.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, p: Packet, reason: Reason) {
        self.drop(p, reason);
    }
    /// Drops a packet and counts it.
    #[inline]
    pub fn drop(&mut self, p: Packet, reason: Reason) {
        self.core.count_drops(self.out.range.me, reason, 1);
        drop(p);
    }
    /// Counts `n` drops of packets that were never made, for example because no buffer was free.
    #[inline]
    pub fn count_drops(&mut self, reason: Reason, n: u64) {
        self.core.count_drops(self.out.range.me, reason, n);
    }
    /// Drops all packets of a batch and counts them.
    #[inline]
    pub fn drop_all(&mut self, batch: &mut Batch, reason: Reason) {
        self.drop_counted(batch, reason);
    }
    /// Drops all packets of a batch and counts them. Returns the number of packets that they count as: super-packets count as their
    /// segments.
    #[inline]
    pub fn drop_counted(&mut self, batch: &mut Batch, reason: Reason) -> u64 {
        self.core.count_drops(self.out.range.me, reason, batch.len() as u64);
        batch.clear_counted()
    }

    /// Makes the programs in the kernel again when this element has returned, because its code there has changed or is no longer
    /// attached. Does nothing for a router without such programs. Writes to handlers do this by themselves.
    pub fn renew_kernel(&mut self) {
        self.core.stale = true;
    }
    /// Lets a packet continue at an input of another element, downstream of this one, where it has left its code in the
    /// kernel. The packets of a call move in order, after those that were emitted.
    pub fn resume(&mut self, element: u32, input: u32, p: Packet) {
        self.core.resumed.push((element, input, p));
    }
    /// Notes that a packet has a ticket which was passed to [`Cx::resume`] in this call. When the packet has left the router, the programs in
    /// the kernel get to know.
    pub fn note_ticket(&mut self, ticket: castanet_kernel::order::Ticket) {
        self.core.tickets.push(ticket);
    }
    /// Counts packets that enter the router through this element. The class must declare `ledger(enters)`.
    #[inline]
    pub fn entered(&mut self, n: u64) {
        self.core.count_entry(self.out.range.me, Entry::Entered, n);
    }
    /// Counts packets that this element makes from others: copies, fragments, answers. The class must declare
    /// `ledger(makes)`.
    #[inline]
    pub fn made(&mut self, n: u64) {
        self.core.count_entry(self.out.range.me, Entry::Made, n);
    }
    /// Counts packets that leave the router through this element. The class must declare `ledger(leaves)`.
    #[inline]
    pub fn left(&mut self, n: u64) {
        self.core.count_entry(self.out.range.me, Entry::Left, n);
    }
    /// Counts packets that the kernel dropped before this element could read them. If a handler of the element shows
    /// this number while the router runs, call this function only at cleanup, so that the ledger keeps the number when
    /// the element is gone. The class must declare `ledger(enters)`.
    pub fn missed(&mut self, n: u64) {
        self.core.count_entry(self.out.range.me, Entry::Missed, n);
    }
    /// Sends a copy of a packet to an output. The copy is dropped if no buffer is free. The class must declare
    /// `ledger(makes)`.
    pub fn emit_copy(&mut self, port: usize, p: &mut Packet) {
        self.made(1);
        match p.copy() {
            Some(copy) => self.emit(port, copy),
            None => self.core.count_drops(self.out.range.me, Reason::NoBuffer, 1),
        }
    }

    /// Puts a packet behind the packet that the action is processing. Both packets leave through output 0, the new one
    /// last. The action must return [`Verdict::Several`].
    pub fn behind(&mut self, p: Packet) {
        self.core.behind.push(p);
    }

    /// Like [`Cx::behind`], but puts the packet before the last `n` packets that are already behind the current one.
    pub fn behind_before(&mut self, n: usize, p: Packet) {
        let behind = self.core.behind.as_mut_vec();
        behind.insert(behind.len().saturating_sub(n), p);
    }

    /// Returns an empty batch. Reuses a batch from [`Cx::return_batch`] if there is one, so that no memory is
    /// allocated.
    #[inline]
    pub fn spare_batch(&mut self) -> Batch {
        self.core.spare.pop().unwrap_or_default()
    }
    /// Takes a batch back, for [`Cx::spare_batch`] to reuse. Packets left in the batch are dropped as
    /// [`Reason::Discarded`].
    #[inline]
    pub fn return_batch(&mut self, mut batch: Batch) {
        if !batch.is_empty() {
            self.drop_all(&mut batch, Reason::Discarded);
        }
        self.core.spare.push(batch);
    }

    /// Runs an action on each packet of a batch. Packets for which it returns [`Verdict::Next`] stay in the batch, and
    /// all others leave it. The order of the packets does not change.
    #[inline(always)]
    pub fn apply(&mut self, batch: &mut Batch, mut f: impl FnMut(&mut Packet, &mut Cx<'_>) -> Verdict) {
        let mut left = None;
        for (i, p) in batch.iter_mut().enumerate() {
            let v = f(p, self);
            if !matches!(v, Verdict::Next) {
                left = Some((i, v));
                break;
            }
        }
        if let Some((i, v)) = left {
            self.apply_rest(batch, i, v, f);
        }
    }
    /// The second half of [`Cx::apply`]. It begins with the first packet that leaves the batch: `from` is the index of
    /// this packet, and `first` is the verdict on it. This packet and all packets behind it move to a second batch.
    /// Those that continue come back one by one.
    #[inline(never)]
    pub(crate) fn apply_rest(
        &mut self,
        batch: &mut Batch,
        from: usize,
        first: Verdict,
        mut f: impl FnMut(&mut Packet, &mut Cx<'_>) -> Verdict,
    ) {
        let mut rest = std::mem::replace(&mut self.core.scratch, Batch::empty());
        rest.extend(batch.as_mut_vec().drain(from..));
        let mut known = Some(first);
        for mut p in rest.drain() {
            let v = known.take().unwrap_or_else(|| f(&mut p, self));
            match v {
                Verdict::Next => batch.push(p),
                Verdict::Out(port) if self.out.open == 0 => {
                    self.emit_beside(port as usize, p, Reason::NoPort);
                }
                Verdict::Out(port) => self.emit(port as usize, p),
                Verdict::Drop(reason) => self.drop(p, reason),
                Verdict::Several => {
                    batch.push(p);
                    batch.extend(self.core.behind.drain());
                }
            }
        }
        self.core.scratch = rest;
    }
}
