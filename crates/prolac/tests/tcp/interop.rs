// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP exchanges data with another implementation, smoltcp, in simulated time.

use super::host::checksum;
use super::network::End;
use super::{has, subsets, tcp};
use castanet_prolac::program::Program;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::Cell;
use std::collections::VecDeque;

const BUFFER: usize = 200_000;
/// The delay of the network, in milliseconds.
const DELAY: u64 = 60;

thread_local! {
    /// The timestamp clock of the peer; it wraps during the test.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
}

fn clock() -> u32 {
    CLOCK.get().wrapping_sub(2_000)
}

/// The packets to and from smoltcp.
#[derive(Default)]
struct Wire {
    to: VecDeque<Vec<u8>>,
    from: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.to.pop_front()?), Sent(&mut self.from)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.from))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut c = DeviceCapabilities::default();
        (c.medium, c.max_transmission_unit) = (Medium::Ip, 1500);
        // The checksums of the tests' network leave out the pseudo-header.
        (c.checksum.ipv4, c.checksum.tcp) = (Checksum::None, Checksum::None);
        c
    }
}

/// Whether a segment has an option of a kind, by an independent reading of its options.
fn has_option(segment: &[u8], wanted: u8) -> bool {
    let mut list = &segment[20..usize::from(segment[12] >> 4) * 4];
    while let [kind, rest @ ..] = list {
        match kind {
            0 => return false,
            1 => list = rest,
            _ if *kind == wanted => return true,
            _ => list = &list[usize::from(rest[0])..],
        }
    }
    false
}

fn number(segment: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(segment[at..at + 4].try_into().unwrap())
}

/// Figures of an exchange.
#[derive(Debug, Default)]
struct Shown {
    /// Segments without RST and SYN, and those of them that have a timestamp.
    segments: usize,
    timestamps: usize,
    /// The most data that smoltcp has sent before an acknowledgement came, and the largest window that it has offered.
    in_flight: i32,
    window: u32,
    /// Segments with selective acknowledgements, of the Prolac TCP and of smoltcp.
    sacks: [usize; 2],
}

/// Each end sends its data and closes. `active` says whether the Prolac TCP opens the connection.
fn exchange(program: &Program, active: bool, peer_has_timestamps: bool, loss: u64) -> Shown {
    let data: Vec<u8> = (0..250_000u32).map(|i| (i * 7 / 8) as u8).collect();
    let mut end = End::new(program, 0xffff_f000, [1000, 80], Vec::new());
    end.data.borrow_mut().buffer = Some(BUFFER);
    end.data.borrow_mut().send.extend(&data);
    let mut wire = Wire::default();
    let mut iface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Instant::ZERO);
    iface.update_ip_addrs(|a| a.push(IpCidr::new(IpAddress::v4(10, 0, 0, 2), 24)).unwrap());
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    // The default depends on the features that other crates ask for.
    socket.set_congestion_control(CongestionControl::None);
    socket.set_tsval_generator(peer_has_timestamps.then_some(clock));
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    let socket = sockets.get_mut::<Socket<'_>>(handle);
    if active {
        socket.listen(80).unwrap();
        end.tcp("connect");
    } else {
        end.tcp("listen");
        socket.connect(iface.context(), (IpAddress::v4(10, 0, 0, 1), 1000), 80).unwrap();
    }
    let (mut way, mut random) = (VecDeque::<(u64, bool, Vec<u8>)>::new(), 9u64);
    let (mut sent, mut received, mut taken) = (0, Vec::new(), Vec::new());
    let (mut acknowledged, mut closed, mut shown) = (None, false, Shown::default());
    for now in (0..1_000_000u64).step_by(10) {
        CLOCK.set(now as u32);
        end.data.borrow_mut().clock = now;
        while way.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, to_peer, mut segment) = way.pop_front().unwrap();
            if !to_peer {
                end.input(segment, false);
                continue;
            }
            if segment[13] & 16 != 0 {
                acknowledged = Some(number(&segment, 8));
            }
            let size = (segment.len() as u16 + 20).to_be_bytes();
            let mut packet =
                vec![0x45, 0, size[0], size[1], 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            packet.append(&mut segment);
            wire.to.push_back(packet);
        }
        iface.poll(Instant::from_millis(now as i64), &mut wire, &mut sockets);
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        if socket.can_send() && sent < data.len() {
            sent += socket.send_slice(&data[sent..]).unwrap();
        }
        while socket.can_recv() {
            let part = socket.recv(|b| (b.len(), b.to_vec())).unwrap();
            received.extend(part);
        }
        if sent == data.len() && socket.state() == State::Established || socket.state() == State::CloseWait {
            socket.close();
        }
        taken.append(&mut end.data.borrow_mut().waiting);
        for (due, method) in [(500, "slow-timeout"), (200, "fast-timeout"), (100, "output")] {
            if now.is_multiple_of(due) {
                end.tcp(method);
            }
        }
        if end.data.borrow().connected && !closed {
            closed = true;
            end.tcp("close");
        }
        let ours: Vec<Vec<u8>> = std::mem::take(&mut end.data.borrow_mut().out);
        for s in &ours {
            if s[13] & 6 == 0 {
                shown.segments += 1;
                shown.timestamps += usize::from(has_option(s, 8));
                shown.sacks[0] += usize::from(has_option(s, 5));
            }
        }
        let ours = ours.into_iter().map(|s| (true, s));
        let theirs = wire.from.drain(..).map(|p| {
            let mut s = p[20..].to_vec();
            s[16..18].fill(0);
            let sum = checksum(&s).to_be_bytes();
            s[16..18].copy_from_slice(&sum);
            shown.sacks[1] += usize::from(has_option(&s, 5));
            let after = number(&s, 4).wrapping_add((s.len() - usize::from(s[12] >> 4) * 4) as u32);
            shown.in_flight = shown.in_flight.max(acknowledged.map_or(0, |a| after.wrapping_sub(a) as i32));
            (false, s)
        });
        for (to_peer, segment) in ours.chain(theirs.collect::<Vec<_>>()) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (random >> 33) % 100 >= loss {
                way.push_back((now + DELAY, to_peer, segment));
            }
        }
        let over = matches!(sockets.get_mut::<Socket<'_>>(handle).state(), State::Closed | State::TimeWait);
        if over && end.data.borrow().end_of_data && way.is_empty() && matches!(end.field("state"), 0 | 10) {
            break;
        }
    }
    assert!(received == data, "{} bytes of {}", received.len(), data.len());
    assert!(taken == data, "{} bytes of {} taken", taken.len(), data.len());
    shown.window = end.field("max_wnd");
    shown
}

#[test]
fn data_is_exchanged_with_smoltcp() {
    for (i, extensions) in subsets().iter().enumerate() {
        let program = tcp(extensions);
        let (scale, timestamps) = (has(extensions, "Window-Scale"), has(extensions, "Timestamps"));
        // RFC 7323: an option is in use only if both ends offer it (2.2, 3.2).
        let peer_has_timestamps = i % 3 != 0;
        let loss = [0, 3][i / 2 % 2];
        let shown = exchange(&program, i % 2 == 0, peer_has_timestamps, loss);
        println!("{i} {extensions:?} {shown:?}");
        let want = if timestamps && peer_has_timestamps { shown.segments } else { 0 };
        assert_eq!(shown.timestamps, want, "{shown:?}");
        assert_eq!(shown.window > 65_535, scale, "{shown:?}");
        assert_eq!(shown.in_flight > 65_535, scale, "{shown:?}");
        let gaps = loss > 0 && has(extensions, "Sack");
        assert_eq!(shown.sacks.map(|n| n > 0), [gaps, gaps], "{shown:?}");
    }
}
