// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPGWOptions.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_element::random::Random;

fn ip(options: &[u8]) -> Packet {
    let mut h = etherparse::Ipv4Header::new(4, 64, etherparse::IpNumber::UDP, [1; 4], [2; 4]).unwrap();
    h.options = options.try_into().unwrap();
    h.total_len = u16::try_from(h.header_len() + 4).unwrap();
    h.header_checksum = h.calc_header_checksum();
    let mut data = h.to_bytes().to_vec();
    data.extend([9; 4]);
    let mut p = packet(&data);
    p.set_network_header(0, 20 + options.len());
    p
}

const ME: &str = "10.0.0.1, 10.0.1.1 10.0.2.1";

// The time at the kit's start, in milliseconds since midnight UT. The kit starts 1000 s after the start of 1970.
const T: [u8; 4] = 1_000_000u32.to_be_bytes();

#[test]
fn options_are_filled_in() {
    let [t0, t1, t2, t3] = T;
    let table: &[(&[u8], &[u8])] = &[
        (&[1, 1, 1, 0], &[1, 1, 1, 0]),
        // Record route with space for two addresses, for one address, and for none.
        (&[7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[7, 11, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0]),
        (&[1, 7, 11, 8, 5, 5, 5, 5, 0, 0, 0, 0], &[1, 7, 11, 12, 5, 5, 5, 5, 10, 0, 0, 1]),
        (&[7, 7, 8, 5, 5, 5, 5, 0], &[7, 7, 8, 5, 5, 5, 5, 0]),
        (&[7, 3, 4, 0], &[7, 3, 4, 0]),
        // Bytes after the end of the list are ignored.
        (&[0, 7, 7, 4, 0, 0, 0, 0], &[0, 7, 7, 4, 0, 0, 0, 0]),
        // Source routes pass.
        (&[131, 7, 4, 5, 5, 5, 5, 0], &[131, 7, 4, 5, 5, 5, 5, 0]),
        // Timestamps alone, with addresses, and for given addresses.
        (&[68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[68, 12, 9, 0, t0, t1, t2, t3, 0, 0, 0, 0]),
        (&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0], &[68, 12, 13, 1, 10, 0, 0, 1, t0, t1, t2, t3]),
        (&[68, 12, 5, 3, 10, 0, 2, 1, 0, 0, 0, 0], &[68, 12, 13, 3, 10, 0, 2, 1, t0, t1, t2, t3]),
        (&[68, 12, 5, 3, 10, 0, 3, 1, 0, 0, 0, 0], &[68, 12, 5, 3, 10, 0, 3, 1, 0, 0, 0, 0]),
        // A full timestamp option: its overflow count is incremented.
        (&[68, 8, 9, 0x20, 1, 2, 3, 4], &[68, 8, 9, 0x30, 1, 2, 3, 4]),
    ];
    let mut kit = Kit::<IpGwOptions>::with_ports(ME, 1, 2).unwrap();
    for (before, after) in table {
        let out = kit.act([ip(before)]);
        let (port, p) = &out[0];
        assert_eq!((*port, &p.data()[20..20 + after.len()]), (0, *after), "{before:?}");
        let (h, rest) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
        assert_eq!(h.calc_header_checksum(), h.header_checksum, "{before:?}");
        assert_eq!(rest, [9; 4]);
    }
    assert_eq!(kit.read("drops").unwrap(), "0");
}

#[test]
fn malformed_options_leave_unchanged() {
    let table: &[(&[u8], u8)] = &[
        // Columns: the options, and the offset in the packet of the byte that is reported. The length is
        // missing, too small, or too large.
        (&[1, 1, 1, 7], 23),
        (&[7, 0, 4, 0], 21),
        (&[1, 7, 1, 4], 22),
        (&[7, 9, 4, 0, 0, 0, 0, 0], 21),
        // The pointer is missing, too small, or leaves no space for a whole address.
        (&[7, 2, 0, 0], 21),
        (&[7, 7, 3, 0, 0, 0, 0, 0], 22),
        (&[7, 7, 5, 0, 0, 0, 0, 0], 22),
        (&[68, 3, 5, 0], 21),
        (&[68, 8, 4, 0, 0, 0, 0, 0], 22),
        (&[68, 8, 6, 0, 0, 0, 0, 0], 22),
        (&[68, 8, 5, 1, 0, 0, 0, 0], 22),
        // A timestamp option of an unknown form, and one whose overflow count overflows.
        (&[68, 8, 5, 2, 0, 0, 0, 0], 23),
        (&[68, 8, 9, 0xf0, 0, 0, 0, 0], 23),
        // Good options before the malformed one are not changed either.
        (&[7, 7, 4, 0, 0, 0, 0, 1, 7, 7, 2, 0, 0, 0, 0, 0], 30),
    ];
    for outputs in [1, 2] {
        let mut kit = Kit::<IpGwOptions>::with_ports(ME, 1, outputs).unwrap();
        for (options, byte) in table {
            let data = ip(options).data().to_vec();
            let out = kit.act([ip(options)]);
            assert_eq!(out.len(), outputs - 1, "{options:?}");
            if let Some((port, p)) = out.first() {
                assert_eq!(
                    (*port, p.data(), p.anno_u8(ICMP_PARAMPROB)),
                    (1, &data[..], *byte),
                    "{options:?}"
                );
            }
        }
        assert_eq!(kit.read("drops").unwrap(), table.len().to_string());
        assert_eq!(kit.dropped(Reason::BadIpOption), if outputs == 1 { table.len() as u64 } else { 0 });
    }
}

#[test]
fn random_options_keep_the_checksum_right() {
    let mut random = Random::new(5, "options");
    let mut kit = Kit::<IpGwOptions>::with_ports("10.0.0.1", 1, 2).unwrap();
    for _ in 0..3000 {
        let words = random.below(11) as usize;
        let kinds = [0, 1, 7, 68, 131];
        let options: Vec<u8> =
            (0..words * 4)
                .map(|_| {
                    if random.below(2) == 0 {
                        kinds[random.below(5) as usize]
                    } else {
                        random.below(16) as u8
                    }
                })
                .collect();
        let out = kit.act([ip(&options)]);
        let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
        assert_eq!(h.calc_header_checksum(), h.header_checksum, "{options:?}");
    }
}

#[test]
fn truncated_headers() {
    let whole = ip(&[1; 40]).data().to_vec();
    for len in 0..60 {
        let mut kit = Kit::<IpGwOptions>::new("1.1.1.1").unwrap();
        let mut p = packet(&whole[..len]);
        p.set_network_header(0, 60);
        assert!(kit.act([p]).is_empty(), "{len}");
        assert_eq!(kit.dropped(Reason::BadIpHeader), 1);
    }
    let mut kit = Kit::<IpGwOptions>::new("1.1.1.1").unwrap();
    assert!(kit.act([packet(&whole)]).is_empty());
    assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    assert!(Kit::<IpGwOptions>::new("").is_err());
}

/// Returns a packet to `dst` with these options. Its next hop is `hop`.
fn to(dst: [u8; 4], hop: [u8; 4], options: &[u8]) -> Packet {
    let mut p = ip(options);
    let mut h = etherparse::Ipv4Header::from_slice(p.data()).unwrap().0;
    h.destination = dst;
    h.header_checksum = h.calc_header_checksum();
    p.data_mut()[..h.header_len()].copy_from_slice(&h.to_bytes());
    p.set_dst_ip(u32::from_be_bytes(hop));
    p
}

#[test]
fn source_routes_are_followed_where_it_is_said() {
    const MINE: [u8; 4] = [10, 0, 2, 1];
    const FAR: [u8; 4] = [9, 9, 9, 9];
    const HOP: [u8; 4] = [5, 5, 5, 5];
    // Columns: destination, next hop and options before; output, destination and options after.
    type Case = ([u8; 4], [u8; 4], &'static [u8], usize, [u8; 4], &'static [u8]);
    let table: &[Case] = &[
        // To this router: the next address of the route becomes the destination, and our address is recorded.
        (MINE, MINE, &[131, 7, 4, 9, 9, 9, 9, 0], 0, FAR, &[131, 7, 8, 10, 0, 0, 1, 0]),
        (MINE, MINE, &[1, 137, 7, 4, 9, 9, 9, 9], 0, FAR, &[1, 137, 7, 8, 10, 0, 0, 1]),
        (
            MINE,
            MINE,
            &[131, 11, 8, 7, 7, 7, 7, 9, 9, 9, 9, 0],
            0,
            FAR,
            &[131, 11, 12, 7, 7, 7, 7, 10, 0, 0, 1, 0],
        ),
        (
            MINE,
            MINE,
            &[131, 11, 4, 10, 0, 1, 1, 9, 9, 9, 9, 0],
            0,
            FAR,
            &[131, 11, 12, 10, 0, 0, 1, 10, 0, 0, 1, 0],
        ),
        (MINE, MINE, &[131, 7, 4, 10, 0, 1, 1, 0], 0, [10, 0, 1, 1], &[131, 7, 8, 10, 0, 0, 1, 0]),
        // At the end of the route: the packet is for this router, and stays unchanged. Other options are not
        // filled in either.
        (MINE, MINE, &[131, 7, 8, 9, 9, 9, 9, 0], 0, MINE, &[131, 7, 8, 9, 9, 9, 9, 0]),
        (
            MINE,
            MINE,
            &[131, 3, 4, 7, 7, 4, 0, 0, 0, 0, 0, 0],
            0,
            MINE,
            &[131, 3, 4, 7, 7, 4, 0, 0, 0, 0, 0, 0],
        ),
        (MINE, MINE, &[7, 7, 4, 0, 0, 0, 0, 0], 0, MINE, &[7, 7, 4, 0, 0, 0, 0, 0]),
        // The packet leaves: if the last recorded address is one of ours, it becomes the address of this
        // interface.
        (FAR, FAR, &[131, 7, 8, 10, 0, 2, 1, 0], 0, FAR, &[131, 7, 8, 10, 0, 0, 1, 0]),
        (FAR, HOP, &[131, 7, 8, 10, 0, 2, 1, 0], 0, FAR, &[131, 7, 8, 10, 0, 0, 1, 0]),
        (FAR, HOP, &[131, 7, 8, 10, 0, 0, 1, 0], 0, FAR, &[131, 7, 8, 10, 0, 0, 1, 0]),
        (FAR, FAR, &[137, 7, 8, 10, 0, 2, 1, 0], 0, FAR, &[137, 7, 8, 10, 0, 0, 1, 0]),
        (FAR, [0; 4], &[137, 7, 8, 10, 0, 2, 1, 0], 0, FAR, &[137, 7, 8, 10, 0, 0, 1, 0]),
        (FAR, HOP, &[137, 7, 8, 7, 7, 7, 7, 0], 0, FAR, &[137, 7, 8, 7, 7, 7, 7, 0]),
        (FAR, HOP, &[131, 7, 4, 10, 0, 2, 1, 0], 0, FAR, &[131, 7, 4, 10, 0, 2, 1, 0]),
        // A strict route, but the next hop is not its next address.
        (FAR, HOP, &[137, 7, 8, 10, 0, 2, 1, 0], 2, FAR, &[137, 7, 8, 10, 0, 2, 1, 0]),
        // Malformed: pointers that are too small or leave no space for an address, and a second route.
        (MINE, MINE, &[131, 7, 3, 9, 9, 9, 9, 0], 1, MINE, &[131, 7, 3, 9, 9, 9, 9, 0]),
        (MINE, MINE, &[131, 7, 5, 9, 9, 9, 9, 0], 1, MINE, &[131, 7, 5, 9, 9, 9, 9, 0]),
        (MINE, MINE, &[131, 3, 4, 131, 3, 4, 0, 0], 1, MINE, &[131, 3, 4, 131, 3, 4, 0, 0]),
        (MINE, MINE, &[131, 2, 0, 0], 1, MINE, &[131, 2, 0, 0]),
    ];
    let mut kit = Kit::<IpGwOptions>::with_ports(&format!("{ME}, SOURCE_ROUTE follow"), 1, 3).unwrap();
    for (dst, hop, before, port, after_dst, after) in table {
        let out = kit.act([to(*dst, *hop, before)]);
        let (h, rest) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
        assert_eq!(
            (out[0].0, h.destination, h.options.as_slice()),
            (*port, *after_dst, *after),
            "{before:?}"
        );
        assert_eq!((h.calc_header_checksum(), rest), (h.header_checksum, &[9; 4][..]), "{before:?}");
        let hop = if dst == after_dst { *hop } else { *after_dst };
        assert_eq!(out[0].1.dst_ip().to_be_bytes(), hop, "{before:?}");
    }
    assert_eq!((kit.read("drops").unwrap(), kit.all_dropped()), ("4".into(), 0));
    // With random options, each packet leaves and nothing panics.
    let mut random = Random::new(7, "source routes");
    for _ in 0..20_000 {
        let words = 1 + random.below(9) as usize;
        let mut options: Vec<u8> = (0..4 * words).map(|_| random.below(16) as u8).collect();
        options[0] = [131, 137][random.below(2) as usize];
        let dst = [MINE, FAR][random.below(2) as usize];
        assert_eq!(kit.act([to(dst, HOP, &options)]).len(), 1);
    }
}

#[test]
fn source_routes_are_dropped_where_it_is_said() {
    let mut kit = Kit::<IpGwOptions>::with_ports(&format!("{ME}, SOURCE_ROUTE drop"), 1, 3).unwrap();
    let routes: [&[u8]; 4] = [
        &[131, 7, 4, 9, 9, 9, 9, 0],
        &[1, 1, 1, 137, 7, 8, 9, 9, 9, 9, 0, 0],
        &[131, 7, 8, 9, 9, 9, 9, 0],
        &[131, 2, 0, 0],
    ];
    for dst in [[10, 0, 2, 1], [9; 4]] {
        for options in routes {
            assert_eq!(kit.act([to(dst, dst, options)]).len(), 0, "{options:?}");
        }
        for options in [&[1, 1, 1, 0][..], &[148, 4, 0, 0], &[0, 131, 7, 4]] {
            assert_eq!(kit.act([to(dst, dst, options)])[0].0, 0, "{options:?}");
        }
    }
    assert_eq!((kit.dropped(Reason::SourceRoute), kit.all_dropped()), (8, 8));
    let error = Kit::<IpGwOptions>::with_ports(&format!("{ME}, SOURCE_ROUTE obey"), 1, 1).err().unwrap();
    assert!(format!("{error:?}").contains("'obey' is not 'pass', 'drop' or 'follow'"), "{error:?}");
}
