// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::tasks::{FLOWS, Kind, configuration, router, rules};
use super::*;
use castanet_bench::veth::{Contender, DROP, FORWARDER, KernelTask, Way};
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

/// The IP router for these options, with this driver.
fn routed(line: &str, driver: Driver) -> String {
    let a = parse(line).unwrap();
    router(&a, &a.chosen().unwrap(), Kind { driver, task: Task::Route, pairs: 1 }).unwrap()
}

fn made(line: &str) -> Vec<Contender> {
    contenders(&parse(line).unwrap()).unwrap().0
}

fn names(line: &str) -> Vec<String> {
    made(line).into_iter().map(|c| c.name).collect()
}

#[test]
fn what_is_asked_of_the_router_is_in_it() {
    let plain = routed("", Driver::Packet);
    assert!(!plain.contains("SNIFFER") && plain.matches("CheckIPHeader").count() == 1);
    let more = routed("--shield --burden 7", Driver::Packet);
    assert!(more.contains("FromDevice($dev, SNIFFER false)"));
    assert_eq!(more.matches("CheckIPHeader").count(), 8);
    for (line, driver) in [("", Driver::AfXdp), ("--shield", Driver::AfXdp), ("--shield", Driver::Xdp)] {
        let xdp = routed(line, driver);
        assert!(xdp.contains("FromDevice($dev, SNIFFER false, METHOD XDP)"), "{xdp}");
        assert!(xdp.contains("ToDevice($dev, METHOD XDP)"), "{xdp}");
    }
    assert_eq!(parse("--driver packet,af-xdp").unwrap().drivers, [Driver::Packet, Driver::AfXdp]);
    assert_eq!(names(""), ["castanet"]);
    assert_eq!(
        names("--driver packet,af-xdp,xdp"),
        ["castanet", "castanet-af-xdp", "castanet-xdp", "xdp-forwarder", "xdp-drop"]
    );
    assert_eq!(
        names("--driver packet,af-xdp --task forward"),
        ["castanet", "castanet-af-xdp", "af-xdp-bare"]
    );
    let received = made("--driver af-xdp --task receive");
    assert_eq!((received.len(), received[0].share), (1, FLOWS));
    for (line, what) in [
        ("x.click --task receive", "cannot be used with"),
        ("--burden 1 --task receive", "cannot be used with"),
        ("x.click --driver packet", "cannot be used with"),
        ("x.click --pairs 2", "cannot be used with"),
        ("--pairs 9", "9 is not in 1..=8"),
        ("--flows 0", "0 is not in 1..=8"),
        ("--length 60,59", "59 is not in 60..=1514"),
        ("--ways back", "invalid value 'back'"),
        ("--kernel forward", "invalid value 'forward'"),
        ("x.click --flows 2", "cannot be used with"),
        ("--pairs 0", "0 is not in 1..=8"),
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
    let text = routed("", Driver::Xdp);
    let compiled = veth::beside::executed::compiled(&text, 60).unwrap();
    let own = veth::beside::executed::forwarder(60).unwrap();
    println!("{compiled:?}, by hand {own:?}");
    assert!(compiled.executed < 4 * own.executed, "{compiled:?} {own:?}");
    assert_eq!(parse("--generator live").unwrap().generator, Some(Generator::Live));
}
#[test]
fn tasks_and_pairs_make_routers() {
    let made = |line: &str| -> Vec<(String, usize, Option<String>)> {
        made(line).into_iter().map(|c| (c.name, c.pairs, c.base)).collect()
    };
    let want = |name: &str, pairs, base: Option<&str>| (name.to_string(), pairs, base.map(str::to_string));
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
        let c = parse(line).unwrap().chosen().unwrap();
        (c.drivers, c.tasks)
    };
    let (all, one) = (vec![Driver::Packet, Driver::AfXdp, Driver::Xdp], vec![Driver::Packet]);
    let both = vec![Task::Forward, Task::Route];
    assert_eq!(chosen(""), (one.clone(), vec![Task::Route]));
    assert_eq!(chosen("--figure tocs-17"), (all.clone(), vec![Task::Route]));
    assert_eq!(chosen("--figure sosp-15"), (all.clone(), both.clone()));
    assert_eq!(chosen("--figure sosp-15 --driver packet"), (one, both));
    assert_eq!(chosen("--task firewall --figure sosp-15"), (all, vec![Task::Firewall]));
    for (line, what) in [("--figure tocs-18", "invalid value"), ("x.click --figure tocs-17", "cannot be")] {
        let error = parse(line).err().unwrap_or_default();
        assert!(error.contains(what), "{line}: {error}");
    }
    let traffic = |line: &str| {
        let all = parse(line).unwrap().chosen().unwrap().traffic();
        all.into_iter().map(|t| (t.length, t.flows, t.both_ways)).collect::<Vec<_>>()
    };
    assert_eq!(traffic(""), [(60, 1, false)]);
    assert_eq!(traffic("--length 1514,60,60"), [(60, 1, false), (1514, 1, false)]);
    assert_eq!(traffic("--figure hpsr-7 --length 124"), [(124, 1, false), (124, 2, false), (124, 3, false)]);
    assert_eq!(
        traffic("--figure hpsr-6b --length 60,1514"),
        [(60, 4, false), (1514, 4, false), (60, 4, true), (1514, 4, true)]
    );
    let measured = |line: &str| {
        let c = parse(line).unwrap().chosen().unwrap();
        (c.kernel, c.points, c.search, c.count_received, c.pairs)
    };
    assert_eq!(measured(""), (KernelTask::Route, 12, true, false, vec![1]));
    assert_eq!(measured("--points 0"), (KernelTask::Route, 0, false, false, vec![1]));
    assert_eq!(measured("--figure sosp-16"), (KernelTask::Route, 3, false, false, vec![1]));
    assert_eq!(measured("--figure hpsr-6a"), (KernelTask::Transfer, 0, false, true, vec![4]));
    assert_eq!(
        measured("--figure hpsr-6a --kernel route --pairs 2,8 --flows 3"),
        (KernelTask::Route, 0, false, true, vec![3, 8])
    );
}

#[test]
fn figures_have_their_routers() {
    assert_eq!(names("--figure hpsr-4"), ["castanet", "castanet-af-xdp", "castanet-xdp", "xdp-drop"]);
    assert_eq!(names("--figure hpsr-5"), ["castanet", "castanet-af-xdp", "packet-socket"]);
    assert_eq!(names("--figure hpsr-6a"), ["castanet", "castanet-af-xdp", "castanet-xdp"]);
    assert!(names("--figure hpsr-7").contains(&FORWARDER.to_string()));
    assert_eq!(names("--figure sosp-17").len(), 2 * 4 + 2);
    let notes = |line: &str| contenders(&parse(line).unwrap()).unwrap().1.join("\n");
    assert!(notes("--figure hpsr-5").contains("castanet-xdp is left out"));
    assert!(notes("--figure hpsr-6a").contains("af-xdp-bare is left out"));
    assert!(notes("--figure hpsr-6a").contains("a filter of tc"));
    assert!(!notes("--figure sosp-16").contains("left out"));
    // All of eight interfaces receive, and the sample leaves by one.
    let eight = made("--figure hpsr-4");
    assert!(eight.iter().all(|c| c.pairs == 8));
    let Way::Castanet { configuration, .. } = &eight[0].way else { panic!("{:?}", eight[0].way) };
    assert_eq!(configuration.matches("FromDevice(").count(), 8);
    assert_eq!(configuration.matches("ToDevice(").count(), 1);
    for (line, what) in [
        ("--task send", "measured alone"),
        ("--kernel send", "measured alone"),
        ("--figure hpsr-5 --task send,route", "measured alone"),
        ("--figure hpsr-5 --length 60,124", "one frame length"),
        ("--task switch --flows 2", "--task switch has one flow"),
        ("--task firewall --ways both", "--task firewall has one flow"),
    ] {
        let error = contenders(&parse(line).unwrap()).map(|c| c.1).unwrap_err();
        assert!(error.contains(what), "{line}: {error}");
    }
}

#[test]
fn configurations_are_right() {
    let one = [Task::Firewall, Task::Switch];
    let many = [Task::Route, Task::Red, Task::Sfq, Task::Forward, Task::Receive, Task::Send];
    for (line, tasks) in [("", &one[..]), ("", &many), ("--shield --flows 4 --ways both", &many)] {
        let a = parse(line).unwrap();
        let chosen = a.chosen().unwrap();
        for &task in tasks {
            for pairs in [1, 4] {
                for driver in [Driver::Packet, Driver::AfXdp, Driver::Xdp] {
                    let text = configuration(&a, &chosen, Kind { driver, task, pairs }).unwrap();
                    let (elements, errors) = crate::new::checked(&text);
                    assert!(elements > 0 && errors.is_empty(), "{errors:?}\n{text}");
                }
            }
        }
    }
    let rules = rules().unwrap();
    assert_eq!(rules.lines().filter(|l| l.contains("allow ") || l.contains("deny ")).count(), 17, "{rules}");
    assert!(!rules.contains("10.1.") && !rules.contains("    1 "), "{rules}");
}

#[test]
fn programs_grow_with_the_task() {
    let a = parse("").unwrap();
    let chosen = a.chosen().unwrap();
    let executed = |task, pairs| {
        let text = configuration(&a, &chosen, Kind { driver: Driver::Xdp, task, pairs }).unwrap();
        veth::beside::executed::compiled(&text, 60).unwrap().executed
    };
    let (plain, filtered, eight) =
        (executed(Task::Route, 1), executed(Task::Firewall, 1), executed(Task::Route, 4));
    println!("route {plain}, firewall {filtered}, eight interfaces {eight}");
    // The firewall decides by a tree: each of its leaves is a few comparisons away. The number of interfaces hardly counts.
    assert!(plain < filtered && filtered < 2 * plain, "{plain} {filtered}");
    assert!(plain <= eight && eight < 2 * plain, "{plain} {eight}");
    // A packet that the last rule drops instead is not forwarded.
    let text =
        configuration(&a, &chosen, Kind { driver: Driver::Xdp, task: Task::Firewall, pairs: 1 }).unwrap();
    let dropped = text.replace("dst port 9", "dst port 10");
    assert_ne!(text, dropped);
    assert!(veth::beside::executed::compiled(&dropped, 60).is_err());
}

#[test]
fn tasks_differ_in_their_queues() {
    let a = parse("").unwrap();
    let chosen = a.chosen().unwrap();
    let text = |task| configuration(&a, &chosen, Kind { driver: Driver::Packet, task, pairs: 1 }).unwrap();
    // Both interfaces are instances of one compound element.
    assert_eq!(text(Task::Red).matches("RED(").count(), 1);
    let fair = text(Task::Sfq);
    assert!(fair.contains("queue :: FairQueue -> ToDevice($dev)"), "{fair}");
    assert_eq!(fair.matches("-> Queue(125)").count(), 8);
    assert!(fair.contains("HashSwitch(26, 12)"), "{fair}");
    assert!(text(Task::Switch).contains("TimedSource"));
    // The host behind each pair that packets cross is known.
    let a = parse("--flows 2 --pairs 3").unwrap();
    let text = router(&a, &a.chosen().unwrap(), Kind { driver: Driver::Packet, task: Task::Route, pairs: 3 });
    let text = text.unwrap();
    for (what, there) in [("interface2/arp.insert 10.0.1.2", true), ("interface4/arp.insert 10.0.3.2", true)]
    {
        assert_eq!(text.contains(what), there, "{what}");
    }
    assert_eq!(text.matches("/arp.insert").count(), 2);
}
