// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected packets with unknown parts, and access to the fields of received packets.
use std::net::Ipv4Addr;

use etherparse::Ipv4HeaderSlice;

use crate::trace::checksum;

/// The number of milliseconds in a day, the limit of a timestamp option.
const DAY_MS: u32 = 86_400_000;

/// An expected IPv4 packet. All its bytes are known, except for the values of timestamps and the header checksum.
/// The checksum must be correct; if it is zero, both representations (0 and 0xffff) are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Masked {
    pub(super) bytes: Vec<u8>,
    /// The offsets of four-byte timestamps that the router filled in.
    pub(super) stamps: Vec<usize>,
}

impl Masked {
    pub(super) fn new(bytes: Vec<u8>) -> Masked {
        Masked { bytes, stamps: Vec::new() }
    }

    /// Describes how a packet differs from the expected one.
    pub(super) fn fault(&self, actual: &[u8]) -> Option<String> {
        if actual.len() != self.bytes.len() {
            return Some(format!("{} bytes instead of {}", actual.len(), self.bytes.len()));
        }
        let stamp = |at: usize| self.stamps.iter().any(|start| (*start..start + 4).contains(&at));
        let differs =
            |at: &usize| !(10..12).contains(at) && !stamp(*at) && actual.get(*at) != self.bytes.get(*at);
        if let Some(at) = (0..actual.len()).find(differs) {
            return Some(format!("byte {at} is {:#04x} instead of {:#04x}", actual[at], self.bytes[at]));
        }
        for at in &self.stamps {
            let word = actual.get(*at..).and_then(|tail| tail.first_chunk()).copied().unwrap_or([0xff; 4]);
            if u32::from_be_bytes(word) >= DAY_MS {
                return Some(format!("the timestamp at byte {at} is no time of day"));
            }
        }
        header_fault(actual)
    }

    /// Returns the first `length` bytes.
    pub(super) fn cut(&self, length: usize) -> Masked {
        Masked { bytes: self.bytes[..length.min(self.bytes.len())].to_vec(), stamps: self.stamps.clone() }
    }
}

/// Describes what etherparse finds wrong with a header.
pub(super) fn header_fault(packet: &[u8]) -> Option<String> {
    match Ipv4HeaderSlice::from_slice(packet) {
        Err(error) => Some(error.to_string()),
        Ok(slice) if checksum(&[slice.slice()]) != 0 => Some("wrong header checksum".to_owned()),
        Ok(_) => None,
    }
}

/// The fields of an IPv4 packet with a complete header.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) packet: &'a [u8],
    pub(super) header_len: usize,
}

impl<'a> Fields<'a> {
    /// Accepts a packet of at least 20 bytes whose header length is between 20 and the packet length.
    pub(super) fn of(packet: &'a [u8]) -> Option<Fields<'a>> {
        let header_len = usize::from(packet.first()? & 15) * 4;
        (header_len >= 20 && header_len <= packet.len()).then_some(Fields { packet, header_len })
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.packet[at], self.packet[at + 1]])
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        Ipv4Addr::new(self.packet[at], self.packet[at + 1], self.packet[at + 2], self.packet[at + 3])
    }

    pub(super) fn total_len(&self) -> usize {
        usize::from(self.word(2))
    }

    pub(super) fn id(&self) -> u16 {
        self.word(4)
    }

    pub(super) fn dont_fragment(&self) -> bool {
        self.word(6) & 0x4000 != 0
    }

    pub(super) fn more_fragments(&self) -> bool {
        self.word(6) & 0x2000 != 0
    }

    /// The fragment offset in bytes.
    pub(super) fn fragment_offset(&self) -> usize {
        usize::from(self.word(6) & 0x1fff) * 8
    }

    pub(super) fn ttl(&self) -> u8 {
        self.packet[8]
    }

    pub(super) fn protocol(&self) -> u8 {
        self.packet[9]
    }

    pub(super) fn src(&self) -> Ipv4Addr {
        self.address(12)
    }

    pub(super) fn dst(&self) -> Ipv4Addr {
        self.address(16)
    }

    pub(super) fn options(&self) -> &'a [u8] {
        &self.packet[20..self.header_len]
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        &self.packet[self.header_len..]
    }

    /// Whether this is an ICMP error message (RFC 1122, 3.2.2), as far as the packet shows.
    pub(super) fn is_icmp_error(&self) -> bool {
        self.protocol() == 1
            && self.fragment_offset() == 0
            && matches!(self.payload().first(), Some(3 | 4 | 5 | 11 | 12))
    }
}
