// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routers that receive by XDP, as processes with a control socket.
#![allow(clippy::unwrap_used, dead_code)]

use super::{BINARY, Live};
use castanet_testkit::host::Host;
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

/// Adds a host with a device `port`, address 10.0.N.2 and the router as its gateway. The other end of its link is `rN` here.
pub fn add_host(n: u32) -> Host {
    let h = Host::new();
    run(&format!("ip link add r{n} type veth peer name port; ip link set port netns {}", h.id()));
    for line in ["address add 10.0.N.2/24 dev port", "link set port up", "route add default via 10.0.N.1"] {
        h.run(&format!("ip {}", line.replace('N', &n.to_string())));
    }
    // Frames that are redirected to a veth device reach its other end only if that receives by NAPI.
    h.run("ethtool -K port tx off txvlan off gro on");
    run(&format!("ip link set r{n} up"));
    h
}

/// The IP router between the hosts 0 and 1.
pub fn router() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/ip-router.click");
    std::fs::read_to_string(path).unwrap().replace("eth0", "r0").replace("eth1", "r1")
}

/// Whether this process may run routers with `--driver xdp`; prints SKIP if not.
pub fn has_driver_xdp() -> bool {
    has_xdp(&["--driver", "xdp"], "FromDevice(probe) -> Discard; DriverManager(stop)")
}

/// Reads a number.
pub fn number(socket: &Path, handler: &str) -> u64 {
    ctl(socket, &["read", handler]).parse().unwrap()
}

/// The packets that came up, over all elements.
pub fn came_up(socket: &Path) -> u64 {
    let table = ctl(socket, &["read", "kernel"]);
    table.lines().map(|l| l.split('\t').nth(3).unwrap().parse::<u64>().unwrap()).sum()
}

/// Starts a router with `--driver xdp`, as [`start`] does.
pub fn start_in_kernel(socket: &Path, arguments: &[&str], text: &str) -> Live {
    start(socket, &[&["--driver", "xdp"], arguments].concat(), text)
}

/// Waits until pings of a host to the other one stay in the kernel.
pub fn settle(host: &Host, socket: &Path) {
    until("the router runs in the kernel", || {
        let before = came_up(socket);
        host.ping(100, "-i 0.001 10.0.1.2");
        came_up(socket) <= before + 6
    });
}

/// Waits until the devices of both hosts run no program.
pub fn detached() {
    until("the programs are detached", || !run("ip link show r0; ip link show r1").contains("xdp"));
}
