// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output arrives in whole lines: each write(2) to standard output or error ends with a line end, so that lines of several
//! processes or threads do not mix.
#![allow(clippy::unwrap_used)]

mod common;

use common::bench;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

/// Runs a command, and returns what each of its writes has written. A datagram socket keeps them apart.
fn writes(tool: &str, args: &[&str]) -> Vec<String> {
    let b = bench();
    let (end, theirs) = UnixDatagram::pair().unwrap();
    let mut c = b.command(tool);
    c.args(args).stdin(Stdio::null()).stdout(OwnedFd::from(theirs.try_clone().unwrap()));
    c.stderr(OwnedFd::from(theirs));
    let mut child = c.spawn().unwrap();
    // A datagram socket does not report that its other end is closed.
    end.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut all, mut buffer, mut over) = (Vec::new(), vec![0; 1 << 16], false);
    loop {
        match end.recv(&mut buffer) {
            Ok(n) => all.push(String::from_utf8_lossy(&buffer[..n]).into_owned()),
            // The child had ended before this read, so everything that it wrote has been read.
            Err(_) if over => break,
            Err(_) => over = child.try_wait().unwrap().is_some(),
        }
    }
    child.wait().unwrap();
    all
}

#[test]
fn every_write_is_of_whole_lines() {
    let packets = "InfiniteSource(LIMIT 50) -> Print(x) -> c :: Counter -> IPPrint(y) -> Discard;";
    let talk = format!(
        "{packets} DriverManager(wait 0.05, print \"a b\", print c.count, print c.handlers, read c.count, write c.nix, print nix.nix, stop)"
    );
    for (tool, args, least) in [
        ("click", &["-e", &talk, "-h", "c.count", "-h", "c.config"][..], 50),
        ("castanet", &["run", "-e", &talk], 50),
        ("click", &["-e", "Idle -> Strip(x) -> Discrad; Idle -> Foo; Message(hark, ERROR)"], 1),
        ("castanet", &["check", "-e", "Idle -> Strip(x) -> Discard; Idle -> Queue(x) -> Discard"], 1),
        ("castanet", &["doc", "Counter"], 1),
        ("castanet", &["run", "--help"], 1),
    ] {
        let all = writes(tool, args);
        let lines = all.iter().map(|w| w.lines().count()).sum::<usize>();
        assert!(lines >= least, "{tool} {args:?}: {all:?}");
        let broken: Vec<_> = all.iter().filter(|w| !w.ends_with('\n')).collect();
        assert!(broken.is_empty(), "{tool} {args:?}: {broken:?}");
    }
}
