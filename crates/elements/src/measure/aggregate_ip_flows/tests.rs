// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::flows::{Arrival, Key, Table};
use super::*;
use crate::handover::testing::{hand_over, prepare};
use castanet_element::kit::{Kit, packet};
use std::collections::HashMap;

const S: i64 = 1_000_000_000;

/// Makes a packet from a timestamp in seconds, protocol, ends (last byte of the address, port), fragment word
/// and TCP flags.
fn ip(second: i64, kind: u8, src: (u8, u16), dst: (u8, u16), fragment: u16, flags: u8) -> Packet {
    let mut data = vec![0x45, 0, 0, 40, 0, 7, 0, 0, 64, kind, 0, 0, 10, 0, 0, src.0, 10, 0, 0, dst.0];
    data[6..8].copy_from_slice(&fragment.to_be_bytes());
    data.extend(src.1.to_be_bytes());
    data.extend(dst.1.to_be_bytes());
    data.resize(40, 0);
    data[33] = flags;
    let mut p = packet(&data);
    p.set_network_header(0, 20);
    p.set_timestamp(second * S);
    p
}

/// Pushes a packet. Returns its output, flow number and direction.
fn run(kit: &mut Kit<AggregateIpFlows>, p: Packet) -> (usize, u32, u8) {
    let out = kit.push(0, [p]);
    let (port, p) = &out[0];
    (*port, p.anno_u32(anno::AGGREGATE), p.paint())
}
fn kit(config: &str) -> Kit<AggregateIpFlows> {
    Kit::with_ports(config, 1, 2).unwrap()
}

#[test]
fn numbers_and_directions() {
    let mut k = kit("");
    let (a, b, c) = ((1, 10), (2, 20), (1, 11));
    for (p, want) in [
        (ip(1, 6, a, b, 0, 0), (0, 1, 0)),
        (ip(1, 6, b, a, 0, 0), (0, 1, 1)),
        (ip(1, 17, b, a, 0, 0), (0, 2, 0)),
        (ip(1, 17, a, b, 0, 0), (0, 2, 1)),
        (ip(1, 6, c, b, 0, 0), (0, 3, 0)),
        (ip(1, 6, a, b, 0, 0), (0, 1, 0)),
        (ip(1, 1, a, b, 0, 0), (1, 0, 0)),
        (ip(1, 47, a, b, 0, 0), (1, 0, 0)),
    ] {
        assert_eq!(run(&mut k, p), want);
    }
    assert_eq!(k.read("nflows").unwrap(), "3");
    k.write("clear", "").unwrap();
    assert_eq!(run(&mut k, ip(2, 6, b, a, 0, 0)), (0, 1, 0), "numbers begin again");
    let mut k = Kit::<AggregateIpFlows>::new("").unwrap();
    assert_eq!(k.push(0, [ip(1, 47, a, b, 0, 0), packet(&[0; 20])]).len(), 0);
    assert_eq!((k.dropped(Reason::NoMatch), k.dropped(Reason::NoIpHeader)), (1, 1));
}

#[test]
fn flows_end() {
    let (a, b) = ((1, 10), (2, 20));
    // A flow that is idle for exactly its timeout has not ended.
    for (config, kind, timeout) in
        [("", 17, 60), ("UDP_TIMEOUT 5", 17, 5), ("", 6, 86_400), ("TCP_TIMEOUT 7", 6, 7)]
    {
        let mut k = kit(config);
        let n = |k: &mut _, second| run(k, ip(second, kind, a, b, 0, 0)).1;
        assert_eq!(
            (n(&mut k, 1), n(&mut k, 1 + timeout), n(&mut k, 2 + 2 * timeout)),
            (1, 1, 2),
            "{config} {kind}"
        );
    }
    let mut k = kit("");
    let mut n = |second, src, dst, flags| run(&mut k, ip(second, 6, src, dst, 0, flags)).1;
    assert_eq!(
        (n(1, a, b, 2), n(2, a, b, 1), n(50, b, a, 16), n(51, b, a, 1), n(81, a, b, 16)),
        (1, 1, 1, 1, 1)
    );
    assert_eq!(n(112, a, b, 16), 2, "31 seconds after both sent FIN");
    assert_eq!((n(113, a, b, 4), n(114, b, a, 16), n(115, a, b, 2)), (2, 2, 3), "SYN after RST");
    // For packets without a timestamp, the current (simulated) time decides whether a flow has ended.
    let mut k = kit("UDP_TIMEOUT 5");
    let mut at = |second: i64| {
        k.at(second * S);
        run(&mut k, ip(0, 17, a, b, 0, 0)).1
    };
    assert_eq!((at(1), at(6), at(12)), (1, 1, 2));
}

#[test]
fn fragments_follow_their_first() {
    let (a, b) = ((1, 10), (2, 20));
    let mut k = kit("");
    assert_eq!(k.push(0, [ip(1, 17, a, b, 5, 0)]).len(), 0, "it waits for its first fragment");
    assert_eq!(run(&mut k, ip(1, 17, b, a, 0x2000, 0)), (0, 1, 0));
    assert_eq!(run(&mut k, ip(2, 17, b, a, 0x2005, 0)), (0, 1, 0));
    assert_eq!(run(&mut k, ip(31, 17, b, a, 9, 0)), (0, 1, 0));
    let held = |k: &mut Kit<AggregateIpFlows>| k.with(|e, _| e.held());
    assert_eq!(held(&mut k), 1);
    assert_eq!(
        run(&mut k, ip(32, 17, b, a, 9, 0)).0,
        1,
        "the one that waited 31 seconds goes, and this one waits"
    );
    assert_eq!(
        (held(&mut k), k.push(0, [ip(32, 6, b, a, 9, 0)]).len(), held(&mut k)),
        (1, 0, 2),
        "another protocol"
    );
    let mut k = kit("FRAGMENTS false");
    assert_eq!(run(&mut k, ip(1, 17, a, b, 0x2000, 0)).0, 1);
    let mut f = Fragments::new(S);
    let seen = Seen { aggregate: 1, paint: 0 };
    for i in 0..3 * fragments::MOST_FRAGMENTS as u32 {
        let mut h = [0; 20];
        h[12..16].copy_from_slice(&i.to_be_bytes());
        f.first(&h, seen, 5);
    }
    assert_eq!(f.len(), fragments::MOST_FRAGMENTS);
}

/// A later fragment that comes before its first fragment waits for the first fragment. It leaves just before the
/// first fragment, with the number of the flow.
#[test]
fn fragments_wait_for_their_first() {
    let (a, b) = ((1, 10), (2, 20));
    let seen = |out: Vec<(usize, Packet)>| {
        let word = |p: &Packet| u16::from_be_bytes([p.data()[6], p.data()[7]]);
        out.iter().map(|(o, p)| (*o, word(p), p.anno_u32(anno::AGGREGATE), p.paint())).collect::<Vec<_>>()
    };
    for batch in [1, 2, 9] {
        let mut k = kit("");
        let mut packets = vec![
            ip(1, 6, b, a, 0, 0),
            ip(1, 17, a, b, 0x2005, 0),
            ip(1, 17, a, b, 9, 0),
            ip(1, 6, a, b, 0, 0),
            ip(1, 17, a, b, 0x2000, 0),
            ip(1, 17, a, b, 7, 0),
        ];
        let mut out = Vec::new();
        while !packets.is_empty() {
            out.extend(k.push(0, packets.drain(..batch.min(packets.len()))));
        }
        let want =
            [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0x2005, 2, 0), (0, 9, 2, 0), (0, 0x2000, 2, 0), (0, 7, 2, 0)];
        assert_eq!(seen(out), want, "{batch}");
    }
    // A later fragment whose first fragment does not come is dropped after FRAGMENT_TIMEOUT, or when `clear` removes
    // all flows.
    let mut k = Kit::<AggregateIpFlows>::new("FRAGMENT_TIMEOUT 5").unwrap();
    assert_eq!(k.push(0, [ip(1, 17, a, b, 5, 0)]).len(), 0);
    assert_eq!((k.push(0, [ip(6, 6, a, b, 0, 0)]).len(), k.all_dropped()), (1, 0));
    assert_eq!((k.push(0, [ip(7, 6, a, b, 0, 0)]).len(), k.dropped(Reason::ReassemblyTimeout)), (1, 1));
    assert_eq!(k.push(0, [ip(8, 17, a, b, 5, 0)]).len(), 0);
    k.write("clear", "").unwrap();
    assert_eq!((k.dropped(Reason::Cleared), k.with(|e, _| e.held())), (1, 0));
    for i in 0..2 * fragments::MOST_WAITING as i64 {
        k.push(0, [ip(9, 17, ((i % 200) as u8, 1), b, 5, 0)]);
        assert!(k.with(|e, _| e.held()) <= fragments::MOST_WAITING as u64);
    }
    let held = k.with(|e, _| e.held());
    k.cleanup().unwrap();
    assert_eq!(k.dropped(Reason::Stopped), held);
    // Pulled fragments do not wait.
    let mut k = kit("FRAGMENTS true");
    k.with(|e, _| e.waits = false);
    k.supply(0, ip(1, 17, a, b, 5, 0));
    k.supply(0, ip(1, 17, a, b, 0x2000, 0));
    assert_eq!(k.pull(0, 9).len(), 1);
}

#[test]
fn icmp_errors_quote_flows() {
    let (a, b) = ((1, 10), (2, 20));
    let error = |kind: u8| {
        let inner = ip(1, 6, a, b, 0, 0);
        let mut data =
            vec![0x45, 0, 0, 56, 0, 7, 0, 0, 64, 1, 0, 0, 9, 9, 9, 9, 10, 0, 0, 1, kind, 0, 0, 0, 0, 0, 0, 0];
        data.extend_from_slice(&inner.data()[..28]);
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p.set_timestamp(2 * S);
        p
    };
    for (config, kind, want) in [("ICMP true", 3, (0, 1, 1)), ("ICMP true", 8, (1, 0, 0)), ("", 3, (1, 0, 0))]
    {
        let mut k = kit(config);
        assert_eq!(run(&mut k, error(kind)).0, 1, "no such flow yet");
        run(&mut k, ip(1, 6, a, b, 0, 0));
        assert_eq!(run(&mut k, error(kind)), want);
        for n in 0..56 {
            let mut cut = error(kind);
            cut.truncate(n);
            assert_eq!(k.push(0, [cut]).len(), 1);
        }
    }
}

#[test]
fn every_length_and_batch_size() {
    for n in 0..60 {
        let mut p = ip(1, 6, (1, 2), (3, 4), 0, 0);
        p.truncate(n);
        assert_eq!(kit("").push(0, [p]).len(), 1);
    }
    let all = |batch: usize| {
        let mut k = kit("");
        let mut packets: Vec<_> =
            (0..30).map(|i| ip(1, 6 + 11 * (i % 2), (i % 3, 1), (3, 4), 0, 0)).collect();
        let mut out = Vec::new();
        while !packets.is_empty() {
            out.extend(k.push(0, packets.drain(..batch.min(packets.len()))));
        }
        out.iter().map(|(o, p)| (*o, p.anno_u32(anno::AGGREGATE), p.paint())).collect::<Vec<_>>()
    };
    let one = all(1);
    assert!([2, 3, 32].iter().all(|n| all(*n) == one));
}

/// Compares the element with a model that keeps every packet, for random flows, times and flags.
#[test]
fn agrees_with_a_model() {
    let mut random = Random::new(3, "flows");
    let mut k = kit("UDP_TIMEOUT 3, REAP 5");
    let (mut model, mut next, mut second) = (HashMap::new(), 0, 0);
    for _ in 0..5000 {
        second += i64::from(random.below(4) == 0);
        let (a, b) = (random.below(4) as u8, random.below(4) as u8);
        let (low, high) = (a.min(b), a.max(b));
        let known = model.get(&(low, high)).copied().filter(|m: &(u32, u8, i64)| second - m.2 <= 3);
        let (number, first, _) = known.unwrap_or_else(|| {
            next += 1;
            (next, a, 0)
        });
        model.insert((low, high), (number, first, second));
        let got = run(&mut k, ip(1 + second, 17, (a, 5), (b, 5), 0, 0));
        assert_eq!(got, (0, number, u8::from(first != a)));
    }
}

#[test]
fn memory_is_bounded() {
    const MOST: usize = 5000;
    let mut table = Table::new(MOST);
    let timeouts = Timeouts { tcp: S, tcp_done: S, udp: 100 * S };
    let (mut gone, mut last) = (0, 0);
    let mut packet = |table: &mut Table, a, b, now| {
        let (key, up) = Key::new(a, b, 17);
        let number = || {
            last += 1;
            last
        };
        table.packet(Arrival { key, up, flags: 0, now }, &timeouts, number, |_| gone += 1).aggregate
    };
    for i in 0..MOST as u32 + 1000 {
        packet(&mut table, (i, 1), (u32::MAX, 2), i64::from(i));
        // One flow gets a packet in every pass of the loop, and is never removed.
        assert_eq!(packet(&mut table, (7, 7), (7, 8), i64::from(i)), 2);
    }
    assert_eq!((table.len(), gone), (MOST, 1001));
    let mut over = Vec::new();
    table.reap(1000 * S, &timeouts, &mut over);
    assert_eq!((table.len(), over.len()), (0, MOST));
}

#[test]
fn trace_info() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("info.xml");
    let mut k = kit(&format!("TRACEINFO {}, UDP_TIMEOUT 5", path.display()));
    run(&mut k, ip(1, 17, (1, 1), (2, 2), 0, 0));
    run(&mut k, ip(2, 17, (2, 2), (1, 1), 0, 0));
    run(&mut k, ip(20, 17, (2, 2), (1, 1), 0, 0));
    k.cleanup().unwrap();
    let want = "<?xml version='1.0' standalone='yes'?>\n<trace>\n\
        <flow aggregate='1' src='10.0.0.1' sport='1' dst='10.0.0.2' dport='2' begin='1.000000000' duration='1.000000000'>\n  \
        <stream dir='0' packets='1' /><stream dir='1' packets='1' />\n</flow>\n\
        <flow aggregate='2' src='10.0.0.2' sport='2' dst='10.0.0.1' dport='1' begin='20.000000000' duration='0.000000000'>\n  \
        <stream dir='0' packets='1' /><stream dir='1' packets='0' />\n</flow>\n</trace>\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
    let mut names = Names::new();
    names.define_element("x", 3, "FromDump");
    let config = format!("TRACEINFO {}, SOURCE x", path.display());
    let mut k = Kit::<AggregateIpFlows>::with_names(&config, 1, 2, names).unwrap();
    k.answer("filename", "a&b'");
    for i in 0..2000 {
        run(&mut k, ip(1, 17, (1, i), (2, 2), 0, 0));
    }
    k.cleanup().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(
        "<?xml version='1.0' standalone='yes'?>\n<trace file='a&amp;b&apos;'>\n<flow aggregate='1' "
    ));
    assert_eq!((text.lines().count(), text.ends_with("</flow>\n</trace>\n")), (6003, true));
    assert!(Kit::<AggregateIpFlows>::new("TRACEINFO /nonexistent/x").is_err());
    assert!(Kit::<AggregateIpFlows>::new("UDP_TIMEOUT x").is_err());
}

#[test]
fn trace_info_goes_on_in_the_next_router() {
    let dir = tempfile::TempDir::new().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let config = |path: &std::path::Path| format!("TRACEINFO {}, UDP_TIMEOUT 5", path.display());
    let packets = || (0..40u16).map(|i| ip(i64::from(i) / 4 + 1, 17, (1, i % 7), (2, 2), 0, 0));
    let mut k = kit(&config(&one));
    for p in packets() {
        run(&mut k, p);
    }
    k.cleanup().unwrap();
    let (mut old, mut new) = (kit(&config(&two)), kit(""));
    for p in packets().take(20) {
        run(&mut old, p);
    }
    prepare(&mut new, &config(&two), 1, 2);
    new.cleanup().unwrap();
    prepare(&mut new, &config(&two), 1, 2);
    hand_over(&mut old, &mut new);
    hand_over(&mut new, &mut old);
    hand_over(&mut old, &mut new);
    old.cleanup().unwrap();
    for p in packets().skip(20) {
        run(&mut new, p);
    }
    new.cleanup().unwrap();
    let text = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(text(&one), text(&two));
    // A router that did not run leaves no file behind.
    let three = dir.path().join("three");
    kit(&config(&three)).cleanup().unwrap();
    kit(&config(&one)).cleanup().unwrap();
    assert!(!three.exists() && text(&one) == text(&two));
}

#[test]
fn several_workers_number_flows_as_one_does() {
    let mut random = Random::new(8, "flows");
    let config = "UDP_TIMEOUT 5, FRAGMENT_TIMEOUT 2, REAP 3";
    let mut kits: Vec<_> = (0..3).map(|_| kit(config)).collect();
    let timeouts = Timeouts { tcp: 86_400 * S, tcp_done: 30 * S, udp: 5 * S };
    let shared = Arc::new(Shared::new(timeouts, 3 * S, Some(Fragments::new(2 * S)), None, 3));
    kits.iter_mut().for_each(|k| k.element.shared = shared.clone());
    let mut one = kit(config);
    let show = |out: Vec<(usize, Packet)>| -> Vec<_> {
        out.iter()
            .map(|(port, p)| (*port, p.anno_u32(anno::AGGREGATE), p.paint(), p.data().to_vec()))
            .collect()
    };
    let (mut outputs, mut waited) = ([0; 2], 0);
    for i in 0..4000 {
        let (from, to) = (random.below(9) as u16, random.below(9) as u16);
        let second = i / 40;
        let new = || ip(second, 17, (1, from), (2, to), 0, 0);
        let mut p = [new(), new()];
        // Later fragments, and first fragments with the same identification.
        let (id, offset) = (random.below(40) as u16, [0, 0, 0x2000, 1][random.below(4) as usize]);
        for p in &mut p {
            let header = 0..20;
            let data = &mut p.data_mut()[header];
            data[4..6].copy_from_slice(&id.to_be_bytes());
            data[6..8].copy_from_slice(&u16::to_be_bytes(offset));
        }
        let [a, b] = p;
        let (a, b) = (show(kits[random.below(3) as usize].push(0, [a])), show(one.push(0, [b])));
        assert_eq!(a, b);
        a.iter().for_each(|o| outputs[o.0] += 1);
        waited = waited.max(kits[0].with(|e, _| e.held()));
        assert_eq!(kits[0].read("nflows"), one.read("nflows"));
    }
    assert!(outputs.iter().all(|n| *n > 100) && waited > 3, "{outputs:?} {waited}");
    // Hot swaps, also to another number of workers, keep the flows and the fragments that wait.
    let mut before = one;
    let mut new = kit(config);
    let held = kits[0].with(|e, _| e.held());
    kits.iter_mut().for_each(|old| new.take_state_of(old).unwrap());
    assert_eq!((new.with(|e, _| e.held()), kits[1].with(|e, _| e.held())), (held, 0));
    assert_eq!(new.read("nflows"), before.read("nflows"));
    // Fragments that one worker has received leave on another, and through the new router.
    kits.iter_mut().for_each(Kit::handed_over);
    new.handed_over();
    for i in 0..81 {
        let p = || ip(100, 17, (1, i % 9), (2, i / 9), 0, 0);
        assert_eq!(show(new.push(0, [p()])), show(before.push(0, [p()])));
    }
}
