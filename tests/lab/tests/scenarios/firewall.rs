// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bridging firewall, as written by `castanet new firewall`.

use crate::net::{castanet, lab};
use castanet_lab::frames::{self, Ip, ip_in};
use castanet_lab::{Process, Router};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

#[test]
fn only_permitted_traffic_passes() {
    let Some(lab) = lab() else { return };
    let [a, f, b] = ["a", "f", "b"].map(|name| lab.host(name));
    lab.link((&a, "eth0"), (&f, "eth0"));
    lab.link((&b, "eth0"), (&f, "eth1"));
    // Both ends are on the same network, so the firewall is not a hop.
    a.address("eth0", "10.0.0.2/24");
    b.address("eth0", "10.0.0.3/24");
    let mut new = f.command(castanet());
    new.args(["new", "firewall", "eth0", "eth1", "--in", "deny src host 10.0.0.9"]);
    new.args(["--in", "allow tcp dst port 80", "--in", "allow icmp type echo-reply", "--in", "allow udp"]);
    let text = Process::start(new).wait(PATIENCE).good();
    let f = Router::run(f, castanet(), &["-e", &text], 2);
    // Echo requests go out and replies come in, with an unchanged time to live.
    let said = a.ping(2, "10.0.0.3");
    assert!(said.contains("ttl=64") && !said.contains("DUP"), "{said}");
    let said = b.run("ping -c 2 -i 0.02 -W 1 10.0.0.2");
    assert!(!said.ok() && said.stdout.contains("0 received"), "{said:?}");
    // A permitted service, with segmentation left to the devices, and a service that is blocked.
    let mut serving = a.spawn("iperf3 -s -1 --forceflush -p 80");
    serving.wait_for("listening", PATIENCE);
    b.run("iperf3 -c 10.0.0.2 -p 80 -n 5M").good();
    assert!(serving.wait(PATIENCE).ok());
    let mut serving = a.spawn("iperf3 -s -1 --forceflush -p 81");
    serving.wait_for("listening", PATIENCE);
    let refused = b.run("iperf3 -c 10.0.0.2 -p 81 -n 1K --connect-timeout 500");
    assert!(!refused.ok(), "{refused:?}");
    // Permitted packets are forwarded byte for byte, the first matching rule applies, and non-IP packets are
    // blocked.
    let (mut at_a, mut at_b) = (a.wire("eth0"), b.wire("eth0"));
    let (to, from) = (a.ether("eth0"), b.ether("eth0"));
    let frame = |ip: &Ip| frames::ethernet(to, from, 0x0800, &ip.bytes());
    let options = vec![7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let good = frame(&Ip { id: 7, ttl: 1, options, ..Ip::udp("10.0.0.3", "10.0.0.2", b"as it was") });
    let mut broken = good.clone();
    broken[24] ^= 1;
    at_b.send_all(&[
        frame(&Ip::udp("10.0.0.9", "10.0.0.2", b"denied")),
        frames::ethernet(to, from, 0x86dd, &[0x60; 60]),
        broken,
        good.clone(),
    ]);
    let came = at_a.expect("datagram", |f| ip_in(&f.bytes).map(|_| f.bytes.clone()));
    assert_eq!(came, good);
    let ended = f.stop();
    let broken =
        |text: &str| text.ends_with("IP header check failed: bad IP checksum\n") && text.lines().count() == 1;
    assert!(ended.as_ref().is_some_and(|o| o.ok() && broken(&o.stderr)), "{ended:?}");
}
