// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the route table elements.
#![allow(clippy::unwrap_used)]

use super::super::direct_ip_lookup::DirectIpLookup;
use super::super::linear_ip_lookup::LinearIpLookup;
use super::super::radix_ip_lookup::RadixIpLookup;
use super::super::static_ip_lookup::StaticIpLookup;
use castanet_element::kit::{Kit, packet};
use castanet_element::prelude::*;
use castanet_element::random::Random;

fn to(addr: u32) -> Packet {
    let mut p = packet(&addr.to_be_bytes());
    p.set_dst_ip(addr);
    p
}

/// Prefix, length, gateway and output of some nested routes.
const ROUTES: [(u32, u8, u32, usize); 7] = [
    (0x0a000000, 8, 0, 0),
    (0x0a010000, 16, 0x01020304, 1),
    (0x0a010100, 24, 0, 2),
    (0x0a010101, 32, 0x05060708, 0),
    (0x12000000, 7, 0, 2),
    (0x0a018000, 17, 0, 1),
    (0, 0, 0x09090909, 2),
];

fn config() -> String {
    let line = |&(a, l, g, o): &(u32, u8, u32, usize)| {
        let gw = if g == 0 { "-".into() } else { std::net::Ipv4Addr::from_bits(g).to_string() };
        format!("{}/{l} {gw} {o}", std::net::Ipv4Addr::from_bits(a))
    };
    ROUTES.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// Finds the output and the annotation by trying all routes.
fn expected(addr: u32) -> (usize, u32) {
    let matches = |&&(a, l, _, _): &&(u32, u8, u32, usize)| (u64::from(addr ^ a) >> (32 - l)) == 0;
    let &(_, _, g, o) = ROUTES.iter().filter(matches).max_by_key(|r| r.1).unwrap();
    (o, if g == 0 { addr } else { g })
}

fn routes_as_expected<T: Build + Element>() {
    let mut random = Random::new(3, "routes");
    let mut addrs: Vec<u32> = ROUTES.iter().flat_map(|r| [r.0, r.0.wrapping_sub(1), r.0 + 1]).collect();
    addrs.extend((0..300).map(|_| {
        let any = random.next_u64() as u32;
        if random.below(2) == 0 { any } else { 0x0a010000 | any & 0x1ffff }
    }));
    for size in [1, 2, 3, 32, 256] {
        let mut kit = Kit::<T>::with_ports(&config(), 1, 3).unwrap();
        let mut got = vec![Vec::new(); 3];
        for some in addrs.chunks(size) {
            for (port, p) in kit.push(0, some.iter().map(|&a| to(a))) {
                let addr = u32::from_be_bytes(*p.data().first_chunk().unwrap());
                got[port].push((addr, p.dst_ip()));
            }
        }
        for (port, got) in got.iter().enumerate() {
            let all = addrs.iter().map(|&a| (a, expected(a)));
            let want: Vec<_> = all.filter(|w| w.1.0 == port).map(|(a, (_, gw))| (a, gw)).collect();
            assert_eq!(*got, want, "batches of {size}, output {port}");
        }
    }
}

#[test]
fn longest_prefix_wins() {
    routes_as_expected::<StaticIpLookup>();
    routes_as_expected::<LinearIpLookup>();
    routes_as_expected::<RadixIpLookup>();
    routes_as_expected::<DirectIpLookup>();
}

#[test]
fn one_output_in_one_batch() {
    let mut kit = Kit::<StaticIpLookup>::with_ports("1.0.0.0/8 0, 2.0.0.0/8 9.9.9.9 0, 0/0 1", 1, 2).unwrap();
    let out = kit.push(0, [to(0x01000001), to(0x02000001), to(0x01000002)]);
    let got: Vec<_> = out.iter().map(|(o, p)| (*o, p.dst_ip())).collect();
    assert_eq!(got, [(0, 0x01000001), (0, 0x09090909), (0, 0x01000002)]);
}

fn without_route<T: Build + Element>(label: &str) {
    let mut kit = Kit::<T>::with_ports("1.0.0.0/8 0", 1, 1).unwrap();
    for batch in [1u32, 3, 4] {
        let out = kit.push(0, (0..batch).map(|i| to(0x04000000 + i)));
        assert!(out.is_empty());
    }
    assert_eq!(kit.push(0, [to(0x01000000), to(0x04000000)]).len(), 1);
    assert_eq!(kit.dropped(Reason::NoRoute), 9);
    let messages = kit.messages();
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[2], format!("{label}: no route for 4.0.0.1"));
}

#[test]
fn packets_without_a_route() {
    without_route::<StaticIpLookup>("LinearIPLookup");
    without_route::<LinearIpLookup>("LinearIPLookup");
    without_route::<RadixIpLookup>("IPRouteTable");
    without_route::<DirectIpLookup>("IPRouteTable");
}

fn handlers<T: Build + Element>() {
    let mut kit = Kit::<T>::with_ports("4.0.0.0/8 0, 10.1.0.0/255.255.0.0 1.2.3.4 1", 1, 2).unwrap();
    assert_eq!(kit.read("table").unwrap(), "4.0.0.0/8\t\t-\t\t0\n10.1.0.0/16\t\t1.2.3.4\t\t1\n");
    let lookup = |kit: &mut Kit<T>, a: &str| kit.read_with("lookup", a).unwrap();
    assert_eq!(lookup(&mut kit, "4.9.9.9"), "0");
    assert_eq!(lookup(&mut kit, "10.1.255.255"), "1 1.2.3.4");
    assert_eq!(lookup(&mut kit, "10.2.0.0"), "-1");
    assert!(kit.read_with("lookup", "nowhere").is_err());

    let error = |kit: &mut Kit<T>, h: &str, v: &str| kit.write(h, v).err().unwrap().to_string();
    assert!(matches!(kit.write("add", "4.0.0.0/8 - 1"), Err(HandlerError::Exists(_))));
    assert_eq!(error(&mut kit, "add", "4.0.0.0/8 - 1"), "conflict with existing route '4.0.0.0/8 - 0'");
    assert_eq!(error(&mut kit, "remove", "9.0.0.0/8"), "route '9.0.0.0/8 - -1' not found");
    assert_eq!(error(&mut kit, "remove", "4.0.0.0/8 - 1"), "route '4.0.0.0/8 - 1' not found");
    assert_eq!(error(&mut kit, "add", "9.0.0.0/8 2"), "bad OUTPUT");
    assert_eq!(error(&mut kit, "add", "9.0.0.0/8"), "should be 'ADDR/MASK [GATEWAY] OUTPUT'");
    kit.write("set", "4.0.0.0/8 - 1").unwrap();
    kit.write("add", "5.5.5.5 6.6.6.6 0").unwrap();
    assert_eq!((lookup(&mut kit, "4.0.0.1"), lookup(&mut kit, "5.5.5.5")), ("1".into(), "0 6.6.6.6".into()));
    kit.write("remove", "5.5.5.5").unwrap();
    assert_eq!(lookup(&mut kit, "5.5.5.5"), "-1");

    let before = kit.read("table").unwrap();
    for bad in [
        "add 7.0.0.0/8 0\nremove 4.0.0.0/8\nadd 10.1.0.0/16 0",
        "remove 4.0.0.0/8\nremove 4.0.0.0/8",
        "add 7.0.0.0/8 0\nfoo",
    ] {
        assert!(kit.write("ctrl", bad).is_err());
        assert_eq!(kit.read("table").unwrap(), before, "all or nothing: {bad}");
    }
    kit.write("ctrl", "add 7.0.0.0/8 0\n\nset 7.0.0.0/8 1\nremove 4.0.0.0/8\nadd 4.0.0.0/8 0\n").unwrap();
    assert_eq!((lookup(&mut kit, "7.1.1.1"), lookup(&mut kit, "4.1.1.1")), ("1".into(), "0".into()));
}

#[test]
fn handlers_of_each_class() {
    handlers::<LinearIpLookup>();
    handlers::<RadixIpLookup>();
    let mut kit = Kit::<RadixIpLookup>::with_ports("4.0.0.0/8 0", 1, 1).unwrap();
    kit.write("flush", "").unwrap();
    assert_eq!(kit.read("table").unwrap(), "");
    let mut kit = Kit::<DirectIpLookup>::with_ports("4.0.0.0/8 0, 0/0 1.1.1.1 0", 1, 1).unwrap();
    assert_eq!(kit.read("table").unwrap(), "0.0.0.0/0\t\t1.1.1.1\t\t0\n4.0.0.0/8\t\t-\t\t0\n");
    kit.write("flush", "").unwrap();
    assert_eq!(kit.read_with("lookup", "4.0.0.1").unwrap(), "-1");
}

/// The first of several routes to one prefix is used, and a warning counts the others.
#[test]
fn repeated_routes_of_the_configuration() {
    fn check<T: Build + Element>() {
        for (config, warning) in [
            ("1.0.0.0/8 7.7.7.7 0, 2.0.0.0/8 1", None),
            ("1.0.0.0/8 7.7.7.7 0, 1.0.0.0/8 1, 2.0.0.0/8 1", Some("1 route replaced by later versions")),
            (
                "1.0.0.0/8 7.7.7.7 0, 1.0.0.0/8 1, 1.0.0.0/8 1, 2.0.0.0/8 1",
                Some("2 routes replaced by later versions"),
            ),
        ] {
            let mut kit = Kit::<T>::with_ports(config, 1, 2).unwrap();
            let warnings = kit.warnings();
            assert!(warnings.len() == usize::from(warning.is_some()), "{warnings:?}");
            assert!(warning.is_none_or(|w| warnings[0].contains(w)), "{warnings:?}");
            let out = ["1.0.0.1", "2.0.0.1"].map(|a| {
                let mut p = packet(b"x");
                p.set_dst_ip(a.parse::<std::net::Ipv4Addr>().unwrap().to_bits());
                let (port, p) = kit.push(0, [p]).remove(0);
                (port, p.dst_addr().to_string())
            });
            assert_eq!(out, [(0, "7.7.7.7".to_string()), (1, "2.0.0.1".into())], "{config}");
        }
    }
    check::<StaticIpLookup>();
    check::<LinearIpLookup>();
    check::<RadixIpLookup>();
    check::<DirectIpLookup>();
}

/// A gateway of eight or more characters is followed by one tab.
#[test]
fn columns_of_the_table() {
    let config = "2.0.0.0/8 200.200.200.200 1, 0.0.0.0/0 2.0.0.2 0, 3.0.0.0/8 10.0.0.2 0, 4.0.0.0/8 0";
    let mut kit = Kit::<LinearIpLookup>::with_ports(config, 1, 2).unwrap();
    let want = "2.0.0.0/8\t\t200.200.200.200\t1\n0.0.0.0/0\t\t2.0.0.2\t\t0\n3.0.0.0/8\t\t10.0.0.2\t0\n4.0.0.0/8\t\t-\t\t0\n";
    assert_eq!(kit.read("table").unwrap(), want);
}

#[test]
fn errors_of_the_configuration() {
    let config =
        "1.0.0.0/8 2, 1.0.0.0/8, 1.0.0.0/8 0, nonsense 0, 1.0.0.0/8 - 1, 2.0.0.0/8 x 0, 3.0.0.0/8 -1";
    let errors = Kit::<RadixIpLookup>::with_ports(config, 1, 2).err().unwrap();
    assert_eq!(
        errors,
        [
            "argument 1 bad OUTPUT",
            "argument 2 should be 'ADDR/MASK [GATEWAY] OUTPUT'",
            "argument 4 should be 'ADDR/MASK [GATEWAY] OUTPUT'",
            "argument 6 should be 'ADDR/MASK [GATEWAY] OUTPUT'",
            "argument 7 bad OUTPUT",
        ]
    );
}
