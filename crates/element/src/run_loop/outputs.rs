// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of the running element.
//!
//! Emitted packets wait in the batches of edges until the element returns. `touched` has a bit for each edge
//! of the node with such packets, so that the run loop need not search for them.
//!
//! A packet that travels alone does not need a batch. While `open` is above zero, the first emission stays in
//! `slot`, and the run loop takes it from there to the next element. A second emission, or a handler call,
//! moves the packet from the slot to its edge and sets `open` to zero.

use super::edge::Edge;
use castanet_packet::{Batch, Packet};

/// The running element, and the edges that belong to it.
#[derive(Clone, Copy, Debug, Default)]
// Copied for each element that a packet meets; the alignment lets the compiler copy it in one piece.
#[repr(C, align(16))]
pub struct EdgeRange {
    /// The number of the element.
    pub me: u32,
    /// The index of its first edge.
    pub base: u32,
    /// The number of its edges: one for each output. The edges of an action in a chain begin with output 1,
    /// because output 0 is the next action.
    pub count: u32,
    /// The number of edges of the node that come before the edges of this element: above 0 in a chain, 0 for
    /// an element that is a node of its own.
    // INVARIANT: zero for elements, above zero for actions.
    pub skip: u32,
}

/// The outputs of the running element.
pub struct Outputs<'a> {
    edges: &'a mut [Edge],
    pub(crate) range: EdgeRange,
    slot_edge: u32,
    /// Bit `i` stands for edge `i` of the node. Bit 63 stands for all edges from 63 on, and for handler calls
    /// that wait.
    touched: u64,
    // INVARIANT: empty while any bit of `touched` is set, and while `open` is not zero.
    slot: Option<Packet>,
    /// The next emission stays in `slot` if the number of its output is below this value, which is the number of
    /// outputs or zero.
    pub(crate) open: u32,
}

impl<'a> Outputs<'a> {
    /// Makes the outputs of an element. With `single`, a single packet is moved, without a batch, and the first
    /// emission may stay in the slot.
    #[inline(always)]
    pub(crate) fn new(edges: &'a mut [Edge], range: EdgeRange, single: bool) -> Outputs<'a> {
        let open = if single { range.count } else { 0 };
        Outputs { edges, range, slot_edge: 0, touched: 0, slot: None, open }
    }
    /// Records that an action is now the running element. The slot is not opened, because only elements
    /// outside chains may leave a packet in the slot.
    #[inline(always)]
    pub fn enter(&mut self, range: EdgeRange) {
        self.range = range;
    }
    /// Makes an element the running one and opens the slot, because the element gets a single packet.
    #[inline(always)]
    pub fn enter_single(&mut self, range: EdgeRange) {
        self.range = range;
        self.open = range.count;
    }
    /// The edges of the node that have packets, as bits. Bit 63 stands for all edges from 63 on, and for
    /// handler calls that wait.
    #[inline(always)]
    pub fn touched(&self) -> u64 {
        self.touched
    }
    /// Returns the bits of `touched` and clears them.
    #[inline(always)]
    pub fn take_touched(&mut self) -> u64 {
        std::mem::take(&mut self.touched)
    }
    /// Adds bits to `touched`.
    #[inline(always)]
    pub fn touch(&mut self, touched: u64) {
        self.touched |= touched;
    }
    /// Takes the packet out of the slot, and returns it with the index of its edge. Returns none if the element has not
    /// emitted exactly one packet, or if handler calls must be performed first. If it returns a packet, no bit of
    /// `touched` is set.
    #[inline(always)]
    pub fn take_slot(&mut self) -> Option<(usize, Packet)> {
        self.slot.take().map(|p| (self.slot_edge as usize, p))
    }
    /// An edge, by its index.
    #[inline(always)]
    pub fn edge_at(&mut self, i: usize) -> Option<&mut Edge> {
        self.edges.get_mut(i)
    }
    /// Puts a batch on an edge, by its index.
    pub fn park(&mut self, i: usize, batch: &mut Batch) {
        self.touched |= self.bit(i);
        if let Some(e) = self.edges.get_mut(i) {
            e.batch.append(batch);
        }
    }
    /// Marks an edge as touched and returns it, by its index.
    pub(crate) fn touch_edge(&mut self, i: usize) -> Option<&mut Edge> {
        self.touched |= self.bit(i);
        self.edges.get_mut(i)
    }
    /// The index of the edge of an output.
    #[inline(always)]
    pub(crate) fn index(&self, port: usize) -> Option<usize> {
        let EdgeRange { base, count, skip, .. } = self.range;
        let i = port.wrapping_sub(usize::from(skip != 0));
        (i < count as usize).then_some(base as usize + i)
    }
    /// The bit of an edge.
    #[inline(always)]
    fn bit(&self, i: usize) -> u64 {
        let node = self.range.base.wrapping_sub(self.range.skip);
        1 << i.wrapping_sub(node as usize).min(63)
    }
    /// Puts a packet into the slot, which must be open for the output.
    #[inline(always)]
    pub(crate) fn fill_slot(&mut self, port: usize, p: Packet) {
        self.open = 0;
        // An element outside chains has all edges of its node, output 0 first.
        self.slot_edge = self.range.base.wrapping_add(port as u32);
        // The slot is empty, but the compiler cannot see this. `forget` saves the code that would drop the
        // old value.
        std::mem::forget(self.slot.replace(p));
    }
    /// The edge of an output, to put packets on.
    #[inline(always)]
    pub(crate) fn edge(&mut self, port: usize) -> Option<&mut Edge> {
        let i = self.index(port)?;
        self.close();
        self.touched |= self.bit(i);
        self.edges.get_mut(i)
    }
    /// Closes the slot. A packet in it moves to its edge.
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
