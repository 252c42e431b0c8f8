// SPDX-License-Identifier: MIT OR Apache-2.0
//! Privileges of a running router. Tests with other users need root.
#![allow(clippy::unwrap_used)]

mod common;

use common::Bench;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

const TEXT: &str = "InfiniteSource(LIMIT 1) -> Discard; Script(print \"ready\", wait 60s)";

/// Starts a router, and waits until it runs.
fn running(b: &Bench, tool: &str, arguments: &[&str]) -> Child {
    let mut c = b.command(tool);
    let mut child = c.args(arguments).args(["-e", TEXT]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    child
}

/// Returns the value of a line in the threads' status files. It must be the same for all threads.
fn status(child: &Child, name: &str) -> String {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap() {
        let text = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        found.push(text.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().to_owned());
    }
    found.dedup();
    assert_eq!(found.len(), 1, "{name} {found:?}");
    found.remove(0)
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIP: only root can become another user");
    }
    root
}

#[test]
fn by_default_nothing_can_be_gained_and_little_is_kept() {
    let b = Bench::new();
    for (tool, arguments) in [("castanet", &["run"][..]), ("click", &[])] {
        let child = running(&b, tool, arguments);
        assert_eq!(status(&child, "NoNewPrivs:"), "1", "{tool}");
        // Bits 1 and 10 are CAP_DAC_OVERRIDE and CAP_NET_BIND_SERVICE.
        let kept = u64::from_str_radix(&status(&child, "CapPrm:"), 16).unwrap();
        assert_eq!(kept & !(1 << 1 | 1 << 10), 0, "{tool}: {kept:x}");
        end(child);
    }
}

#[test]
fn privileges_are_kept_when_that_is_asked_for() {
    let b = Bench::new();
    let child = running(&b, "castanet", &["run", "--keep-privileges"]);
    let mine = std::fs::read_to_string("/proc/self/status").unwrap();
    let mine = mine.lines().find_map(|l| l.strip_prefix("CapPrm:")).unwrap().trim();
    assert_eq!(status(&child, "CapPrm:"), mine);
    end(child);
}

#[test]
fn another_user_has_no_privileges_at_all() {
    if !is_root() {
        return;
    }
    let b = Bench::new();
    let child = running(&b, "castanet", &["run", "--user", "nobody"]);
    for line in ["Uid:", "Gid:"] {
        let all = status(&child, line);
        let ids: Vec<&str> = all.split_whitespace().collect();
        assert!(ids.len() == 4 && ids.iter().all(|i| *i == ids[0] && *i != "0"), "{line} {all}");
    }
    assert!(!status(&child, "Groups:").split_whitespace().any(|g| g == "0"));
    for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(&status(&child, set), 16), Ok(0), "{set}");
    }
    assert_eq!(status(&child, "NoNewPrivs:"), "1");
    end(child);
}

#[test]
fn a_user_that_does_not_exist_is_an_error() {
    let ran = Bench::new().run("castanet", &["run", "--user", "no-such-user", "-e", TEXT], "");
    assert_eq!((ran.code, ran.err.as_str()), (1, "castanet: --user no-such-user: no such user\n"));
}
