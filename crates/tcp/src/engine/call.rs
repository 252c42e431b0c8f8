// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the compiled TCP calls, for the connection of one call of the TCP.

use super::host::Host;
use super::outbox::Header;
use super::service::Service;
use super::{Connection, End, Flow, Memory, Settings};
use crate::protocol::{Bytes, Cx, Host as Functions, Ptr, Tcb};
use castanet_element::packet::{DEFAULT_HEADROOM, Packet};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::TcpHeader;
use castanet_wire::{Be16, checksum};
use std::cell::{Cell, RefCell};

/// The packets of a call: the header of the segment that has arrived, and that of the one that is being written. The TCP
/// looks at headers only; it says where the data is, and the host copies it.
pub(super) const SEGMENT: Bytes = Bytes { packet: 0, offset: 0 };
const WRITTEN: Bytes = Bytes { packet: 1, offset: 0 };
/// The largest TCP header.
pub(super) const LARGEST_HEADER: usize = 60;

/// Data of the send queue that belongs to the segment that is being written: the position in the queue, and the length. It is
/// copied when the segment is sent, directly into the packet.
#[derive(Clone, Copy, Default)]
struct Part {
    from: usize,
    length: usize,
}

/// A call of the TCP. It concerns one connection, which is looked up once; or a segment that belongs to none.
pub(super) struct Call<'a> {
    host: &'a Host,
    connection: RefCell<Option<&'a mut Connection>>,
    flow: Option<Flow>,
    /// The service of its packets.
    service: Cell<Service>,
    /// The data of the segment that has arrived, and the length of its header.
    arrived: &'a [u8],
    header: usize,
    written: &'a Cell<[u8; LARGEST_HEADER]>,
    data: Cell<Part>,
    /// The bytes of the send queue, and those that the user can still take: the TCP asks for them often.
    queued: Cell<u32>,
    room: Cell<u32>,
}

impl<'a> Call<'a> {
    /// A call that concerns a connection. A segment with this data has arrived, after a header of this length, or none.
    pub(super) fn new(
        host: &'a Host,
        connection: Option<&'a mut Connection>,
        (header, arrived): (usize, &'a [u8]),
        written: &'a Cell<[u8; LARGEST_HEADER]>,
    ) -> Call<'a> {
        let flow = connection.as_ref().map(|c| c.flow);
        let service = connection.as_ref().map_or_else(|| Service::of(host.settings.dscp), |c| c.service);
        let service = Cell::new(service);
        let (queued, room) = connection.as_ref().map_or((0, 0), |c| (queued(c), room(c, host)));
        let (queued, room, data) = (Cell::new(queued), Cell::new(room), Cell::default());
        let connection = RefCell::new(connection);
        Call { host, connection, flow, service, arrived, header, written, data, queued, room }
    }
    /// A call that concerns a segment that belongs to no connection.
    pub(super) fn stray(host: &'a Host, flow: Flow, written: &'a Cell<[u8; LARGEST_HEADER]>) -> Call<'a> {
        Call { flow: Some(flow), ..Call::new(host, None, (0, &[]), written) }
    }

    /// Calls `f` with the connection, if there is one.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Connection, &Memory) -> R) -> Option<R> {
        let mut connection = self.connection.borrow_mut();
        let connection = connection.as_deref_mut()?;
        let result = f(connection, &self.host.memory);
        self.queued.set(queued(connection));
        self.room.set(room(connection, self.host));
        Some(result)
    }

    /// Sends the segment that has been written. Returns false if there is no buffer for it.
    fn send(&self, flow: Flow, header: &Header, part: Part, dont_fragment: bool) -> bool {
        let service = self.service.get();
        if service.is_routed() {
            return self.send_along(flow, header, part, dont_fragment);
        }
        let mut out = self.host.out.borrow_mut();
        let copy = |to: &mut [u8]| {
            self.copy_sent(to, part.from);
        };
        let may_join = self.host.settings.super_packets;
        if may_join && out.append((flow, service.tos()), header, part.length, copy) {
            self.host.identify();
            return true;
        }
        let Some(packet) = self.packet(flow, header, part, dont_fragment) else { return false };
        out.push(packet);
        if may_join {
            out.begin(flow, header, part.length);
        }
        true
    }
    /// The same, along the source route of the connection. Such packets are not joined.
    #[cold]
    fn send_along(&self, flow: Flow, header: &Header, part: Part, dont_fragment: bool) -> bool {
        let Some(mut packet) = self.packet(flow, header, part, dont_fragment) else { return false };
        let connection = self.connection.borrow();
        let route = connection.as_deref().and_then(|c| c.route.as_deref());
        if !route.is_none_or(|route| route.apply(&mut packet)) {
            return false;
        }
        self.host.out.borrow_mut().push(packet);
        true
    }
    /// The IP packet of the segment that has been written. Data is summed up while it is copied.
    fn packet(&self, flow: Flow, header: &Header, part: Part, dont_fragment: bool) -> Option<Packet> {
        let length = header.length + part.length;
        let total = u16::try_from(length + Ipv4Header::LEN).ok()?;
        let mut p = Packet::with_headroom(DEFAULT_HEADROOM, usize::from(total))?;
        let (src, dst) = (flow.local.ip().to_bits(), flow.remote.ip().to_bits());
        let (ip, segment) = p.data_mut().split_first_chunk_mut::<{ Ipv4Header::LEN }>()?;
        let tos = self.service.get().tos();
        *Ipv4Header::from_prefix_mut(ip)? = self.host.ip_header(tos, (src, dst), total, dont_fragment);
        let (head, data) = segment.split_at_mut_checked(header.length)?;
        head.copy_from_slice(header.get());
        let pseudo = checksum::pseudo_header_sum(src, dst, protocol::TCP, length as u16);
        let sum = checksum::add(pseudo, header.sum());
        let sum = checksum::combine(sum, self.copy_sent(data, part.from), header.length);
        TcpHeader::from_prefix_mut(head)?.checksum = Be16::new(!sum);
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(dst);
        Some(p)
    }
    /// Data of the segment that has arrived.
    fn arrived(&self, at: Bytes, length: u32) -> &'a [u8] {
        let rest = (at.offset as usize).checked_sub(self.header).and_then(|from| self.arrived.get(from..));
        let rest = rest.unwrap_or_default();
        rest.get(..length as usize).unwrap_or(rest)
    }
    /// Copies data of the send queue, from this position on, and returns its sum.
    fn copy_sent(&self, mut to: &mut [u8], from: usize) -> u16 {
        let connection = self.connection.borrow();
        let Some(c) = connection.as_deref().filter(|_| !to.is_empty()) else { return 0 };
        let (first, second) = c.send.as_slices();
        if let Some(part) = first.get(from..).and_then(|rest| rest.get(..to.len())) {
            return checksum::copy(to, part);
        }
        let (mut sum, mut copied) = (0, 0);
        for part in [first.get(from..), second.get(from.saturating_sub(first.len())..)] {
            let Some(part @ [_, ..]) = part else { continue };
            let (now, later) = to.split_at_mut(part.len().min(to.len()));
            sum = checksum::combine(sum, checksum::copy(now, part), copied);
            copied += now.len();
            to = later;
        }
        // The TCP asks for no more than there is.
        if !to.is_empty() {
            to.fill(0);
        }
        sum
    }
}

/// The bytes that wait to be acknowledged.
#[inline]
fn queued(c: &Connection) -> u32 {
    c.send.len() as u32
}
/// The bytes that the user can still take.
#[inline]
fn room(c: &Connection, Host { settings: Settings { rcvbuf, .. }, memory, .. }: &Host) -> u32 {
    let room = rcvbuf.saturating_sub(c.receive.len()).min(memory.left());
    u32::try_from(room).unwrap_or(u32::MAX)
}

/// All calls concern the same connection, so its TCB is looked at only for what the TCP says about packets.
impl Functions for Call<'_> {
    /// One buffer suffices, because a segment is sent before the next one is begun.
    #[inline]
    fn new_segment(&self, _: &Cx<'_, Self>) -> Bytes {
        self.written.set([0; LARGEST_HEADER]);
        WRITTEN
    }
    fn transmit(&self, cx: &Cx<'_, Self>, tcb: Ptr<Tcb>, _: Bytes, length: u32) {
        let part = self.data.take();
        if self.host.muted.get() {
            return;
        }
        let length = (length as usize).saturating_sub(part.length).min(LARGEST_HEADER);
        let header = Header { bytes: self.written.get(), length };
        let dont_fragment = cx.tcb(tcb).dont_fragment.get();
        let sent = self.flow.is_some_and(|flow| self.send(flow, &header, part, dont_fragment));
        if !sent {
            self.host.unsent.set(self.host.unsent.get() + 1);
        }
    }
    /// Checksums are verified before the TCP gets a segment, and computed when a segment is sent.
    #[inline]
    fn checksum(&self, _: &Cx<'_, Self>, _: Bytes, _: u32) -> u16 {
        0
    }
    fn initial_seqno(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 {
        let fresh = || self.flow.map_or(0, |flow| self.host.sequence.initial(flow, self.host.now()));
        self.host.cookie.get().unwrap_or_else(fresh)
    }
    fn ticks_begun(&self, _: &Cx<'_, Self>) -> u32 {
        self.host.ticks_begun()
    }
    #[inline]
    fn send_queue(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 {
        self.queued.get()
    }
    /// The data of a segment follows its header, and the segment is sent next.
    #[inline]
    fn copy_out(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, _: Bytes, from: u32, length: u32) {
        self.data.set(Part { from: from as usize, length: length as usize });
    }
    fn drop_sent(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, length: u32) {
        self.with(|c, memory| {
            memory.give_back(c.send.consume(length as usize, memory));
            (c.stirred, c.unanswered) = (true, false);
        });
    }
    #[inline]
    fn receive_room(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 {
        self.room.get()
    }
    fn deliver(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, data: Bytes, length: u32) {
        self.with(|c, memory| {
            let data = self.arrived(data, length);
            c.receive.write(data, memory);
            memory.take(data.len());
            c.stirred = true;
        });
    }
    fn hold(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, data: Bytes, length: u32) -> u32 {
        let held: Box<[u8]> = self.arrived(data, length).into();
        self.with(|c, memory| {
            memory.take(held.len());
            c.hold(held) as u32
        })
        .unwrap_or(0)
    }
    fn deliver_held(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, number: u32, skip: u32) {
        self.with(|c, memory| {
            let data = c.take_held(number as usize);
            let new = data.get(skip as usize..).unwrap_or_default();
            memory.give_back(data.len() - new.len());
            c.receive.write(new, memory);
            c.stirred = true;
        });
    }
    fn drop_held(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, number: u32) {
        self.with(|c, memory| memory.give_back(c.take_held(number as usize).len()));
    }
    /// Urgent data is data (RFC 6093), but the application may learn where it ends.
    fn urgent(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, length: u32) {
        self.with(|c, _| {
            c.urgent = c.receive.len().saturating_add(length as usize);
            (c.alarmed, c.stirred) = (true, true);
        });
    }
    fn unanswered(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) {
        self.host.unanswered.set(self.host.unanswered.get() + 1);
        self.with(|c, _| (c.unanswered, c.stirred) = (true, true));
    }
    fn connected(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) {
        self.with(|c, _| (c.connected, c.stirred, c.unanswered) = (true, true, false));
    }
    fn end_of_data(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) {
        self.with(|c, _| (c.at_end, c.stirred) = (true, true));
    }
    fn disconnected(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, why: i32) {
        self.with(|c, _| c.ended = Some(End::of(why)));
    }
    #[inline]
    fn may_be_marked(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, may: bool) {
        self.service.set(self.service.get().with_marks(may));
    }
    /// The connection keeps the route, so that it lasts longer than this call.
    fn take_return_route(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 {
        let route = self.host.noted.back.get();
        self.with(|c, _| c.take_route(route));
        self.service.set(self.service.get().with_route(!route.is_direct()));
        route.options().len() as u32
    }
    #[inline]
    fn milliseconds(&self, _: &Cx<'_, Self>) -> u32 {
        self.host.milliseconds()
    }
}
