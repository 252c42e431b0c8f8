// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routers of `castanet bench veth`: their names and configurations.

use super::Veth;
use castanet_bench::veth::{self, Contender, DROP, FORWARDER, NEXT_HOP, RECEIVER, SOCKETS, Way};
use clap::ValueEnum;
use std::fmt::Write;

/// How a router receives and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// Packet sockets.
    Packet,
    /// AF_XDP sockets.
    AfXdp,
    /// The kernel, as far as possible.
    Xdp,
}

/// The task of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// It is the IP router.
    Route,
    /// It is the IP router behind a firewall.
    Firewall,
    /// It forwards all packets from one device to the other.
    Forward,
    /// It discards all packets but one of [`FLOWS`].
    Receive,
}

/// A figure of a paper that the measurement can draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// TOCS 2000, Figure 17.
    #[value(name = "tocs-17")]
    Tocs17,
    /// SOSP 1999, Figure 15.
    #[value(name = "sosp-15")]
    Sosp15,
}

impl Figure {
    /// The title of the drawing, for a figure or for none.
    pub fn title(figure: Option<Figure>) -> &'static str {
        match figure {
            None => "Forwarded against offered rate",
            Some(Figure::Tocs17) => {
                "TOCS 2000, Figure 17: forwarding rate of the IP router against the input rate"
            }
            Some(Figure::Sosp15) => {
                "SOSP 1999, Figure 15: forwarding rate against the input rate, of the IP router and of simple forwarding"
            }
        }
    }
}

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

/// The number of flows of the generator. They differ in the last byte of their source port, which counts from 0.
const FLOWS: u32 = 64;

impl Task {
    /// The name in options and results.
    fn name(self) -> &'static str {
        match self {
            Task::Route => "route",
            Task::Firewall => "firewall",
            Task::Forward => "forward",
            Task::Receive => "receive",
        }
    }
}

impl Driver {
    /// The name of the router in the results.
    fn router(self) -> &'static str {
        match self {
            Driver::Packet => "castanet",
            Driver::AfXdp => "castanet-af-xdp",
            Driver::Xdp => "castanet-xdp",
        }
    }
    /// The options of FromDevice and ToDevice.
    fn options(self, shield: bool) -> [&'static str; 2] {
        match self {
            // With METHOD XDP the host sees no frames, whether --shield is given or not.
            Driver::AfXdp | Driver::Xdp => [", SNIFFER false, METHOD XDP", ", METHOD XDP"],
            Driver::Packet if shield => [", SNIFFER false", ""],
            Driver::Packet => ["", ""],
        }
    }
}

/// The kind of a router of Castanet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    driver: Driver,
    task: Task,
    pairs: u8,
}

/// The lists of the options, without duplicates. The numbers of pairs are in order.
fn lists(a: &Veth) -> (Vec<Driver>, Vec<Task>, Vec<u8>) {
    fn once<T: PartialEq + Copy>(all: &[T]) -> Vec<T> {
        let mut list = Vec::new();
        for one in all {
            if !list.contains(one) {
                list.push(*one);
            }
        }
        list
    }
    let mut pairs = once(&a.pairs);
    pairs.sort_unstable();
    (once(&a.drivers), once(&a.tasks), pairs)
}

/// The name of a router: the parts in which the routers of the measurement differ.
fn name(a: &Veth, kind: Kind) -> String {
    let (_, tasks, pairs) = lists(a);
    let mut name = kind.driver.router().to_string();
    // Writing to a string cannot fail.
    if tasks.len() > 1 {
        let _ = write!(name, "-{}", kind.task.name());
    }
    if pairs.len() > 1 {
        let _ = write!(name, "-{}-interfaces", 2 * kind.pairs);
    }
    name
}

/// The name of the router that a router is compared with: that of the fewest pairs; among those, that of the first task.
fn base(a: &Veth, kind: Kind) -> Option<String> {
    let (_, tasks, pairs) = lists(a);
    let (task, fewest) = (*tasks.first()?, *pairs.first()?);
    if kind.pairs != fewest {
        Some(name(a, Kind { pairs: fewest, ..kind }))
    } else if kind.task != task {
        Some(name(a, Kind { task, ..kind }))
    } else {
        None
    }
}

/// Returns the configuration of a router.
fn configuration(a: &Veth, kind: Kind) -> Result<String, String> {
    let [from, to] = kind.driver.options(a.shield);
    let forward = |[first, second]: [&str; 2]| {
        format!("FromDevice({first}{from}) -> Queue -> ToDevice({second}{to});\n")
    };
    let interfaces = veth::interfaces(kind.pairs.into());
    let mut pairs = interfaces.chunks_exact(2).filter_map(|pair| match pair {
        [first, second] => Some([first.0.as_str(), second.0.as_str()]),
        _ => None,
    });
    match kind.task {
        Task::Route | Task::Firewall => router(a, kind),
        Task::Forward => Ok(pairs.map(forward).collect()),
        Task::Receive => {
            let mut text = format!(
                "FromDevice(in{from}) -> flow :: Classifier(35/00, -) -> Queue -> ToDevice(out{to});\nflow [1] -> Discard;\n"
            );
            pairs.next();
            text.extend(pairs.map(forward));
            Ok(text)
        }
    }
}

/// The rules of the firewall, for the addresses of the measurement.
fn rules() -> Result<String, String> {
    let rules = FIREWALL.split_once("rules :: IPFilter(").and_then(|(_, rest)| rest.split_once(");"));
    let (rules, _) = rules.ok_or("conf/firewall.click has no rules")?;
    Ok(IN_MEASUREMENT.iter().fold(rules.to_string(), |rules, [was, is]| rules.replace(was, is)))
}

/// The routers to measure.
pub fn contenders(a: &Veth) -> Result<Vec<Contender>, String> {
    let contender = |name: &str, way| Contender { name: name.into(), way, share: 1, pairs: 1, base: None };
    if let Some(file) = &a.file {
        let source = crate::load::Source::file(file, Vec::new())?;
        let configuration = castanet_lang::bytes::decode_vec(source.bytes);
        let way = Way::Castanet { configuration, in_kernel: false };
        return Ok(vec![contender(Driver::Packet.router(), way)]);
    }
    let (drivers, tasks, numbers) = lists(a);
    let mut all = Vec::new();
    for &pairs in &numbers {
        for &task in &tasks {
            for &driver in &drivers {
                let kind = Kind { driver, task, pairs };
                let in_kernel = driver == Driver::Xdp;
                all.push(Contender {
                    name: name(a, kind),
                    way: Way::Castanet { configuration: configuration(a, kind)?, in_kernel },
                    share: if task == Task::Receive { FLOWS } else { 1 },
                    pairs: pairs.into(),
                    base: base(a, kind),
                });
            }
        }
    }
    if tasks.contains(&Task::Route) && drivers.contains(&Driver::Xdp) {
        all.push(contender(FORWARDER, Way::Forwarder));
        all.push(contender(DROP, Way::Drop));
    }
    if tasks.contains(&Task::Forward) && drivers.contains(&Driver::AfXdp) {
        all.push(contender(SOCKETS, Way::Sockets));
    }
    Ok(all)
}

/// Returns the configuration of `castanet new ip-router`, with a script that refreshes the ARP entry of the
/// next hop, because no host answers ARP.
fn router(a: &Veth, kind: Kind) -> Result<String, String> {
    const CHECK: &str = "CheckIPHeader(INTERFACES $OURS)";
    let driver = kind.driver;
    let interfaces = veth::interfaces(kind.pairs.into());
    let interfaces: Vec<(&str, &str)> = interfaces.iter().map(|(d, a)| (d.as_str(), a.as_str())).collect();
    let mut router = crate::new::ip_router(&interfaces, a.shield)?;
    if kind.task == Task::Firewall {
        router = router.replace(CHECK, &format!("{CHECK} -> firewall :: IPFilter({})", rules()?));
    }
    if a.burden > 0 {
        let more = " -> CheckIPHeader".repeat(a.burden.into());
        router = router.replace(CHECK, &format!("{CHECK}{more}"));
    }
    let [was, _] = Driver::Packet.options(a.shield);
    let [from, to] = driver.options(a.shield);
    router = router
        .replace(&format!("FromDevice($dev{was})"), &format!("FromDevice($dev{from})"))
        .replace("ToDevice($dev)", &format!("ToDevice($dev{to})"));
    let known = format!("write interface2/arp.insert {RECEIVER} {NEXT_HOP}");
    Ok(format!("{router}\nScript(label again, {known}, wait 20s, goto again);\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_bench::veth::Generator;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        veth: Veth,
    }

    fn parse(line: &str) -> Result<Veth, String> {
        let words = std::iter::once("veth").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|l| l.veth).map_err(|e| e.to_string())
    }

    fn kind(driver: Driver) -> Kind {
        Kind { driver, task: Task::Route, pairs: 1 }
    }

    #[test]
    fn what_is_asked_of_the_router_is_in_it() {
        let plain = router(&parse("").unwrap(), kind(Driver::Packet)).unwrap();
        assert!(!plain.contains("SNIFFER") && plain.matches("CheckIPHeader").count() == 1);
        let more = router(&parse("--shield --burden 7").unwrap(), kind(Driver::Packet)).unwrap();
        assert!(more.contains("FromDevice($dev, SNIFFER false)"));
        assert_eq!(more.matches("CheckIPHeader").count(), 8);
        for (line, driver) in [("", Driver::AfXdp), ("--shield", Driver::AfXdp), ("--shield", Driver::Xdp)] {
            let xdp = router(&parse(line).unwrap(), kind(driver)).unwrap();
            assert!(xdp.contains("FromDevice($dev, SNIFFER false, METHOD XDP)"), "{xdp}");
            assert!(xdp.contains("ToDevice($dev, METHOD XDP)"), "{xdp}");
        }
        assert_eq!(parse("--driver packet,af-xdp").unwrap().drivers, [Driver::Packet, Driver::AfXdp]);
        let names = |line: &str| -> Vec<String> {
            contenders(&parse(line).unwrap()).unwrap().into_iter().map(|c| c.name).collect()
        };
        assert_eq!(names(""), ["castanet"]);
        assert_eq!(
            names("--driver packet,af-xdp,xdp"),
            ["castanet", "castanet-af-xdp", "castanet-xdp", "xdp-forwarder", "xdp-drop"]
        );
        assert_eq!(
            names("--driver packet,af-xdp --task forward"),
            ["castanet", "castanet-af-xdp", "af-xdp-bare"]
        );
        let received = contenders(&parse("--driver af-xdp --task receive").unwrap()).unwrap();
        assert_eq!((received.len(), received[0].share), (1, FLOWS));
        for (line, what) in [
            ("x.click --task receive", "cannot be used with"),
            ("--burden 1 --task receive", "cannot be used with"),
            ("x.click --driver packet", "cannot be used with"),
            ("x.click --pairs 2", "cannot be used with"),
            ("--pairs 5", "5 is not in 1..=4"),
            ("--pairs 0", "0 is not in 1..=4"),
            ("--task route,walk", "invalid value 'walk'"),
            ("--driver dpdk", "invalid value 'dpdk'"),
            ("x.click --shield", "cannot be used with"),
            ("x.click --burden 1", "cannot be used with"),
            ("--generator fast", "'fast' is not 'packet' or 'live'"),
            ("--processors 1", "expected two numbers"),
        ] {
            let error = parse(line).err().unwrap_or_default();
            assert!(error.contains(what), "{line}: {error}");
        }
        let text = router(&parse("").unwrap(), kind(Driver::Xdp)).unwrap();
        let compiled = veth::beside::executed::compiled(&text, 60).unwrap();
        let own = veth::beside::executed::forwarder(60).unwrap();
        println!("{compiled:?}, by hand {own:?}");
        assert!(compiled.executed < 4 * own.executed, "{compiled:?} {own:?}");
        assert_eq!(parse("--generator live").unwrap().generator, Some(Generator::Live));
    }
    #[test]
    fn tasks_and_pairs_make_routers() {
        let made = |line: &str| -> Vec<(String, usize, Option<String>)> {
            let all = contenders(&parse(line).unwrap()).unwrap();
            all.into_iter().map(|c| (c.name, c.pairs, c.base)).collect()
        };
        let want =
            |name: &str, pairs, base: Option<&str>| (name.to_string(), pairs, base.map(str::to_string));
        assert_eq!(
            made("--pairs 4,1,4"),
            [
                want("castanet-2-interfaces", 1, None),
                want("castanet-8-interfaces", 4, Some("castanet-2-interfaces"))
            ]
        );
        assert_eq!(made("--pairs 3"), [want("castanet", 3, None)]);
        assert_eq!(
            made("--task route,firewall --driver packet,xdp"),
            [
                want("castanet-route", 1, None),
                want("castanet-xdp-route", 1, None),
                want("castanet-firewall", 1, Some("castanet-route")),
                want("castanet-xdp-firewall", 1, Some("castanet-xdp-route")),
                want(FORWARDER, 1, None),
                want(DROP, 1, None),
            ]
        );
        let both = made("--task forward,receive --pairs 1,2");
        assert_eq!(both[3], want("castanet-receive-4-interfaces", 2, Some("castanet-receive-2-interfaces")));
    }

    #[test]
    fn figures_choose_what_is_not_given() {
        let chosen = |line: &str| {
            let a = parse(line).unwrap();
            (a.drivers, a.tasks)
        };
        let (all, one) = (vec![Driver::Packet, Driver::AfXdp, Driver::Xdp], vec![Driver::Packet]);
        let both = vec![Task::Forward, Task::Route];
        assert_eq!(chosen(""), (one.clone(), vec![Task::Route]));
        assert_eq!(chosen("--figure tocs-17"), (all.clone(), vec![Task::Route]));
        assert_eq!(chosen("--figure sosp-15"), (all.clone(), both.clone()));
        assert_eq!(chosen("--figure sosp-15 --driver packet"), (one, both));
        assert_eq!(chosen("--task firewall --figure sosp-15"), (all, vec![Task::Firewall]));
        for (line, what) in [("--figure tocs-18", "invalid value"), ("x.click --figure tocs-17", "cannot be")]
        {
            let error = parse(line).err().unwrap_or_default();
            assert!(error.contains(what), "{line}: {error}");
        }
        let titles = [None, Some(Figure::Tocs17), Some(Figure::Sosp15)].map(Figure::title);
        assert!(titles[1].contains("Figure 17") && titles[2].contains("Figure 15"), "{titles:?}");
    }

    #[test]
    fn configurations_are_right() {
        for line in ["", "--shield"] {
            let a = parse(line).unwrap();
            for task in [Task::Route, Task::Firewall, Task::Forward, Task::Receive] {
                for pairs in 1..=4 {
                    for driver in [Driver::Packet, Driver::AfXdp, Driver::Xdp] {
                        let text = configuration(&a, Kind { driver, task, pairs }).unwrap();
                        let (elements, errors) = crate::new::checked(&text);
                        assert!(elements > 0 && errors.is_empty(), "{errors:?}\n{text}");
                    }
                }
            }
        }
        let rules = rules().unwrap();
        assert_eq!(
            rules.lines().filter(|l| l.contains("allow ") || l.contains("deny ")).count(),
            17,
            "{rules}"
        );
        assert!(!rules.contains("10.1.") && !rules.contains("    1 "), "{rules}");
    }

    #[test]
    fn programs_grow_with_the_task() {
        let a = parse("").unwrap();
        let executed = |task, pairs| {
            let text = configuration(&a, Kind { driver: Driver::Xdp, task, pairs }).unwrap();
            veth::beside::executed::compiled(&text, 60).unwrap().executed
        };
        let (plain, filtered, eight) =
            (executed(Task::Route, 1), executed(Task::Firewall, 1), executed(Task::Route, 4));
        println!("route {plain}, firewall {filtered}, eight interfaces {eight}");
        // The firewall decides by a tree: each of its leaves is a few comparisons away. The number of interfaces hardly counts.
        assert!(plain < filtered && filtered < 2 * plain, "{plain} {filtered}");
        assert!(plain <= eight && eight < 2 * plain, "{plain} {eight}");
        // A packet that the last rule drops instead is not forwarded.
        let text = configuration(&a, Kind { driver: Driver::Xdp, task: Task::Firewall, pairs: 1 }).unwrap();
        let dropped = text.replace("dst port 9", "dst port 10");
        assert_ne!(text, dropped);
        assert!(veth::beside::executed::compiled(&dropped, 60).is_err());
    }
}
