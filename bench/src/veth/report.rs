// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::{Capacity, Cell, DROP, FORWARDER, KERNEL, Program, Results, compare, figures};
use crate::fig8::Spread;
use serde_json::{Value, json};
use std::fmt::Write;

/// The greatest number of subjects whose results at each rate are shown side by side.
const BESIDE: usize = 12;

/// A number with this many digits after the point, if there is one.
fn maybe(n: Option<f64>, digits: usize) -> String {
    n.map_or("-".into(), |n| format!("{n:.digits$}"))
}

/// The frame lengths of the traffic, in order.
fn lengths(r: &Results) -> String {
    let mut all: Vec<usize> = r.subjects.iter().map(|s| s.traffic.length).collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.
/// The results as a table.
pub fn table(r: &Results) -> String {
    let [generator, router] = r.processors;
    let mut out = format!(
        "UDP in frames of {} bytes; {} generator on processor {generator}, routers on processor {router}\n\
         thousands of packets a second, medians of {} trials of {:.2} s; processor time in ns a packet\n",
        lengths(r),
        r.generator.name(),
        r.rounds,
        r.trial,
    );
    if r.points.len() > 1 && r.subjects.len() <= BESIDE {
        rates(r, &mut out);
    }
    if let [flood] = &r.points[..] {
        saturated(r, &flood.cells, &mut out);
    } else {
        capacities(r, &mut out);
    }
    programs(r, &mut out);
    out.push_str(&compare::table(r));
    if r.points.len() > 1 {
        let _ = writeln!(
            out,
            "\nloss-free: at most {}% lost; overload: the greatest rate offered, and what is forwarded then",
            r.tolerance * 100.0
        );
    } else {
        let _ = writeln!(
            out,
            "\nGbit/s: on a wire, with 24 bytes for check sequence, preamble and gap; ratio: to the kernel"
        );
    }
    out.push_str(&figures::table(r));
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Forwarded packets, losses and times at each rate, side by side.
fn rates(r: &Results, out: &mut String) {
    // Three numbers stand below each name. A longer name widens its column.
    let widths = || r.names().map(|name| name.len().max(27));
    let _ = write!(out, "\n{:>9}", "");
    for (name, width) in r.names().zip(widths()) {
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
}

/// The capacity of each router, and its ratio to that of the kernel.
fn capacities(r: &Results, out: &mut String) {
    let width = r.names().map(str::len).fold(9, usize::max);
    let _ = writeln!(
        out,
        "\n{:>width$}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}",
        "", "peak", "loss-free", "of peak", "overload", "of peak", "ns"
    );
    for (name, c) in r.names().zip(&r.capacities) {
        let peak = c.peak.max(1.0);
        let _ = writeln!(
            out,
            "{name:>width$}  {:>9.1}  {:>9}  {:>9}  {:>9.1}  {:>9.2}  {:>7.0}",
            c.peak / 1e3,
            maybe(c.loss_free.map(|n| n / 1e3), 1),
            maybe(c.loss_free.map(|n| n / peak), 2),
            c.overload / 1e3,
            c.survives / peak,
            c.cpu
        );
    }
    let others = || r.subjects.iter().zip(&r.capacities).filter(|(s, _)| s.router != KERNEL);
    let several = others().nth(1).is_some();
    if several {
        let _ = writeln!(out, "\n{:>width$}  {:>9}  {:>9}", "ratio", "peak", "loss-free");
    }
    for (subject, c) in others() {
        let kernel = r.beside(KERNEL, subject).and_then(|who| r.capacities.get(who));
        let [peak, free] = ratios(c, &kernel.copied().unwrap_or_default());
        let _ = writeln!(
            out,
            "{:>width$}  {:>9}  {:>9}",
            if several { &subject.name } else { "ratio" },
            maybe(peak, 2),
            maybe(free, 2)
        );
    }
}

/// The ratios of peaks and of loss-free rates.
fn ratios(own: &Capacity, other: &Capacity) -> [Option<f64>; 2] {
    let free = own.loss_free.zip(other.loss_free).map(|(own, other)| own / other.max(1.0));
    [Some(own.peak / other.peak.max(1.0)), free]
}

/// Offered, received and forwarded packets, when the generator sends as many as it can.
fn saturated(r: &Results, cells: &[Cell], out: &mut String) {
    let width = r.names().map(str::len).fold(9, usize::max);
    let _ = writeln!(
        out,
        "\n{:>width$}  {:>9}  {:>9}  {:>9}  {:>7}  {:>7}  {:>7}  {:>7}",
        "", "offered", "received", "forwarded", "lost", "Gbit/s", "ratio", "ns"
    );
    for (subject, c) in r.subjects.iter().zip(cells) {
        let kernel = r.beside(KERNEL, subject).and_then(|who| cells.get(who)).copied().unwrap_or_default();
        let _ = writeln!(
            out,
            "{:>width$}  {:>9.1}  {:>9}  {:>9.1}  {:>6.2}%  {:>7.3}  {:>7.2}  {:>7.0}",
            subject.name,
            c.offered / 1e3,
            maybe(c.received.map(|n| n / 1e3), 1),
            c.forwarded.median / 1e3,
            c.lost * 100.0,
            subject.traffic.gbits(c.forwarded.median),
            c.forwarded.median / kernel.forwarded.median.max(1.0),
            c.cpu.median
        );
    }
}

/// The results of the subject with this place when the generator sends as many packets as it can.
fn flood(r: &Results, who: usize) -> Option<Cell> {
    r.points.last()?.cells.get(who).copied()
}

/// The time of a packet in the flood, without that of a packet that is dropped at once: that of a router, in nanoseconds, and its
/// ratio to that of the hand-written forwarder.
fn net(r: &Results, name: &str) -> Option<(f64, f64)> {
    let subject = r.subjects.iter().find(|s| s.name == name)?;
    let time = |router: &str| Some(flood(r, r.beside(router, subject)?)?.cpu.median);
    let drop = time(DROP)?;
    let (own, hand) = (time(&subject.router)? - drop, time(FORWARDER)? - drop);
    Some((own, if hand > 0.0 { own / hand } else { 0.0 }))
}

/// The table of programs.
fn programs(r: &Results, out: &mut String) {
    if r.programs.is_empty() {
        return;
    }
    let width = r.programs.iter().map(|p| p.name.len()).fold(9, usize::max);
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
    let of = |p: &Program| r.subjects.iter().find(|s| s.name == p.name);
    let flood = |router: &str, p: &Program| flood(r, r.beside(router, of(p)?)?);
    for p in &r.programs {
        let length = p
            .length
            .map_or(["-".into(), "-".into()], |l| [l.executed.to_string(), l.instructions.to_string()]);
        let stayed = p.stayed.map_or("-".into(), |s| format!("{:.2}%", s * 100.0));
        let own = of(p).and_then(|s| flood(&s.router, p)).unwrap_or_default();
        let (cpu, kernel) = (own.cpu, flood(KERNEL, p).unwrap_or_default());
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

/// The name of the directions in which packets cross a pair of interfaces.
fn ways(both: bool) -> &'static str {
    if both { "both" } else { "one" }
}

/// CSV with a header: one line for each rate and router.
pub fn csv(r: &Results) -> String {
    let mut out = String::from(
        "router,asked,offered,forwarded,forwarded_min,forwarded_max,lost,cpu_ns,cpu_ns_min,cpu_ns_max,run_ns,executed,peak,loss_free,length,flows,ways,received,gbits\n",
    );
    for (who, subject) in r.subjects.iter().enumerate() {
        let (name, traffic) = (&subject.router, subject.traffic);
        let program = r.programs.iter().find(|p| p.name == subject.name);
        let time = program.map_or(String::new(), |p| format!("{:.1}", p.time.median));
        let executed = program.and_then(|p| p.length).map_or(String::new(), |l| l.executed.to_string());
        let capacity = r.capacities.get(who).copied().unwrap_or_default();
        for p in &r.points {
            let c = p.cells.get(who).copied().unwrap_or_default();
            let (forwarded, cpu) = (c.forwarded, c.cpu);
            let _ = writeln!(
                out,
                "{name},{:.0},{:.0},{:.0},{:.0},{:.0},{:.6},{:.1},{:.1},{:.1},{time},{executed},{:.0},{},{},{},{},{},{:.6}",
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
                capacity.loss_free.map_or(String::new(), |n| format!("{n:.0}")),
                traffic.length,
                traffic.flows,
                ways(traffic.both_ways),
                c.received.map_or(String::new(), |n| format!("{n:.0}")),
                traffic.gbits(forwarded.median)
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
            "received": c.received,
            "lost": c.lost,
            "cpu_ns": c.cpu.median,
            "cpu_ns_min": c.cpu.min,
            "cpu_ns_max": c.cpu.max,
            "disturbed": c.disturbed,
        })
    };
    let routers = |of: &dyn Fn(usize) -> Value| {
        let all = r.names().enumerate().map(|(who, name)| (name.to_string(), of(who)));
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
            "loss_free_of_peak": c.loss_free.map(|n| n / c.peak.max(1.0)),
            "overload": { "offered": c.overload, "forwarded": c.survives },
            "cpu_ns": c.cpu,
        })
    });
    let subjects = r.subjects.iter().map(|s| {
        let t = s.traffic;
        let subject =
            json!({ "router": s.router, "length": t.length, "flows": t.flows, "ways": ways(t.both_ways) });
        (s.name.clone(), subject)
    });
    let subjects = Value::Object(subjects.collect());
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
        "figure": figures::json(r),
        "subjects": subjects,
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
