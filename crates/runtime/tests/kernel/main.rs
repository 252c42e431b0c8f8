// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that nobody can tell where an element runs: a router of which a part runs as eBPF programs, in an interpreter, sends
//! the same frames, prints the same messages and counts the same as the whole router at user level.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod classes;
mod conf;
mod errors;
mod flows;
mod found;
mod frames;
mod graphs;
mod oracle;
mod order;
mod paths;
mod pieces;
mod rates;
mod real;
mod shared;
mod split;
mod stations;
mod swaps;
mod world;

use castanet_element::Clock;
use castanet_element::build::of_router;
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use castanet_testkit::Log;
use frames::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use world::World;

/// Frames with the devices that receive them.
type Frames = Vec<(&'static str, Vec<u8>)>;

/// Everything that can be seen of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    sent: Vec<(String, Vec<u8>)>,
    messages: Vec<String>,
    handlers: BTreeMap<String, String>,
    ledger: String,
    /// The handler `paths`.
    paths: String,
}

/// Handlers whose values differ, because packets pass some elements only at user level: queues are left out in the kernel.
const DIFFERENT: [&str; 5] = ["highwater_length", "scheduled", "cycles", "now", "now_steady"];
/// Classes whose rates include packets in the kernel with their times. Those of others depend on times that programs do not note.
const EXACT_RATES: [&str; 3] = ["Meter", "BandwidthMeter", "AverageCounter"];

fn start(text: &str, world: &World) -> (Router, Log) {
    try_start(text, world).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn options(world: &World, log: &Log) -> Options {
    let mut given = of_router(world.clone());
    if world.is_compiled() {
        given.extend(castanet_testkit::compilers());
    }
    Options {
        clock: Clock::simulated(castanet_testkit::START),
        given,
        printer: log.printer(),
        batch: if world.has_bursts() { 1 } else { Options::default().batch },
        ..Options::default()
    }
}

fn try_start(text: &str, world: &World) -> Result<(Router, Log), String> {
    let log = Log::default();
    let (text, texts) = swaps::Texts::split(text);
    let (loaded, _) =
        Loaded::from_text("config", text.as_bytes(), &[], world::classes()).map_err(|e| e.to_string())?;
    let (router, _) =
        castanet_runtime::build(loaded.graph, loaded.classes, &loaded.sources, options(world, &log))
            .map_err(|e| format!("{e:?}"))?;
    router.running().stop_when_idle();
    router.running().set_loader(Arc::new(texts));
    router.running().allow_swaps();
    Ok((router, log))
}

fn finish(mut router: Router, log: &Log, world: &World) -> Seen {
    router.run().unwrap();
    let mut handlers = BTreeMap::new();
    for e in 0..router.shared().graph.len() as u32 {
        let graph = &router.shared().graph;
        let name = graph.name(e as usize).to_string();
        let exact = graph.element(e as usize).is_some_and(|e| EXACT_RATES.contains(&e.class.as_str()));
        let all = router.read(Some(e), "handlers", "").unwrap();
        for line in all.lines() {
            let Some((handler, flags)) = line.split_once('\t') else { continue };
            if flags.contains('r')
                && !DIFFERENT.contains(&handler)
                && (exact || !handler.ends_with("rate"))
                && let Ok(value) = router.read(Some(e), handler, "")
            {
                handlers.insert(format!("{name}.{handler}"), value);
            }
        }
    }
    let ledger = router.ledger().to_string();
    let paths = router.read(None, "paths", "").unwrap();
    Seen { sent: world.sent(), messages: log.lines(), handlers, ledger, paths }
}

/// Frames with their times in milliseconds and their devices.
type Timed = Vec<(i64, Vec<u8>, String)>;

/// The result of a comparison.
enum Outcome {
    /// The configuration is not valid: why.
    Refused(String),
    /// Both runs were the same. The world of the router that runs in the kernel.
    Same(World),
    /// The first difference.
    Differs(String),
}

/// The first difference of two runs.
fn difference(seen: &Seen, wanted: &Seen) -> Option<String> {
    for (i, (got, want)) in seen.sent.iter().zip(&wanted.sent).enumerate() {
        if got != want {
            return Some(format!("frame {i} sent:\n{got:02x?}\nnot\n{want:02x?}"));
        }
    }
    for (got, want) in seen.messages.iter().zip(&wanted.messages) {
        if got != want {
            return Some(format!("{got}\nnot\n{want}"));
        }
    }
    let numbers = |s: &Seen| (s.sent.len(), s.messages.len());
    if numbers(seen) != numbers(wanted) {
        return Some(format!("{:?} frames sent and messages, not {:?}", numbers(seen), numbers(wanted)));
    }
    if seen.ledger != wanted.ledger {
        return Some(format!("{}\nnot\n{}", seen.ledger, wanted.ledger));
    }
    let differs = |(name, want): (&String, &String)| {
        let got = seen.handlers.get(name).filter(|got| *got != want)?;
        Some(format!("{name}: {got} not {want}"))
    };
    wanted.handlers.iter().find_map(differs)
}

/// Runs a configuration with frames at user level, and partly in the kernel, and compares.
fn try_compare(text: &str, frames: &Timed, world: fn() -> World) -> Outcome {
    let run = |in_kernel: bool| {
        let world = world();
        for (at, frame, device) in frames {
            world.receive(device, *at, frame.clone());
        }
        let (mut router, log) = try_start(text, &world).map_err(Outcome::Refused)?;
        if in_kernel {
            router.start_in_kernel(Arc::new(world.clone())).map_err(Outcome::Differs)?;
        }
        let seen = finish(router, &log, &world);
        // Kernels have faults of their own: the compiler for x86 gives up programs whose jumps change their lengths too often.
        if let Some(why) = seen.messages.iter().find(|m| m.contains("at user level, not in the kernel: ")) {
            return Err(Outcome::Refused(why.clone()));
        }
        match world.fault() {
            Some(fault) => Err(Outcome::Differs(fault)),
            None => Ok((seen, world)),
        }
    };
    let runs = run(true).and_then(|seen| Ok((seen, run(false)?.0)));
    match runs {
        Err(outcome) => outcome,
        Ok(((seen, world), wanted)) => match difference(&seen, &wanted) {
            Some(how) => Outcome::Differs(how),
            None => Outcome::Same(world),
        },
    }
}

/// Like [`try_compare`], with a frame each millisecond. Panics if there is a difference. Returns the world of the router that
/// runs in the kernel.
fn compare(text: &str, frames: &[(&str, Vec<u8>)], world: fn() -> World) -> World {
    let frames =
        frames.iter().enumerate().map(|(i, (d, f))| (1 + i as i64, f.clone(), d.to_string())).collect();
    match try_compare(text, &frames, world) {
        Outcome::Same(world) => world,
        Outcome::Refused(why) | Outcome::Differs(why) => panic!("{text}\n{why}"),
    }
}

/// Configurations that show each class that can run in the kernel. `IN` and `OUT` stand for devices; an output that leads to
/// Observe shows everything about packets.
const CLASSES: &[&str] = &[
    "FromDevice(eth0) -> Strip(14) -> Observe(a);",
    "FromDevice(eth0) -> Strip(3) -> Strip(57) -> Strip(1) -> Observe(a);",
    "FromDevice(eth0) -> Paint(7) -> t :: PaintTee(7) -> Observe(a); t [1] -> Observe(b);",
    "FromDevice(eth0) -> Paint(7, 20) -> t :: PaintTee(8, 20) -> Observe(a); t [1] -> Observe(b);",
    "FromDevice(eth0) -> f :: HostEtherFilter(2:0:0:0:0:0) -> Observe(a); f [1] -> Observe(b);",
    "FromDevice(eth0) -> HostEtherFilter(2:0:0:0:0:0, true, false) -> Observe(a);",
    "FromDevice(eth0) -> f :: HostEtherFilter(2:0:0:0:0:0, true) -> d :: DropBroadcasts -> Observe(a); f [1] -> Observe(b);
     d [1] -> Observe(c);",
    "FromDevice(eth0) -> DropBroadcasts -> Observe(a);",
    "FromDevice(eth0) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, 12/86dd%ff0f !14/60, -);
     c [0] -> Observe(a); c [1] -> Observe(b); c [2] -> Observe(c); c [3] -> Observe(d); c [4] -> Observe(e);",
    "FromDevice(eth0) -> Classifier(12/0800) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> c :: CheckIPHeader(VERBOSE true) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14, DETAILS true) -> Strip(14) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader2(BADSRC 10.0.0.2 10.0.0.255, GOODDST 10.0.1.2) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> IPFilter(deny src 10.0.0.2, 1 tcp dst port 80, allow udp or icmp type 8)
     -> Observe(a); Idle -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(tcp syn, udp src port 53 and ip ttl 64, ip frag, -);
     c [0] -> Observe(a); c [1] -> Observe(b); c [2] -> Observe(c); c [3] -> Observe(d);",
    "FromDevice(eth0) -> IPClassifier(tcp) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> r :: StaticIPLookup(10.0.0.0/24 0, 10.0.0.2/32 1, 10.0.0.0/8 9.9.9.9 1,
     0.0.0.0/0 8.8.8.8 0); r [0] -> Observe(a); r [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> r :: RadixIPLookup(10.0.0.0/24 0, 10.0.1.0/24 1);
     r [0] -> Observe(a); r [1] -> Observe(b);",
    "FromDevice(eth0) -> r :: LinearIPLookup(0.0.0.0/0 7.7.7.7 0, 10.0.1.0/24 1); r [0] -> Observe(a); r [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> t :: DecIPTTL -> Observe(a); t [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> DecIPTTL(MULTICAST false) -> DecIPTTL(ACTIVE false) -> Observe(a);",
    "FromDevice(eth0) -> DecIPTTL -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> FixIPSrc(1.2.3.4) -> o :: IPGWOptions(10.0.0.1) -> Observe(a);
     o [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> f :: IPFragmenter(60) -> Observe(a); f [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> a :: ARPQuerier(10.0.0.1/24, 2:0:0:0:0:0) -> Queue -> ToDevice(eth0);
     FromDevice(eth1) -> [1] a;
     Script(write a.insert 10.0.1.2 2:1:1:1:1:1, wait 0.1, write a.insert 10.0.1.2 2:2:2:2:2:2, wait 0.1, write a.clear);",
    "FromDevice(eth0) -> Queue -> ToDevice(eth1);",
    "FromDevice(eth0) -> q :: Queue -> Unqueue -> Observe(a); FromDevice(eth1) -> q;",
];

/// The configurations for single classes.
fn all() -> impl Iterator<Item = &'static str> {
    [CLASSES, classes::MORE, classes::ALL_UP, classes::BOTH, found::FOUND].into_iter().flatten().copied()
}

fn classes_in<'a>(texts: impl Iterator<Item = &'a str>, world: fn() -> World, frames_each: usize) {
    for (i, text) in texts.enumerate() {
        let mut random = Random::new(i as u64);
        let frames: Frames = (0..frames_each)
            .map(|_| (if random.one_in(8) { "eth1" } else { "eth0" }, random.frame()))
            .collect();
        let ways = compare(text, &frames, world).ways();
        assert!(ways.0 + ways.1 > 0, "{text}: no frame passed a program");
    }
}

#[test]
fn each_class_does_the_same_in_the_kernel() {
    classes_in(all().chain(classes::TIMED.iter().copied()), World::default, 1500);
}

/// Tables of many routes are looked up in a table of the kernel, also while handlers change them.
fn route_tables_in(world: fn() -> World) {
    for class in ["RadixIPLookup", "DirectIPLookup", "LinearIPLookup", "StaticIPLookup"] {
        for before in ["Strip(14) -> CheckIPHeader ->", "", "SetIPAddress(10.0.1.9) ->"] {
            let many: String = (0..60).map(|i| format!("10.{i}.0.0/{} {}, ", 16 + i % 5, i % 3)).collect();
            let changes = "Script(wait 0.2, write r.add 10.0.1.2/32 3.3.3.3 2, wait 0.2, write r.set 10.0.0.0/24 4.4.4.4 1,
                wait 0.2, write r.remove 10.0.1.2/32, write r.add 0.0.0.0/0 2.2.2.2 0);";
            let changes = if class == "StaticIPLookup" { "" } else { changes };
            let text = format!(
                "FromDevice(eth0) -> {before} r :: {class}({many} 10.0.0.2/32 9.9.9.9 0, 10.0.1.77/32 1);
                 r [0] -> Observe(a); r [1] -> Observe(b); r [2] -> Observe(c); {changes}"
            );
            let mut random = Random::new(3);
            let frames: Frames = (0..1000).map(|_| ("eth0", random.frame())).collect();
            compare(&text, &frames, world);
        }
    }
}

#[test]
fn large_route_tables_do_the_same_in_the_kernel() {
    route_tables_in(World::default);
}

/// The kernel accepts all programs, and they do there what they do in the interpreter.
#[test]
fn the_kernel_does_what_the_interpreter_does() {
    castanet_testkit::namespace::inside_with_bpf("the_kernel_does_what_the_interpreter_does", || {
        if let Err(e) = World::try_kernel() {
            return println!("SKIP: the_kernel_does_what_the_interpreter_does: {e}");
        }
        classes_in(all(), World::with_kernel, 1500);
        route_tables_in(World::with_kernel);
        flows::rewriters_in(World::with_kernel, false);
        errors::rewriters_in(World::with_kernel, false);
        stations::switches_in(World::with_kernel, false);
        ip_router_in(World::with_kernel);
        shared::tables_in(World::with_kernel);
    });
}

#[test]
fn the_configurations_of_the_project_do_the_same_in_the_kernel() {
    conf::check_that_all_are_there();
    conf::configurations_in(World::default, 1500, 1);
}

#[test]
fn each_class_that_can_run_in_the_kernel_is_compared() {
    let others = [classes::TIMED, flows::REWRITERS, errors::ICMP_REWRITERS, stations::SWITCHES];
    let texts: Vec<&str> = all().chain(others.into_iter().flatten().copied()).collect();
    let classes = pieces::classes_with_code();
    assert!(classes.len() > 50, "{classes:?}");
    for class in classes {
        let named = |text: &&str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == class);
        // Random numbers cannot be compared; `stations` tests the class.
        assert!(
            class == "RandomSwitch" || texts.iter().any(named),
            "{class}: add configurations to classes.rs"
        );
    }
}

#[test]
fn random_configurations_do_the_same_in_the_kernel() {
    let (ran, up, gone) = graphs::random_graphs_in(World::default, 0..300, 250);
    println!("{ran} configurations, {up} frames up, {gone} not");
    assert!(ran > 280 && up > 10_000 && gone > 10_000);
}

/// `cargo test --release -p castanet-runtime --test kernel a_million -- --ignored --nocapture` prints the numbers.
/// CASTANET_KERNEL_SEED chooses other random configurations and frames.
#[test]
#[ignore = "takes minutes; run by .ci/long"]
fn a_million_packets_do_the_same_in_the_kernel() {
    let seed = std::env::var("CASTANET_KERNEL_SEED").map_or(1, |s| s.parse().unwrap());
    let name = "a_million_packets_do_the_same_in_the_kernel";
    castanet_testkit::namespace::inside_with_bpf(name, || {
        let world = match World::try_kernel() {
            Ok(()) => World::with_kernel,
            Err(e) => {
                println!("SKIP: {name}: only in the interpreter: {e}");
                World::default
            }
        };
        let packets = conf::configurations_in(world, 30_000, seed);
        let (ran, up, gone) = graphs::random_graphs_in(world, 1000 * seed..1000 * seed + 3000, 400);
        println!(
            "{ran} random configurations, {up} frames up, {gone} not, and {packets} of the project's configurations"
        );
        assert!(up + gone + packets as u64 > 1_000_000);
    });
}

#[test]
fn some_frames_pass_each_class_in_the_kernel() {
    for (i, text) in classes::MORE.iter().enumerate() {
        let mut random = Random::new(1000 + i as u64);
        let frames: Frames = (0..400).map(|_| ("eth0", random.frame())).collect();
        let places = ["a", "b", "c"];
        let text =
            places.iter().fold(text.to_string(), |text, p| text.replace(&format!("Observe({p})"), "Discard"));
        let world = compare(&text, &frames, World::default);
        assert!(world.discarded() > 0, "{text}: no frame came to an end in the kernel");
    }
}

fn ip_router() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/ip-router.click");
    let text = std::fs::read_to_string(path).unwrap();
    // The devices have no addresses of their own here.
    text.replace(
        "AddressInfo($DEV0 $IP0, $DEV1 $IP1);",
        "AddressInfo($DEV0 $IP0 2:0:0:0:0:0, $DEV1 $IP1 2:0:0:0:0:1);",
    )
}

#[test]
fn the_ip_router_does_the_same_in_the_kernel() {
    ip_router_in(World::default);
}

fn ip_router_in(world: fn() -> World) {
    let mut random = Random::new(1);
    let known = "Script(set n 0, label again, write one/arp.insert 10.0.0.2 2:0:0:0:1:2,
                 write two/arp.insert 10.0.1.2 2:0:0:0:1:3, wait 1s, set n $(add $n 1), goto again $(lt $n 6));";
    for text in [ip_router(), format!("{}\n{known}", ip_router())] {
        let frames: Frames = (0..4000)
            .map(|_| {
                let device = random.below(2) as u8;
                (if device == 0 { "eth0" } else { "eth1" }, random.frame_for(device))
            })
            .collect();
        let (up, gone, executed) = compare(&text, &frames, world).ways();
        println!("{up} up, {gone} not, {} instructions each", executed / gone.max(1));
        assert!(gone > 0 && up > 0);
    }
}

/// The kernel sends no frame without an Ethernet header. Such a packet is dropped, and counted once: the router checks its
/// ledger when it ends.
#[test]
fn packets_that_are_too_short_to_send_are_counted_once() {
    let world = World::default();
    for length in 0..20 {
        world.receive("eth0", 1 + i64::from(length), vec![2; 14 + length as usize]);
    }
    let (mut router, log) = start("FromDevice(eth0) -> Strip(14) -> Queue -> ToDevice(eth1);", &world);
    router.start_in_kernel(Arc::new(world.clone())).unwrap();
    let seen = finish(router, &log, &world);
    assert_eq!((seen.sent.len(), world.fault()), (6, None));
    assert_eq!(seen.handlers["ToDevice@4.count"], "6");
}

/// A packet of an established flow: the count of instructions is compared, so that it is not raised unnoticed.
#[test]
fn a_forwarded_packet_costs_few_instructions() {
    let known = "Script(write two/arp.insert 10.0.1.2 2:0:0:0:1:3);";
    let text = format!("{}\n{known}", ip_router());
    let mut ip = vec![0x45u8, 0, 0, 46, 1, 2, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 1, 2];
    let sum = frames::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.resize(46, 7);
    let frame = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 8, 0][..], &ip].concat();
    let frames: Vec<_> = (0..1000).map(|_| ("eth0", frame.clone())).collect();
    let (up, forwarded, executed) = compare(&text, &frames, World::default).ways();
    assert_eq!(
        (up, forwarded),
        (2, 998),
        "the second packet comes up because the first may still be on its way"
    );
    assert!(executed / forwarded <= 116, "{} instructions", executed / forwarded);
}
