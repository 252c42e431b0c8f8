// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a running router can be stopped from outside, whatever it waits for, and tests of the exit codes.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::until;
use common::{BINARY, Bench, LIMIT, Live, signal};
use std::io::{BufRead as _, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

impl Live {
    /// Starts a router as a shell starts a background process, with SIGINT ignored.
    fn in_background(b: &Bench, args: &[&str]) -> Live {
        let mut c = Command::new("sh");
        c.args(["-c", "trap '' INT; exec \"$0\" \"$@\"", BINARY, "run", "-q"]).args(args);
        c.current_dir(b.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Live(c.spawn().unwrap())
    }
    fn start(b: &Bench, args: &[&str]) -> Live {
        let mut c = b.command("castanet");
        Live(c.args(["run", "-q"]).args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }
    /// Waits until the process catches SIGINT.
    fn catches(&self) {
        let caught = |line: &str| {
            let mask = line.strip_prefix("SigCgt:")?;
            Some(u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
        };
        until("it catches interrupts", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
            status.lines().find_map(caught).unwrap()
        });
    }
    fn interrupt(&self) {
        signal(self.0.id(), "INT");
    }
    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        until("it ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

fn fifo(b: &Bench) {
    let made = Command::new("mkfifo").arg(b.path("f")).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_that_no_process_writes_keeps_no_router_from_ending() {
    let b = Bench::new();
    fifo(&b);
    b.file("from.click", "FromDump(f) -> Discard;");
    for args in [&["-e", "FromDump(f) -> Discard"][..], &["-e", "FromIPSummaryDump(f) -> Discard"], &["f"]] {
        let mut live = Live::in_background(&b, args);
        live.catches();
        live.interrupt();
        assert_eq!(live.end().signal(), Some(2), "{args:?}");
    }
}

#[test]
fn a_pipe_whose_writer_stalls_keeps_no_router_from_ending() {
    let b = Bench::new();
    fifo(&b);
    // The header of a capture in little-endian order, and one packet.
    let mut bytes =
        [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1, 1, 0, 60, 60].map(u32::to_le_bytes).concat();
    bytes.extend([0xff; 60]);
    let mut live = Live::in_background(&b, &["-u", "s", "-e", "FromDump(f) -> Discard"]);
    // Opening the pipe waits for its reader.
    let mut writer = std::fs::File::options().write(true).open(b.path("f")).unwrap();
    writer.write_all(&bytes).unwrap();
    until("it runs", || UnixStream::connect(b.path("s")).is_ok());
    live.catches();
    // Signals in quick succession may be merged into one, so signals are sent until the process ends.
    until("it ends", || {
        if live.0.try_wait().unwrap().is_some() {
            return true;
        }
        live.interrupt();
        std::thread::sleep(Duration::from_millis(20));
        false
    });
    live.end();
    drop(writer);
}

#[test]
fn a_router_that_is_terminated_during_a_swap_ends_cleanly() {
    let large = |n: usize| {
        let counters: String = (0..300).map(|i| format!(" -> c{n}_{i} :: Counter")).collect();
        format!("RatedSource(RATE 1000){counters} -> Discard;")
    };
    for round in 0..3 {
        let b = Bench::new();
        let mut live = Live::start(&b, &["-R", "-u", "s", "-e", &large(0)]);
        let mut client = None;
        until("it listens", || {
            client = UnixStream::connect(b.path("s")).ok();
            client.is_some()
        });
        let mut client = client.unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        let mut answers = BufReader::new(client.try_clone().unwrap()).lines().map_while(Result::ok);
        assert!(answers.next().unwrap().starts_with("Click::ControlSocket"));
        // The router runs when the first swap is answered. Further swaps are in progress when the signal arrives.
        for n in 1..20 {
            let text = large(n);
            write!(client, "WRITEDATA hotconfig {}\n{text}", text.len()).unwrap();
        }
        for _ in 0..=round {
            assert!(answers.next().unwrap().starts_with("200 "), "a swap");
        }
        signal(live.0.id(), "TERM");
        let status = live.end();
        assert!(status.success(), "round {round}: {status}");
        assert!(!b.path("s").exists(), "round {round}: the socket is left behind");
    }
}

#[test]
fn a_script_whose_calls_fail_goes_on_and_makes_the_run_fail() {
    let b = Bench::new();
    let source = "InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;";
    for (script, says) in [
        ("DriverManager(print c.typo, pause, print \"after\")", "no 'c.typo' read handler"),
        ("DriverManager(pause, set x $(d.count), print \"after\")", "no element named 'd'"),
        ("DriverManager(write c.typo 1, pause, print \"after\")", "no 'c.typo' write handler"),
        ("DriverManager(read nothing, pause, print \"after\")", "no 'nothing' read handler"),
        ("Script(print c.typo, print \"after\")", "no 'c.typo' read handler"),
    ] {
        let text = format!("{source} {script}");
        let ran = b.run("castanet", &["run", "-q", "-e", &text], "");
        assert_eq!((ran.out.as_str(), ran.code), ("after\n", 1), "{script}: {ran:?}");
        assert!(ran.err.contains(says), "{script}: {ran:?}");
        // Click exits with 0, and so does the command `click`.
        let ran = b.run("click", &["-e", &text], "");
        assert_eq!((ran.out.as_str(), ran.code), ("after\n", 0), "{script}: {ran:?}");
    }
    // Two things do not count as failures: a test whether a handler exists, and an error in a script that a client
    // calls.
    let asks = "DriverManager(print $(readable c.typo) $(writable c.reset), pause)";
    let ran = b.run("castanet", &["run", "-q", "-e", &format!("{source} {asks}")], "");
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("false true\n", "", 0));
    let asked = "DriverManager(pause) p :: Script(TYPE PASSIVE, return $(c.typo))";
    let ran = b.run("castanet", &["run", "-q", "-e", &format!("{source} {asked}"), "-h", "p.run"], "");
    let says = "While executing 'p :: Script':\n  no 'c.typo' read handler\n";
    assert_eq!((ran.err.as_str(), ran.code), (says, 0));
}
