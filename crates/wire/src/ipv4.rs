// SPDX-License-Identifier: MIT OR Apache-2.0
//! The IPv4 header (RFC 791 §3.1).

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::options::Options;
use crate::{Be16, Be32, checksum};

/// Values of the protocol field.
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// IGMP (RFC 1112).
    pub const IGMP: u8 = 2;
    /// IP in IP (RFC 2003).
    pub const IPIP: u8 = 4;
    /// TCP (RFC 793).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// DCCP (RFC 4340).
    pub const DCCP: u8 = 33;
    /// GRE (RFC 2784).
    pub const GRE: u8 = 47;
    /// SCTP (RFC 9260).
    pub const SCTP: u8 = 132;
    /// UDP-Lite (RFC 3828).
    pub const UDP_LITE: u8 = 136;
}

/// The "don't fragment" flag of the fragment word.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The "more fragments" flag of the fragment word.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// Mask of the fragment offset in the fragment word. The offset is in units of 8 bytes.
pub const OFFSET_MASK: u16 = 0x1fff;
/// Length of the longest header in bytes, options included.
pub const MAX_HEADER_LEN: usize = 60;

/// The first 20 bytes of an IPv4 header; options follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version (4 bits) and header length in 32-bit words (4 bits).
    pub version_ihl: u8,
    /// Type of service: DSCP (6 bits) and ECN (2 bits).
    pub tos: u8,
    /// Length of header and data in bytes.
    pub total_len: Be16,
    /// Identification for reassembly.
    pub id: Be16,
    /// Flags (3 bits) and fragment offset (13 bits).
    pub fragment: Be16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload, see [`protocol`].
    pub protocol: u8,
    /// Checksum of the header.
    pub checksum: Be16,
    /// Source address.
    pub src: Be32,
    /// Destination address.
    pub dst: Be32,
}
crate::views!(Ipv4Header, 20);

/// The reason an IPv4 header is invalid (RFC 1812 §5.2.2). The variants are in the order in which
/// [`Ipv4Header::checked`] makes the tests: the checksum is tested last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ipv4Error {
    /// Fewer than 20 bytes.
    Tiny,
    /// The version is not 4.
    Version,
    /// The header length is less than 20 bytes, or more than the available bytes.
    HeaderLen,
    /// The total length is less than the header length, or more than the available bytes.
    TotalLen,
    /// The checksum is wrong.
    Checksum,
}

impl fmt::Display for Ipv4Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tiny => "tiny packet",
            Self::Version => "bad IP version",
            Self::HeaderLen => "bad IP header length",
            Self::TotalLen => "bad IP length",
            Self::Checksum => "bad IP checksum",
        })
    }
}

impl std::error::Error for Ipv4Error {}

impl Ipv4Header {
    /// Creates a header without options, with a correct checksum. Fields that are not given are zero.
    #[inline]
    pub fn new(protocol: u8, src: u32, dst: u32, total_len: u16, ttl: u8) -> Self {
        let mut header = Self {
            version_ihl: 0x45,
            tos: 0,
            total_len: Be16::new(total_len),
            id: Be16::new(0),
            fragment: Be16::new(0),
            ttl,
            protocol,
            checksum: Be16::new(0),
            src: Be32::new(src),
            dst: Be32::new(dst),
        };
        header.set_checksum20();
        header
    }

    /// The version; 4 in a valid header.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// The header length in bytes, options included, from the header's own field: 0 to 60, at least 20 in a
    /// valid header.
    #[inline]
    pub const fn header_len(&self) -> usize {
        ((self.version_ihl & 15) as usize) << 2
    }

    /// Sets version 4 and the header length. The length is rounded up to a multiple of 4 and limited to 60.
    #[inline]
    pub const fn set_header_len(&mut self, len: usize) {
        let words = if len > MAX_HEADER_LEN { 15 } else { len.div_ceil(4) };
        self.version_ihl = 0x40 | words as u8;
    }

    /// The differentiated services code point (RFC 2474).
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// The congestion notification bits (RFC 3168).
    #[inline]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }

    /// The payload length in bytes: total length minus header length; 0 if the total length is less than the header
    /// length.
    #[inline]
    pub fn payload_len(&self) -> usize {
        usize::from(self.total_len.get()).saturating_sub(self.header_len())
    }

    /// The offset of this fragment's data in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> u16 {
        // 13 bits times 8 fit into 16 bits.
        (self.fragment.get() & OFFSET_MASK) << 3
    }

    /// Whether more fragments follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.fragment.get() & MORE_FRAGMENTS != 0
    }

    /// Whether routers must not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment.get() & DONT_FRAGMENT != 0
    }

    /// Whether this is a fragment: it has an offset, or more fragments follow.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment.get() & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }

    /// Whether the data starts with the transport header: the packet is not a fragment, or is the first
    /// fragment.
    #[inline]
    pub fn is_first_fragment(&self) -> bool {
        self.fragment.get() & OFFSET_MASK == 0
    }

    /// Sets the fragment word from flags and an offset in bytes, whose low 3 bits are ignored.
    #[inline]
    pub fn set_fragment(&mut self, offset: u16, more: bool, dont: bool) {
        let flags = if more { MORE_FRAGMENTS } else { 0 } | if dont { DONT_FRAGMENT } else { 0 };
        self.fragment.set(offset >> 3 | flags);
    }

    /// Sets the checksum of a header without options.
    #[inline]
    pub fn set_checksum20(&mut self) {
        self.checksum.set(checksum::ipv4_header20_checksum(self.as_array()));
    }

    /// The header, which has no options, with its checksum. This reads fields and not bytes, so a header that is being made need
    /// not be in memory yet.
    #[inline]
    pub fn with_checksum20(mut self) -> Self {
        let pair = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let words = [
            pair(self.version_ihl, self.tos),
            u32::from(self.total_len.get()),
            u32::from(self.id.get()),
            u32::from(self.fragment.get()),
            pair(self.ttl, self.protocol),
            self.src.get(),
            self.dst.get(),
        ];
        self.checksum = Be16::new(!checksum::sum_of(words));
        self
    }

    /// Whether the checksum of a header without options is correct.
    #[inline]
    pub fn checksum20_ok(&self) -> bool {
        checksum::ipv4_header20_ok(self.as_array())
    }

    /// Decrements the time to live and updates the checksum. A time to live of 0 is left unchanged.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        if self.ttl > 0 {
            self.ttl -= 1;
            checksum::update_ttl_decrement_field(&mut self.checksum);
        }
    }

    /// Sets the source address and updates the header checksum.
    #[inline]
    pub fn rewrite_src(&mut self, src: u32) {
        checksum::update_field32(&mut self.checksum, self.src.get(), src);
        self.src.set(src);
    }

    /// Sets the destination address and updates the header checksum.
    #[inline]
    pub fn rewrite_dst(&mut self, dst: u32) {
        checksum::update_field32(&mut self.checksum, self.dst.get(), dst);
        self.dst.set(dst);
    }

    /// Sets the type of service and updates the header checksum.
    #[inline]
    pub fn rewrite_tos(&mut self, tos: u8) {
        let first = u16::from(self.version_ihl) << 8;
        checksum::update_field16(&mut self.checksum, first | u16::from(self.tos), first | u16::from(tos));
        self.tos = tos;
    }

    /// The header at the start of `bytes`, if it passes all tests of RFC 1812 §5.2.2. The checksum is tested
    /// only if `with_checksum` is set. `bytes` may be longer than the packet. The tests are made in the order
    /// of [`Ipv4Error`].
    #[inline]
    pub fn checked(bytes: &[u8], with_checksum: bool) -> Result<&Self, Ipv4Error> {
        let header = Self::from_prefix(bytes).ok_or(Ipv4Error::Tiny)?;
        let total_len = usize::from(header.total_len.get());
        // Fast path for nearly every packet: a single comparison checks for version 4 without options.
        if header.version_ihl == 0x45 {
            return if total_len < Self::LEN || total_len > bytes.len() {
                Err(Ipv4Error::TotalLen)
            } else if with_checksum && !header.checksum20_ok() {
                Err(Ipv4Error::Checksum)
            } else {
                Ok(header)
            };
        }
        if header.version() != 4 {
            return Err(Ipv4Error::Version);
        }
        let header_len = header.header_len();
        let whole = bytes.get(..header_len).filter(|whole| whole.len() >= Self::LEN);
        let whole = whole.ok_or(Ipv4Error::HeaderLen)?;
        if total_len < header_len || total_len > bytes.len() {
            return Err(Ipv4Error::TotalLen);
        }
        if with_checksum && checksum::sum(whole) != 0xffff {
            return Err(Ipv4Error::Checksum);
        }
        Ok(header)
    }
}

/// The header at the start of `bytes` with its options. `None` if the header is truncated or its length is
/// invalid.
#[inline]
pub fn whole_header(bytes: &[u8]) -> Option<&[u8]> {
    let header = Ipv4Header::from_prefix(bytes)?;
    bytes.get(..header.header_len()).filter(|whole| whole.len() >= Ipv4Header::LEN)
}

/// The options of the header at the start of `bytes`. Empty if the header is truncated or its length is
/// invalid.
#[inline]
pub fn options(bytes: &[u8]) -> Options<'_> {
    Options::new(whole_header(bytes).and_then(|whole| whole.get(Ipv4Header::LEN..)).unwrap_or_default())
}

/// Whether an address is a multicast address (RFC 1112 §4).
#[inline]
pub const fn is_multicast(addr: u32) -> bool {
    addr >> 28 == 0xe
}

#[cfg(test)]
mod tests;
