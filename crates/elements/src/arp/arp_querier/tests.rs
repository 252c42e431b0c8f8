// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
mod recovery;

use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_spec::Names;
use castanet_wire::arp;
use etherparse::{ArpOperation, ArpPacketSlice, Ethernet2Slice};

const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
const S: i64 = 1_000_000_000;
const CONFIG: &str = "10.0.0.1/24, 02-00-00-00-00-01";

fn kit(more: &str) -> Kit<ArpQuerier> {
    Kit::with_ports(&format!("{CONFIG}{more}"), 2, 2).unwrap()
}
fn to(ip: u32, n: u8) -> Packet {
    let mut p = packet(&[n; 20]);
    p.set_dst_ip(ip);
    p.set_timestamp(i64::from(n));
    p.set_anno(anno::VLAN, [0, n]);
    p
}
fn host(n: u8) -> u32 {
    0x0a00_0000 + u32::from(n)
}
fn reply(ip: u32, n: u8) -> Packet {
    let you = EtherAddr([2, 0, 0, 0, 0, n]);
    let arp = ArpHeader::new(arp::op::REPLY, (you, ip), (EtherAddr(ME), host(1)));
    let ether = EtherHeader::new(EtherAddr(ME), you, ethertype::ARP);
    packet(&[&ether.to_bytes()[..], &arp.to_bytes(), &[0; 18]].concat())
}
fn request(ip: u32, n: u8, target: u32) -> Packet {
    let you = EtherAddr([2, 0, 0, 0, 0, n]);
    let ether = EtherHeader::new(EtherAddr::BROADCAST, you, ethertype::ARP);
    packet(&[&ether.to_bytes()[..], &ArpHeader::request(you, ip, target).to_bytes()].concat())
}
/// Describes an output packet: `q9` is a broadcast query for host 9, `q9>9` is one to Ethernet address ...9,
/// and `3>9` is packet 3 to that address.
fn name(port: usize, p: &Packet) -> String {
    let frame = Ethernet2Slice::from_slice_without_fcs(p.data()).unwrap();
    assert_eq!((frame.source(), p.mac_offset()), (ME, Some(0)));
    let d = frame.destination();
    if frame.ether_type() == etherparse::EtherType::ARP {
        let arp = ArpPacketSlice::from_slice(frame.payload_slice()).unwrap();
        assert_eq!((port, p.len(), arp.operation()), (1, 42, ArpOperation::REQUEST));
        assert_eq!((arp.sender_hw_addr(), arp.sender_protocol_addr()), (&ME[..], &[10, 0, 0, 1][..]));
        let unicast = if d == [255; 6] { String::new() } else { format!(">{}", d[5]) };
        return format!("q{}{unicast}", arp.target_protocol_addr()[3]);
    }
    assert_eq!((port, frame.ether_type(), p.len()), (0, etherparse::EtherType::IPV4, 34));
    format!("{}>{}", p.data()[14], d[5])
}
fn names(out: Vec<(usize, Packet)>) -> String {
    out.iter().map(|(port, p)| name(*port, p)).collect::<Vec<_>>().join(" ")
}
fn sent(kit: &mut Kit<ArpQuerier>, packets: impl IntoIterator<Item = Packet>) -> String {
    names(kit.push(0, packets))
}

#[test]
fn packets_wait_for_the_reply_and_keep_their_order() {
    let mut k = kit("");
    assert_eq!(sent(&mut k, [to(host(9), 1), to(host(9), 2), to(host(8), 3)]), "q9 q8");
    assert_eq!((k.read("length").unwrap(), k.read("count").unwrap()), ("3".into(), "2".into()));
    assert!(k.read("table").unwrap().starts_with("10.0.0.9 0 FF-FF-FF-FF-FF-FF 0.0"));
    assert_eq!(names(k.push(1, [reply(host(9), 9)])), "1>9 2>9");
    assert_eq!(sent(&mut k, [to(host(9), 4), to(host(8), 5), to(host(9), 6)]), "4>9 6>9");
    assert_eq!(names(k.push(1, [reply(host(8), 8)])), "3>8 5>8");
    assert_eq!(sent(&mut k, [to(host(8), 7)]), "7>8");
    assert_eq!(k.read("stats").unwrap(), "0 packets killed\n2 ARP queries sent\n");
    assert_eq!((k.read("queries").unwrap(), k.read("responses").unwrap()), ("2".into(), "2".into()));
    assert_eq!((k.dropped(Reason::Consumed), k.all_dropped()), (2, 2));
    assert!(k.read("table").unwrap().contains("10.0.0.8 1 02-00-00-00-00-08 0.0"));
    // A changed address is used immediately. It is also queried, because it may be forged.
    k.push(1, [reply(host(9), 7)]);
    assert_eq!(sent(&mut k, [to(host(9), 1)]), "1>7 q9");
}

#[test]
fn one_output_takes_the_query_first() {
    let mut k = Kit::<ArpQuerier>::with_ports(&format!("{CONFIG}, POLL_TIMEOUT 1"), 2, 1).unwrap();
    let out = k.push(0, [to(host(9), 4)]);
    assert_eq!((out.len(), out[0].0, out[0].1.len()), (1, 0, 42));
    assert_eq!((out[0].1.timestamp(), out[0].1.anno::<2>(anno::VLAN)), (4, [0, 4]), "as the packet's");
    k.push(1, [reply(host(9), 9)]);
    k.at(2 * S);
    let lengths: Vec<usize> = k.push(0, [to(host(9), 5)]).iter().map(|o| o.1.len()).collect();
    assert_eq!(lengths, [42, 34]);
}

#[test]
fn queries_are_paced() {
    let mut k = kit("");
    // Four packets a second: each of the first ten causes a query, until 2.25 s. Then there is one query per
    // second.
    let mut times = Vec::new();
    for i in 0..60 {
        k.at(i * S / 4);
        if sent(&mut k, [to(host(9), 1)]).starts_with('q') {
            times.push(i);
        }
    }
    assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57]);
    let mut k = kit("");
    let count = (0..50).filter(|i| {
        k.at(i * S / 50);
        !sent(&mut k, [to(host(9), 1)]).is_empty()
    });
    assert_eq!(count.count(), 10, "one per 100 ms");
}

#[test]
fn old_addresses_are_asked_for_again_and_then_forgotten() {
    for (more, query) in [(", BROADCAST_POLL true", "q9"), ("", "q9>9")] {
        let mut k = kit(&format!(", TIMEOUT 10, POLL_TIMEOUT 4{more}"));
        k.push(1, [reply(host(9), 9)]);
        k.at(3 * S);
        assert_eq!(sent(&mut k, [to(host(9), 1)]), "1>9");
        k.at(4 * S + 1000);
        assert_eq!(sent(&mut k, [to(host(9), 2), to(host(9), 3)]), format!("2>9 3>9 {query}"));
        k.at(4 * S + S / 20);
        assert_eq!(sent(&mut k, [to(host(9), 4)]), "4>9");
        k.at(4 * S + S / 5);
        assert_eq!(sent(&mut k, [to(host(9), 5)]), format!("5>9 {query}"));
        k.at(10 * S + 1000);
        assert_eq!(sent(&mut k, [to(host(9), 6)]), "q9", "forgotten");
        k.push(1, [reply(host(9), 9)]);
        assert_eq!(sent(&mut k, [to(host(9), 7)]), "7>9");
    }
    let mut k = kit(", TIMEOUT 0, POLL_TIMEOUT 0");
    k.push(1, [reply(host(9), 9)]);
    k.at(100_000 * S);
    assert_eq!(sent(&mut k, [to(host(9), 1)]), "1>9");
    assert_eq!(k.next_timer(), None);
}

#[test]
fn what_waits_too_long_is_dropped_by_the_timer() {
    let mut k = kit(", TIMEOUT 5");
    sent(&mut k, [to(host(9), 1), to(host(9), 2)]);
    k.at(S);
    sent(&mut k, [to(host(8), 1)]);
    k.expire().unwrap();
    assert_eq!((k.read("length").unwrap(), k.dropped(Reason::ArpTimeout)), ("1".into(), 2));
    k.expire().unwrap();
    assert_eq!((k.read("count").unwrap(), k.dropped(Reason::ArpTimeout)), ("0".into(), 3));
    assert!(k.expire().is_none());
    assert_eq!(
        (k.read("drops").unwrap(), k.read("stats").unwrap().lines().next().unwrap()),
        ("0".into(), "3 packets killed")
    );
}

#[test]
fn what_nobody_answers_for_is_given_up() {
    let mut k = Kit::<ArpQuerier>::with_ports(CONFIG, 2, 3).unwrap();
    /// Returns the numbers of the packets on output 2. Fails if one of these packets has changed.
    fn given_up(out: Vec<(usize, Packet)>) -> Vec<u8> {
        let mine = out.iter().filter(|o| o.0 == 2);
        mine.map(|(_, p)| {
            assert_eq!((p.data(), p.dst_ip() >> 8), (&[p.data()[0]; 20][..], host(0) >> 8));
            p.data()[0]
        })
        .collect()
    }
    k.push(1, [reply(host(5), 5)]);
    assert_eq!(sent(&mut k, [to(host(9), 1)]), "q9");
    k.at(S);
    assert_eq!(sent(&mut k, [to(host(9), 2), to(host(8), 3), to(host(7), 4)]), "q9 q8 q7");
    k.at(2 * S);
    assert_eq!(names(k.push(1, [reply(host(7), 7)])), "4>7");
    // All packets that wait for an address are given up three seconds after the first of them came.
    k.at(3 * S - S / 10);
    // The clock of tests advances a little whenever it is read, so times are compared in units of 10 ms.
    let next = |k: &Kit<ArpQuerier>| k.next_timer().map(|t| t / (S / 100));
    assert_eq!(next(&k), Some(300));
    assert_eq!(given_up(k.expire().unwrap()), [1, 2]);
    assert_eq!((k.read("length").unwrap(), k.read("count").unwrap()), ("1".into(), "4".into()));
    // The host is queried at the same pace as before, and new packets wait for three seconds again.
    k.at(3 * S + S / 50);
    assert_eq!(sent(&mut k, [to(host(9), 5)]), "q9");
    k.at(3 * S + S / 20);
    assert_eq!(sent(&mut k, [to(host(9), 6)]), "");
    assert_eq!((next(&k), given_up(k.expire().unwrap())), (Some(400), vec![3]));
    assert_eq!((next(&k), given_up(k.expire().unwrap())), (Some(602), vec![5, 6]));
    // Known hosts stay known, and packets that get a reply are not given up.
    assert_eq!(sent(&mut k, [to(host(9), 7)]), "q9");
    assert_eq!(names(k.push(1, [reply(host(9), 9)])), "7>9");
    k.at(20 * S);
    assert_eq!(sent(&mut k, [to(host(5), 8), to(host(7), 9), to(host(9), 10)]), "8>5 9>7 10>9");
    assert_eq!((k.dropped(Reason::ArpTimeout), k.read("length").unwrap()), (0, "0".into()));
    // With many addresses that have no host, the capacity of the table bounds the waiting packets.
    let mut k = Kit::<ArpQuerier>::with_ports(&format!("{CONFIG}, ENTRY_CAPACITY 16"), 2, 3).unwrap();
    for i in 0..2000 {
        k.at(i);
        k.push(0, [to(0x0a01_0000 + i as u32, 1)]);
    }
    k.at(4 * S);
    let kept: usize = k.read("length").unwrap().parse().unwrap();
    assert!(kept <= 16, "{kept}");
}

#[test]
fn a_host_is_back_at_once_when_others_have_claimed_its_address() {
    let mut k = kit("");
    sent(&mut k, [to(host(9), 1)]);
    k.push(1, [reply(host(9), 9)]);
    k.at(S);
    // After a flood of forged replies, a packet causes a query that is broadcast, not sent to the forger.
    (0..50).for_each(|i| drop(k.push(1, [reply(host(9), 100 + i % 2)])));
    assert_eq!(sent(&mut k, [to(host(9), 2), to(host(9), 3)]), "2>101 3>101 q9");
    assert_eq!(names(k.push(1, [reply(host(9), 9)])), "");
    assert_eq!(sent(&mut k, [to(host(9), 4)]), "4>9");
    // The true reply changed the address too, so a second ARP packet must claim this address to confirm it.
    k.at(S + S / 5);
    assert_eq!(sent(&mut k, [to(host(9), 5)]), "5>9 q9");
    k.push(1, [reply(host(9), 9)]);
    k.at(S + S / 2);
    assert_eq!(sent(&mut k, [to(host(9), 6)]), "6>9");
    // Two hosts that claim the same address do not cause more frequent queries.
    k.push(1, [reply(host(9), 8)]);
    let mut queries = 0;
    for i in 0..600 {
        k.at(2 * S + i * S / 50);
        if sent(&mut k, [to(host(9), 7)]).ends_with("q9") {
            queries += 1;
            k.push(1, [reply(host(9), 9), reply(host(9), 8)]);
        }
    }
    assert!((15..=22).contains(&queries), "{queries}");
}

#[test]
fn a_host_with_a_new_ethernet_address_is_found() {
    let mut k = kit(", POLL_TIMEOUT 4");
    k.push(1, [reply(host(9), 9)]);
    let mut asked = Vec::new();
    for i in 0..6 {
        k.at(4 * S + S / 100 + i * S / 8);
        asked.push(sent(&mut k, [to(host(9), 1)]));
    }
    assert_eq!(asked, ["1>9 q9>9", "1>9 q9>9", "1>9 q9", "1>9 q9", "1>9 q9", "1>9 q9"]);
    k.push(1, [reply(host(9), 8)]);
    assert!(sent(&mut k, [to(host(9), 2)]).starts_with("2>8"));
    // The host's own query for another host is enough to learn its new address.
    let mut k = kit("");
    k.push(1, [reply(host(9), 9)]);
    k.push(1, [request(host(9), 7, host(50))]);
    assert!(sent(&mut k, [to(host(9), 3)]).starts_with("3>7"));
}

#[test]
fn nothing_is_learnt_that_was_not_asked_for() {
    let foreign = 0x0b00_0009;
    let to_other = |ip: u32| {
        let mut d = reply(ip, 9).data().to_vec();
        d[41] = 77;
        packet(&d)
    };
    let mut k = kit("");
    let about =
        [reply(foreign, 9), to_other(host(9)), request(host(9), 9, host(50)), request(foreign, 9, host(1))];
    assert!(k.push(1, about).is_empty());
    assert_eq!(
        (k.read("count").unwrap(), k.dropped(Reason::BadArp)),
        ("0".into(), 2),
        "requests are not wrong"
    );
    assert_eq!(k.dropped(Reason::Consumed), 2);
    // Addresses are learnt from ARP packets to this host, if the sender is in its subnet and is not this
    // host.
    k.push(1, [reply(host(9), 9), request(host(8), 8, host(1)), reply(host(1), 66)]);
    assert_eq!(sent(&mut k, [to(host(9), 1), to(host(8), 2)]), "1>9 2>8");
    assert_eq!((k.read("count").unwrap(), k.dropped(Reason::BadArp)), ("2".into(), 3));
    assert_eq!(k.read("responses").unwrap(), "1");
    // A queried address is learnt from any reply, even one to another host or from another subnet.
    assert_eq!(sent(&mut k, [to(host(7), 3), to(foreign, 4)]), "q7 q9");
    assert_eq!(names(k.push(1, [to_other(host(7)), reply(foreign, 9)])), "3>9 4>9");
    // Without a subnet every neighbour is local.
    let mut k = Kit::<ArpQuerier>::with_ports("10.0.0.1, 02-00-00-00-00-01", 2, 2).unwrap();
    k.push(1, [reply(foreign, 9)]);
    assert_eq!(k.read("count").unwrap(), "1");
}

#[test]
fn destinations_without_query() {
    let mut k = kit("");
    let out = sent(
        &mut k,
        [to(u32::MAX, 1), to(host(255), 2), to(0xe081_0203, 3), to(host(255), 4), to(0, 5), to(0, 6)],
    );
    assert_eq!(out, "1>255 2>255 3>3 4>255");
    let p = &k.push(0, [to(0xe081_0203, 3)])[0].1;
    assert_eq!(p.data()[..6], [1, 0, 0x5e, 1, 2, 3]);
    assert_eq!((k.dropped(Reason::NoDestination), k.read("drops").unwrap()), (2, "2".into()));
    assert_eq!(k.messages(), ["e :: ARPQuerier: would query for 0.0.0.0; missing dest IP addr annotation?"]);
    k.write("broadcast", "10.0.0.99").unwrap();
    assert_eq!(sent(&mut k, [to(host(255), 1), to(host(99), 2)]), "2>255 q255");
    assert_eq!(k.read("broadcast").unwrap(), "10.0.0.99");
}

#[test]
fn what_is_not_a_reply_is_dropped() {
    let good = reply(host(9), 9).data()[..42].to_vec();
    let mut k = kit("");
    sent(&mut k, [to(host(9), 1)]);
    let changed = [(12, 9), (14, 1), (16, 9), (18, 7), (19, 5), (21, 4), (21, 3), (22, 3), (28, 224)];
    let bad = changed.iter().map(|&(i, v)| {
        let mut d = good.clone();
        d[i] = v;
        d
    });
    let all: Vec<Vec<u8>> = bad.chain((0..42).map(|n| good[..n].to_vec())).collect();
    for d in &all {
        assert!(k.push(1, [packet(d)]).is_empty(), "{d:?}");
    }
    assert_eq!((k.dropped(Reason::BadArp), k.read("responses").unwrap()), (all.len() as u64, "0".into()));
    assert_eq!(names(k.push(1, [packet(&good)])), "1>9");
}

#[test]
fn handlers_change_the_table() {
    let mut k = kit("");
    sent(&mut k, [to(host(9), 1)]);
    k.write("insert", "10.0.0.9 02-00-00-00-00-09").unwrap();
    assert_eq!(k.read("length").unwrap(), "1", "what waits stays");
    assert_eq!(sent(&mut k, [to(host(9), 2)]), "1>9 2>9");
    k.write("delete", "10.0.0.9").unwrap();
    assert_eq!(sent(&mut k, [to(host(9), 3)]), "q9");
    k.write("clear", "").unwrap();
    assert_eq!((k.dropped(Reason::Cleared), k.read("count").unwrap()), (1, "0".into()));
    k.write("ipaddr", "10.0.0.77").unwrap();
    assert_eq!(k.read("ipaddr").unwrap(), "10.0.0.77");
    let q = k.push(0, [to(host(9), 1)]).pop().unwrap().1;
    assert_eq!(q.data()[28..32], [10, 0, 0, 77]);
    assert!(k.write("ipaddr", "x").is_err() && k.read("nope").is_err() && k.write("nope", "").is_err());
}

#[test]
fn every_batch_size_gives_the_same() {
    let run = |size: usize| {
        let mut k = kit(", CAPACITY 20, ENTRY_CAPACITY 12, CAPACITY_SLIM_FACTOR 12");
        let mut out = [Vec::new(), Vec::new()];
        let mut seed = 7u32;
        for round in 0..40 {
            let mut packets = Vec::new();
            for _ in 0..size.max(32) / size.max(1) * size {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                packets.push((host((seed >> 24) as u8 % 13), (seed >> 16) as u8));
            }
            for part in packets.chunks(size) {
                for (port, p) in k.push(0, part.iter().map(|&(ip, n)| to(ip, n))) {
                    out[port].push(name(port, &p));
                }
            }
            let n = round % 13;
            for (port, p) in k.push(1, [reply(host(n), n)]) {
                out[port].push(name(port, &p));
            }
        }
        let held: u64 = k.read("length").unwrap().parse().unwrap();
        let replies = k.dropped(Reason::Consumed) + k.dropped(Reason::BadArp);
        assert_eq!((replies, k.dropped(Reason::BadArp)), (40, 3), "the own address is not learnt");
        let through = out[0].len() as u64 + held + k.all_dropped() - replies;
        assert_eq!(through, 40 * 32, "in = out + dropped + held");
        (out, k.all_dropped())
    };
    let one = run(1);
    assert!(one.0[0].len() > 200 && one.0[1].len() > 20, "{one:?}");
    for size in [2, 4, 32] {
        assert_eq!(run(size), one, "{size}");
    }
}

#[test]
fn arguments() {
    let fails = |c: &str| Kit::<ArpQuerier>::new(c).err().unwrap().join(" ");
    assert_eq!(fails("10.0.0.1"), "ETH: required argument missing");
    assert_eq!(fails("nobody"), "IP: parse error");
    let broadcast = |c: &str| Kit::<ArpQuerier>::new(c).unwrap().read("broadcast").unwrap();
    assert_eq!(broadcast("10.0.0.1, 2:0:0:0:0:1"), "255.255.255.255");
    assert_eq!(broadcast("10.0.0.1/31, 2:0:0:0:0:1"), "255.255.255.255");
    assert_eq!(broadcast("10.0.0.1/8, 2:0:0:0:0:1"), "10.255.255.255");
    assert_eq!(broadcast("10.0.0.1/8, 2:0:0:0:0:1, BROADCAST 1.2.3.4"), "1.2.3.4");
    let define = || {
        let mut n = Names::new();
        let a = n.define_addresses("", "eth0");
        (a.ip, a.net, a.ether) = (Some([10, 0, 0, 1]), Some(([10, 0, 0, 0], [255, 255, 0, 0])), Some(ME));
        n.define_element("t", 4, "ARPTable");
        n.define_element("q", 5, "Queue");
        n
    };
    let mut k = Kit::<ArpQuerier>::with_names("eth0", 2, 2, define()).unwrap();
    assert_eq!(
        (k.read("ipaddr").unwrap(), k.read("broadcast").unwrap()),
        ("10.0.0.1".into(), "10.0.255.255".into())
    );
    let k = Kit::<ArpQuerier>::with_names("eth0, TABLE t, CAPACITY 5", 2, 2, define()).unwrap();
    assert!(k.warnings()[0].starts_with("TABLE: capacities"));
    let wrong = Kit::<ArpQuerier>::with_names("eth0, TABLE q", 2, 2, define()).err().unwrap();
    assert_eq!(wrong, ["TABLE: 'q' is of class Queue, not ARPTable"]);
}

#[test]
fn counts_move_at_a_hot_swap() {
    let counts = |k: &mut Kit<ArpQuerier>| ["queries", "responses", "drops"].map(|h| k.read(h).unwrap());
    let (mut old, mut new) = (kit(""), kit(""));
    assert_eq!(sent(&mut old, [to(host(9), 1), to(host(8), 2), to(0, 3)]), "q9 q8");
    assert_eq!(names(old.push(1, [reply(host(9), 9), reply(host(8), 8), reply(host(7), 7)])), "1>9 2>8");
    assert_eq!((counts(&mut old), old.messages().len()), (["2", "3", "1"].map(String::from), 1));
    assert_eq!(sent(&mut new, [to(host(6), 4)]), "q6");
    new.take_state_of(&mut old).unwrap();
    assert_eq!(counts(&mut new), ["3", "3", "1"]);
    assert_eq!(counts(&mut old), ["0", "0", "0"], "they count once");
    // The message about the packet without a destination was printed before the swap, so it is not printed again.
    assert_eq!((sent(&mut new, [to(0, 5)]), new.messages()), (String::new(), Vec::new()));
    // A querier whose own address differs takes over the counts, but not the entries.
    let mut other = Kit::<ArpQuerier>::with_ports("10.0.0.2/24, 02-00-00-00-00-01", 2, 2).unwrap();
    other.take_state_of(&mut new).unwrap();
    assert_eq!(
        (counts(&mut other), other.read("count").unwrap()),
        (["3", "3", "2"].map(String::from), "0".into())
    );
}

#[test]
fn packets_held_behind_others_follow_them_after_a_hot_swap() {
    // Packet 2 is held, because packet 1 is still being released through one of several workers.
    let waiting = |config: &str| {
        let mut k = Kit::<ArpQuerier>::with_ports(config, 2, 2).unwrap();
        k.element.workers = true;
        assert_eq!(sent(&mut k, [to(host(9), 1)]), "q9");
        assert_eq!(names(k.push(1, [reply(host(9), 9)])), "1>9");
        assert_eq!(sent(&mut k, [to(host(9), 2)]), "");
        k
    };
    let config = format!("{CONFIG}, TIMEOUT 0");
    let mut k = waiting(&config);
    assert_eq!(names(k.expire().unwrap()), "2>9");
    assert_eq!((names(k.expire().unwrap()), k.next_timer()), (String::new(), None));
    assert_eq!(sent(&mut k, [to(host(9), 3)]), "3>9");
    let (mut old, mut new) = (waiting(&config), Kit::<ArpQuerier>::with_ports(&config, 2, 2).unwrap());
    new.take_state_of(&mut old).unwrap();
    old.handed_over();
    assert_eq!((old.read("length").unwrap(), new.read("length").unwrap()), ("0".into(), "1".into()));
    assert_eq!(names(new.expire().unwrap()), "2>9");
    assert_eq!((new.next_timer(), new.read("length").unwrap()), (None, "0".into()));
    // Nothing is being released any more, so no timer is set.
    let mut next = Kit::<ArpQuerier>::with_ports(&config, 2, 2).unwrap();
    next.take_state_of(&mut new).unwrap();
    assert_eq!((next.next_timer(), sent(&mut next, [to(host(9), 4)])), (None, "4>9".into()));
    // A querier whose own address differs takes over no packets.
    let (mut old, other) = (waiting(&config), config.replace("10.0.0.1", "10.0.0.2"));
    let mut other = Kit::<ArpQuerier>::with_ports(&other, 2, 2).unwrap();
    other.take_state_of(&mut old).unwrap();
    assert_eq!((other.next_timer(), old.read("length").unwrap()), (None, "1".into()));
}

/// Packets that have waited too long when a frame arrives are dropped with their own reason, even if nothing is learnt
/// from the frame. (Kits check that no packet is missing.)
#[test]
fn packets_given_up_beside_a_useless_reply_are_counted() {
    let mut k = kit(", TIMEOUT 10");
    assert_eq!(sent(&mut k, [to(host(9), 1), to(host(9), 2)]), "q9");
    k.at(11 * S);
    let of_another_subnet = reply(0x0b00_0007, 7);
    assert!(k.push(1, [of_another_subnet]).is_empty());
    assert_eq!((k.dropped(Reason::ArpTimeout), k.dropped(Reason::BadArp)), (2, 1));
}

#[test]
fn learnt_entries_expire_without_another_packet() {
    let mut k = kit(", TIMEOUT 10");
    assert_eq!(k.next_timer(), None);
    k.push(1, [reply(host(9), 9)]);
    assert_eq!(k.next_timer().map(|t| t / S), Some(10));
    k.expire().unwrap();
    assert!(k.read("table").unwrap().contains(" 0 02-00-00-00-00-09 "));
    assert_eq!(k.next_timer().map(|t| t / S), Some(21));
    k.expire().unwrap();
    assert_eq!((k.read("count").unwrap(), k.next_timer()), ("0".into(), None));
}
