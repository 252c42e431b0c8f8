// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests ICMPPingSource with a responder: requests, replies, statistics.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::icmp::icmp_ping_responder::IcmpPingResponder;
use castanet_element::kit::{Kit, packet};
use etherparse::{Icmpv4Slice, Icmpv4Type, Ipv4Slice};

fn kit(config: &str) -> Kit<IcmpPingSource> {
    Kit::with_ports(&format!("10.0.0.1, 10.0.0.2, {config}"), 1, 1).unwrap()
}

/// Returns the single request that is sent when the timer expires.
fn request(kit: &mut Kit<IcmpPingSource>) -> Packet {
    let mut out = kit.expire().unwrap();
    assert_eq!(out.len(), 1);
    out.remove(0).1
}

fn reply(p: Packet) -> Packet {
    let mut responder = Kit::<IcmpPingResponder>::new("").unwrap();
    responder.act([p]).remove(0).1
}

#[test]
fn requests_and_replies() {
    let mut kit = kit("INTERVAL 2, IDENTIFIER 7, DATA abc, LIMIT 4, STOP true");
    assert_eq!(kit.read("summary").unwrap(), "0 packets transmitted, 0 received\n");
    let trips = [500_000, 1_234_567, 0];
    for (n, trip) in (1u16..).zip(trips) {
        let at = 2_000_000_000 * i64::from(n);
        assert_eq!(kit.next_timer().unwrap() / 1000, at / 1000);
        let p = request(&mut kit);
        let ip = Ipv4Slice::from_slice(p.data()).unwrap();
        let h = ip.header().to_header();
        assert_eq!((h.source, h.destination, h.time_to_live), ([10, 0, 0, 1], [10, 0, 0, 2], 255));
        assert_eq!((h.identification, h.calc_header_checksum()), (n, h.header_checksum));
        let m = Icmpv4Slice::from_slice(ip.payload().payload).unwrap();
        let Icmpv4Type::EchoRequest(e) = m.icmp_type() else { panic!("{:?}", m.icmp_type()) };
        assert_eq!((e.id, e.seq, m.payload()), (7, n, &b"abc"[..]));
        assert_eq!(m.icmp_type().calc_checksum(m.payload()), m.checksum());
        assert_eq!((p.dst_ip(), p.timestamp() - 1_000_000_000_000 - at < 1000), (0x0a00_0002, true));
        let copy = packet(p.data());
        let back = reply(p);
        let mut again = packet(back.data());
        again.set_network_header(0, 20);
        kit.at(at + trip);
        assert!(kit.push(0, [back, again, copy]).is_empty());
        let lines = kit.messages();
        assert_eq!(lines.len(), 1, "the second reply, and the request itself, are none");
        assert!(
            lines[0].starts_with(&format!(
                "e :: ICMPPingSource: 3 bytes from 10.0.0.2: icmp_seq={n} ttl=255 time="
            ))
        );
    }
    request(&mut kit);
    assert_eq!((kit.stops(), kit.read("count").unwrap()), (0, "4".into()));
    assert!(kit.expire().unwrap().is_empty());
    assert_eq!((kit.stops(), kit.next_timer()), (1, None));
    assert_eq!((kit.dropped(Reason::Consumed), kit.dropped(Reason::Discarded)), (3, 6));
    let summary = kit.read("summary").unwrap();
    assert!(
        summary
            .starts_with("4 packets transmitted, 3 received, 25% packet loss\nrtt min/avg/max/mdev = 0.00")
    );
    assert_eq!(summary.lines().nth(1).unwrap().split('/').nth(5).unwrap().get(..4), Some("1.23"));
    assert!(kit.read("rtt_min").unwrap().ends_with("us") && kit.read("rtt_max").unwrap().starts_with("1.23"));
    kit.cleanup().unwrap();
    let want: Vec<_> = summary.lines().map(|l| format!("e :: ICMPPingSource: {l}")).collect();
    assert_eq!(kit.messages(), want);
    kit.write("reset_counts", "").unwrap();
    assert_eq!(["count", "rtt_avg", "rtt_max"].map(|h| kit.read(h).unwrap()), ["0", "0s", "0s"]);
    assert_eq!(request(&mut kit).data()[4..6], [0, 5], "the numbers go on");
}

#[test]
fn statistics_as_the_definition_says() {
    let mut s = Statistics::default();
    let trips = [1_000_000u64, 2_000_000, 4_000_000, 9_000_000];
    for (n, t) in (0u16..).zip(trips) {
        s.sent(n * 16_000, 5);
        assert_eq!(s.received(n * 16_000, 5 + t as i64), Some(t));
        assert_eq!((s.received(n * 16_000, 6), s.received(n * 16_000 + 1, 6)), (None, None));
    }
    // The mean is 4. The squares add up to 1 + 4 + 16 + 81 = 102, so the variance is 25.5 - 16 = 9.5.
    assert_eq!(
        s.summary(5),
        "5 packets transmitted, 4 received, 20% packet loss\nrtt min/avg/max/mdev = 1.000/4.000/9.000/3.082\n"
    );
    assert_eq!((s.min(), s.mean(), s.max()), (1_000_000, 4_000_000, 9_000_000));
    s.sent(65_535, i64::MAX);
    assert_eq!(s.received(65_535, i64::MIN), Some(0), "the clock was set back");
    assert_eq!(Statistics::default().summary(3), "3 packets transmitted, 0 received, 100% packet loss\n");
    for (ns, text) in [
        (999, "0us"),
        (1999, "1us"),
        (999_999, "999us"),
        (1_000_000, "1.000ms"),
        (12_345_678_000, "12.345678s"),
    ] {
        assert_eq!(RoundTrip(ns).show(), text);
    }
}

#[test]
fn what_is_no_reply() {
    let mut kit = kit("IDENTIFIER 1, VERBOSE false");
    let p = request(&mut kit);
    let good = reply(p).data().to_vec();
    for (at, v) in [(9, 17), (6, 0x20), (7, 1), (20, 8), (25, 2), (27, 9), (0, 0x44), (3, 27)] {
        let mut bad = good.clone();
        bad[at] = v;
        let mut p = packet(&bad);
        p.set_network_header(0, 20);
        assert!(kit.push(0, [p, packet(&good)]).is_empty());
        assert!(kit.read("summary").unwrap().contains(" 0 received"), "{at}");
    }
    for n in 0..good.len() {
        let mut p = packet(&good[..n]);
        p.set_network_header(0, 20);
        assert!(kit.push(0, [p]).is_empty());
    }
    assert_eq!(kit.dropped(Reason::Discarded), 16 + good.len() as u64);
    let mut p = packet(&good);
    p.set_network_header(0, 20);
    kit.push(0, [p]);
    assert_eq!((kit.dropped(Reason::Consumed), kit.messages().len()), (1, 0));
    kit.cleanup().unwrap();
    assert!(kit.messages().is_empty());
}

#[test]
fn mirror_and_handlers() {
    let mut kit = kit("MIRROR true, ACTIVE false");
    let mut other = Kit::<IcmpPingSource>::with_ports("10.0.0.9, 10.0.0.1", 0, 1).unwrap();
    let out = kit.push(0, [request(&mut other)]);
    assert_eq!((out.len(), &out[0].1.data()[12..21]), (1, &[10, 0, 0, 1, 10, 0, 0, 9, 0][..]));
    assert_eq!(kit.next_timer(), None);
    for (handler, value) in [("src", "1.1.1.1"), ("dst", "2.2.2.2"), ("active", "true")] {
        kit.write(handler, value).unwrap();
        assert_eq!(kit.read(handler).unwrap(), value);
    }
    assert_eq!(kit.next_timer().unwrap() / 1_000_000, 1000);
    kit.write("interval", "5").unwrap();
    assert_eq!(request(&mut kit).data()[12..20], [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(kit.next_timer().unwrap() / 1_000_000, 6000);
    assert!(kit.write("interval", "0").is_err());
    kit.write("limit", "1").unwrap();
    assert!(kit.expire().unwrap().is_empty());
    assert_eq!((kit.next_timer(), kit.stops()), (None, 0));
    kit.write("limit", "-1").unwrap();
    assert_eq!(request(&mut kit).data()[4..6], [0, 2]);
    for bad in ["", "1.0.0.1", "1.0.0.1, 2.0.0.2, INTERVAL 0", "1.0.0.1, 2.0.0.2, INTERVAL -1"] {
        assert!(Kit::<IcmpPingSource>::new(bad).is_err(), "{bad}");
    }
    let mut kit = Kit::<IcmpPingSource>::with_ports("1.0.0.1, 2.0.0.2", 1, 1).unwrap();
    assert!(kit.push(0, [request(&mut other)]).is_empty(), "without MIRROR");
}

#[test]
fn pulled() {
    let mut kit = kit("LIMIT 3");
    kit.element.push = false;
    assert!(kit.pull(0, 3).is_empty());
    for _ in 0..2 {
        assert!(kit.expire().unwrap().is_empty());
    }
    assert_eq!((kit.pull(0, 1).len(), kit.pull(0, 9).len(), kit.pull(0, 9).len()), (1, 1, 0));
    while kit.expire().is_some() {}
    assert_eq!((kit.pull(0, 9).len(), kit.read("count").unwrap()), (1, "3".into()));
}

#[test]
fn replies_move_in_a_hot_swap() {
    let [mut old, mut new] = [0, 1].map(|_| kit("INTERVAL 2, IDENTIFIER 7"));
    let p = request(&mut old);
    assert!(old.push(0, [reply(p)]).is_empty());
    new.take_state_of(&mut old).unwrap();
    let first = |kit: &mut Kit<IcmpPingSource>| kit.read("summary").unwrap().lines().next().map(String::from);
    assert_eq!(first(&mut new).unwrap(), "1 packets transmitted, 1 received, 0% packet loss");
    assert_eq!(first(&mut old).unwrap(), "0 packets transmitted, 0 received");
}
