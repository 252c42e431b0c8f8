// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the compiled TCP calls.

use super::sequence::Sequence;
use super::{Connection, End, Flow, Memory, Settings};
use crate::local::Poller;
use crate::protocol::{Bytes, Cx, Host as Functions, Ptr, Tcb, rest};
use castanet_element::packet::{DEFAULT_HEADROOM, Packet};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp;
use std::cell::{Cell, OnceCell, RefCell};

/// The packets of a call: the segment that has arrived, and the one that is being written.
pub(super) const ARRIVED: u32 = 0;
const WRITTEN: Bytes = Bytes { packet: 1, offset: 0 };
/// The largest segment: a header without options, and as much data as the TCP puts into a segment.
pub(super) const LARGEST_SEGMENT: usize = 1500;
/// The largest TCP header.
const LARGEST_HEADER: usize = 60;

/// The state that all connections share.
pub(super) struct Host {
    /// The connections, by the index of their TCB.
    connections: RefCell<Vec<Option<Box<Connection>>>>,
    /// The packets to be sent.
    pub(super) out: RefCell<Vec<Packet>>,
    pub(super) memory: Memory,
    pub(super) sequence: Sequence,
    pub(super) settings: Settings,
    pub(super) now: Cell<i64>,
    /// The flow of a segment that belongs to no connection.
    pub(super) stray: Cell<Option<Flow>>,
    /// The initial sequence number of the next connection, if a SYN cookie has fixed it.
    pub(super) cookie: Cell<Option<u32>>,
    /// Segments are not sent: a SYN is being repeated that was answered before.
    pub(super) muted: Cell<bool>,
    /// The identification of the last IP packet.
    identification: Cell<u16>,
    /// Segments for which there was no buffer.
    pub(super) unsent: Cell<u64>,
    /// The local sockets, if there are any.
    pub(super) poller: OnceCell<Poller>,
}

impl Host {
    pub(super) fn new(settings: Settings, sequence: Sequence) -> Host {
        Host {
            connections: RefCell::new(Vec::new()),
            out: RefCell::new(Vec::new()),
            memory: Memory::new(settings.memory),
            identification: Cell::new(sequence.first_identification()),
            sequence,
            settings,
            now: Cell::new(0),
            stray: Cell::new(None),
            cookie: Cell::new(None),
            muted: Cell::new(false),
            unsent: Cell::new(0),
            poller: OnceCell::new(),
        }
    }

    /// Calls `f` with a connection, if there is one with this TCB.
    pub(super) fn with<R>(&self, tcb: Ptr<Tcb>, f: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let mut all = self.connections.borrow_mut();
        all.get_mut(tcb.0 as usize)?.as_deref_mut().map(f)
    }
    /// Adds the connection of a TCB.
    pub(super) fn add(&self, tcb: Ptr<Tcb>, connection: Connection) {
        let mut all = self.connections.borrow_mut();
        let index = tcb.0 as usize;
        if all.len() <= index {
            all.resize_with(index + 1, || None);
        }
        if let Some(place) = all.get_mut(index) {
            *place = Some(Box::new(connection));
        }
    }
    /// Removes the connection of a TCB, with its data.
    pub(super) fn remove(&self, tcb: Ptr<Tcb>) -> Option<Box<Connection>> {
        let mut all = self.connections.borrow_mut();
        let mut connection = all.get_mut(tcb.0 as usize)?.take()?;
        connection.clear(&self.memory);
        Some(connection)
    }
    /// The TCBs of all connections.
    pub(super) fn tcbs(&self) -> Vec<Ptr<Tcb>> {
        let all = self.connections.borrow();
        let used = all.iter().enumerate().filter(|(_, c)| c.is_some());
        used.filter_map(|(i, _)| u32::try_from(i).ok().map(Ptr::new)).collect()
    }

    /// The flow of a connection, or that of the segment which belongs to none.
    fn flow(&self, tcb: Ptr<Tcb>) -> Option<Flow> {
        self.with(tcb, |c| c.flow).or(self.stray.get())
    }

    /// The IP packet of a segment.
    fn packet(&self, flow: Flow, segment: &[Cell<u8>]) -> Option<Packet> {
        let length = u16::try_from(segment.len() + Ipv4Header::LEN).ok()?;
        let mut p = Packet::with_headroom(DEFAULT_HEADROOM, usize::from(length))?;
        let (src, dst) = (flow.local.ip().to_bits(), flow.remote.ip().to_bits());
        let (header, data) = p.data_mut().split_first_chunk_mut::<{ Ipv4Header::LEN }>()?;
        data.iter_mut().zip(segment).for_each(|(to, from)| *to = from.get());
        tcp::set_checksum(src, dst, data);
        let mut ip = Ipv4Header::new(protocol::TCP, src, dst, length, self.settings.ttl);
        self.identification.set(self.identification.get().wrapping_add(1));
        ip.id.set(self.identification.get());
        ip.set_checksum20();
        *header = ip.to_bytes();
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(dst);
        Some(p)
    }
}

/// Calls `f` with the bytes of a packet of a call, some at a time.
fn bytes(cx: &Cx<'_, Host>, at: Bytes, length: u32, mut f: impl FnMut(&[u8])) {
    let all = rest(cx.packets, at);
    let mut some = [0; 256];
    for part in all.get(..length as usize).unwrap_or(all).chunks(some.len()) {
        some.iter_mut().zip(part).for_each(|(to, from)| *to = from.get());
        f(some.get(..part.len()).unwrap_or_default());
    }
}

impl Functions for Host {
    /// One buffer suffices, because a segment is sent before the next one is begun.
    fn new_segment(&self, cx: &Cx<'_, Host>) -> Bytes {
        rest(cx.packets, WRITTEN).iter().take(LARGEST_HEADER).for_each(|b| b.set(0));
        WRITTEN
    }
    fn transmit(&self, cx: &Cx<'_, Host>, tcb: Ptr<Tcb>, segment: Bytes, length: u32) {
        if self.muted.get() {
            return;
        }
        let segment = rest(cx.packets, segment).get(..length as usize);
        let packet = self.flow(tcb).zip(segment).and_then(|(flow, s)| self.packet(flow, s));
        match packet {
            Some(p) => self.out.borrow_mut().push(p),
            None => self.unsent.set(self.unsent.get() + 1),
        }
    }
    /// Checksums are verified before the TCP gets a segment, and computed after it has written one.
    fn checksum(&self, _: &Cx<'_, Host>, _: Bytes, _: u32) -> u16 {
        0
    }
    fn initial_seqno(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>) -> u32 {
        let fresh = || self.flow(tcb).map_or(0, |flow| self.sequence.initial(flow, self.now.get()));
        self.cookie.get().unwrap_or_else(fresh)
    }
    fn send_queue(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>) -> u32 {
        self.with(tcb, |c| c.send.len() as u32).unwrap_or(0)
    }
    fn copy_out(&self, cx: &Cx<'_, Host>, tcb: Ptr<Tcb>, segment: Bytes, from: u32, length: u32) {
        self.with(tcb, |c| {
            let mut to = rest(cx.packets, segment);
            to = to.get(..length as usize).unwrap_or(to);
            // Two slices are copied faster than the bytes of a queue.
            let (first, second) = c.send.as_slices();
            let from = from as usize;
            for part in [first.get(from..), second.get(from.saturating_sub(first.len())..)] {
                let part = part.unwrap_or_default();
                let (now, later) = to.split_at(part.len().min(to.len()));
                now.iter().zip(part).for_each(|(to, from)| to.set(*from));
                to = later;
            }
        });
    }
    fn drop_sent(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>, length: u32) {
        self.with(tcb, |c| {
            self.memory.give_back(c.drop_sent(length as usize));
            c.stirred = true;
        });
    }
    fn receive_room(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>) -> u32 {
        let room = |c: &mut Connection| self.settings.rcvbuf.saturating_sub(c.receive.len());
        let room = self.with(tcb, room).unwrap_or(0).min(self.memory.left());
        u32::try_from(room).unwrap_or(u32::MAX)
    }
    fn deliver(&self, cx: &Cx<'_, Host>, tcb: Ptr<Tcb>, data: Bytes, length: u32) {
        self.with(tcb, |c| {
            let before = c.receive.len();
            bytes(cx, data, length, |some| c.receive.extend(some));
            self.memory.take(c.receive.len() - before);
            c.stirred = true;
        });
    }
    fn hold(&self, cx: &Cx<'_, Host>, tcb: Ptr<Tcb>, data: Bytes, length: u32) -> u32 {
        let mut held = Vec::with_capacity(length as usize);
        bytes(cx, data, length, |some| held.extend(some));
        self.memory.take(held.len());
        self.with(tcb, |c| c.hold(held.into()) as u32).unwrap_or(0)
    }
    fn deliver_held(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>, number: u32, skip: u32) {
        self.with(tcb, |c| {
            let data = c.take_held(number as usize);
            let new = data.get(skip as usize..).unwrap_or_default();
            self.memory.give_back(data.len() - new.len());
            c.receive.extend(new);
            c.stirred = true;
        });
    }
    fn drop_held(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>, number: u32) {
        self.with(tcb, |c| self.memory.give_back(c.take_held(number as usize).len()));
    }
    /// Urgent data is data (RFC 6093): applications are not told.
    fn urgent(&self, _: &Cx<'_, Host>, _: Ptr<Tcb>, _: u32) {}
    fn connected(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>) {
        self.with(tcb, |c| (c.connected, c.stirred) = (true, true));
    }
    fn end_of_data(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>) {
        self.with(tcb, |c| (c.at_end, c.stirred) = (true, true));
    }
    fn disconnected(&self, _: &Cx<'_, Host>, tcb: Ptr<Tcb>, why: i32) {
        self.with(tcb, |c| c.ended = Some(End::of(why)));
    }
    fn milliseconds(&self, _: &Cx<'_, Host>) -> u32 {
        (self.now.get() / 1_000_000) as u32
    }
}
