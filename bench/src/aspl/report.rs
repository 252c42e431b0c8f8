// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::devices::{self, Outcome};
use super::{Line, Results};

use serde_json::{Value, json};
use std::fmt::Write;

/// One of the outcomes of a trial, in packets per second.
type Rate = fn(&Outcome) -> f64;

/// The outcomes of packets, with their names in results, in the order in which Figure 11 adds them up.
pub(super) const OUTCOMES: [(&str, Rate); 5] = [
    ("sent", |o| o.sent),
    ("device drop", |o| o.device),
    ("queue drop", |o| o.queue),
    ("ring overflow", |o| o.ring),
    ("elsewhere", |o| (o.input - o.sent - o.device - o.queue - o.ring).max(0.0)),
];

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |v| format!("{v:.decimals$}"))
}

/// The results as tables.
// Writing to a string cannot fail, so the results of `write!` in this file are ignored.
pub fn table(r: &Results) -> String {
    let mut out = String::new();
    for group in r.lines.chunk_by(|a, b| (a.figure, a.batch) == (b.figure, b.batch)) {
        let Some(first) = group.first() else { continue };
        let batch = if first.batch > 0 { format!("; batch {}", first.batch) } else { String::new() };
        let _ = writeln!(out, "{}{batch}", first.figure.title());
        let _ = writeln!(
            out,
            "{:<34}  {:>27}  {:>6}  {:>7}  {:>6}  {:>8}  {:>6}",
            "", "ns a packet (quartiles)", "ratio", "instr.", "ratio", "paper ns", "ratio"
        );
        for l in group {
            let _ = writeln!(
                out,
                "{:<34}  {:>27}  {:>6.2}  {:>7}  {:>6}  {:>8}  {:>6}",
                l.name,
                l.ns.text(1),
                l.ratio.median,
                number(l.instructions, 0),
                number(l.instruction_ratio, 2),
                number(l.paper, 0),
                number(l.paper_ratio, 2)
            );
        }
        out.push('\n');
    }
    if let Some(d) = &r.devices {
        devices_table(&mut out, d);
    }
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn devices_table(out: &mut String, d: &devices::Results) {
    let [generator, routers] = d.processors;
    let _ = writeln!(
        out,
        "ASPLOS Figures 10 and 11: thousands of packets a second, medians of {} trials of {:.2} s; {} generator on processor \
         {generator}, routers on processor {routers}",
        d.rounds, d.trial, d.generator
    );
    for (i, name) in d.routers.iter().enumerate() {
        let _ = write!(out, "{name:<12}{:>9}", "input");
        for (outcome, _) in OUTCOMES {
            let _ = write!(out, "  {outcome:>13}");
        }
        let _ = writeln!(out, "  {:>7}", "ns");
        for o in d.of(i) {
            let _ = write!(out, "{:<12}{:>9.1}", "", o.input / 1e3);
            for (_, value) in OUTCOMES {
                let _ = write!(out, "  {:>13.1}", value(&o) / 1e3);
            }
            let _ = writeln!(out, "  {:>7.0}", o.ns);
        }
    }
    let _ = writeln!(
        out,
        "\n{:<12}{:>9}  {:>9}  {:>9}  {:>9}  {:>11}",
        "", "peak", "loss-free", "ratio", "overload", "paper MLFFR"
    );
    let base = d.routers.iter().position(|name| name == super::figures::BASE);
    let reference = base.map_or(0.0, |i| d.loss_free(i));
    for (i, name) in d.routers.iter().enumerate() {
        let ratio = Some(d.loss_free(i) / reference).filter(|_| reference > 0.0);
        let _ = writeln!(
            out,
            "{name:<12}{:>9.1}  {:>9.1}  {:>9}  {:>9.1}  {:>11}",
            d.peak(i) / 1e3,
            d.loss_free(i) / 1e3,
            number(ratio, 2),
            d.overload(i) / 1e3,
            number(devices::paper(name).map(|p| p / 1e3), 0)
        );
    }
    out.push('\n');
}

/// CSV with a header. Lines of tables have what was measured in the columns `ns` and `instructions`; those of Figures 10 and 11 have
/// packets per second in the column `rate`, and in the column `input` the rate at which packets were sent to the router.
pub fn csv(r: &Results) -> String {
    let mut out = String::from(
        "figure,batch,name,ns,ns_lower,ns_upper,ratio,instructions,instruction_ratio,paper_ns,paper_ratio,input,outcome,rate\n",
    );
    let optional = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.3}"));
    for l in &r.lines {
        let _ = writeln!(
            out,
            "{},{},\"{}\",{:.3},{:.3},{:.3},{:.4},{},{},{},{},,,",
            l.figure.name(),
            l.batch,
            l.name,
            l.ns.median,
            l.ns.lower,
            l.ns.upper,
            l.ratio.median,
            optional(l.instructions),
            optional(l.instruction_ratio),
            optional(l.paper),
            optional(l.paper_ratio)
        );
    }
    if let Some(d) = &r.devices {
        for (i, name) in d.routers.iter().enumerate() {
            for o in d.of(i) {
                for (outcome, value) in OUTCOMES {
                    let (input, value) = (o.input, value(&o));
                    let _ = writeln!(
                        out,
                        "asplos-11,0,\"{name}\",{:.1},,,,,,,,{input:.0},{outcome},{value:.0}",
                        o.ns
                    );
                }
            }
        }
    }
    out
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let line = |l: &Line| {
        json!({
            "figure": l.figure.name(),
            "batch": l.batch,
            "name": l.name,
            "ns": l.ns.json(),
            "ratio": l.ratio.json(),
            "instructions": l.instructions,
            "instruction_ratio": l.instruction_ratio,
            "paper": { "ns": l.paper, "ratio": l.paper_ratio },
        })
    };
    let devices = r.devices.as_ref().map(|d| {
        let router = |(i, name): (usize, &String)| {
            let point = |o: Outcome| {
                let outcomes = OUTCOMES.into_iter().map(|(name, value)| (name.to_string(), json!(value(&o))));
                json!({ "input": o.input, "ns": o.ns, "outcomes": Value::Object(outcomes.collect()) })
            };
            json!({
                "name": name,
                "points": d.of(i).map(point).collect::<Vec<_>>(),
                "peak": d.peak(i),
                "loss_free": d.loss_free(i),
                "overload": d.overload(i),
                "paper_loss_free": devices::paper(name),
            })
        };
        json!({
            "routers": d.routers.iter().enumerate().map(router).collect::<Vec<_>>(),
            "rounds": d.rounds,
            "trial_seconds": d.trial,
            "generator": d.generator,
            "processors": { "generator": d.processors[0], "routers": d.processors[1] },
        })
    });
    json!({ "aspl": {
        "lines": r.lines.iter().map(line).collect::<Vec<_>>(),
        "devices": devices,
        "notes": r.notes,
    } })
}
