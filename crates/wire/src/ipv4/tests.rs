// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the IPv4 header with etherparse and smoltcp, on random and truncated bytes.
#![allow(clippy::unwrap_used)]

use etherparse::Ipv4HeaderSlice;
use proptest::prelude::*;
use smoltcp::wire::Ipv4Packet;

use super::*;

/// The tests of RFC 1812 §5.2.2 in order, on plain bytes.
fn slow_check(bytes: &[u8]) -> Option<Ipv4Error> {
    if bytes.len() < 20 {
        return Some(Ipv4Error::Tiny);
    }
    if bytes[0] >> 4 != 4 {
        return Some(Ipv4Error::Version);
    }
    let header_len = usize::from(bytes[0] & 15) * 4;
    if header_len < 20 || header_len > bytes.len() {
        return Some(Ipv4Error::HeaderLen);
    }
    let total_len = usize::from(bytes[2]) * 256 + usize::from(bytes[3]);
    if total_len < header_len || total_len > bytes.len() {
        return Some(Ipv4Error::TotalLen);
    }
    let good = Ipv4Packet::new_unchecked(bytes).verify_checksum();
    (!good).then_some(Ipv4Error::Checksum)
}

fn packets() -> impl Strategy<Value = Vec<u8>> {
    // Version, lengths and checksum are set to correct values with some probability, so that many packets are
    // almost valid.
    let bytes = proptest::collection::vec(any::<u8>(), 0..100);
    (bytes, 0..16_u8, any::<[bool; 3]>(), 0..110_u16).prop_map(
        |(mut bytes, words, [version, len, check], total)| {
            if version && let Some(byte) = bytes.first_mut() {
                *byte = 0x40 | if words < 5 { 5 } else { words };
            }
            if len && bytes.len() >= 4 {
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
            }
            if check && let Some(header) = whole_header(&bytes) {
                let checksum = checksum::ipv4_header_checksum(header);
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(crate::cases(2000))]

    #[test]
    fn checks_agree_with_the_slow_ones(bytes in packets()) {
        let want = slow_check(&bytes);
        prop_assert_eq!(Ipv4Header::checked(&bytes, true).err(), want);
        prop_assert_eq!(Ipv4Header::checked(&bytes, false).err(), want.filter(|&e| e != Ipv4Error::Checksum));
    }

    #[test]
    fn fields_agree_with_etherparse(bytes in packets()) {
        // Without a header there is nothing to compare.
        let Ok(theirs) = Ipv4HeaderSlice::from_slice(&bytes) else { return Ok(()) };
        let ours = Ipv4Header::from_prefix(&bytes).unwrap();
        prop_assert_eq!(ours.version(), theirs.version());
        prop_assert_eq!(ours.header_len(), theirs.slice().len());
        prop_assert_eq!((ours.dscp(), ours.ecn()), (theirs.dcp().value(), theirs.ecn().value()));
        prop_assert_eq!(ours.total_len.get(), theirs.total_len());
        prop_assert_eq!(ours.payload_len(), theirs.payload_len().map_or(0, usize::from));
        prop_assert_eq!(ours.id.get(), theirs.identification());
        prop_assert_eq!((ours.dont_fragment(), ours.more_fragments()), (theirs.dont_fragment(), theirs.more_fragments()));
        prop_assert_eq!(ours.fragment_offset(), theirs.fragments_offset().value() * 8);
        prop_assert_eq!(ours.is_fragment(), theirs.is_fragmenting_payload());
        prop_assert_eq!(ours.is_first_fragment(), theirs.fragments_offset().value() == 0);
        prop_assert_eq!((ours.ttl, ours.protocol), (theirs.ttl(), theirs.protocol().0));
        prop_assert_eq!(ours.checksum.get(), theirs.header_checksum());
        prop_assert_eq!(ours.src.get(), u32::from(theirs.source_addr()));
        prop_assert_eq!(ours.dst.get(), u32::from(theirs.destination_addr()));
        prop_assert_eq!(whole_header(&bytes), Some(theirs.slice()));
        prop_assert_eq!(options(&bytes).count(), Options::new(theirs.options()).count());
    }

    #[test]
    fn rewriting_keeps_the_checksum_right(fields in any::<(u8, u32, u32, u16, u8)>(), new in any::<(u32, u32, u8)>()) {
        let mut header = Ipv4Header::new(fields.0, fields.1, fields.2, fields.3, fields.4);
        prop_assert!(header.checksum20_ok());
        header.rewrite_src(new.0);
        header.rewrite_dst(new.1);
        header.rewrite_tos(new.2);
        header.decrement_ttl();
        prop_assert!(header.checksum20_ok());
        prop_assert_eq!(header.ttl, fields.4.saturating_sub(1));
        prop_assert_eq!((header.src.get(), header.dst.get(), header.tos), new);
        let mut fresh = header;
        fresh.set_checksum20();
        prop_assert_eq!(Ipv4Header { checksum: Be16::new(1), ..header }.with_checksum20(), header);
        prop_assert_eq!(fresh, header);
    }
}

#[test]
fn fragment_words() {
    let mut header = Ipv4Header::new(17, 1, 2, 40, 64);
    for (offset, more, dont, word) in
        [(0, false, false, 0), (8, true, false, 0x2001), (65528, false, true, 0x5fff), (15, false, false, 1)]
    {
        header.set_fragment(offset, more, dont);
        assert_eq!(header.fragment.get(), word);
        assert_eq!(header.fragment_offset(), offset & !7);
        assert_eq!((header.more_fragments(), header.dont_fragment()), (more, dont));
    }
}

#[test]
fn header_lengths() {
    let mut header = Ipv4Header::new(17, 1, 2, 40, 64);
    for (len, want) in [(20, 20), (21, 24), (60, 60), (61, 60), (usize::MAX, 60), (0, 0)] {
        header.set_header_len(len);
        assert_eq!((header.version(), header.header_len()), (4, want));
    }
    header.set_header_len(60);
    assert_eq!(header.payload_len(), 0);
}

#[test]
fn options_of_cut_headers_are_none() {
    let mut bytes = Ipv4Header::new(1, 1, 2, 24, 9).to_bytes().to_vec();
    bytes[0] = 0x46;
    bytes.extend([1, 1, 1, 1]);
    assert_eq!(options(&bytes).count(), 4);
    assert_eq!(options(&bytes[..23]).count(), 0);
    assert_eq!(options(&bytes[..3]).count(), 0);
    bytes[0] = 0x44;
    assert_eq!(options(&bytes).count(), 0);
}

#[test]
fn multicast_addresses() {
    assert!(is_multicast(0xe000_0001) && is_multicast(0xefff_ffff));
    assert!(!is_multicast(0xdfff_ffff) && !is_multicast(0xf000_0000) && !is_multicast(0));
}
