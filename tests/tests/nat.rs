// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the NAT gateway of conf/ with many concurrent flows. Its inside device is replaced by a file of packets, and
//! its outside device by elements that answer each packet.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The number of TCP flows to one port of one server: they use more than three quarters of the gateway's ports.
const FLOWS: u32 = 50_000;

/// A recorded packet: source, source port, destination, destination port, protocol.
type Line = [String; 5];

/// Returns the inside address and port of a flow. Several hosts use the same port.
fn inside(flow: u32) -> (String, u32) {
    (format!("10.0.0.{}", 2 + flow % 200), 2000 + flow / 200)
}

/// Reads recorded packets, one per line.
fn lines(file: &Path) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap();
    let all = text.lines().filter(|l| !l.starts_with('!'));
    all.map(|l| {
        let words: Vec<String> = l.split(' ').map(str::to_string).collect();
        words.try_into().unwrap_or_else(|w| panic!("{w:?}"))
    })
    .collect()
}

/// Runs the gateway, and returns handler values at the end.
fn run(folder: &Path, handlers: &[&str]) -> Vec<String> {
    run_with(folder, handlers, |conf| conf)
}

/// Like [`run`], with a change to the configuration.
fn run_with(folder: &Path, handlers: &[&str], change: impl Fn(String) -> String) -> Vec<String> {
    const FIELDS: &str = "FIELDS ip_src sport ip_dst dport ip_proto";
    let [from, out, back] = ["from", "out", "back"].map(|f| folder.join(f).display().to_string());
    let conf = fs::read_to_string(root().join("conf/nat-gateway.click")).unwrap();
    let text = change(conf)
        .replace("lan :: Interface($LAN)", "lan :: Inside")
        .replace("wan :: Interface($WAN)", "wan :: Outside");
    assert!(text.contains("lan :: Inside") && text.contains("wan :: Outside"));
    let text = format!(
        "elementclass Inside {{
            FromIPSummaryDump({from}) -> CheckIPHeader(CHECKSUM false) -> SetIPChecksum -> output;
            input -> CheckIPHeader -> heard :: Counter -> ToIPSummaryDump({back}, {FIELDS});
            Idle -> [1] output;
        }}
        elementclass Outside {{
            input -> CheckIPHeader -> Queue(100000) -> Unqueue -> seen :: Counter -> t :: Tee -> IPMirror -> output;
            t [1] -> ToIPSummaryDump({out}, {FIELDS});
            Idle -> [1] output;
        }}
        {text}
        DriverManager(wait 20, stop);"
    );
    let mut command = Command::new(castanet());
    command.args(["run", "-q", "--simtime", "-e", &text]);
    handlers.iter().for_each(|h| {
        command.args(["-h", h]);
    });
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{shown}{}", String::from_utf8_lossy(&ran.stderr));
    let value = |h: &&str| {
        let mut rest = shown.lines().skip_while(|l| *l != format!("{h}:")).skip(1);
        rest.next().unwrap_or_else(|| panic!("no {h} in {shown}")).to_string()
    };
    handlers.iter().map(value).collect()
}

#[test]
fn fifty_thousand_flows_at_once_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("!data ip_src sport ip_dst dport ip_proto\n");
    for flow in 0..FLOWS {
        let (host, port) = inside(flow);
        writeln!(text, "{host} {port} 198.51.100.7 443 T").unwrap();
        // For every tenth flow there is also a UDP flow with the same port.
        if flow % 10 == 0 {
            writeln!(text, "{host} {port} 198.51.100.7 443 U").unwrap();
        }
    }
    fs::write(folder.path().join("from"), text).unwrap();
    let both = u64::from(FLOWS + FLOWS / 10);
    let shown = run(folder.path(), &["lan/heard.count", "wan/seen.count", "rw.size", "rw.mapping_failures"]);
    assert_eq!(shown, [both, both, both, 0].map(|n| n.to_string()));
    let out = lines(&folder.path().join("out"));
    assert!(out.iter().all(|[from, ..]| from == "192.0.2.2"));
    let ports: BTreeSet<_> = out.iter().map(|[_, port, .., proto]| (proto, port)).collect();
    assert_eq!(ports.len() as u64, both, "flows that nobody could tell apart");
    // Each host received the replies to its own packets.
    let back: BTreeSet<_> = lines(&folder.path().join("back")).into_iter().collect();
    let want = (0..FLOWS).flat_map(|flow| {
        let (host, port) = inside(flow);
        let line =
            move |proto: &str| ["198.51.100.7", "443", &host, &port.to_string(), proto].map(str::to_string);
        [Some(line("T")), (flow % 10 == 0).then(|| line("U"))].into_iter().flatten().collect::<Vec<_>>()
    });
    let want: BTreeSet<_> = want.collect();
    assert!(back == want, "{:?}", back.symmetric_difference(&want).take(5).collect::<Vec<_>>());
}

#[test]
fn when_all_ports_are_used_new_flows_are_refused_and_counted() {
    // One host opens 64,512 flows to one server, which use all ports of the gateway. Another host then gets no port
    // for a flow to this server.
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("!data ip_src sport ip_dst dport ip_proto\n");
    (1024..=65535).for_each(|port| writeln!(text, "10.0.0.2 {port} 198.51.100.7 443 U").unwrap());
    text += "10.0.0.3 5000 198.51.100.7 443 U\n10.0.0.3 5000 198.51.100.8 443 U\n";
    fs::write(folder.path().join("from"), text).unwrap();
    let shown = run(folder.path(), &["lan/heard.count", "rw.size", "rw.mapping_failures"]);
    assert_eq!(shown, ["64513", "64513", "1"]);
    let last = lines(&folder.path().join("back")).pop().unwrap();
    assert_eq!(
        last[..3],
        ["198.51.100.8", "443", "10.0.0.3"],
        "the same port is free towards another server"
    );
}

#[test]
fn a_flood_of_new_connections_is_bounded_and_counted() {
    // Hosts inside open 30,000 connections without continuing them, and the table has room for 5,000. An
    // earlier connection has carried packets in both directions, and carries another packet at the end.
    const ROOM: u64 = 5_000;
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("!data timestamp ip_src sport ip_dst dport ip_proto tcp_flags\n");
    writeln!(text, "1.0 10.0.0.2 4000 198.51.100.7 443 T S").unwrap();
    for i in 0..4 {
        writeln!(text, "1.{} 10.0.0.2 4000 198.51.100.7 443 T A", i + 1).unwrap();
    }
    for flow in 0..30_000u32 {
        let (host, port) = (10 + flow % 200, 1024 + flow / 200);
        let to = flow.wrapping_mul(2_654_435_761) >> 8;
        let [a, b, c, _] = to.to_be_bytes();
        writeln!(text, "2.0 10.0.0.{host} {port} 198.{a}.{b}.{c} 80 T S").unwrap();
    }
    writeln!(text, "3.0 10.0.0.2 4000 198.51.100.7 443 T A").unwrap();
    fs::write(folder.path().join("from"), text).unwrap();
    let handlers = ["rw.size", "rw.mapping_failures", "wan/seen.count", "lan/heard.count"];
    let shown = run_with(folder.path(), &handlers, |conf| {
        let changed = conf.replace(
            "pattern - - $SERVER1 0 0);",
            &format!("pattern - - $SERVER1 0 0, MAPPING_CAPACITY {ROOM});"),
        );
        assert_ne!(changed, conf);
        changed
    });
    let [size, failures, seen, heard] = shown.iter().map(|n| n.parse().unwrap()).collect::<Vec<u64>>()[..]
    else {
        panic!("{shown:?}")
    };
    assert_eq!(size, ROOM);
    // Refused flows are counted. All others were forwarded and answered.
    assert_eq!((seen, heard), (30_006 - failures, 30_006 - failures));
    assert!(failures >= 30_000 - ROOM, "{failures}");
    let last = lines(&folder.path().join("back")).pop().unwrap();
    assert_eq!(last[2..4], ["10.0.0.2", "4000"], "the connection from before the flood goes on");
}
