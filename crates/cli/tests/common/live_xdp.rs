// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routers that receive by XDP, as processes with a control socket.
#![allow(clippy::unwrap_used, dead_code)]

use super::{BINARY, Live};
use castanet_testkit::namespace::run;
use castanet_testkit::until;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether this process may load XDP programs: `text` runs with `arguments`, and receives from the device `probe`. Prints SKIP if
/// not.
pub fn has_xdp(arguments: &[&str], text: &str) -> bool {
    run("ip link add probe type veth peer name other");
    let out = Command::new(BINARY).args(["run", "-q"]).args(arguments).args(["-e", text]).output().unwrap();
    run("ip link del probe");
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        assert!(said.contains("no support for") || said.contains("grant CAP_BPF"), "{said}");
        println!("SKIP: {said}");
    }
    out.status.success()
}

/// Runs `castanet ctl` and returns what it prints, without white space at the ends.
pub fn ctl(socket: &Path, arguments: &[&str]) -> String {
    let out = Command::new(BINARY).arg("ctl").arg(socket).args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_string()
}

/// Starts a router, and waits until it listens. Its messages are beside the socket, with the extension `log`.
pub fn start(socket: &Path, arguments: &[&str], text: &str) -> Live {
    let mut c = Command::new(BINARY);
    c.arg("run").args(arguments).args(["-q", "-R", "-u"]).arg(socket).args(["-e", text]);
    let log = std::fs::File::create(socket.with_extension("log")).unwrap();
    let live = Live(c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
    until("it listens", || {
        let mut read = Command::new(BINARY);
        read.arg("ctl").arg(socket).args(["read", "version"]).output().unwrap().status.success()
    });
    live
}
