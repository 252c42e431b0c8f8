// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures for how long a hot swap stops the forwarding of packets (TOCS 2000, §2.8, reports a tenth of a second).
//!
//! Two configurations of a given size alternate while packets stream through them. They differ in one element, and
//! every counter and queue transfers its state.

use crate::fig8::Spread;
use castanet_element::Remote;
use castanet_element::spec::Origin;
use castanet_runtime::swap::{Loader, Style};
use castanet_runtime::{Options, Running, build};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The sizes of the configurations to measure, in elements.
    pub elements: Vec<usize>,
    /// The number of workers.
    pub workers: usize,
    /// The number of swaps for each size.
    pub swaps: usize,
}

/// The results for swaps of one size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of elements in each configuration.
    pub elements: usize,
    /// The size of a configuration's text in bytes.
    pub bytes: usize,
    /// The number of swaps measured.
    pub swaps: usize,
    /// Milliseconds from the request to the end of the swap.
    pub whole: Spread,
    /// Milliseconds in which no packet moved.
    pub standstill: Spread,
    /// The number of packets forwarded from the first swap to the last.
    pub packets: u64,
    /// The growth of the process's memory, in KiB, from the end of the first tenth of the swaps to the last swap.
    pub growth: i64,
}

/// A configuration of `n` elements, in which packets pass two queues and counters. Variants 0 and 1 differ in
/// one element.
fn text(n: usize, variant: usize) -> String {
    let mut out = String::from("in :: InfiniteSource(LENGTH 60) -> first :: Queue(2000) -> head :: Unqueue");
    for i in 0..n.saturating_sub(8) {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n  -> counter_number_{i:06} :: Counter /* passes what it counts */");
    }
    let changed =
        ["one_way :: Counter", "other_way :: Counter"].get(variant % 2).copied().unwrap_or_default();
    out += &format!(
        "\n  -> {changed} -> last :: Queue(2000) -> tail :: Unqueue -> out :: Counter -> done :: Discard;"
    );
    out
}

/// The resident memory of the process, in KiB.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Measures swaps of each size.
///
/// # Errors
/// A configuration does not run, or a swap fails.
pub fn run(settings: &Settings, loader: &Arc<dyn Loader>) -> Result<Vec<Row>, String> {
    settings.elements.iter().map(|&n| measure(n, settings, loader)).collect()
}

fn measure(elements: usize, settings: &Settings, loader: &Arc<dyn Loader>) -> Result<Row, String> {
    let texts = [text(elements, 0), text(elements, 1)];
    let [first, _] = &texts;
    let loaded = loader.load(Origin::Operator, "bench", first, Style::Snippets).map_err(|e| e.to_string())?;
    let options = Options { workers: settings.workers, ..Options::default() };
    let built = build(loaded.graph, loaded.classes, &loaded.sources, options);
    let (mut router, _) = built.map_err(|d| loader.render(&loaded.sources, &d, Style::Snippets))?;
    let running = router.running().clone();
    running.set_loader(loader.clone());
    std::thread::scope(|scope| {
        let runner = scope.spawn(move || router.run().map_err(|e| e.to_string()));
        let row = swaps(&texts, settings.swaps, &running);
        if let Some(shared) = running.current() {
            shared.end();
        }
        match runner.join() {
            Ok(ran) => ran.and(row),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn swaps(texts: &[String; 2], swaps: usize, running: &Running) -> Result<Row, String> {
    let packets = || {
        let count = running.read(Some("out"), "count", "").map_err(|e| e.to_string())?;
        count.trim().parse::<u64>().map_err(|e| e.to_string())
    };
    let (mut whole, mut standstill, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let before = packets()?;
    for i in 0..swaps.max(1) {
        let [a, b] = texts;
        let start = Instant::now();
        let next = if i % 2 == 0 { b } else { a };
        let done = running.swap(Origin::Operator, "bench", next).map_err(|e| e.to_string())?;
        whole.push(start.elapsed().as_secs_f64() * 1e3);
        standstill.push(done.standstill.as_secs_f64() * 1e3);
        memory.push(resident());
    }
    let packets = packets()?.saturating_sub(before);
    let [first, _] = texts;
    let elements = running.elements().len();
    let early = memory.get(memory.len() / 10).copied().unwrap_or_default();
    let growth = memory.last().copied().unwrap_or_default() - early;
    let (whole, standstill) = (Spread::of(whole), Spread::of(standstill));
    Ok(Row { elements, bytes: first.len(), swaps: swaps.max(1), whole, standstill, packets, growth })
}

/// The results as a table.
pub fn table(rows: &[Row], workers: usize) -> String {
    let mut out =
        format!("hot swaps under a stream of packets, {workers} workers: ms, median (min to max)\n\n");
    let head = ("elements", "bytes", "swaps", "standstill", "whole swap", "packets", "growth");
    let (a, b, c, d, e, f, g) = head;
    let _ = writeln!(out, "{a:>8}  {b:>9}  {c:>5}  {d:>26}  {e:>28}  {f:>10}  {g:>9}");
    for r in rows {
        let ms = |s: Spread| format!("{:.3} ({:.3} to {:.3})", s.median, s.min, s.max);
        let _ = writeln!(
            out,
            "{:>8}  {:>9}  {:>5}  {:>26}  {:>28}  {:>10}  {:>5} KiB",
            r.elements,
            r.bytes,
            r.swaps,
            ms(r.standstill),
            ms(r.whole),
            r.packets,
            r.growth
        );
    }
    out
}

/// The results as JSON.
pub fn json(rows: &[Row], workers: usize) -> Value {
    let spread = |s: Spread| json!({ "median": s.median, "min": s.min, "max": s.max });
    let row = |r: &Row| {
        json!({
            "elements": r.elements,
            "bytes": r.bytes,
            "swaps": r.swaps,
            "standstill_ms": spread(r.standstill),
            "whole_ms": spread(r.whole),
            "packets": r.packets,
            "growth_kib": r.growth,
        })
    };
    json!({ "workers": workers, "swap": rows.iter().map(row).collect::<Vec<_>>() })
}
