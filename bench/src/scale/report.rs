// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats the results as tables, CSV or JSON.

use super::{CORES, Prediction, Results, Row};
use crate::fig8::Spread;
use serde_json::{Value, json};
use std::fmt::Write;

fn ns(s: Spread) -> String {
    format!("{:.1} ({:.1} to {:.1})", s.median, s.min, s.max)
}
fn percent(s: Spread) -> String {
    format!("{:.0} ({:.0} to {:.0})", s.median * 100.0, s.min * 100.0, s.max * 100.0)
}
fn millions(s: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", s.median / 1e6, s.min / 1e6, s.max / 1e6)
}

/// Formats a range. Both ends are printed only if they differ.
fn range([low, high]: [f64; 2]) -> String {
    let (low, high) = (format!("{low:.1}"), format!("{high:.1}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The results as tables.
pub fn table(results: &Results) -> String {
    let mut out = format!(
        "ns of a worker per packet and millions of packets a second: median (min to max) of {} rounds\n\n",
        results.rounds
    );
    costs(&mut out, "what workers share", results.kinds.iter());
    let _ = writeln!(
        out,
        "a buffer that another worker frees costs {:.1} ns of processor time more\n",
        results.freed_elsewhere
    );
    sweep(&mut out, results);
    if !results.shipped.is_empty() {
        costs(&mut out, "castanet new, without devices", results.shipped.iter().map(|(row, _)| row));
        for (row, sharing) in &results.shipped {
            let _ = writeln!(out, "{}: {sharing}", row.name);
        }
        out.push('\n');
    }
    predictions(&mut out, results);
    let rows = results.kinds.iter().chain(&results.sweep).chain(results.shipped.iter().map(|(r, _)| r));
    let waited = Spread::of(rows.map(|r| r.waited.median));
    let _ = writeln!(
        out,
        "\nthe workers waited for a processor {} % of the time; this time is left out above",
        percent(waited)
    );
    out
}

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.
fn costs<'r>(out: &mut String, head: &str, rows: impl Iterator<Item = &'r Row>) {
    let _ = writeln!(
        out,
        "{head:<30}  {:>24}  {:>24}  {:>24}  {:>15}  {:>21}  {:>21}",
        "ns, 1 worker", "ns, 2 workers", "extra ns", "% of the 2x", "Mpps, 1 worker", "Mpps, 2 workers"
    );
    for r in rows {
        let ([one, two], [slow, fast]) = (r.ns.map(ns), r.rate.map(millions));
        let _ = writeln!(
            out,
            "{:<30}  {one:>24}  {two:>24}  {:>24}  {:>15}  {slow:>21}  {fast:>21}",
            r.name,
            ns(r.extra),
            percent(r.left)
        );
    }
    out.push('\n');
}

fn sweep(out: &mut String, results: &Results) {
    let _ = write!(
        out,
        "{:<20}  {:>8}  {:>24}  {:>24}  {:>15}",
        "work under a lock", "share", "ns, 1 worker", "ns, 2 workers", "% of the 2x"
    );
    for f in &results.fits {
        let _ = write!(out, "  {:>8}", f.meeting.name());
    }
    let _ = writeln!(out);
    for r in &results.sweep {
        let (work, [one, two]) = (r.work(), r.ns);
        let (target, fitted) = r.target.map_or((0.0, false), |t| {
            let percent = t * 100.0;
            (percent, super::FITTED.iter().any(|f| (f - percent).abs() < 1e-6))
        });
        let _ = write!(
            out,
            "{:<20}  {:>6.1} %  {:>24}  {:>24}  {:>15}",
            format!("{target:.0} %{}", if fitted { "" } else { ", left out" }),
            work.under / one.median.max(1e-9) * 100.0,
            ns(one),
            ns(two),
            percent(r.left)
        );
        for f in &results.fits {
            let _ = write!(out, "  {:>+6.1} %", r.point().error(f.meeting, f.handover) * 100.0);
        }
        let _ = writeln!(out);
    }
    let _ = writeln!(out, "\nmodel of the lock  hand-over, ns  error, fitted  error, left out");
    for f in &results.fits {
        let _ = writeln!(
            out,
            "{:<17}  {:>13.1}  {:>11.1} %  {:>13.1} %",
            f.meeting.name(),
            f.handover,
            f.fitted * 100.0,
            f.left_out * 100.0
        );
    }
    let locked = results.kinds.iter().find(|r| r.model == super::Model::Lock);
    if let Some((row, best)) = locked.zip(results.best()) {
        let error = row.point().error(best.meeting, best.handover) * 100.0;
        let _ = writeln!(
            out,
            "predicted ns of '{}' with 2 workers, by {}: {error:+.1} %",
            row.name,
            best.meeting.name()
        );
    }
    out.push('\n');
}

fn predictions(out: &mut String, results: &Results) {
    let machine = results.machine;
    let _ = writeln!(
        out,
        "predicted throughput, relative to one worker; {} cores a socket, communication between sockets costs {} times as much",
        machine.socket, machine.factor
    );
    let _ = write!(out, "{:<30}  {:>8}", "cores", "2 (meas)");
    for n in CORES {
        let _ = write!(out, "  {n:>12}");
    }
    let _ = writeln!(out, "  model");
    for p in &results.predictions {
        let _ = write!(out, "{:<30}  {:>8.2}", p.name, p.two);
        for &cores in &p.cores {
            let _ = write!(out, "  {:>12}", range(cores));
        }
        let _ = writeln!(out, "  {}", p.model);
    }
}

/// CSV with a header: one line for each measurement, fit and prediction.
pub fn csv(results: &Results) -> String {
    let mut out = String::from("what,name,cores,median,min,max\n");
    let mut line = |what: &str, name: &str, cores: usize, s: Spread| {
        let _ = writeln!(out, "{what},\"{name}\",{cores},{:.4},{:.4},{:.4}", s.median, s.min, s.max);
    };
    let shipped = results.shipped.iter().map(|(r, _)| r);
    for r in results.kinds.iter().chain(&results.sweep).chain(shipped) {
        let name = label(r);
        for (i, ((ns, rate), cpu)) in r.ns.into_iter().zip(r.rate).zip(r.cpu).enumerate() {
            line("ns", &name, i + 1, ns);
            line("packets_per_second", &name, i + 1, rate);
            line("cpu_ns", &name, i + 1, cpu);
        }
        line("extra_ns", &name, 2, r.extra);
        line("share_of_ideal", &name, 2, r.left);
        line("waited_share", &name, 2, r.waited);
        if let Some(base) = r.base {
            line("base_ns", &name, 1, base);
        }
    }
    let exact = |n| Spread { median: n, min: n, max: n };
    line("freed_elsewhere_ns", "", 2, exact(results.freed_elsewhere));
    for f in &results.fits {
        line("handover_ns", f.meeting.name(), 2, exact(f.handover));
        line("error_fitted", f.meeting.name(), 2, exact(f.fitted));
        line("error_left_out", f.meeting.name(), 2, exact(f.left_out));
    }
    for p in &results.predictions {
        for (n, &[min, max]) in CORES.into_iter().zip(&p.cores) {
            line("predicted", &p.name, n, Spread { median: (min + max) / 2.0, min, max });
        }
    }
    out
}

fn label(r: &Row) -> String {
    r.target.map_or(r.name.clone(), |t| format!("{}, {:.0} %", r.name, t * 100.0))
}

/// The results as JSON.
pub fn json(results: &Results) -> Value {
    let spread = |s: Spread| json!({ "median": s.median, "min": s.min, "max": s.max });
    let row = |r: &Row| {
        let work = r.work();
        json!({
            "name": label(r),
            "ns": r.ns.map(spread),
            "packets_per_second": r.rate.map(spread),
            "cpu_ns": r.cpu.map(spread),
            "extra_ns": spread(r.extra),
            "share_of_ideal": spread(r.left),
            "waited_share": spread(r.waited),
            "base_ns": r.base.map(spread),
            "serial_ns": r.base.map(|_| work.under),
        })
    };
    let prediction = |p: &Prediction| {
        let cores: Vec<Value> = CORES
            .into_iter()
            .zip(&p.cores)
            .map(|(n, [low, high])| json!({ "cores": n, "low": low, "high": high }))
            .collect();
        json!({ "name": p.name, "two": p.two, "model": p.model, "cores": cores })
    };
    let fit = |f: &super::Fit| {
        json!({
            "model": f.meeting.name(),
            "handover_ns": f.handover,
            "error_fitted": f.fitted,
            "error_left_out": f.left_out,
        })
    };
    let shipped = results.shipped.iter().map(|(r, sharing)| {
        let mut value = row(r);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("sharing".into(), json!(sharing));
        }
        value
    });
    json!({ "scale": {
        "rounds": results.rounds,
        "kinds": results.kinds.iter().map(row).collect::<Vec<_>>(),
        "sweep": results.sweep.iter().map(row).collect::<Vec<_>>(),
        "shipped": shipped.collect::<Vec<_>>(),
        "freed_elsewhere_ns": results.freed_elsewhere,
        "fits": results.fits.iter().map(fit).collect::<Vec<_>>(),
        "predictions": results.predictions.iter().map(prediction).collect::<Vec<_>>(),
        "socket_cores": results.machine.socket,
        "numa_factor": results.machine.factor,
    } })
}
