// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks at the end of a run.

use crate::disturbances::Disturbance;
use crate::network::RouterKind;
use crate::run::{CONNECTIONS, READS, Results};
use crate::swaps::Swaps;
use crate::table::Table;
use serde_json::Value;
use std::time::Duration;

/// The number of minutes at the start of a run during which memory may grow, because tables fill.
const FILLING: u64 = 10;
/// The shortest run, in minutes, in which the growth of memory is checked.
const LONG: u64 = 14;
/// The minimum share, from 0 to 1, of the requested swaps and reads that must have been made.
const REACHED: f64 = 0.98;
/// The time after the end of the run, in seconds, by which the last connection must have ended.
const LATE: f64 = 20.0;
/// How many more descriptors a router may have open at the end than at the start. A device that was created again may
/// have one more ring.
const DEVICES: u64 = 2;
/// The growth of memory, in KiB, that is always accepted, because allocators keep some freed memory.
const GROWTH_KIB: u64 = 4 << 10;

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(u64::MAX)
}

/// Checks the results. The table has one row for each check.
pub fn table(results: &Results) -> Table {
    let mut table = Table::default();
    for counts in &results.counts {
        counts.show(&mut table);
    }
    traffic(results, &mut table);
    swaps(results, &mut table);
    control(results, &mut table);
    memory(results, &mut table);
    descriptors(results, &mut table);
    disturbances(results, &mut table);
    let panics: u64 = results.counts.iter().map(|b| b.panics()).sum();
    table.row("panics", panics.to_string(), panics == 0);
    // `ended_well` expects an error from the router that writes the trace, because its disk was full.
    let ended = results.counts.iter().filter(|b| b.ended_well()).count();
    table.row("routers that ended in an orderly way", format!("{ended} of 5"), ended == 5);
    for complaint in &results.complaints {
        eprintln!("{complaint}");
    }
    table
}

fn traffic(results: &Results, table: &mut Table) {
    let Results { connections, streams, datagrams, server, .. } = results;
    let (asked, done) = (number(connections, "asked"), number(connections, "done"));
    // Disturbances end shortly before the end of a minute, so the last connections may end after the run.
    let late = connections["seconds"].as_f64().unwrap_or(f64::MAX) - results.minutes as f64 * 60.0;
    table.row(
        format!("short TCP connections: {CONNECTIONS} a minute, all complete"),
        format!("{done} of {asked}, the last {late:.1} s late"),
        done == asked && asked == CONNECTIONS * results.minutes && late < LATE,
    );
    if let Some(failures) = connections["failures"].as_object() {
        failures.iter().for_each(|(why, n)| eprintln!("connections: {n} {why}"));
    }
    let bytes = number(connections, "bytes");
    let served = number(server, "connection_bytes");
    let wrong = [connections, streams, server].map(|v| number(v, "wrong"));
    let sum = wrong.iter().fold(0u64, |a, b| a.saturating_add(*b));
    table.row(
        "short TCP connections: bytes there, and back",
        format!("{served}, {bytes}"),
        served == bytes && bytes != u64::MAX,
    );
    let there = (number(streams, "sent"), number(server, "received"));
    let back = (number(server, "sent"), number(streams, "received"));
    let failures = streams["failures"].as_array().map_or(usize::MAX, Vec::len);
    table.row(
        "long TCP streams: bytes sent = received, both ways",
        format!("{} = {}, {} = {}, {failures} broken", there.0, there.1, back.0, back.1),
        there.0 == there.1 && back.0 == back.1 && failures == 0 && there.0 > 0,
    );
    if failures > 0 {
        eprintln!("streams: {}", streams["failures"]);
    }
    table.row("wrong bytes in TCP", sum.to_string(), sum == 0);
    let field = |name: &str| number(datagrams, name);
    table.row(
        "numbered datagrams in calm stretches: lost, twice, out of order",
        format!(
            "{} of {}, {}, {}",
            field("lost_calm"),
            field("calm"),
            field("twice_calm"),
            field("reordered_calm")
        ),
        field("lost_calm") + field("twice_calm") + field("reordered_calm") == 0 && field("calm") > 0,
    );
    if field("lost_calm") > 0 {
        eprintln!("datagrams lost in these seconds: {}", datagrams["lost_calm_seconds"]);
    }
    table.row(
        "all datagrams: lost, twice, wrong",
        format!("{} of {}, {}, {}", field("lost"), field("sent"), field("twice"), field("wrong")),
        field("wrong") == 0 && number(server, "datagrams_wrong") == 0,
    );
}

fn swaps(results: &Results, table: &mut Table) {
    let all = &results.swaps;
    let sum = |of: fn(&Swaps) -> u64| all.iter().map(of).sum::<u64>();
    let tried = sum(Swaps::tried);
    let due = results.minutes * 60 * all.len() as u64;
    table.row(
        "hot swaps: one a second and router",
        format!("{tried} of {due}"),
        tried as f64 >= REACHED * due as f64,
    );
    table.row(
        "hot swaps: good ones accepted, bad and failing ones refused",
        format!("{}, {}, {}", sum(|s| s.accepted), sum(|s| s.bad), sum(|s| s.failing)),
        sum(|s| s.accepted) > 0 && sum(|s| s.bad) > 0 && sum(|s| s.failing) > 0,
    );
    let wrong: Vec<&String> = all.iter().flat_map(|s| &s.wrong).collect();
    table.row("hot swaps: replies that are wrong or missing", wrong.len().to_string(), wrong.is_empty());
    wrong.iter().for_each(|w| eprintln!("swap: {w}"));
    let refused: Vec<_> =
        all.iter().zip(RouterKind::ALL).flat_map(|(s, k)| s.refused.iter().map(move |r| (k, r))).collect();
    // A router cannot look up the address of a device while it has no free descriptor, or while the device is deleted.
    // It may then refuse a good swap.
    // The swap is excused if it was under way at any time of such an interval.
    let excused = |kind: RouterKind, at: u64, answered: u64| {
        results.excused.iter().any(|(k, from, to)| *k == kind && *from <= answered && at <= *to)
    };
    let unexplained: Vec<_> =
        refused.iter().filter(|(kind, (at, answered, _))| !excused(*kind, *at, *answered)).collect();
    for (kind, (at, _, why)) in &unexplained {
        eprintln!("swap refused: {} second {at}: {why}", kind.name());
    }
    table.row(
        "hot swaps: good ones refused, and those neither for want of descriptors nor devices",
        format!("{}, {}", refused.len(), unexplained.len()),
        unexplained.is_empty(),
    );
    let slowest = all.iter().map(|s| s.slowest).max().unwrap_or_default();
    table.row(
        "hot swaps: slowest, with a second of SIGSTOP",
        milliseconds(slowest),
        slowest < Duration::from_secs(10),
    );
    let lost: u64 = results.counts.iter().map(|b| b.lost_by_swaps()).sum();
    table.row("packets lost by hot swaps", lost.to_string(), lost == 0);
}

fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

fn control(results: &Results, table: &mut Table) {
    let good: u64 = results.reads.iter().map(|r| r.good).sum();
    let failed: Vec<&String> = results.reads.iter().flat_map(|r| &r.failed).collect();
    let rate = good as f64 / (results.minutes * 60) as f64;
    let slowest = results.reads.iter().map(|r| r.slowest).max().unwrap_or_default();
    table.row(
        format!("handler reads: {READS} a second, none fails"),
        format!("{rate:.0} a second, {} failed, slowest {}", failed.len(), milliseconds(slowest)),
        failed.is_empty() && rate >= REACHED * f64::from(READS),
    );
    failed.iter().take(20).for_each(|f| eprintln!("read: {f}"));
    table.row("attacks of hostile control clients", results.attacks.to_string(), results.attacks > 0);
}

/// The memory of a router in several samples, in KiB.
///
/// The lower quartile shows whether memory grows, because memory that is never freed raises all values. Values above
/// the quartile depend on when the samples were taken: a router has the state of two configurations during a swap, and
/// a router that is flooded spends a large part of each second in swaps.
#[derive(Default)]
struct Memory {
    quarter: u64,
    median: u64,
    most: u64,
}

impl Memory {
    fn of(mut samples: Vec<u64>) -> Memory {
        samples.sort_unstable();
        let at = |n: usize| samples.get(n).copied().unwrap_or(0);
        Memory {
            quarter: at(samples.len() / 4),
            median: at(samples.len() / 2),
            most: at(samples.len().saturating_sub(1)),
        }
    }
}

fn memory(results: &Results, table: &mut Table) {
    for (i, kind) in RouterKind::ALL.iter().enumerate() {
        let used = |from: u64, to: u64| {
            let within = results.memory.iter().filter(|(at, _)| (from..to).contains(at));
            Memory::of(within.filter_map(|(_, used)| used.get(i).copied()).collect())
        };
        let end = results.minutes * 60;
        let what = format!("{}: memory flat after {FILLING} minutes", kind.name());
        if results.minutes < LONG {
            table.skip(what, format!("{} KiB; needs {LONG} minutes", used(0, end + 1).quarter));
            continue;
        }
        let filled = FILLING * 60;
        let middle = filled + (end - filled) / 2;
        let (before, after) = (used(filled, middle), used(middle, end + 1));
        let allowed = before.quarter + GROWTH_KIB.max(before.quarter / 20);
        let text = format!(
            "{} KiB, later {} KiB (median {}, {}; at most {}, {})",
            before.quarter, after.quarter, before.median, after.median, before.most, after.most
        );
        table.row(what, text, after.quarter > 0 && after.quarter <= allowed);
    }
}

fn descriptors(results: &Results, table: &mut Table) {
    let [before, after] = &results.descriptors;
    for (kind, (before, after)) in RouterKind::ALL.iter().zip(before.iter().zip(after)) {
        table.row(
            format!("{}: descriptors open before the first, after the last client", kind.name()),
            format!("{before}, {after}"),
            *after > 0 && *after <= before + DEVICES,
        );
    }
}

fn disturbances(results: &Results, table: &mut Table) {
    let count = |kinds: &[Disturbance]| -> u64 {
        kinds.iter().filter_map(|kind| results.disturbances.get(kind)).sum()
    };
    use Disturbance::*;
    for (what, kinds) in [
        ("floods of mutated frames", &[Mutated][..]),
        ("ARP storms", &[Arp]),
        ("floods of fragments", &[Fragments]),
        ("floods at full rate", &[FullRate]),
        ("links that flapped", &[Flap, TrunkFlap, TrunkCut]),
        ("devices deleted and made again", &[AttackerDevice, WanDevice]),
        ("routers stopped by SIGSTOP for a second", &[Stop]),
        ("routers out of descriptors for three seconds", &[Descriptors]),
    ] {
        table.row(what, count(kinds).to_string(), count(kinds) > 0);
    }
    table.row("frames of floods", results.frames.to_string(), results.frames > 0);
    for counts in &results.counts {
        eprintln!("dropped: {}", counts.reasons());
        counts.messages.iter().rev().take(12).for_each(|line| eprintln!("  {line}"));
    }
    let full: u64 = results.counts.iter().map(|b| b.dropped(Some("write-failed"))).sum();
    let freed: u64 = results.swaps.iter().map(|s| s.freed).sum();
    table.row(
        "full disk: packets not written, counted; how often there was room again",
        format!("{full}; {freed}"),
        full > 0,
    );
    if results.clock {
        table.row("clock jumps (of the clock that the routers see)", count(&[Clock]).to_string(), true);
    } else {
        table.skip("clock jumps", "the library castanet-lab-clock was not built");
    }
}
