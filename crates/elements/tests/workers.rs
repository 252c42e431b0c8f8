// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every class on several workers. Whatever the workers do at the same time, each packet must be accounted for. If
//! the results of a class do not depend on how packets of different sources are interleaved, they must equal the
//! results of one worker.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod noise;
mod setting;

use castanet_classes::Registry;
use castanet_element::spec::ClassSpec;
use castanet_element::{Random, Remote as _};
use castanet_graph::{Graph, PortKind, excerpt};
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use castanet_testkit::{Log, real, simulated, try_router_with};
use setting::in_own_folder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The number of sources on each input of the element. Each source has a task of its own.
const SOURCES: usize = 8;
/// The number of packets that each source sends.
const PACKETS: u64 = 100;

/// How long to wait for results, in seconds, on a machine that is busy with other things.
const PATIENCE: u64 = 100;

/// Classes whose results depend on the time that packets take or on the time of day, which differ between real and
/// simulated time; and ICMPError, because each replica numbers its messages from a number of its own.
const TIMED: &[&str] = &[
    "AdaptiveRED",
    "BandwidthMeter",
    "BandwidthRatedUnqueue",
    "CoDel",
    "DelayUnqueue",
    "EtherSpanTree",
    "ICMPError",
    "ICMPPingSource",
    "ICMPRouterAdvertiser",
    "IPGWOptions",
    "IPOutputCombo",
    "IPRateMonitor",
    "IPReassembler",
    "LinkUnqueue",
    "Meter",
    "PI",
    "RED",
    "TimeSortedSched",
    "TimedSink",
    "TimedUnqueue",
];

/// The order in which the sources of a configuration send.
#[derive(Clone, Copy)]
enum Order {
    InTurn,
    Backwards,
    /// Some sources get more turns than others.
    Uneven,
    /// In a random order that depends on the number.
    Shuffled(u64),
}

/// The orders in which each configuration is run. If few packets depend on the order, only some orders show it.
const ORDERS: [Order; 6] = [
    Order::InTurn,
    Order::Backwards,
    Order::Uneven,
    Order::Shuffled(1),
    Order::Shuffled(2),
    Order::Shuffled(3),
];

/// Returns the configuration with element `e` of a graph, under the name `x`. `puller` is the class of the elements that
/// pull from its outputs.
fn text(graph: &Graph, e: usize, order: Order, puller: &str) -> String {
    let (inputs, outputs) = (graph.inputs(e), graph.outputs(e));
    let mut text = excerpt(graph, e, "x");
    for i in 0..inputs {
        let entry = if graph.input_kind(e, i) == PortKind::Pull { "Queue(100000)" } else { "Null" };
        let _ = writeln!(text, "i{i} :: {entry} -> [{i}] x;");
    }
    text += &sources(inputs * SOURCES, inputs, order);
    for o in 0..outputs {
        let pull = if graph.output_kind(e, o) == PortKind::Pull { puller } else { "Null" };
        let _ = writeln!(text, "x [{o}] -> {pull} -> o{o} :: Out({o});");
    }
    text
}

/// Returns `count` sources, which send to the elements `i0`, `i1` and so on. `inputs` is the number of these elements.
fn sources(count: usize, inputs: usize, order: Order) -> String {
    let mut all: Vec<usize> = (0..count).collect();
    match order {
        Order::InTurn | Order::Uneven => {}
        Order::Backwards => all.reverse(),
        Order::Shuffled(seed) => {
            let mut random = Random::new(seed, "order");
            all.sort_by_cached_key(|_| random.below(u64::MAX));
        }
    }
    all.into_iter().fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "n{n} :: Noise({n}, {PACKETS}) -> i{};", n % inputs);
        if matches!(order, Order::Uneven) {
            let _ = writeln!(text, "ScheduleInfo(n{n} {});", 1 + n * n % 7);
        }
        text
    })
}

/// The observable results of a run.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// The packets of each output and source, in order. New packets have no source. They are sorted instead.
    outputs: BTreeMap<(String, String), Vec<String>>,
    drops: BTreeMap<(String, &'static str), u64>,
}

fn outputs(lines: &[String]) -> BTreeMap<(String, String), Vec<String>> {
    let mut out: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in lines {
        let mut words = line.splitn(4, ' ');
        if let (Some("out"), Some(port), Some(tag), Some(what)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            out.entry((port.to_string(), tag.to_string())).or_default().push(what.to_string());
        }
    }
    out.iter_mut().filter(|(key, _)| key.1 == "new").for_each(|(_, packets)| packets.sort());
    out
}

/// Returns the drops of a router that has stopped, by element and reason.
fn drops(r: &mut Router) -> BTreeMap<(String, &'static str), u64> {
    let all = r.drops().into_iter();
    all.map(|((e, reason), n)| ((r.shared().graph.name(e as usize).to_string(), reason.name()), n)).collect()
}

/// Checks the ledger of a router that has stopped, and cleans the router up.
fn finish(r: &mut Router, text: &str) -> Result<(), String> {
    r.ledger().check();
    let failed = r.cleanup();
    r.ledger().check();
    if failed.is_empty() { Ok(()) } else { Err(format!("{failed:?}\n{text}")) }
}

/// Runs one worker in simulated time.
fn one_worker(text: &str) -> Result<Seen, String> {
    let text = format!("{text}Quit(36000);\n");
    let (options, log) = simulated(32);
    let mut r = try_router_with(&text, options, noise::add_to)?;
    r.run().map_err(|e| e.to_string())?;
    let seen = Seen { outputs: outputs(&log.lines()), drops: drops(&mut r) };
    finish(&mut r, &text)?;
    Ok(seen)
}

/// Runs several workers until the results are `want`. Without `want`, runs them until all sources have sent their
/// packets and nothing more is seen for a while. Panics if neither ever happens.
fn several_workers(text: &str, workers: usize, sources: usize, want: Option<&Seen>) -> Result<(), String> {
    let (options, log): (Options, Log) = real(workers);
    let mut r = try_router_with(text, options, noise::add_to)?;
    let (shared, running) = (r.shared().clone(), r.running().clone());
    let waited = std::thread::scope(|s| {
        let waiting = s.spawn(|| {
            let start = Instant::now();
            let sent = || {
                let count = |n| running.read(Some(&format!("n{n}")), "count", "");
                (0..sources).all(|n| count(n).is_ok_and(|c| c.trim().parse() == Ok(PACKETS)))
            };
            let (mut before, mut quiet) = (0, 0);
            let done = loop {
                if running.has_ended() || sent() {
                    let lines = log.lines();
                    quiet = if lines.len() == before { quiet + 1 } else { 0 };
                    before = lines.len();
                    let reached = want.map_or(quiet > 3, |w| outputs(&lines) == w.outputs);
                    if reached || running.has_ended() {
                        break Ok(());
                    }
                }
                if start.elapsed() > Duration::from_secs(PATIENCE) {
                    break Err(format!("{workers} workers: the results differ, or a source hangs"));
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            shared.end();
            done
        });
        let run = r.run().map_err(|e| e.to_string());
        waiting.join().unwrap().and(run)
    });
    let got = Seen { outputs: outputs(&log.lines()), drops: drops(&mut r) };
    match want {
        Some(want) if *want != got => {
            let ports = want.outputs.keys().chain(got.outputs.keys());
            let port = ports.into_iter().find(|p| want.outputs.get(*p) != got.outputs.get(*p));
            Err(format!(
                "{workers} workers: {port:?}: {:?} instead of {:?}, drops {:?} instead of {:?}\n{text}",
                port.and_then(|p| got.outputs.get(p)),
                port.and_then(|p| want.outputs.get(p)),
                got.drops,
                want.drops
            ))
        }
        _ => waited.map_err(|e| format!("{e}\n{text}")).and_then(|()| finish(&mut r, text)),
    }
}

/// Returns a compound class with element `e` of a graph between its input and its output. The packets of other outputs
/// are recorded. None unless the element has exactly one input and at least one output, and all of its ports are push.
fn compound(name: &str, graph: &Graph, e: usize, id: usize) -> Option<String> {
    let outputs = graph.outputs(e);
    let pulls = (0..outputs).any(|o| graph.output_kind(e, o) == PortKind::Pull);
    if graph.inputs(e) != 1 || outputs == 0 || pulls || graph.input_kind(e, 0) == PortKind::Pull {
        return None;
    }
    let mut text = format!("elementclass {name} {{\n{}input -> x -> output;\n", excerpt(graph, e, "x"));
    for o in 1..outputs {
        let _ = writeln!(text, "x [{o}] -> Out({});", 10 * id + o);
    }
    text.push_str("}\n");
    Some(text)
}

/// What the comparison of a class found.
#[derive(Debug, PartialEq)]
enum Found {
    /// The results are those of one worker.
    Same,
    /// The results depend on how packets are interleaved. All packets are accounted for.
    Dependent,
    /// The class has no inputs, belongs to the device family, or has an example that does not load.
    Skipped,
}

/// Compares several workers with one. `text` makes a configuration with `sources` sources that send in the given order;
/// its second parameter is the class of the elements that pull.
fn compare(
    sources: usize,
    timed: bool,
    text: impl Fn(Order, &'static str) -> String,
) -> Result<Found, String> {
    let _watchdog = castanet_testkit::Watchdog::arm();
    let mut all = Vec::new();
    for order in ORDERS {
        all.push(one_worker(&text(order, "Drain"))?);
    }
    let independent = all.windows(2).all(|pair| pair[0] == pair[1]) && !timed;
    let want = all.first().filter(|_| independent);
    for workers in [2, 8] {
        several_workers(&text(Order::InTurn, "Unqueue"), workers, sources, want)?;
    }
    Ok(if independent { Found::Same } else { Found::Dependent })
}

/// Returns the graph of a class's example, and the number of the element of this class. None if the example does not
/// load on this machine, or if the class belongs to the device family.
fn loaded(spec: &ClassSpec) -> Option<(Graph, usize)> {
    let example = spec.example().filter(|_| !spec.module.contains("::device::"))?;
    let Ok(Loaded { graph, .. }) = castanet_testkit::load_with(example, noise::add_to) else { return None };
    let e = (0..graph.len()).find(|&e| graph.spec(e).is_some_and(|u| u.name == spec.name))?;
    Some((graph, e))
}

/// The numbers of the packets of each source in a dump with the fields `ip_src ip_id`.
fn numbers(dump: &str) -> BTreeMap<String, Vec<u32>> {
    let mut out: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for line in dump.lines().filter(|l| !l.starts_with('!')) {
        let (source, n) = line.split_once(' ').unwrap();
        out.entry(source.to_string()).or_default().push(n.parse().unwrap());
    }
    out
}

#[test]
fn files_that_several_workers_write_hold_whole_records_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pcap, dump, again) = (path("x.pcap"), path("x.dump"), path("again.dump"));
    let mut text = String::new();
    for s in 0..4 {
        let lines: String = (1..=5000).map(|n| format!("1.0.0.{s} {n}\n")).collect();
        let _ = writeln!(text, "FromIPSummaryDump(DATA \"!data ip_src ip_id\n{lines}\") -> all;");
    }
    let text = format!(
        "all :: Null -> ToDump({pcap}, ENCAP IP) -> ToIPSummaryDump({dump}, FIELDS ip_src ip_id) \
         -> d :: Discard; {text}"
    );
    let (options, _) = real(4);
    let mut r = try_router_with(&text, options, noise::add_to).unwrap();
    let (shared, running) = (r.shared().clone(), r.running().clone());
    let _watchdog = castanet_testkit::Watchdog::arm();
    std::thread::scope(|s| {
        s.spawn(|| {
            while running.read(Some("d"), "count", "").is_ok_and(|n| n.trim() != "20000") {
                std::thread::sleep(Duration::from_millis(1));
            }
            shared.end();
        });
        r.run().unwrap();
    });
    finish(&mut r, &text).unwrap();
    let wanted: BTreeMap<_, _> = (0..4).map(|s| (format!("1.0.0.{s}"), (1..=5000).collect())).collect();
    assert_eq!(numbers(&std::fs::read_to_string(&dump).unwrap()), wanted);
    let (options, _) = simulated(32);
    let back =
        format!("FromDump({pcap}, STOP true) -> ToIPSummaryDump({again}, FIELDS ip_src ip_id) -> Discard;");
    let mut r = try_router_with(&back, options, noise::add_to).unwrap();
    r.run().unwrap();
    finish(&mut r, &back).unwrap();
    assert_eq!(numbers(&std::fs::read_to_string(&again).unwrap()), wanted);
}

/// Returns a random graph: sources, and two chains of elements of random classes. The chains share their last element.
fn random_graph(random: &mut Random, classes: &[&'static ClassSpec]) -> (String, bool) {
    let (mut text, mut timed, mut made) = (String::new(), false, 0);
    while made < 5 {
        let spec = classes[random.below(classes.len() as u64) as usize];
        let Some((graph, e)) = loaded(spec) else { continue };
        let Some(class) = compound(&format!("Stage{made}"), &graph, e, made) else { continue };
        timed |= TIMED.contains(&spec.name);
        let _ = write!(text, "// {}\n{class}", spec.name);
        made += 1;
    }
    // Two chains of two elements each end in the same last element.
    text += "i0 :: Stage0 -> s1 :: Stage1 -> last :: Stage4 -> Out(100);\n\
             i1 :: Stage2 -> s3 :: Stage3 -> last;\n";
    (text, timed)
}

#[test]
fn random_graphs_of_all_classes_do_on_several_workers_what_they_do_on_one() {
    let classes = Registry::new().classes();
    let mut random = Random::new(20, "graphs");
    let (mut bad, mut same, mut dependent) = (Vec::new(), 0, 0);
    let rounds: u64 = std::env::var("ORACLE_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    for n in 0..60 * rounds {
        let found = in_own_folder(|| {
            let (graph, timed) = random_graph(&mut random, &classes);
            let text = |order, _| format!("{graph}{}", sources(2 * SOURCES, 2, order));
            compare(2 * SOURCES, timed, text)
        });
        match found {
            Ok(Found::Same) => same += 1,
            Ok(_) => dependent += 1,
            Err(e) => bad.push(format!("graph {n}: {e}")),
        }
    }
    println!("{same} the same, {dependent} dependent");
    assert!(bad.is_empty(), "{} offenders:\n{}", bad.len(), bad.join("\n"));
    assert!(same > 15 * rounds, "{same} graphs with the same results");
}

#[test]
fn every_class_does_on_several_workers_what_it_does_on_one() {
    let mut bad = Vec::new();
    let (mut same, mut dependent) = (Vec::new(), Vec::new());
    for spec in Registry::new().classes() {
        let found = in_own_folder(|| {
            let Some((graph, e)) = loaded(spec) else { return Ok(Found::Skipped) };
            match graph.inputs(e) * SOURCES {
                0 => Ok(Found::Skipped),
                n => compare(n, TIMED.contains(&spec.name), |order, puller| text(&graph, e, order, puller)),
            }
        });
        match found {
            Ok(Found::Same) => same.push(spec.name),
            Ok(Found::Dependent) => dependent.push(spec.name),
            Ok(Found::Skipped) => {}
            Err(e) => bad.push(format!("{}: {e}", spec.name)),
        }
    }
    println!("{} the same: {same:?}\n{} dependent: {dependent:?}", same.len(), dependent.len());
    assert!(bad.is_empty(), "{} offenders:\n{}", bad.len(), bad.join("\n"));
    assert!(same.len() > 100, "{} classes with the same results: {same:?}", same.len());
}
