// SPDX-License-Identifier: MIT OR Apache-2.0
//! The NAT gateway and the Ethernet switch of conf/.

use crate::common::live_xdp::{add_host, came_up, has_driver_xdp, number, start_in_kernel};
use crate::{mostly_in_the_kernel, stream, stream_when};
use castanet_testkit::namespace::{inside_with_bpf, run};
use castanet_testkit::until;
use std::sync::{Arc, Mutex};

fn conf(name: &str) -> String {
    let path = format!("{}/../../conf/{name}.click", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().replace("eth0", "r0").replace("eth1", "r1").replace("eth2", "r2")
}

#[test]
fn the_nat_gateway_translates() {
    inside_with_bpf("gateways::the_nat_gateway_translates", || {
        if !has_driver_xdp() {
            return;
        }
        let (inside, outside) = (add_host(0), add_host(1));
        outside.run("ip address flush dev port");
        outside.run("ip address add 192.0.2.1/24 dev port");
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _live = start_in_kernel(&socket, &[], &conf("nat-gateway"));
        until("it translates", || inside.run("ping -c 1 -W 1 192.0.2.1 || true").contains("1 received"));
        let counts = {
            let socket = socket.clone();
            move || {
                let received = ["lan", "wan"].map(|d| number(&socket, &format!("{d}/FromDevice@1.count")));
                [came_up(&socket), received.iter().sum()]
            }
        };
        // The first packets of a connection come up, however many they are on a busy machine.
        let before = Arc::new(Mutex::new([0; 2]));
        let settled = {
            let (before, counts) = (before.clone(), counts.clone());
            move || {
                let now: [u64; 2] = counts();
                now[0] == std::mem::replace(&mut *before.lock().unwrap(), now)[0]
            }
        };
        stream_when(&inside, &outside, "192.0.2.1:7777", 20 << 20, settled);
        let [up, received] = *before.lock().unwrap();
        mostly_in_the_kernel(&socket, counts()[1] - received, up);
        inside.ping(1000, "-i 0.001 192.0.2.1");
    });
}

#[test]
fn switches_relay_between_known_stations() {
    inside_with_bpf("gateways::switches_relay_between_known_stations", || {
        if !has_driver_xdp() {
            return;
        }
        let hosts = [add_host(0), add_host(1), add_host(2)];
        for (n, host) in hosts.iter().enumerate() {
            host.run("ip address flush dev port");
            host.run(&format!("ip address add 10.0.9.{}/24 dev port", n + 1));
        }
        let folder = tempfile::tempdir().unwrap();
        let tree = conf("ethernet-switch-devices").replace(
            "FORWARD_DELAY 15, HELLO_TIME 2, MAX_AGE 20",
            "FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6",
        );
        let ports: String = (0..3)
            .map(|n| {
                format!(
                    "f{n} :: FromDevice(r{n}, PROMISC true, SNIFFER false) -> [{n}] s; s [{n}] -> Queue(2000) -> ToDevice(r{n});"
                )
            })
            .collect();
        for (name, text) in [("tree", tree), ("plain", format!("s :: EtherSwitch; {ports}"))] {
            let socket = folder.path().join(name);
            let live = start_in_kernel(&socket, &[], &text);
            for (from, to) in [(0, 1), (1, 2), (2, 0)] {
                let ping = format!("ping -c 1 -W 1 10.0.9.{} || true", to + 1);
                until("it relays", || hosts[from].run(&ping).contains("1 received"));
            }
            let count = |n| match name {
                "plain" => number(&socket, &format!("f{n}.count")),
                _ => number(&socket, &format!("port{n}/FromDevice@1.count")),
            };
            let received = || (0..3).map(count).sum::<u64>();
            let (up, before) = (came_up(&socket), received());
            stream(&hosts[0], &hosts[1], "10.0.9.2:7777", 10 << 20);
            stream(&hosts[2], &hosts[0], "10.0.9.1:7778", 10 << 20);
            mostly_in_the_kernel(&socket, received() - before, up);
            drop(live);
            until("the devices are free", || !run("ip link").contains("xdp"));
        }
    });
}
