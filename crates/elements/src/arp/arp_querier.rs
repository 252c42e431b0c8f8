// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPQuerier: puts Ethernet headers before IP packets, and finds their destinations by ARP.

mod args;
mod cache;
mod handlers;
mod learn;
#[cfg(test)]
mod tests;

use crate::arp::arp_table::{COPIES, Found, LookUp, Lost, Settings, State};
use cache::{Cache, FOR_EVER, header};
use castanet_element::Attached;
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::arp::ArpHeader;
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use castanet_wire::ipv4;
use handlers::Own;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Puts Ethernet headers before IP packets, and finds the destinations in these headers by ARP (RFC 826).
///
/// The next hop of a packet is its destination address annotation. While the Ethernet address of the next hop is
/// unknown, the packet waits and a query is sent. The first 10 queries without a reply are at least 100 ms apart, and
/// later ones at least one second (RFC 1122 section 2.3.2.1). A query is sent only when a packet arrives. After the
/// reply, the waiting packets leave in order.
///
/// Once a known Ethernet address is POLL_TIMEOUT old, queries for it are sent again, at the same rate. The first two of
/// these queries go to the known address, and the others are broadcast. Once the address is TIMEOUT old, it counts as
/// unknown. When another address replaces a known one, queries are broadcast immediately, until one of the two
/// addresses is confirmed. An address is confirmed if exactly one ARP packet claims the IP address after a query, and
/// gives this Ethernet address. After a confirmation, further queries are broadcast after 1, 2, 4, ... 32 seconds. They
/// detect a forged address that was confirmed because the answer of the genuine host was lost.
///
/// Packets to 255.255.255.255 or to the subnet's broadcast address are broadcast. Packets to multicast addresses go to
/// the mapped Ethernet address (RFC 1112 section 6.4). Neither needs a query. Packets without a destination annotation
/// are dropped.
///
/// A query has the timestamp and the VLAN annotation of the packet that caused it, and leaves before that packet. Any
/// ARP packet updates an existing entry for its sender. A new entry is made only if the ARP packet is addressed to the
/// querier's IP address. If the subnet is given, the sender must also be in the subnet (RFC 826). A querier has its own
/// table, with the default capacities of ARPTable, unless TABLE names an ARPTable.
///
/// # Ports
/// Input 0: IP packets. Input 1: Ethernet frames with ARP replies or requests. Output 0: Ethernet frames. Output 1
/// (optional): queries. Without output 1, queries leave on output 0. Output 2 (optional): IP packets that waited 3 s
/// without a reply, for an ICMPError that reports the failure (RFC 1812 section 5.2.7.1). Without output 2, packets
/// wait for TIMEOUT and are then dropped.
///
/// # Example
/// ```click
/// aq :: ARPQuerier(10.0.0.1/24, 02-00-00-00-00-01);
/// InfiniteSource(LENGTH 60, LIMIT 3) -> SetIPAddress(10.0.0.9) -> [0] aq;
/// aq -> Discard;
/// aq [1] -> ARPResponder(10.0.0.9 02-00-00-00-00-09) -> [1] aq;
/// DriverManager(wait 0.1, print aq.table, print aq.stats, stop);
/// ```
#[derive(Class)]
#[class(ledger(makes, holds))]
#[class(
    name = "ARPQuerier",
    ports = "2/1-3",
    processing = "h/h",
    flow = "xy/x",
    packets = "ip at 0, ether/ether, ether, ip"
)]
#[class(reconfigure = keeps)]
#[class(workers = share, build, lifecycle, handlers, takes_state = "entries and the packets that wait, when the addresses are the same")]
#[class(drops(NoDestination, ArpQueueFull, ArpTimeout, Cleared, Consumed, BadArp, TooLong), depends = order, clock)]
#[class(kernel)]
pub struct ArpQuerier {
    args: args::Args,
    state: Arc<State>,
    own: Arc<Own>,
    /// ARP queries sent.
    #[count(unit = "packets")]
    queries: SharedCount,
    /// ARP replies that were accepted.
    #[count(unit = "packets")]
    responses: SharedCount,
    /// Packets dropped, not counting those that the table dropped.
    #[count(unit = "packets")]
    drops: SharedCount,
    /// Packets that the querier's own table dropped; 0 if TABLE names an ARPTable.
    #[count(unit = "packets", hidden)]
    table_drops: SharedCount,
    ether: EtherAddr,
    poll: i64,
    /// The output on which queries leave: 1 if it exists, else 0.
    last: usize,
    /// Whether packets that have waited for `PATIENCE` without a reply are emitted on output 2.
    gives_up: bool,
    cache: Cache,
    /// Whether timer `AGE` is set.
    timed: bool,
    scratch: Batch,
    /// Whether several workers use the table.
    workers: bool,
    /// The IP addresses whose waiting packets are being sent. Timer `RELEASE` is set while this list is not empty.
    releasing: Vec<u32>,
    /// The number of the kernel's table in the ARP table, if the kernel also encapsulates packets.
    copies: Option<usize>,
}

/// The number of the timer that removes expired entries.
const AGE: u16 = 0;
/// The number of the timer that calls `release` once the packets that waited for an address have been sent.
const RELEASE: u16 = 1;
/// The number of the timer that removes copies from the kernel's table.
const END_COPIES: u16 = 2;

/// How long a packet waits for a reply before it leaves on output 2, in nanoseconds.
const PATIENCE: i64 = 3_000_000_000;

impl Build for ArpQuerier {
    fn build(args: args::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let Some(ether) = args.eth.or(args.ip.ether) else {
            return Err("ETH: required argument missing".into());
        };
        let d = Settings::default();
        let settings = Settings {
            capacity: args.capacity.unwrap_or(d.capacity),
            entry_capacity: args.entry_capacity.unwrap_or(d.entry_capacity),
            entry_packet_capacity: args.entry_packet_capacity.unwrap_or(d.entry_packet_capacity),
            slim_factor: args.capacity_slim_factor.unwrap_or(d.slim_factor),
            timeout: args.timeout.map_or(d.timeout, |t| t.0),
        };
        let state = match args.table {
            Some(args::TableRef(owner)) => {
                if settings != d {
                    let text = "TABLE: capacities and TIMEOUT are those of the table; the ones given here have no effect";
                    cx.warn(ArgError::warning(text, 0..usize::MAX));
                }
                cx.share_as(owner, || State::new(d))
            }
            None => {
                let state = cx.share(|| State::new(settings));
                // After live reconfiguration, `state` is that of the old element, with its old settings.
                state.configure(settings);
                state
            }
        };
        let broadcast = args.broadcast.unwrap_or(args.ip.broadcast());
        let own = cx.share(|| Own::new(args.ip.ip, broadcast));
        let (poll, last) = (args.poll_timeout.0, cx.outputs.saturating_sub(1).min(1));
        let gives_up = cx.outputs > 2;
        if gives_up {
            state.give_up_after(PATIENCE);
        }
        let (cache, scratch) = (Cache::new(), Batch::new());
        let [queries, responses, drops] = [&own.queries, &own.responses, &own.drops].map(Clone::clone);
        // If TABLE names an ARPTable, that element counts the drops.
        let of_table = if args.table.is_none() { Some(state.drops().clone()) } else { None };
        Ok(ArpQuerier {
            args,
            state,
            own,
            queries,
            responses,
            drops,
            table_drops: of_table.unwrap_or_default(),
            ether,
            poll,
            last,
            gives_up,
            cache,
            timed: false,
            scratch,
            workers: cx.replica.1 > 1,
            releasing: Vec::new(),
            copies: None,
        })
    }
}

impl Element for ArpQuerier {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if port == 1 {
            return self.learn(batch, cx);
        }
        let generation = self.state.generation();
        let recent = cx.recent();
        for (i, p) in batch.iter_mut().enumerate() {
            if !self.cache.encapsulate(p, generation, recent) {
                let now = cx.now();
                return self.push_rest(batch, i, now, cx);
            }
        }
        cx.forward(0, batch);
    }
    #[inline]
    fn push_one(&mut self, port: usize, mut p: Packet, cx: &mut Cx<'_>) {
        let recent = cx.recent();
        if port == 0 && self.cache.encapsulate_in_place(&mut p, self.state.generation(), recent) {
            return cx.emit(0, p);
        }
        self.push_batch_of_one(port, p, cx);
    }
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        let now = cx.now();
        if id == RELEASE {
            return self.release(now, cx);
        }
        if id == END_COPIES {
            if let Some(next) = self.state.end_copies(now) {
                cx.set_timer(END_COPIES, next);
            }
            return;
        }
        self.timed = false;
        self.watch(now, cx);
    }
}

/// What a query takes over from the packet that causes it.
struct Cause {
    timestamp: i64,
    vlan: [u8; 2],
    turn: u8,
}

impl ArpQuerier {
    /// Takes over from the old element after live reconfiguration. Both elements share the table and the counts.
    fn take_place(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let ip = self.args.ip.ip.to_bits();
        let broadcast = self.args.broadcast.unwrap_or(self.args.ip.broadcast()).to_bits();
        let former = self.own.ip.swap(ip, Ordering::Relaxed);
        self.own.broadcast.store(broadcast, Ordering::Relaxed);
        self.releasing.append(&mut old.releasing);
        if (former, old.ether) != (ip, self.ether) && self.args.table.is_none() {
            // Entries that were learned with the querier's old addresses may belong to another subnet.
            self.state.write_clear(cx);
        }
        let now = cx.now();
        self.watch(now, cx);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn push_batch_of_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        let mut batch = cx.spare_batch();
        batch.push(p);
        self.push(port, &mut batch, cx);
        cx.return_batch(batch);
    }

    /// Forwards the packets before index `from` as a batch, and processes the others one by one. The address of the
    /// packet at `from` is not in the cache.
    #[cold]
    #[inline(never)]
    fn push_rest(&mut self, batch: &mut Batch, from: usize, now: i64, cx: &mut Cx<'_>) {
        let mut rest = std::mem::replace(&mut self.scratch, Batch::empty());
        rest.extend(batch.as_mut_vec().drain(from..));
        if !batch.is_empty() {
            cx.forward(0, batch);
        }
        for mut p in rest.drain() {
            // Read the generation for each packet, because a look-up may remove entries from the table.
            if self.cache.encapsulate(&mut p, self.state.generation(), now) {
                cx.emit(0, p);
            } else {
                self.resolve(p, now, cx);
            }
        }
        self.scratch = rest;
    }

    /// Returns the Ethernet destination for an IP broadcast or multicast address, which needs no query. None for other
    /// addresses.
    fn mapped(&self, ip: u32) -> Option<EtherAddr> {
        if ip == u32::MAX || ip == self.own.broadcast.load(Ordering::Relaxed) {
            Some(EtherAddr::BROADCAST)
        } else if ipv4::is_multicast(ip) {
            Some(EtherAddr::from_ipv4_multicast(ip))
        } else {
            None
        }
    }

    fn resolve(&mut self, p: Packet, now: i64, cx: &mut Cx<'_>) {
        let ip = p.dst_ip();
        if ip == 0 {
            return self.complain(p, cx);
        }
        // Read the generation before the look-up. If the entry changes in between, its cached copy has an old
        // generation and is not used.
        let generation = self.state.generation();
        if let Some(to) = self.mapped(ip) {
            let header = header(to, self.ether);
            self.keep(ip, generation, FOR_EVER, header, cx);
            return self.send(p, &header, cx);
        }
        let cause = Cause { timestamp: p.timestamp(), vlan: p.anno(anno::VLAN), turn: p.turn() };
        let mut lost = Lost::new();
        let wanted = LookUp { ip, now, poll: self.poll, workers: self.workers };
        match self.state.look_up(wanted, p, &mut lost) {
            Found::Known { ether, packet, until, query, lost: astray, held } => {
                let header = header(ether, self.ether);
                if !self.wait_for(ip, &held, now, cx) {
                    self.keep(ip, generation, until, header, cx);
                }
                if query {
                    let to = if self.args.broadcast_poll || astray { EtherAddr::BROADCAST } else { ether };
                    self.query(ip, to, &cause, cx);
                }
                for mut p in held {
                    p.set_turn(cause.turn);
                    self.send(p, &header, cx);
                }
                self.send(packet, &header, cx);
            }
            Found::Held { query, first } => {
                if query {
                    self.query(ip, EtherAddr::BROADCAST, &cause, cx);
                }
                // The packet may time out before the time for which the timer is set.
                if !self.timed || (first && self.gives_up) {
                    self.watch(now, cx);
                }
            }
        }
        lose(lost, cx);
    }

    /// Stores the header for an IP address in the cache, and in the kernel's table.
    fn keep(
        &mut self,
        ip: u32,
        generation: u32,
        until: i64,
        header: [u8; EtherHeader::LEN],
        cx: &mut Cx<'_>,
    ) {
        self.cache.keep(ip, generation, until, header);
        if let Some(number) = self.copies {
            self.state.copy(number, ip, generation, until, &header);
            let now = cx.now();
            if let Some(next) = self.state.end_copies(now) {
                cx.set_timer(END_COPIES, next);
            }
        }
    }

    #[cold]
    fn complain(&mut self, p: Packet, cx: &mut Cx<'_>) {
        self.drops.add(1);
        if !self.own.complained.swap(true, Ordering::Relaxed) {
            let text = "would query for 0.0.0.0; missing dest IP addr annotation?";
            cx.message(&format!("{}: {text}", cx.declaration()));
        }
        cx.drop(p, Reason::NoDestination);
    }

    fn send(&mut self, mut p: Packet, header: &[u8; EtherHeader::LEN], cx: &mut Cx<'_>) {
        if cache::put(&mut p, header) {
            cx.emit(0, p);
        } else {
            self.drops.add(1);
            cx.drop(p, Reason::TooLong);
        }
    }

    /// Sends a query for `ip`. If no buffer is free, no query is sent, and a later packet causes another attempt.
    fn query(&mut self, ip: u32, to: EtherAddr, cause: &Cause, cx: &mut Cx<'_>) {
        let Some(mut q) = Packet::new(EtherHeader::LEN + ArpHeader::LEN) else { return };
        if let Some((head, body)) = q.data_mut().split_first_chunk_mut() {
            *head = EtherHeader::new(to, self.ether, ethertype::ARP).to_bytes();
            let me = self.own.ip.load(Ordering::Relaxed);
            body.copy_from_slice(&ArpHeader::request(self.ether, me, ip).to_bytes());
        }
        q.set_mac_header(0);
        q.set_network_header(EtherHeader::LEN, ArpHeader::LEN);
        q.set_timestamp(cause.timestamp);
        q.set_anno(anno::VLAN, cause.vlan);
        q.set_turn(cause.turn);
        self.queries.add(1);
        cx.made(1);
        cx.emit(self.last, q);
    }

    /// Removes expired entries, and sets timer `AGE` for the next expiry.
    fn watch(&mut self, now: i64, cx: &mut Cx<'_>) {
        let mut lost = Lost::new();
        if let Some(next) = self.state.expire(now, &mut lost) {
            cx.set_timer(AGE, next);
            self.timed = true;
        }
        lose(lost, cx);
    }
}

impl InKernel for ArpQuerier {
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered {
        if input != 0 {
            return Err("it learns from ARP packets at user level".into());
        }
        let missing = code.label();
        let to = code.annotation(anno::DST_IP, Size::Word);
        let entry = code.look_up(0, COPIES, &[(Size::Word, to.into())], missing);
        code.unstrip(EtherHeader::LEN as u32);
        for (at, size) in [(0, Size::Double), (8, Size::Word), (12, Size::Half)] {
            let part = code.load_entry(entry, at, size);
            code.store(at, size, part);
        }
        code.mark_mac(0);
        code.next(0);
        code.bind(missing);
        code.up();
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Table(_, table) = to {
            self.copies = Some(self.state.add_copies(table));
        }
    }
}

/// Emits or drops packets that were removed from the table. Packets that have waited too long for a reply leave on
/// output 2 if it is connected. All others are dropped.
fn lose(lost: Lost, cx: &mut Cx<'_>) {
    for (p, reason) in lost {
        if reason == Reason::ArpTimeout {
            cx.emit_or(2, p, reason);
        } else {
            cx.drop(p, reason);
        }
    }
}

impl Lifecycle for ArpQuerier {
    fn held(&self) -> u64 {
        // If TABLE names an ARPTable, that element reports the waiting packets as held.
        if self.args.table.is_some() { 0 } else { self.state.size().1 as u64 }
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let addresses = |q: &ArpQuerier| {
            (q.own.ip.load(Ordering::Relaxed), q.own.broadcast.load(Ordering::Relaxed), q.ether)
        };
        if Arc::ptr_eq(&self.own, &old.own) {
            return self.take_place(old, cx);
        }
        let same = addresses(self) == addresses(old);
        if same
            && self.args.table.is_none()
            && old.args.table.is_none()
            && !Arc::ptr_eq(&self.state, &old.state)
        {
            let mut lost = Lost::new();
            self.state.take_over(&old.state, &mut lost);
            lose(lost, cx);
            let now = cx.now();
            self.watch(now, cx);
        }
        self.own.continue_from(&old.own);
        // Some packets may have arrived while the old element was sending the waiting packets. Let the timer send them.
        if same && !old.releasing.is_empty() {
            self.releasing.append(&mut old.releasing);
            let now = cx.now();
            cx.set_timer(RELEASE, now);
        }
        Ok(())
    }
}
