// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs scripts in a subset of packetdrill's format against the engine, in simulated time: segments of a peer, calls of
//! the user, and the segments that the TCP must send, each at its exact time.
#![allow(clippy::unwrap_used)]

mod icmp;
mod line;
mod run;

use std::path::Path;

/// Runs all scripts, and reports all that fail.
#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    scripts.retain(|p| p.extension().is_some_and(|e| e == "pkt"));
    scripts.sort();
    assert!(scripts.len() > 5);
    let failed: Vec<String> = scripts
        .iter()
        .filter_map(|p| {
            let text = std::fs::read_to_string(p).unwrap();
            run::run(&text).err().map(|e| format!("{}:{e}", p.file_name().unwrap().to_string_lossy()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A script that expects something else fails, and says where.
#[test]
fn wrong_scripts_fail() {
    let good = "0 listen(3)\n+0 < S 0:0(0) win 1000 <mss 1000>\n+0 > S. 0:0(0) ack 1 win 65535 <mss 1460>\n";
    assert_eq!(run::run(good), Ok(()));
    for (from, to, line) in [
        ("S. 0", "S 0", 3),
        ("0:0(0) ack", "1:1(0) ack", 3),
        ("ack 1", "ack 2", 3),
        ("win 65535", "win 65534", 3),
        ("1460", "1459", 3),
        ("+0 > S.", "+.1 > S.", 3),
        ("+0 > ", "+0 < ", 3),
        ("0 listen(3)\n", "0 listen(3) = 7\n", 1),
        ("<mss 1000>", "<mss 1000", 2),
        ("+0 <", "nonsense <", 2),
        ("+0 <", "+0 < [0:0(0)] icmp nonsense\n+0 <", 2),
        ("+0 <", "+0 < [0:0(0)] icmp unreachable frag_needed mtu\n+0 <", 2),
    ] {
        let error = run::run(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error.starts_with(&format!("{line}: ")), "{from} {to}: {error}");
    }
    let more = format!("{good}+0 > . 1:1(0) ack 1\n");
    assert!(run::run(&more).unwrap_err().starts_with("4: no segment"), "{:?}", run::run(&more));
    // What no line expects is an error as well.
    let fewer = good.lines().take(2).collect::<Vec<_>>().join("\n") + "\n+1 close(3) = 0\n";
    assert!(run::run(&fewer).unwrap_err().starts_with("3: sent before: S."), "{:?}", run::run(&fewer));
}

/// The README has a row for each script, whose comments name the section; and each row has a script.
#[test]
fn the_table_has_the_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let (mut rfc, mut named) = ("", std::collections::BTreeSet::new());
    for line in readme.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            rfc = title;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, section, _, script, _] = cells[..] else { continue };
        let Some(script) = script.strip_prefix('`').and_then(|s| s.strip_suffix('`')) else { continue };
        let text = std::fs::read_to_string(folder.join(format!("{script}.pkt"))).expect(script);
        let comments: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("//")).collect();
        let comments = comments.concat();
        assert!(
            comments.contains(rfc) && comments.contains(section),
            "{script}.pkt does not name {rfc}, {section}"
        );
        named.insert(format!("{script}.pkt"));
    }
    let scripts = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let scripts: std::collections::BTreeSet<String> = scripts.filter(|n| n.ends_with(".pkt")).collect();
    assert_eq!(named, scripts);
}
