// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bits of IP and transport headers, by name or by position.

use castanet_element::prelude::*;
use castanet_wire::ipv4::{OFFSET_MASK, protocol};
use std::fmt;

/// The header that holds a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The IP header.
    Ip,
    /// The header after the IP header, in packets of one of these protocols; an empty list stands for all
    /// protocols.
    Transport(&'static [u8]),
}

/// Some bits of a header, at most 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// The header that holds the field.
    pub layer: Layer,
    /// Number of bits of the header before the field.
    pub offset: usize,
    /// Number of bits of the field.
    pub bits: usize,
}

const TCP: Layer = Layer::Transport(&[protocol::TCP]);
const UDP: Layer = Layer::Transport(&[protocol::UDP]);
const ICMP: Layer = Layer::Transport(&[protocol::ICMP]);
const PORTS: Layer = Layer::Transport(&[protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE]);
const ANY: Layer = Layer::Transport(&[]);

/// Fields by name, each with its header, and its offset and length in bits (RFC 791 section 3.1, RFC 9293 section 3.1,
/// RFC 768, RFC 792).
const NAMES: &[(&str, Layer, usize, usize)] = &[
    ("ip vers", Layer::Ip, 0, 4),
    ("ip hl", Layer::Ip, 4, 4),
    ("ip tos", Layer::Ip, 8, 8),
    ("ip dscp", Layer::Ip, 8, 6),
    ("ip ecn", Layer::Ip, 14, 2),
    ("ip len", Layer::Ip, 16, 16),
    ("ip id", Layer::Ip, 32, 16),
    ("ip df", Layer::Ip, 49, 1),
    ("ip mf", Layer::Ip, 50, 1),
    ("ip off", Layer::Ip, 51, 13),
    ("ip ttl", Layer::Ip, 64, 8),
    ("ip proto", Layer::Ip, 72, 8),
    ("ip sum", Layer::Ip, 80, 16),
    ("ip src", Layer::Ip, 96, 32),
    ("ip dst", Layer::Ip, 128, 32),
    ("sport", PORTS, 0, 16),
    ("dport", PORTS, 16, 16),
    ("tcp sport", TCP, 0, 16),
    ("tcp dport", TCP, 16, 16),
    ("tcp seq", TCP, 32, 32),
    ("tcp ack", TCP, 64, 32),
    ("tcp off", TCP, 96, 4),
    ("tcp flags", TCP, 104, 8),
    ("tcp win", TCP, 112, 16),
    ("tcp sum", TCP, 128, 16),
    ("tcp urp", TCP, 144, 16),
    ("udp sport", UDP, 0, 16),
    ("udp dport", UDP, 16, 16),
    ("udp len", UDP, 32, 16),
    ("udp sum", UDP, 48, 16),
    ("icmp type", ICMP, 0, 8),
    ("icmp code", ICMP, 8, 8),
    ("icmp sum", ICMP, 16, 16),
];

/// Headers by name, for fields given by position.
const HEADERS: &[(&str, Layer)] =
    &[("ip", Layer::Ip), ("transp", ANY), ("tcp", TCP), ("udp", UDP), ("icmp", ICMP)];

/// Limit on positions in bits, greater than the length of any header.
const MOST_BITS: usize = 8 * 65_535;

impl HeaderField {
    /// Returns the field's value in a packet; `None` if the packet does not have the field.
    #[inline]
    pub fn of(&self, p: &Packet) -> Option<u32> {
        let ip = p.ip_header()?;
        let bytes = match self.layer {
            Layer::Ip => p.network()?,
            Layer::Transport(protocols) => {
                let later = u16::from_be_bytes([ip[6], ip[7]]) & OFFSET_MASK != 0;
                if later || !protocols.is_empty() && !protocols.contains(&ip[9]) {
                    return None;
                }
                p.transport()?
            }
        };
        // A field of up to 32 bits that begins within a byte spans at most five bytes.
        let end = (self.offset + self.bits).div_ceil(8);
        let value = bytes.get(self.offset / 8..end)?.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        let value = value >> (end * 8 - self.offset - self.bits);
        Some((value & (u64::MAX >> (64 - self.bits))) as u32)
    }
    /// Whether the field lies in the source or the destination address of the IP header.
    pub fn is_address(&self) -> bool {
        self.layer == Layer::Ip
            && self.offset >= 96
            && self.offset / 32 == (self.offset + self.bits - 1) / 32
            && self.offset < 160
    }
    /// Returns by how many bits the value of a field must be shifted to the left to get its position in the IP address.
    pub fn address_shift(&self) -> usize {
        (32 - self.offset % 32).saturating_sub(self.bits)
    }

    /// Parses `name`, `name/16` or `name/-16`.
    fn named(text: &str) -> Option<HeaderField> {
        let (name, length) = text.split_once('/').map_or((text, None), |(n, l)| (n, Some(l)));
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        let &(_, layer, offset, bits) = NAMES.iter().find(|n| n.0 == name)?;
        let Some(length) = length else { return Some(HeaderField { layer, offset, bits }) };
        let length: i32 = length.trim().parse().ok()?;
        let part = usize::try_from(length.unsigned_abs()).ok().filter(|n| (1..=bits).contains(n))?;
        let offset = if length < 0 { offset + bits - part } else { offset };
        Some(HeaderField { layer, offset, bits: part })
    }
    /// Parses `ip[8]`, `ip[2:2]` or `ip[0 bit 4:4]`.
    fn placed(text: &str) -> Option<HeaderField> {
        let (name, place) = text.trim().split_once('[')?;
        let layer = HEADERS.iter().find(|h| h.0 == name.trim())?.1;
        let place = place.strip_suffix(']')?;
        let number = |t: &str| t.trim().parse::<usize>().ok().filter(|n| *n <= MOST_BITS / 8);
        let (offset, bits) = match place.split_once("bit") {
            Some((byte, bits)) => {
                let (bit, length) = bits.split_once(':').unwrap_or((bits, "1"));
                (number(byte)? * 8 + number(bit)?, number(length)?)
            }
            None => {
                let (byte, length) = place.split_once(':').unwrap_or((place, "1"));
                (number(byte)? * 8, number(length)? * 8)
            }
        };
        let fits = (1..=32).contains(&bits) && offset + bits <= MOST_BITS;
        fits.then_some(HeaderField { layer, offset, bits })
    }
}

impl ArgValue for HeaderField {
    const TYPE: &'static str = "header field";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<HeaderField, ValueError> {
        let field = HeaderField::named(text).or_else(|| HeaderField::placed(text));
        Ok(field.ok_or_else(|| {
            format!(
                "'{text}' is not a header field; expected one such as 'ip dst/16', 'tcp dport' or 'ip[8:2]'"
            )
        })?)
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.offset + self.bits;
        let here = || NAMES.iter().filter(|n| n.1 == self.layer);
        if let Some((name, ..)) = here().find(|n| (n.2, n.3) == (self.offset, self.bits)) {
            return f.write_str(name);
        }
        // Only parts of long fields (16 bits or more) are shown as NAME/LENGTH: the first bits of a short field, such
        // as a version, mean nothing by themselves.
        let mut long = here().filter(|n| n.3 >= 16 && n.3 > self.bits);
        if let Some((name, _, offset, _)) = long.find(|n| n.2 == self.offset || n.2 + n.3 == end) {
            let from_end = if *offset == self.offset { "" } else { "-" };
            return write!(f, "{name}/{from_end}{}", self.bits);
        }
        let name = HEADERS.iter().find(|h| h.1 == self.layer).map_or("transp", |h| h.0);
        let (byte, bit) = (self.offset / 8, self.offset % 8);
        match (bit, self.bits) {
            (0, 8) => write!(f, "{name}[{byte}]"),
            (0, n) if n.is_multiple_of(8) => write!(f, "{name}[{byte}:{}]", n / 8),
            (_, n) => write!(f, "{name}[{byte} bit {bit}:{n}]"),
        }
    }
}
