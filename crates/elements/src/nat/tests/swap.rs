// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that flows move to the rewriter of another router.

use super::{Rig, show, sorted, tcp, udp};
use crate::nat::ip_addr_rewriter::IpAddrRewriter;
use crate::nat::ip_rewriter::IpRewriter;
use crate::nat::round_robin_ip_mapper::RoundRobinIpMapper;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::kit::Kit;
use castanet_element::prelude::*;

const S: i64 = 1_000_000_000;

fn client(i: u32) -> ([u8; 4], u16) {
    let [_, a, b, c] = i.to_be_bytes();
    ([10, a, b, c], 5000 + (i % 1000) as u16)
}

fn forward(kit: &mut Kit<IpRewriter>, i: u32) -> String {
    let (src, sport) = client(i);
    let out = kit.push(0, [udp(src, sport, [2, 0, 0, 2], 53)]);
    out.first().map_or(String::new(), |(port, p)| format!("{port} {}", show(p)))
}

fn take<T: Build + Element>(new: &mut Kit<T>, old: &mut Kit<T>) {
    new.take_state_of(old).unwrap();
}

fn kit(config: &str) -> Kit<IpRewriter> {
    Kit::with_ports(config, 2, 4).unwrap()
}

const USUAL: &str = "pattern 9.9.9.9 1024-65535 - - 0 1, drop";

#[test]
fn all_flows_move_with_their_times_and_back() {
    for second in [
        USUAL,
        // The following specifications differ in inputs, outputs or timeouts, so each flow is examined.
        "drop, pattern 9.9.9.9 1024-65535 - - 2 3",
        "pattern 9.9.9.0/24 1-65535# - - 2 1, drop, UDP_TIMEOUT 301",
    ] {
        let (mut old, mut new) = (kit(USUAL), kit(second));
        let said: Vec<_> = (0..500).map(|i| forward(&mut old, i)).collect();
        old.at(100 * S);
        new.at(100 * S);
        old.push(0, [tcp(([1, 1, 1, 1], 7), ([2, 2, 2, 2], 80), "S", 1, 0, b"")]);
        let before = sorted(&old.read("udp_table").unwrap()).join("\n");
        take(&mut new, &mut old);
        assert_eq!(old.read("udp_table").unwrap(), "");
        assert_eq!(old.read("table_size").unwrap(), "0");
        assert_eq!(new.read("table_size").unwrap(), "1002");
        assert_eq!(new.read("tcp_table").unwrap().lines().count(), 2);
        assert!(new.messages().is_empty() && new.next_timer().is_some());
        let out = if second == USUAL { "0" } else { "2" };
        for (i, said) in said.iter().enumerate() {
            assert_eq!(forward(&mut new, i as u32)[1..], said[1..], "{second}");
            assert!(forward(&mut new, i as u32).starts_with(out));
        }
        if second == USUAL {
            let (a, b) = (before.replace("exp200", ""), new.read("udp_table").unwrap().replace("exp300", ""));
            assert_eq!(a, sorted(&b).join("\n"), "what was refreshed meanwhile is the same otherwise");
        }
        // The reply to a flow reaches its client.
        let port = said[7].split([':', ' ']).nth(2).unwrap().parse().unwrap();
        let back = new.push(1, [udp([2, 0, 0, 2], 53, [9, 9, 9, 9], port)]);
        assert_eq!(show(&back[0].1).split(" > ").nth(1), Some("10.0.0.7:5007"));
        take(&mut old, &mut new);
        assert_eq!(
            (old.read("table_size").unwrap(), new.read("table_size").unwrap()),
            ("1002".into(), "0".into())
        );
        assert_eq!(old.read("patterns").unwrap(), "9.9.9.9 1024-65535 - - [501]\n<drop>\n");
        for (i, said) in said.iter().enumerate() {
            assert_eq!(&forward(&mut old, i as u32), said);
        }
        // The flows keep the times of their last packets.
        old.at(399 * S);
        assert_eq!(old.read("udp_table").unwrap().lines().count(), 1000);
        old.at(401 * S);
        assert_eq!(old.read("udp_table").unwrap(), "");
    }
}

#[test]
fn flows_of_a_pattern_that_is_gone_are_told_of_and_come_back_when_the_swap_fails() {
    let both = "pattern 9.9.9.9 1024-65535 - - 0 1, pattern 8.8.8.8 2000-2001# - - 0 1";
    let (mut old, mut new) = (kit(both), kit(USUAL));
    for i in 0..30 {
        forward(&mut old, i);
    }
    for i in 0..3 {
        old.push(1, [udp([7, 7, 7, i], 9, [2, 0, 0, 2], 53)]);
    }
    assert_eq!(old.read("mapping_failures").unwrap(), "1");
    let before = old.read("udp_table").unwrap();
    take(&mut new, &mut old);
    assert_eq!(
        new.messages(),
        [
            "While hot-swapping state into 'e :: IPRewriter':\n  warning: 2 flows lost (no input has such a pattern)"
        ]
    );
    assert_eq!(new.read("patterns").unwrap(), "9.9.9.9 1024-65535 - - [30]\n<drop>\n");
    assert_eq!(
        (new.read("mapping_failures").unwrap(), old.read("mapping_failures").unwrap()),
        ("1".into(), "0".into())
    );
    // Taking over from another replica finds nothing more, because all replicas share one store.
    take(&mut new, &mut old);
    assert!(new.messages().is_empty());
    assert_eq!(new.read("table_size").unwrap(), "60");
    take(&mut old, &mut new);
    assert_eq!(sorted(&old.read("udp_table").unwrap()), sorted(&before));
    assert_eq!(old.read("patterns").unwrap(), "9.9.9.9 1024-65535 - - [30]\n8.8.8.8 2000-2001 - - [2]\n");
    assert_eq!(old.read("mapping_failures").unwrap(), "1");
}

#[test]
fn ports_in_use_stay_in_use() {
    let config = "pattern 9.9.9.9 1024-1027# - - 0 1, drop";
    let (mut old, mut new) = (kit(config), kit(config));
    let a: Vec<_> = (0..2).map(|i| forward(&mut old, i)).collect();
    take(&mut new, &mut old);
    let b: Vec<_> = (2..5).map(|i| forward(&mut new, i)).collect();
    assert_eq!(
        [a, b].concat()[..4],
        ["1024", "1025", "1026", "1027"].map(|p| format!("0 9.9.9.9:{p} > 2.0.0.2:53"))
    );
    assert_eq!(new.dropped(Reason::PatternFull), 1);
}

#[test]
fn fewer_than_there_are() {
    let (mut old, mut new) = (kit(USUAL), kit("pattern 9.9.9.9 1024-65535 - - 0 1, drop, CAPACITY 10"));
    let said: Vec<_> = (0..20).map(|i| forward(&mut old, i)).collect();
    take(&mut new, &mut old);
    // The oldest flows make room once their guarantee is over.
    assert_eq!(forward(&mut new, 99), "");
    new.at(6 * S);
    assert_eq!(&forward(&mut new, 19), &said[19]);
    assert_ne!(forward(&mut new, 99), "");
    assert_eq!(new.read("size").unwrap(), "10");
}

#[test]
fn rewriters_that_share_a_capacity_move_together_or_alone() {
    let classes = [("a", "IPRewriter"), ("b", "UDPRewriter")];
    let flows = |rig: &mut Rig, a: &mut IpRewriter, b: &mut UdpRewriter| {
        (sorted(&rig.read("a", a, "udp_table")).join("\n"), sorted(&rig.read("b", b, "table")).join("\n"))
    };
    for (order, pattern) in [
        (["a", "b"], "pattern 8.8.8.8 1024-65535 - - 0 1"),
        (["b", "a"], "pattern 8.8.8.8 1024-65535 - - 0 1"),
        (["a", "b"], "pattern 8.8.8.8 1000-65535 - - 0 1"),
    ] {
        let make = |order: [&str; 2], pattern: &str| {
            let mut rig = Rig::new(&classes);
            let mut a: IpRewriter = rig.build("a", USUAL, (2, 2)).unwrap();
            let mut b: UdpRewriter = rig.build("b", &format!("{pattern}, CAPACITY a"), (1, 2)).unwrap();
            for name in order {
                // The rewriter that is initialised first joins the store first.
                match name {
                    "a" => rig.init("a", &mut a).unwrap(),
                    _ => rig.init("b", &mut b).unwrap(),
                }
            }
            (rig, a, b)
        };
        let (mut rig1, mut a1, mut b1) = make(["a", "b"], "pattern 8.8.8.8 1024-65535 - - 0 1");
        let (mut rig2, mut a2, mut b2) = make(order, pattern);
        for i in 0..40 {
            let (src, sport) = client(i);
            rig1.push("a", &mut a1, 0, vec![udp(src, sport, [2, 0, 0, 2], 53)]);
            rig1.push("b", &mut b1, 0, vec![udp(src, sport, [2, 0, 0, 2], 53)]);
        }
        let before = flows(&mut rig1, &mut a1, &mut b1);
        assert_eq!(before.0.lines().count() + before.1.lines().count(), 160);
        rig2.with("a", 2, |cx| a2.take_state(&mut a1, cx)).0.unwrap();
        rig2.with("b", 2, |cx| b2.take_state(&mut b1, cx)).0.unwrap();
        assert_eq!(flows(&mut rig2, &mut a2, &mut b2), before);
        assert_eq!(flows(&mut rig1, &mut a1, &mut b1), (String::new(), String::new()));
        rig1.with("b", 2, |cx| b1.take_state(&mut b2, cx)).0.unwrap();
        rig1.with("a", 2, |cx| a1.take_state(&mut a2, cx)).0.unwrap();
        assert_eq!(flows(&mut rig1, &mut a1, &mut b1), before);
    }
}

#[test]
fn mappers_go_on_with_the_next() {
    let build = || {
        let mut rig = Rig::new(&[("m", "RoundRobinIPMapper"), ("rw", "IPAddrRewriter")]);
        let config = "9.9.9.1 - - - 0 1, 9.9.9.2 - - - 0 1, 9.9.9.3 - - - 0 1";
        let mut m: RoundRobinIpMapper = rig.build("m", config, (0, 0)).unwrap();
        let mut rw: IpAddrRewriter = rig.build("rw", "m, drop", (2, 2)).unwrap();
        rig.init("m", &mut m).unwrap();
        rig.init("rw", &mut rw).unwrap();
        (rig, m, rw)
    };
    let ((mut rig1, mut m1, mut rw1), (mut rig2, mut m2, mut rw2)) = (build(), build());
    let push = |rig: &mut Rig, rw: &mut IpAddrRewriter, i| {
        let out = rig.push("rw", rw, 0, vec![udp([10, 0, 0, i], 1, [2, 0, 0, 2], 2)]);
        show(&out[0].1).split(':').next().unwrap_or_default().to_string()
    };
    let one: Vec<_> = (0..2).map(|i| push(&mut rig1, &mut rw1, i)).collect();
    rig2.with("m", 0, |cx| m2.take_state(&mut m1, cx)).0.unwrap();
    rig2.with("rw", 0, |cx| rw2.take_state(&mut rw1, cx)).0.unwrap();
    let two: Vec<_> = (0..4).map(|i| push(&mut rig2, &mut rw2, i)).collect();
    assert_eq!([one, two].concat(), ["9.9.9.1", "9.9.9.2", "9.9.9.1", "9.9.9.2", "9.9.9.3", "9.9.9.1"]);
}
