// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with smoltcp.

use super::host::{ADDRESSES, Ending, Host, PORT};
use super::schedule;
use super::user::Socket;
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::{TcpHeader, flag};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{self, CongestionControl, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::Cell;
use std::collections::VecDeque;

/// The port of connections that it opens.
pub const OWN_PORT: u16 = 40_000;

thread_local! {
    /// The time of timestamps, in milliseconds. They wrap during the exchanges.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
}

/// The packets to and from smoltcp.
struct Wire {
    to: Option<Vec<u8>>,
    from: VecDeque<Vec<u8>>,
    mtu: usize,
}

struct Received(Vec<u8>);
struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.to.take()?), Sent(&mut self.from)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.from))
    }
    /// All checksums are computed and verified, which is the default.
    fn capabilities(&self) -> DeviceCapabilities {
        let mut c = DeviceCapabilities::default();
        (c.medium, c.max_transmission_unit) = (Medium::Ip, self.mtu);
        c
    }
}

pub struct Smoltcp {
    end: usize,
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The last state, and how the connection has ended.
    before: State,
    ending: Option<Ending>,
}

fn instant(now: i64) -> Instant {
    CLOCK.set((now / 1_000_000) as u32);
    Instant::from_micros(now / 1_000)
}

impl Smoltcp {
    pub fn new(end: usize, seed: u64, plan: &schedule::End, mtu: usize, now: i64) -> Smoltcp {
        let now = instant(now);
        let mut wire = Wire { to: None, from: VecDeque::new(), mtu };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, now);
        interface.update_ip_addrs(|all| {
            all.push(IpCidr::new(IpAddress::Ipv4(ADDRESSES[end]), 24)).unwrap();
        });
        let buffer = |size| SocketBuffer::new(vec![0; size]);
        let mut socket = tcp::Socket::new(buffer(plan.receive_buffer), buffer(plan.send_buffer));
        let wrapping: fn() -> u32 = || CLOCK.get().wrapping_sub(1_003_000);
        socket.set_tsval_generator(plan.timestamps.then_some(wrapping));
        // The default depends on the features that other crates ask for.
        socket.set_congestion_control(CongestionControl::None);
        socket.set_nagle_enabled(!plan.no_delay);
        let keep_alive = (plan.keep_alive > 0).then(|| Duration::from_secs(u64::from(plan.keep_alive)));
        socket.set_keep_alive(keep_alive);
        socket.listen(PORT).unwrap();
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let (before, ending) = (State::Listen, None);
        Smoltcp { end, wire, interface, sockets, handle, before, ending }
    }
    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
    /// Takes what has arrived, sends what may be sent, and learns whether the connection has ended. `reset` says whether a RST has
    /// arrived or this end has aborted.
    fn poll(&mut self, now: i64, reset: bool) {
        self.interface.poll(instant(now), &mut self.wire, &mut self.sockets);
        let state = self.socket().state();
        if state == State::Closed && self.before != State::Closed {
            let both_closed = [State::Closing, State::LastAck, State::TimeWait].contains(&self.before);
            let ending = if both_closed {
                Ending::Finished
            } else if reset {
                Ending::Reset
            } else {
                Ending::Failed
            };
            self.ending = Some(ending);
        }
        self.before = state;
    }
}

impl Host for Smoltcp {
    fn open(&mut self, now: i64) -> [u16; 2] {
        let peer = (IpAddress::Ipv4(ADDRESSES[1 - self.end]), PORT);
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
        socket.abort();
        socket.connect(self.interface.context(), peer, OWN_PORT).unwrap();
        self.before = State::SynSent;
        self.poll(now, false);
        [OWN_PORT, PORT]
    }
    fn input(&mut self, packet: &[u8], now: i64) {
        let header = packet.get(Ipv4Header::LEN..).and_then(TcpHeader::from_prefix);
        let reset = header.is_some_and(|h| h.has(flag::RST));
        self.wire.to = Some(packet.to_vec());
        self.poll(now, reset);
    }
    fn pass_time(&mut self, now: i64) {
        self.poll(now, false);
    }
    fn next_timeout(&mut self, now: i64) -> Option<i64> {
        self.interface.poll_at(instant(now), &self.sockets).map(|at| at.total_micros() * 1_000)
    }
    fn packets(&mut self) -> Vec<Vec<u8>> {
        self.wire.from.drain(..).collect()
    }
    fn with(&mut self, now: i64, f: &mut dyn FnMut(&mut dyn Socket)) -> bool {
        if matches!(self.before, State::Closed | State::Listen) {
            return false;
        }
        let socket = self.socket();
        f(socket);
        let aborted = socket.state() == State::Closed;
        self.poll(now, aborted);
        true
    }
    fn state(&mut self) -> &'static str {
        match self.socket().state() {
            State::Closed => "CLOSED",
            State::Listen => "LISTEN",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
        }
    }
    fn ending(&self) -> Option<Ending> {
        self.ending
    }
    fn is_waiting(&mut self) -> bool {
        self.socket().send_queue() == 0
    }
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    fn check(&mut self) {}
    fn check_end(&mut self) {
        assert!(self.wire.from.is_empty());
    }
}

impl Socket for tcp::Socket<'static> {
    fn is_connected(&self) -> bool {
        !matches!(self.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }
    fn available(&self) -> usize {
        self.recv_queue()
    }
    fn is_at_end(&self) -> bool {
        use State::{CloseWait, Closing, LastAck, TimeWait};
        matches!(self.state(), CloseWait | Closing | LastAck | TimeWait) && self.recv_queue() == 0
    }
    fn read(&mut self, most: usize) -> Vec<u8> {
        let mut data = vec![0; most.min(self.recv_queue())];
        let n = self.recv_slice(&mut data).unwrap();
        data.truncate(n);
        data
    }
    fn write(&mut self, data: &[u8]) -> usize {
        if self.can_send() { self.send_slice(data).unwrap() } else { 0 }
    }
    fn close(&mut self) {
        tcp::Socket::close(self);
    }
    fn abort(&mut self) {
        tcp::Socket::abort(self);
    }
}
