// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of compiled paths. `kernel/paths.rs` and `oracle.rs` compare them with elements that run themselves.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_classes::Registry;
use castanet_element::action;
use castanet_element::prelude::*;
use castanet_runtime::Router;
use castanet_runtime::swap::Loaded;
use castanet_testkit::{compilers, simulated};
use std::fmt::Write as _;
use std::sync::Arc;

/// Records packets by the number in bytes 4 and 5. It declares no outside effect, so that its packets may move as batches.
#[derive(Class)]
#[class(name = "Record", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
#[class(depends = order)]
struct Record {
    args: RecordArgs,
}

#[derive(Args)]
struct RecordArgs {}

impl Action for Record {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let number = p.data().get(4..6).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        cx.message(&number.to_string());
        Verdict::Next
    }
}

/// Runs a configuration with compiled paths until it stops. Returns the router and its messages.
fn run(text: &str) -> (Router, Vec<String>) {
    let mut registry = Registry::new();
    registry.add(action::<Record>());
    let loaded = Loaded::from_text("config", text.as_bytes(), &[], Arc::new(registry));
    let (mut options, log) = simulated(32);
    options.given = compilers();
    let loaded = loaded.unwrap_or_else(|e| panic!("{e}\n{text}")).0;
    let mut r = loaded.build(options).unwrap_or_else(|e| panic!("{e}\n{text}")).0;
    r.run().unwrap();
    assert_eq!(r.waiting(), 0);
    r.ledger().check();
    (r, log.lines())
}

fn read(r: &mut Router, handler: &str) -> String {
    let (element, name) = handler.split_once('.').unwrap();
    let element = r.find(element);
    r.read(element, name, "").unwrap()
}

/// The lines of the handler `paths`: packets moved by code, packets processed by elements, and the elements.
fn paths(r: &mut Router) -> Vec<(u64, u64, String)> {
    let text = r.read(None, "paths", "").unwrap();
    let line = |l: &str| {
        let columns: Vec<&str> = l.split('\t').collect();
        (columns[0].parse().unwrap(), columns[1].parse().unwrap(), columns[2].to_string())
    };
    text.lines().map(line).collect()
}

#[test]
fn a_write_to_a_handler_ends_the_code_of_its_element() {
    let (mut r, _) = run("
        s :: InfiniteSource(LIMIT 320, BURST 32) -> p :: Paint(0) -> Strip(4) -> switch :: PaintSwitch;
        switch [0] -> c0 :: Counter -> d :: Discard; switch [1] -> c1 :: Counter -> d; switch [2] -> c2 :: Counter -> d;
        DriverManager(wait 0.1s, write p.color 2, write s.reset, wait 0.1s,
            write p.config 1, write s.reset, wait 0.1s, stop);");
    for counter in ["c0.count", "c1.count", "c2.count"] {
        assert_eq!(read(&mut r, counter), "320", "{counter}");
    }
    let all = paths(&mut r);
    let (moved, alone, names) = &all[0];
    assert!(*moved >= 320 && *alone == 0 && names.starts_with("p Strip@3"), "{all:?}");
}

/// Frames of IP packets with numbers from 0 on. Those for which `special` is true have options.
fn numbered(n: u32, special: fn(u32) -> bool) -> String {
    let mut frames = String::new();
    for i in 0..n {
        let (first, length, options) = if special(i) { (0x46, 0x20, "01010101") } else { (0x45, 0x1c, "") };
        let _ = write!(
            frames,
            "\\<{first:02x}00{length:04x} {i:04x}0000 40110000 0a000001 0a000002 {options} 0035003500080000> "
        );
    }
    frames
}

#[test]
fn packets_that_elements_process_keep_their_place() {
    for (special, moved, alone) in [
        ((|_| false) as fn(u32) -> bool, 600, 0),
        (|i| i % 13 == 5, 550, 50),
        (|i| i % 13 == 5 || i == 6, 500, 100),
    ] {
        let frames = numbered(12, special);
        let (mut r, lines) = run(&format!(
            "MemSource({frames}, LIMIT 600, BURST 32, STOP true) -> CheckIPHeader(CHECKSUM false) -> t :: DecIPTTL -> Paint(1)
             -> Record -> Discard; t [1] -> Discard;"
        ));
        let wanted: Vec<String> = (0..600).map(|i| (i % 12).to_string()).collect();
        assert!(lines == wanted, "{lines:?}");
        let all = paths(&mut r);
        assert_eq!((all[0].0, all[0].1, &*all[0].2), (moved, alone, "CheckIPHeader@2 t Paint@4"));
    }
}

#[test]
fn packets_divide_at_ends() {
    let frames = numbered(12, |i| i == 7);
    let (mut r, lines) = run(&format!(
        "MemSource({frames}, LIMIT 600, BURST 32, STOP true) -> CheckIPHeader(CHECKSUM false)
         -> c :: Classifier(4/0002, 4/0003, 4/0004, -);
         c [0] -> Paint(1) -> q :: Queue; c [1] -> Paint(2) -> q; c [2] -> n :: Counter -> q;
         c [3] -> Paint(3) -> Record -> Discard; q -> Unqueue(32) -> all :: Counter -> Discard;"
    ));
    let wanted: Vec<u32> = (0..600).map(|i| i % 12).filter(|i| !(2..5).contains(i)).collect();
    let lines: Vec<u32> = lines.iter().map(|l| l.parse().unwrap()).collect();
    assert!(lines == wanted, "{lines:?}");
    assert_eq!((read(&mut r, "n.count"), read(&mut r, "all.count")), ("50".into(), "150".into()));
    let all = paths(&mut r);
    assert_eq!((all[0].0, all[0].1), (550, 50));
}

/// A path that elements must process mostly is given up.
#[test]
fn a_path_that_helps_little_is_given_up() {
    let frames = numbered(12, |i| i % 2 == 0);
    let (mut r, lines) = run(&format!(
        "MemSource({frames}, LIMIT 60000, BURST 32, STOP true) -> CheckIPHeader(CHECKSUM false) -> Record -> Discard;"
    ));
    assert_eq!(lines.len(), 60_000);
    let all = paths(&mut r);
    assert!(all[0].0 + all[0].1 < 25_000 && all[0].1 > 2000, "{all:?}");
}

#[test]
fn long_paths_continue_behind_their_ends() {
    let strips = "-> Strip(1)".repeat(60);
    let (mut r, _) = run(&format!(
        "InfiniteSource(DATA \\<{}>, LIMIT 320, BURST 32, STOP true) {strips} -> n :: Counter -> Discard;",
        "00".repeat(64)
    ));
    assert_eq!((read(&mut r, "n.count"), read(&mut r, "n.byte_count")), ("320".into(), "1280".into()));
    let all = paths(&mut r);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|p| (p.0, p.1) == (320, 0)), "{all:?}");
}
