// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first configurations of the routers, and the configurations for hot swaps: good, bad and failing ones.

use crate::network::RouterKind;
use crate::schedule::Dice;
use castanet_lab::{Host, Port, Process, router};
use std::path::Path;
use std::time::Duration;

/// Timeout of a command.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of swaps after which the router writes the trace to the other one of its two files.
const SWAPS_PER_TRACE: usize = 30;

/// The expected result of a hot swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The router runs the new configuration.
    Accepted,
    /// The text has an error.
    Bad,
    /// The text is correct, but a device or file in it does not exist.
    Failing,
}

fn new(host: &Host, castanet: &Path, arguments: &[&str]) -> String {
    let mut command = host.command(castanet);
    command.arg("new").args(arguments);
    Process::start(command).wait(PATIENCE).good()
}

/// Replaces `old` by `new` in a configuration, which must contain `old`.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "no '{old}' in\n{text}");
    text.replace(old, new)
}

/// Returns the first configuration of a router.
pub fn first(kind: RouterKind, host: &Host, castanet: &'static Path) -> String {
    let bridge = |more: &[&str]| {
        let times = ["--forward-delay", "4", "--hello", "1", "--max-age", "6"];
        new(host, castanet, &[&["bridge"], more, &times].concat())
    };
    match kind {
        RouterKind::Nat => {
            let text = new(
                host,
                castanet,
                &["nat", "lan=10.0.0.1/24", "wan=192.0.2.2/24", "--gateway", "192.0.2.1"],
            );
            // With these settings, 50,000 connections a minute fill the table in a few minutes instead of an hour.
            let sweep = "CAPACITY 150000, TCP_DONE_TIMEOUT 60, REAP_INTERVAL 30);\nping ::";
            replaced(&text, ");\nping ::", &format!(", {sweep}"))
        }
        RouterKind::Firewall => new(
            host,
            castanet,
            &[
                "firewall",
                "inside",
                "outside",
                "--in",
                "deny src net 10.0.0.0/24",
                "--in",
                "allow tcp opt ack",
                "--in",
                "allow udp src port 7200",
                "--in",
                "allow ip frag",
                "--in",
                "allow icmp",
                "--out",
                "deny tcp dst port 25",
                "--out",
                "allow all",
            ],
        ),
        RouterKind::Router => {
            let port = |device, address| Port { device, address, mtu: 1500 };
            let ports =
                [port("eth0", "192.0.2.1/24"), port("eth1", "203.0.113.1/24"), port("eth2", "10.66.0.1/24")];
            let routes = [("198.51.100.0/24", "203.0.113.2")];
            let text = router::configuration(host, castanet, &ports, &routes, &[]);
            // Packets that arrive from the firewall are also written to a trace file on a small disk.
            let traced = "1500) -> copy :: Tee -> ip; copy [1] -> copies :: Queue(500) -> Unqueue \
                -> trace :: ToDump(/mnt/trace0.pcap); interface1 [1]";
            replaced(&text, "1500) -> ip; interface1 [1]", traced)
        }
        RouterKind::RootSwitch => bridge(&["p0", "p1", "p2", "--priority", "0x1000"]),
        RouterKind::Switch => bridge(&["q0", "q1", "q2", "q3", "--priority", "0x2000"]),
    }
}

/// Returns the configuration for swap number `n`, and the expected result of the swap.
pub fn next(first: &str, n: usize, dice: &mut Dice) -> (String, Expected) {
    let trace = format!("/mnt/trace{}.pcap", n / SWAPS_PER_TRACE % 2);
    let text = first.replace("/mnt/trace0.pcap", &trace);
    let with = |more: &str| format!("{text}\n{more}\n");
    match dice.below(10) {
        0 => (with("further :: Counter(;"), Expected::Bad),
        1 => (with("Idle -> further :: NoSuchClass -> Discard;"), Expected::Bad),
        2 => (with("Idle -> Queue(some) -> Discard;"), Expected::Bad),
        3 => (with("Idle -> Queue -> ToDevice(nosuch);"), Expected::Failing),
        4 => (with("FromDump(/mnt/nosuch/file.pcap) -> Discard;"), Expected::Failing),
        5 => (with("FromDevice(nosuch) -> Discard;"), Expected::Failing),
        // Half of the good configurations have an additional counter between the queue and the device.
        6 | 7 => {
            let counted = text.replace("ToDevice($dev)", "sent :: Counter -> ToDevice($dev)");
            (format!("Idle -> further :: Counter -> Discard;\n{counted}"), Expected::Accepted)
        }
        8 => {
            (with("Idle -> Counter -> Discard; further :: TimedSource(0.1) -> Discard;"), Expected::Accepted)
        }
        _ => (text, Expected::Accepted),
    }
}

/// Returns the trace file that swap number `n` completes: from this swap on, the router writes to the other file.
/// `None` if swap `n` does not change the file.
pub fn finished_trace(n: usize) -> Option<String> {
    (n > 0 && n.is_multiple_of(SWAPS_PER_TRACE))
        .then(|| format!("/mnt/trace{}.pcap", (n / SWAPS_PER_TRACE - 1) % 2))
}
