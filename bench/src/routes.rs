// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures route tables that are full: lookups of random addresses, and changes of routes while packets are forwarded.
//!
//! The cost of a lookup is compared with a Null in place of the table, in turns within one router. Changes come from
//! another thread at a fixed rate, in phases, as in [`control`](crate::control).

use crate::aspl::measure::Quartiles;
use crate::control::{CpuMeter, phase};
use crate::path::{self, Mode};
use castanet_element::prelude::*;
use castanet_element::spec::Origin;
use castanet_element::{ClassDef, Clock, Remote, action};
use castanet_runtime::Router;
use castanet_tables::Prefix;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The classes that are measured.
pub const CLASSES: [&str; 2] = ["DirectIPLookup", "RadixIPLookup"];
/// The number of packets in a round, which is large, so that the cache holds little of the round before.
const PACKETS: u64 = 1 << 16;
/// The number of addresses that are looked up in turn.
const TARGETS: usize = 1 << 20;
/// The number of routes that are removed one after the other, before they are added again. Also the limit on the number of
/// changes in a write.
const RUN: usize = 64;
/// The number of outputs and gateways.
const HOPS: [u64; 2] = [4, 256];

/// Returns `n` different prefixes with lengths like those of the Internet's table: mostly /24, some shorter, a few
/// longer.
fn prefixes(n: usize) -> Vec<Prefix> {
    let mut random = Random::new(1, "prefixes");
    let (mut all, mut seen) = (Vec::with_capacity(n), HashSet::new());
    while all.len() < n {
        let addr = random.next_u32();
        let prefix = match random.below(1000) {
            0..=599 => Prefix::new(addr, 24),
            600..=849 => Prefix::new(addr, 20 + random.below(4) as u8),
            850..=989 => Prefix::new(addr, 16 + random.below(4) as u8),
            // The longer prefixes lie in 8192 networks.
            _ => Prefix::new(addr & 0xfff8_01ff, 25 + random.below(8) as u8),
        };
        if seen.insert(prefix) {
            all.push(prefix);
        }
    }
    all
}

/// The routes to the prefixes as text.
fn routes(prefixes: &[Prefix]) -> Vec<String> {
    let mut random = Random::new(2, "routes");
    let [outputs, gateways] = HOPS;
    let one = |p: &Prefix| {
        let (gw, port) = (random.below(gateways), random.below(outputs));
        format!("{p} 10.0.0.{gw} {port}")
    };
    prefixes.iter().map(one).collect()
}

/// Sets the destination address annotation of each packet to an address of a random prefix.
///
/// # Ports
/// One input, one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Targets(10) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Targets", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, build)]
pub struct Targets {
    args: TargetsArgs,
    addrs: Vec<u32>,
    at: usize,
}

/// Arguments of Targets.
#[derive(Args)]
pub struct TargetsArgs {
    /// The number of prefixes.
    #[arg(max = 4_000_000)]
    prefixes: u32,
}

impl Build for Targets {
    fn build(args: TargetsArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let (prefixes, mut random) = (prefixes(args.prefixes as usize), Random::new(3, "targets"));
        let target = |_| {
            let p = prefixes.get(random.below(prefixes.len() as u64) as usize).copied();
            p.map_or(0, |p| p.addr() | random.next_u32() & !p.mask())
        };
        Ok(Targets { args, addrs: (0..TARGETS).map(target).collect(), at: 0 })
    }
}

impl Action for Targets {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.at = (self.at + 1) % TARGETS;
        p.set_dst_ip(self.addrs.get(self.at).copied().unwrap_or(0));
        Verdict::Next
    }
}

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The total duration in seconds, without that of filling tables.
    pub seconds: f64,
    /// The number of prefixes.
    pub prefixes: u32,
    /// The batch size.
    pub batch: usize,
    /// Changes per second.
    pub changes: u32,
}

/// The results of a class.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the class.
    pub class: &'static str,
    /// Nanoseconds per packet more than a Null.
    pub lookup: Quartiles,
    /// The actual number of changes per second.
    pub changes: f64,
    /// Packets per second of the worker's processor time, without changes.
    pub off: Quartiles,
    /// The same while routes are added and removed.
    pub on: Quartiles,
}

/// Builds a router whose element `routes` has the routes to all prefixes.
fn router(text: &str, settings: &Settings, routes: &[String]) -> Result<Router, String> {
    let defines = vec![
        ("N".to_string(), settings.prefixes.to_string()),
        ("LIMIT".into(), PACKETS.to_string()),
        ("BURST".into(), settings.batch.to_string()),
    ];
    let classes: [ClassDef; 2] = [action::<Targets>(), action::<CpuMeter>()];
    let mut router = path::router(text, &defines, Mode::plain(settings.batch), &classes, Clock::real())?;
    let mut lines = String::new();
    for route in routes {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "add {route}");
    }
    let table = router.find("routes");
    router.write(table, "ctrl", &lines).map_err(|e| e.to_string())?;
    Ok(router)
}

/// The statements that lead all outputs of the table to one place.
fn outputs(to: &str) -> String {
    (0..HOPS[0]).map(|o| format!("routes [{o}] -> {to};\n")).collect()
}

/// Measures lookups. Returns nanoseconds per packet more than a Null, by round.
fn lookups(class: &str, settings: &Settings, routes: &[String], seconds: f64) -> Result<Vec<f64>, String> {
    // A round takes about this long.
    let rounds = (seconds / (PACKETS as f64 * 60e-9)).clamp(5.0, 1e5) as u64;
    let source = "MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Targets($N)";
    let text = format!(
        "null :: {source} -> Null -> Discard;\nsource :: {source} -> routes :: {class}(0/0 0);\n{}\
         rounds :: Rounds(null source, ROUNDS {rounds});\n",
        outputs("Discard")
    );
    let mut router = router(&text, settings, routes)?;
    router.run().map_err(|e| e.to_string())?;
    let times = router.read(router.find("rounds"), "times", "").map_err(|e| e.to_string())?;
    let row = |line: &str| {
        let (null, element) = line.split_once(' ')?;
        let ns = element.parse::<f64>().ok()? - null.parse::<f64>().ok()?;
        Some(ns / PACKETS as f64)
    };
    times.lines().map(row).collect::<Option<_>>().ok_or_else(|| "a round is missing".to_string())
}

/// Returns change number `n`: removes 64 routes, adds them again, and goes on with the next 64.
fn nth_change(n: usize, routes: &[String]) -> String {
    let verb = if (n / RUN).is_multiple_of(2) { "remove" } else { "add" };
    let route = n / (2 * RUN) * RUN + n % RUN;
    let route = routes.get(route % routes.len().max(1)).map_or("", String::as_str);
    format!("{verb} {route}\n")
}

/// Removes and adds routes at a steady rate while `on` is set, until `end` is set. Counts the changes. A worker answers calls
/// after each 128 turns of its tasks, so a write carries all changes that are due, as those of a routing daemon do.
fn change(
    remote: &dyn Remote,
    routes: &[String],
    rate: u32,
    [on, end]: [&AtomicBool; 2],
    count: &AtomicU64,
) -> Result<(), String> {
    let pause = Duration::from_secs(1) / rate.max(1);
    let (mut due, mut next) = (Instant::now(), 0_usize);
    while !end.load(Ordering::Relaxed) {
        let mut lines = String::new();
        let (now, before) = (Instant::now(), next);
        while due <= now && next - before < RUN {
            due += pause;
            lines.push_str(&nth_change(next, routes));
            next += 1;
        }
        // Changes that were missed in the last tenth of a second are made up for; older ones are skipped.
        due = due.max(now.checked_sub(Duration::from_millis(100)).unwrap_or(now));
        if !on.load(Ordering::Relaxed) {
            next = before;
        } else if next > before {
            let done = remote.write(Origin::Operator, Some("routes"), "ctrl", &lines);
            done.map_err(|e| format!("{lines}{e}"))?;
            count.fetch_add((next - before) as u64, Ordering::Relaxed);
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Measures forwarding with and without changes. Returns changes per second, and packets per second of processor time
/// without changes and with them.
fn changes(
    class: &str,
    settings: &Settings,
    routes: &[String],
    seconds: f64,
) -> Result<(f64, [Vec<f64>; 2]), String> {
    let text = format!(
        "t :: CpuMeter -> Discard;\nMemSource(BURST $BURST) -> Targets($N) -> routes :: {class}(0/0 0);\n{}",
        outputs("t")
    );
    let mut router = router(&text, settings, routes)?;
    let running = router.running().clone();
    let (on, end, count) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    const GROUPS: u32 = 10;
    let length = Duration::from_secs_f64((seconds / f64::from(GROUPS * 4)).max(0.01));
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| router.run());
        let changing =
            scope.spawn(|| change(running.as_ref(), routes, settings.changes, [&on, &end], &count));
        let (mut figures, mut time) = ([Vec::new(), Vec::new()], Duration::ZERO);
        let measured = (|| {
            // This phase is a warm-up: its result is not used.
            phase(running.as_ref(), length)?;
            for _ in 0..GROUPS {
                for changes in [false, true, true, false] {
                    on.store(changes, Ordering::Relaxed);
                    let start = Instant::now();
                    let rate = phase(running.as_ref(), length)?;
                    if changes {
                        time += start.elapsed();
                    }
                    figures[usize::from(changes)].push(rate);
                }
            }
            Ok(())
        })();
        on.store(false, Ordering::Relaxed);
        end.store(true, Ordering::Relaxed);
        let failed = |_| Err("the thread that changes routes failed".into());
        let changed = changing.join().unwrap_or_else(failed);
        let _ = running.write(Origin::Operator, None, "stop", "1");
        let forwarded = forwarding.join().map_err(|_| "the router failed".to_string())?;
        forwarded.map_err(|e| e.to_string())?;
        let rate = count.load(Ordering::Relaxed) as f64 / time.as_secs_f64().max(1e-9);
        measured.and(changed).map(|()| (rate, figures))
    })
}

/// Runs all measurements.
///
/// # Errors
/// A configuration does not run.
pub fn run_all(settings: &Settings) -> Result<Vec<Row>, String> {
    let routes = routes(&prefixes(settings.prefixes as usize));
    let seconds = settings.seconds / (2 * CLASSES.len()) as f64;
    let row = |class| {
        let lookup = Quartiles::of(lookups(class, settings, &routes, seconds)?);
        let (rate, [off, on]) = changes(class, settings, &routes, seconds)?;
        Ok(Row { class, lookup, changes: rate, off: Quartiles::of(off), on: Quartiles::of(on) })
    };
    CLASSES.into_iter().map(row).collect()
}

/// The results as text.
pub fn table(rows: &[Row], settings: &Settings) -> String {
    let mut out = format!(
        "{} prefixes, batch {}; medians (quartiles)\n{:16}{:>26}  {:>10}  {:>24}  {:>24}  {:>8}\n",
        settings.prefixes,
        settings.batch,
        "class",
        "ns a lookup",
        "changes/s",
        "Mpackets/s without",
        "with changes",
        "slowdown"
    );
    let spread = |q: Quartiles, scale: f64| {
        format!("{:.2} ({:.2} to {:.2})", q.median / scale, q.lower / scale, q.upper / scale)
    };
    for r in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:16}{:>26}  {:>10.0}  {:>24}  {:>24}  {:>6.1} %",
            r.class,
            spread(r.lookup, 1.0),
            r.changes,
            spread(r.off, 1e6),
            spread(r.on, 1e6),
            100.0 * (1.0 - r.on.median / r.off.median)
        );
    }
    out
}

/// The results as JSON.
pub fn json(rows: &[Row], settings: &Settings) -> Value {
    let quartiles = |q: Quartiles| json!({ "lower": q.lower, "median": q.median, "upper": q.upper });
    let row = |r: &Row| {
        json!({
            "class": r.class,
            "lookup_ns": quartiles(r.lookup),
            "changes_per_second": r.changes,
            "packets_per_cpu_second": { "without": quartiles(r.off), "with": quartiles(r.on) },
        })
    };
    json!({ "routes": {
        "prefixes": settings.prefixes,
        "batch": settings.batch,
        "tables": rows.iter().map(row).collect::<Vec<_>>(),
    } })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tables_are_measured() {
        let settings = Settings { seconds: 0.4, prefixes: 2000, batch: 32, changes: 2000 };
        let rows = run_all(&settings).unwrap();
        assert_eq!(rows.iter().map(|r| r.class).collect::<Vec<_>>(), CLASSES);
        assert!(rows.iter().all(|r| r.changes > 1.0 && r.off.median > 1000.0 && r.on.median > 1000.0));
        let text = table(&rows, &settings);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 4 && lines[1..].iter().all(|l| l.len() == lines[1].len()), "{text}");
        assert_eq!(json(&rows, &settings)["routes"]["tables"][1]["class"], "RadixIPLookup");
    }

    #[test]
    fn changes_leave_the_table_full() {
        let routes: Vec<String> = (0..150).map(|i| format!("route {i}")).collect();
        let mut missing = HashSet::new();
        for n in 0..40 * RUN {
            let change = nth_change(n, &routes);
            let done = match change.trim_end().split_once(' ').unwrap() {
                ("remove", route) => missing.insert(route.to_string()),
                (_, route) => missing.remove(route),
            };
            assert!(done && missing.len() <= RUN, "{n}: {change}");
            assert!(n % (2 * RUN) != 2 * RUN - 1 || missing.is_empty());
        }
    }

    #[test]
    fn packets_take_the_routes_of_the_prefixes() {
        let all = prefixes(1000);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1000);
        let long = all.iter().filter(|p| p.prefix_len() > 24).count();
        assert!((1..50).contains(&long) && all.iter().filter(|p| p.prefix_len() == 24).count() > 500);
        let settings = Settings { seconds: 0.0, prefixes: 1000, batch: 32, changes: 1 };
        let text = format!(
            "MemSource(LIMIT $LIMIT, BURST $BURST, STOP true) -> Targets($N) -> routes :: RadixIPLookup(0/0 0);\n{}",
            outputs("Discard")
        );
        let mut router = router(&text, &settings, &routes(&all)).unwrap();
        router.run().unwrap();
        // Each output gets about a quarter of the packets.
        let drops: Vec<u64> = router.drops().into_values().collect();
        assert!(drops.len() == 4 && drops.iter().sum::<u64>() == PACKETS, "{drops:?}");
        assert!(drops.iter().all(|n| (PACKETS / 6..PACKETS / 3).contains(n)), "{drops:?}");
    }
}
