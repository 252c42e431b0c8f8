// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts with smoltcp.

use super::host::{End, Host, Options, PORT};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The largest IP packet, in bytes.
const MTU: usize = 1500;

thread_local! {
    /// The time of timestamps, in milliseconds.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
    /// The buffers of packets that are used again.
    static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A packet in a buffer of the thread.
pub struct Frame {
    bytes: Option<Box<[u8]>>,
    length: usize,
}

impl Frame {
    fn new(length: usize) -> Frame {
        let bytes = FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; MTU].into());
        Frame { bytes: Some(bytes), length }
    }
    fn data(&self) -> &[u8] {
        self.bytes.as_deref().and_then(|b| b.get(..self.length)).unwrap_or_default()
    }
    fn data_mut(&mut self) -> &mut [u8] {
        self.bytes.as_deref_mut().and_then(|b| b.get_mut(..self.length)).unwrap_or_default()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            FREE.with_borrow_mut(|free| free.push(bytes));
        }
    }
}

/// The packets to and from the host.
#[derive(Default)]
struct Wire {
    to: Option<Frame>,
    from: VecDeque<Frame>,
}

struct Received(Frame);
struct Sent<'a>(&'a mut VecDeque<Frame>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0.data())
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut frame = Frame::new(length);
        let result = f(frame.data_mut());
        self.0.push_back(frame);
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
        (c.medium, c.max_transmission_unit) = (Medium::Ip, MTU);
        c
    }
}

/// A host with smoltcp.
pub struct Smoltcp {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    scratch: Box<[u8; MTU]>,
    burst: usize,
}

fn instant(now: i64) -> Instant {
    CLOCK.set((now / 1_000_000) as u32);
    Instant::from_micros(now / 1000)
}

impl Smoltcp {
    /// Sends until there is nothing more to be sent, but at most a burst.
    fn flush(&mut self, now: i64) {
        let now = instant(now);
        for _ in 0..self.burst {
            if self.interface.poll_egress(now, &mut self.wire, &mut self.sockets) == PollResult::None {
                break;
            }
        }
    }
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
    /// Forgets the data that has arrived. Returns its bytes.
    fn forget(&mut self) -> usize {
        let socket = self.socket();
        let mut n = 0;
        // The data is in two parts where the buffer wraps.
        while let Ok(part @ 1..) = socket.recv(|data| (data.len(), data.len())) {
            n += part;
        }
        n
    }
}

impl Host for Smoltcp {
    type Packet = Frame;

    fn new(end: End, options: Options, now: i64) -> Self {
        let [address, peer] = end.addresses();
        let now = instant(now);
        let mut wire = Wire::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = u64::from(address.to_bits());
        let mut interface = Interface::new(config, &mut wire, now);
        interface.update_ip_addrs(|all| {
            // The list is empty, so there is room.
            let _ = all.push(IpCidr::new(IpAddress::Ipv4(address), 24));
        });
        let buffer = || SocketBuffer::new(vec![0; options.buffer]);
        let mut socket = Socket::new(buffer(), buffer());
        let clock: fn() -> u32 = || CLOCK.get();
        socket.set_tsval_generator((!options.bare).then_some(clock));
        let congestion = if options.bare { CongestionControl::None } else { CongestionControl::Cubic };
        socket.set_congestion_control(congestion);
        // A socket that neither listens nor connects exchanges nothing, which the measurement finds out.
        let _ = match end {
            End::Client => socket
                .connect(interface.context(), (IpAddress::Ipv4(peer), PORT), 40_000)
                .map_err(|e| e.to_string()),
            End::Server => socket.listen(PORT).map_err(|e| e.to_string()),
        };
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let mut host =
            Smoltcp { wire, interface, sockets, handle, scratch: Box::new([0; MTU]), burst: options.burst };
        host.flush(now.total_micros().saturating_mul(1000));
        host
    }
    fn input(&mut self, packet: Frame, now: i64) {
        self.wire.to = Some(packet);
        self.interface.poll_ingress_single(instant(now), &mut self.wire, &mut self.sockets);
    }
    fn send(&mut self, data: &[u8], now: i64) -> usize {
        self.forget();
        let n = self.socket().send_slice(data).unwrap_or(0);
        self.flush(now);
        n
    }
    fn echo(&mut self, now: i64) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        if let Ok(n) = socket.recv_slice(&mut self.scratch[..]) {
            let data = self.scratch.get(..n).unwrap_or_default();
            // Echoes are smaller than the buffer. An echo that is missing is found out by the measurement.
            let _ = socket.send_slice(data);
        }
        self.flush(now);
    }
    fn discard(&mut self, now: i64) -> usize {
        let n = self.forget();
        self.flush(now);
        n
    }
    fn take(&mut self) -> Option<Frame> {
        self.wire.from.pop_front()
    }
    fn bytes(packet: &Frame) -> &[u8] {
        packet.data()
    }
}
