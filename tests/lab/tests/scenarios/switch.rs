// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests three Ethernet switches in a ring, one of them the kernel's bridge. The spanning tree prevents loops, and
//! finds another path when a link is cut.

use crate::net::{castanet, lab};
use castanet_lab::frames::{self, BROADCAST};
use castanet_lab::{Host, Lab, Output, Process, Router, Wire};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(200);

/// Options of `castanet new bridge`: the shortest times that the standard allows.
const TIMES: [&str; 6] = ["--forward-delay", "4", "--hello", "1", "--max-age", "6"];

/// Three switches in a ring, with a host at each.
struct Ring {
    hosts: [Host; 3],
    kernel: Host,
    ours: [Router; 2],
    _lab: Lab,
}

impl Ring {
    /// Creates the ring. `kernel_priority` is the bridge priority of the kernel's bridge; our switches keep
    /// the default of `castanet new bridge`.
    fn new(kernel_priority: u32) -> Option<Ring> {
        let lab = lab()?;
        let hosts = ["a", "b", "c"].map(|name| lab.host(name));
        let switches = ["k", "s", "t"].map(|name| lab.host(name));
        // On each switch, port 0 connects to its host, port 1 to the next switch, port 2 to the previous one.
        for (i, (host, switch)) in hosts.iter().zip(&switches).enumerate() {
            lab.link((host, "eth0"), (switch, "eth0"));
            host.address("eth0", &format!("10.0.0.{}/24", i + 1));
        }
        for i in 0..3 {
            lab.link((&switches[i], "eth1"), (&switches[(i + 1) % 3], "eth2"));
        }
        let [kernel, s, t] = switches;
        // Times are in hundredths of a second.
        kernel.ip(&format!(
            "link add name bridge type bridge stp_state 1 forward_delay 200 hello_time 100 max_age 600 \
             priority {kernel_priority} mcast_snooping 0"
        ));
        kernel.ip("link set bridge up");
        for port in ["eth0", "eth1", "eth2"] {
            kernel.ip(&format!("link set {port} master bridge"));
        }
        let ours = [s, t].map(|switch| {
            let mut new = switch.command(castanet());
            new.args(["new", "bridge", "eth0", "eth1", "eth2"]).args(TIMES);
            let text = Process::start(new).wait(PATIENCE).good();
            Router::run(switch, castanet(), &["-e", &text, "-h", "tree.msgs"], 3)
        });
        Some(Ring { hosts, kernel, ours, _lab: lab })
    }

    /// Waits until each host can reach the next one.
    #[track_caller]
    fn settle(&self, limit: Duration) {
        let start = Instant::now();
        let [a, b, c] = &self.hosts;
        for (from, to) in [(a, "10.0.0.2"), (b, "10.0.0.3"), (c, "10.0.0.1")] {
            while !from.run(&format!("ping -c 1 -W 1 {to}")).ok() {
                assert!(start.elapsed() < limit, "{} does not reach {to} after {limit:?}", from.name());
            }
        }
    }
}

/// Sends a broadcast frame from one host. Returns how often each host receives it.
fn heard(wires: &mut [Wire; 3], mark: u8) -> [usize; 3] {
    let frame = frames::ethernet(BROADCAST, [4, 0, 0, 0, 0, mark], 0x88b5, &[mark; 60]);
    wires[0].send(&frame);
    let first = [false, true, true];
    for (wire, _) in wires.iter_mut().zip(first).filter(|(_, reached)| *reached) {
        wire.expect("broadcast", |f| (f.bytes == frame).then_some(()));
    }
    // In a loop, the frame would arrive repeatedly.
    [0, 1, 2].map(|i| {
        let more = wires[i].rest(Duration::from_millis(200));
        usize::from(first[i]) + more.iter().filter(|f| f.bytes == frame).count()
    })
}

/// Returns the number of the kernel's ports in a state such as `blocking`.
fn kernel_ports(kernel: &Host, state: &str) -> usize {
    kernel.ip("-d link show master bridge").matches(&format!("state {state} ")).count()
}

#[test]
fn three_switches_in_a_ring_heal_after_a_cut() {
    // The kernel's bridge is the root, so its times apply: a forward delay of 2 s and a maximum age of 6 s.
    let Some(ring) = Ring::new(0x1000) else { return };
    ring.settle(Duration::from_secs(200));
    let mut wires = ring.hosts.each_ref().map(|h| h.wire("eth0"));
    // There is no loop: the sender of a broadcast never receives it, and every other host receives it once.
    assert_eq!(heard(&mut wires, 1), [0, 1, 1]);
    // The root blocks none of its ports. The blocked port is between the other two switches.
    assert_eq!(kernel_ports(&ring.kernel, "forwarding"), 3);
    // Cuts the link between the root and our first switch.
    ring.kernel.ip("link set eth1 down");
    ring.settle(Duration::from_secs(200));
    assert_eq!(heard(&mut wires, 2), [0, 1, 1]);
    // No loop existed meanwhile: it would have caused many thousands of frames.
    for host in &ring.hosts {
        let came = host.statistic("eth0", "rx/packets");
        assert!(came < 500, "{}: {came} frames", host.name());
    }
    for switch in ring.ours {
        let said = switch.stop().map(Output::good).unwrap_or_default();
        assert!(said.contains("root 1000.") && !said.contains(" blocking:"), "{said}");
    }
}

#[test]
fn without_a_tree_the_same_ring_storms() {
    // A control experiment: without a spanning tree, frames do loop.
    let Some(lab) = lab() else { return };
    let (host, switches) = (lab.host("a"), ["r", "s", "t"].map(|name| lab.host(name)));
    lab.link((&host, "eth0"), (&switches[0], "eth0"));
    for i in 0..3 {
        lab.link((&switches[i], "eth1"), (&switches[(i + 1) % 3], "eth2"));
    }
    let relay = |devices: &[&str]| {
        let mut text = String::from("s :: EtherSwitch;\n");
        for (i, d) in devices.iter().enumerate() {
            text += &format!("FromDevice({d}, PROMISC true) -> [{i}] s [{i}] -> Queue -> ToDevice({d});\n");
        }
        text
    };
    let [r, s, t] = switches;
    let _r = Router::run(r, castanet(), &["-e", &relay(&["eth0", "eth1", "eth2"])], 3);
    let _others = [s, t].map(|h| Router::run(h, castanet(), &["-e", &relay(&["eth1", "eth2"])], 2));
    let mut wire = host.wire("eth0");
    wire.send(&frames::ethernet(BROADCAST, [4, 0, 0, 0, 0, 1], 0x88b5, &[1; 60]));
    let deadline = Instant::now() + PATIENCE;
    while host.statistic("eth0", "rx/packets") < 1000 {
        assert!(Instant::now() < deadline, "no storm");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_port_blocks_with_any_root() {
    // First the kernel's bridge is the root, so it blocks no port. Then another switch is the root, and the
    // kernel's bridge has the most expensive paths to it, so the kernel's bridge blocks one port.
    for (priority, cost, in_kernel) in [(0x1000, 2, 0), (0xf000, 100, 1)] {
        let Some(ring) = Ring::new(priority) else { return };
        for port in ["eth1", "eth2"] {
            ring.kernel.ip(&format!("link set {port} type bridge_slave cost {cost}"));
        }
        ring.settle(Duration::from_secs(200));
        let mut wires = ring.hosts.each_ref().map(|h| h.wire("eth0"));
        assert_eq!(heard(&mut wires, 1), [0, 1, 1]);
        assert_eq!(kernel_ports(&ring.kernel, "blocking"), in_kernel);
        // Our switches print their port states when they end. Both are stopped at the same time: if one ended
        // earlier, the other would change its port states after a few seconds.
        let ended = Router::stop_all(ring.ours);
        let said: String = ended.into_iter().flatten().map(Output::good).collect();
        assert_eq!(said.matches(" blocking:").count(), 1 - in_kernel, "{said}");
    }
}
