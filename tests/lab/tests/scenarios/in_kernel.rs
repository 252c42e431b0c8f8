// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenarios of the IP router, NAT gateway, firewall, VLAN and switch again, with `castanet run --driver xdp`: the elements that
//! can run in the kernel do so, and nobody can tell.

use crate::net::{castanet, lab};
use castanet_lab::lab::DRIVER;
use std::process::Command;

/// The scenarios, by module.
const SCENARIOS: [&str; 12] = [
    "arp::",
    "bad::",
    "errors::",
    "firewall::",
    "forward::",
    "gateway::",
    "local::",
    "nat::",
    "options::",
    "size::",
    "switch::",
    "vlan::",
];

/// Scenarios that are about something that METHOD XDP or the driver does not have.
const OTHERS: [&str; 3] = [
    // Super-packets.
    "a_stream_crosses_with_its_offloads",
    // Several workers.
    "two_workers_share_the_flows",
    // Filters that keep frames from the host, which gets none with METHOD XDP.
    "a_shield_keeps_the_kernel_out_of_it",
];

#[test]
fn scenarios_are_the_same_with_the_driver_xdp() {
    // As long as this lab exists, no other test measures.
    let Some(_lab) = lab() else { return };
    let probe = "FromDevice(lo, SNIFFER false) -> Discard; DriverManager(stop);";
    let line = format!("ip link set lo up; {} run -q --driver xdp -e '{probe}'", castanet().display());
    let out = Command::new("unshare").args(["-n", "sh", "-c", &line]).output();
    let said = match out {
        Ok(out) if out.status.success() => String::new(),
        Ok(out) => String::from_utf8_lossy(&out.stderr).into_owned(),
        Err(e) => e.to_string(),
    };
    if !said.is_empty() {
        let lacks = ["grant CAP_", "no support for", "unshare"];
        assert!(lacks.iter().any(|l| said.contains(l)), "{said}");
        println!("SKIP: no XDP programs here: {said}");
        return;
    }
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    let mut command = Command::new(test);
    command.args(SCENARIOS).args(OTHERS.iter().flat_map(|name| ["--skip", name]));
    let out =
        command.env(DRIVER, "xdp").env("RUST_TEST_NOCAPTURE", "0").output().unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "with {DRIVER}=xdp:\n{text}{}", String::from_utf8_lossy(&out.stderr));
    let passed = text.matches(" ... ok\n").count();
    assert!(passed > 50, "only {passed} scenarios:\n{text}");
    println!("{passed} scenarios");
}
