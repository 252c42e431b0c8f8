// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::{Cell, DROP, FORWARDER, Results, compare};
use crate::fig8::Spread;
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
    // Three numbers stand below each name. A longer name widens its column.
    let widths = || r.names.iter().map(|name| name.len().max(27));
    for (name, width) in r.names.iter().zip(widths()) {
        let _ = write!(out, "  {name:^width$}");
    }
    let _ = write!(out, "\n{:>9}", "offered");
    for width in widths() {
        let width = width - 18;
        let _ = write!(out, "  {:>width$}  {:>7}  {:>7}", "forwarded", "lost", "ns");
    }
    out.push('\n');
    for p in &r.points {
        let offered = if p.asked > 0.0 { format!("{:.1}", p.asked / 1e3) } else { "flood".into() };
        let _ = write!(out, "{offered:>9}");
        for (c, width) in p.cells.iter().zip(widths()) {
            let width = width - 18;
            let _ = write!(
                out,
                "  {:>width$.1}  {:>6.2}%  {:>7.0}",
                c.forwarded.median / 1e3,
                c.lost * 100.0,
                c.cpu.median
            );
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
    let several = r.names.len() > 2;
    if several {
        let _ = writeln!(out, "\n{:>width$}  {:>9}  {:>9}", "ratio", "peak", "loss-free");
    }
    for (name, c) in r.names.iter().zip(&r.capacities).skip(1) {
        let _ = writeln!(
            out,
            "{:>width$}  {:>9.2}  {:>9.2}",
            if several { name } else { "ratio" },
            c.peak / kernel.peak.max(1.0),
            c.loss_free / kernel.loss_free.max(1.0)
        );
    }
    programs(r, &mut out);
    out.push_str(&compare::table(r));
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

/// The results of a router when the generator sends as many packets as it can.
fn flood(r: &Results, name: &str) -> Option<Cell> {
    let who = r.names.iter().position(|n| n == name)?;
    r.points.last()?.cells.get(who).copied()
}

/// The time of a packet in the flood, without that of a packet that is dropped at once: that of a router, in nanoseconds, and its
/// ratio to that of the hand-written forwarder.
fn net(r: &Results, name: &str) -> Option<(f64, f64)> {
    let drop = flood(r, DROP)?.cpu.median;
    let of = |name| Some(flood(r, name)?.cpu.median - drop);
    let (own, hand) = (of(name)?, of(FORWARDER)?);
    Some((own, if hand > 0.0 { own / hand } else { 0.0 }))
}

/// The table of programs.
fn programs(r: &Results, out: &mut String) {
    if r.programs.is_empty() {
        return;
    }
    let width = r.programs.iter().map(|p| p.name.len()).fold(9, usize::max);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:>width$}  {:>21}  {:>8}  {:>8}  {:>8}  {:>21}  {:>8}  {:>8}  {:>8}",
        "in the kernel",
        "ns a run",
        "executed",
        "of",
        "stayed",
        "ns in the flood",
        "kernel's",
        "net",
        "ratio",
        width = width.max(13)
    );
    let spread = |s: Spread| format!("{:.1} ({:.1} to {:.1})", s.median, s.min, s.max);
    let kernel = r.names.first().and_then(|name| flood(r, name)).unwrap_or_default();
    for p in &r.programs {
        let length = p
            .length
            .map_or(["-".into(), "-".into()], |l| [l.executed.to_string(), l.instructions.to_string()]);
        let stayed = p.stayed.map_or("-".into(), |s| format!("{:.2}%", s * 100.0));
        let cpu = flood(r, &p.name).unwrap_or_default().cpu;
        let (net, ratio) = net(r, &p.name)
            .map_or(("-".into(), "-".into()), |(n, ratio)| (format!("{n:.1}"), format!("{ratio:.2}")));
        let _ = writeln!(
            out,
            "{:>width$}  {:>21}  {:>8}  {:>8}  {stayed:>8}  {:>21}  {:>8.2}  {net:>8}  {ratio:>8}",
            p.name,
            spread(p.time),
            length[0],
            length[1],
            spread(cpu),
            kernel.cpu.median / cpu.median.max(1e-9),
            width = width.max(13)
        );
    }
    let _ = writeln!(
        out,
        "\nns a run: of the program alone, with the kernel's counting (BPF_ENABLE_STATS); executed: instructions for one packet, of \
         the program's\nstayed: packets that did not leave the kernel; ns in the flood: of the processor of generator and router, \
         for each packet\nkernel's: the ns of the kernel's router, as a multiple; net: ns in the flood without those of {DROP}; \
         ratio: net, as a multiple of {FORWARDER}'s"
    );
}

/// CSV with a header: one line for each rate and router.
pub fn csv(r: &Results) -> String {
    let mut out = String::from(
        "router,asked,offered,forwarded,forwarded_min,forwarded_max,lost,cpu_ns,cpu_ns_min,cpu_ns_max,run_ns,executed,peak,loss_free\n",
    );
    for (who, name) in r.names.iter().enumerate() {
        let program = r.programs.iter().find(|p| p.name == *name);
        let time = program.map_or(String::new(), |p| format!("{:.1}", p.time.median));
        let executed = program.and_then(|p| p.length).map_or(String::new(), |l| l.executed.to_string());
        let capacity = r.capacities.get(who).copied().unwrap_or_default();
        for p in &r.points {
            let c = p.cells.get(who).copied().unwrap_or_default();
            let (forwarded, cpu) = (c.forwarded, c.cpu);
            let _ = writeln!(
                out,
                "{name},{:.0},{:.0},{:.0},{:.0},{:.0},{:.6},{:.1},{:.1},{:.1},{time},{executed},{:.0},{:.0}",
                p.asked,
                c.offered,
                forwarded.median,
                forwarded.min,
                forwarded.max,
                c.lost,
                cpu.median,
                cpu.min,
                cpu.max,
                capacity.peak,
                capacity.loss_free
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
            "cpu_ns": c.cpu.median,
            "cpu_ns_min": c.cpu.min,
            "cpu_ns_max": c.cpu.max,
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
            "loss_free_of_peak": c.loss_free / c.peak.max(1.0),
            "overload": { "offered": c.overload, "forwarded": c.survives },
            "cpu_ns": c.cpu,
        })
    });
    let programs = r.programs.iter().map(|p| {
        let net = net(r, &p.name);
        let program = json!({
            "run_ns": { "median": p.time.median, "min": p.time.min, "max": p.time.max },
            "executed": p.length.map(|l| l.executed),
            "instructions": p.length.map(|l| l.instructions),
            "stayed": p.stayed,
            "net_ns": net.map(|n| n.0),
            "net_ratio": net.map(|n| n.1),
        });
        (p.name.clone(), program)
    });
    let programs = Value::Object(programs.collect());
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
        "programs": programs,
        "compared": compare::json(r),
        "notes": r.notes,
    } })
}
