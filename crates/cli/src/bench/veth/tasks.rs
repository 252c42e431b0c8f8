// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configurations of the routers of `castanet bench veth`.

use super::Veth;
use super::presets::Chosen;
use super::routers::{Driver, Task};
use castanet_bench::veth::{self, NEXT_HOP, RECEIVER};
use std::fmt::Write;

/// The firewall of 17 rules.
const FIREWALL: &str = include_str!("../../../../../conf/firewall.click");
/// Its hosts and its last rule but one, and what they are in the measurement: the receiver is the bastion host, and the packets of
/// the generator match the last rule but one, as in ASPLOS 2002, section 4. So the longest path of the decisions is measured.
const IN_MEASUREMENT: [[&str; 2]; 5] = [
    ["10.1.0.1", RECEIVER],
    ["10.1.0.2", "10.0.1.3"],
    ["10.1.0.0/16", "10.0.1.0/24"],
    ["udp src port dns and dst port dns", "udp src port > 1023 and dst port 9"],
    ["\n    1 ", "\n    deny "],
];
/// The queue of an interface of the IP router.
const QUEUE: &str = "queue :: Queue -> ToDevice";
/// RED before a queue of 1000 packets, as by default. The thresholds lie above the length of a batch, so that RED drops nothing as long
/// as the device sends at once, as in SOSP 1999, section 6.3.
const RED: &str = "queue :: RED(200, 800, 0.02) -> Queue -> ToDevice";
/// The fair queueing arrangement of SOSP 1999, Figure 10.
const SFQ: &str = include_str!("../../../../../conf/sfq.click");
/// Its differences in the measurement: packets in the queues of the IP router have an Ethernet header, and the capacity is that of the
/// queue that it replaces.
const FAIR: [[&str; 2]; 2] = [["HashSwitch(12, 12)", "HashSwitch(26, 12)"], ["Queue(25)", "Queue(125)"]];

/// The number of flows of the generator. They differ in the last byte of their source port, which counts from 0.
pub(super) const FLOWS: u32 = 64;

/// The kind of a router of Castanet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub driver: Driver,
    pub task: Task,
    pub pairs: u8,
}

/// Replaces a part of a text, which must have it.
fn replaced(text: &str, was: &str, is: &str) -> Result<String, String> {
    if text.contains(was) {
        Ok(text.replace(was, is))
    } else {
        Err(format!("the configuration has no '{was}'"))
    }
}

/// Returns the configuration of a router.
pub(super) fn configuration(a: &Veth, chosen: &Chosen, kind: Kind) -> Result<String, String> {
    let several = |what: &str| Err(format!("{what} has one flow in one direction"));
    match kind.task {
        Task::Firewall if chosen.flows() > 1 || chosen.both_ways() => several("--task firewall"),
        Task::Switch if chosen.flows() > 1 || chosen.both_ways() => several("--task switch"),
        Task::Route | Task::Firewall | Task::Red | Task::Sfq => router(a, chosen, kind),
        Task::Switch => switch(a, kind),
        Task::Forward => Ok(forward(a, chosen, kind)),
        Task::Receive => Ok(receive(a, kind)),
        Task::Send => send(a, chosen, kind),
    }
}

/// The devices of the pairs of a router, with the numbers of the pairs, counted from 1.
fn pairs(kind: Kind) -> impl Iterator<Item = (usize, [String; 2])> {
    let devices: Vec<String> = veth::interfaces(kind.pairs.into()).into_iter().map(|i| i.0).collect();
    let pairs: Vec<[String; 2]> = devices.as_chunks::<2>().0.to_vec();
    (1..).zip(pairs)
}

/// Frames that arrive by the first device of a pair leave by the second, uninspected, and the other way if packets go both ways
/// (docs/transfer.md).
fn forward(a: &Veth, chosen: &Chosen, kind: Kind) -> String {
    let [from, to] = kind.driver.options(a.shield);
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (i, [first, second]) in pairs(kind) {
        let _ = writeln!(text, "from{i} :: FromDevice({first}{from}) -> Queue -> ToDevice({second}{to});");
        if chosen.both_ways() {
            let _ =
                writeln!(text, "back{i} :: FromDevice({second}{from}) -> Queue -> ToDevice({first}{to});");
        }
    }
    text
}

/// The counter of UDP packets of docs/udpcount.md. It forwards one packet of [`FLOWS`], by the first pair, as a sample.
fn receive(a: &Veth, kind: Kind) -> String {
    let [from, to] = kind.driver.options(a.shield);
    let mut text = format!(
        "flow :: Classifier(12/0800 23/11 35/00, 12/0800 23/11, -);\n\
         flow [0] -> Queue -> ToDevice(out{to});\nflow [1] -> udp :: Counter -> Discard;\nflow [2] -> Discard;\n"
    );
    for (i, [first, _]) in pairs(kind) {
        let _ = writeln!(text, "from{i} :: FromDevice({first}{from}) -> flow;");
    }
    text
}

/// A source of UDP packets for each second device, at first inactive (docs/udpgen.md).
fn send(a: &Veth, chosen: &Chosen, kind: Kind) -> Result<String, String> {
    let [length] = chosen.lengths[..] else { return Err("--task send has one frame length".into()) };
    let [_, to] = kind.driver.options(a.shield);
    let mut text = String::new();
    for (i, [_, device]) in pairs(kind) {
        let receiver = veth::host_address(2 * i - 1);
        let _ = writeln!(
            text,
            "source{i} :: FastUDPSource(1000000000, -1, {length}, 02:00:00:00:00:01, 10.0.{}.1, 1024, {NEXT_HOP}, \
             {receiver}, 9, ACTIVE false)\n    -> ToDevice({device}{to});",
            2 * i - 1
        );
    }
    Ok(text)
}

/// The Ethernet switch of `castanet new bridge`. A source stands for the receiver's messages, from which the switch learns its port.
fn switch(a: &Veth, kind: Kind) -> Result<String, String> {
    let [from, to] = kind.driver.options(a.shield);
    let devices: Vec<String> = pairs(kind).flat_map(|(_, pair)| pair).collect();
    let names: Vec<&str> = devices.iter().map(String::as_str).collect();
    let text = crate::new::bridge(&names)?;
    let text =
        replaced(&text, "FromDevice($dev, PROMISC true)", &format!("FromDevice($dev, PROMISC true{from})"))?;
    let text = replaced(&text, "ToDevice($dev)", &format!("ToDevice($dev{to})"))?;
    let station = NEXT_HOP.replace(':', "");
    let rest = "00".repeat(46);
    Ok(format!("{text}\nTimedSource(INTERVAL 1s, DATA \\<ffffffffffff {station} 9000 {rest}>) -> [1] in;\n"))
}

/// The rules of the firewall, for the addresses of the measurement.
pub(super) fn rules() -> Result<String, String> {
    let rules = FIREWALL.split_once("rules :: IPFilter(").and_then(|(_, rest)| rest.split_once(");"));
    let (rules, _) = rules.ok_or("conf/firewall.click has no rules")?;
    Ok(IN_MEASUREMENT.iter().fold(rules.to_string(), |rules, [was, is]| rules.replace(was, is)))
}

/// The compound element for fair queueing.
fn fair_queue() -> Result<String, String> {
    const START: &str = "elementclass FairQueue {";
    let class = SFQ.split_once(START).and_then(|(_, rest)| rest.split_once("\n}\n"));
    let (body, _) = class.ok_or("conf/sfq.click has no FairQueue")?;
    FAIR.iter().try_fold(format!("{START}{body}\n}}\n"), |text, [was, is]| replaced(&text, was, is))
}

/// Returns a configuration of `castanet new ip-router` with the options of a driver.
pub(in super::super) fn with_driver(router: &str, driver: Driver, shield: bool) -> String {
    let [was, _] = Driver::Packet.options(shield);
    let [from, to] = driver.options(shield);
    router
        .replace(&format!("FromDevice($dev{was})"), &format!("FromDevice($dev{from})"))
        .replace("ToDevice($dev)", &format!("ToDevice($dev{to})"))
}

/// Returns the configuration of `castanet new ip-router`, with a script that refreshes the ARP entries of the
/// next hops, because no host answers ARP.
pub(super) fn router(a: &Veth, chosen: &Chosen, kind: Kind) -> Result<String, String> {
    const CHECK: &str = "CheckIPHeader(INTERFACES $OURS)";
    let interfaces = veth::interfaces(kind.pairs.into());
    let interfaces: Vec<(&str, &str)> = interfaces.iter().map(|(d, a)| (d.as_str(), a.as_str())).collect();
    let mut router = crate::new::ip_router(&interfaces, a.shield)?;
    match kind.task {
        Task::Firewall => {
            router = replaced(&router, CHECK, &format!("{CHECK} -> firewall :: IPFilter({})", rules()?))?;
        }
        Task::Red => router = replaced(&router, QUEUE, RED)?,
        Task::Sfq => {
            let fair = replaced(&router, QUEUE, "queue :: FairQueue -> ToDevice")?;
            router = format!("{}\n{fair}", fair_queue()?);
        }
        _ => {}
    }
    if a.burden > 0 {
        let more = " -> CheckIPHeader".repeat(a.burden.into());
        router = router.replace(CHECK, &format!("{CHECK}{more}"));
    }
    router = with_driver(&router, kind.driver, a.shield);
    let mut known = String::new();
    for flow in 0..usize::from(chosen.flows()) {
        for interface in [2 * flow, 2 * flow + 1] {
            // Packets leave by the second interface of a pair, and by the first if they go both ways.
            if interface % 2 == 1 || chosen.both_ways() {
                let host = veth::host_address(interface);
                let _ = write!(known, "write interface{}/arp.insert {host} {NEXT_HOP}, ", interface + 1);
            }
        }
    }
    Ok(format!("{router}\nScript(label again, {known}wait 20s, goto again);\n"))
}
