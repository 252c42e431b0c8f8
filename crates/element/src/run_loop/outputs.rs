// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of the running element.
//!
//! Emitted packets wait in the batches of edges until the element returns. `touched` has a bit for each edge of the
//! node that has such packets, so that the run loop need not search for these edges.
//!
//! A packet that travels alone needs no batch. While `open` is above 0, the first packet that an element emits stays in
//! `slot`, and the run loop passes it from there to the next element. If the element emits a second packet or calls a
//! handler, the packet moves from the slot to its edge, and `open` becomes 0.

use super::edge::Edge;
use castanet_packet::{Batch, Packet};
use castanet_spec::Reason;

/// An element, and the range of edges that belong to it.
#[derive(Clone, Copy, Debug, Default)]
// The run loop copies this struct for each element that a packet meets. The alignment lets the compiler use a single
// 16-byte copy.
#[repr(C, align(16))]
pub struct EdgeRange {
    /// The number of the element.
    pub me: u32,
    /// The index of its first edge, among all edges of the context.
    pub base: u32,
    /// The number of the element's edges. An element has an edge for each output. An action in a chain has none for
    /// output 0, which leads to the next action of the chain.
    pub count: u32,
    /// The number of edges of the element's node that come before the element's own edges. This number is above 0 for
    /// an action in a chain, and 0 for an element that is a node of its own.
    // INVARIANT: 0 for an element that is a node of its own, above 0 for an action in a chain.
    pub skip: u32,
}

/// The outputs of the running element, and the packets that it has emitted.
pub struct Outputs<'a> {
    edges: &'a mut [Edge],
    pub(crate) range: EdgeRange,
    slot_edge: u32,
    /// The edges of the node that have packets, as bits. Bit `i` stands for edge `i` of the node. Bit 63 stands for all
    /// edges from 63 on, and also for waiting handler calls.
    touched: u64,
    // INVARIANT: `slot` is empty while any bit of `touched` is set, and while `open` is not 0.
    slot: Option<Packet>,
    /// The number of outputs if the slot is open, 0 if it is closed. The next packet stays in `slot` if the number of
    /// its output is below this value.
    pub(crate) open: u32,
}

impl<'a> Outputs<'a> {
    /// Makes the outputs of an element. If `single` is true, the element handles a single packet without a batch, and
    /// the slot is open.
    #[inline(always)]
    pub(crate) fn new(edges: &'a mut [Edge], range: EdgeRange, single: bool) -> Outputs<'a> {
        let open = if single { range.count } else { 0 };
        Outputs { edges, range, slot_edge: 0, touched: 0, slot: None, open }
    }
    /// Selects an action as the running element. The slot stays closed, because only elements outside chains may use
    /// it.
    #[inline(always)]
    pub fn enter(&mut self, range: EdgeRange) {
        self.range = range;
    }
    /// Selects the running element, which gets a single packet, and opens the slot.
    #[inline(always)]
    pub fn enter_single(&mut self, range: EdgeRange) {
        self.range = range;
        self.open = range.count;
    }
    /// The edges of the node that have packets, as bits. Bit 63 stands for all edges from 63 on, and also for waiting
    /// handler calls.
    #[inline(always)]
    pub fn touched(&self) -> u64 {
        self.touched
    }
    /// Returns the bits of `touched` and clears them.
    #[inline(always)]
    pub fn take_touched(&mut self) -> u64 {
        std::mem::take(&mut self.touched)
    }
    /// Sets bits of `touched`.
    #[inline(always)]
    pub fn touch(&mut self, touched: u64) {
        self.touched |= touched;
    }
    /// Takes the packet out of the slot, and returns it with the index of its edge. Returns none if the element has not
    /// emitted exactly one packet, or if handler calls must run first. When a packet is returned, no bit of `touched`
    /// is set.
    #[inline(always)]
    pub fn take_slot(&mut self) -> Option<(usize, Packet)> {
        self.slot.take().map(|p| (self.slot_edge as usize, p))
    }
    /// The number of packets in the slot and on the edges of the running element.
    pub(crate) fn waiting(&self) -> usize {
        let EdgeRange { base, count, .. } = self.range;
        let edges = self.edges.iter().skip(base as usize).take(count as usize);
        edges.map(|e| e.batch.len()).sum::<usize>() + usize::from(self.slot.is_some())
    }
    /// Writes to `lengths` how many packets wait on the edges of the running element, by edge.
    pub fn lengths(&self, lengths: &mut Vec<usize>) {
        let EdgeRange { base, count, .. } = self.range;
        lengths.clear();
        let edges = self.edges.iter().skip(base as usize).take(count as usize);
        lengths.extend(edges.map(|e| e.batch.len()));
    }
    /// Calls `visit` with each packet that the running element has emitted since [`Outputs::lengths`] returned `before`, and
    /// with the number of its output.
    pub fn emitted_since(&mut self, before: &[usize], mut visit: impl FnMut(usize, &mut Packet)) {
        let EdgeRange { base, count, skip, .. } = self.range;
        let first = usize::from(skip != 0);
        let edges = self.edges.iter_mut().skip(base as usize).take(count as usize);
        for (i, (edge, before)) in edges.zip(before).enumerate() {
            edge.batch.iter_mut().skip(*before).for_each(|p| visit(i + first, p));
        }
        if let Some(p) = &mut self.slot {
            visit(self.slot_edge.wrapping_sub(base) as usize, p);
        }
    }
    /// Returns the edge with index `i`.
    #[inline(always)]
    pub fn edge_at(&mut self, i: usize) -> Option<&mut Edge> {
        self.edges.get_mut(i)
    }
    /// Moves a batch to the edge with index `i`, and marks the edge as touched.
    pub fn park(&mut self, i: usize, batch: &mut Batch) {
        self.touched |= self.bit(i);
        if let Some(e) = self.edges.get_mut(i) {
            e.batch.append(batch);
        }
    }
    /// Marks the edge with index `i` as touched, and returns it.
    pub(crate) fn touch_edge(&mut self, i: usize) -> Option<&mut Edge> {
        self.touched |= self.bit(i);
        self.edges.get_mut(i)
    }
    /// Returns the index of the edge of an output. None if the output does not exist.
    #[inline(always)]
    pub(crate) fn index(&self, port: usize) -> Option<usize> {
        let EdgeRange { base, count, skip, .. } = self.range;
        let i = port.wrapping_sub(usize::from(skip != 0));
        (i < count as usize).then_some(base as usize + i)
    }
    /// Returns the bit in `touched` that stands for the edge with index `i`.
    #[inline(always)]
    fn bit(&self, i: usize) -> u64 {
        let node = self.range.base.wrapping_sub(self.range.skip);
        1 << i.wrapping_sub(node as usize).min(63)
    }
    /// Puts a packet into the slot. The slot must be open for output `port`.
    #[inline(always)]
    pub(crate) fn fill_slot(&mut self, port: usize, p: Packet) {
        self.open = 0;
        // Only an element outside chains gets here. It has all edges of its node, and the first one belongs to output
        // 0.
        self.slot_edge = self.range.base.wrapping_add(port as u32);
        // The slot is empty, but the compiler cannot see this. Without `forget`, it would add code to drop the old
        // value.
        std::mem::forget(self.slot.replace(p));
    }
    /// Returns the edge of an output, to put packets on it. Closes the slot and marks the edge as touched.
    #[inline(always)]
    pub(crate) fn edge(&mut self, port: usize) -> Option<&mut Edge> {
        let i = self.index(port)?;
        self.close();
        self.touched |= self.bit(i);
        self.edges.get_mut(i)
    }
    /// Puts each packet on the edge of the output that `output` returns for it. Stops at the first packet without an
    /// output, and returns it with the reason: that of `output`, or `none` if there is no such output.
    #[inline(always)]
    pub(crate) fn scatter(
        &mut self,
        packets: &mut impl Iterator<Item = Packet>,
        none: Reason,
        output: &mut impl FnMut(&mut Packet) -> Result<usize, Reason>,
    ) -> Option<(Packet, Reason)> {
        self.close();
        let EdgeRange { base, count, skip, .. } = self.range;
        let range = base as usize..(base as usize).saturating_add(count as usize);
        let edges = self.edges.get_mut(range).unwrap_or_default();
        let (first, skip) = (usize::from(skip != 0), skip as usize);
        let mut marks = Marks { touched: &mut self.touched, new: 0 };
        for mut p in packets {
            let port = match output(&mut p) {
                Ok(port) => port,
                Err(reason) => return Some((p, reason)),
            };
            let i = port.wrapping_sub(first);
            let Some(edge) = edges.get_mut(i) else { return Some((p, none)) };
            marks.new |= 1 << i.saturating_add(skip).min(63);
            edge.batch.push(p);
        }
        None
    }
    /// Closes the slot. If it has a packet, moves the packet to its edge.
    #[inline(always)]
    pub(crate) fn close(&mut self) {
        self.open = 0;
        if self.slot.is_some() {
            self.empty_slot();
        }
    }
    #[cold]
    #[inline(never)]
    fn empty_slot(&mut self) {
        if let Some((i, p)) = self.take_slot() {
            self.touched |= self.bit(i);
            if let Some(e) = self.edges.get_mut(i) {
                e.batch.push(p);
            }
        }
    }
}

/// Bits that are added to `touched` when this value is dropped, on every way out. Until then they can stay in a register.
struct Marks<'a> {
    touched: &'a mut u64,
    new: u64,
}

impl Drop for Marks<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.touched |= self.new;
    }
}
