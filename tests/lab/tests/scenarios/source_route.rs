// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP source routes.

use crate::net::{Net, QUIET, both, from_a, ours, through};
use castanet_lab::RouterKind;
use castanet_lab::frames::{Ip, address, icmp_in, ip_in};

/// Option types of loose and strict source routes.
const KINDS: [u8; 2] = [131, 137];

/// Builds a packet with a source route.
fn by(to: &str, options: &[u8]) -> Vec<u8> {
    from_a(&Ip { options: options.to_vec(), ..Ip::udp("10.0.0.2", to, b"round") })
}

/// Creates a network whose router follows source routes, with a further network behind b.
fn following(kind: RouterKind) -> Option<Net> {
    let net = Net::asked(kind, &[("172.16.0.0/16", "10.0.1.2")], &["--source-routes", "follow"])?;
    for scope in ["all", "eth0", "eth1"].into_iter().filter(|_| kind == RouterKind::Kernel) {
        net.r.host.sysctl(&format!("net.ipv4.conf.{scope}.accept_source_route"), 1);
    }
    Some(net)
}

#[test]
fn they_are_dropped_by_default() {
    // RFC 7126, 4.3.5 and 4.4.5: packets with a source route are dropped silently, whether the route names the router,
    // names other hosts, or is completed.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        for scope in ["all", "eth0", "eth1"].into_iter().filter(|_| kind == RouterKind::Kernel) {
            net.r.host.sysctl(&format!("net.ipv4.conf.{scope}.accept_source_route"), 0);
        }
        let (mut a, mut b) = net.wires();
        let frames: Vec<Vec<u8>> = KINDS
            .iter()
            .flat_map(|k| {
                let [named, other] = [[*k, 7, 4, 10, 0, 1, 2, 0], [*k, 7, 4, 10, 0, 1, 7, 0]];
                [by("10.0.0.1", &named), by("10.0.1.2", &other), by("10.0.0.1", &[*k, 7, 8, 10, 0, 1, 7, 0])]
            })
            .collect();
        let got = through(&mut a, &mut b, &frames);
        assert_eq!(got.iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "{kind:?}");
        // The last packet, for a closed port on b, is the only one that causes an error.
        let errors = a.rest(QUIET).into_iter().filter_map(|f| icmp_in(&f.bytes));
        let others = errors.filter(|m| m.ip.from != address("10.0.1.2")).count();
        assert_eq!(others, 0, "{kind:?}");
    }
}

#[test]
fn they_are_followed_where_asked() {
    // RFC 1812, 5.3.13.4: the next address in the route becomes the destination, and the address of the
    // outgoing interface takes its place in the route.
    for kind in both() {
        let Some(net) = following(kind) else { return };
        let (mut a, mut b) = net.wires();
        for k in KINDS {
            for to in ["10.0.0.1", "10.0.1.1"] {
                a.send(&by(to, &[1, k, 11, 4, 10, 0, 1, 2, 10, 0, 1, 9]));
                let got = b.expect("packet", |f| ip_in(&f.bytes));
                assert_eq!(got.to, address("10.0.1.2"));
                assert_eq!(
                    got.header.options.as_slice(),
                    [1, k, 11, 8, 10, 0, 1, 1, 10, 0, 1, 9],
                    "{kind:?}, {to}"
                );
                assert_eq!(got.header.time_to_live, 63);
            }
        }
        // Source routes that do not name the router pass unchanged.
        let other = [131, 7, 4, 10, 0, 1, 7, 0];
        let got = through(&mut a, &mut b, &[by("10.0.1.2", &other)]);
        let got: Vec<_> = got.iter().filter_map(|f| ip_in(&f.bytes)).collect();
        assert_eq!(got.len(), 1, "{kind:?}");
        assert_eq!(got[0].header.options.as_slice(), other, "{kind:?}");
    }
}

#[test]
fn a_strict_one_goes_to_neighbours_only() {
    for kind in both() {
        let Some(net) = following(kind) else { return };
        let (mut a, mut b) = net.wires();
        // Source routes whose next address is behind b: first a loose route, then a strict one.
        a.send(&by("10.0.0.1", &[131, 7, 4, 172, 16, 0, 1, 0]));
        let got = b.expect("packet", |f| ip_in(&f.bytes));
        assert_eq!(got.to, address("172.16.0.1"), "{kind:?}");
        a.rest(QUIET);
        a.send(&by("10.0.0.1", &[137, 7, 4, 172, 16, 0, 1, 0]));
        let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 3));
        assert_eq!(error.kind, (3, 5), "{kind:?}");
        assert_eq!(b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "{kind:?}");
    }
}

#[test]
fn their_ends_are_where_they_say() {
    // A completed route is delivered to the router, where the port is closed. A malformed route causes an
    // error. A route that leads to a group or an invalid address is dropped.
    let Some(net) = following(ours()) else { return };
    let (mut a, mut b) = net.wires();
    a.send(&by("10.0.0.1", &[131, 7, 8, 10, 0, 0, 2, 0]));
    let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 3));
    assert_eq!((error.kind, error.ip.from), ((3, 3), address("10.0.0.1")));
    a.send(&by("10.0.0.1", &[131, 7, 5, 10, 0, 1, 7, 0]));
    let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 12));
    assert_eq!((error.kind, error.rest), ((12, 0), [22, 0, 0, 0]));
    let nowhere = [[224, 0, 0, 5], [127, 0, 0, 1], [10, 0, 1, 255], [255; 4]];
    let frames: Vec<_> =
        nowhere.iter().map(|to| by("10.0.0.1", &[&[131, 7, 4], &to[..], &[0]].concat())).collect();
    a.send_all(&frames);
    assert_eq!(b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).count(), 0);
    // A route through the router's own addresses is followed to its end.
    a.send(&by("10.0.0.1", &[131, 15, 4, 10, 0, 1, 1, 10, 0, 0, 1, 10, 0, 0, 2, 0]));
    let back = a.expect("the packet itself", |f| {
        ip_in(&f.bytes).filter(|ip| ip.to == address("10.0.0.2") && ip.header.protocol.0 == 17)
    });
    assert_eq!(back.header.options.as_slice(), [131, 15, 16, 10, 0, 0, 1, 10, 0, 0, 1, 10, 0, 0, 1, 0]);
}
