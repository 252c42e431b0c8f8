// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the run loop with the naive interpreter, on random graphs, at several batch sizes.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::CallError;
use castanet_runtime::{Ledger, Router};
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::{compilers, simulated, try_naive, try_router};
use std::collections::BTreeMap;

/// The observable results of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// The lines that recording elements print, in order.
    records: Vec<String>,
    /// Drops by element and reason.
    drops: BTreeMap<(u32, &'static str), u64>,
    /// The values of handlers.
    values: BTreeMap<String, String>,
    /// The ledger: packets entered, made, left, held, by element.
    ledger: BTreeMap<String, [u64; 4]>,
}

/// Returns the ledger of a run, which must balance.
fn booked(ledger: &Ledger) -> BTreeMap<String, [u64; 4]> {
    ledger.check();
    ledger.accounts.iter().map(|a| (a.element.clone(), [a.entered, a.made, a.left, a.held])).collect()
}

const HANDLERS: &[(&str, &[&str])] = &[
    ("Counter", &["count", "byte_count"]),
    ("Discard", &["count"]),
    ("Numbers", &["count"]),
    ("Queue", &["length", "drops"]),
    ("RandomSample", &["drops"]),
    ("Sink", &["count"]),
    ("Unqueue", &["count"]),
    ("Unqueue2", &["packets"]),
];

fn values(
    c: &Configuration,
    mut read: impl FnMut(&str, &str) -> Result<String, CallError>,
) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for (name, class) in c.elements() {
        for h in HANDLERS.iter().find(|h| h.0 == class).into_iter().flat_map(|h| h.1) {
            out.insert(format!("{name}.{h}"), read(&name, h).unwrap_or_else(|e| panic!("{name}.{h}: {e}")));
        }
    }
    out
}

/// How a configuration is run.
#[derive(Clone, Copy, Debug)]
struct Mode {
    batch: usize,
    /// Whether clients observe packets.
    observed: bool,
    /// Whether paths are machine code.
    compiled: bool,
}

fn fast(c: &Configuration, Mode { batch, observed, compiled }: Mode) -> Result<Seen, String> {
    let (mut options, log) = simulated(batch);
    if compiled {
        options.given = compilers();
    }
    let mut r = try_router(&c.text(), options)?;
    if observed {
        r.write(None, "trace", "t 1000").map_err(|e| e.to_string())?;
        for (i, (name, _)) in c.elements().filter(|e| e.1 != "Sink").enumerate().take(3) {
            // Elements without outputs cannot be tapped there.
            let _ = r.write(None, "tap", &format!("t{i} {name} 5 0"));
        }
    }
    r.run().map_err(|e| e.to_string())?;
    if observed && let Some(d) = trace_differs(&mut r) {
        return Err(d);
    }
    if r.waiting() != 0 {
        return Err(format!("{} packets left between elements", r.waiting()));
    }
    let values = values(c, |e, h| {
        let e = r.find(e);
        r.read(e, h, "")
    });
    let drops = r.drops().into_iter().map(|((e, r), n)| ((e, r.name()), n)).collect();
    let ledger = booked(&r.ledger());
    Ok(Seen { records: log.lines(), drops, values, ledger })
}

fn naive(c: &Configuration) -> Result<Seen, String> {
    let (options, log) = simulated(1);
    let mut r = try_naive(&c.text(), options)?;
    if !r.run_until_idle(100_000).map_err(|e| e.to_string())? {
        return Err("the naive interpreter does not come to an end".into());
    }
    let values = values(c, |e, h| r.read(r.find(e).unwrap(), h));
    let drops = r.drops().into_iter().map(|((e, r), n)| ((e, r.name()), n)).collect();
    let ledger = booked(&r.ledger());
    Ok(Seen { records: log.lines(), drops, values, ledger })
}

/// Describes how a trace of all packets differs from the ledger. None if both say the same of each element, or if the
/// trace does not have all packets.
fn trace_differs(r: &mut Router) -> Option<String> {
    let text = r.read(None, "trace", "t 0").unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let ledger = r.ledger();
    let chosen: u64 = head.split('\t').nth(2).unwrap().parse().unwrap();
    let entered: u64 = ledger.accounts.iter().map(|a| a.entered).sum();
    if chosen != entered || lines.contains("\tcut\t") {
        return None;
    }
    let mut ends: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let what = match words[6] {
            "left" | "ended" => "left",
            "dropped" => words[7],
            "gone" => "gone",
            _ => continue,
        };
        *ends.entry((words[4].to_string(), what.to_string())).or_default() += 1;
    }
    let mut want = BTreeMap::new();
    for a in &ledger.accounts {
        let drops = a.drops.iter().map(|(r, n)| (r.to_string(), *n));
        for (what, n) in drops.chain([("left".to_string(), a.left)]).filter(|d| d.1 > 0) {
            want.insert((a.element.clone(), what), n);
        }
    }
    map_difference("ends of packets, by ledger and by trace,", &want, &ends)
}

/// Groups records by place, source and path. The records of a group are in order.
fn by_path(records: &[String]) -> BTreeMap<String, Vec<&str>> {
    let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for r in records.iter().filter(|r| !r.starts_with("say ")) {
        let end = r.match_indices(' ').nth(2).map_or(r.len(), |m| m.0);
        out.entry(r[..end].to_string()).or_default().push(&r[end..]);
    }
    out
}

fn said(records: &[String]) -> Vec<&String> {
    records.iter().filter(|r| r.starts_with("say ")).collect()
}

fn first_difference<T: PartialEq + std::fmt::Debug>(what: &str, a: &[T], b: &[T]) -> Option<String> {
    let at = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
    Some(format!(
        "{what}: number {at} of {} and {}:\n  naive {:?}\n  fast  {:?}",
        a.len(),
        b.len(),
        a.get(at),
        b.get(at)
    ))
}

fn map_difference<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    a: &BTreeMap<K, V>,
    b: &BTreeMap<K, V>,
) -> Option<String> {
    let key = a.keys().chain(b.keys()).find(|k| a.get(k) != b.get(k))?;
    let short = |v: Option<&V>| format!("{v:?}").chars().take(500).collect::<String>();
    Some(format!("{what} of {key:?}:\n  naive {}\n  fast  {}", short(a.get(key)), short(b.get(key))))
}

/// Describes how the run loop differs from the naive interpreter. None if they give the same results, or if the
/// configuration cannot be run.
fn differs(c: &Configuration, wish: Wish) -> Option<String> {
    let want = naive(c).ok()?;
    let batches: &[usize] = if wish.marks { &[1, 2, 3, 32, 256] } else { &[1] };
    let plain = batches.iter().map(|&batch| Mode { batch, observed: false, compiled: false });
    // Traces see the same at all batch sizes above 1, because followed packets move alone.
    let more = [(1, true, false), (32, true, false), (2, false, true), (32, false, true), (32, true, true)];
    let more = more.map(|(batch, observed, compiled)| Mode { batch, observed, compiled });
    for mode in plain.chain(more.into_iter().filter(|m| batches.contains(&m.batch))) {
        let Mode { batch, .. } = mode;
        let got = match fast(c, mode) {
            Ok(s) => s,
            Err(e) => return Some(format!("{mode:?}: {e}")),
        };
        let order = if batch == 1 && wish.exact {
            first_difference("records", &want.records, &got.records)
        } else {
            map_difference("records", &by_path(&want.records), &by_path(&got.records))
        };
        let order = order.or_else(|| first_difference("effects", &said(&want.records), &said(&got.records)));
        let other = || map_difference("drops", &want.drops, &got.drops);
        let more = || map_difference("handlers", &want.values, &got.values);
        let ledgers = || map_difference("ledger", &want.ledger, &got.ledger);
        if let Some(d) = order.or_else(other).or_else(more).or_else(ledgers) {
            return Some(format!("{mode:?}: {d}"));
        }
    }
    None
}

/// Returns the smallest configuration found that still differs, and how it differs.
fn shrink(mut c: Configuration, wish: Wish) -> (Configuration, String) {
    let mut why = differs(&c, wish).unwrap_or_default();
    loop {
        let next = c.smaller().into_iter().find_map(|s| differs(&s, wish).map(|w| (s, w)));
        match next {
            Some((s, w)) => (c, why) = (s, w),
            None => return (c, why),
        }
    }
}

/// Compares one configuration for each seed. For a long run, the environment variable ORACLE_ROUNDS
/// multiplies the number of seeds.
fn compare(seeds: std::ops::Range<u64>, wish: Wish) {
    let rounds = std::env::var("ORACLE_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    let seeds = seeds.start..seeds.start + (seeds.end - seeds.start) * rounds;
    let (mut records, mut bad) = (0, Vec::new());
    for seed in seeds.clone() {
        let c = Configuration::random(seed, wish);
        match naive(&c) {
            Ok(seen) => records += seen.records.len(),
            Err(e) => panic!("seed {seed}: {e}\n{}", c.text()),
        }
        if differs(&c, wish).is_some() {
            let (c, why) = shrink(c, wish);
            bad.push(format!("seed {seed}, {wish:?}: {why}\n{}", c.text()));
            if bad.len() == 5 {
                break;
            }
        }
    }
    assert!(bad.is_empty(), "{} configurations differ\n{}", bad.len(), bad.join("\n"));
    // The generator must produce enough records to make the comparison meaningful.
    assert!(records as u64 > 20 * (seeds.end - seeds.start), "{records} records");
}

#[test]
fn one_packet_at_a_time_is_the_same_in_every_detail() {
    compare(0..200, Wish { exact: true, overflow: true, ..Wish::default() });
}

#[test]
fn copies_in_a_cycle_go_depth_first() {
    let text = "Numbers(1, 2) -> t :: Tee; t [0] -> l :: Lap(2) -> Mark(1) -> t; l [1] -> Sink(2); t [1] -> Sink(1); Quit(9);";
    let (options, want) = simulated(1);
    assert!(try_naive(text, options).unwrap().run_until_idle(100_000).unwrap());
    let (options, got) = simulated(1);
    try_router(text, options).unwrap().run().unwrap();
    assert_eq!(want.lines().len(), 8);
    assert_eq!(first_difference("records", &want.lines(), &got.lines()), None);
}

#[test]
fn cycles_are_followed_depth_first() {
    compare(100_000..100_070, Wish { exact: true, overflow: true, cycles: true, ..Wish::default() });
}

#[test]
fn batches_keep_order_contents_counts_and_drops() {
    compare(200_000..200_080, Wish { marks: true, cycles: true, ..Wish::default() });
}

#[test]
fn effects_of_one_task_keep_their_order() {
    compare(300_000..300_060, Wish { marks: true, effects: true, exact: true, ..Wish::default() });
}

#[test]
fn effects_in_cycles_keep_their_order() {
    compare(
        400_000..400_040,
        Wish { marks: true, effects: true, exact: true, cycles: true, ..Wish::default() },
    );
}

#[test]
fn shapers_delays_and_splitters_one_packet_at_a_time() {
    compare(500_000..500_080, Wish { exact: true, overflow: true, time: true, ..Wish::default() });
}

#[test]
fn shapers_delays_and_splitters_in_batches() {
    compare(600_000..600_080, Wish { marks: true, time: true, ..Wish::default() });
}

#[test]
fn sources_of_all_classes_one_packet_at_a_time() {
    compare(
        700_000..700_120,
        Wish { exact: true, overflow: true, time: true, sources: true, ..Wish::default() },
    );
}

#[test]
fn sources_fill_queues_the_same_in_batches() {
    compare(800_000..800_160, Wish { marks: true, overflow: true, sources: true, ..Wish::default() });
}
