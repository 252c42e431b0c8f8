// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configurations in conf/ that receive from devices.

use crate::frames::{Net, ROUTED, Random};
use crate::{Outcome, Timed, World, try_compare};

/// The networks of conf/nat-gateway.click.
const NAT: Net = Net {
    often: &[[10, 0, 0, 2], [192, 0, 2, 9], [192, 0, 2, 2], [8, 8, 8, 8]],
    hosts: &[
        [10, 0, 0, 2],
        [192, 0, 2, 1],
        [10, 0, 0, 1],
        [192, 0, 2, 2],
        [192, 0, 2, 9],
        [10, 0, 0, 80],
        [10, 0, 0, 255],
        [224, 0, 0, 5],
        [255, 255, 255, 255],
        [0, 0, 0, 0],
    ],
};

/// The networks of conf/home-node.click and conf/mobile-node.click.
const MOBILE: Net = Net {
    often: &[[1, 0, 0, 11], [1, 0, 0, 10], [1, 0, 0, 2], [43, 0, 0, 9]],
    hosts: &[
        [1, 0, 0, 2],
        [1, 0, 0, 1],
        [1, 0, 0, 10],
        [43, 0, 0, 9],
        [1, 0, 0, 11],
        [43, 0, 0, 1],
        [1, 0, 0, 255],
        [8, 8, 8, 8],
        [0, 0, 0, 0],
    ],
};

/// The networks of conf/firewall.click.
const FIREWALL: Net = Net {
    often: &[[10, 1, 0, 1], [20, 1, 1, 7], [10, 1, 0, 1], [192, 168, 7, 1]],
    hosts: &[
        [20, 1, 1, 7],
        [10, 1, 0, 1],
        [10, 1, 0, 2],
        [192, 100, 5, 9],
        [10, 1, 255, 255],
        [192, 168, 8, 0],
    ],
};

/// The devices of the host, for elements that ask the system for them.
const HOST: &str = "
    elementclass FromHost { $dev, $address, GATEWAY $gateway, ETHER $ether, MTU $mtu | FromDevice($dev, METHOD PACKET) -> output }
    elementclass ToHost { $dev | input -> Queue -> ToDevice($dev, METHOD PACKET) }\n";

/// A configuration of conf/: its name, what is replaced in it, what is added, the networks, and the devices.
type Configuration =
    (&'static str, &'static [(&'static str, &'static str)], &'static str, Net, &'static [&'static str]);

pub const CONFIGURATIONS: &[Configuration] = &[
    (
        "ip-router",
        &[(
            "AddressInfo($DEV0 $IP0, $DEV1 $IP1)",
            "AddressInfo($DEV0 $IP0 2:0:0:0:0:0, $DEV1 $IP1 2:0:0:0:0:1)",
        )],
        "write one/arp.insert 10.0.0.2 2:0:0:0:1:2, write two/arp.insert 10.0.1.2 2:0:0:0:1:3",
        ROUTED,
        &["eth0", "eth1"],
    ),
    (
        "nat-gateway",
        &[(
            "AddressInfo($LAN $LANIP, $WAN $WANIP)",
            "AddressInfo($LAN $LANIP 2:0:0:0:0:0, $WAN $WANIP 2:0:0:0:0:1)",
        )],
        "write lan/arp.insert 10.0.0.2 2:0:0:0:1:2, write wan/arp.insert 192.0.2.9 2:0:0:0:1:3",
        NAT,
        &["eth0", "eth1"],
    ),
    (
        "ethernet-switch-devices",
        &[("in, out :: Suppressor;", "AddressInfo($DEV0 2:0:0:0:0:0); in, out :: Suppressor;")],
        "write switch.timeout 300",
        ROUTED,
        &["eth0", "eth1", "eth2"],
    ),
    (
        "home-node",
        &[("AddressInfo($DEV $HOMEIP)", "AddressInfo($DEV $HOMEIP 2:0:0:0:0:0)")],
        "write arp.insert 1.0.0.2 2:0:0:0:1:2, write arp.insert 1.0.0.1 2:0:0:0:1:3",
        MOBILE,
        &["eth0", "eth0", "home0"],
    ),
    (
        "mobile-node",
        &[("AddressInfo($DEV $AWAYIP,", "AddressInfo($DEV $AWAYIP 2:0:0:0:0:0,")],
        "write arp.insert 43.0.0.1 2:0:0:0:1:2",
        MOBILE,
        &["eth0", "eth0", "home0"],
    ),
    // These have sources or simulated hosts, in the places of which they tell the reader to write devices.
    ("firewall", &[], "read rules.program", FIREWALL, &["eth0"]),
    ("transfer", &[], "read stop_at", ROUTED, &["eth0", "eth1", "eth2", "eth3"]),
    ("ethernet-switch", &[], "read switch.table", ROUTED, &["eth0", "eth1"]),
];

fn read(name: &str) -> String {
    let path = format!("{}/../../conf/{name}.click", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Replaces a part of a text, which it must contain.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{text} does not contain {from}");
    text.replace(from, to)
}

/// The text of a configuration, with what the test needs.
pub fn text(&(name, replace, script, ..): &Configuration, end: usize) -> String {
    let mut text = replace.iter().fold(read(name), |text, (from, to)| replaced(&text, from, to));
    match name {
        "firewall" => {
            let (rules, rest) = text.split_once("FromIPSummaryDump").unwrap_or_else(|| panic!("{text}"));
            let (_, rest) = rest.split_once("-> sent ::").unwrap_or_else(|| panic!("{rest}"));
            text = format!(
                "{rules} FromDevice(eth0) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> sent :: {}",
                replaced(
                    rest,
                    "passed :: Counter -> Discard",
                    "passed :: Counter -> Unstrip(14) -> Queue -> ToDevice(eth1)"
                )
            );
        }
        "transfer" => {
            let from = text.find("elementclass From").unwrap_or_else(|| panic!("{text}"));
            let links = text.find("From(eth0)").unwrap_or_else(|| panic!("{text}"));
            let end = text.find("DriverManager").unwrap_or_else(|| panic!("{text}"));
            assert!(from < links);
            text = format!(
                "elementclass From {{ $d | FromDevice($d, PROMISC true) -> output }}
                 elementclass To {{ $d | input -> ToDevice($d) }} {}",
                &text[links..end]
            );
        }
        "ethernet-switch" => {
            let hosts = text.find("elementclass Host").unwrap_or_else(|| panic!("{text}"));
            let kinds = text.find("a -> kind0").unwrap_or_else(|| panic!("{text}"));
            let end = text.find("DriverManager").unwrap_or_else(|| panic!("{text}"));
            text = format!(
                "{} elementclass Host {{ $d | FromDevice($d, PROMISC true) -> output; input -> Queue -> ToDevice($d) }}
                 a :: Host(eth0); b :: Host(eth1); {}",
                &text[..hosts],
                &text[kinds..end]
            );
        }
        "home-node" | "mobile-node" => text.insert_str(0, HOST),
        _ => {}
    }
    let script = if script.starts_with("write") { format!("{script},") } else { String::new() };
    format!("{text}\nScript({script} wait {}ms, stop);", end + 2000)
}

/// Compares the configurations in conf/ on random and mutated frames. Returns the number of frames.
pub fn configurations_in(world: fn() -> World, frames_each: usize, seed: u64) -> usize {
    for (i, configuration) in CONFIGURATIONS.iter().enumerate() {
        let &(name, .., net, devices) = configuration;
        let mut random = Random::of_net(seed + i as u64, net);
        let frames: Timed = (0..frames_each)
            .map(|i| {
                let device = random.of(devices);
                let number = device.as_bytes().last().map_or(0, |c| c & 15);
                (i as i64 + 1, random.mutated_for(number), device.to_string())
            })
            .collect();
        let text = text(configuration, frames_each);
        match try_compare(&text, &frames, world) {
            Outcome::Same(world) => {
                let (up, gone, _) = world.ways();
                println!("{name}: {up} up, {gone} not");
                assert!(up + gone > 0, "{name}: no frame passed a program");
            }
            Outcome::Refused(why) | Outcome::Differs(why) => panic!("{name}: {why}"),
        }
    }
    CONFIGURATIONS.len() * frames_each
}

/// All configurations that receive from devices are compared.
pub fn check_that_all_are_there() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap_or_default();
        let Some(name) = name.strip_suffix(".click") else { continue };
        if read(name).contains("FromDevice(") {
            assert!(CONFIGURATIONS.iter().any(|c| c.0 == name), "{name} is not compared");
        }
    }
}
