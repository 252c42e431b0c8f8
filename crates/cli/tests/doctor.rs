// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet doctor` against the kernel: each trouble is made, found, mended and gone, as the tools of Linux say.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use castanet_testkit::namespace::{inside, inside_with_bpf, pair, run};
use castanet_testkit::until;
use common::{BINARY, Live};
use std::process::{Command, Stdio};

/// Runs `castanet doctor` with these arguments. Returns the exit code, standard output and standard error.
fn doctor(arguments: &[&str]) -> (i32, String, String) {
    let out = Command::new(BINARY).arg("doctor").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

const FORWARDS: &str = "FromDevice(va) -> Queue -> ToDevice(vc)";

/// Makes a trouble; has it found, with `said` in the text; has it mended; and has the host examined again. `proof` is a
/// command whose output contains `before` before it is mended and `after` afterwards.
fn scenario(check: &str, text: &str, trouble: &str, said: &str, proof: (&str, &str, &str)) {
    let only = ["-e", text, "--only", check];
    let silent = "1 check, nothing found\n";
    assert_eq!(doctor(&only), (0, silent.into(), String::new()), "{check}: before");
    run(trouble);
    let (command, before, after) = proof;
    assert!(run(command).contains(before), "{check}: {}", run(command));
    let (code, found, _) = doctor(&only);
    assert!(code == 1 && found.contains(said), "{check}: {found}");
    assert!(run(command).contains(before), "{check}: only --mend changes the host");
    let (code, mended, _) = doctor(&[&only[..], &["--mend"]].concat());
    assert!(code == 0 && mended.starts_with("mended ") && mended.contains(said), "{check}: {mended}");
    assert!(run(command).contains(after), "{check}: {}", run(command));
    assert_eq!(doctor(&only), (0, silent.into(), String::new()), "{check}: afterwards");
}

/// Adds a device `vc` to those of [`pair`].
fn third() {
    pair();
    run("ip link add vc type veth peer name vd; ip link set vc up; ip link set vd up");
}

#[test]
fn troubles_are_found_and_mended() {
    inside("troubles_are_found_and_mended", || {
        third();
        scenario(
            "forwarding",
            FORWARDS,
            "sysctl -qw net.ipv4.ip_forward=1",
            "the kernel forwards IPv4 packets from va: net.ipv4.conf.va.forwarding is 1",
            ("sysctl -n net.ipv4.conf.va.forwarding", "1", "0"),
        );
        scenario(
            "rp_filter",
            "FromHost(fake0, 10.0.0.1/24) -> Discard",
            "sysctl -qw net.ipv4.conf.all.rp_filter=1",
            "reverse-path filtering of fake0 will be strict: rp_filter is 1",
            ("sysctl -n net.ipv4.conf.default.rp_filter", "0", "2"),
        );
        scenario(
            "mtu",
            FORWARDS,
            "ip link set vb mtu 1400",
            "va has 1500, vb has 1400",
            ("ip link show vb", "mtu 1400", "mtu 1500"),
        );
        scenario(
            "mtu",
            FORWARDS,
            "for d in va vb; do ip link set $d mtu 9000; done",
            "va has MTU 9000, and packets go uncut to vc, which has 1500",
            ("ip link show vc", "mtu 1500", "mtu 9000"),
        );
        scenario(
            "devices",
            FORWARDS,
            "ip link set va down",
            "va is down",
            ("ip -o link show up dev va; echo .", ".", "va@vb"),
        );
        scenario(
            "devices",
            FORWARDS,
            "ip link set vb down; until ip link show va | grep -q 'state LOWERLAYERDOWN'; do sleep 0.01; done",
            "va has no carrier: its other end vb is down",
            ("ip -o link show up dev vb; echo .", ".", "vb@va"),
        );
        scenario(
            "arp",
            FORWARDS,
            "ip address add 10.0.0.1/24 dev va; ip address add 10.0.0.2/24 dev vc",
            "va and vc are both in the network of 10.0.0.1/24",
            ("sysctl -n net.ipv4.conf.va.arp_ignore", "0", "1"),
        );
    });
}

#[test]
fn offloads_of_the_other_end_are_found_and_mended() {
    inside("offloads_of_the_other_end_are_found_and_mended", || {
        pair();
        let text = "FromDevice(va, METHOD XDP) -> Discard";
        run("ethtool -K vb tx off txvlan off");
        let features = "ethtool -k vb";
        scenario(
            "offloads",
            text,
            "ethtool -K vb tx on",
            "vb leaves checksums and segmentation of frames to va undone",
            (features, "tx-checksum-ip-generic: on", "tx-checksum-ip-generic: off"),
        );
        scenario(
            "offloads",
            text,
            "ethtool -K vb txvlan on",
            "vb leaves VLAN tags of frames to va undone",
            (features, "tx-vlan-offload: on", "tx-vlan-offload: off"),
        );
        // A packet socket shows the kernel's work that is left undone.
        run("ethtool -K vb tx on txvlan on");
        assert_eq!(doctor(&["-e", "FromDevice(va) -> Discard", "--only", "offloads"]).0, 0);
    });
}

#[test]
fn ports_of_bridges_are_found_and_released() {
    inside("ports_of_bridges_are_found_and_released", || {
        third();
        if !Command::new("ip").args(["link", "add", "br0", "type", "bridge"]).status().unwrap().success() {
            return println!("SKIP: no bridges in this kernel");
        }
        scenario(
            "forwarding",
            FORWARDS,
            "ip link set va master br0",
            "va is a port of br0, which forwards its frames",
            ("ip -o link show dev va; ip -o link show master br0; echo .", "master br0", "."),
        );
        assert!(!run("ip -o link show dev va").contains("master"));
    });
}

#[test]
fn what_belongs_to_other_programs_is_told_and_left() {
    inside("what_belongs_to_other_programs_is_told_and_left", || {
        third();
        let only = ["-e", FORWARDS, "--only", "programs"];
        assert_eq!(doctor(&only).0, 0);
        run("tc qdisc add dev va clsact; tc filter add dev va ingress bpf da bytecode '1,6 0 0 0,'");
        let (code, text, _) = doctor(&[&only[..], &["--mend"]].concat());
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("va has 1 tc filters for received frames (bpf)"), "{text}");
        assert!(text.contains("--mend does not do this: another program may need it"), "{text}");
        assert!(run("tc filter show dev va ingress").contains("bytecode"));
        assert_eq!(doctor(&[&only[..], &["--level", "warning"]].concat()).0, 0, "it is a note");
        run("tc qdisc del dev va clsact");
        // A router with packet sockets.
        let mut router = Command::new(BINARY);
        router.args(["run", "-q", "-e", "FromDevice(va) -> Discard"]);
        let router = Live(router.stdout(Stdio::null()).spawn().unwrap());
        let told =
            || doctor(&only).1.contains("packet sockets of other programs receive the frames of va: 1");
        until("the socket is told", told);
        drop(router);
    });
}

#[test]
fn addresses_of_the_router_that_the_host_has_are_told() {
    inside("addresses_of_the_router_that_the_host_has_are_told", || {
        third();
        run("ip address add 10.0.0.1/24 dev va");
        let text = |options: &str| {
            format!("FromDevice(va{options}) -> ARPResponder(10.0.0.1 2:0:0:0:0:1) -> Queue -> ToDevice(va)")
        };
        let (shared, hidden) = (text(""), text(", SNIFFER false"));
        let (code, said, _) = doctor(&["-e", &shared, "--only", "answers", "--json", "--mend"]);
        assert_eq!(code, 1);
        let value: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(value["what"], "the host has 10.0.0.1 on va, and the router has it too");
        assert_eq!(value["mend"], "write FromDevice(va, SNIFFER false)");
        assert_eq!((&value["severity"], &value["mended"]), (&"error".into(), &false.into()));
        assert_eq!(doctor(&["-e", &hidden, "--only", "answers"]).0, 0);
    });
}

#[test]
fn xdp_programs_of_running_routers_are_told_and_stay() {
    inside_with_bpf("xdp_programs_of_running_routers_are_told_and_stay", || {
        pair();
        let text = "FromDevice(va, METHOD XDP, SNIFFER false) -> Discard";
        let only = ["-e", text, "--only", "programs"];
        assert_eq!(doctor(&only).0, 0);
        let mut router = Command::new(BINARY);
        router.args(["run", "-q", "-e", text]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut router = Live(router.spawn().unwrap());
        let shown = || run("ip link show va").contains("prog/xdp");
        until("the program is attached, or refused", || shown() || router.0.try_wait().unwrap().is_some());
        if router.0.try_wait().unwrap().is_some() {
            return println!("SKIP: this process may not load XDP programs");
        }
        let (code, said, _) = doctor(&[&only[..], &["--mend"]].concat());
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("an XDP program of another program is attached to va"), "{said}");
        assert!(said.contains("--mend failed: "), "{said}");
        assert!(shown(), "the program of a running router stays");
        drop(router);
        until("the program goes with its router", || !shown());
        assert_eq!(doctor(&only).0, 0);
    });
}

#[test]
fn capabilities_and_limits_are_those_of_the_process() {
    inside("capabilities_and_limits_are_those_of_the_process", || {
        pair();
        let text = "in :: FromDevice(va) -> Discard";
        let plain = doctor(&["-e", text, "--only", "privileges,limits"]);
        assert_eq!((plain.0, plain.1.as_str()), (0, "2 checks, nothing found\n"));
        let line = |prefix: &str| {
            format!("{prefix} {BINARY} doctor -e '{text}' --only privileges,limits; echo code $?")
        };
        let said = run(&line("setpriv --bounding-set -net_raw --inh-caps -net_raw"));
        assert!(said.contains("in :: FromDevice needs CAP_NET_RAW") && said.ends_with("code 1\n"), "{said}");
        let said = run(&line("ulimit -n 40;"));
        assert!(
            said.contains("this process may open 40 files (RLIMIT_NOFILE), and 72 may be needed"),
            "{said}"
        );
    });
}

#[test]
fn a_machine_is_examined_without_a_configuration_and_left_alone() {
    inside("a_machine_is_examined_without_a_configuration_and_left_alone", || {
        pair();
        run("sysctl -qw net.ipv4.ip_forward=1");
        let (code, said, _) = doctor(&["--only", "forwarding", "--mend"]);
        assert!(
            code == 1 && said.contains("note     forwarding  the kernel forwards IPv4 packets from va"),
            "{said}"
        );
        assert!(said.contains("with the FILE of a configuration"), "{said}");
        assert!(run("sysctl -n net.ipv4.conf.va.forwarding").starts_with('1'));
    });
}

#[test]
fn errors_have_a_code_of_their_own() {
    let (code, out, err) = doctor(&["-e", "FromDevice(va"]);
    assert!(code == 2 && out.is_empty() && err.contains("the configuration has errors"), "{err}");
    assert_eq!(doctor(&["no-such-file.click"]).0, 2);
    assert_eq!(doctor(&["--only", "nothing"]).0, 2);
    let (code, out, _) = doctor(&["--list"]);
    assert!(
        code == 0 && out.lines().count() == 16 && out.contains("forwarding  whether the kernel"),
        "{out}"
    );
}

#[test]
fn devices_that_do_not_exist_are_told() {
    let (code, out, _) = doctor(&["-e", "FromDevice(no-such-dev) -> Discard", "--only", "devices"]);
    assert!(
        code == 1 && out.starts_with("error    devices  there is no device no-such-dev; devices here: "),
        "{out}"
    );
    assert!(!out.contains('\x1b'), "no colours where no terminal is");
}
