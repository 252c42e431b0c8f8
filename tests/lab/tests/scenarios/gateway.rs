// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP redirects to a better gateway on the sender's network.

use crate::net::{Net, QUIET, both, from_a, lab, ours};
use castanet_lab::frames::{Ip, address, icmp_in, ip_in};
use castanet_lab::{Host, Lab, Port, Router, RouterKind};

/// Creates the network. The sender a, a better gateway and the router are on one network; b is behind the
/// router, c behind the gateway.
fn lan(lab: &Lab, kind: RouterKind) -> (Host, Host, Host, Router) {
    let [a, g, r, b, c] = ["a", "g", "r", "b", "c"].map(|name| lab.host(name));
    lab.lan(&[(&a, "eth0"), (&r, "eth0"), (&g, "eth0")]);
    lab.link((&b, "eth0"), (&r, "eth1"));
    lab.link((&g, "eth1"), (&c, "eth0"));
    a.address("eth0", "10.0.0.2/24");
    a.route("default", "10.0.0.1");
    g.address("eth0", "10.0.0.3/24");
    g.address("eth1", "10.9.0.1/24");
    g.sysctl("net.ipv4.ip_forward", 1);
    b.address("eth0", "10.0.1.2/24");
    c.address("eth0", "10.9.0.2/24");
    c.route("default", "10.9.0.1");
    let ports = [
        Port { device: "eth0", address: "10.0.0.1/24", mtu: 1500 },
        Port { device: "eth1", address: "10.0.1.1/24", mtu: 1500 },
    ];
    let r = Router::start(r, kind, &ports, &[("10.9.0.0/24", "10.0.0.3")]);
    (a, b, c, r)
}

#[test]
fn redirect_to_the_better_gateway() {
    for kind in both() {
        let Some(lab) = lab() else { return };
        let (a, _, c, _r) = lan(&lab, kind);
        let (mut at_a, mut at_c) = (a.wire("eth0"), c.wire("eth0"));
        a.ping(1, "10.9.0.2");
        let redirect = at_a.expect("redirect", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 5));
        assert_eq!((redirect.kind, redirect.rest), ((5, 1), [10, 0, 0, 3]), "{kind:?}");
        assert_eq!((redirect.ip.from, redirect.ip.to), (address("10.0.0.1"), address("10.0.0.2")));
        // After the first redirect, Linux only resolves the address of the gateway. It installs the route after a
        // later redirect, so the ping is repeated.
        let installed = (0..100).any(|_| {
            a.ping(1, "10.9.0.2");
            a.ip("route get 10.9.0.2").contains("via 10.0.0.3")
        });
        assert!(installed, "{kind:?}");
        // Packets now go directly to the gateway and pass one router.
        a.ping(1, "10.9.0.2");
        let lives: Vec<_> = at_c
            .rest(QUIET)
            .iter()
            .filter_map(|f| icmp_in(&f.bytes))
            .map(|m| m.ip.header.time_to_live)
            .collect();
        assert_eq!((lives.first(), lives.last()), (Some(&62), Some(&63)), "{kind:?}");
    }
}

#[test]
fn no_redirect_for_others() {
    // RFC 1812, 5.2.7.2: no redirect if the source is on another network, or if the packet has a source route.
    let Some(lab) = lab() else { return };
    let (a, b, c, r) = lan(&lab, ours());
    let (mine, router) = (a.ether("eth0"), r.host.ether("eth0"));
    let (mut at_a, mut at_b, mut at_c) = (a.wire("eth0"), b.wire("eth0"), c.wire("eth0"));
    let frame = |ip: &Ip| castanet_lab::frames::ethernet(router, mine, 0x0800, &ip.bytes());
    let good = Ip::udp("10.0.0.2", "10.9.0.2", b"");
    at_a.send_all(&[
        frame(&Ip { id: 1, ..Ip::udp("10.0.1.2", "10.9.0.2", b"") }),
        frame(&Ip { id: 2, options: vec![131, 7, 4, 10, 9, 0, 7, 0], ..good.clone() }),
        frame(&Ip { id: 3, ..good }),
    ]);
    let redirect = at_a.expect("redirect", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 5));
    let about = castanet_lab::frames::packet(&redirect.payload).map(|p| p.header.identification);
    assert_eq!(about, Some(3));
    let others = at_b.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).filter(|m| m.kind.0 == 5).count();
    assert_eq!(others, 0);
    // The packet with a source on another network was still forwarded. (The better gateway is a Linux host, which
    // drops the packet with the source route.)
    at_c.expect("packet", |f| ip_in(&f.bytes).filter(|ip| ip.header.identification == 1));
}

#[test]
fn no_redirect_between_networks() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        crate::net::through(&mut a, &mut b, &[from_a(&Ip::udp("10.0.0.2", "10.0.1.2", b""))]);
        let redirects =
            a.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).filter(|m| m.kind.0 == 5).count();
        assert_eq!(redirects, 0, "{kind:?}");
    }
}
