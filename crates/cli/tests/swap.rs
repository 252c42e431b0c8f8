// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps by SIGHUP, by scripts and by clients.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const CASTANET: &str = env!("CARGO_BIN_EXE_castanet");

#[test]
fn hangup_has_the_file_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.click");
    let old = "s :: RatedSource(RATE 1000, LIMIT 50) -> c :: Counter -> q :: Queue -> u :: RatedUnqueue(1) -> d :: Discard;\n";
    std::fs::write(&file, old).unwrap();
    let mut run = Command::new(CASTANET);
    run.args(["run", "-h", "c.count", "-h", "d.count"]).arg(&file);
    let mut run = run.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&run);
    let hangup = || {
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    };
    let mut said = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    // Wait until the process catches SIGHUP.
    while !std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap().lines().any(|l| {
        l.strip_prefix("SigCgt:").is_some_and(|m| u64::from_str_radix(m.trim(), 16).unwrap() & 1 == 1)
    }) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::write(&file, "s :: RatedSource(RATE 1000, LIMIT 50 -> Discard").unwrap();
    hangup();
    assert!(said.next().unwrap().contains("the old configuration continues"));
    let error: Vec<String> = said.by_ref().take_while(|l| !l.contains("1 error")).collect();
    assert!(error.iter().any(|l| l.contains("--> ") && l.contains("router.click:1:")), "{error:?}");
    assert!(error.iter().any(|l| l.contains('^')), "{error:?}");
    let new = old.replace("u :: RatedUnqueue(1)", "v :: Unqueue")
        + "DriverManager(label more, wait 0.05s, goto more $(lt $(d.count) 50), stop)";
    std::fs::write(&file, new).unwrap();
    hangup();
    let told = said.find(|l| l.contains("router.click reread")).unwrap();
    assert!(told.contains("2 added, 1 removed, 0 changed, 4 as they are"), "{told}");
    let out = run.wait_with_output().unwrap();
    // Counts continue across the swap, so `d` counts all 50 packets even if it got one before the swap.
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text, "c.count:\n50\n\nd.count:\n50\n\n");
    assert!(out.status.success());
}

#[test]
fn scripts_swap_where_it_is_allowed() {
    let text = "Idle -> c :: Counter -> Discard; Script(write hotconfig Idle -> Discard; DriverManager(stop), read hotconfig)";
    let run = |allow: &[&str]| {
        Command::new(CASTANET).args(["run", "-q", "-e", text, "-h", "list"]).args(allow).output().unwrap()
    };
    let out = run(&["-R"]);
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "3\nIdle@1\nDiscard@2\nDriverManager@3\n");
    let links = tempfile::tempdir().unwrap();
    assert!(Command::new(CASTANET).arg("links").arg(links.path()).output().unwrap().status.success());
    let click = |option: &str| {
        let text = "Idle -> Discard; s :: Script(write hotconfig Foo -> Bar, stop)";
        let out = Command::new(links.path().join("click")).args([option, "-e", text]).output().unwrap();
        String::from_utf8(out.stderr).unwrap()
    };
    assert!(click("-w").contains("no 'hotconfig' write handler"), "{}", click("-w"));
    let told = click("-R");
    assert!(told.contains("While calling 'hotconfig Foo -> Bar':"), "{told}");
}

/// A process that is killed when the test ends, even if the test fails.
struct Ended(std::process::Child);
impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn five_megabytes_take_the_place_of_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("router.sock");
    let large = folder.path().join("large.click");
    let mut text = String::from("s :: RatedSource(RATE 1000) -> c :: Counter");
    for i in 0..5000 {
        text +=
            &format!("\n  -> counter_{i} :: Counter /* {} */", "what is said here is nothing ".repeat(36));
    }
    text += " -> Discard;";
    assert!(text.len() > 5_000_000);
    std::fs::write(&large, text).unwrap();
    let mut run = Command::new(CASTANET);
    run.args(["run", "-q", "-R", "-e", "s :: RatedSource(RATE 1000) -> c :: Counter -> Discard", "-u"])
        .arg(&socket);
    let mut run = Ended(run.spawn().unwrap());
    let ctl = |words: &[&str]| {
        let out = Command::new(CASTANET).arg("ctl").arg(&socket).args(words).output().unwrap();
        (
            out.status.success(),
            String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap(),
        )
    };
    let start = std::time::Instant::now();
    while !ctl(&["read", "c.count"]).0 {
        assert!(start.elapsed().as_secs() < 100 && run.0.try_wait().unwrap().is_none());
    }
    let count = || ctl(&["read", "c.count"]).1.trim().parse::<u64>().unwrap();
    let before = count();
    let plan = ctl(&["swap", "--dry-run", large.to_str().unwrap()]);
    assert!(
        plan.0 && plan.1.contains("5001 added, 1 removed, 0 changed, 2 as they are"),
        "{:?}",
        plan.1.lines().last()
    );
    assert_eq!(ctl(&["read", "list"]).1.lines().count(), 1 + 3 + 1, "the last is the socket");
    let swapped = ctl(&["swap", large.to_str().unwrap()]);
    assert!(swapped.0, "{}", swapped.1);
    assert!(count() >= before);
    assert_eq!(ctl(&["read", "list"]).1.lines().count(), 1 + 5003 + 1);
    assert!(ctl(&["stop"]).0 && run.0.wait().unwrap().success());
}
