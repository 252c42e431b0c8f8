// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that a router makes to its host, and their removal however the router ends.

use crate::net::{castanet, lab};
use crate::swap::Client;
use castanet_lab::{Host, Lab, Process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

/// Creates two hosts. Also returns a configuration that keeps the second host's kernel from receiving frames from the
/// device.
fn shielded(lab: &Lab) -> (Host, Host, &'static str) {
    let (a, r) = (lab.host("a"), lab.host("r"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    a.address("eth0", "10.0.0.2/24");
    r.address("eth0", "10.0.0.1/24");
    (a, r, "FromDevice(eth0, SNIFFER false) -> Discard")
}

/// Runs castanet, and waits until the host's kernel no longer receives frames from its device.
fn deaf(a: &Host, r: &Host, arguments: &[&str]) -> Process {
    let mut command = r.command(castanet());
    command.arg("run").args(arguments);
    let process = Process::start(command);
    for _ in 0..100 {
        if !a.run("ping -c 1 -W 1 10.0.0.1").ok() {
            return process;
        }
    }
    panic!("the host is not deaf: {}", process.stderr());
}

fn doctor(r: &Host, arguments: &[&str]) -> castanet_lab::Output {
    let mut command = r.command(castanet());
    command.args(["doctor", "--only", "filters"]).args(arguments);
    Process::start(command).wait(PATIENCE)
}

#[test]
fn a_filter_that_was_left_behind_is_found_and_mended() {
    let Some(lab) = lab() else { return };
    let (a, r, text) = shielded(&lab);
    a.run("ping -c 1 -W 60 10.0.0.1").good();
    let said = doctor(&r, &[]).good();
    assert_eq!(said, "1 check, nothing found\n");
    // Kills the router and its helpers, so that nothing can clean up. (In a user namespace the filter cannot
    // be a TCX link, which the kernel would remove when the router ends.)
    let router = deaf(&a, &r, &["-q", "--keep-privileges", "-e", text]);
    // The filter of a router that runs is no fault.
    let said = doctor(&r, &["--mend"]).good();
    assert_eq!(said, "1 check, nothing found\n");
    drop(router);
    assert!(!a.run("ping -c 1 -W 1 10.0.0.1").ok(), "the filter outlives the process");
    let said = doctor(&r, &[]);
    assert!(
        said.stdout.starts_with("error    filters  the host receives nothing from eth0 ") && !said.ok(),
        "{said:?}"
    );
    assert!(
        said.stdout.contains("which has ended\n") && said.stdout.ends_with("--mend mends all\n"),
        "{said:?}"
    );
    let said = doctor(&r, &["--mend"]).good();
    assert!(said.starts_with("mended   filters  the host receives nothing from eth0 "), "{said}");
    a.run("ping -c 1 -W 60 10.0.0.1").good();
    assert!(!r.run("tc qdisc show dev eth0").good().contains("clsact"), "the place for filters goes too");
}

#[test]
fn the_next_router_removes_stale_filters() {
    let Some(lab) = lab() else { return };
    let (a, r, text) = shielded(&lab);
    for _ in 0..2 {
        drop(deaf(&a, &r, &["-q", "--keep-privileges", "-e", text]));
    }
    let next = deaf(&a, &r, &["-q", "--keep-privileges", "-e", text]);
    let shown = r.run("tc filter show dev eth0 ingress").good();
    assert_eq!(shown.matches("bytecode").count(), 1, "{shown}");
    assert!(next.stop().ok());
    a.run("ping -c 1 -W 60 10.0.0.1").good();
    assert!(!r.run("tc qdisc show dev eth0").good().contains("clsact"));
}

#[test]
fn a_device_that_is_made_again_with_another_address_has_the_configuration_read_again() {
    let Some(lab) = lab() else { return };
    let (a, r) = (lab.host("a"), lab.host("r"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let socket = folder.path().join("router.sock");
    let text = "FromDevice(eth0) -> c :: Counter -> Discard; Idle -> ToDevice(eth0);
        Idle -> e :: EtherEncap(0x0800, eth0, 1:1:1:1:1:1) -> Discard; s :: Idle -> l :: Counter -> Discard;";
    let mut command = r.command(castanet());
    command.args(["run", "-q", "-u"]).arg(&socket).args(["-e", text]);
    let mut router = Process::start(command);
    let mut client = Client::new(&socket);
    assert_eq!(client.read("e.src"), "02-00-00-00-01-02");
    // If the device is created again with the same Ethernet address, the configuration is not read again.
    let again = |link| {
        r.ip("link delete eth0");
        lab.link_again(link, (&a, "eth0"), (&r, "eth0"));
    };
    again(1);
    router.wait_for("eth0: device is back", PATIENCE);
    assert!(!router.stderr().contains("with Ethernet address"), "{}", router.stderr());
    again(9);
    router.wait_for(
        "device is back, with Ethernet address 02:00:00:00:09:02 instead of 02:00:00:00:01:02",
        PATIENCE,
    );
    router.wait_for("the configuration is read again", PATIENCE);
    let deadline = std::time::Instant::now() + PATIENCE;
    while client.read("e.src") != "02-00-00-00-09-02" {
        assert!(std::time::Instant::now() < deadline, "the old address: {}", router.stderr());
    }
    assert!(router.stop().ok());
}

#[test]
fn a_device_that_goes_down_while_a_long_frame_waits_is_used_again() {
    let Some(lab) = lab() else { return };
    let (a, r) = (lab.host("a"), lab.host("r"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let socket = folder.path().join("router.sock");
    let mut command = r.command(castanet());
    command.args(["run", "-q", "-u"]).arg(&socket);
    command.args(["-e", "FromDevice(eth0, PROMISC true) -> c :: Counter -> Discard"]);
    let mut router = Process::start(command);
    let mut client = Client::new(&socket);
    // The frame is longer than the slots of the ring, like a super-packet, so it waits in the receive queue.
    for host in [&a, &r] {
        host.ip("link set eth0 mtu 9000");
    }
    let mut wire = a.wire("eth0");
    let frame = |length: usize| castanet_lab::frames::ethernet([2; 6], [2; 6], 0x88b5, &vec![7; length]);
    let signal = |signal| {
        let id = i32::try_from(router.id()).unwrap_or_else(|e| panic!("{e}"));
        kill(Pid::from_raw(id), signal).unwrap_or_else(|e| panic!("{e}"));
    };
    signal(Signal::SIGSTOP);
    wire.send(&frame(8000));
    // Ensures that the frame is on the link before the device goes down.
    wire.rest(Duration::ZERO);
    r.ip("link set eth0 down");
    r.ip("link set eth0 up");
    signal(Signal::SIGCONT);
    router.wait_for("eth0: device is back", PATIENCE);
    wire.send(&frame(60));
    let deadline = std::time::Instant::now() + PATIENCE;
    while client.number("c.count") != 2 {
        assert!(std::time::Instant::now() < deadline, "{} frames", client.number("c.count"));
    }
    assert!(router.stop().ok());
}
