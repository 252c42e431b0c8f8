// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds packets, valid or not, and parses packets that arrive.

use etherparse::{ArpOperation, ArpPacketSlice, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, UdpHeader};
use std::net::Ipv4Addr;

/// An Ethernet address.
pub type Ether = [u8; 6];

/// The broadcast address.
pub const BROADCAST: Ether = [0xff; 6];

/// Builds an Ethernet frame.
pub fn ethernet(destination: Ether, source: Ether, kind: u16, payload: &[u8]) -> Vec<u8> {
    [&destination[..], &source, &kind.to_be_bytes(), payload].concat()
}

/// Builds an ARP packet for Ethernet and IPv4. Operation 1 is a request, 2 a reply.
pub fn arp(operation: u8, from: (Ether, Ipv4Addr), to: (Ether, Ipv4Addr)) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, operation];
    [&head[..], &from.0, &from.1.octets(), &to.0, &to.1.octets()].concat()
}

/// The fields of an IPv4 packet to build.
#[derive(Clone, Debug)]
pub struct Ip {
    /// Source address.
    pub from: Ipv4Addr,
    /// Destination address.
    pub to: Ipv4Addr,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub id: u16,
    /// The "don't fragment" flag.
    pub whole: bool,
    /// The "more fragments" flag.
    pub more: bool,
    /// Fragment offset in units of 8 bytes.
    pub offset: u16,
    /// Options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// Protocol.
    pub protocol: u8,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Ip {
    /// Builds a UDP datagram from port 1000 to port 2000.
    pub fn udp(from: &str, to: &str, payload: &[u8]) -> Ip {
        let (from, to) = (address(from), address(to));
        let header = UdpHeader::with_ipv4_checksum(
            1000,
            2000,
            &Ipv4Header::new(0, 64, IpNumber::UDP, from.octets(), to.octets()).unwrap_or_default(),
            payload,
        );
        let header = header.map(|h| h.to_bytes()).unwrap_or_default();
        Ip::with(from, to, IpNumber::UDP.0, [&header, payload].concat())
    }

    /// Builds an ICMP message from type, code, the rest of the header, and the payload.
    pub fn icmp(from: &str, to: &str, kind: u8, code: u8, rest: [u8; 4], payload: &[u8]) -> Ip {
        let mut message = [&[kind, code, 0, 0], &rest[..], payload].concat();
        let sum = checksum(&message);
        message.splice(2..4, sum.to_be_bytes());
        Ip::with(address(from), address(to), IpNumber::ICMP.0, message)
    }

    fn with(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: Vec<u8>) -> Ip {
        let (whole, more, offset, options) = (false, false, 0, Vec::new());
        Ip { from, to, ttl: 64, id: 0x1234, whole, more, offset, options, protocol, payload }
    }

    /// Returns the packet's bytes, with a correct header checksum.
    ///
    /// # Panics
    /// The fields cannot form a packet.
    pub fn bytes(&self) -> Vec<u8> {
        let impossible = |e: String| -> ! { panic!("{self:?}: {e}") };
        let length = u16::try_from(self.payload.len()).unwrap_or_else(|e| impossible(e.to_string()));
        let (from, to) = (self.from.octets(), self.to.octets());
        let mut header = Ipv4Header::new(length, self.ttl, IpNumber(self.protocol), from, to)
            .unwrap_or_else(|e| impossible(e.to_string()));
        header.identification = self.id;
        header.dont_fragment = self.whole;
        header.more_fragments = self.more;
        header.fragment_offset =
            IpFragOffset::try_new(self.offset).unwrap_or_else(|e| impossible(e.to_string()));
        header.options =
            Ipv4Options::try_from(&self.options[..]).unwrap_or_else(|e| impossible(e.to_string()));
        header.set_payload_len(self.payload.len()).unwrap_or_else(|e| impossible(e.to_string()));
        header.header_checksum = header.calc_header_checksum();
        [&header.to_bytes()[..], &self.payload].concat()
    }
}

/// Parses an address.
///
/// # Panics
/// The text is not an address.
pub fn address(text: &str) -> Ipv4Addr {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Computes the Internet checksum (RFC 1071). It is 0 over data that includes a correct checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The contents of an ARP frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arp {
    /// The destination address of the Ethernet frame.
    pub frame_to: Ether,
    /// Whether the packet is a request.
    pub asks: bool,
    /// The sender's Ethernet and IP address.
    pub from: (Vec<u8>, Vec<u8>),
    /// The target's Ethernet and IP address.
    pub to: (Vec<u8>, Vec<u8>),
}

/// Parses an ARP frame; `None` if it is something else.
pub fn arp_in(frame: &[u8]) -> Option<Arp> {
    let body = frame.get(14..).filter(|_| frame.get(12..14) == Some(&[8, 6]))?;
    let packet = ArpPacketSlice::from_slice(body).ok()?;
    let hw = |a: &[u8], p: &[u8]| (a.to_vec(), p.to_vec());
    Some(Arp {
        frame_to: frame.get(..6)?.try_into().ok()?,
        asks: packet.operation() == ArpOperation::REQUEST,
        from: hw(packet.sender_hw_addr(), packet.sender_protocol_addr()),
        to: hw(packet.target_hw_addr(), packet.target_protocol_addr()),
    })
}

/// An IPv4 packet that was received, or that an ICMP error quotes.
#[derive(Clone, Debug)]
pub struct IpIn {
    /// The IP header.
    pub header: Ipv4Header,
    /// Source address.
    pub from: Ipv4Addr,
    /// Destination address.
    pub to: Ipv4Addr,
    /// Payload.
    pub payload: Vec<u8>,
    /// All bytes of the packet, without link-layer padding.
    pub bytes: Vec<u8>,
}

/// Parses the IPv4 packet of a frame, and checks its header checksum. `None` if the frame contains no IPv4 packet.
///
/// # Panics
/// The header checksum is wrong.
pub fn ip_in(frame: &[u8]) -> Option<IpIn> {
    let body = frame.get(14..).filter(|_| frame.get(12..14) == Some(&[8, 0]))?;
    packet(body).inspect(|p| {
        let sum = checksum(p.bytes.get(..p.header.header_len()).unwrap_or_default());
        assert_eq!(sum, 0, "wrong header checksum: {p:?}");
    })
}

/// Parses an IPv4 packet, which may be truncated. The header checksum is not checked.
pub fn packet(bytes: &[u8]) -> Option<IpIn> {
    let (header, _) = Ipv4Header::from_slice(bytes).ok()?;
    let length = usize::from(header.total_len).min(bytes.len());
    let bytes = bytes.get(..length)?.to_vec();
    let payload = bytes.get(header.header_len()..)?.to_vec();
    let (from, to) = (header.source.into(), header.destination.into());
    Some(IpIn { header, from, to, payload, bytes })
}

/// A received ICMP message. Its checksum is correct.
#[derive(Clone, Debug)]
pub struct IcmpIn {
    /// The IP packet that contains the message.
    pub ip: IpIn,
    /// The type and code of the message.
    pub kind: (u8, u8),
    /// The second word of the ICMP header.
    pub rest: [u8; 4],
    /// The payload of the message. In an error, this is the packet that caused it.
    pub payload: Vec<u8>,
}

/// Parses the ICMP message of a frame; `None` if it contains none, or if the packet is a fragment.
///
/// # Panics
/// The checksum is wrong.
pub fn icmp_in(frame: &[u8]) -> Option<IcmpIn> {
    let ip = ip_in(frame).filter(|p| p.header.protocol == IpNumber::ICMP)?;
    if ip.header.is_fragmenting_payload() {
        return None;
    }
    assert_eq!(checksum(&ip.payload), 0, "wrong ICMP checksum: {ip:?}");
    let kind = (*ip.payload.first()?, *ip.payload.get(1)?);
    let rest = ip.payload.get(4..8)?.try_into().ok()?;
    let payload = ip.payload.get(8..)?.to_vec();
    Some(IcmpIn { ip, kind, rest, payload })
}
