// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of flows in a table of the kernel, by which programs rewrite packets (`nat::kernel`).
//!
//! A direction of a flow is copied once its packets change nothing in the flow but the time. The kernel notes the time of the last packet
//! in each copy, and everything that depends on the age of a flow reads it there.

use super::Store;
use crate::nat::flow::{Flow, RewriterKind, bit};
use crate::nat::tuple::{Tuple, is_nothing};
use castanet_element::kernel::{Table, TableKind, TableSpec};
use std::sync::Arc;

/// The table: by the key of a direction, how its packets are rewritten.
pub const COPIES: TableSpec =
    TableSpec { kind: TableKind::Exact, key: 16, value: 40, entries: 1 << 18, ordered: true };

/// The offsets of the parts of a copy. Addresses, ports and changes of checksums are as in packets; the other numbers are in the order of the processor.
pub mod at {
    /// The time of the last packet on the clock of programs, 8 bytes; 0 if it is not known.
    pub const LAST: i32 = 0;
    /// The time in nanoseconds without a packet after which packets go up, because the flow may have expired; 8 bytes.
    pub const LIMIT: i32 = 8;
    /// The new addresses: source and destination.
    pub const ADDRS: i32 = 16;
    /// The new ports: source and destination.
    pub const PORTS: i32 = 24;
    /// The change of the checksum of the IP header, 2 bytes.
    pub const IP_CHANGE: i32 = 28;
    /// The change of the transport checksum, 2 bytes.
    pub const TRANSPORT_CHANGE: i32 = 30;
    /// The output, a number of 2 bytes.
    pub const OUT: i32 = 32;
    /// 1 for replies, otherwise 0.
    pub const REPLY: i32 = 34;
    /// The value that replies get in the annotation REPLY_ANNO.
    pub const ANNO: i32 = 35;
}

/// The bit for a direction in [`Flow::copied`].
fn mark(reply: bool) -> u8 {
    bit::FORWARD << u8::from(reply)
}

/// The key of packets with these addresses, ports and protocol.
fn key(tuple: Tuple, proto: u8) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&tuple.addrs.to_le_bytes());
    key[8..12].copy_from_slice(&tuple.ports.to_le_bytes());
    key[12..].copy_from_slice(&u32::from(proto).to_ne_bytes());
    key
}

/// The copy of a direction of a flow.
fn copy(f: &Flow, reply: bool, last: u64, limit: i64) -> [u8; COPIES.value as usize] {
    let to = f.rewritten(reply);
    // In ones' complement, 0 and 0xffff both mean no change; the code in the kernel is right only for 0.
    let change = |n: u16| match n {
        n if is_nothing(n) => 0,
        n if reply => !n,
        n => n,
    };
    let mut copy = [0; COPIES.value as usize];
    let mut put = |at: i32, bytes: &[u8]| {
        if let Some(place) = copy.get_mut(at as usize..).and_then(|c| c.get_mut(..bytes.len())) {
            place.copy_from_slice(bytes);
        }
    };
    put(at::LAST, &last.to_ne_bytes());
    put(at::LIMIT, &limit.to_ne_bytes());
    put(at::ADDRS, &to.addrs.to_le_bytes());
    put(at::PORTS, &to.ports.to_le_bytes());
    put(at::IP_CHANGE, &change(f.ip_change).to_le_bytes());
    put(at::TRANSPORT_CHANGE, &change(f.transport_change).to_le_bytes());
    put(at::OUT, &f.outs[usize::from(reply)].to_ne_bytes());
    put(at::REPLY, &[reply.into(), f.anno]);
    copy
}

impl Store {
    /// The kind of the rewriter of a flow, and its table of copies.
    fn copies_of(&self, f: &Flow) -> Option<(RewriterKind, &dyn Table)> {
        let space = self.spaces.get(usize::from(f.space))?;
        Some((space.kind, space.copies.as_deref()?))
    }

    /// Gives a rewriter an empty table for copies of its flows.
    pub fn set_copies(&mut self, space: u16, table: Arc<dyn Table>) {
        self.flows.iter_mut().filter(|f| f.space == space).for_each(|f| f.copied = 0);
        if let Some(s) = self.spaces.get_mut(usize::from(space)) {
            s.copies = Some(table);
        }
        self.copy_addresses(space);
    }

    /// Copies all flows of a rewriter of addresses: such a rewriter looks for replies only if no forward flow is found, so the kernel must
    /// know all flows.
    fn copy_addresses(&mut self, space: u16) {
        if self.space(space).is_some_and(|s| s.kind == RewriterKind::Addr && s.copies.is_some()) {
            self.places(space).into_iter().for_each(|place| self.copy_both(place, None));
        }
    }

    /// Copies both directions of a flow, if the kernel has a table. If it has no room, the rewriter does without the kernel. `now` is
    /// the time if the flow has just had a packet.
    pub(super) fn copy_both(&mut self, place: u32, now: Option<i64>) {
        for reply in [false, true] {
            let wanted = |f: &&Flow| f.has(reply) && self.copies_of(f).is_some();
            let Some(space) = self.flow(place).filter(wanted).map(|f| f.space) else { continue };
            if !self.copy(place, reply, now) {
                return self.do_without_copies(space, now);
            }
        }
    }

    /// Removes all copies of a rewriter for good.
    fn do_without_copies(&mut self, space: u16, now: Option<i64>) {
        if let Some(now) = now {
            self.places(space).into_iter().for_each(|place| {
                self.refresh(place, now);
            });
        }
        self.flows.iter_mut().filter(|f| f.space == space).for_each(|f| f.copied = 0);
        if let Some(table) = self.spaces.get_mut(usize::from(space)).and_then(|s| s.copies.take()) {
            table.clear();
        }
    }

    /// Copies a direction of a flow, again if there is a copy. Returns false if the kernel has no room.
    fn copy(&mut self, place: u32, reply: bool, now: Option<i64>) -> bool {
        let Some(f) = self.flow(place) else { return false };
        let limit = self.lifetime(f).max(0);
        let done = self.copies_of(f).is_some_and(|(_, table)| {
            let last = now.map_or(0, |now| table.time(now));
            table.set(&key(f.tuples[usize::from(reply)], f.proto), &copy(f, reply, last, limit))
        });
        if let Some(f) = self.flow_mut(place).filter(|_| done) {
            f.copied |= mark(reply);
        }
        done
    }

    /// Copies a direction of a flow after a packet at the time `now`, or removes copies that are out of date. `reclassed` says that the
    /// flow is in another timeout class than before the packet.
    #[cold]
    pub fn update_copies(&mut self, place: u32, reply: bool, reclassed: bool, now: i64) {
        for r in [false, true] {
            let Some(f) = self.flow(place) else { return };
            let Some((kind, _)) = self.copies_of(f) else { return };
            let copied = f.copied & mark(r) != 0;
            if !f.is_settled(r, kind) {
                self.end_copy(place, r);
            } else if copied && (reclassed || r == reply && self.is_stale(f, r, now)) || !copied && r == reply
            {
                self.copy(place, r, Some(now));
            }
        }
    }

    /// Removes the copy of a direction of a flow, if there is one.
    pub(super) fn end_copy(&mut self, place: u32, reply: bool) {
        let Some(f) = self.flow(place).filter(|f| f.copied & mark(reply) != 0) else { return };
        if let Some((_, table)) = self.copies_of(f) {
            table.remove(&key(f.tuples[usize::from(reply)], f.proto));
        }
        if let Some(f) = self.flow_mut(place) {
            f.copied &= !mark(reply);
        }
    }

    /// Takes over the times of last packets from the kernel, and marks all flows as not copied. The tables keep their entries, because the
    /// old programs use them until they are replaced.
    pub fn end_copies(&mut self, now: i64) {
        if self.spaces.iter().all(|s| s.copies.is_none()) {
            return;
        }
        for place in 0..u32::try_from(self.flows.len()).unwrap_or(u32::MAX) {
            self.refresh(place, now);
            if let Some(f) = self.flow_mut(place) {
                f.copied = 0;
            }
        }
    }

    /// Empties the table of a rewriter whose flows have come from another store, and fills it again, if the kernel has one for it.
    pub fn copy_anew(&mut self, space: u16) {
        if let Some(table) = self.space(space).and_then(|s| s.copies.as_ref()) {
            table.clear();
            self.copy_addresses(space);
        }
    }

    /// The time of the last packet of a flow, in the kernel or here.
    #[cold]
    pub(super) fn last_use(&self, f: &Flow, now: i64) -> i64 {
        let ages = [false, true].into_iter().filter_map(|reply| self.age(f, reply, now));
        ages.map(|age| now.saturating_sub(age)).fold(f.last, i64::max)
    }

    /// The time since the last packet that a copy knows of. None without such a packet or a copy.
    fn age(&self, f: &Flow, reply: bool, now: i64) -> Option<i64> {
        let (_, table) = self.copies_of(f).filter(|_| f.copied & mark(reply) != 0)?;
        let copy = table.get(&key(f.tuples[usize::from(reply)], f.proto))?;
        let last = copy.get(at::LAST as usize..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))?;
        (last > 0).then(|| table.age(last, now))
    }

    /// Whether a copy is too old for the kernel to use, because the flow may have expired.
    fn is_stale(&self, f: &Flow, reply: bool, now: i64) -> bool {
        self.age(f, reply, now).is_none_or(|age| age >= self.lifetime(f))
    }

    /// Notes the time of the last packet of a flow in the kernel. Returns whether it is later than the time known before.
    pub(super) fn refresh(&mut self, place: u32, now: i64) -> bool {
        let Some(f) = self.flow(place).filter(|f| f.copied != 0) else { return false };
        let last = self.last_use(f, now);
        self.flow_mut(place).is_some_and(|f| std::mem::replace(&mut f.last, last) < last)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::nat::flow::{Timeouts, class};
    use crate::nat::handle::UNBOUNDED;
    use crate::nat::spec::Spec;
    use crate::nat::store::{Made, New};
    use castanet_element::{Secret, Seed};
    use parking_lot::Mutex;
    use std::collections::HashMap;

    /// A table of a kernel whose clock shows the time of the router.
    #[derive(Default)]
    struct Fake {
        entries: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
        room: usize,
    }

    impl Table for Fake {
        fn set(&self, key: &[u8], value: &[u8]) -> bool {
            let mut all = self.entries.lock();
            let fits = all.len() < self.room || all.contains_key(key);
            if fits {
                all.insert(key.to_vec(), value.to_vec());
            }
            fits
        }
        fn remove(&self, key: &[u8]) {
            self.entries.lock().remove(key);
        }
        fn clear(&self) {
            self.entries.lock().clear();
        }
        fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
            self.entries.lock().get(key).cloned()
        }
        fn time(&self, now: i64) -> u64 {
            now as u64
        }
    }

    impl Fake {
        /// Notes a packet in the kernel for all copies.
        fn use_all(&self, now: u64) {
            for copy in self.entries.lock().values_mut() {
                copy[..8].copy_from_slice(&now.to_ne_bytes());
            }
        }
        fn len(&self) -> usize {
            self.entries.lock().len()
        }
    }

    fn store(kind: RewriterKind, room: usize) -> (Store, Arc<Fake>) {
        let mut store = Store::new(UNBOUNDED, Secret::of(Seed::Fixed(1), "rw"));
        store.join(kind, Timeouts::all(1000, 0), 1, "rw").unwrap();
        store.set_spec(0, 0, Spec::Keep([0, 1]));
        let table = Arc::new(Fake { room, ..Fake::default() });
        store.set_copies(0, table.clone());
        (store, table)
    }
    fn flow(store: &mut Store, host: u32, now: i64) -> u32 {
        let from = Tuple::new(host, 1, 2, 3);
        match store.make(&New { space: 0, input: 0, proto: 17, from, class: class::PLAIN, anno: 0, now }) {
            Made::Flow(place) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn packets_in_the_kernel_keep_a_flow_alive() {
        let (mut store, table) = store(RewriterKind::Ping, 9);
        let place = flow(&mut store, 7, 100);
        store.update_copies(place, false, false, 100);
        assert_eq!(table.len(), 1, "only the direction that had a packet");
        table.use_all(900);
        assert!(!store.is_expired(place, 1899) && store.is_expired(place, 1900));
        store.clean(0, 1899, usize::MAX);
        assert_eq!((store.count(), store.flow(place).unwrap().last), (1, 900));
        store.clean(0, 1900, usize::MAX);
        assert_eq!((store.count(), table.len()), (0, 0), "the copy goes with the flow");
    }

    #[test]
    fn the_flow_without_packets_in_the_kernel_is_evicted() {
        let (mut store, table) = store(RewriterKind::Ping, 9);
        let (used, unused) = (flow(&mut store, 7, 1), flow(&mut store, 8, 2));
        store.update_copies(used, false, false, 1);
        table.use_all(500);
        store.set_capacity(1, 600);
        assert!(store.flow(used).unwrap().has(false) && !store.flow(unused).unwrap().has(false));
    }

    #[test]
    fn all_flows_of_addresses_are_copied_or_none() {
        let (mut store, table) = store(RewriterKind::Addr, 5);
        flow(&mut store, 7, 1);
        flow(&mut store, 8, 2);
        assert_eq!(table.len(), 4);
        flow(&mut store, 9, 3);
        assert_eq!((table.len(), store.count()), (0, 3), "the third has no room");
        flow(&mut store, 10, 4);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn copies_end_when_a_state_changes() {
        let (mut store, table) = store(RewriterKind::Ports, 9);
        let place = flow(&mut store, 7, 1);
        store.update_copies(place, false, false, 1);
        assert_eq!(table.len(), 0, "more packets would change the state");
        let f = store.flow_mut(place).unwrap();
        (f.class, f.bits) = (class::TCP_DATA, f.bits | bit::BOTH_DATA);
        store.update_copies(place, false, false, 2);
        store.update_copies(place, true, false, 3);
        assert_eq!(table.len(), 2);
        store.shift(place, false);
        assert_eq!(table.len(), 0, "sequence numbers are shifted at user level");
    }

    #[test]
    fn a_swap_takes_times_along_and_one_that_fails_begins_anew() {
        let (mut old, table) = store(RewriterKind::Ping, 9);
        let place = flow(&mut old, 7, 100);
        old.update_copies(place, false, false, 100);
        table.use_all(900);
        let (mut new, other) = store(RewriterKind::Ping, 9);
        old.end_copies(950);
        assert_eq!(new.take_over(0, &mut old, 0), 0);
        assert_eq!((new.flow(place).unwrap().last, table.len(), other.len()), (900, 1, 0));
        new.end_copies(960);
        assert_eq!(old.take_over(0, &mut new, 0), 0);
        old.copy_anew(0);
        assert_eq!(table.len(), 0, "no copy is left that nobody would remove");
    }
}
