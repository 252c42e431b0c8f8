// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests METHOD XDP in routers that drop their privileges, are swapped, or are killed, and `castanet devices`.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::host::Host;
use castanet_testkit::namespace::{inside_with_bpf, run};
use castanet_testkit::until;
use common::BINARY;
use common::live_xdp::{self, ctl, start};
use std::process::Command;

/// Adds a host with a device `h{n}`, whose other end is `r{n}` in this namespace.
fn add_host(n: u32) -> Host {
    let h = Host::new();
    run(&format!("ip link add r{n} type veth peer name h{n}; ip link set h{n} netns {}", h.id()));
    for line in ["address add 10.0.0.N/24 dev hN", "link set hN up"] {
        h.run(&format!("ip {}", line.replace('N', &n.to_string())));
    }
    h.run(&format!("ethtool -K h{n} tx off txvlan off"));
    run(&format!("ip link set r{n} up"));
    h
}

/// A configuration that bridges the hosts 1 and 2. `extra` comes before the queues.
fn bridge(method: &str, extra: &str) -> String {
    format!(
        "one :: FromDevice(r1, PROMISC true, SNIFFER false, METHOD {method}) -> a :: Counter {extra}
            -> Queue(5000) -> two_out :: ToDevice(r2, METHOD {method});
         two :: FromDevice(r2, PROMISC true, SNIFFER false, METHOD {method}) -> b :: Counter {extra}
            -> Queue(5000) -> one_out :: ToDevice(r1, METHOD {method});"
    )
}

/// Whether this process may load XDP programs; prints SKIP if not.
fn has_xdp() -> bool {
    live_xdp::has_xdp(&[], "FromDevice(probe, METHOD XDP) -> Discard; DriverManager(stop)")
}

#[test]
fn swaps_lose_no_packet_and_a_killed_router_leaves_nothing() {
    inside_with_bpf("swaps_lose_no_packet_and_a_killed_router_leaves_nothing", || {
        if !has_xdp() {
            return;
        }
        let (h, _other) = (add_host(1), add_host(2));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        // By default, the router drops its privileges, and another process attaches the XDP program.
        for arguments in [&[][..], &["-j", "2"], &["--keep-privileges"]] {
            let live = start(&socket, arguments, &bridge("XDP", ""));
            assert!(h.run("ping -c 1 -W 60 10.0.0.2").contains("1 received"));
            let files: Vec<_> = ["", "-> Null", "-> Null -> Null"]
                .iter()
                .enumerate()
                .map(|(i, extra)| {
                    let file = folder.path().join(format!("{i}.click"));
                    std::fs::write(&file, bridge("XDP", extra)).unwrap();
                    file
                })
                .collect();
            let out = std::thread::scope(|s| {
                let ping = s.spawn(|| h.try_ping(1500, "-i 0.002 10.0.0.2"));
                let mut n = 0;
                while !ping.is_finished() {
                    ctl(&socket, &["swap", files[n % files.len()].to_str().unwrap()]);
                    n += 1;
                }
                assert!(n > 5, "{n} swaps");
                ping.join().unwrap()
            });
            out.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(ctl(&socket, &["read", "one.way"]).trim(), "xdp driver copy 1 queue");
            assert_eq!(ctl(&socket, &["read", "two_out.copied"]).trim(), "0");
            // The other method is taken and left again. For that, XDP needs memory that it may lock: by a limit that the
            // router lifts if it may, or by privileges that it keeps.
            let methods: &[&str] = if arguments == ["--keep-privileges"] { &["PACKET", "XDP"] } else { &[] };
            for &method in methods {
                let file = folder.path().join("method.click");
                std::fs::write(&file, bridge(method, "")).unwrap();
                ctl(&socket, &["swap", file.to_str().unwrap()]);
                assert!(h.run("ping -c 3 -i 0.01 -W 60 10.0.0.2").contains(" received"));
                assert!(h.run("ping -c 1 -W 60 10.0.0.2").contains("1 received"));
                until("the program is right", || run("ip link show r1").contains("xdp") == (method == "XDP"));
            }
            // An error leaves the router as it is.
            let file = folder.path().join("bad.click");
            std::fs::write(&file, format!("{} FromDevice(r9, METHOD XDP) -> Discard;", bridge("XDP", "")))
                .unwrap();
            let bad = Command::new(BINARY).arg("ctl").arg(&socket).arg("swap").arg(&file).output().unwrap();
            assert!(
                !bad.status.success() && String::from_utf8_lossy(&bad.stderr).contains("r9: no such device")
            );
            assert!(h.run("ping -c 1 -W 60 10.0.0.2").contains("1 received"));
            // `Live` kills the router.
            drop(live);
            until("the program is detached", || !run("ip link show r1").contains("xdp"));
            let _ = std::fs::remove_file(&socket);
        }
    });
}

#[test]
fn devices_are_listed_with_the_ways_to_use_them() {
    inside_with_bpf("devices_are_listed_with_the_ways_to_use_them", || {
        run("ip link add va mtu 1400 type veth peer name vb && ip link set va up && ip link set vb up");
        let devices =
            |arguments: &[&str]| Command::new(BINARY).arg("devices").args(arguments).output().unwrap();
        let out = devices(&[]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && text.starts_with("lo\n"), "{text}");
        assert!(text.contains("\nva\n  state        up, driver veth, MTU 1400, 1 receive queue\n"), "{text}");
        assert!(text.contains("  METHOD PACKET works (the default)"), "{text}");
        let one = devices(&["vb", "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
        assert_eq!(
            (&value["name"], &value["driver"], &value["receive_queues"]),
            (&"vb".into(), &"veth".into(), &1.into())
        );
        // Whether XDP works is what a router finds when it tries.
        assert_eq!(value["xdp"]["works"], has_xdp(), "{value}");
        let none = devices(&["eth9"]);
        assert!(!none.status.success());
        assert!(
            String::from_utf8_lossy(&none.stderr)
                .contains("eth9: no such device\n  help: devices here: lo, ")
        );
    });
}
