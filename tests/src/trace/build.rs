// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds frames from their fields.
use std::net::Ipv4Addr;

/// Computes the Internet checksum (RFC 1071) of `parts`. All but the last must have even length.
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or(0)
}

/// Builds an Ethernet frame.
pub fn ether(dst: [u8; 6], src: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&dst[..], &src, &kind.to_be_bytes(), payload].concat()
}

/// Builds the 28 bytes of an ARP packet (RFC 826) for IPv4 over Ethernet.
pub fn arp(
    operation: u16,
    sender_mac: [u8; 6],
    sender: Ipv4Addr,
    target_mac: [u8; 6],
    target: Ipv4Addr,
) -> Vec<u8> {
    [
        &[0, 1, 8, 0, 6, 4][..],
        &operation.to_be_bytes(),
        &sender_mac,
        &sender.octets(),
        &target_mac,
        &target.octets(),
    ]
    .concat()
}

/// The fields of an IPv4 packet (RFC 791).
#[derive(Clone, Debug)]
pub struct Ipv4 {
    /// Type of service.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// The "don't fragment" flag.
    pub df: bool,
    /// The "more fragments" flag.
    pub mf: bool,
    /// Fragment offset in units of 8 bytes.
    pub offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol.
    pub protocol: u8,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// Options, padded to a multiple of 4 with end-of-list.
    pub options: Vec<u8>,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Ipv4 {
    /// Makes a packet with default values.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, id: u16, protocol: u8, payload: Vec<u8>) -> Ipv4 {
        Ipv4 {
            tos: 0,
            id,
            df: false,
            mf: false,
            offset: 0,
            ttl: 64,
            protocol,
            src,
            dst,
            options: Vec::new(),
            payload,
        }
    }

    /// Makes a UDP datagram with a correct checksum (RFC 768).
    pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, id: u16, ports: (u16, u16), data: &[u8]) -> Ipv4 {
        let length = u16::try_from(data.len() + 8).unwrap_or(u16::MAX).to_be_bytes();
        let mut segment =
            [&ports.0.to_be_bytes()[..], &ports.1.to_be_bytes(), &length, &[0, 0], data].concat();
        let sum = match checksum(&[&src.octets(), &dst.octets(), &[0, 17], &length, &segment]) {
            0 => u16::MAX,
            sum => sum,
        };
        segment[6..8].copy_from_slice(&sum.to_be_bytes());
        Ipv4::new(src, dst, id, 17, segment)
    }

    /// Makes a TCP segment with a correct checksum (RFC 9293).
    pub fn tcp(
        src: Ipv4Addr,
        dst: Ipv4Addr,
        id: u16,
        ports: (u16, u16),
        sequence: u32,
        flags: u8,
        data: &[u8],
    ) -> Ipv4 {
        let mut segment = [
            &ports.0.to_be_bytes()[..],
            &ports.1.to_be_bytes(),
            &sequence.to_be_bytes(),
            &0x1234_5678_u32.to_be_bytes(),
            &[0x50, flags, 0x20, 0, 0, 0, 0, 0],
            data,
        ]
        .concat();
        let length = u16::try_from(segment.len()).unwrap_or(u16::MAX).to_be_bytes();
        let sum = checksum(&[&src.octets(), &dst.octets(), &[0, 6], &length, &segment]);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        Ipv4::new(src, dst, id, 6, segment)
    }

    /// Makes an ICMP message with a correct checksum (RFC 792).
    pub fn icmp(
        src: Ipv4Addr,
        dst: Ipv4Addr,
        id: u16,
        (kind, code): (u8, u8),
        rest: [u8; 4],
        data: &[u8],
    ) -> Ipv4 {
        let mut message = [&[kind, code, 0, 0][..], &rest, data].concat();
        let sum = checksum(&[&message]);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        Ipv4::new(src, dst, id, 1, message)
    }

    /// Sets the time to live.
    pub fn ttl(mut self, ttl: u8) -> Ipv4 {
        self.ttl = ttl;
        self
    }

    /// Sets the "don't fragment" flag.
    pub fn df(mut self) -> Ipv4 {
        self.df = true;
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: &[u8]) -> Ipv4 {
        self.options = options.to_vec();
        self
    }

    /// Makes this a fragment of a longer packet; `offset` is in units of 8 bytes.
    pub fn fragment(mut self, offset: u16, more: bool) -> Ipv4 {
        (self.offset, self.mf) = (offset, more);
        self
    }

    /// Returns the packet's bytes, with correct lengths and header checksum.
    pub fn bytes(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let header = 20 + options.len();
        let length = u16::try_from(header + self.payload.len()).unwrap_or(u16::MAX);
        let flags = u16::from(self.df) << 14 | u16::from(self.mf) << 13 | (self.offset & 0x1fff);
        let mut bytes = [
            &[0x40 | u8::try_from(header / 4).unwrap_or(15), self.tos][..],
            &length.to_be_bytes(),
            &self.id.to_be_bytes(),
            &flags.to_be_bytes(),
            &[self.ttl, self.protocol, 0, 0],
            &self.src.octets(),
            &self.dst.octets(),
            &options,
            &self.payload,
        ]
        .concat();
        fix_checksum(&mut bytes);
        bytes
    }
}

/// Recomputes the header checksum after a change, using the header length field.
pub(super) fn fix_checksum(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    let header = header.clamp(12, packet.len());
    packet[10..12].copy_from_slice(&[0, 0]);
    let sum = checksum(&[&packet[..header]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}
