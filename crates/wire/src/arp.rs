// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARP for IPv4 over Ethernet (RFC 826).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ether::{EtherAddr, ethertype};
use crate::{Be16, Be32};

/// Values of the operation field.
pub mod op {
    /// Request for the Ethernet address of an IPv4 address (RFC 826).
    pub const REQUEST: u16 = 1;
    /// Answer to a request (RFC 826).
    pub const REPLY: u16 = 2;
    /// Request for the IPv4 address that belongs to the target Ethernet address, usually that of the sender (RFC 903).
    pub const RARP_REQUEST: u16 = 3;
    /// Answer to a reverse request (RFC 903).
    pub const RARP_REPLY: u16 = 4;
    /// Request for the IPv4 address of a station whose hardware address is known (RFC 2390).
    pub const INVERSE_REQUEST: u16 = 8;
    /// Answer to an inverse request (RFC 2390).
    pub const INVERSE_REPLY: u16 = 9;
}

/// Hardware type of Ethernet.
pub const HARDWARE_ETHER: u16 = 1;

/// An ARP packet for Ethernet and IPv4. [`Self::is_ether_ipv4`] checks that its types and lengths match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpHeader {
    /// Hardware type.
    pub hardware: Be16,
    /// Protocol type, an Ethernet type.
    pub protocol: Be16,
    /// Length of a hardware address, in bytes.
    pub hardware_len: u8,
    /// Length of a protocol address, in bytes.
    pub protocol_len: u8,
    /// Operation, see [`op`].
    pub op: Be16,
    /// Ethernet address of the sender.
    pub sender_ether: EtherAddr,
    /// IPv4 address of the sender.
    pub sender_ip: Be32,
    /// Ethernet address of the target.
    pub target_ether: EtherAddr,
    /// IPv4 address of the target.
    pub target_ip: Be32,
}
crate::views!(ArpHeader, 28);

impl ArpHeader {
    /// Makes an ARP packet for IPv4 over Ethernet.
    #[inline]
    pub const fn new(op: u16, sender: (EtherAddr, u32), target: (EtherAddr, u32)) -> Self {
        Self {
            hardware: Be16::new(HARDWARE_ETHER),
            protocol: Be16::new(ethertype::IPV4),
            hardware_len: 6,
            protocol_len: 4,
            op: Be16::new(op),
            sender_ether: sender.0,
            sender_ip: Be32::new(sender.1),
            target_ether: target.0,
            target_ip: Be32::new(target.1),
        }
    }

    /// A request for the Ethernet address of `target_ip`.
    #[inline]
    pub const fn request(sender_ether: EtherAddr, sender_ip: u32, target_ip: u32) -> Self {
        Self::new(op::REQUEST, (sender_ether, sender_ip), (EtherAddr::ZERO, target_ip))
    }

    /// The reply to this request, with `ether` as the requested Ethernet address.
    #[inline]
    pub fn reply(&self, ether: EtherAddr) -> Self {
        Self::new(op::REPLY, (ether, self.target_ip.get()), (self.sender_ether, self.sender_ip.get()))
    }

    /// Whether the types and address lengths are those of IPv4 over Ethernet.
    #[inline]
    pub fn is_ether_ipv4(&self) -> bool {
        self.hardware.get() == HARDWARE_ETHER
            && self.protocol.get() == ethertype::IPV4
            && self.hardware_len == 6
            && self.protocol_len == 4
    }

    /// Whether this is a packet for IPv4 over Ethernet with operation `op`.
    #[inline]
    pub fn is_op(&self, op: u16) -> bool {
        self.is_ether_ipv4() && self.op.get() == op
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Ipv4Address};

    use super::*;

    const ME: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 1]);
    const YOU: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 2]);

    fn emitted(operation: ArpOperation, source: (EtherAddr, u32), target: (EtherAddr, u32)) -> Vec<u8> {
        let mut bytes = vec![0; 28];
        ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(source.0.0),
            source_protocol_addr: Ipv4Address::from(source.1),
            target_hardware_addr: EthernetAddress(target.0.0),
            target_protocol_addr: Ipv4Address::from(target.1),
        }
        .emit(&mut ArpPacket::new_unchecked(&mut bytes));
        bytes
    }

    #[test]
    fn requests_and_replies_agree_with_smoltcp() {
        let (mine, yours) = (0x0a00_0001, 0x0a00_0002);
        let request = ArpHeader::request(ME, mine, yours);
        assert_eq!(
            request.to_bytes()[..],
            emitted(ArpOperation::Request, (ME, mine), (EtherAddr::ZERO, yours))
        );
        let reply = request.reply(YOU);
        assert_eq!(reply.to_bytes()[..], emitted(ArpOperation::Reply, (YOU, yours), (ME, mine)));
        assert!(request.is_op(op::REQUEST) && !request.is_op(op::REPLY) && reply.is_op(op::REPLY));
    }

    #[test]
    fn other_kinds_are_recognised() {
        let good = ArpHeader::request(ME, 1, 2).to_bytes();
        for place in 0..6 {
            let mut bytes = good;
            bytes[place] ^= 1;
            let header = ArpHeader::from_prefix(&bytes).unwrap();
            assert!(!header.is_ether_ipv4() && !header.is_op(op::REQUEST), "{place}");
        }
        for len in 0..28 {
            assert!(ArpHeader::from_prefix(&good[..len]).is_none());
        }
        let theirs = etherparse::ArpPacketSlice::from_slice(&good).unwrap();
        let ours = ArpHeader::from_prefix(&good).unwrap();
        assert_eq!(ours.sender_ether.0[..], *theirs.sender_hw_addr());
        assert_eq!(ours.target_ip.as_bytes(), theirs.target_protocol_addr());
        assert_eq!(ours.op.get(), theirs.operation().0);
    }
}
