// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests schedulers and switches in whole routers. Trees of schedulers and switches behave as in the naive interpreter,
//! tasks that wait for packets never miss them, and the configurations of conf/ share links as their papers describe.
//! `CASTANET_BLESS=1` redraws the pictures.
#![allow(clippy::unwrap_used, missing_docs)]
use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{Clock, action};
use castanet_runtime::Options;
use castanet_runtime::naive::Naive;
use castanet_runtime::swap::Loaded;
use castanet_tests::binary::{castanet, root};
use parking_lot::Mutex;
use std::process::Command;
use std::sync::Arc;

const BATCHES: [usize; 5] = [1, 2, 3, 32, 256];

/// Records packets: an id, first byte, length and paint. It declares no outside effect, so that the run loop does not
/// split batches.
#[derive(Class)]
#[class(name = "Seen", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
struct Seen {
    args: SeenArgs,
}

#[derive(Args)]
struct SeenArgs {
    /// The id at the start of each record.
    id: u32,
}

impl Action for Seen {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let first = p.data().first().map_or('-', |&b| char::from(b));
        cx.message(&format!("{} {first} {} {}", self.args.id, p.len(), p.paint()));
        Verdict::Next
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn options(&self, batch: usize) -> Options {
        let to = self.clone();
        let printer = Box::new(move |t: &str| to.0.lock().push(t.to_string()));
        Options { batch, printer, clock: Clock::simulated(1_000_000_000_000_000_000), ..Options::default() }
    }
    /// Returns the records of each Seen element, in order.
    fn by_place(&self) -> Vec<Vec<String>> {
        let mut out = vec![Vec::new(); 100];
        for line in self.0.lock().iter() {
            // Other messages report queue overflows.
            let Some(place) = line.split(' ').next().and_then(|w| w.parse::<usize>().ok()) else { continue };
            out[place].push(line.clone());
        }
        out
    }
}

fn load(text: &str) -> Loaded {
    let mut registry = Registry::new();
    registry.add(action::<Seen>());
    Loaded::from_text("config", text.as_bytes(), &[], Arc::new(registry))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .0
}

fn naive(text: &str) -> Vec<Vec<String>> {
    let Loaded { graph, classes, sources } = load(text);
    let log = Log::default();
    let mut router =
        Naive::new(graph, classes, &sources, log.options(1)).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    assert!(router.run_until_idle(300_000).unwrap(), "no end:\n{text}");
    log.by_place()
}

fn fast(text: &str, batch: usize) -> Vec<Vec<String>> {
    let log = Log::default();
    let (mut router, _) = load(text).build(log.options(batch)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    router.run().unwrap();
    assert_eq!(router.waiting(), 0, "{text}");
    log.by_place()
}

/// A random tree of schedulers over queues, followed by random switches.
struct Tree {
    random: Random,
    text: String,
    names: usize,
    /// Whether packets are pulled while they arrive. Otherwise they are pulled after all have arrived.
    live: bool,
    /// The number of packets that all sources send.
    sent: u64,
    /// Whether packets can remain at a switch that does not select their input.
    loses: bool,
    places: u32,
}

impl Tree {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }
    fn say(&mut self, text: &str) {
        self.text += text;
        self.text += "\n";
    }
    fn place(&mut self) -> u32 {
        self.places += 1;
        self.places
    }

    /// Adds a source with a queue. Returns the name of the element to pull from.
    fn leaf(&mut self) -> String {
        let queue = self.name("q");
        let (limit, length, burst) = (self.below(60), 1 + self.below(1500), 1 + self.below(5));
        let letter = char::from(b'a' + self.below(26) as u8);
        self.sent += limit;
        let source = match self.below(3) {
            0 => format!("RatedSource(RATE {}, ", [7, 50, 100][self.below(3) as usize]),
            _ => format!("InfiniteSource(TIMESTAMP false, BURST {burst}, "),
        };
        // No packets may be lost. A queue for fewer than 10 packets needs a source that waits while the queue is
        // full: an InfiniteSource with bursts of one packet. A queue for 100 holds all packets of any source.
        let capacity =
            if self.live && source.starts_with('I') && burst == 1 { 1 + self.below(9) } else { 100 };
        self.say(&format!(
            "{source}DATA {letter}, LENGTH {length}, LIMIT {limit}) -> {queue} :: Queue({capacity});"
        ));
        queue
    }

    fn pullable(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let n = 1 + self.below(4);
        let inputs: Vec<_> = (0..n)
            .map(|_| {
                let depth = self.below(depth.into()) as u32;
                self.pullable(depth)
            })
            .collect();
        let name = self.name("s");
        let kinds = [
            "PrioSched",
            "RoundRobinSched",
            "StrideSched",
            "DRRSched",
            "TimeSortedSched",
            "PullSwitch",
            "StaticPullSwitch",
        ];
        let kind = self.pick(&kinds);
        let args = match kind {
            "StrideSched" => (0..n).map(|_| (1 + self.below(9)).to_string()).collect::<Vec<_>>().join(", "),
            "DRRSched" => self.pick(&["1", "64", "500", "4000"]).to_string(),
            "TimeSortedSched" => self.pick(&["", "BUFFER 1"]).to_string(),
            "PullSwitch" | "StaticPullSwitch" => {
                self.loses = true;
                (self.below(n + 2) as i64 - 1).to_string()
            }
            _ => String::new(),
        };
        self.say(&format!("{name} :: {kind}({args});"));
        for (i, input) in inputs.iter().enumerate() {
            self.say(&format!("{input} -> [{i}] {name};"));
        }
        match self.below(4) {
            0 => {
                let (tee, place) = (self.name("t"), self.place());
                self.say(&format!("{name} -> {tee} :: PullTee; {tee} [1] -> Seen({place}) -> Discard;"));
                tee
            }
            1 => {
                let (bypass, other) = (self.name("b"), self.leaf());
                let active = self.below(2) == 1;
                self.loses = true;
                self.say(&format!("{name} -> {bypass} :: Bypass({active}); {other} -> [1] {bypass};"));
                bypass
            }
            _ => name,
        }
    }

    fn random(seed: u64, live: bool) -> Tree {
        let random = Random::new(seed, "tree");
        let mut tree = Tree { random, live, text: String::new(), names: 0, sent: 0, loses: false, places: 1 };
        let depth = tree.below(4) as u32;
        let top = tree.pullable(depth);
        let (burst, outputs) = (1 + tree.below(40), 1 + tree.below(5));
        let switch = tree.pick(&[
            "RoundRobinSwitch",
            "RandomSwitch",
            "HashSwitch",
            "StrideSwitch",
            "PaintSwitch",
            "Bypass",
        ]);
        let outputs = if switch == "Bypass" { 2 } else { outputs };
        let args = match switch {
            "HashSwitch" => "0, 1".into(),
            "StrideSwitch" => {
                (0..outputs).map(|_| (1 + tree.below(9)).to_string()).collect::<Vec<_>>().join(", ")
            }
            "Bypass" => (tree.below(2) == 1).to_string(),
            _ => String::new(),
        };
        let colour = tree.pick(&["0", "1", "2", "255"]);
        let puller = tree.pick(&["Unqueue(BURST ", "RatedUnqueue(RATE 2000, BURST_SIZE "]);
        tree.say(&format!(
            "{top} -> u :: {puller}{burst}) -> Seen(1) -> Paint({colour}) -> sw :: {switch}({args});"
        ));
        for output in 0..outputs {
            let place = tree.place();
            let end = if switch == "Bypass" && output == 1 { "[1] sw" } else { "Discard" };
            tree.say(&format!("sw [{output}] -> Seen({place}) -> {end};"));
        }
        tree.say(match live {
            true => "Script(wait 20, stop);",
            false => "DriverManager(write u.active false, wait 15, write u.active true, wait 5, stop);",
        });
        tree
    }
}

#[test]
fn trees_of_schedulers_match_single_pulls() {
    let mut packets = 0;
    for seed in 0..100 {
        let tree = Tree::random(seed, false);
        let want = naive(&tree.text);
        for batch in BATCHES {
            let got = fast(&tree.text, batch);
            for (place, (want, got)) in want.iter().zip(&got).enumerate() {
                assert_eq!(want, got, "seed {seed}, batch {batch}, Seen({place}):\n{}", tree.text);
            }
        }
        packets += want[1].len();
    }
    assert!(packets > 5000, "{packets}");
}

#[test]
fn sleeping_tasks_wake_and_no_packet_stays_queued() {
    let mut packets = 0;
    for seed in 1000..1150 {
        let tree = Tree::random(seed, true);
        for batch in BATCHES {
            let arrived = fast(&tree.text, batch)[1].len() as u64;
            let all = arrived == tree.sent || tree.loses && arrived < tree.sent;
            assert!(all, "seed {seed}, batch {batch}: {arrived} of {}:\n{}", tree.sent, tree.text);
            packets += if tree.loses { 0 } else { arrived };
        }
    }
    assert!(packets > 5000, "{packets}");
}

#[test]
fn a_switch_that_is_off_lets_time_pass_and_turning_it_on_wakes() {
    let text = "RatedSource(DATA a, RATE 100) -> Queue -> [0] s :: PullSwitch(-1) -> [0] b :: Bypass -> Unqueue -> Seen(1) -> Discard;
        RatedSource(DATA b, RATE 50) -> Queue -> [1] s;
        RatedSource(DATA c, RATE 10) -> Queue -> [1] b;
        Script(wait 1, write s.switch 1, wait 1, write b.active true, wait 1, write b.active false, write s.switch 0, wait 1,
            write s.switch 9, wait 1, stop);";
    let want = naive(text);
    let of = |letter: &str| want[1].iter().filter(|l| l.contains(letter)).count();
    // Each source sends two packets at once at the start, and then keeps its rate. The counts cover the first 4 s for
    // a, 2 s for b and 3 s for c. Later packets remain queued.
    assert_eq!(["a", "b", "c"].map(of), [401, 101, 31], "{:?}", want[1]);
    for batch in BATCHES {
        assert_eq!(fast(text, batch), want);
    }
}

#[test]
fn a_pull_detour_that_comes_back_cannot_be_switched_on() {
    let text = "InfiniteSource(DATA a, LIMIT 9) -> Queue -> b :: Bypass -> Unqueue -> Seen(1) -> Discard; b [1] -> Seen(2) -> [1] b;
        DriverManager(wait 1, write b.active true, wait 1, stop);";
    for batch in BATCHES {
        let seen = fast(text, batch);
        assert_eq!((seen[1].len(), seen[2].len()), (9, 0));
    }
    let text = text.replace("Bypass", "Bypass(true)");
    let errors = load(&text).build(Log::default().options(1)).err().unwrap().diagnostics;
    assert!(errors[0].message.contains("cannot lead from output 1 back to input 1"), "{errors:?}");
}

#[test]
fn a_push_detour_is_switched_while_packets_flow() {
    let text = "RatedSource(DATA a, RATE 100) -> b :: Bypass -> Seen(1) -> Discard; b [1] -> Paint(7) -> Seen(2) -> [1] b;
        DriverManager(wait 1, write b.active true, wait 1, write b.active false, wait 1, stop);";
    let want = naive(text);
    // The source sends two packets at once at the start, and then 100 per second, for 3 s in all. The packets sent
    // between 1 s and 2 s take the detour.
    assert_eq!((want[1].len(), want[2].len()), (301, 100));
    assert_eq!(want[1].iter().filter(|l| l.ends_with(" 7")).count(), 100);
    for batch in BATCHES {
        assert_eq!(fast(text, batch), want);
    }
}

/// Runs a configuration in conf/ with `castanet run`. Returns its output, which must be the same at every
/// batch size.
fn run(name: &str) -> String {
    let mut all = BATCHES.map(|batch| {
        let mut run = Command::new(castanet());
        run.args(["run", "-q", "--simtime", "--batch", &batch.to_string(), &format!("conf/{name}.click")]);
        let out = run.current_dir(root()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    });
    all.sort();
    assert_eq!(all[0], all[4], "{name} depends on the batch size");
    all[0].clone()
}

/// Returns the numbers of each line after its colon.
fn numbers(printed: &str) -> Vec<Vec<f64>> {
    let line = |l: &str| l.split(':').nth(1).unwrap().split(' ').filter_map(|w| w.parse().ok()).collect();
    printed.lines().map(line).collect()
}

/// TOCS 2000, Figure 9: strict priority over round robin over stride scheduling.
#[test]
fn composed_schedulers_share_a_link_exactly() {
    let lines = numbers(&run("schedulers"));
    assert_eq!(lines.len(), 3);
    for (line, customers) in lines.iter().zip([[3.0, 2.0, 1.0], [0.0, 2.0, 1.0], [3.0, 2.0, 1.0]]) {
        let (link, control) = (1000.0, 280.0);
        // Strict priority: all packets sent. Round robin: half of the rest. Stride: in proportion to tickets
        // among active senders.
        let half = (link - control) / 2.0;
        let tickets: f64 = customers.iter().sum();
        let want: Vec<f64> =
            [control, half].into_iter().chain(customers.map(|t| half * t / tickets)).collect();
        assert_eq!(*line, want);
    }
}

/// TOCS 2000, Figure 10: stochastic fair queueing as a virtual queue.
#[test]
fn a_fair_queue_protects_flows_from_a_greedy_one() {
    let lines = numbers(&run("sfq"));
    let [plain, fair] = &lines[..] else { panic!("{lines:?}") };
    let link = 95.0 * 60.0;
    for line in [plain, fair] {
        assert_eq!((line.len(), line.iter().sum::<f64>()), (6, link));
    }
    assert!(plain[0] > 0.9 * link, "without it the greedy flow has the link: {plain:?}");
    let small = 5.0 * 60.0;
    assert_eq!(fair[5], small, "a flow below its share loses nothing");
    let share = (link - small) / 5.0;
    for flow in &fair[..5] {
        assert!((flow / share - 1.0).abs() <= 0.05, "{flow} where {share} is fair");
    }
}

/// SOSP 1999, section 4.6: a route table shared by several elements.
#[test]
fn all_users_of_a_route_table_see_an_update() {
    let printed = run("shared-route-table");
    // The columns count the packets to the west, to the east, refused from the west, and refused from the east.
    // Each row counts ten seconds, in which each of four sources sends 100 packets per second.
    assert_eq!(
        numbers(&printed),
        [[1000.0, 2000.0, 0.0, 1000.0], [0.0, 2000.0, 1000.0, 1000.0]],
        "{printed}"
    );
    // The table is not copied: one element has it, and an update is a single write.
    let text = std::fs::read_to_string(root().join("conf/shared-route-table.click")).unwrap();
    assert_eq!((text.matches(":: RadixIPLookup").count(), text.matches("write table.").count()), (1, 1));
}

#[test]
fn pictures_show_their_configurations() {
    for name in ["schedulers", "sfq", "shared-route-table"] {
        let mut draw = Command::new(castanet());
        draw.args(["graph", &format!("conf/{name}.click")]).current_dir(root());
        let out = draw.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let file = root().join(format!("docs/{name}.svg"));
        if std::env::var_os("CASTANET_BLESS").is_some() {
            std::fs::write(&file, out.stdout).unwrap();
        } else {
            let same = std::fs::read(&file).is_ok_and(|kept| kept == out.stdout);
            assert!(
                same,
                "docs/{name}.svg is out of date: castanet graph conf/{name}.click -o docs/{name}.svg"
            );
        }
    }
}
