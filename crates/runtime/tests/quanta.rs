// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that nobody can tell several turns at once from turns one after the other: random routers give the same packets
//! in the same order at every place, and the same counts, as the naive interpreter.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{Clock, action};
use castanet_runtime::naive::Naive;
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Given, Options, Router};
use castanet_testkit::Log;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Records packets. It declares no outside effect, so that its packets may move as batches.
#[derive(Class)]
#[class(name = "Record", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
#[class(depends = order)]
struct Record {
    args: RecordArgs,
}

#[derive(Args)]
struct RecordArgs {
    /// The place, which begins each record.
    place: u32,
}

impl Action for Record {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.message(&format!("at {} {}", self.args.place, String::from_utf8_lossy(p.data())));
        Verdict::Next
    }
}

fn options(batch: usize, optimize: bool) -> (Options, Log) {
    let log = Log::default();
    let clock = Clock::simulated(castanet_testkit::START);
    let given = if optimize { castanet_testkit::compilers() } else { Given::default() };
    (Options { batch, optimize, given, printer: log.printer(), clock, ..Options::default() }, log)
}

fn load(text: &str) -> Loaded {
    let mut registry = Registry::new();
    registry.add(action::<Record>());
    Loaded::from_text("config", text.as_bytes(), &[], Arc::new(registry))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .0
}

/// What can be seen of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// The records of each place, in order.
    records: BTreeMap<String, Vec<String>>,
    /// The values of handlers.
    values: Vec<(String, String)>,
}

fn by_place(log: &Log) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in log.lines() {
        let Some((place, packet)) = line.strip_prefix("at ").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        out.entry(place.to_string()).or_default().push(packet.to_string());
    }
    out
}

/// The handlers whose values are compared, by the first letters of the element's name.
const HANDLERS: [(&str, &[&str]); 4] = [
    ("queue", &["length", "highwater_length", "drops"]),
    ("counter", &["count", "byte_count"]),
    ("unqueue", &["count"]),
    ("source", &["count"]),
];

fn handlers(names: &[String]) -> impl Iterator<Item = (&str, &str)> {
    names.iter().flat_map(|n| {
        let of = HANDLERS.iter().find(|h| n.starts_with(h.0)).map_or(&[][..], |h| h.1);
        of.iter().map(move |&h| (n.as_str(), h))
    })
}

fn naive(text: &str, names: &[String]) -> Seen {
    let Loaded { graph, classes, sources } = load(text);
    let (options, log) = options(1, true);
    let mut r = Naive::new(graph, classes, &sources, options).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    assert!(r.run_until_idle(300_000).unwrap(), "no end:\n{text}");
    let values =
        handlers(names).map(|(e, h)| (format!("{e}.{h}"), r.read(r.find(e).unwrap(), h).unwrap())).collect();
    Seen { records: by_place(&log), values }
}

fn fast(text: &str, names: &[String], batch: usize, optimize: bool, profile: bool) -> (Seen, u64) {
    let (options, log) = options(batch, optimize);
    let mut r: Router = load(text).build(options).unwrap_or_else(|e| panic!("{e}\n{text}")).0;
    if profile {
        r.running().begin_profile();
    }
    r.run().unwrap();
    assert_eq!(r.waiting(), 0, "{text}");
    r.ledger().check();
    let read = |(e, h): (&str, &str)| {
        let element = r.find(e);
        (format!("{e}.{h}"), r.read(element, h, "").unwrap())
    };
    let values = handlers(names).map(read).collect();
    (Seen { records: by_place(&log), values }, r.quanta())
}

/// A random router of sources, shared elements, queues, and tasks that pull.
struct Generator {
    random: Random,
    text: String,
    names: Vec<String>,
    places: u32,
}

impl Generator {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }
    fn name(&mut self, kind: &str) -> String {
        let name = format!("{kind}{}", self.names.len());
        self.names.push(name.clone());
        name
    }
    fn say(&mut self, text: &str) {
        self.text += text;
        self.text += ";\n";
    }
    /// Some elements that a path crosses: they count, record, drop or change packets.
    fn path(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..self.below(3) {
            match self.below(6) {
                0 => out += " -> Null",
                1 => {
                    let name = self.name("counter");
                    let _ = write!(out, " -> {name} :: Counter");
                }
                2 => {
                    self.places += 1;
                    let _ = write!(out, " -> Record({})", self.places);
                }
                3 => out += " -> RandomSample(0.8)",
                4 => out += " -> Paint(2)",
                _ => {
                    let _ = write!(out, " -> SetAnnoByte({}, 3)", self.random.below(20));
                }
            }
        }
        out
    }

    fn random(seed: u64) -> Generator {
        let mut g = Generator {
            random: Random::new(seed, "quanta"),
            text: String::new(),
            names: Vec::new(),
            places: 0,
        };
        // Some routers stop when a source has sent its packets, whatever is in the queues then.
        let stop = g.below(3) == 0;
        // Where packets that were pulled may meet.
        let sink = if g.below(2) == 0 {
            g.say("Idle -> sink :: Record(1000) -> Discard");
            true
        } else {
            false
        };
        let queues: Vec<String> = (0..1 + g.below(3))
            .map(|_| {
                let (queue, unqueue) = (g.name("queue"), g.name("unqueue"));
                let capacity = [1000, 1000, 200, 40, 3][g.below(5) as usize];
                let burst = if g.below(12) == 0 { 1 + g.below(5) } else { 1 };
                // Tasks that pull from a SimpleQueue never sleep, so the router never becomes idle.
                let class = ["Queue", "NotifierQueue", "SimpleQueue"][g.below(if stop { 3 } else { 2 }) as usize];
                let (path, place) = (g.path(), 1 + g.places);
                g.places = place;
                let to = if sink && g.below(2) == 0 { "sink" } else { "Discard" };
                g.say(&format!("{queue} :: {class}({capacity}) -> {unqueue} :: Unqueue({burst}){path} -> Record({place}) -> {to}"));
                queue
            })
            .collect();
        let mut shared: Vec<String> = Vec::new();
        for _ in 0..g.below(4) {
            let name = g.shared(&queues, &shared);
            shared.push(name);
        }
        for s in 0..1 + g.below(4) {
            g.source(s, stop, &queues, &shared);
        }
        if g.below(10) == 0 {
            let queue = &queues[0];
            g.say(&format!("RatedSource(RATE 1000000, LIMIT 50, DATA zz) -> {queue}"));
        }
        for to in shared.iter().chain(&queues) {
            g.say(&format!("Idle -> {to}"));
        }
        if !stop {
            g.say("DriverManager(wait 1s, stop)");
        }
        g
    }

    /// Adds elements that several sources may reach. Returns the name of the first one.
    fn shared(&mut self, queues: &[String], others: &[String]) -> String {
        let (name, path) = (self.name("shared"), self.path());
        self.places += 1;
        let place = self.places;
        let class = ["RoundRobinSwitch", "RandomSwitch", "Tee", "HashSwitch(0, 2)"][self.below(4) as usize];
        let switch = self.name("switch");
        self.say(&format!("{name} :: Null{path} -> Record({place}) -> {switch} :: {class}"));
        for port in 0..1 + self.below(3) {
            let path = self.path();
            let to = match self.below(6) {
                0 => "Discard".to_string(),
                1 | 2 if !others.is_empty() => {
                    others[self.random.below(others.len() as u64) as usize].clone()
                }
                _ => queues[self.random.below(queues.len() as u64) as usize].clone(),
            };
            self.say(&format!("{switch} [{port}]{path} -> {to}"));
        }
        name
    }

    fn source(&mut self, number: u64, stop: bool, queues: &[String], shared: &[String]) {
        let name = self.name("source");
        let mut frames = String::new();
        for i in 0..1 + self.below(40) {
            let letter = char::from(b'a' + self.below(4) as u8);
            let _ = write!(frames, "\"{letter}{number}.{i}\" ");
        }
        let (limit, random) = (self.below(400), self.below(2) == 0);
        match self.below(4) {
            0 => self.say(&format!(
                "{name} :: InfiniteSource(a{number}, LIMIT {limit}, TIMESTAMP false, STOP {stop})"
            )),
            _ => self.say(&format!(
                "{name} :: MemSource({frames}, LIMIT {limit}, BURST 1, RANDOM {random}, STOP {stop})"
            )),
        }
        let path = self.path();
        let kinds = self.name("kinds");
        self.say(&format!("{name}{path} -> {kinds} :: Classifier(0/61, 0/62, 0/63, -)"));
        for port in 0..4 {
            let path = self.path();
            let to = match self.below(8) {
                0 => "Discard".to_string(),
                1..=3 if !shared.is_empty() => {
                    shared[self.random.below(shared.len() as u64) as usize].clone()
                }
                _ => queues[self.random.below(queues.len() as u64) as usize].clone(),
            };
            self.say(&format!("{kinds} [{port}]{path} -> {to}"));
        }
    }
}

#[test]
fn nobody_can_tell_quanta_from_turns() {
    let rounds: u64 = std::env::var("ORACLE_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    let (mut with, mut records) = (0, 0);
    for seed in 0..150 * rounds {
        let Generator { text, names, .. } = Generator::random(seed);
        let want = naive(&text, &names);
        records += want.records.values().map(Vec::len).sum::<usize>();
        for batch in [32, 256, 7] {
            let (got, quanta) = fast(&text, &names, batch, true, batch == 256);
            with += u64::from(quanta > 0);
            for (place, packets) in &want.records {
                let got = got.records.get(place).map_or(&[][..], Vec::as_slice);
                let at = (0..packets.len().max(got.len())).find(|&i| packets.get(i) != got.get(i));
                if let Some(i) = at {
                    let near = i.saturating_sub(3)..;
                    let some = |p: &[String]| {
                        p.get(near.clone()).map(|p| p.iter().take(12).cloned().collect::<Vec<_>>())
                    };
                    panic!(
                        "seed {seed}, batch {batch}, place {place}, packet {i}:\n{:?}\n{:?}\n{text}",
                        some(packets),
                        some(got)
                    );
                }
            }
            assert_eq!(got.values, want.values, "seed {seed}, batch {batch}\n{text}");
            assert_eq!(got.records.len(), want.records.len());
        }
    }
    assert!(with > 200 * rounds, "only {with} runs had quanta");
    assert!(records > 20_000, "only {records} records");
}
