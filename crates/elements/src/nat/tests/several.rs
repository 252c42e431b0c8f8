// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests rewriters together with other elements: named patterns, mappers, a shared capacity, several workers.

use super::ports::shown;
use super::*;
use crate::nat::ip_rewriter::IpRewriter;
use crate::nat::ip_rewriter_patterns::IpRewriterPatterns;
use crate::nat::round_robin_ip_mapper::RoundRobinIpMapper;
use crate::nat::source_ip_hash_mapper::SourceIpHashMapper;
use crate::nat::tcp_rewriter::TcpRewriter;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::run_loop::Internals as _;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const N: [u8; 4] = [9, 9, 9, 9];
const SECOND: i64 = 1_000_000_000;

#[test]
fn names_and_mappers() {
    // Elements are built and initialised before the elements that they refer to.
    let mut rig = Rig::new(&[
        ("rw", "IPRewriter"),
        ("rr", "RoundRobinIPMapper"),
        ("h", "SourceIPHashMapper"),
        ("p", "IPRewriterPatterns"),
        ("q", "Queue"),
    ]);
    let mut rw: IpRewriter = rig.build("rw", "rr, h, pattern out 0 1", (3, 2)).unwrap();
    let mut rr: RoundRobinIpMapper =
        rig.build("rr", "- - 10.0.0.1 80 0 1, - - 10.0.0.2 80 0 1, out 0 1", (0, 0)).unwrap();
    let mut h: SourceIpHashMapper =
        rig.build("h", "50 7, - - 10.0.0.1 80 0 1 1, - - 10.0.0.2 80 0 1 2", (0, 0)).unwrap();
    assert!(rig.init("rw", &mut rw).unwrap_err().to_string().contains("out"), "nobody has defined it");
    let _: IpRewriterPatterns = rig.build("p", "out 9.9.9.9 1024-65535# - -", (0, 0)).unwrap();
    assert!(rig.build::<IpRewriterPatterns>("p", "out 9.9.9.9 -", (0, 0)).is_err(), "twice");
    rig.init("rw", &mut rw).unwrap();
    rig.init("rr", &mut rr).unwrap();
    rig.init("h", &mut h).unwrap();
    let out = rig.push("rw", &mut rw, 0, (0..4).map(|i| udp(A, i, B, 80)).collect());
    assert_eq!(
        shown(&out),
        [
            "0 1.0.0.1:0 > 10.0.0.1:80",
            "0 1.0.0.1:1 > 10.0.0.2:80",
            "0 9.9.9.9:1024 > 2.0.0.2:80",
            "0 1.0.0.1:3 > 10.0.0.1:80"
        ]
    );
    assert_eq!(shown(&rig.push("rw", &mut rw, 2, vec![udp(A, 9, B, 80)])), ["0 9.9.9.9:1025 > 2.0.0.2:80"]);
    // The same client always goes to the same server, and both servers have clients.
    let servers = |rig: &mut Rig, rw: &mut IpRewriter, dport| -> Vec<String> {
        let out = rig.push("rw", rw, 1, (0..40).map(|i| udp([5, 0, 0, i], 5, B, dport)).collect());
        out.iter().map(|(_, p)| format!("{:?}", &p.data()[16..20])).collect()
    };
    let (first, second) = (servers(&mut rig, &mut rw, 81), servers(&mut rig, &mut rw, 82));
    assert_eq!(first, second);
    assert!((5..35).contains(&first.iter().filter(|s| **s == first[0]).count()));
    assert_eq!(
        rig.read("rw", &mut rw, "patterns"),
        "<mapper> [4]\n<mapper> [80]\n9.9.9.9 1024-65535 - - [1]\n"
    );
    assert!(rig.build::<IpRewriter>("rw", "q", (1, 1)).is_err(), "no mapper");
    let mut narrow: IpRewriter = rig.build("rw", "rr", (1, 1)).unwrap();
    assert!(rig.init("rw", &mut narrow).is_err(), "output 1 does not exist");
    for bad in [
        "",
        "0 1, - - - - 0 0 1",
        "5, - - - - 0 0 1",
        "5 5, - - - - 0 1",
        "5 5",
        "5 5, - - - - 0 0 x",
        "99999999 5, - - - - 0 0 1",
        "1048577 5, - - - - 0 0 1",
        "524289 5, - - - - 0 0 1, - - - - 0 0 2",
    ] {
        assert!(rig.build::<SourceIpHashMapper>("h", bad, (0, 0)).is_err(), "{bad}");
    }
    assert!(
        rig.build::<SourceIpHashMapper>("h", "1048576 5, - - - - 0 0 1", (0, 0)).is_ok(),
        "the largest ring"
    );
    assert!(rig.build::<RoundRobinIpMapper>("rr", "", (0, 0)).is_err());
}

#[test]
fn common_capacity() {
    let mut rig =
        Rig::new(&[("a", "UDPRewriter"), ("b", "TCPRewriter"), ("c", "IPRewriter"), ("q", "Queue")]);
    let mut a: UdpRewriter =
        rig.build("a", "pattern 9.9.9.9 1-99# - - 0 1, CAPACITY b, GUARANTEE 0", (1, 2)).unwrap();
    let mut b: TcpRewriter =
        rig.build("b", "pattern 9.9.9.9 1-99# - - 0 1, CAPACITY 3, GUARANTEE 0", (1, 2)).unwrap();
    rig.init("a", &mut a).unwrap();
    rig.init("b", &mut b).unwrap();
    rig.push("a", &mut a, 0, (0..2).map(|i| udp(A, i, B, 9)).collect());
    // All flows have the same timeout. The flows of `a` are older than those of the other rewriter.
    rig.with("a", 0, |cx| {
        let later = cx.now() + SECOND;
        cx.core().clock().jump(later);
    });
    rig.push("b", &mut b, 0, (0..3).map(|i| tcp((A, i), (B, 9), "S", 1, 0, b"")).collect());
    assert_eq!((rig.read("a", &mut a, "size"), rig.read("b", &mut b, "size")), ("3".into(), "3".into()));
    assert_eq!(
        (rig.read("a", &mut a, "table_size"), rig.read("b", &mut b, "table_size")),
        ("0".into(), "6".into())
    );
    assert_eq!(rig.read("a", &mut a, "capacity"), "3");
    assert!(rig.build::<IpRewriter>("c", "drop, CAPACITY q", (1, 1)).is_err());
    let mut c: IpRewriter = rig.build("c", "drop, CAPACITY c", (1, 1)).unwrap();
    assert!(rig.init("c", &mut c).unwrap_err().to_string().contains("circle"));
}

#[test]
fn workers_see_the_same_flows() {
    let mut rig = Rig::new(&[("rw", "IPRewriter")]);
    let mut each: Vec<IpRewriter> = (0..2)
        .map(|_| rig.build("rw", "pattern 9.9.9.9 1024-65535# - - 0 1, drop", (2, 2)).unwrap())
        .collect();
    for e in &mut each {
        rig.init("rw", e).unwrap();
    }
    assert_eq!(
        shown(&rig.push("rw", &mut each[0], 0, vec![udp(A, 1, B, 2)])),
        ["0 9.9.9.9:1024 > 2.0.0.2:2"]
    );
    assert_eq!(
        shown(&rig.push("rw", &mut each[1], 1, vec![udp(B, 2, N, 1024)])),
        ["1 2.0.0.2:2 > 1.0.0.1:1"]
    );
    assert_eq!(rig.read("rw", &mut each[1], "size"), "1");
}
