// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of the ICMP messages that elements make.

use castanet_classify::names;
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;
use castanet_wire::icmp::{self, IcmpHeader};
use castanet_wire::ipv4::protocol::ICMP;
use std::net::Ipv4Addr;

const HEADERS: usize = Ipv4Header::LEN + IcmpHeader::LEN;

/// The header fields that the sender of an ICMP message chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The source address of the IP packet.
    pub(super) src: Ipv4Addr,
    /// The destination address of the IP packet.
    pub(super) dst: Ipv4Addr,
    /// The ICMP type and code.
    pub(super) kind: (u8, u8),
    /// The second word of the ICMP header.
    pub(super) word: u32,
    /// The identification of the IP packet.
    pub(super) id: u16,
}

impl Message {
    /// Puts the headers of the message before a packet, marks the network header, and sets the destination address
    /// annotation. Returns false if the packet would become longer than IPv4 allows.
    pub(super) fn wrap(&self, p: &mut Packet) -> bool {
        let Ok(total) = u16::try_from(p.len() + HEADERS) else { return false };
        let mut ip = Ipv4Header::new(ICMP, self.src.to_bits(), self.dst.to_bits(), total, 255);
        ip.id.set(self.id);
        ip.set_checksum20();
        let (kind, code) = self.kind;
        let message = IcmpHeader::new(kind, code, self.word);
        let Some(space) = p.push_header::<HEADERS>() else { return false };
        let (to_ip, to_icmp) = space.split_at_mut(Ipv4Header::LEN);
        to_ip.copy_from_slice(ip.as_array());
        to_icmp.copy_from_slice(message.as_array());
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(self.dst.to_bits());
        icmp::set_checksum(p.transport_mut().unwrap_or_default());
        true
    }
}

/// Returns the second word of the ICMP header. In echo, timestamp, information and mask messages, it contains the
/// identifier and the sequence number. In other messages, it is zero.
pub(super) fn word(kind: u8, identifier: u16, sequence: u16) -> u32 {
    if matches!(kind, 0 | 8 | 13..=18) { icmp::echo_word(identifier, sequence) } else { 0 }
}

/// An ICMP type, given by name or number.
#[derive(Clone, Copy, Debug)]
pub struct IcmpType(pub(super) u8);

impl ArgValue for IcmpType {
    const TYPE: &'static str = "ICMP type";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<IcmpType, ValueError> {
        let number = names::icmp_type_number(text).map_or_else(|| u8::parse(text, cx), Ok);
        Ok(IcmpType(number.map_err(|_| format!("'{text}' is not an ICMP type"))?))
    }
}
