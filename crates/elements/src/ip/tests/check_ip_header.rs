// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of CheckIPHeader.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_element::random::Random;

fn ip(src: [u8; 4], dst: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut h = etherparse::Ipv4Header::new(8, 64, etherparse::IpNumber::UDP, src, dst).unwrap();
    h.options = options.try_into().unwrap();
    h.total_len = u16::try_from(h.header_len() + 8).unwrap();
    h.header_checksum = h.calc_header_checksum();
    let mut data = h.to_bytes().to_vec();
    data.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    data
}

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];

#[test]
fn what_is_wrong_in_order() {
    let good = || ip(A, B, &[]);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut d = good();
        change(&mut d);
        d
    };
    let sum = |d: &mut Vec<u8>| {
        let c = checksum::ipv4_header20_checksum(d.first_chunk().unwrap());
        d[10..12].copy_from_slice(&c.to_be_bytes());
    };
    let table: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "tiny packet"),
        (good()[..19].to_vec(), "tiny packet"),
        (with(&|d| d[0] = 0x65), "bad IP version"),
        (with(&|d| d[0] = 0x44), "bad IP header length"),
        (with(&|d| d[0] = 0x4f), "bad IP header length"),
        (with(&|d| d[3] = 19), "bad IP length"),
        (with(&|d| d[3] = 29), "bad IP length"),
        (good()[..27].to_vec(), "bad IP length"),
        (with(&|d| d[8] = 1), "bad IP checksum"),
        (
            with(&|d| {
                d[12..16].copy_from_slice(&[9, 9, 9, 9]);
                sum(d)
            }),
            "bad source address",
        ),
        (
            with(&|d| {
                d[12..16].copy_from_slice(&[255; 4]);
                sum(d)
            }),
            "bad source address",
        ),
        (
            with(&|d| {
                d[12..16].copy_from_slice(&[2, 255, 255, 255]);
                sum(d)
            }),
            "bad source address",
        ),
    ];
    let config = "BADSRC 9.9.9.9, INTERFACES 2.0.0.9/8, VERBOSE true, DETAILS true";
    for outputs in [1, 2] {
        let mut kit = Kit::<CheckIpHeader>::with_ports(config, 1, outputs).unwrap();
        for (data, text) in &table {
            let out = kit.act([packet(data)]);
            assert_eq!(out.len(), outputs - 1, "{text}");
            if let Some((port, p)) = out.first() {
                assert_eq!((*port, p.data(), p.network_offset()), (1, &data[..], None), "{text}");
            }
            assert_eq!(kit.messages(), [format!("e: IP header check failed: {text}")]);
        }
        let details = "2\ttiny packet\n1\tbad IP version\n2\tbad IP header length\n3\tbad IP length\n\
            1\tbad IP checksum\n3\tbad source address\n";
        assert_eq!(kit.read("drop_details").unwrap(), details);
        assert_eq!(kit.read("drops").unwrap(), "12");
        assert_eq!(kit.all_dropped(), if outputs == 1 { 12 } else { 0 });
    }
}

#[test]
fn the_example() {
    let data =
        [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x77, 0xcf, 1, 0, 0, 1, 2, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0, 0];
    let mut kit = Kit::<CheckIpHeader>::with_ports("INTERFACES 1.0.0.9/8 2.0.0.9/8", 1, 2).unwrap();
    assert_eq!(kit.act([packet(&data)])[0].0, 0);
}

#[test]
fn good_packets_are_cut_and_marked() {
    let mut kit = Kit::<CheckIpHeader>::new("14").unwrap();
    for options in [&[][..], &[1, 1, 1, 0], &[7, 39, 4, 0, 0, 0, 0, 0], &[1; 40]] {
        for extra in [0, 1, 18] {
            let inner = ip(A, B, options);
            let mut data = vec![0xee; 14];
            data.extend(&inner);
            let length = data.len();
            data.resize(length + extra, 0xaa);
            let out = kit.act([packet(&data)]);
            let p = &out[0].1;
            assert_eq!((p.len(), p.network_offset(), p.dst_ip()), (length, Some(14), 0x02000002));
            assert_eq!(p.network_header_length(), 20 + options.len());
            assert_eq!(p.network().unwrap(), inner);
        }
    }
    assert!(kit.messages().is_empty());
}

#[test]
fn bad_sources_and_good_destinations() {
    // Columns, with INTERFACES set: a source; whether packets from it to another destination pass; whether
    // packets from it to the router's own address pass.
    for (src, alone, to_own) in [
        ([18, 26, 4, 255], false, true),
        ([0, 0, 0, 0], false, true),
        ([255, 255, 255, 255], false, true),
        ([18, 26, 7, 1], true, true),
        ([18, 26, 4, 9], true, true),
        ([224, 0, 0, 1], true, true),
        // A network with a prefix of 31 bits has no broadcast address.
        ([10, 0, 0, 1], true, true),
    ] {
        let config = "INTERFACES 18.26.4.9/24 18.26.7.1/24 10.0.0.0/31";
        let mut kit = Kit::<CheckIpHeader>::new(config).unwrap();
        assert_eq!(!kit.act([packet(&ip(src, B, &[]))]).is_empty(), alone, "{src:?}");
        assert_eq!(!kit.act([packet(&ip(src, [18, 26, 4, 9], &[]))]).is_empty(), to_own, "{src:?}");
    }
    let mut kit = Kit::<CheckIpHeader>::new("BADSRC 1.0.0.1 2.0.0.2, GOODDST 3.0.0.3").unwrap();
    for (src, dst, good) in [(A, B, false), (B, A, false), (A, [3, 0, 0, 3], true), ([1, 0, 0, 2], B, true)] {
        assert_eq!(!kit.act([packet(&ip(src, dst, &[]))]).is_empty(), good);
    }
    assert_eq!(kit.dropped(Reason::BadSource), 2);
}

#[test]
fn only_the_first_bad_packet_is_reported() {
    let mut kit = Kit::<CheckIpHeader>::new("").unwrap();
    kit.act((0..5).map(|_| packet(&[0x65; 30])));
    assert_eq!(kit.messages(), ["e: IP header check failed: bad IP version"]);
    assert!(kit.read("drop_details").is_err());
    assert_eq!(kit.element.effects(Effects::PRINTS), Effects::empty());
    let kit = Kit::<CheckIpHeader>::new("VERBOSE true").unwrap();
    assert_eq!(kit.element.effects(Effects::PRINTS), Effects::PRINTS);
}

#[test]
fn old_arguments() {
    let at = |offset: usize| {
        let mut d = vec![0x45; offset];
        d.extend(ip(A, B, &[]));
        d
    };
    for (config, offset, bad) in [
        ("1.0.0.1 9.9.9.9, 14", 14, true),
        ("1.0.0.1", 0, true),
        ("1.0.0.2, 14", 14, false),
        ("1.0.0.1, OFFSET 14", 14, true),
        ("OFFSET 3", 3, false),
        (", 14", 14, false),
    ] {
        let mut kit = Kit::<CheckIpHeader>::new(config).unwrap();
        assert_eq!(kit.act([packet(&at(offset))]).is_empty(), bad, "{config}");
    }
    for config in
        ["14, 14", "1.0.0.1, 14, 3", "1.0.0.1, 1.0.0.1", "hello", "-1", "BADSRC x", "INTERFACES 1.0.0.1"]
    {
        assert!(Kit::<CheckIpHeader>::new(config).is_err(), "{config}");
    }
}

#[test]
fn without_checksum() {
    let mut data = ip(A, B, &[]);
    data[10] ^= 1;
    let mut kit = Kit::<CheckIpHeader>::new("CHECKSUM false").unwrap();
    assert_eq!(kit.act([packet(&data)]).len(), 1);
    let mut kit = Kit::<CheckIpHeader>::new("").unwrap();
    assert!(kit.act([packet(&data)]).is_empty());
}

/// Returns whether a header passes all tests. Runs them one by one, without regard to speed.
fn passes(d: &[u8]) -> bool {
    let Ok((h, _)) = etherparse::Ipv4Header::from_slice(d) else { return false };
    let (total, len) = (usize::from(h.total_len), h.header_len());
    total >= len && total <= d.len() && h.calc_header_checksum() == h.header_checksum
}

#[test]
fn damaged_packets_as_the_tests_one_by_one_say() {
    let mut random = Random::new(7, "damage");
    for size in [1usize, 2, 3, 32] {
        let mut kit = Kit::<CheckIpHeader>::with_ports("", 1, 2).unwrap();
        let mut all = Vec::new();
        for _ in 0..600 {
            let mut d = ip(A, B, if random.below(3) == 0 { &[1, 1, 1, 0] } else { &[] });
            for _ in 0..random.below(3) {
                let (at, bit) = (random.below(20) as usize, random.below(8));
                d[at] ^= 1 << bit;
            }
            d.truncate(d.len().saturating_sub(random.below(2) as usize * random.below(30) as usize));
            all.push(d);
        }
        let mut got = [Vec::new(), Vec::new()];
        for some in all.chunks(size) {
            for (port, p) in kit.act(some.iter().map(|d| packet(d))) {
                got[port].push(p.data().to_vec());
            }
        }
        let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(|d| passes(d));
        assert_eq!((got[0].len(), got[1].len()), (good.len(), bad.len()));
        assert!(got[1] == bad && got[0].iter().zip(&good).all(|(g, w)| w.starts_with(g)));
    }
}
