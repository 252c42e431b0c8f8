// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::{Cell, Results};
use serde_json::{Value, json};
use std::fmt::Write;

/// The results as a table.
pub fn table(r: &Results) -> String {
    let [generator, router] = r.processors;
    let mut out = format!(
        "UDP in frames of {} bytes; {} generator on processor {generator}, routers on processor {router}\n\
         thousands of packets a second, medians of {} trials of {:.2} s; processor time in ns a packet\n\n{:>9}",
        r.length,
        r.generator.name(),
        r.rounds,
        r.trial,
        "",
    );
    // Writing to a string cannot fail, so the results of `write!` in this function are ignored.
    for name in &r.names {
        let _ = write!(out, "  {name:^27}");
    }
    let _ = write!(out, "\n{:>9}", "offered");
    for _ in &r.names {
        let _ = write!(out, "  {:>9}  {:>7}  {:>7}", "forwarded", "lost", "ns");
    }
    out.push('\n');
    for p in &r.points {
        let offered = if p.asked > 0.0 { format!("{:.1}", p.asked / 1e3) } else { "flood".into() };
        let _ = write!(out, "{offered:>9}");
        for c in &p.cells {
            let _ =
                write!(out, "  {:>9.1}  {:>6.2}%  {:>7.0}", c.forwarded.median / 1e3, c.lost * 100.0, c.cpu);
        }
        out.push('\n');
    }
    let width = r.names.iter().map(String::len).fold(9, usize::max);
    let _ = writeln!(
        out,
        "\n{:>width$}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}",
        "", "peak", "loss-free", "of peak", "overload", "of peak", "ns"
    );
    for (name, c) in r.names.iter().zip(&r.capacities) {
        let peak = c.peak.max(1.0);
        let _ = writeln!(
            out,
            "{name:>width$}  {:>9.1}  {:>9.1}  {:>9.2}  {:>9.1}  {:>9.2}  {:>7.0}",
            c.peak / 1e3,
            c.loss_free / 1e3,
            c.loss_free / peak,
            c.overload / 1e3,
            c.survives / peak,
            c.cpu
        );
    }
    let kernel = r.capacities.first().copied().unwrap_or_default();
    for c in r.capacities.iter().skip(1) {
        let _ = writeln!(
            out,
            "{:>width$}  {:>9.2}  {:>9.2}",
            "ratio",
            c.peak / kernel.peak.max(1.0),
            c.loss_free / kernel.loss_free.max(1.0)
        );
    }
    let _ = writeln!(
        out,
        "\nloss-free: at most {}% lost; overload: the greatest rate offered, and what is forwarded then",
        r.tolerance * 100.0
    );
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// CSV with a header: one line for each rate and router.
pub fn csv(r: &Results) -> String {
    let mut out = String::from("router,asked,offered,forwarded,forwarded_min,forwarded_max,lost,cpu_ns\n");
    for (who, name) in r.names.iter().enumerate() {
        for p in &r.points {
            let c = p.cells.get(who).copied().unwrap_or_default();
            let _ = writeln!(
                out,
                "{name},{:.0},{:.0},{:.0},{:.0},{:.0},{:.6},{:.1}",
                p.asked, c.offered, c.forwarded.median, c.forwarded.min, c.forwarded.max, c.lost, c.cpu
            );
        }
    }
    out
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let cell = |c: &Cell| {
        json!({
            "offered": c.offered,
            "forwarded": { "median": c.forwarded.median, "min": c.forwarded.min, "max": c.forwarded.max },
            "lost": c.lost,
            "cpu_ns": c.cpu,
            "disturbed": c.disturbed,
        })
    };
    let routers = |of: &dyn Fn(usize) -> Value| {
        let all = r.names.iter().enumerate().map(|(who, name)| (name.clone(), of(who)));
        Value::Object(all.collect())
    };
    let points = r.points.iter().map(|p| {
        let cells = routers(&|who| cell(&p.cells.get(who).copied().unwrap_or_default()));
        json!({ "asked": p.asked, "routers": cells })
    });
    let capacities = routers(&|who| {
        let c = r.capacities.get(who).copied().unwrap_or_default();
        json!({
            "peak": c.peak,
            "loss_free": c.loss_free,
            "overload": { "offered": c.overload, "forwarded": c.survives },
            "cpu_ns": c.cpu,
        })
    });
    json!({ "veth": {
        "length": r.length,
        "rounds": r.rounds,
        "trial_seconds": r.trial,
        "tolerance": r.tolerance,
        "processors": { "generator": r.processors[0], "routers": r.processors[1] },
        "steered": r.steered,
        "generator": r.generator.name(),
        "points": points.collect::<Vec<_>>(),
        "capacities": capacities,
        "notes": r.notes,
    } })
}
