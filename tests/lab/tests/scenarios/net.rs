// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network of most scenarios: host a, the router, host b.

use castanet_lab::frames::Ip;
use castanet_lab::lab::DRIVER;
use castanet_lab::{Frame, Host, Lab, Port, Router, RouterKind, Wire};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// The interval without packets after which nothing more is expected.
pub const QUIET: Duration = Duration::from_millis(150);

/// Ethernet addresses of the first link: a and the router's eth0.
pub const A: [u8; 6] = [2, 0, 0, 0, 1, 1];
pub const R0: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// Ethernet addresses of the second link: b and the router's eth1.
pub const B: [u8; 6] = [2, 0, 0, 0, 2, 1];
pub const R1: [u8; 6] = [2, 0, 0, 0, 2, 2];

/// a (10.0.0.2) - eth0 of r (10.0.0.1), eth1 of r (10.0.1.1) - b (10.0.1.2).
pub struct Net {
    pub a: Host,
    pub b: Host,
    pub r: Router,
    _lab: Lab,
}

/// The path of the castanet command.
pub fn castanet() -> &'static Path {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    BUILT.get_or_init(castanet_tests::binary::castanet)
}

/// Returns Castanet as the kind of router.
pub fn ours() -> RouterKind {
    RouterKind::Castanet(castanet())
}

/// Returns both kinds of routers, the kernel first.
pub fn both() -> [RouterKind; 2] {
    [RouterKind::Kernel, ours()]
}

/// Creates a lab, or prints why there is none.
pub fn lab() -> Option<Lab> {
    Lab::new().inspect_err(|why| println!("SKIP: {why}")).ok()
}

/// The router's interfaces, with their MTUs.
pub fn ports(mtu0: u16, mtu1: u16) -> [Port; 2] {
    [
        Port { device: "eth0", address: "10.0.0.1/24", mtu: mtu0 },
        Port { device: "eth1", address: "10.0.1.1/24", mtu: mtu1 },
    ]
}

/// Creates two hosts linked to the host of the router.
pub fn hosts(lab: &Lab) -> (Host, Host, Host) {
    let (a, r, b) = (lab.host("a"), lab.host("r"), lab.host("b"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    lab.link((&b, "eth0"), (&r, "eth1"));
    for (host, network) in [(&a, "10.0.0"), (&b, "10.0.1")] {
        host.address("eth0", &format!("{network}.2/24"));
        host.route("default", &format!("{network}.1"));
        // Disables rate limits for replies.
        host.sysctl("net.ipv4.icmp_ratelimit", 0);
    }
    (a, r, b)
}

impl Net {
    /// Creates the network in a lab, with these MTUs and additional routes on the router.
    pub fn within(lab: Lab, kind: RouterKind, mtus: (u16, u16), routes: &[(&str, &str)]) -> Net {
        let (a, r, b) = hosts(&lab);
        // Both ends of a link have the same MTU.
        a.ip(&format!("link set eth0 mtu {}", mtus.0));
        b.ip(&format!("link set eth0 mtu {}", mtus.1));
        let r = Router::start(r, kind, &ports(mtus.0, mtus.1), routes);
        Net { a, b, r, _lab: lab }
    }

    /// Creates the network with additional routes on the router and options for `castanet new ip-router`.
    pub fn asked(kind: RouterKind, routes: &[(&str, &str)], further: &[&str]) -> Option<Net> {
        let lab = lab()?;
        if kind == RouterKind::Kernel {
            return Some(Net::within(lab, kind, (1500, 1500), routes));
        }
        let (a, r, b) = hosts(&lab);
        let text = castanet_lab::router::configuration(&r, castanet(), &ports(1500, 1500), routes, further);
        let r = Router::run(r, castanet(), &["-e", &text], 2);
        Some(Net { a, b, r, _lab: lab })
    }

    /// Creates the network with default settings.
    pub fn new(kind: RouterKind) -> Option<Net> {
        lab().map(|lab| Net::within(lab, kind, (1500, 1500), &[]))
    }

    /// Opens the devices of a and b, after the neighbour caches are filled.
    pub fn wires(&self) -> (Wire, Wire) {
        self.a.run("ping -c 1 -W 60 10.0.1.2").good();
        (self.a.wire("eth0"), self.b.wire("eth0"))
    }
}

/// Builds a frame from a to the router.
pub fn from_a(ip: &Ip) -> Vec<u8> {
    castanet_lab::frames::ethernet(R0, A, 0x0800, &ip.bytes())
}

/// Builds a frame from b to the router.
pub fn from_b(ip: &Ip) -> Vec<u8> {
    castanet_lab::frames::ethernet(R1, B, 0x0800, &ip.bytes())
}

/// The identification of the packet that marks the end of a sequence.
pub const LAST: u16 = 0xfffe;

/// Sends frames from a, followed by a marker packet. Returns the frames that arrived at b before the marker.
pub fn through(a: &mut Wire, b: &mut Wire, frames: &[Vec<u8>]) -> Vec<Frame> {
    let mut all = frames.to_vec();
    // With the driver xdp, packets that stay in the kernel may overtake those that go up. Packets with options go up.
    let options = if std::env::var_os(DRIVER).is_some() { vec![1; 4] } else { Vec::new() };
    all.push(from_a(&Ip { id: LAST, options, ..Ip::udp("10.0.0.2", "10.0.1.2", b"last") }));
    a.send_all(&all);
    let mut before = Vec::new();
    b.expect("last packet", |frame| {
        let last =
            castanet_lab::frames::ip_in(&frame.bytes).is_some_and(|ip| ip.header.identification == LAST);
        if !last {
            before.push(frame.clone());
        }
        last.then_some(())
    });
    before
}
