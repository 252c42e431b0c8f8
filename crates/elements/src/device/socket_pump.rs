// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of all socket elements: receives packets, sends packets, and stores packets that wait to be sent.

use castanet_element::error::reason;
use castanet_element::prelude::*;
use castanet_element::spec::anno;
use castanet_element::{Interest, Watch};
use castanet_io::socket::{Endpoint, Options, Received, Sent};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The maximum number of packets from a push input that wait for a socket.
const WAITING: usize = 1024;
/// The time in nanoseconds that a task sleeps before it tries again, if it has no descriptor to wait for.
const LATER: i64 = 1_000_000;
/// The number of the timer that `Pump::wait_a_while` sets.
const TIMER: u16 = 0;

/// The settings by which packets are made from received data.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The maximum length of a packet in bytes.
    pub(super) snaplen: u32,
    /// Bytes before the data of a packet.
    pub(super) headroom: u32,
    /// Whether a packet has a timestamp.
    pub(super) timestamp: bool,
    /// Whether a packet starts with an IP header.
    pub(super) ip: bool,
}

/// The arguments of sockets for received packets: their maximum length and their headroom.
#[derive(Args)]
pub struct Reception {
    /// The maximum length of a received packet in bytes.
    #[arg(keyword, default = 2048, min = 1, max = 65_535)]
    snaplen: u32,
    /// Bytes before the data of received packets.
    #[arg(keyword, default = castanet_packet::DEFAULT_HEADROOM as u32, show = "28", max = castanet_packet::MAX_HEADROOM)]
    headroom: u32,
}

impl Reception {
    /// The shape of received packets: with or without a timestamp, IP packets or other data.
    pub(super) fn shape(&self, timestamp: bool, ip: bool) -> Shape {
        Shape { snaplen: self.snaplen, headroom: self.headroom, timestamp, ip }
    }
}

/// The sizes of the kernel's buffers of a socket.
#[derive(Args, Debug)]
pub struct Buffers {
    /// Size of the kernel's receive buffer in bytes; -1 for the kernel's default.
    #[arg(keyword, default = -1)]
    rcvbuf: i32,
    /// Size of the kernel's send buffer in bytes; -1 for the kernel's default.
    #[arg(keyword, default = -1)]
    sndbuf: i32,
}

impl Buffers {
    /// The options of a socket with these buffers.
    pub(super) fn options(&self, nodelay: bool) -> Options {
        Options {
            rcvbuf: usize::try_from(self.rcvbuf).ok(),
            sndbuf: usize::try_from(self.sndbuf).ok(),
            nodelay,
        }
    }
}

/// Why receiving from a socket, or sending to it, has stopped.
#[derive(Debug)]
pub(super) enum Flow {
    /// More may be received or sent immediately, for example because the limit of the turn was reached.
    More,
    /// There is nothing to do until the socket is ready.
    Idle,
    /// The other end has closed the connection, or the connection broke off with this error.
    Closed(Option<io::Error>),
}

/// Moves packets between an element and a socket.
#[derive(Counts)]
pub(super) struct Pump {
    shape: Shape,
    buffer: Vec<u8>,
    /// Received data that is still in `buffer`, because no packet buffer was free. The numbers are the bytes in
    /// `buffer`, and the length of the datagram as it arrived.
    received: Option<(usize, usize)>,
    outputs: bool,
    /// Whether the element has a pull input.
    pull: bool,
    upstream: Signal,
    waiting: VecDeque<Packet>,
    /// How many bytes of the first waiting packet have been sent already.
    gone: usize,
    blocked: bool,
    read: Option<Watch>,
    write: Option<Watch>,
    reported: bool,
    refused: u64,
    /// Packets received.
    #[count(name = "received", unit = "packets")]
    taken: Count,
    /// Packets sent.
    #[count(name = "sent", unit = "packets")]
    given: Count,
}

impl Pump {
    pub(super) fn build(shape: Shape, cx: &BuildCx<'_>) -> Pump {
        Pump {
            shape,
            buffer: vec![0; shape.snaplen as usize],
            received: None,
            outputs: cx.outputs > 0,
            pull: cx.inputs > 0 && !cx.is_push_input(0),
            upstream: Signal::default(),
            waiting: VecDeque::new(),
            gone: 0,
            blocked: false,
            read: None,
            write: None,
            reported: false,
            refused: 0,
            taken: Count::default(),
            given: Count::default(),
        }
    }

    /// Makes the input a pull input.
    #[cfg(test)]
    pub(super) fn set_pull(&mut self) {
        self.pull = true;
    }

    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        if self.pull {
            self.upstream = cx.upstream(0);
        }
        // By default, the task of an element with a push input is not scheduled. This task must read from the socket.
        cx.schedule();
    }

    /// Returns how many packets wait to be sent.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many packets wait to be sent.
    pub(super) fn held(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether no packet waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of datagrams from refused hosts since the last call.
    pub(super) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Whether the element has an output for received packets.
    pub(super) fn has_output(&self) -> bool {
        self.outputs
    }

    /// Reports the first failure of the socket, or every failure if `all`.
    #[cold]
    pub(super) fn report(&mut self, error: &io::Error, all: bool, cx: &Cx<'_>) {
        if all || !std::mem::replace(&mut self.reported, true) {
            cx.message(&format!("{}: {}", cx.declaration(), reason(error)));
        }
    }

    /// Ends the watches of the descriptors, because the socket is about to be replaced.
    pub(super) fn detach(&mut self, cx: &mut Cx<'_>) {
        for watch in [self.read.take(), self.write.take()].into_iter().flatten() {
            cx.unwatch(watch);
        }
        self.blocked = false;
    }

    /// Arranges that the task is woken when there is something to receive.
    pub(super) fn wait_to_read(&mut self, e: &impl Endpoint, cx: &mut Cx<'_>) {
        if self.read.is_none() {
            self.read = e.readable().map(|fd| cx.watch(fd, Interest::Read));
        }
        if let Some(watch) = self.read {
            cx.wait(watch);
        }
    }

    /// Arranges that the task is woken when something can be sent.
    pub(super) fn wait_to_write(&mut self, e: &impl Endpoint, cx: &mut Cx<'_>) {
        self.blocked = true;
        if self.write.is_none() {
            self.write = e.writable().map(|fd| cx.watch(fd, Interest::Write));
        }
        if let Some(watch) = self.write {
            cx.wait(watch);
        }
    }

    /// Arranges that the task is woken when a descriptor that is not an [`Endpoint`] is readable.
    pub(super) fn wait_for(&mut self, fd: Arc<OwnedFd>, cx: &mut Cx<'_>) {
        let watch = *self.read.get_or_insert_with(|| cx.watch(fd, Interest::Read));
        cx.wait(watch);
    }

    /// Arranges that the task is woken in a millisecond.
    pub(super) fn wait_a_while(&mut self, cx: &mut Cx<'_>) {
        let at = cx.now().saturating_add(LATER);
        cx.set_timer(TIMER, at);
    }

    /// Emits the data in the buffer as a packet. Returns false if no packet buffer is free.
    fn emit(&mut self, (got, whole): (usize, usize), cx: &mut Cx<'_>) -> bool {
        let data = self.buffer.get(..got).unwrap_or_default();
        let Some(mut p) = Packet::copy_with_headroom(self.shape.headroom as usize, data) else {
            return false;
        };
        if self.shape.timestamp {
            p.set_timestamp(cx.now());
        }
        if whole > got {
            p.set_anno_u32(anno::EXTRA_LENGTH, u32::try_from(whole - got).unwrap_or(u32::MAX));
        }
        if self.shape.ip
            && let Some(h) = castanet_wire::Ipv4Header::from_prefix(p.data())
        {
            let (len, dst) = (h.header_len(), h.dst.get());
            p.set_network_header(0, len);
            p.set_dst_ip(dst);
        }
        self.taken.add(1);
        cx.entered(1);
        cx.emit(0, p);
        true
    }

    /// Receives what is available, at most as many packets as one turn may emit.
    pub(super) fn receive(
        &mut self,
        e: &mut impl Endpoint,
        allowed: impl Fn(Ipv4Addr, &mut Cx<'_>) -> bool,
        verbose: bool,
        cx: &mut Cx<'_>,
    ) -> Flow {
        for _ in 0..cx.limit() {
            if self.received.is_none() {
                match e.receive(&mut self.buffer, &mut |a| allowed(a, cx)) {
                    Received::Data(got, whole) => self.received = Some((got, whole)),
                    Received::Refused => {
                        self.refused += 1;
                        continue;
                    }
                    Received::Nothing => {
                        self.wait_to_read(e, cx);
                        return Flow::Idle;
                    }
                    Received::Trouble(error) => {
                        self.report(&error, verbose, cx);
                        continue;
                    }
                    Received::Closed(error) => return Flow::Closed(error),
                }
            }
            if let Some(data) = self.received.take()
                && !self.emit(data, cx)
            {
                // Stream data must not be lost, so it stays in `buffer` until a packet buffer is free.
                self.received = Some(data);
                self.wait_a_while(cx);
                return Flow::Idle;
            }
        }
        Flow::More
    }

    /// Stores packets from a push input. While [`WAITING`] packets wait, further packets are dropped.
    pub(super) fn store(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            if self.waiting.len() < WAITING {
                self.waiting.push_back(p);
            } else {
                cx.drop(p, Reason::QueueFull);
            }
        }
    }

    /// Drops all waiting packets.
    pub(super) fn clear(&mut self, reason: Reason, cx: &mut Cx<'_>) {
        self.gone = 0;
        for p in self.waiting.drain(..) {
            cx.drop(p, reason);
        }
    }

    /// Sends the packets stored from a push input, unless the socket is known to be full.
    pub(super) fn send_stored(&mut self, e: &mut impl Endpoint, verbose: bool, cx: &mut Cx<'_>) -> Flow {
        if self.blocked { Flow::Idle } else { self.send(e, verbose, cx) }
    }

    /// Sends waiting packets until the socket is full.
    pub(super) fn send(&mut self, e: &mut impl Endpoint, verbose: bool, cx: &mut Cx<'_>) -> Flow {
        self.blocked = false;
        while let Some(p) = self.waiting.front() {
            let whole = p.len();
            let data = p.data().get(self.gone..).unwrap_or_default();
            let (reason, error) = match e.send(data) {
                // The stream took a part of the data.
                Sent::Bytes(n) if n < data.len() => {
                    self.gone = self.gone.saturating_add(n).min(whole);
                    continue;
                }
                Sent::Bytes(_) => {
                    self.given.add(1);
                    (Reason::Consumed, None)
                }
                Sent::Full => {
                    self.wait_to_write(e, cx);
                    return Flow::Idle;
                }
                Sent::Later => {
                    self.blocked = true;
                    self.wait_a_while(cx);
                    return Flow::Idle;
                }
                Sent::NoPeer => (Reason::NotConnected, None),
                Sent::Rejected(error) => (Reason::WriteFailed, Some(error)),
                Sent::Closed(error) => return Flow::Closed(Some(error)),
            };
            if let Some(error) = error {
                self.report(&error, verbose, cx);
            }
            self.gone = 0;
            if let Some(p) = self.waiting.pop_front() {
                cx.drop(p, reason);
            }
        }
        Flow::Idle
    }

    /// Sends waiting packets until the socket is full. With a pull input, also pulls packets and sends them.
    pub(super) fn pull_and_send(&mut self, e: &mut impl Endpoint, verbose: bool, cx: &mut Cx<'_>) -> Flow {
        let flow = self.send(e, verbose, cx);
        if !self.pull || matches!(flow, Flow::Closed(_)) {
            return flow;
        }
        for n in 0..cx.limit() {
            // While the socket is full, nothing is pulled: packets wait in the queue upstream.
            if self.blocked {
                return Flow::Idle;
            }
            let Some(p) = cx.pull_one(0) else {
                return if n == 0 && !cx.is_on(&self.upstream) { Flow::Idle } else { Flow::More };
            };
            self.waiting.push_back(p);
            let flow = self.send(e, verbose, cx);
            if matches!(flow, Flow::Closed(_)) {
                return flow;
            }
        }
        if self.blocked { Flow::Idle } else { Flow::More }
    }

    /// Runs one turn on a socket that has no connections: receives, pulls and sends.
    pub(super) fn turn(&mut self, e: &mut impl Endpoint, cx: &mut Cx<'_>) -> Turn {
        let received = if self.outputs { self.receive(e, |_, _| true, false, cx) } else { Flow::Idle };
        let sent = self.pull_and_send(e, false, cx);
        if matches!((&received, &sent), (Flow::Idle, Flow::Idle)) { Turn::Sleep } else { Turn::Again }
    }

    /// Takes over received data and waiting packets from the element that had the socket before (hot swap). Watches are
    /// valid only in one router, so the old element keeps its own.
    pub(super) fn take(&mut self, old: &mut Pump, cx: &mut Cx<'_>) {
        self.detach(cx);
        if let Some((got, whole)) = old.received.take() {
            let data = old.buffer.get(..got).unwrap_or_default();
            // Data that the old router received is not cut again, even if SNAPLEN is smaller now.
            if self.buffer.len() < got {
                self.buffer.resize(got, 0);
            }
            if let Some(place) = self.buffer.get_mut(..got) {
                place.copy_from_slice(data);
            }
            self.received = Some((got, whole));
        }
        self.waiting.append(&mut old.waiting);
        self.gone = std::mem::take(&mut old.gone);
        self.reported = old.reported;
        cx.schedule();
    }

    /// Sends the waiting packets that the socket accepts immediately, and drops the rest.
    pub(super) fn finish(&mut self, e: Option<&mut impl Endpoint>, cx: &mut Cx<'_>) {
        if let Some(e) = e {
            self.send(e, false, cx);
        }
        self.clear(Reason::Stopped, cx);
        self.detach(cx);
    }
}
