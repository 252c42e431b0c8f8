// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares checksums with a word-by-word sum, with smoltcp, and with the examples in the RFCs.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use smoltcp::wire::Ipv4Packet;

use super::*;

/// The algorithm of RFC 1071: 16 bits at a time.
fn slow_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// xorshift64*: random bytes from a seed.
fn random_bytes(len: usize, mut seed: u64) -> Vec<u8> {
    (0..len)
        .map(|_| {
            seed ^= seed >> 12;
            seed ^= seed << 25;
            seed ^= seed >> 27;
            (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        })
        .collect()
}

#[test]
fn rfc_1071_section_3_example() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&bytes), 0xddf2);
    assert_eq!(checksum(&bytes), 0x220d);
    // The same message in two parts, the second of which starts at an odd offset (RFC 1071 §2(B), byte swapping).
    assert_eq!(combine(sum(&bytes[..3]), sum(&bytes[3..]), 3), 0xddf2);
}

#[test]
fn rfc_1624_section_4_examples() {
    // The header word 0x5555 becomes 0x3285; the checksum was 0xdd2f. Equation 2 would give 0xffff.
    assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0x0000);
    assert_eq!(update32(0xdd2f, 0x5555, 0x3285), 0x0000);
    assert_eq!(update32(0xdd2f, 0x5555_0000, 0x3285_0000), 0x0000);
}

#[test]
fn all_lengths_and_offsets() {
    let bytes = random_bytes(300, 1);
    for start in 0..9 {
        for end in start..bytes.len() {
            assert_eq!(sum(&bytes[start..end]), slow_sum(&bytes[start..end]), "{start}..{end}");
        }
    }
    let long = random_bytes(200_001, 2);
    assert_eq!(sum(&long), slow_sum(&long));
    assert_eq!(sum(&vec![0xff; 65535]), slow_sum(&vec![0xff; 65535]));
    assert_eq!((sum(&[]), sum(&[0; 64]), sum(&[0xff; 64])), (0, 0, 0xffff));
}

#[test]
fn copies_have_the_sum_of_what_was_copied() {
    let bytes = random_bytes(300, 3);
    for length in 0..bytes.len() {
        let mut to = vec![0; length + 5];
        assert_eq!(copy(&mut to, &bytes[..length]), slow_sum(&bytes[..length]), "{length}");
        assert_eq!((&to[..length], &to[length..]), (&bytes[..length], &[0; 5][..]));
        // The destination may be shorter as well.
        let mut to = vec![0; length];
        assert_eq!(copy(&mut to, &bytes), slow_sum(&bytes[..length]), "{length}");
        assert_eq!(to, &bytes[..length]);
    }
}

#[test]
fn ttl_decrement_is_update16_for_every_word() {
    let decrement = |check: u16| {
        let mut field = Be16::new(check);
        update_ttl_decrement_field(&mut field);
        field.get()
    };
    for word in 0x0100..=u16::MAX {
        for check in [0, 1, 0xfeff, 0xff00, 0xfffe, 0xffff, word, !word] {
            assert_eq!(decrement(check), update16(check, word, word - 0x100));
        }
    }
    for check in 0..=u16::MAX {
        assert_eq!(decrement(check), update16(check, 0x4011, 0x3f11));
    }
}

proptest! {
    #![proptest_config(crate::cases(500))]

    #[test]
    fn headers_agree_with_smoltcp(mut bytes in proptest::collection::vec(any::<u8>(), 60), words in 5..16_usize) {
        bytes[0] = 0x40 | words as u8;
        bytes[2..4].copy_from_slice(&60_u16.to_be_bytes());
        let header = &mut bytes[..];
        let ok = |header: &[u8]| <&[u8; 20]>::try_from(header).map_or(sum(header) == 0xffff, ipv4_header20_ok);
        let theirs = Ipv4Packet::new_unchecked(&header[..]);
        prop_assert_eq!(ok(&header[..words * 4]), theirs.verify_checksum());
        let ours = ipv4_header_checksum(&header[..words * 4]);
        Ipv4Packet::new_unchecked(&mut header[..]).fill_checksum();
        prop_assert_eq!(Ipv4Packet::new_unchecked(&header[..]).checksum(), ours);
        prop_assert!(ok(&header[..words * 4]));
        // One flipped bit is always detected.
        header[words * 4 - 1] ^= 0x10;
        prop_assert!(!ok(&header[..words * 4]));
    }

    #[test]
    fn updates_equal_sums_from_scratch(bytes in proptest::collection::vec(any::<u8>(), 4..64), place in 0..30_usize, new in any::<u32>()) {
        let mut after = bytes.clone();
        let even = (place * 2 % (bytes.len() - 3)) & !1;
        let old32 = u32::from_be_bytes(bytes[even..even + 4].try_into().unwrap());
        after[even..even + 4].copy_from_slice(&new.to_be_bytes());
        // 0 and 0xffff are the same number in one's complement. Only an all-zero message has the sum 0.
        prop_assume!(after.iter().any(|&b| b != 0) && bytes.iter().any(|&b| b != 0));
        prop_assert_eq!(update32(checksum(&bytes), old32, new), checksum(&after));
        let (old16, new16) = ((old32 >> 16) as u16, (new >> 16) as u16);
        let mut after = bytes.clone();
        after[even..even + 2].copy_from_slice(&new16.to_be_bytes());
        prop_assume!(after.iter().any(|&b| b != 0));
        prop_assert_eq!(update16(checksum(&bytes), old16, new16), checksum(&after));
    }

    #[test]
    fn transport_sums_agree_with_smoltcp(src in any::<u32>(), dst in any::<u32>(), segment in proptest::collection::vec(any::<u8>(), 8..100)) {
        use smoltcp::wire::{IpProtocol, UdpPacket};
        let mut segment = segment;
        let len = segment.len() as u16;
        segment[4..6].copy_from_slice(&len.to_be_bytes());
        segment[6..8].fill(0);
        let ours = transport_checksum(src, dst, 17, &segment).unwrap();
        let (a, b) = (std::net::Ipv4Addr::from(src).into(), std::net::Ipv4Addr::from(dst).into());
        UdpPacket::new_unchecked(&mut segment[..]).fill_checksum(&a, &b);
        prop_assert_eq!(UdpPacket::new_unchecked(&segment[..]).checksum(), ours);
        prop_assert!(transport_ok(src, dst, IpProtocol::Udp.into(), &segment));
    }
}
