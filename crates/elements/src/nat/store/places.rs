// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds and removes flows. Keeps the list of flows, the hash table of their keys, and the counts of flows in step.

use super::{New, Space, Store};
use crate::nat::flow::{Flow, RewriterKind, bit};
use crate::nat::spec::Outs;
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;
use std::cmp::Reverse;

/// Returns the flow that rewrites packets to `to`.
fn flow(new: &New, to: Tuple, outs: Outs, kind: RewriterKind) -> Flow {
    let reply = to.reversed();
    let change = new.from.change(to);
    Flow {
        tuples: [new.from, reply],
        last: new.now,
        ip_change: change.addrs,
        transport_change: kind.transport_change(change),
        generation: 0,
        outs,
        space: new.space,
        input: new.input,
        proto: new.proto,
        class: new.class,
        // If both directions have the same tuple, the table needs only one key. That key is marked as the key for
        // replies, so all packets but the first count as replies.
        bits: if new.from == reply { bit::REPLY } else { bit::ALIVE },
        anno: new.anno,
        copied: 0,
    }
}

impl Store {
    /// Adds a flow that rewrites packets to `to`, and returns the index of the new flow. If the store is full, evicts
    /// another flow. Returns an error if no flow may be evicted.
    pub fn insert(&mut self, new: &New, to: Tuple, outs: Outs) -> Result<u32, Reason> {
        let expiry = self.expiry_of_newcomer(new);
        while self.count() >= self.limit() {
            if !self.evict(new.now, expiry) {
                return Err(Reason::TableFull);
            }
        }
        let kind = self.space(new.space).map(|s| s.kind).ok_or(Reason::NoMapping)?;
        let f = flow(new, to, outs, kind);
        let (tags, [_, reply]) = (self.tags(&f), f.tuples);
        // If another flow has the same reply key, the new flow takes over the key.
        if let Some(v) = self.index.find(tags[1], |v| self.is(v, f.space, f.proto, reply)) {
            self.refresh(v >> 1, new.now);
            self.detach(v, tags[1]);
        }
        let place = self.add(f, tags).ok_or(Reason::TableFull)?;
        if kind == RewriterKind::Addr {
            self.copy_both(place, Some(new.now));
        }
        self.trim(new.space, new.class);
        Ok(place)
    }

    /// Returns the tags (hashes) of a flow's two keys: the key of forward packets, and the key of replies.
    pub(super) fn tags(&self, f: &Flow) -> [u32; 2] {
        f.tuples.map(|t| self.tag(f.space, f.proto, t))
    }

    /// Adds a flow at a free index, and returns that index; `None` if none is free. No other flow in the table may have
    /// the same keys.
    #[inline]
    pub(super) fn add(&mut self, mut f: Flow, tags: [u32; 2]) -> Option<u32> {
        let place = self.free_place(&f)?;
        let there = self.flows.get_mut(place as usize)?;
        f.generation = there.generation;
        for (reply, tag) in (0u32..).zip(tags) {
            if f.has(reply == 1) {
                self.index.insert(tag, place << 1 | reply);
            }
        }
        if let Some(s) = self.spaces.get_mut(usize::from(f.space)) {
            s.count_in(&f, place);
        }
        *there = f;
        Some(place)
    }

    /// Returns a free index in the list of flows. If all indexes are in use, appends a copy of `f` without keys to the
    /// list and returns the index of the copy. Returns `None` if the list cannot grow.
    fn free_place(&mut self, f: &Flow) -> Option<u32> {
        self.free.pop().or_else(|| {
            let place = u32::try_from(self.flows.len()).ok().filter(|p| *p < u32::MAX >> 1)?;
            self.flows.push(Flow { bits: 0, ..f.clone() });
            Some(place)
        })
    }

    /// Removes the key of one direction of a flow from the table. A flow without keys is released.
    fn detach(&mut self, value: u32, tag: u32) {
        let (place, reply) = (value >> 1, value & 1 == 1);
        self.index.remove(tag, value);
        self.end_copy(place, reply);
        let Some(f) = self.flows.get_mut(place as usize) else { return };
        f.bits &= !(bit::FORWARD << u8::from(reply));
        let (space, alive) = (usize::from(f.space), f.bits & bit::ALIVE != 0);
        if let Some(s) = self.spaces.get_mut(space) {
            s.entries = s.entries.saturating_sub(1);
        }
        if !alive {
            self.release(place);
        }
    }

    /// Removes a flow.
    pub fn remove(&mut self, place: u32) {
        let Some(f) = self.flow(place) else { return };
        let (space, proto, tuples) = (f.space, f.proto, f.tuples);
        let present = [f.has(false), f.has(true)];
        for (i, t) in tuples.into_iter().enumerate() {
            if present[i] {
                self.detach(place << 1 | i as u32, self.tag(space, proto, t));
            }
        }
    }

    /// Frees the index of a flow that has no key in the table any more.
    fn release(&mut self, place: u32) {
        let Some(f) = self.flows.get_mut(place as usize) else { return };
        f.generation = f.generation.wrapping_add(1);
        let (space, input, class, shifted) = (f.space, f.input, f.class, f.bits & bit::SHIFTED != 0);
        f.bits = 0;
        if let Some(s) = self.spaces.get_mut(usize::from(space)) {
            if let Some(i) = s.inputs.get_mut(usize::from(input)) {
                i.flows = i.flows.saturating_sub(1);
            }
            if let Some(c) = s.classes.get_mut(usize::from(class)) {
                c.flows = c.flows.saturating_sub(1);
            }
        }
        if shifted {
            self.shifts.remove(&place);
        }
        self.free.push(place);
        self.removals = self.removals.wrapping_add(1);
    }

    /// Removes all flows of a rewriter.
    pub fn clear(&mut self, space: u16) {
        for place in self.places(space) {
            self.remove(place);
        }
        if self.count() == 0 {
            self.index.clear();
        }
    }
    /// The indexes of all flows of a rewriter.
    pub fn places(&self, space: u16) -> Vec<u32> {
        let all = (0u32..).zip(&self.flows);
        all.filter(|(_, f)| f.space == space && f.bits & bit::ALIVE != 0).map(|(p, _)| p).collect()
    }
    /// Removes all flows that an input of a rewriter made.
    pub fn clear_input(&mut self, space: u16, input: u16) {
        for place in self.places(space) {
            if self.flow(place).is_some_and(|f| f.input == input) {
                self.remove(place);
            }
        }
    }
}

impl Space {
    /// Counts a new flow, and adds it to the heap of its timeout class.
    fn count_in(&mut self, f: &Flow, place: u32) {
        self.entries += usize::from(f.has(false)) + usize::from(f.has(true));
        if let Some(i) = self.inputs.get_mut(usize::from(f.input)) {
            i.flows += 1;
        }
        if let Some(c) = self.classes.get_mut(usize::from(f.class)) {
            c.flows += 1;
            c.heap.push(Reverse((f.last, place, f.generation)));
        }
    }
}
