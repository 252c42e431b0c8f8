// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router that has dropped its privileges, and the operations that must still work.

use crate::net::{castanet, lab};
use crate::swap::Client;
use castanet_lab::{Host, Lab, Process};
use std::path::Path;

/// CAP_DAC_OVERRIDE and CAP_NET_BIND_SERVICE, which a router started by root keeps (capabilities(7)).
const KEPT: u64 = 1 << 1 | 1 << 10;

/// Starts a router with a control socket, and connects a client.
fn start(r: &Host, folder: &Path, arguments: &[&str], text: &str) -> (Process, Client) {
    let socket = folder.join("router.sock");
    let mut command = r.command(castanet());
    command.args(["run", "-q", "-R", "-u"]).arg(&socket).args(arguments).args(["-e", text]);
    let process = Process::start(command);
    (process, Client::new(&socket))
}

/// Creates two hosts with two links between them. The routers run on the second one.
fn hosts(lab: &Lab) -> (Host, Host) {
    let (a, r) = (lab.host("a"), lab.host("r"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    lab.link((&a, "eth1"), (&r, "eth1"));
    (a, r)
}

/// Returns the union of the permitted capabilities of all threads, and whether all have no_new_privs set.
fn allowed(process: &Process) -> (u64, bool) {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten().flatten();
    let (mut capabilities, mut closed, mut count) = (0, true, 0);
    for thread in threads {
        let text = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let value = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        };
        capabilities |= u64::from_str_radix(&value("CapPrm:"), 16).unwrap_or(u64::MAX);
        closed &= value("NoNewPrivs:") == "1";
        count += 1;
    }
    assert!(count > 1, "a worker, a control socket and signals have threads");
    (capabilities, closed)
}

/// Sends packets from the other host on a device until a counter of the router increases.
fn arrives(a: &Host, device: &str, client: &mut Client, handler: &str) {
    let before = client.number(handler);
    for _ in 0..100 {
        a.run(&format!("ping -c 1 -W 1 -I {device} 255.255.255.255 -b"));
        if client.number(handler) > before {
            return;
        }
    }
    panic!("nothing arrives on {device}");
}

const ONE: &str =
    "FromDevice(eth0, PROMISC true) -> c0 :: Counter -> Discard; s :: ControlSocket(TCP, 7777);";

#[test]
fn a_router_gives_its_privileges_up_and_a_swap_opens_devices_all_the_same() {
    let Some(lab) = lab() else { return };
    let (a, r) = hosts(&lab);
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (process, mut client) = start(&r, folder.path(), &[], ONE);
    for (device, address) in [("eth0", "10.0.0.2/24"), ("eth1", "10.0.1.2/24")] {
        a.address(device, address);
    }
    arrives(&a, "eth0", &mut client, "c0.count");
    let (capabilities, closed) = allowed(&process);
    assert_eq!((capabilities & !KEPT, closed), (0, true), "{capabilities:x}");
    // Everything that needs privileges: packet sockets, a filter, a TAP device with an address, a raw socket.
    client.swap(&format!(
        "{ONE} FromDevice(eth1, SNIFFER false) -> c1 :: Counter -> Queue -> ToDevice(eth0);
         KernelTap(10.9.0.1/24, DEVNAME tap9) -> Discard; RawSocket(icmp) -> Discard;"
    ));
    arrives(&a, "eth1", &mut client, "c1.count");
    assert!(r.ip("address show dev tap9").contains("10.9.0.1/24"));
    let (capabilities, closed) = allowed(&process);
    assert_eq!((capabilities & !KEPT, closed), (0, true), "{capabilities:x}");
    // A device that is created again is opened again.
    r.ip("link delete eth1");
    lab.link_again(2, (&a, "eth1"), (&r, "eth1"));
    a.address("eth1", "10.0.1.2/24");
    arrives(&a, "eth1", &mut client, "c1.count");
    assert!(process.stop().ok());
    assert!(!r.run("tc qdisc show dev eth1").good().contains("clsact"), "the filter goes with the router");
}

#[test]
fn a_swap_to_a_device_that_is_not_listed_is_refused_with_the_reason() {
    let Some(lab) = lab() else { return };
    let (a, r) = hosts(&lab);
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (process, mut client) = start(&r, folder.path(), &["--devices", "eth7"], ONE);
    a.address("eth0", "10.0.0.2/24");
    for text in ["FromDevice(eth1) -> Discard;", "Idle -> ToDevice(eth1);", "RawSocket(icmp) -> Discard;"] {
        let text = format!("{ONE} {text}");
        let answer = client.say(&format!("WRITEDATA hotconfig {}\r\n{text}", text.len()));
        assert!(answer.starts_with("520") && answer.contains("--devices"), "{answer}");
    }
    // Later configurations may use the device of the first one, also in other elements. After a refused swap, the old
    // configuration continues.
    client.swap(&format!("{ONE} Idle -> ToDevice(eth0);"));
    arrives(&a, "eth0", &mut client, "c0.count");
    assert!(process.stop().ok());
}

#[test]
fn a_killed_router_leaves_no_filter() {
    let Some(lab) = lab() else { return };
    let (a, r) = hosts(&lab);
    a.address("eth0", "10.0.0.2/24");
    r.address("eth0", "10.0.0.1/24");
    a.run("ping -c 1 -W 60 10.0.0.1").good();
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (process, mut client) =
        start(&r, folder.path(), &[], "FromDevice(eth0, SNIFFER false) -> c :: Counter -> Discard");
    arrives(&a, "eth0", &mut client, "c.count");
    assert!(!a.run("ping -c 1 -W 1 10.0.0.1").ok(), "the host does not hear its device");
    // Dropping the process kills it with SIGKILL.
    drop(process);
    a.run("ping -c 1 -i 0.1 -w 100 10.0.0.1").good();
    assert!(!r.run("tc qdisc show dev eth0").good().contains("clsact"));
}
