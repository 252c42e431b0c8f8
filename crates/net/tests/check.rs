// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check of networks: small networks with each defect and without, and agreement with simulations.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use castanet_element::Random;
use castanet_net::{Options, Topology, check};
use common::{Net, Spec, ip_router, ring, shared_wire};

fn messages(net: &Net) -> Vec<String> {
    let graph = net.graph();
    let topology = Topology::new(&graph, net.classes.as_ref()).unwrap();
    let checked = check(&graph, &topology, &Options::default()).unwrap();
    let text = castanet_lang::render::render_pretty(&net.sources, &checked.diagnostics, false);
    println!("{text}");
    checked.diagnostics.into_iter().map(|d| d.message).collect()
}

const A: &[&str] = &["eth0 10.0.1.1/24", "eth1 10.0.0.1/30"];
const B: &[&str] = &["eth0 10.0.2.1/24", "eth1 10.0.0.2/30"];
const TO_B: &str = "10.0.2.0/24 10.0.0.2 2";
const TO_A: &str = "10.0.1.0/24 10.0.0.1 2";
const LINK: &[&str] = &["A.eth1==B.eth1"];

#[test]
fn defects_and_their_absence() {
    let cases: &[(&str, [Spec<'_>; 2], &[&str])] = &[
        ("sound", [("A", A, &[TO_B]), ("B", B, &[TO_A])], &[]),
        (
            "a loop for addresses that nobody has",
            [("A", A, &["0.0.0.0/0 10.0.0.2 2"]), ("B", B, &["0.0.0.0/0 10.0.0.1 2"])],
            &["packets to 0.0.0.0/0 go round in a loop: A, B and back"],
        ),
        (
            "a loop for a part",
            [("A", A, &[TO_B, "10.9.0.0/16 10.0.0.2 2"]), ("B", B, &[TO_A, "10.9.7.0/24 10.0.0.1 2"])],
            &["packets to 10.9.7.0/24 go round in a loop: B, A and back"],
        ),
        (
            "no route",
            [("A", A, &[]), ("B", B, &[TO_A])],
            &[
                "router A loses packets to 10.0.2.0/24, the network of B.eth0: 'A/routes :: StaticIPLookup' has no route for them",
            ],
        ),
        (
            "no route back",
            [("A", A, &[TO_B]), ("B", B, &[])],
            &[
                "router B loses packets to 10.0.1.0/24, the network of A.eth0: 'B/routes :: StaticIPLookup' has no route for them",
            ],
        ),
        (
            "a gateway that is not there",
            [("A", A, &["10.0.2.0/24 10.0.0.3 2"]), ("B", B, &[TO_A])],
            &[
                "router A loses packets to 10.0.2.0/24, the network of B.eth0: no device on link1 has the address 10.0.0.3",
            ],
        ),
        (
            "the wrong output",
            [("A", A, &["10.0.2.0/24 10.0.1.9 1"]), ("B", B, &[TO_A])],
            &[
                "router A loses packets to 10.0.2.0/24, the network of B.eth0: they leave the network at A.eth0",
            ],
        ),
        (
            "a network that is local",
            [("A", A, &["10.0.2.0/24 0"]), ("B", B, &[TO_A])],
            &[
                "router A loses packets to 10.0.2.0/24, the network of B.eth0: they end at 'A/ICMPPingResponder@5 :: ICMPPingResponder'",
            ],
        ),
    ];
    for (name, routers, want) in cases {
        println!("== {name}");
        assert_eq!(messages(&Net::new(routers, LINK)), *want, "{name}");
    }
}

/// Returns the configuration of a router with a device for Ethernet frames and one for IP packets without link header.
fn gateway(devices: &[&str], routes: &[&str]) -> String {
    let ethernet = ip_router(&devices[..1], routes);
    let raw = devices[1].split(' ').next().unwrap();
    format!(
        "{ethernet}\nAddressInfo({});\nFromDevice({raw}) -> CheckIPHeader -> routes;\nroutes[2] -> DecIPTTL -> Queue -> ToDevice({raw});\n",
        devices[1]
    )
}

#[test]
fn frames_that_do_not_fit() {
    let own: [&[&str]; 2] =
        [&["eth0 10.0.1.1/24", "ppp0 10.0.0.1/30"], &["eth0 10.0.2.1/24", "ppp0 10.0.0.2/30"]];
    let routes =
        [["10.0.2.0/24 2", "10.0.0.1 0", "10.0.0.2 2"], ["10.0.1.0/24 2", "10.0.0.2 0", "10.0.0.1 2"]];
    let pair = |a: String, b: String| Net::of(&[("A".into(), a), ("B".into(), b)], &["A.ppp0==B.ppp0"]);
    let raw = |n: usize| gateway(own[n], &routes[n]);
    let sound = pair(raw(0), raw(1));
    assert_eq!(messages(&sound), [""; 0]);
    let options = Options { ping_all: true, ..Options::default() };
    let report = sound.run(&options);
    assert!(report.succeeded() && report.pings.len() == 2, "{}", report.text());
    // B expects Ethernet frames.
    let ethernet = ip_router(own[1], &["10.0.1.0/24 10.0.0.1 2"]);
    assert_eq!(
        messages(&pair(raw(0), ethernet.clone())),
        [
            "router A cannot read the frames from B.ppp0 at ppp0: 'A/CheckIPHeader@20 :: CheckIPHeader' expects an IP header at another place",
            "router B cannot read the frames from A.ppp0 at ppp0: 'B/ip :: Strip' strips more than stands before the IP header"
        ]
    );
    // A packet that gets two Ethernet headers.
    let twice = ethernet.replace("[0] arp1;", "EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> [0] arp1;");
    assert_ne!(twice, ethernet);
    let a = ip_router(own[0], &["10.0.2.0/24 10.0.0.2 2"]);
    let error = messages(&pair(a, twice));
    assert_eq!(error.len(), 1, "{error:?}");
    assert!(
        error[0]
            .ends_with("'B/arp1 :: ARPQuerier' expects an IP header, and puts an Ethernet header before it"),
        "{error:?}"
    );
}

#[test]
fn filters_bridges_and_translators() {
    let sound = |a: &str, want: &[&str]| {
        let texts = [("A".to_string(), a.to_string()), ("B".to_string(), ip_router(B, &[TO_A]))];
        assert_eq!(messages(&Net::of(&texts, LINK)), want);
    };
    let a = ip_router(A, &[TO_B]);
    // A filter on something that is not known lets packets pass; one on the destination does not.
    let with =
        |filter: &str| a.replace("CheckIPHeader -> routes", &format!("CheckIPHeader -> {filter} -> routes"));
    sound(&with("IPFilter(deny src net 10.9.0.0/16, allow tcp, deny all)"), &[]);
    sound(&with("IPFilter(deny dst net 10.7.0.0/16, allow all)"), &[]);
    sound(
        &with("IPFilter(deny dst net 10.0.2.0/25, allow all)"),
        &[
            "router A loses packets to 10.0.2.0/24, the network of B.eth0: they end at 'A/IPFilter@4 :: IPFilter'",
        ],
    );
    // Filters on the source: its route is not known, and the destination is looked up after it.
    let by_source = "GetIPAddress(12) -> src :: StaticIPLookup(10.0.1.0/24 0, 0.0.0.0/0 1); src [1] -> Discard; src -> GetIPAddress(16)";
    sound(&with(by_source), &[]);
    // Addresses that are translated are not followed.
    sound(&with("IPRewriter(pattern 10.0.0.1 1024-65535 - - 0 0)"), &[]);
    // A bridge between two routers: frames reach the router that has the address of the next hop.
    let bridge = "s :: EtherSwitch;\n".to_string()
        + &(0..3)
            .map(|n| format!("FromDevice(p{n}) -> [{n}] s [{n}] -> Queue -> ToDevice(p{n});\n"))
            .collect::<String>();
    let routers = |gateway: &str| {
        [
            ("A".to_string(), ip_router(A, &[&format!("10.0.2.0/24 {gateway} 2")])),
            ("B".to_string(), ip_router(B, &[TO_A])),
            ("S".to_string(), bridge.clone()),
        ]
    };
    let links = ["A.eth1==S.p0", "B.eth1==S.p1"];
    assert_eq!(messages(&Net::of(&routers("10.0.0.2"), &links)), [""; 0]);
    let lost = messages(&Net::of(&routers("10.0.0.3"), &links));
    assert!(lost.len() == 1 && lost[0].contains("the network of B.eth0"), "{lost:?}");
}

#[test]
fn a_shared_wire() {
    assert_eq!(messages(&shared_wire(|other| format!("10.0.0.{other}"))), [""; 0]);
    // All packets for C go to B, which sends them on to itself: no frame reaches the device that sent it.
    let wrong = messages(&shared_wire(|other| format!("10.0.0.{}", other.min(2))));
    let lost = "router B loses packets to 10.1.3.0/24, the network of C.eth0: no device on link1 has the address 10.0.0.2";
    assert_eq!(wrong, [lost]);
}

#[test]
fn odd_configurations_are_no_defects() {
    // A cycle in a router, extreme numbers, unknown classes, a router without addresses.
    for text in [
        "FromDevice(x) -> u :: Unstrip(2147483647) -> s :: Strip(-2147483648) -> q :: Queue -> ToDevice(x); Idle -> u;",
        "FromDevice(x) -> u :: Unstrip(14) -> t :: Tee -> u; t [1] -> Queue -> ToDevice(x);",
        "FromDevice(x) -> CheckIPHeader(OFFSET 14) -> StaticIPLookup(0.0.0.0/0 0) -> Queue -> ToDevice(x);",
        "FromDevice(x) -> Classifier -> Discard; Idle -> ToDevice(x);",
        "FromDevice(x) -> Paint(300) -> p :: PaintSwitch -> Discard;",
        "Idle -> ToDevice(x); Idle -> ToDevice(x);",
        "",
    ] {
        let net = Net::of(&[("A".into(), text.into())], &[]);
        let (graph, _) = castanet_graph::Graph::new(net.flat.clone(), net.classes.as_ref());
        let topology = Topology::new(&graph, net.classes.as_ref()).unwrap();
        let checked = check(&graph, &topology, &Options::default()).unwrap();
        assert!(checked.found.loops.is_empty() && checked.found.holes.is_empty(), "{text}");
    }
}

#[test]
fn rings() {
    assert_eq!(messages(&ring(30)), [""; 0]);
}

/// Returns a random network of routers in a ring with chords, whose routes mostly lead the right way.
fn random_network(seed: u64) -> Net {
    let mut random = Random::new(seed, "network");
    let mut below = |n: usize| random.below(n as u64) as usize;
    let n = 2 + below(4);
    // Each link: its two routers. Router `a` has the address 10.2.L.1, and router `b` 10.2.L.2.
    let mut links: Vec<(usize, usize)> = (1..n).map(|r| (below(r), r)).collect();
    if n > 2 {
        links.push((0, n - 1));
    }
    let mut texts = Vec::new();
    for r in 0..n {
        let mut devices = vec![format!("host 10.1.{r}.1/24")];
        let mut gateways = Vec::new();
        for (l, &(a, b)) in links.iter().enumerate() {
            for (me, other, mine, theirs) in [(a, b, 1, 2), (b, a, 2, 1)] {
                if me == r {
                    devices.push(format!("to{l} 10.2.{l}.{mine}/30"));
                    gateways.push((other, format!("10.2.{l}.{theirs} {}", devices.len())));
                }
            }
        }
        let mut routes = Vec::new();
        for o in (0..n).filter(|&o| o != r) {
            // The first link of a shortest way.
            let mut first = vec![None; n];
            let mut open = std::collections::VecDeque::from([r]);
            while let Some(at) = open.pop_front() {
                for &(a, b) in &links {
                    for (x, y) in [(a, b), (b, a)] {
                        if x == at && y != r && first[y].is_none() {
                            first[y] = if at == r { Some(y) } else { first[at] };
                            open.push_back(y);
                        }
                    }
                }
            }
            let right = gateways.iter().find(|g| Some(g.0) == first[o]).map(|g| g.1.clone());
            match below(12) {
                0 => {}
                1 => routes.push(format!("10.1.{o}.0/24 {}", gateways[below(gateways.len())].1)),
                2 => routes.push(format!("10.1.{o}.0/24 10.1.{r}.99 1")),
                _ => routes.extend(right.map(|gateway| format!("10.1.{o}.0/24 {gateway}"))),
            }
        }
        let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
        let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
        texts.push((format!("r{r}"), ip_router(&devices, &routes)));
    }
    let links: Vec<String> =
        links.iter().enumerate().map(|(l, (a, b))| format!("r{a}.to{l}==r{b}.to{l}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    Net::of(&texts, &links)
}

/// The check and a simulation agree on every pair of hosts: a ping is answered if and only if nothing was found on the
/// way there or back, a loop shows as expired requests, and a black hole as lost or unreachable ones.
#[test]
fn simulations_agree() {
    let (mut sound, mut loops, mut holes) = (0, 0, 0);
    for seed in 0..120 {
        let net = random_network(seed);
        let graph = net.graph();
        let topology = Topology::new(&graph, net.classes.as_ref()).unwrap();
        let options = Options { ping_all: true, count: 1, ..Options::default() };
        let checked = check(&graph, &topology, &options).unwrap();
        let report = net.run(&options);
        let context = || {
            let text = castanet_lang::render::render_pretty(&net.sources, &checked.diagnostics, false);
            format!("seed {seed}\n{text}\n{}", report.text())
        };
        assert_eq!(report.succeeded(), checked.diagnostics.is_empty(), "{}", context());
        sound += usize::from(checked.diagnostics.is_empty());
        let expired = report.pings.iter().any(|p| p.expired > 0);
        // Requests that go round expire. Replies that go round are only lost.
        if !checked.found.loops.is_empty() {
            loops += 1;
            assert!(!report.succeeded(), "{}", context());
        } else {
            assert!(!expired, "{}", context());
        }
        for hole in &checked.found.holes {
            holes += 1;
            let (from, to) = (&checked.hosts[hole.from].name, &checked.hosts[hole.to].name);
            let ping = report.pings.iter().find(|p| p.from == *from && p.to == *to).unwrap();
            assert!(ping.received == 0 && ping.expired == 0, "{from} {to}\n{}", context());
        }
        if expired {
            assert!(!checked.found.loops.is_empty(), "{}", context());
        }
    }
    println!("{sound} sound, {loops} with loops, {holes} holes");
    assert!(sound > 10 && loops > 10 && holes > 50, "{sound} sound, {loops} with loops, {holes} holes");
}
