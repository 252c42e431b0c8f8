// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use etherparse::{Icmpv4Slice, Ipv4Slice};

fn kit(more: &str) -> Kit<IcmpRouterAdvertiser> {
    Kit::with_ports(&format!("10.0.0.1/24{more}"), 1, 1).unwrap()
}

/// Makes a solicitation that is correct except for the byte that `change` replaces.
fn ask(from: [u8; 4], change: Option<(usize, u8)>) -> Packet {
    let mut h = etherparse::Ipv4Header::new(8, 1, etherparse::IpNumber::ICMP, from, [224, 0, 0, 2]).unwrap();
    h.header_checksum = h.calc_header_checksum();
    let mut data = [&h.to_bytes()[..], &[10, 0, 0xf5, 0xff, 0, 0, 0, 0]].concat();
    if let Some((at, value)) = change {
        data[at] = value;
    }
    let mut p = packet(&data);
    p.set_network_header(0, 20);
    p
}

#[test]
fn advertisements_are_those_of_the_rfc() {
    for (more, to, life, preference) in [
        ("", [224, 0, 0, 1], 1800u16, 0i32),
        (", MAX_INTERVAL 4, PREFERENCE -7", [224, 0, 0, 1], 12, -7),
        (", DESTINATION 255.255.255.255, LIFETIME 9000, PREFERENCE 2147483647", [255; 4], 9000, i32::MAX),
    ] {
        let mut k = kit(more);
        let out = k.expire().unwrap();
        assert_eq!((out.len(), out[0].0, out[0].1.dst_ip().to_be_bytes()), (1, 0, to));
        let ip = Ipv4Slice::from_slice(out[0].1.data()).unwrap();
        let h = ip.header().to_header();
        assert_eq!((h.source, h.destination, h.time_to_live), ([10, 0, 0, 1], to, 1));
        assert_eq!(h.calc_header_checksum(), h.header_checksum);
        let icmp = Icmpv4Slice::from_slice(ip.payload().payload).unwrap();
        // RFC 1071: the sum of all words, including the checksum, is all ones.
        let words = ip.payload().payload.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        assert_eq!(words.fold(0, |sum, w| (sum + w) % 0xffff), 0);
        let [l0, l1] = life.to_be_bytes();
        assert_eq!((icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()), (9, 0, [1, 2, l0, l1]));
        assert_eq!(icmp.payload(), [[10, 0, 0, 1], preference.to_be_bytes()].concat());
    }
}

#[test]
fn times_are_those_of_the_rfc() {
    let mut k = kit("");
    let mut times = Vec::new();
    for _ in 0..40 {
        times.push(k.next_timer().unwrap());
        assert_eq!(k.expire().unwrap().len(), 1);
    }
    assert!(times[0] <= MAX_INITIAL_INTERVAL + SECOND);
    let gaps: Vec<i64> = times.windows(2).map(|w| (w[1] - w[0]) / SECOND).collect();
    assert!(gaps[..2].iter().all(|g| *g <= 16), "{gaps:?}");
    assert!(gaps[2..].iter().all(|g| (450..=600).contains(g)), "{gaps:?}");
    assert!(gaps[2..].iter().any(|g| *g < 500) && gaps[2..].iter().any(|g| *g > 550), "{gaps:?}");
    assert_eq!(k.read("count").unwrap(), "40");
}

#[test]
fn who_asks_is_answered_soon_and_once() {
    let mut k = kit("");
    for _ in 0..5 {
        k.expire();
    }
    let start = k.next_timer().unwrap() - 400 * SECOND;
    for (from, change, reason) in [
        ([0; 4], None, Reason::Consumed),
        ([10, 0, 0, 9], None, Reason::Consumed),
        ([10, 0, 1, 9], None, Reason::BadSource),
        ([10, 0, 0, 9], Some((20, 9)), Reason::Discarded),
        ([10, 0, 0, 9], Some((21, 1)), Reason::Discarded),
        ([10, 0, 0, 9], Some((23, 0)), Reason::Discarded),
        ([10, 0, 0, 9], Some((9, 17)), Reason::Discarded),
    ] {
        let mut k = kit("");
        for _ in 0..5 {
            k.expire();
        }
        let late = k.next_timer().unwrap();
        k.at(late - 400 * SECOND);
        assert!(k.push(0, [ask(from, change)]).is_empty());
        assert_eq!((k.dropped(reason), k.all_dropped()), (1, 1), "{from:?} {change:?}");
        let soon = k.next_timer().unwrap() < late - 397 * SECOND;
        assert_eq!(soon, reason == Reason::Consumed, "{from:?} {change:?}");
    }
    k.at(start);
    k.push(0, (0..50).map(|i| ask([10, 0, 0, i + 2], None)));
    assert_eq!(k.expire().unwrap().len(), 1);
    assert!(k.next_timer().unwrap() > start + 400 * SECOND, "the others were answered too");
    // A solicitation that is truncated at any byte is ignored.
    for len in 0..28 {
        let mut p = packet(&ask([0; 4], None).data()[..len]);
        p.set_network_header(0, 20.min(len));
        assert!(k.push(0, [p]).is_empty());
    }
    assert_eq!(k.all_dropped(), 50 + 28);
}

#[test]
fn it_can_be_switched_off_and_asked() {
    let mut k = kit(", ACTIVE false");
    assert_eq!(k.next_timer(), None);
    k.push(0, [ask([0; 4], None)]);
    assert_eq!(k.next_timer(), None);
    k.write("active", "true").unwrap();
    assert_eq!(k.expire().unwrap().len(), 1);
    k.write("preference", "5").unwrap();
    k.write("advertise", "").unwrap();
    assert_eq!(k.read("count").unwrap(), "2");
    for (bad, what) in [
        ("10.0.0.1/24, MAX_INTERVAL 3", "MAX_INTERVAL: must be between 4 and 1800"),
        ("10.0.0.1/24, MAX_INTERVAL 1801", "MAX_INTERVAL: must be between 4 and 1800"),
        ("10.0.0.1/24, MIN_INTERVAL 2", "MIN_INTERVAL: must be between 3 s and MAX_INTERVAL"),
        ("10.0.0.1/24, MIN_INTERVAL 601", "MIN_INTERVAL: must be between 3 s and MAX_INTERVAL"),
        ("10.0.0.1/24, LIFETIME 599", "LIFETIME: must be between MAX_INTERVAL and 9000 s"),
        ("10.0.0.1/24, LIFETIME 9001", "LIFETIME: must be between MAX_INTERVAL and 9000 s"),
        ("10.0.0.1/24, DESTINATION 10.0.0.255", "DESTINATION: must be 224.0.0.1 or 255.255.255.255"),
    ] {
        let error = Kit::<IcmpRouterAdvertiser>::with_ports(bad, 1, 1).err().unwrap();
        assert!(format!("{error:?}").contains(what), "{bad}: {error:?}");
    }
}
