// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet trace` and `castanet tap`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use castanet_testkit::until;
use common::{Bench, Live, objects};
use std::process::{Command, Stdio};

/// A frame with a UDP packet from 10.0.0.1 to 10.0.0.2, whose time to live is `ttl`.
fn frame(ttl: u8) -> String {
    let header = format!("4500001c00000000{ttl:02x}1100000a0000010a000002");
    let sum = (0..10).map(|i| u32::from_str_radix(&header[4 * i..4 * i + 4], 16).unwrap()).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    format!(
        "020000000002 020000000001 0800 4500001c00000000 {ttl:02x}11 {sum:04x} 0a000001 0a000002 0007000900080000"
    )
}

/// Packets of two sources pass some elements, and wait in a queue for half a second.
fn router(limit: &str) -> String {
    format!(
        "good :: RatedSource(DATA \\<{}>, RATE 20, LIMIT {limit}) -> in :: Paint(3);
        bad :: RatedSource(DATA \\<{}>, RATE 20, LIMIT {limit}) -> in;
        in -> strip :: Strip(14) -> check :: CheckIPHeader -> ttl :: DecIPTTL -> tee :: Tee(2)
            -> queue :: Queue -> DelayUnqueue(0.5) -> encap :: EtherEncap(0x0800, 2:0:0:0:0:3, 2:0:0:0:0:4) -> sent :: Discard;
        tee[1] -> copies :: Discard; ttl[1] -> expired :: Discard;",
        frame(64),
        frame(1)
    )
}

#[test]
fn a_configuration_is_run_and_its_packets_are_followed() {
    let b = Bench::new();
    b.file("r.click", &router("3"));
    let ran = b.run("castanet", &["trace", "r.click", "ttl 64", "-n", "1", "--simtime"], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let want = "\
packet 1: 42 bytes, 10.0.0.1 -> 10.0.0.2, udp
       0 ns          good :: RatedSource     entered, to [0]
       0 ns          in :: Paint             to [0]; paint 3
       0 ns          strip :: Strip          to [0]; 14 bytes stripped
       0 ns          check :: CheckIPHeader  to [0]; IP header at 0; destination 10.0.0.2
       0 ns          ttl :: DecIPTTL         to [0]; byte 8: 40 -> 3f; byte 10: 66 -> 67
       0 ns          tee :: Tee              to [0]
       0 ns  part 1  tee :: Tee              made, to [1]
       0 ns          queue :: Queue          held
       0 ns  part 1  copies :: Discard       ended: discarded
       2 ns          queue :: Queue          to [0]; held for 2 ns
       2 ns          DelayUnqueue@9          held
   500.0 ms          DelayUnqueue@9          to [0]; held for 500.0 ms
   500.0 ms          encap :: EtherEncap     to [0]; 14 bytes prepended
   500.0 ms          sent :: Discard         ended: discarded
";
    assert_eq!(ran.out, want);
}

/// A router that runs until it is dropped.
fn start(b: &Bench) -> Live {
    let mut c = b.command("castanet");
    let text = router("-1");
    c.args(["run", "-q", "-u", "s", "-e", &text]).stdin(Stdio::null()).stdout(Stdio::null());
    let live = Live(c.spawn().unwrap());
    until("the router answers", || b.run("castanet", &["ctl", "s", "read", "driver"], "").code == 0);
    live
}

/// Returns the lines of tshark about a file, or nothing if tshark is not installed.
fn tshark(b: &Bench, args: &[&str]) -> Option<Vec<String>> {
    let mut c = Command::new("tshark");
    let Ok(out) = c.current_dir(b.folder.path()).arg("-n").args(args).stderr(Stdio::null()).output() else {
        println!("SKIP: no tshark to read the capture");
        return None;
    };
    Some(String::from_utf8(out.stdout).unwrap().lines().map(String::from).collect())
}

#[test]
fn packets_of_a_running_router_are_followed() {
    let b = Bench::new();
    let _live = start(&b);
    let ran =
        b.run("castanet", &["trace", "s", "ttl", "1", "-n", "2", "--json", "--write", "way.pcapng"], "");
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    let packets = objects(&ran.out);
    assert_eq!(packets.len(), 2);
    for (n, packet) in (1..).zip(&packets) {
        assert_eq!((&packet["packet"], &packet["is_whole"]), (&n.into(), &true.into()));
        let steps: Vec<String> = packet["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| format!("{} {}", s["element"], s["event"]))
            .collect();
        let want = ["bad entered", "in out", "strip out", "check out", "ttl out", "expired ended"];
        assert_eq!(steps.join(", ").replace('"', ""), want.join(", "));
    }
    if let Some(lines) =
        tshark(&b, &["-r", "way.pcapng", "-T", "fields", "-e", "frame.comment", "-e", "ip.ttl"])
    {
        let comment = |what: &str| format!("packet 1: {what}\t1");
        let want = [
            comment("bad :: RatedSource entered, to [0]"),
            comment("in :: Paint to [0]; paint 3"),
            comment("strip :: Strip to [0]; 14 bytes stripped"),
        ];
        assert_eq!(lines[..3], want, "{lines:?}");
        assert_eq!(lines.len(), 12);
    }
}

#[test]
fn hot_swaps_do_not_end_a_trace() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    let text = router("-1");
    b.file("r.click", &text);
    c.args(["run", "-q", "-R", "-u", "s", "r.click"]).stdin(Stdio::null()).stdout(Stdio::null());
    let _live = Live(c.spawn().unwrap());
    until("the router answers", || b.run("castanet", &["ctl", "s", "read", "driver"], "").code == 0);
    let mut trace = b.command("castanet");
    trace.args(["trace", "s", "ttl 64", "-n", "30", "--json"]).stdout(Stdio::piped());
    let trace = trace.spawn().unwrap();
    for _ in 0..3 {
        let ran = b.run("castanet", &["ctl", "s", "swap", "r.click"], "");
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let out = trace.wait_with_output().unwrap();
    let packets = objects(&String::from_utf8(out.stdout).unwrap());
    assert_eq!((packets.len(), out.status.code()), (30, Some(0)));
    for p in &packets {
        // Packets that wait in elements move to those of the new configuration.
        let ends = p["steps"].as_array().unwrap().iter().filter(|s| s["event"] == "ended");
        let ends: Vec<&str> = ends.map(|s| s["element"].as_str().unwrap()).collect();
        assert_eq!((&p["is_whole"], &ends[..]), (&true.into(), &["copies", "sent"][..]), "{p}");
    }
}

#[test]
fn nothing_is_left_of_a_trace() {
    let b = Bench::new();
    let _live = start(&b);
    let ran = b.run("castanet", &["trace", "s", "tcp", "--seconds", "0.1"], "");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.contains("no packet that matches"), "{}", ran.err);
    for (args, why) in [
        (&["trace", "s", "frob 7"][..], "frob"),
        (&["tap", "s", "nowhere", "--write", "x"], "no element named 'nowhere'"),
        (&["tap", "s", "in[1]", "--write", "x"], "'in' has no output 1"),
        (&["tap", "s", "in out", "--write", "x"], "expected ELEMENT[OUTPUT]"),
    ] {
        let ran = b.run("castanet", args, "");
        assert!(ran.code == 1 && ran.err.contains(why), "{args:?}: {ran:?}");
    }
    assert_eq!(b.run("castanet", &["trace", "nothing.sock"], "").code, 3);
    // Traces and taps of 20 clients, one after the other: none of them is left.
    for _ in 0..20 {
        assert_eq!(b.run("castanet", &["tap", "s", "in", "-n", "1", "--write", "x"], "").code, 0);
    }
}

#[test]
fn who_may_only_read_sees_no_packets() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    let text = format!("{} ControlSocket(UNIX, ro, READONLY true);", router("-1"));
    c.args(["run", "-q", "-u", "s", "-e", &text]).stdin(Stdio::null()).stdout(Stdio::null());
    let _live = Live(c.spawn().unwrap());
    until("the router answers", || b.run("castanet", &["ctl", "ro", "read", "driver"], "").code == 0);
    for args in [&["trace", "ro"][..], &["tap", "ro", "in", "--write", "x"]] {
        let ran = b.run("castanet", args, "");
        assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains("ermission"), "{ran:?}");
    }
}

#[test]
fn taps_are_captures() {
    let b = Bench::new();
    let _live = start(&b);
    for (point, filter) in [("in", ""), ("[0]strip", "ttl 64")] {
        let ran = b.run("castanet", &["tap", "s", point, filter, "-n", "4", "--write", "t.pcapng"], "");
        assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (0, "4 packets copied\n", ""));
        let Some(lines) =
            tshark(&b, &["-r", "t.pcapng", "-T", "fields", "-e", "eth.dst", "-e", "ip.dst", "-e", "ip.ttl"])
        else {
            continue;
        };
        assert_eq!(lines.len(), 4);
        for line in &lines {
            assert!(line.starts_with("02:00:00:00:00:02\t10.0.0.2\t"), "{line}");
            assert!(filter.is_empty() || line.ends_with("\t64"), "{line}");
        }
    }
    // IP packets behind Strip, as a pipe.
    let mut tap = b.command("castanet");
    tap.args(["tap", "s", "ttl", "-n", "3", "--bytes", "20"]).stdout(Stdio::piped());
    let mut tap = Live(tap.spawn().unwrap());
    let out = tap.0.stdout.take().unwrap();
    let mut c = Command::new("tshark");
    let read =
        c.args(["-n", "-r", "-", "-T", "fields", "-e", "frame.len", "-e", "frame.cap_len", "-e", "ip.ttl"]);
    let Ok(read) = read.stdin(out).stderr(Stdio::null()).output() else {
        println!("SKIP: no tshark to read the capture");
        return;
    };
    assert_eq!(String::from_utf8(read.stdout).unwrap(), "28\t20\t63\n".repeat(3));
}
