// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet annotations: their names and offsets in the 48 bytes that every packet carries.

use crate::value::ValueError;

/// How many bytes of annotations a packet has.
pub const SIZE: usize = 48;

/// A named annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The name in configurations.
    pub name: &'static str,
    /// The offset of the first byte of the annotation.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
    /// The purpose of the annotation, in one line.
    pub doc: &'static str,
}

macro_rules! annotations {
    ($($name:ident $offset:literal $size:literal $doc:literal,)+) => {
        $(#[doc = $doc] pub const $name: usize = $offset;)+
        /// Every named annotation.
        pub const ALL: &[Annotation] = &[$(Annotation { name: stringify!($name), offset: $offset, size: $size, doc: $doc },)+];
    };
}

annotations! {
    DST_IP 0 4 "IPv4 destination or next hop, network byte order",
    DST_IP6 0 16 "IPv6 destination or next hop",
    PAINT 16 1 "paint colour",
    ICMP_PARAMPROB 17 1 "byte of the IP header that an ICMP parameter problem points at",
    FIX_IP_SRC 19 1 "whether FixIPSrc is to set the source address",
    AGGREGATE 20 4 "aggregate number",
    FWD_RATE 20 4 "forward rate",
    MISC_IP 20 4 "spare IPv4 address",
    VLAN 20 2 "VLAN tag control information, network byte order",
    VLAN_TCI 20 2 "VLAN tag control information, network byte order",
    EXTRA_PACKETS 24 4 "further packets that this one stands for",
    REV_RATE 24 4 "reverse rate",
    EXTRA_LENGTH 28 4 "bytes that were not captured",
    FIRST_TIMESTAMP 32 8 "time of the first packet of an aggregate",
    IPSEC_SPI 32 4 "IPsec SPI",
    PACKET_NUMBER 32 4 "packet number",
    SEQUENCE_NUMBER 36 4 "sequence number",
    PERFCTR 40 8 "performance counter",
}

/// Returns the byte offset of an annotation of `size` bytes. `text` is the name or the offset.
pub fn find(text: &str, size: usize) -> Result<usize, ValueError> {
    if let Ok(offset) = text.parse::<usize>() {
        return match offset.checked_add(size) {
            Some(end) if end <= SIZE => Ok(offset),
            _ => Err(format!("annotation offset {offset} leaves no room for {size} bytes of {SIZE}").into()),
        };
    }
    match ALL.iter().find(|a| a.name == text) {
        Some(a) if a.size == size => Ok(a.offset),
        Some(a) => Err(format!("annotation '{}' has {} bytes, {size} wanted", a.name, a.size).into()),
        None => Err(format!("no annotation named '{text}'").into()),
    }
}

macro_rules! anno_type {
    ($name:ident, $size:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub usize);
    };
}
anno_type!(Anno1, 1, "The offset of an annotation of one byte.");
anno_type!(Anno2, 2, "The offset of an annotation of two bytes.");
anno_type!(Anno4, 4, "The offset of an annotation of four bytes.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_offset() {
        assert_eq!(find("PAINT", 1), Ok(16));
        assert_eq!(find("DST_IP", 4), Ok(0));
        assert_eq!(find("44", 4), Ok(44));
        assert!(find("45", 4).is_err());
        assert!(find("PAINT", 4).is_err());
        assert!(find("NOPE", 1).is_err());
        assert!(find("18446744073709551615", 1).is_err());
        assert!(ALL.iter().all(|a| a.offset + a.size <= SIZE));
    }
}
