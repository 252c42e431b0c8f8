// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dropping policies in whole routers: RED follows its formula in every position, the other policies hold
//! queues at their target, and the configurations of conf/ behave as in their papers. `CASTANET_BLESS=1`
//! redraws the pictures.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const BATCHES: [u32; 4] = [1, 3, 32, 256];

/// Runs a configuration in simulated time. Returns its output.
fn run(configuration: &[&str], batch: u32) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let mut c = Command::new(BUILT.get_or_init(castanet));
    c.args(["run", "-q", "--simtime", "--batch", &batch.to_string()]).args(configuration);
    let out = c.current_dir(root()).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{configuration:?}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Runs a configuration at several batch sizes, which must give the same output.
fn run_alike(configuration: &[&str], batches: &[u32]) -> String {
    let mut all = batches.iter().map(|&b| run(configuration, b));
    let first = all.next().unwrap();
    all.for_each(|other| assert_eq!(other, first, "{configuration:?}"));
    first
}

/// Returns the numbers in a line.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|w| w.trim_end_matches(',').parse().ok()).collect()
}

/// The arguments of a gentle RED.
#[derive(Clone, Copy)]
struct Red {
    min: f64,
    max: f64,
    max_p: f64,
}

impl Red {
    /// Returns the drop probability before drops are spread evenly (Floyd and Jacobson 1993, section 4).
    fn formula(self, average: f64) -> f64 {
        let Red { min, max, max_p } = self;
        match average {
            a if a <= min => 0.0,
            a if a <= max => max_p * (a - min) / (max - min),
            a if a <= 2.0 * max => max_p + (1.0 - max_p) * (a - max) / max,
            _ => 1.0,
        }
    }
    /// Returns the mean and variance of the distance between dropped packets at an average queue length:
    /// every distance up to 1/p has probability p (section 7, method 2).
    fn distance(self, average: f64) -> (f64, f64) {
        let p = self.formula(average);
        let whole = (1.0 / p).floor() as u32;
        let moment = |power| {
            let even: f64 = (1..=whole).map(|n| p * f64::from(n).powi(power)).sum();
            even + (1.0 - p * f64::from(whole)) * f64::from(whole + 1).powi(power)
        };
        let mean = moment(1);
        (mean, moment(2) - mean * mean)
    }
    /// Returns the share of packets dropped at an average queue length.
    fn share(self, average: f64) -> f64 {
        if self.formula(average) > 0.0 { 1.0 / self.distance(average).0 } else { 0.0 }
    }
    /// Whether the number of dropped packets is within four standard deviations of the formula.
    fn right(self, average: f64, n: f64, dropped: f64) -> bool {
        if self.formula(average) == 0.0 {
            return dropped == 0.0;
        }
        let (mean, variance) = self.distance(average);
        (dropped - n / mean).abs() <= 4.0 * (n * variance / mean.powi(3)).sqrt() + 2.0
    }
}

const REDS: [Red; 3] = [
    Red { min: 10.0, max: 40.0, max_p: 0.1 },
    Red { min: 5.0, max: 30.0, max_p: 0.5 },
    Red { min: 20.0, max: 25.0, max_p: 0.02 },
];

/// The number of packets over which drops are counted.
const N: u32 = 9000;

/// Returns the text of a router whose queues stay at a fixed length while packets pass the RED elements, so that the
/// average is known.
fn placement(name: &str, length: usize) -> String {
    let (half, rest) = (length / 2, length - length / 2);
    let red = |i: usize| format!("RED({}, {}, {})", REDS[i].min, REDS[i].max, REDS[i].max_p);
    let pushed = |queues: &str, out: usize, reds: &str| {
        format!(
            "warm :: InfiniteSource(LIMIT 900, STOP true) -> in :: Null; main :: InfiniteSource(LIMIT {N}, ACTIVE false, STOP true) -> in;
            s :: Switch({out}) [{out}] -> Discard; {queues} {reds} s;"
        )
    };
    let pulled = |queue: &str| {
        format!(
            "s :: PullSwitch(1); {queue} -> [0] s; InfiniteSource(LIMIT 900, STOP true) -> [1] s;
            InfiniteSource(LIMIT {N}, STOP true) -> [2] s; s -> r0 :: {} -> Unqueue -> Discard;",
            red(0)
        )
    };
    let fill = |n: usize, queue: &str| format!("InfiniteSource(LIMIT {n}) -> {queue}");
    let text = match name {
        "one queue" => {
            let queue = fill(length, "q :: Queue -> Idle; s [0] -> q;");
            pushed(&queue, 1, &format!("in -> r0 :: {} ->", red(0)))
        }
        "several queues" => {
            let queues = fill(half, "q :: Queue -> Idle; s [0] -> q;")
                + &fill(rest, "p :: SimpleQueue -> Idle; s [1] -> p;");
            pushed(&queues, 2, &format!("in -> r0 :: {} ->", red(0)))
        }
        "weighted" => {
            let queue = fill(length, "q :: NotifierQueue -> Idle; s [0] -> q;");
            let all = (0..3).map(|i| format!("c [{i}] -> r{i} :: {} -> t;", red(i))).collect::<String>();
            pushed(&queue, 1, &format!("c :: RoundRobinSwitch; in -> c; t :: Null; {all} t ->"))
        }
        "full queue that drops from its front" => {
            let queue = fill(length + 50, &format!("q :: FrontDropQueue({length}) -> Idle; s [0] -> q;"));
            pushed(&queue, 1, &format!("in -> r0 :: {} ->", red(0)))
        }
        "behind a queue" => pulled(&fill(length, "Queue")),
        "behind a queue with two doors" => {
            pulled(&format!("{} {}", fill(half, "[0] m :: MixedQueue;"), fill(rest, "[1] m; m")))
        }
        _ => pulled(&fill(length + 50, &format!("FrontDropQueue({length})"))),
    };
    let begin = if text.contains("PullSwitch") { "write s.switch 2" } else { "write main.active true" };
    let drops: Vec<_> = (0..3).filter(|i| text.contains(&format!("r{i} ::"))).collect();
    let set = drops.iter().map(|i| format!("set d{i} $(r{i}.drops), ")).collect::<String>();
    let show = drops
        .iter()
        .map(|i| format!("$(r{i}.avg_queue_size) $(sub $(r{i}.drops) $d{i}) "))
        .collect::<String>();
    format!("{text} DriverManager(wait_stop, {set} {begin}, wait_stop, print \"{show}\", stop);")
}

const PLACEMENTS: [&str; 7] = [
    "one queue",
    "several queues",
    "weighted",
    "full queue that drops from its front",
    "behind a queue",
    "behind a queue with two doors",
    "drop from front",
];

#[test]
fn red_follows_the_formula_at_every_length_in_each_placement() {
    for place in PLACEMENTS {
        for length in [0, 5, 6, 10, 11, 18, 25, 31, 40, 41, 55, 79, 80, 81] {
            let printed = run(&["-e", &placement(place, length)], 32);
            let seen = numbers(&printed);
            let reds = if place == "weighted" { 3 } else { 1 };
            assert_eq!(seen.len(), 2 * reds, "{place}: {printed}");
            for (red, pair) in REDS.iter().zip(seen.chunks(2)) {
                assert_eq!(pair[0], length as f64, "{place}: the average is that of what waits");
                let n = f64::from(N) / reds as f64;
                assert!(red.right(pair[0], n, pair[1]), "{place} at {length}: {} of {n} dropped", pair[1]);
            }
        }
    }
}

#[test]
fn the_batch_size_does_not_matter() {
    for place in PLACEMENTS {
        let text = placement(place, 33);
        run_alike(&["-e", &text], &BATCHES);
    }
    // Configurations whose queues fill and empty.
    for place in [
        "RED(2, 9, 0.3) -> q :: Queue(20) -> RatedUnqueue(90)",
        "q :: Queue(20) -> RED(2, 9, 0.3) -> RatedUnqueue(90)",
        "q :: FrontDropQueue(20) -> RED(2, 9, 0.3) -> Unqueue(BURST 5) -> Queue -> BandwidthRatedUnqueue(9kBps)",
        "AdaptiveRED(10, 0.1) -> q :: Queue(20) -> RatedUnqueue(90)",
        "PI(20, 0.01, 0.009, 8) -> q :: Queue(20) -> RatedUnqueue(90)",
        "q :: Queue(100) -> CoDel(20ms) -> RatedUnqueue(90)",
    ] {
        let text = format!(
            "InfiniteSource(LENGTH 100, LIMIT 40, BURST 7) -> n :: Null -> {place} -> c :: Counter -> Discard;
            RatedSource(LENGTH 100, RATE 80) -> n; s :: RatedSource(LENGTH 100, RATE 40) -> n;
            DriverManager(wait 3, write s.active false, wait 2, write s.active true, wait 3, print $(c.count) $(q.drops) $(q.length), stop);"
        );
        run_alike(&["-e", &text], &BATCHES);
    }
}

/// Measures the average of a handler value over 15 seconds, after 15 seconds to settle.
fn mean(text: &str, handler: &str) -> f64 {
    let script = format!(
        "DriverManager(wait 15s, set n 0, set sum 0, label look, wait 0.1s, set n $(add $n 1), set sum $(add $sum $({handler})),
        goto look $(lt $n 150), print $(div $sum $n), stop);"
    );
    numbers(&run(&["-e", &format!("{text} {script}")], 32))[0]
}

#[test]
fn controllers_hold_queues_at_their_target() {
    for target in [20, 60] {
        for overload in [1100, 1500] {
            for policy in
                [format!("AdaptiveRED({target}, 0.02)"), format!("PI(160, 0.0005, 0.00048, {target})")]
            {
                let text = format!(
                    "RatedSource(RATE {overload}) -> p :: {policy} -> Queue -> RatedUnqueue(1000) -> Discard;"
                );
                let average = mean(&text, "p.avg_queue_size");
                // AdaptiveRED does not adapt while the average is within 20 percent of TARGET.
                let near = f64::from(target) * 0.2;
                assert!((average - f64::from(target)).abs() <= near, "{policy} at {overload}: {average}");
            }
        }
    }
}

#[test]
fn codel_bounds_the_wait_and_spares_bursts() {
    let wait = |codel: &str, load: u32| {
        // The queue drains at 1000 packets per second, so its length divided by 1000 is the wait in seconds.
        let text =
            format!("RatedSource(RATE {load}) -> q :: Queue(1000) {codel} -> RatedUnqueue(1000) -> Discard;");
        mean(&text, "q.length") / 1000.0
    };
    assert!(wait("", 1100) > 0.9, "without it the queue is full");
    let with = wait("-> CoDel(20ms, 100ms)", 1100);
    assert!(with < 0.1, "{with} s");
    let text = "InfiniteSource(LIMIT 90, BURST 90) -> Queue -> c :: CoDel(20ms, 100ms) -> RatedUnqueue(1000) -> n :: Counter -> Discard;
        DriverManager(wait 5s, print $(n.count) $(c.drops), stop);";
    assert_eq!(numbers(&run(&["-e", text], 32)), [90.0, 0.0], "a burst that is gone within the interval");
}

#[test]
fn red_forgets_while_queues_are_empty() {
    // The queue length is 100 when the load ends, and 0 one second later. When the next packet arrives, RED counts the
    // 3 s since the last one as idle time, and each 20 ms of it as a packet: 150 packets.
    let text = "s :: RatedSource(RATE 2000) -> r :: RED(200, 400, 0.1) -> q :: Queue(100) -> RatedUnqueue(100) -> Discard;
        one :: RatedSource(RATE 10, LIMIT 1, ACTIVE false) -> r;
        DriverManager(wait 2, print $(r.avg_queue_size), write s.active false, wait 3, write one.active true, wait 1ms,
            print $(r.avg_queue_size), stop);";
    for batch in BATCHES {
        let printed = run(&["-e", text], batch);
        let seen: Vec<f64> = printed.lines().flat_map(numbers).collect();
        assert!((99.0..=100.0).contains(&seen[0]), "{printed}");
        let want = seen[0] * 0.9375_f64.powi(150);
        assert!((seen[1] - want).abs() < 0.001 + want * 0.1, "{printed}: {want}");
    }
}

/// Computes the average queue length at which RED elements with equal load drop the share `too_much` of packets.
fn balance(reds: &[Red], too_much: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let share: f64 = reds.iter().map(|r| r.share(middle)).sum::<f64>() / reds.len() as f64;
        if share < too_much { low = middle } else { high = middle }
    }
    low
}

/// TOCS 2000, Figures 5 and 11 and section 4.2: one class before a queue, over several queues, and after a queue.
#[test]
fn one_red_makes_four_policies() {
    let plain = Red { min: 20.0, max: 80.0, max_p: 0.2 };
    let weighted = [(30.0, 100.0, 0.1), (20.0, 80.0, 0.2), (10.0, 60.0, 0.3)];
    let weighted = weighted.map(|(min, max, max_p)| Red { min, max, max_p });
    for (each, batches) in [(40, &BATCHES[..]), (60, &[32]), (120, &[32])] {
        let rate = format!("EACH={each}");
        let printed = run_alike(&["conf/red.click", &rate], batches);
        let lines: Vec<Vec<f64>> = printed.lines().map(numbers).collect();
        let load = 3.0 * f64::from(each);
        let (too_much, seconds) = ((load - 100.0) / load, 300.0);
        for line in [&lines[0], &lines[1], &lines[5]] {
            let [dropped, seen, average] = line[..] else { panic!("{printed}") };
            let want = balance(&[plain], too_much);
            assert!((average - want).abs() < 0.02 * want + 0.5, "{want}: {printed}");
            assert!((dropped - too_much * load * seconds).abs() < 100.0, "{printed}");
            assert!((seen - load * seconds).abs() <= 3.0, "{printed}");
        }
        let want = balance(&weighted, too_much);
        for (red, line) in weighted.iter().zip(&lines[2..5]) {
            let [dropped, seen, average] = line[..] else { panic!("{printed}") };
            assert!((average - want).abs() < 0.05 * want, "{want}: {printed}");
            let share = dropped / seen;
            assert!((share - red.share(average)).abs() < 0.02, "{share}, {}: {printed}", red.share(average));
        }
    }
}

/// TOCS 2000, Figure 12 and section 4.3: all four requirements in one measurement.
#[test]
fn two_lines_two_priorities_fairness_and_one_red() {
    let printed = run_alike(&["conf/two-t1s.click"], &BATCHES);
    let lines: Vec<Vec<f64>> = printed.lines().map(|l| numbers(l.split_once(": ").unwrap().1)).collect();
    assert_eq!(lines.len(), 8);
    let (seconds, red) = (30.0, Red { min: 50.0, max: 300.0, max_p: 0.1 });
    // The number of packets of 500 bytes that a line of 1.544 Mbit/s carries in this time.
    let line = seconds * 1_544_000.0 / 8.0 / 500.0;
    for (part, rates) in lines.chunks(4).zip([[100.0, 100.0, 900.0, 500.0], [900.0, 500.0, 900.0, 500.0]]) {
        let [load, flows, room, drops] = part else { panic!("{printed}") };
        // Both lines are fully and equally used.
        assert!(load.iter().all(|n| (n - line).abs() <= 2.0), "{printed}");
        // RED uses the number of packets in all four queues, so its average can exceed 64, the capacity of one
        // queue.
        let (seen, dropped, average) = (drops[0], drops[1], drops[2]);
        assert!(average > 120.0 && red.right(average, seen, dropped), "{printed}");
        assert!(!red.right(average / 2.0, seen, dropped), "half of the queues would show");
        let left = 1.0 - dropped / seen;
        let high: f64 = flows[..2].iter().sum();
        let wanted = rates[..2].iter().map(|r| r * seconds * left).sum::<f64>();
        if wanted < 2.0 * line {
            // High priority loses only what RED drops, with the same probability as all other packets. Low
            // priority gets the rest of the link.
            assert!((high - wanted).abs() < 0.01 * wanted && room[0] == 0.0, "{printed}");
            assert!(room[1] > 0.0 && (flows[2] + flows[3] - (2.0 * line - high)).abs() <= 4.0, "{printed}");
        } else {
            assert!((high - 2.0 * line).abs() <= 4.0 && flows[2] + flows[3] == 0.0, "{printed}");
        }
        // Flows of equal priority that exceed their share get the same rate.
        for pair in flows.chunks(2) {
            assert!((pair[0] - pair[1]).abs() <= 0.02 * pair[0], "{printed}");
        }
    }
}

/// An Unqueue that requests several packets and gets fewer continues as if it had requested them one by one.
#[test]
fn short_bursts_are_the_same_at_every_batch_size() {
    let mut sum = 0.0;
    for seed in 0..40_u32 {
        let pick = |n: u32, salt: u32| 1 + (seed.wrapping_mul(2_654_435_761) >> salt) % n;
        let (a, b, burst, room) = (pick(5, 3), pick(4, 9), pick(9, 14), pick(12, 20));
        let puller =
            ["Unqueue(BURST", "Unqueue(BURST", "RatedUnqueue(2000000000, BURST_SIZE", "Burster(1us,"]
                [seed as usize % 4];
        let text = format!(
            "InfiniteSource(LENGTH 60, LIMIT 300, BURST {a}) -> q :: Queue({room}) -> {puller} {burst}) -> c :: Counter -> p :: Queue({room})
                -> Discard(BURST {b}); p [1] -> d :: Counter -> Discard;
            InfiniteSource(LENGTH 60, LIMIT 200, BURST {b}) -> q; Script(wait 1, stop);
            DriverManager(wait_stop, print $(c.count) $(q.drops) $(d.count) $(q.highwater_length) $(p.highwater_length), stop);"
        );
        let want = run(&["-e", &text], 1);
        for batch in [2, 3, 32, 256] {
            assert_eq!(run(&["-e", &text], batch), want, "batch {batch}\n{text}");
        }
        sum += numbers(&want)[0];
    }
    assert!(sum > 4000.0, "{sum}");
}

#[test]
fn workers_share_one_policy_and_lose_count_of_nothing() {
    for place in
        ["RED(5, 50, 0.1) -> q :: Queue(100)", "PI(1000, 0.001, 0.0009, 20) -> q :: FrontDropQueue(60)"]
    {
        let text = format!(
            "InfiniteSource(LENGTH 60, LIMIT 20000, STOP true) -> n :: Null -> p :: {place} -> u :: Unqueue(BURST 8) -> c :: Counter -> Discard;
            InfiniteSource(LENGTH 60, LIMIT 20000, STOP true) -> n; p [1] -> d :: Counter -> Discard; StaticThreadSched(u 2);
            DriverManager(wait_stop, wait_stop, wait 0.2s, print $(p.drops) $(q.drops) $(c.count) $(q.length) $(d.count), stop);"
        );
        let mut c = Command::new(castanet());
        let out = c.args(["run", "-q", "--workers", "3", "-e", &text]).current_dir(root()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let seen = numbers(&String::from_utf8_lossy(&out.stdout));
        let [dropped, overflowed, passed, waiting, aside] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((dropped + overflowed + passed, waiting, aside), (40_000.0, 0.0, dropped), "{place}");
    }
}

#[test]
fn pages_show_their_configurations() {
    for name in ["red", "two-t1s"] {
        let mut draw = Command::new(castanet());
        let out = draw.args(["graph", &format!("conf/{name}.click")]).current_dir(root()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let file = root().join(format!("docs/{name}.svg"));
        if std::env::var_os("CASTANET_BLESS").is_some() {
            std::fs::write(&file, &out.stdout).unwrap();
        }
        let same = std::fs::read(&file).is_ok_and(|kept| kept == out.stdout);
        assert!(same, "out of date: castanet graph conf/{name}.click -o docs/{name}.svg");
        let page = std::fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
        assert!(page.contains(&format!("({name}.svg)")) && page.contains(&format!("../conf/{name}.click")));
    }
}
