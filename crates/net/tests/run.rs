// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated networks: pings between hosts, over links with latency and bandwidth, through many routers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use castanet_classes::Registry;
use castanet_graph::network::uncombine;
use castanet_graph::undead::undead;
use castanet_graph::xform::{Direction, Rule, Shipped, xform};
use castanet_lang::elaborate::load_fragments;
use castanet_lang::{Flat, NoLibrary, Options as LangOptions, Sources, Unknown, print};
use castanet_net::options::HostOption;
use castanet_net::report::PingReport;
use castanet_net::{Options, Report, Topology};
use castanet_spec::{ClassSpecs, Prefix};
use common::{Net, ip_router, ring, shared_wire};

fn pings(all: &[(&str, &str)]) -> Options {
    Options { pings: all.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(), ..Options::default() }
}

fn two() -> Net {
    Net::new(
        &[
            ("A", &["eth0 10.0.1.1/24", "eth1 10.0.0.1/30"], &["10.0.2.0/24 10.0.0.2 2"]),
            ("B", &["eth0 10.0.2.1/24", "eth1 10.0.0.2/30"], &["10.0.1.0/24 10.0.0.1 2"]),
        ],
        &["A.eth1==B.eth1"],
    )
}

/// The sent and received requests, and the errors, of each ping.
fn results(report: &Report) -> Vec<(u64, u64, u64, u64)> {
    let one = |p: &PingReport| (p.sent, p.received, p.expired, p.unreachable);
    report.pings.iter().map(one).collect()
}

#[test]
fn hosts_answer_over_links() {
    let report = two().run(&pings(&[("A.eth0", "B.eth0"), ("B", "10.0.0.1"), ("A.host", "10.0.2.77")]));
    assert_eq!(results(&report), [(3, 3, 0, 0), (3, 3, 0, 0), (3, 0, 0, 0)], "{}", report.text());
    assert!(!report.succeeded());
    let hosts: Vec<_> = report.hosts.iter().map(|h| (h.host.as_str(), h.address.as_deref())).collect();
    assert_eq!(hosts, [("A.eth0", Some("10.0.1.2/24")), ("B.eth0", Some("10.0.2.2/24"))]);
    // Requests that wait for an ARP reply of 10.0.2.77 are still in the router.
    assert!(report.drops.is_empty(), "{}", report.text());
    let links: Vec<_> =
        report.links.iter().map(|l| (l.from.as_str(), l.to.as_str(), l.sent, l.received)).collect();
    assert_eq!(links, [("A.eth1", "B.eth1", 11, 11), ("B.eth1", "A.eth1", 8, 8)], "{}", report.text());
}

#[test]
fn latency_and_bandwidth() {
    let mut options = pings(&[("A", "B")]);
    options.latency = vec![(None, "10ms".into()), (Some("A.eth1".into()), "50ms".into())];
    options.bandwidth = vec![(Some("link2".into()), "42kBps".into())];
    let report = two().run(&options);
    // The way there takes 10 + 50 + 10 ms, and the way back 10 + 10 + 10 ms and 1 ms to send 42 bytes. Frames of hosts take
    // less than 1 us.
    let [min, _, max] = report.pings[0].rtt.unwrap();
    assert!((0.1010..0.1011).contains(&min), "{min}");
    // The first request also waits for ARP replies.
    assert!((0.2..0.3).contains(&max), "{max}");
}

/// Applies the patterns that come with the program under this name.
fn transformed(flat: Flat, patterns: &str, classes: &dyn ClassSpecs) -> Flat {
    let options = LangOptions {
        classes: &Registry::new(),
        defines: &[],
        library: &NoLibrary,
        unknown: Unknown::Opaque,
    };
    let text = Shipped::named(patterns).unwrap().text;
    let fragments = load_fragments(&mut Sources::new(), patterns, text.as_bytes(), &options).fragments;
    let (rules, wrong) = Rule::read(&fragments, Direction::Forward);
    assert!(wrong.is_empty(), "{wrong:?}");
    xform(flat, &rules, classes).unwrap().flat
}

#[test]
fn links_without_arp() {
    let router =
        |devices: &[&str], routes: &[&str], own: &str| ip_router(devices, routes).replace("eth1:eth", own);
    let (a, b) = ("2:0:0:0:1:1", "2:0:0:0:1:2");
    let texts = [
        (
            "A".to_string(),
            router(&["eth0 10.0.1.1/24", &format!("eth1 10.0.0.1/30 {a}")], &["10.0.2.0/24 10.0.0.2 2"], a),
        ),
        (
            "B".to_string(),
            router(&["eth0 10.0.2.1/24", &format!("eth1 10.0.0.2/30 {b}")], &["10.0.1.0/24 10.0.0.1 2"], b),
        ),
    ];
    let net = || Net::of(&texts, &["A.eth1==B.eth1"]);
    let mut without = net();
    without.flat = transformed(without.flat, "arp", without.classes.as_ref());
    let options = Options { ping_all: true, ..Options::default() };
    let (before, after) = (net().run(&options), without.run(&options));
    assert_eq!(results(&before), [(3, 3, 0, 0); 2], "{}", before.text());
    assert_eq!(results(&after), results(&before), "{}", after.text());
    // The request and the reply of each router.
    assert_eq!(before.links[0].sent - after.links[0].sent, 2, "{}", after.text());
    for (router, own, other) in [("A", a, b), ("B", b, a)] {
        let flat = uncombine(&without.flat, router).unwrap();
        let (flat, _) = undead(flat, without.classes.as_ref());
        let text = print::driver(&flat);
        assert!(text.contains(&format!("arp1 :: EtherEncap(0x0800, {own}, {other});")), "{text}");
        // Those of eth0, where hosts are.
        for class in ["ARPQuerier", "ARPResponder"] {
            assert_eq!(flat.elements.iter().filter(|e| e.class == class).count(), 1, "{class}: {text}");
        }
        for class in ["Idle", "AnsweredBy", "NoRequests", "RouterLink"] {
            assert!(flat.elements.iter().all(|e| e.class != class), "{class}: {text}");
        }
    }
}

#[test]
fn a_full_queue_drops_packets() {
    let mut net = two();
    for e in &mut net.flat.elements {
        if e.name == "A/queue1" {
            e.config = "20".into();
        }
    }
    let mut options = pings(&[("A", "B")]);
    options.interval = 1_000_000;
    options.count = 100;
    options.bandwidth = vec![(Some("A.eth1".into()), "4200Bps".into())];
    options.time = Some(20_000_000_000);
    let report = net.run(&options);
    let p = &report.pings[0];
    assert!(p.sent == 100 && (20..50).contains(&p.received), "{}", report.text());
    let full =
        report.drops.iter().find(|d| d.element == "A/queue1 :: Queue" && d.reason == "queue-full").unwrap();
    // One of them is an ARP reply of A, for which replies to the first pings had to wait in B.
    assert_eq!((full.at.as_str(), full.packets), ("A", p.sent - p.received + 1));
}

#[test]
fn a_shared_wire() {
    let net = shared_wire(|other| format!("10.0.0.{other}"));
    let report = net.run(&Options { ping_all: true, ..Options::default() });
    assert_eq!(results(&report), [(3, 3, 0, 0); 6], "{}", report.text());
    let [wire] = report.links.as_slice() else { panic!("{:?}", report.links) };
    assert_eq!((wire.from.as_str(), wire.received), ("A.eth1+B.eth1+C.eth1", 2 * wire.sent));
}

#[test]
fn loops_and_missing_routes_show_as_errors() {
    let net = Net::new(
        &[
            ("A", &["eth0 10.0.1.1/24", "eth1 10.0.0.1/30"], &["0.0.0.0/0 10.0.0.2 2"]),
            (
                "B",
                &["eth0 10.0.2.1/24", "eth1 10.0.0.2/30"],
                &["10.0.1.0/24 10.0.0.1 2", "10.9.0.0/16 10.0.0.1 2"],
            ),
        ],
        &["A.eth1==B.eth1"],
    );
    let report = net.run(&pings(&[("A", "B"), ("A", "10.9.1.1"), ("A", "10.8.1.1")]));
    assert_eq!(results(&report), [(3, 3, 0, 0), (3, 0, 3, 0), (3, 0, 0, 0)], "{}", report.text());
    let lost = report.drops.iter().find(|d| d.reason == "no-route").unwrap();
    assert_eq!((lost.element.as_str(), lost.packets), ("B/routes :: StaticIPLookup", 3));
}

#[test]
fn hosts_with_given_addresses() {
    let bridge = "s :: EtherSwitch;\n".to_string()
        + &(0..3)
            .map(|n| format!("FromDevice(p{n}) -> [{n}] s [{n}] -> Queue -> ToDevice(p{n});\n"))
            .collect::<String>();
    let net = Net::of(&[("S".into(), bridge)], &[]);
    let host = |n: u8| HostOption {
        at: format!("S.p{n}"),
        prefix: Prefix { addr: [10, 0, 0, n + 1].into(), len: 24 },
        gateway: None,
    };
    let options = Options { hosts: vec![host(0), host(2)], ping_all: true, ..Options::default() };
    let report = net.run(&options);
    assert_eq!(results(&report), [(3, 3, 0, 0); 2], "{}", report.text());
    for (options, error) in [
        (
            pings(&[("S.p0", "S.p1")]),
            "--ping: the host at S.p0 has no address, because its router has none there; give it one, as in --host S.p0=10.0.0.2/24",
        ),
        (
            pings(&[("S", "10.0.0.1")]),
            "--ping: router S has several hosts: S.p0, S.p1, S.p2; name one of them",
        ),
        (pings(&[("T", "S.p1")]), "--ping: there is no host at T; hosts are at S.p0, S.p1, S.p2"),
        (
            Options { hosts: vec![HostOption { at: "S.x".into(), ..host(1) }], ..Options::default() },
            "--host S.x: there is no host at S.x; hosts are at S.p0, S.p1, S.p2",
        ),
        (
            Options { latency: vec![(Some("S.x".into()), "1ms".into())], ..Options::default() },
            "there is no link or device S.x; a device is written as in A.eth0",
        ),
        (
            Options { bandwidth: vec![(Some("link1".into()), "1Mbps".into())], ..Options::default() },
            "there is no link or device link1; a device is written as in A.eth0",
        ),
    ] {
        assert_eq!(net.try_simulation(&options).err().unwrap().0, error);
    }
}

#[test]
fn addresses_of_devices() {
    let a = "AddressInfo(eth0 10.0.1.1/24 2:0:0:0:0:9, eth2 10.9.0.1/24);\n\
             elementclass Port { FromDevice(eth2) -> Queue -> ToDevice(eth2); AddressInfo(eth2 10.0.3.1/24); } Port;\n\
             FromDevice(eth0) -> Queue -> ToDevice(eth0); Idle -> FromDevice(eth1) -> Discard;\n\
             Idle -> [0] q :: ARPQuerier(10.0.2.1/24, 2:0:0:0:0:8) -> Queue -> ToDevice(eth1); Idle -> [1] q;";
    let a = a.replace("Idle -> FromDevice", "FromDevice");
    let bridge = "FromDevice(p) -> Queue -> ToDevice(p);".to_string();
    let net = Net::of(&[("A".into(), a), ("S".into(), bridge)], &["A.eth1==S.p"]);
    let topology = Topology::new(&net.graph(), net.classes.as_ref()).unwrap();
    let all: Vec<_> = topology
        .devices
        .iter()
        .map(|d| {
            (d.full_name(), d.scope.as_str(), d.prefix.map(|p| p.addr.to_string()), d.ether.0[5], d.has_ether)
        })
        .collect();
    let mut want = [
        ("A.eth0", "A/", Some("10.0.1.1"), 9, true),
        ("A.eth1", "A/", Some("10.0.2.1"), 8, false),
        ("A.eth2", "A/Port@2/", Some("10.0.3.1"), 0, false),
        // Behind the link is the ARPQuerier of another router.
        ("S.p", "S/", None, 0, false),
    ];
    for device in &all {
        let at = want.iter().position(|w| w.0 == device.0).unwrap();
        // The last byte of a made address is the number of the device.
        want[at].3 = if want[at].3 == 0 { device.3 } else { want[at].3 };
        let (name, scope, prefix, byte, has_ether) = want[at];
        assert_eq!(*device, (name.into(), scope, prefix.map(Into::into), byte, has_ether), "{all:?}");
    }
    assert_eq!(all.len(), want.len());
}

#[test]
fn links_from_sinks() {
    let a = "InfiniteSource(LENGTH 60, LIMIT 5) -> Queue -> Unqueue -> out :: Discard;".to_string();
    let b = "FromDevice(eth0) -> Print(b) -> Discard;".to_string();
    let report = Net::of(&[("A".into(), a), ("B".into(), b)], &["A.out=B.eth0"]).run(&Options::default());
    assert_eq!((report.links[0].sent, report.links[0].received), (5, 5));
}

#[test]
fn captures() {
    let file = format!("{}/../../conf/traces/ip-router-eth0.pcap", env!("CARGO_MANIFEST_DIR"));
    // A alone is the only host at router A.
    let report = two().run(&Options { captures: vec![("A".into(), file)], ..Options::default() });
    assert_eq!(report.hosts[0].sent, 1936, "{}", report.text());
    let options = Options { captures: vec![("C".into(), "x".into())], ..Options::default() };
    let error = two().try_simulation(&options).err().unwrap();
    assert_eq!(error.0, "--pcap: there is no host at C; hosts are at A.eth0, B.eth0");
}

#[test]
fn elements_that_work_with_the_machine() {
    let router = |text: &str| Net::of(&[("A".into(), text.into())], &[]);
    let text = "FromDevice(eth0) -> ToHost(x); FromHost(x) -> Queue -> ToDevice(eth0); ControlSocket(TCP, 1); DriverManager(stop);";
    let net = router(text);
    let simulation = net.try_simulation(&Options::default()).unwrap();
    assert_eq!(
        simulation.notes,
        ["ControlSocket", "DriverManager"].map(|c| {
            let name = net.graph().flat.elements.iter().find(|e| e.class == c).unwrap().declaration();
            format!("'{name}' is left out of the simulation")
        })
    );
    let report = net.run(&Options { time: Some(1_000_000_000), ..Options::default() });
    assert!(report.succeeded() && report.drops.is_empty());
    let error = router("KernelTap(10.0.0.1/8) -> Discard").try_simulation(&Options::default()).err().unwrap();
    assert_eq!(
        error.0,
        "'A/KernelTap@1 :: KernelTap' exchanges packets with the machine, which cannot be simulated"
    );
}

#[test]
fn a_hundred_routers_in_a_ring() {
    let net = ring(100);
    let to = |n: usize| format!("r{}", (n * 37 + 50) % 100);
    let all: Vec<(String, String)> =
        (0..100).map(|n| (format!("r{n}"), to(n))).filter(|(a, b)| a != b).collect();
    let report = net.run(&Options { pings: all, count: 2, ..Options::default() });
    assert!(report.succeeded() && report.pings.len() > 95, "{}", report.text());
    // The longest way has 50 links, and two links to hosts: 104 ms there and back.
    let longest = report.pings.iter().filter_map(|p| p.rtt).map(|t| t[0]).fold(0.0, f64::max);
    assert!((0.104..0.11).contains(&longest), "{longest}");
}
