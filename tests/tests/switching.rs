// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests switches with a spanning tree as whole configurations under simulated time: no storms, one blocked port per
//! cycle, recovery from cut links, floods of addresses, and false messages.
#![allow(clippy::unwrap_used)]

use castanet_classes::Registry;
use castanet_element::{Classes, Clock, Random};
use castanet_runtime::{Options, Router};
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::sync::Arc;

/// A router and its output.
struct Run {
    router: Router,
    printed: Arc<Mutex<Vec<String>>>,
}

impl Run {
    fn new(text: &str, batch: usize) -> Run {
        Run::on(text, batch, 1)
    }
    /// Runs on this many workers. With more than one worker, time is real instead of simulated.
    fn on(text: &str, batch: usize, workers: usize) -> Run {
        let classes: Arc<dyn Classes> = Arc::new(Registry::new());
        let printed: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = printed.clone();
        let printer = Box::new(move |text: &str| log.lock().push(text.to_string()));
        let mut options = Options { batch, printer, workers, ..Options::default() };
        if workers == 1 {
            options.clock = Clock::simulated(1_000_000_000_000_000_000);
        }
        let router = Router::from_text(text, classes, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        Run { router, printed }
    }
    fn read(&mut self, element: &str, handler: &str) -> String {
        let e = self.router.find(element).unwrap_or_else(|| panic!("no {element}"));
        self.router.read(Some(e), handler, "").unwrap()
    }
    fn number(&mut self, element: &str, handler: &str) -> u64 {
        self.read(element, handler).trim().parse().unwrap()
    }
    fn drops(&self, reason: &str) -> u64 {
        self.router.drops().iter().filter(|((_, r), _)| r.name() == reason).map(|(_, n)| n).sum()
    }
}

const SWITCH: &str = r"
elementclass Wire { input -> Queue(10000) -> Unqueue -> output; }
elementclass Host { $own, $other |
    TimedSource(0.1) -> EtherEncap(0x88b5, $own, $other) -> sent :: Counter -> output;
    input -> Classifier(12/88b5) -> frames :: Counter -> HostEtherFilter($own) -> heard :: Counter -> Discard;
}
";

/// Returns the compound class of a switch with this many ports.
fn switch_class(ports: usize) -> String {
    let mut text =
        format!("elementclass Switch{ports} {{ $address | in, out :: Suppressor; switch :: EtherSwitch;\n");
    text += "tree :: EtherSpanTree($address, in, out, switch, FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6);\n";
    for p in 0..ports {
        let _ = writeln!(
            text,
            "input [{p}] -> k{p} :: Classifier(0/0180c2000000, -) -> [{p}] tree [{p}] -> [{p}] output;"
        );
        let _ = writeln!(
            text,
            "k{p} [1] -> [{p}] in [{p}] -> [{p}] switch [{p}] -> [{p}] out [{p}] -> [{p}] output;"
        );
    }
    text + "}\n"
}

/// Returns the configuration of `n` switches, each with a host at its first port. Each entry of `wires` links
/// two switches, given by their numbers. The element `cut` can cut these links. Host i sends to host i + 1.
/// The router stops after the script.
fn network(n: usize, wires: &[(usize, usize)], script: &str) -> String {
    let mut ports = vec![1; n];
    let mut text = String::new();
    for (w, &(a, b)) in wires.iter().enumerate() {
        let (pa, pb) = (ports[a], ports[b]);
        ports[a] += 1;
        // Both ends may be on the same switch.
        let pb = if a == b { pa + 1 } else { pb };
        ports[b] += 1;
        let (there, back) = (2 * w, 2 * w + 1);
        let _ = writeln!(text, "s{a} [{pa}] -> [{there}] cut [{there}] -> Wire -> [{pb}] s{b};");
        let _ = writeln!(text, "s{b} [{pb}] -> [{back}] cut [{back}] -> Wire -> [{pa}] s{a};");
    }
    let mut head = String::from(SWITCH);
    let mut kinds = ports.clone();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().for_each(|k| head += &switch_class(k));
    head += "cut :: Suppressor;\n";
    for (i, k) in ports.iter().enumerate() {
        let next = (i + 1) % n;
        let _ = writeln!(head, "s{i} :: Switch{k}(02:00:00:00:00:{i:02x});");
        let _ = writeln!(
            text,
            "h{i} :: Host(04:00:00:00:00:{i:02x}, 04:00:00:00:00:{next:02x}) -> [0] s{i} [0] -> h{i};"
        );
    }
    let _ = writeln!(text, "DriverManager({script}, stop);");
    head + &text
}

/// Returns how many ports, over all switches, are in a state.
fn states(run: &mut Run, n: usize, state: &str) -> usize {
    (0..n).map(|i| run.read(&format!("s{i}/tree"), "msgs").matches(&format!(" {state}:")).count()).sum()
}

/// Returns script instructions that reset all counts.
fn reset(n: usize) -> String {
    let each = |i: usize| format!("write h{i}/sent.reset, write h{i}/frames.reset, write h{i}/heard.reset");
    (0..n).map(each).collect::<Vec<_>>().join(", ")
}

#[test]
fn random_networks_deliver_once_and_heal() {
    let mut random = Random::new(4, "switching");
    for round in 0..6 {
        let n = 2 + random.below(3) as usize;
        // A chain, so that all switches are connected, and further links that create cycles.
        let mut wires: Vec<_> = (1..n).map(|i| (random.below(i as u64) as usize, i)).collect();
        for _ in 0..1 + random.below(3) {
            wires.push((random.below(n as u64) as usize, random.below(n as u64) as usize));
        }
        let cut = random.below(wires.len() as u64) as usize;
        let connected = {
            let mut group: Vec<usize> = (0..n).collect();
            for (w, &(a, b)) in wires.iter().enumerate() {
                let (from, to) = (group[a], group[b]);
                if w != cut {
                    group.iter_mut().for_each(|g| *g = if *g == from { to } else { *g });
                }
            }
            group.iter().all(|g| *g == group[0])
        };
        for cuts in [false, true] {
            let done =
                format!("write cut.active{} false, write cut.active{} false, wait 30", 2 * cut, 2 * cut + 1);
            let script =
                format!("wait 20, {}, {}, wait 20", if cuts { done } else { "wait 1".into() }, reset(n));
            let text = network(n, &wires, &script);
            let mut run = Run::new(&text, [1, 3, 32][round % 3]);
            run.router.run().unwrap();
            let what = format!("round {round}: {n} switches, wires {wires:?}, cut {cuts} {cut}");
            let blocked = states(&mut run, n, "blocking");
            if cuts && !connected {
                assert!(run.drops("push-loop") == 0, "{what}");
                continue;
            }
            let left = if cuts { wires.len() - 1 } else { wires.len() };
            // Each link beyond a spanning tree has one blocked end.
            assert_eq!(blocked, left + 1 - n, "{what}");
            for i in 0..n {
                let (sent, heard) = (
                    run.number(&format!("h{i}/sent"), "count"),
                    run.number(&format!("h{}/heard", (i + 1) % n), "count"),
                );
                assert!(
                    sent >= 199 && heard.abs_diff(sent) <= 1,
                    "{what}: host {i} sent {sent}, heard {heard}"
                );
            }
            assert_eq!(run.drops("push-loop") + run.drops("queue-full"), 0, "{what}");
        }
    }
}

#[test]
fn without_the_tree_there_is_a_storm() {
    // A control experiment: the same cycle without a spanning tree. It shows that without the tree the other
    // tests would fail.
    let text = network(2, &[(0, 1), (0, 1)], "wait 1").replace(
        "tree :: EtherSpanTree($address, in, out, switch, FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6);",
        "tree :: Suppressor;",
    );
    let text = text
        .replace("$other) -> sent", "ff:ff:ff:ff:ff:ff) -> sent")
        .replace("Queue(10000) -> Unqueue", "Queue(10) -> RatedUnqueue(1000)");
    let mut run = Run::new(&text, 1);
    run.router.run().unwrap();
    let sent = run.number("h0/sent", "count") + run.number("h1/sent", "count");
    let frames = run.number("h0/frames", "count") + run.number("h1/frames", "count");
    assert!(sent <= 20 && frames > 500, "{sent} {frames}");
}

#[test]
fn a_flood_of_addresses_is_accounted_for() {
    // Each frame of the list has a different source address.
    let mut data = String::new();
    for i in 0..4000u32 {
        let _ = write!(
            data,
            "\\<020000000009 06{:010x} 0800> ",
            u64::from(i).wrapping_mul(0x9e37_79b9) & 0xff_ffff_ffff
        );
    }
    let text = format!(
        "s :: EtherSwitch; MemSource({data}, LIMIT 40000) -> flood :: Counter -> [0] s;
         TimedSource(0.01, DATA \\<ffffffffffff 020000000009 0800>, LIMIT 1) -> [1] s;
         s [0] -> Discard; s [1] -> heard :: Counter -> Discard; Idle -> [2] s [2] -> spied :: Counter -> Discard;
         DriverManager(wait 1, stop);"
    );
    let mut run = Run::new(&text, 32);
    run.router.run().unwrap();
    assert_eq!(run.number("flood", "count"), 40_000);
    let lines = run.read("s", "table").lines().count();
    assert!((2000..=16384).contains(&lines), "{lines}");
    // All frames for the station arrive, whether forwarded or flooded.
    assert_eq!(run.number("heard", "count"), 40_000);
    let discarded = run.drops("discarded");
    assert_eq!(run.router.drops().values().sum::<u64>(), discarded);
    assert_eq!(
        discarded,
        run.number("heard", "count") + run.number("spied", "count") + 1,
        "one broadcast came back"
    );
}

#[test]
fn a_change_lets_the_switch_forget_sooner() {
    // The ports start forwarding after 8 s, and the topology change lasts 10 s more. During the topology change
    // the switch removes a station from its table when the station has sent nothing for the forward delay of
    // 4 s. Station 1 sends every 10 s. So a frame to station 1 at 15 s is flooded, and a frame at 37.5 s is not.
    let text = format!(
        "{SWITCH}{}
        s0 :: Switch3(02:00:00:00:00:01);
        TimedSource(10, DATA \\<040000000002 040000000001 88b5>) -> [0] s0 [0] -> Discard;
        TimedSource(7.5, DATA \\<040000000001 040000000002 88b5>) -> [1] s0 [1] -> Discard;
        Idle -> [2] s0 [2] -> Classifier(0/040000000001 12/88b5) -> spied :: Counter -> Discard;
        DriverManager(wait UNTIL, stop);",
        switch_class(3)
    );
    for (until, spied) in [(14, 0), (16, 1), (70, 1)] {
        let mut run = Run::new(&text.replace("UNTIL", &until.to_string()), 32);
        run.router.run().unwrap();
        assert_eq!(run.number("spied", "count"), spied, "after {until} seconds");
    }
}

#[test]
fn messages_that_lie_open_nothing_early() {
    // A host that claims to be the root, with all timers 0 or far too long.
    for times in ["0000 0001 0000 0000", "0000 ffff ffff ffff", "1300 1400 0200 0000"] {
        let lie = format!(
            "0180c2000000 040000000000 0026 424203 00000000 00 0000000000000000 00000000 0000000000000000 8001 {times}"
        );
        let text = format!(
            "{SWITCH}{}
            s0 :: Switch2(02:00:00:00:00:01);
            TimedSource(0.01, DATA \\<{lie}>) -> [0] s0 [0] -> Discard;
            Idle -> [1] s0 [1] -> sent :: Counter -> Discard;
            DriverManager(wait 1.9, stop);",
            switch_class(2)
        );
        let mut run = Run::new(&text, 32);
        run.router.run().unwrap();
        assert_eq!(states(&mut run, 1, "listening"), 2, "{times}");
        // In 1.9 s, 190 messages are received, but at most one per second is sent.
        assert!(run.number("sent", "count") <= 2, "{times}");
        let seen = run.drops("bad-bpdu") + run.drops("consumed");
        assert!((185..=190).contains(&seen), "{times}: {seen}");
    }
}

#[test]
fn workers_share_the_table_and_the_tree() {
    // Each of the two ports belongs to its own worker. The switch and the tree see the frames of both ports.
    let bpdu = r"\<0180c2000000 040000000000 0026 424203 00000000 00 0000040000000001 00000000 0000040000000001 8001 0000 1400 0200 0f00>";
    let text = format!(
        r"in, out :: Suppressor; switch, plain :: EtherSwitch;
        tree :: EtherSpanTree(02:00:00:00:00:01, in, out, switch);
        Idle -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> Discard;
        Idle -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> Discard;
        a :: InfiniteSource(\<020000000009 040000000001 0800>, LIMIT 20000, STOP true) -> [0] plain [0] -> toa :: Counter -> Discard;
        b :: InfiniteSource(\<040000000001 020000000009 0800>, LIMIT 20000, STOP true) -> [1] plain [1] -> tob :: Counter -> Discard;
        c :: InfiniteSource({bpdu}, LIMIT 500, STOP true) -> [0] tree [0] -> Discard;
        d :: InfiniteSource({bpdu}, LIMIT 500, STOP true) -> [1] tree [1] -> Discard;
        StaticThreadSched(a 0, b 1, c 0, d 1);
        DriverManager(pause 4, wait 0.1, stop);"
    );
    let mut run = Run::on(&text, 32, 2);
    run.router.run().unwrap();
    assert_eq!(run.read("plain", "table"), "02-00-00-00-00-09 1\n04-00-00-00-00-01 0\n");
    assert_eq!((run.number("toa", "count"), run.number("tob", "count")), (20_000, 20_000));
    assert_eq!((run.drops("no-port"), run.drops("consumed")), (0, 1000));
    assert_eq!(run.read("tree", "msgs").matches("alternate blocking").count(), 1);
}

#[test]
fn tagged_frames_in_and_out() {
    let text = r"
        TimedSource(0.01, DATA \<020000000002 020000000001 8100 a007 0800 45000014>, LIMIT 3)
            -> VLANDecap -> plain :: Print(plain, 40) -> VLANEncap(ANNO) -> Print(tagged, 40) -> Discard;
        DriverManager(wait 1, stop);";
    let mut run = Run::new(text, 32);
    run.router.run().unwrap();
    let lines = run.printed.lock().clone();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].contains("02000000 00020200 00000001 08004500 0014"), "{lines:?}");
    assert!(lines[1].contains("02000000 00020200 00000001 8100a007 08004500 0014"), "{lines:?}");
}

#[test]
fn ports_must_fit_together() {
    let text = "in, out :: Suppressor; switch :: EtherSwitch; tree :: EtherSpanTree(2:0:0:0:0:1, in, out, switch);
        Idle -> [0] in [0] -> [0] switch [0] -> [0] out -> Discard; Idle -> [1] switch [1] -> [1] out [1] -> Discard;
        Idle -> [0] tree [0] -> Discard; Idle -> [1] tree [1] -> Discard;";
    let failed = std::panic::catch_unwind(|| Run::new(text, 32)).err().unwrap();
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(said.contains("INPUT_SUPPRESSOR: has 1 ports, but 2 are wanted"), "{said}");
}
