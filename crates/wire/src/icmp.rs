// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP (RFC 792, RFC 1812 §4.3).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Be16, Be32, checksum};

/// Values of the type field.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench.
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO: u8 = 8;
    /// Router advertisement (RFC 1256).
    pub const ROUTER_ADVERT: u8 = 9;
    /// Router solicitation (RFC 1256).
    pub const ROUTER_SOLICIT: u8 = 10;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Timestamp request.
    pub const TIMESTAMP: u8 = 13;
    /// Timestamp reply.
    pub const TIMESTAMP_REPLY: u8 = 14;
    /// Information request.
    pub const INFO_REQUEST: u8 = 15;
    /// Information reply.
    pub const INFO_REPLY: u8 = 16;
    /// Address mask request (RFC 950).
    pub const MASK_REQUEST: u8 = 17;
    /// Address mask reply (RFC 950).
    pub const MASK_REPLY: u8 = 18;
}

/// Codes of [`kind::UNREACHABLE`].
pub mod unreachable {
    /// No route to the network.
    pub const NET: u8 = 0;
    /// No route to the host.
    pub const HOST: u8 = 1;
    /// The destination host does not support the protocol.
    pub const PROTOCOL: u8 = 2;
    /// No process listens on the port.
    pub const PORT: u8 = 3;
    /// The packet is too big and must not be fragmented. The message carries the next-hop MTU (RFC 1191 §4).
    pub const NEED_FRAGMENT: u8 = 4;
    /// The source route failed.
    pub const SOURCE_ROUTE_FAILED: u8 = 5;
    /// Forbidden by a filter (RFC 1812 §5.2.7.1).
    pub const FILTER_PROHIBITED: u8 = 13;
}

/// Codes of [`kind::TIME_EXCEEDED`].
pub mod time_exceeded {
    /// The time to live expired.
    pub const TRANSIT: u8 = 0;
    /// Reassembly timed out.
    pub const REASSEMBLY: u8 = 1;
}

/// Codes of [`kind::PARAMETER_PROBLEM`].
pub mod parameter_problem {
    /// The pointer identifies the bad byte.
    pub const POINTER: u8 = 0;
    /// A required option is missing (RFC 1108).
    pub const MISSING_OPTION: u8 = 1;
    /// Bad length.
    pub const LENGTH: u8 = 2;
}

/// Codes of [`kind::REDIRECT`].
pub mod redirect {
    /// Redirect packets for the network.
    pub const NET: u8 = 0;
    /// Redirect packets for the host.
    pub const HOST: u8 = 1;
    /// Redirect packets for the type of service and the network.
    pub const TOS_NET: u8 = 2;
    /// Redirect packets for the type of service and the host.
    pub const TOS_HOST: u8 = 3;
}

/// The first 8 bytes of every ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IcmpHeader {
    /// Type, see [`kind`].
    pub kind: u8,
    /// Code; its meaning depends on the type.
    pub code: u8,
    /// Checksum of the whole message.
    pub checksum: Be16,
    /// The second word; its meaning depends on the type.
    pub rest: Be32,
}
crate::views!(IcmpHeader, 8);

impl IcmpHeader {
    /// A header with a zero checksum.
    #[inline]
    pub const fn new(kind: u8, code: u8, rest: u32) -> Self {
        Self { kind, code, checksum: Be16::new(0), rest: Be32::new(rest) }
    }

    /// Identifier of an echo, timestamp, information or mask message.
    #[inline]
    pub fn id(&self) -> u16 {
        (self.rest.get() >> 16) as u16
    }

    /// Sequence number of an echo, timestamp, information or mask message.
    #[inline]
    pub fn sequence(&self) -> u16 {
        self.rest.get() as u16
    }

    /// Pointer of a parameter problem.
    #[inline]
    pub fn pointer(&self) -> u8 {
        (self.rest.get() >> 24) as u8
    }

    /// Next-hop MTU of a message with code [`unreachable::NEED_FRAGMENT`] (RFC 1191 §4).
    #[inline]
    pub fn next_mtu(&self) -> u16 {
        self.rest.get() as u16
    }

    /// Gateway of a redirect.
    #[inline]
    pub fn gateway(&self) -> u32 {
        self.rest.get()
    }
}

/// The second word of an echo message.
#[inline]
pub const fn echo_word(id: u16, sequence: u16) -> u32 {
    (id as u32) << 16 | sequence as u32
}

/// The second word of a parameter problem.
#[inline]
pub const fn pointer_word(pointer: u8) -> u32 {
    (pointer as u32) << 24
}

/// Whether messages of type `kind` are errors. No ICMP error is sent in response to an ICMP error (RFC 1812 §4.3.2.7).
#[inline]
pub const fn is_error(kind: u8) -> bool {
    matches!(
        kind,
        kind::UNREACHABLE
            | kind::SOURCE_QUENCH
            | kind::REDIRECT
            | kind::TIME_EXCEEDED
            | kind::PARAMETER_PROBLEM
    )
}

/// Sets the checksum of a whole message. A message too short for a header is left unchanged.
#[inline]
pub fn set_checksum(message: &mut [u8]) {
    if let Some(header) = IcmpHeader::from_prefix_mut(message) {
        header.checksum.set(0);
        let checksum = checksum::checksum(message);
        if let Some(header) = IcmpHeader::from_prefix_mut(message) {
            header.checksum.set(checksum);
        }
    }
}

/// Corrects a checksum that an incremental update has set to 0. If all other bytes of the message are 0, the
/// right checksum is 0xffff, but the update of RFC 1624 cannot distinguish 0xffff from 0. Only ICMP needs
/// this correction, because the sum of every other header includes a byte that is not 0.
#[inline]
pub fn settle_checksum(message: &mut [u8]) {
    let Some(header) = IcmpHeader::from_prefix_mut(message) else { return };
    if header.checksum.get() == 0 {
        settle_zero(message);
    }
}

#[cold]
fn settle_zero(message: &mut [u8]) {
    if message.iter().all(|b| *b == 0)
        && let Some(header) = IcmpHeader::from_prefix_mut(message)
    {
        header.checksum.set(0xffff);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use etherparse::{Icmpv4Slice, Icmpv4Type};

    use super::*;

    #[test]
    fn echo_agrees_with_etherparse() {
        let mut message =
            [IcmpHeader::new(kind::ECHO, 0, echo_word(0x1234, 0xfffe)).to_bytes().to_vec(), vec![7; 5]]
                .concat();
        set_checksum(&mut message);
        let theirs = Icmpv4Slice::from_slice(&message).unwrap();
        let ours = IcmpHeader::from_prefix(&message).unwrap();
        let Icmpv4Type::EchoRequest(echo) = theirs.icmp_type() else { panic!("{:?}", theirs.icmp_type()) };
        assert_eq!((ours.id(), ours.sequence()), (echo.id, echo.seq));
        assert_eq!(ours.checksum.get(), theirs.icmp_type().calc_checksum(theirs.payload()));
        assert_eq!(checksum::sum(&message), 0xffff);
    }

    #[test]
    fn second_words() {
        assert_eq!(IcmpHeader::new(12, 0, pointer_word(33)).pointer(), 33);
        assert_eq!(IcmpHeader::new(3, 4, 1500).next_mtu(), 1500);
        assert_eq!(IcmpHeader::new(5, 1, 0x0a00_0001).gateway(), 0x0a00_0001);
    }

    #[test]
    fn errors_are_the_five() {
        assert_eq!((0..=255).filter(|&k| is_error(k)).collect::<Vec<_>>(), [3, 4, 5, 11, 12]);
    }

    #[test]
    fn short_messages_stay() {
        for len in 0..8 {
            let mut message = vec![0xff; len];
            set_checksum(&mut message);
            assert!(message.iter().all(|&b| b == 0xff) && IcmpHeader::from_prefix(&message).is_none());
        }
    }
}
