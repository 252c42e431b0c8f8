// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mobile IP with conf/home-node.click and conf/mobile-node.click: the mobile host is reached at its home
//! address while away.

use crate::net::{castanet, lab};
use castanet_lab::frames::{self, Ip, ip_in, packet};
use castanet_lab::{Host, Lab, Output, Router, Wire};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

/// The home network has the host c (1.0.0.20), the home node h (1.0.0.10) and the router r (1.0.0.1). The other
/// network of r (43.0.0.1) has the host o (43.0.0.50) and the mobile host m (43.0.0.9), whose home address is
/// 1.0.0.11.
struct Net {
    c: Host,
    o: Host,
    r: Host,
    h: Router,
    m: Router,
    _lab: Lab,
}

/// Keeps a host's kernel from answering on its device, and runs a configuration there.
fn node(host: Host, conf: &str) -> Router {
    host.sysctl("net.ipv4.conf.eth0.rp_filter", 1);
    host.sysctl("net.ipv4.conf.eth0.arp_ignore", 1);
    let conf = castanet_tests::binary::root().join("conf").join(conf);
    Router::run(host, castanet(), &[conf.to_str().unwrap_or_default()], 1)
}

impl Net {
    fn new() -> Option<Net> {
        let lab = lab()?;
        let tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
        tun.inspect_err(|why| println!("SKIP: /dev/net/tun: {why}")).ok()?;
        let [c, h, r, o, m] = ["c", "h", "r", "o", "m"].map(|name| lab.host(name));
        lab.lan(&[(&c, "eth0"), (&h, "eth0"), (&r, "eth0")]);
        lab.lan(&[(&o, "eth0"), (&m, "eth0"), (&r, "eth1")]);
        for (host, own, router) in [(&c, "1.0.0.20/24", "1.0.0.1"), (&o, "43.0.0.50/24", "43.0.0.1")] {
            host.address("eth0", own);
            host.route("default", router);
        }
        r.address("eth0", "1.0.0.1/24");
        r.address("eth1", "43.0.0.1/24");
        r.sysctl("net.ipv4.ip_forward", 1);
        // The router sends no redirects, as on the Internet.
        for scope in ["all", "eth0", "eth1"] {
            r.sysctl(&format!("net.ipv4.conf.{scope}.send_redirects"), 0);
        }
        let (h, m) = (node(h, "home-node.click"), node(m, "mobile-node.click"));
        // Fills all neighbour caches.
        for host in [&c, &o, &h.host] {
            host.run("ping -c 1 -i 0.1 -w 100 1.0.0.11").good();
        }
        Some(Net { c, o, r, h, m, _lab: lab })
    }

    fn end(self) {
        for node in [self.h, self.m] {
            let ended: Option<Output> = node.stop();
            assert!(ended.as_ref().is_some_and(|o| o.ok() && !o.stderr.contains("error")), "{ended:?}");
        }
    }
}

/// Captures the packets on a wire during an interval. Returns source, destination and protocol of each.
fn seen(wire: &mut Wire) -> Vec<(String, String, u8)> {
    let all = wire.rest(Duration::from_millis(300));
    let packets = all.iter().filter_map(|f| ip_in(&f.bytes));
    packets.map(|ip| (ip.from.to_string(), ip.to.to_string(), ip.header.protocol.0)).collect()
}

#[test]
fn the_mobile_host_is_reached_at_its_home_address() {
    let Some(net) = Net::new() else { return };
    let mut away = net.m.host.wire("eth0");
    // Pings from a neighbour at home, from a remote host, and from the home node, whose own packets also
    // enter the tunnel. Each node that forwards a reply decrements the reply's time to live, but the tunnel
    // does not.
    for (from, ttl) in [(&net.c, 63), (&net.o, 62), (&net.h.host, 64)] {
        let said = from.ping(2, "1.0.0.11");
        assert!(!said.contains("DUP"), "{}: {said}", from.name());
        assert!(said.contains(&format!("ttl={ttl} ")), "{}: {said}", from.name());
    }
    // The mobile host receives only tunnelled packets.
    let all = seen(&mut away);
    let tunnel = ("1.0.0.10".to_string(), "43.0.0.9".to_string(), 4);
    assert!(all.len() >= 6 && all.iter().all(|p| *p == tunnel), "{all:?}");
    // The mobile host reaches all hosts, using its home address.
    let mut at_c = net.c.wire("eth0");
    for to in ["1.0.0.20", "43.0.0.50", "1.0.0.10", "1.0.0.1"] {
        let said = net.m.host.ping(2, to);
        assert!(!said.contains("DUP"), "{to}: {said}");
    }
    let all = seen(&mut at_c);
    assert!(all.contains(&("1.0.0.11".into(), "1.0.0.20".into(), 1)), "{all:?}");
    net.end();
}

#[test]
fn packets_too_long_for_the_tunnel_are_fragmented_or_refused() {
    let Some(net) = Net::new() else { return };
    for from in [&net.c, &net.h.host] {
        let said = from.ping(2, "-M dont -s 4000 1.0.0.11");
        assert!(said.contains("4008 bytes from 1.0.0.11"), "{}: {said}", from.name());
        let said = from.run("ping -M do -s 1472 -c 1 -W 60 1.0.0.11").stdout;
        assert!(said.contains("(mtu = 1480)"), "{}: {said}", from.name());
    }
    let said = net.m.host.ping(2, "-M dont -s 4000 43.0.0.50");
    assert!(said.contains("4008 bytes from 43.0.0.50"), "{said}");
    // TCP discovers the path MTU in both directions.
    for (server, client, to, asks) in [
        (&net.m.host, &net.c, "1.0.0.11", ""),
        (&net.m.host, &net.h.host, "1.0.0.11", "-R"),
        (&net.c, &net.m.host, "1.0.0.20", ""),
        (&net.o, &net.m.host, "43.0.0.50", "-R"),
    ] {
        let mut serving = server.spawn("iperf3 -s -1 --forceflush");
        serving.wait_for("listening", PATIENCE);
        client.run(&format!("iperf3 -c {to} -n 3M {asks}")).good();
        assert!(serving.wait(PATIENCE).ok());
    }
    net.end();
}

#[test]
fn only_the_mobile_host_uses_the_tunnel() {
    let Some(net) = Net::new() else { return };
    let (mut at_c, mut at_r) = (net.c.wire("eth0"), net.r.wire("eth0"));
    let (home, router) = (net.h.host.ether("eth0"), net.r.ether("eth0"));
    let inner = |from: &str, to: &str, id| Ip { id, ..Ip::udp(from, to, b"") }.bytes();
    let outer = |from: &str, payload| {
        let outer = Ip { protocol: 4, payload, ..Ip::udp(from, "1.0.0.10", b"") };
        frames::ethernet(home, router, 0x0800, &outer.bytes())
    };
    at_r.send_all(&[
        // Packets that must be dropped: from another host, from the mobile host with a foreign inner source, to
        // the mobile host itself, and with an invalid inner packet. Then a valid packet.
        outer("43.0.0.50", inner("1.0.0.11", "1.0.0.20", 1)),
        outer("43.0.0.9", inner("43.0.0.9", "1.0.0.20", 2)),
        outer("43.0.0.9", inner("1.0.0.11", "1.0.0.11", 3)),
        outer("43.0.0.9", vec![0x45; 19]),
        outer("43.0.0.9", inner("1.0.0.11", "1.0.0.20", 5)),
    ]);
    let came = at_c.expect("packet", |f| ip_in(&f.bytes));
    assert_eq!((came.header.identification, came.header.time_to_live), (5, 63));
    // A packet whose time to live expires does not enter the tunnel, and its sender gets an error.
    let ended = Ip { ttl: 1, id: 6, ..Ip::udp("1.0.0.20", "1.0.0.11", b"") };
    at_c.send(&frames::ethernet(home, net.c.ether("eth0"), 0x0800, &ended.bytes()));
    let error = at_c.expect("error", |f| frames::icmp_in(&f.bytes));
    assert_eq!((error.kind, error.ip.from), ((11, 0), frames::address("1.0.0.10")));
    assert_eq!(packet(&error.payload).map(|p| p.header.identification), Some(6));
    net.end();
}
