// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV, JSON or figure.

pub use crate::svg::svg;

use crate::fig8::{Results, Row, Spread};
use crate::frames::Traffic;
use serde_json::{Value, json};
use std::fmt::Write;

/// The results as a table.
pub fn table(results: &Results) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, so the results of `write!` in this function are ignored.
    for traffic in Traffic::ALL {
        let rows: Vec<&Row> = results.rows.iter().filter(|r| r.traffic == traffic).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "Figure 8, {traffic}: ns a packet, median (min to max)");
        let _ = writeln!(
            out,
            "{:>6}  {:>26}  {:>26}  {:>18}  {:>7}",
            "batch", "castanet", "monolith", "ratio", "rounds"
        );
        for r in &rows {
            let _ = writeln!(
                out,
                "{:>6}  {:>26}  {:>26}  {:>18}  {:>7}",
                r.batch,
                spread(r.castanet, 1),
                spread(r.monolith, 1),
                spread(r.ratio, 2),
                r.rounds
            );
        }
        for r in rows {
            if let Some(i) = r.instructions {
                let (c, m) = (i.castanet, i.monolith);
                let _ = writeln!(
                    out,
                    "{:>6}  {c:>10.0} instructions a packet, monolith {m:.0}, ratio {:.2}",
                    r.batch,
                    c / m
                );
            }
        }
        out.push('\n');
    }
    if !results.queue.is_empty() {
        let _ = writeln!(out, "Queue and Unqueue: ns a packet, median (min to max)");
        let _ = writeln!(out, "{:>6}  {:>26}  {:>26}  {:>22}", "batch", "without", "with", "difference");
    }
    for q in &results.queue {
        let (without, with, difference) = (spread(q.without, 1), spread(q.with, 1), spread(q.difference, 1));
        let _ = writeln!(out, "{:>6}  {without:>26}  {with:>26}  {difference:>22}", q.batch);
    }
    out
}

fn spread(s: Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$} to {:.digits$})", s.median, s.min, s.max)
}

/// CSV with a header: one line for each measurement.
pub fn csv(results: &Results) -> String {
    let mut out = String::from("what,traffic,batch,rounds,median,min,max\n");
    let mut line = |what: &str, traffic: &str, batch: usize, rounds: usize, s: Spread| {
        let _ = writeln!(out, "{what},{traffic},{batch},{rounds},{:.3},{:.3},{:.3}", s.median, s.min, s.max);
    };
    for r in &results.rows {
        let t = r.traffic.name();
        line("castanet_ns", t, r.batch, r.rounds, r.castanet);
        line("monolith_ns", t, r.batch, r.rounds, r.monolith);
        line("ratio", t, r.batch, r.rounds, r.ratio);
        if let Some(i) = r.instructions {
            let exact = |n| Spread { median: n, min: n, max: n };
            line("castanet_instructions", t, r.batch, 1, exact(i.castanet));
            line("monolith_instructions", t, r.batch, 1, exact(i.monolith));
        }
    }
    for q in &results.queue {
        line("queue_ns", "", q.batch, q.rounds, q.difference);
    }
    out
}

/// The results as JSON.
pub fn json(results: &Results) -> Value {
    let spread = |s: Spread| json!({ "median": s.median, "min": s.min, "max": s.max });
    let row = |r: &Row| {
        json!({
            "traffic": r.traffic.name(),
            "batch": r.batch,
            "rounds": r.rounds,
            "castanet_ns": spread(r.castanet),
            "monolith_ns": spread(r.monolith),
            "ratio": spread(r.ratio),
            "instructions": r.instructions.map(|i| json!({ "castanet": i.castanet, "monolith": i.monolith })),
        })
    };
    let queue: Vec<Value> = results
        .queue
        .iter()
        .map(|q| {
            json!({
                "batch": q.batch,
                "rounds": q.rounds,
                "without_ns": spread(q.without),
                "with_ns": spread(q.with),
                "difference_ns": spread(q.difference),
            })
        })
        .collect();
    json!({ "fig8": results.rows.iter().map(row).collect::<Vec<_>>(), "queue": queue })
}
