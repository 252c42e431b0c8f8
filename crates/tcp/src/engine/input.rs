// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments that arrive.

use super::{Arrived, Connection, Engine, Flow};
use crate::protocol::{Ptr, Tcb, s, seq_gt, tcp_interface, th};
use castanet_element::spec::Reason;
use castanet_wire::tcp::{TcpHeader, flag, options};
use castanet_wire::{Be16, Be32};

/// The segment size of a peer that says nothing (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// How far the numbers of a connection begin beyond those of the old one in its place, if the clock is behind these.
const BEYOND: u32 = 1 << 16;
/// How long the answers to SYN cookies are waited for, in nanoseconds.
const COOKIES_HOLD: i64 = 128_000_000_000;

/// Notes for the TCP on an IP header, beside the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNotes {
    /// A router has marked it: it has met congestion (RFC 3168).
    pub marked: bool,
    /// The way it came.
    pub route: Arrived,
}

impl Engine {
    /// Like `input`, for a packet whose IP header says something.
    #[cold]
    pub fn input_noted(
        &mut self,
        flow: Flow,
        segment: &mut [u8],
        now: i64,
        notes: &IpNotes,
    ) -> Result<(), Reason> {
        let mut flags = if notes.marked { th::MARKED } else { 0 };
        if let Arrived::Along(back) = notes.route {
            self.host.noted.back.set(back);
            flags |= th::ROUTED;
        }
        self.host.noted.flags.set(flags);
        self.counts.marked.add(u64::from(flags & th::MARKED != 0));
        self.counts.routed.add(u64::from(flags & th::ROUTED != 0));
        let done = self.input(flow, segment, now);
        self.host.noted.flags.set(0);
        done
    }
    /// Takes a segment with a correct checksum. An error says why the segment was dropped before the TCP saw it.
    pub fn input(&mut self, flow: Flow, segment: &mut [u8], now: i64) -> Result<(), Reason> {
        self.set_time(now);
        let header = *TcpHeader::from_prefix(segment).ok_or(Reason::BadTransport)?;
        let length = header.header_len();
        if length < TcpHeader::LEN || length > segment.len() {
            return Err(Reason::BadTransport);
        }
        match self.find(flow) {
            Some(tcb) if self.gives_way(tcb, &header, segment) => {
                self.begin_again(flow, tcb, &header, segment)
            }
            Some(tcb) => self.arrives(tcb, &header, segment),
            None => self.begin(flow, &header, segment),
        }
    }

    /// Whether a connection in TIME-WAIT gives way to the SYN of a new one (RFC 9293, section 3.10.7.4, and RFC 6191, section 2).
    fn gives_way(&self, tcb: Ptr<Tcb>, header: &TcpHeader, segment: &[u8]) -> bool {
        let t = self.tcb(tcb);
        let is_syn = header.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN;
        // An answer by a SYN cookie could not have a number beyond those of the old connection.
        if !is_syn || t.state.get() != s::TIME_WAIT || self.half_open >= self.host.settings.backlog {
            return false;
        }
        let is_higher = seq_gt(header.seq.get(), t.rcv_next.get());
        let recent = t.recent.get();
        match timestamp_of(segment) {
            Some(new) if t.timestamps.get() => seq_gt(new, recent) || (new == recent && is_higher),
            // Old segments have no timestamps, so the new connection drops them.
            Some(_) => true,
            None => is_higher,
        }
    }

    /// The SYN of a connection that takes the place of one in TIME-WAIT. Its numbers are beyond those of the old one.
    fn begin_again(
        &mut self,
        flow: Flow,
        tcb: Ptr<Tcb>,
        header: &TcpHeader,
        segment: &mut [u8],
    ) -> Result<(), Reason> {
        let last = self.tcb(tcb).snd_max.get();
        let clock = self.host.sequence.initial(flow, self.host.now());
        self.remove(tcb);
        self.host.cookie.set(Some(if seq_gt(clock, last) { clock } else { last.wrapping_add(BEYOND) }));
        let done = self.begin(flow, header, segment);
        self.host.cookie.set(None);
        done
    }

    /// A segment of a connection.
    fn arrives(&mut self, tcb: Ptr<Tcb>, header: &TcpHeader, segment: &mut [u8]) -> Result<(), Reason> {
        let data = segment.len() - header.header_len();
        if data > 0 && !self.has_memory(tcb, header.seq.get(), data) {
            return Err(Reason::NoMemory);
        }
        self.wake(tcb);
        self.pass(tcb, segment);
        self.settle(tcb);
        Ok(())
    }
    /// Whether there is memory for data. The application of a connection without unread data takes what comes in order at
    /// once, or that connection is bounded by its buffer; data out of order may wait for long.
    fn has_memory(&self, tcb: Ptr<Tcb>, seq: u32, data: usize) -> bool {
        let memory = &self.host.memory;
        data <= memory.left_for_held() || (seq == self.tcb(tcb).rcv_next.get() && data <= memory.left())
    }

    /// A segment that belongs to no connection.
    fn begin(&mut self, flow: Flow, header: &TcpHeader, segment: &mut [u8]) -> Result<(), Reason> {
        let kind = header.flags & (flag::SYN | flag::ACK | flag::RST);
        match (self.listeners.get(&flow.local.port()).map(|l| l.application), kind) {
            (Some(application), flag::SYN) => self.syn(flow, application, header, segment),
            (Some(application), flag::ACK) if self.host.now() < self.cookies_until => {
                self.answer_to_cookie(flow, application, header, segment)
            }
            // RFC 9293, section 3.10.7.2: without any of these it is dropped.
            (Some(_), 0) => Ok(()),
            _ => self.stray(flow, segment),
        }
    }
    /// The answer is a RST, unless the segment is one.
    fn stray(&mut self, flow: Flow, segment: &mut [u8]) -> Result<(), Reason> {
        self.counts.strays.add(1);
        self.pass_stray(flow, segment);
        Ok(())
    }

    /// A SYN for a port that an application listens on.
    fn syn(
        &mut self,
        flow: Flow,
        application: usize,
        header: &TcpHeader,
        segment: &mut [u8],
    ) -> Result<(), Reason> {
        if self.half_open >= self.host.settings.backlog {
            return self.answer_by_cookie(flow, header, segment);
        }
        if !self.has_place() {
            return Err(Reason::TableFull);
        }
        let tcb = self.listen_on(flow, application);
        self.pass(tcb, segment);
        self.settle(tcb);
        Ok(())
    }
    /// A connection in LISTEN.
    fn listen_on(&mut self, flow: Flow, application: usize) -> Ptr<Tcb> {
        let connection = Connection::new(flow, application, true, self.ticks);
        let tcb = self.add(connection);
        self.half_open += 1;
        self.call(tcb, |cx, this| tcp_interface::listen(cx, this, tcb));
        tcb
    }

    /// Answers a SYN, and keeps nothing: the initial sequence number is a cookie (RFC 4987, section 3.6).
    fn answer_by_cookie(&mut self, flow: Flow, header: &TcpHeader, segment: &[u8]) -> Result<(), Reason> {
        let (peer, now) = (header.seq.get(), self.host.now());
        let mss = mss_of(segment).unwrap_or(DEFAULT_MSS);
        self.counts.cookies.add(1);
        self.cookies_until = now.saturating_add(COOKIES_HOLD);
        let cookie = self.host.sequence.cookie(flow, peer, mss, now);
        let tcb = self.listen_by_cookie(flow, 0, cookie, header, mss, peer);
        self.remove(tcb);
        Ok(())
    }
    /// An acknowledgement that may answer a cookie. If so, the SYN of the connection is repeated from what the cookie says.
    fn answer_to_cookie(
        &mut self,
        flow: Flow,
        application: usize,
        header: &TcpHeader,
        segment: &mut [u8],
    ) -> Result<(), Reason> {
        let (peer, cookie) = (header.seq.get().wrapping_sub(1), header.ack.get().wrapping_sub(1));
        let Some(found) = self.host.sequence.read(flow, peer, cookie, self.host.now()) else {
            return self.stray(flow, segment);
        };
        if !self.has_place() {
            return Err(Reason::TableFull);
        }
        self.host.muted.set(true);
        let tcb = self.listen_by_cookie(flow, application, cookie, header, found.mss, peer);
        self.host.muted.set(false);
        self.counts.cookies_accepted.add(1);
        self.arrives(tcb, header, segment)
    }
    /// A connection that gets a SYN with no option but the segment size. Its initial sequence number is the cookie.
    fn listen_by_cookie(
        &mut self,
        flow: Flow,
        application: usize,
        cookie: u32,
        header: &TcpHeader,
        mss: u16,
        peer: u32,
    ) -> Ptr<Tcb> {
        let syn = TcpHeader {
            seq: Be32::new(peer),
            ack: Be32::new(0),
            offset: 6 << 4,
            flags: flag::SYN,
            urgent: Be16::new(0),
            ..*header
        };
        let mut segment = [0; TcpHeader::LEN + 4];
        if let Some((head, option)) = segment.split_first_chunk_mut::<{ TcpHeader::LEN }>() {
            *head = syn.to_bytes();
            option.copy_from_slice(&[&[2, 4], &mss.to_be_bytes()[..]].concat());
        }
        let tcb = self.listen_on(flow, application);
        self.host.cookie.set(Some(cookie));
        self.pass(tcb, &mut segment);
        self.host.cookie.set(None);
        tcb
    }
}

/// The segment size that a SYN announces.
fn mss_of(segment: &[u8]) -> Option<u16> {
    option(segment, 2).map(u16::from_be_bytes)
}
/// The timestamp of a segment.
fn timestamp_of(segment: &[u8]) -> Option<u32> {
    option(segment, 8).map(|[a, b, c, d, ..]: [u8; 8]| u32::from_be_bytes([a, b, c, d]))
}
/// The value of an option of this kind and length.
fn option<const N: usize>(segment: &[u8], kind: u8) -> Option<[u8; N]> {
    let mut list = options(segment);
    loop {
        let (length, rest) = match list {
            [1, ..] => (1, list),
            [0, ..] => return None,
            [_, length, rest @ ..] if *length >= 2 => (usize::from(*length), rest),
            _ => return None,
        };
        match rest.first_chunk() {
            Some(value) if list.first() == Some(&kind) && length == N + 2 => return Some(*value),
            _ => list = list.get(length..)?,
        }
    }
}
