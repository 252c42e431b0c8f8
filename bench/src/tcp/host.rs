// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with one TCP connection, whichever TCP it has.

use std::net::Ipv4Addr;

/// The addresses of the two hosts.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
/// The port of the server.
pub const PORT: u16 = 7;
/// The bytes of IP and TCP headers before the data: 20 of each, and 12 of timestamps.
pub const HEADERS: usize = 52;
/// The most data in a packet of 1500 bytes.
pub const MOST: usize = 1500 - HEADERS;

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end that opens the connection.
    Client,
    /// The end that waits for it.
    Server,
}

impl End {
    /// The address of this end and that of the other one.
    pub fn addresses(self) -> [Ipv4Addr; 2] {
        let [client, server] = ADDRESSES;
        if self == End::Client { [client, server] } else { [server, client] }
    }
}

/// Options of a host.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The bytes of the send buffer and of the receive buffer.
    pub buffer: usize,
    /// Whether the TCP leaves out timestamps and congestion control, if it can.
    pub bare: bool,
    /// The most packets that one call sends, for a TCP that must be asked for each.
    pub burst: usize,
}

/// A host with one connection. All times are in nanoseconds.
pub trait Host {
    /// An IP packet.
    type Packet;

    /// A host that waits for a connection, or opens one.
    fn new(end: End, options: Options, now: i64) -> Self;
    /// Takes an IP packet, and checks both of its checksums.
    fn input(&mut self, packet: Self::Packet, now: i64);
    /// Forgets the data that has arrived, writes `data`, and sends what may be sent. Returns the bytes that were written.
    fn send(&mut self, data: &[u8], now: i64) -> usize;
    /// Writes back the data that has arrived, and sends what may be sent.
    fn echo(&mut self, now: i64);
    /// Forgets the data that has arrived, and sends what may be sent. Returns the bytes of that data.
    fn discard(&mut self, now: i64) -> usize;
    /// Takes the next packet that was sent. Its checksums are filled in.
    fn take(&mut self) -> Option<Self::Packet>;
    /// The bytes of a packet.
    fn bytes(packet: &Self::Packet) -> &[u8];
}
