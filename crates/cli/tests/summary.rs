// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary of `castanet run`, as text and as JSON.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ran, bench};
use serde_json::{Value, json};

const TEXT: &str = "FromIPSummaryDump(in.txt, STOP true) -> t :: Tee -> out :: ToIPSummaryDump(out.txt, CONTENTS ip_src ip_dst);
t [1] -> i :: Idle;
t [2] -> GetIPAddress(16) -> arp :: ARPQuerier(10.0.0.1/24, 02:00:00:00:00:01) -> sent :: Discard;
Idle -> [1] arp;
";

/// Runs a configuration with three packets for a host that does not answer ARP requests.
fn run(more: &[&str]) -> Ran {
    let b = bench();
    b.file("in.txt", &format!("!data ip_src ip_dst ip_proto\n{}", "10.0.0.7 10.0.0.9 U\n".repeat(3)));
    let ran = b.run("castanet", &[&["run", "--simtime"], more, &["-e", TEXT]].concat(), "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read_to_string(b.path("out.txt")).unwrap().matches("10.0.0.9").count(), 3);
    ran
}

#[test]
fn json_accounts_for_every_packet() {
    let ran = run(&["--json"]);
    let mut summary: Value = serde_json::from_str(&ran.out).unwrap();
    let seconds = summary.as_object_mut().unwrap().remove("seconds");
    assert!(seconds.is_some_and(|s| s.as_f64().is_some()));
    let row = |element: &str, what: &str, packets: u64| json!({ "element": element, "what": what, "packets": packets });
    let want = json!({
        "in": [row("FromIPSummaryDump@1", "FromIPSummaryDump in.txt", 3)],
        "made": [row("t", "Tee ", 6), row("arp", "ARPQuerier 10.0.0.1/24", 1)],
        "out": [row("out", "ToIPSummaryDump out.txt", 3), row("sent", "Discard ", 1)],
        "icmp_errors": {},
        "drops": { "discarded": { "i": 3 } },
        "held": { "arp": 3 },
        "system_drops": {},
        "missing": 0,
    });
    assert_eq!(summary, want);
}

#[test]
fn text_has_a_section_for_each_fate() {
    let ran = run(&[]);
    let (sections, time) = ran.out.trim_end().rsplit_once('\n').unwrap();
    assert!(time.starts_with("3 packets in "), "{time}");
    let want = "Packets in
  FromIPSummaryDump@1  3  FromIPSummaryDump in.txt
Packets made
  t                    6  Tee
  arp                  1  ARPQuerier 10.0.0.1/24
Packets out
  out                  3  ToIPSummaryDump out.txt
  sent                 1  Discard
Dropped
  discarded            3  i 3
Held
  arp                  3";
    assert_eq!(sections, want);
}

#[test]
fn profiles_are_printed_and_drawn() {
    let b = bench();
    let text = "a :: InfiniteSource(LIMIT 20000, STOP true) -> Counter -> Discard;";
    let ran = b.run("castanet", &["run", "-q", "--profile", "--flame", "f.svg", "-e", text], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("ELEMENT ") && lines[0].ends_with("  NS/PACKET     PACKETS"), "{}", ran.out);
    assert!(lines.iter().any(|l| l.starts_with("Counter@2 ")), "{}", ran.out);
    assert!(lines.last().unwrap().starts_with("measured: "), "{}", ran.out);
    let flame = std::fs::read_to_string(b.path("f.svg")).unwrap();
    assert!(flame.contains("Counter@2 :: Counter") && roxmltree::Document::parse(&flame).is_ok(), "{flame}");
    // Values alone are on standard output.
    let ran = b.run("castanet", &["run", "-q", "--profile", "-h", "a.count", "-e", text], "");
    assert!(ran.err.starts_with("ELEMENT ") && !ran.out.contains("ELEMENT"), "{ran:?}");
    let ran = b.run("castanet", &["run", "-q", "--flame", "f.svg", "-e", text], "");
    assert_eq!(ran.code, 2, "{ran:?}");
}
