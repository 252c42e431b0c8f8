// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet top` without a terminal.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use castanet_testkit::until;
use common::{Bench, Live, Ran, objects};
use std::process::Stdio;

/// 12 packets: 5 stay in the queue, and 7 are dropped.
const ROUTER: &str = "i :: InfiniteSource(LIMIT 12) -> c :: Counter -> q :: SimpleQueue(5) -> Idle; Idle -> n :: Null -> d :: Discard;";

fn start(b: &Bench) -> Live {
    let mut c = b.command("castanet");
    c.args(["run", "-q", "-u", "s", "-e", ROUTER])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let live = Live(c.spawn().unwrap());
    until("all packets have come", || b.run("castanet", &["ctl", "s", "read", "c.count"], "").out == "12\n");
    live
}

fn top(b: &Bench, args: &[&str]) -> Ran {
    b.run("castanet", &[&["top", "s", "--interval", "0.01"], args].concat(), "")
}

#[test]
fn one_table() {
    let b = Bench::new();
    let _live = start(&b);
    let ran = top(&b, &["--once", "--sort", "configuration"]);
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    let rows: Vec<Vec<_>> = ran.out.lines().map(|l| l.split_whitespace().collect()).collect();
    let want = [
        &["ELEMENT", "CLASS", "PACKETS", "DROPS", "HELD", "TIME", "NS/PKT"][..],
        &["i", "InfiniteSource", "0", "-", "-", "-", "-"],
        &["c", "Counter", "0", "-", "-", "-", "-"],
        &["q", "SimpleQueue", "-", "0", "5/5", "-", "-"],
    ];
    assert_eq!(rows[..4], want, "{}", ran.out);
    assert!(rows.iter().any(|r| r.first() == Some(&"WORKER")), "{}", ran.out);
    let first = |args: &[&str]| {
        let out = top(&b, args).out;
        out.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_string()
    };
    assert_eq!(first(&["--once", "--sort", "held"]), "q");
    assert_eq!(first(&["--once", "--sort", "drops"]), "q");
    assert_eq!(first(&["--once", "--filter", "Discard"]), "d");
    assert_eq!(first(&["--once", "--filter", "[d]"]), "d");
}

#[test]
fn one_object() {
    let b = Bench::new();
    let _live = start(&b);
    let all = objects(&top(&b, &["--once", "--json", "--sort", "drops"]).out);
    let [one] = &all[..] else { panic!("{all:?}") };
    let q = &one["elements"][0];
    assert_eq!(
        (&q["element"], &q["drops"], &q["held"], &q["capacity"]),
        (&"q".into(), &7.into(), &5.into(), &5.into())
    );
    assert_eq!(one["drops"][0]["reason"], "queue-full");
    assert_eq!(one["workers"].as_array().unwrap().len(), 1);
    let packets = |name: &str| {
        let all = one["elements"].as_array().unwrap();
        all.iter().find(|e| e["element"] == name).unwrap()["packets"].clone()
    };
    assert_eq!((packets("i"), packets("c"), packets("n")), (12.into(), 12.into(), serde_json::Value::Null));
}

#[test]
fn the_time_of_elements_is_measured_if_asked_for() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    let text = "i :: InfiniteSource -> c :: Counter -> Discard;";
    c.args(["run", "-q", "-u", "s", "-e", text]).stdin(Stdio::null()).stdout(Stdio::null());
    let _live = Live(c.spawn().unwrap());
    until("it listens", || b.run("castanet", &["ctl", "s", "read", "version"], "").code == 0);
    until("a round was measured", || {
        let all = objects(&top(&b, &["--once", "--json", "--profile", "--filter", "c"]).out);
        let time = |o: &serde_json::Value| o["elements"][0]["time_share"].as_f64();
        all.iter().any(|o| time(o) > Some(0.0))
    });
}

#[test]
fn a_terminal_is_needed_without_once() {
    let b = Bench::new();
    let _live = start(&b);
    let ran = top(&b, &[]);
    let want =
        "castanet: standard output is no terminal; --once prints one table, --json one object per reading\n";
    assert_eq!((ran.err.as_str(), ran.code), (want, 1));
    assert_eq!(top(&b, &["--once", "--sort", "x"]).code, 2);
    assert_eq!(b.run("castanet", &["top", "nothing.sock", "--once"], "").code, 3);
}
