// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::contestant::Contestant;
use super::host::HEADERS;
use super::link::{self, DIRECTIONS, PAPER, SERVERS};
use super::{Bulk, Echo, Results};
use crate::aspl::measure::{Cost, Quartiles};
use serde_json::{Value, json};
use std::fmt::Write;

/// The directions of an echo's packets, with the paper's figures on them.
pub(super) const DIRECTIONS_OF_ECHO: [(&str, &str); 2] = [("input", "Figure 7"), ("output", "Figure 8")];

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |v| format!("{v:.decimals$}"))
}

/// The results as tables.
pub fn table(r: &Results) -> String {
    let mut out = String::new();
    if let Some(echo) = r.echoes.first() {
        figure6(&mut out, echo);
    }
    if !r.echoes.is_empty() {
        for (direction, (name, figure)) in DIRECTIONS_OF_ECHO.into_iter().enumerate() {
            let _ = writeln!(out, "SIGCOMM 1999 {figure}: {name}, by the bytes of the packet");
            sizes(&mut out, &r.echoes, direction);
        }
    }
    for bulk in &r.bulk {
        transfers(&mut out, bulk);
    }
    if let Some(link) = &r.link {
        between(&mut out, link);
    }
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn figure6(out: &mut String, echo: &Echo) {
    let _ = writeln!(
        out,
        "SIGCOMM 1999 Figure 6, processing: echo of {} bytes, mean of input and output; ratios to {}\n\
         {:<22}  {:>24}  {:>5}  {:>7}  {:>5}  {:>12}  {:>5}",
        echo.size,
        Contestant::Castanet.name(),
        "",
        "ns a packet (quartiles)",
        "ratio",
        "instr.",
        "ratio",
        "paper cycles",
        "ratio"
    );
    let base = echo.packet(0);
    for (i, contestant) in Contestant::ALL.into_iter().enumerate() {
        let cost = echo.packet(i);
        let (ns, instructions) = cost.ratio(&base);
        let paper = contestant.paper().zip(Contestant::Castanet.paper()).map(|(a, b)| a / b);
        let _ = writeln!(
            out,
            "{:<22}  {:>24}  {:>5.2}  {:>7}  {:>5}  {:>12}  {:>5}",
            contestant.name(),
            cost.ns().text(1),
            ns.median,
            number(cost.instructions, 0),
            number(instructions, 2),
            number(contestant.paper(), 0),
            number(paper, 2)
        );
    }
    out.push('\n');
}

fn sizes(out: &mut String, echoes: &[Echo], direction: usize) {
    let _ = write!(out, "{:>6}", "");
    for contestant in Contestant::ALL {
        let _ = write!(out, "  {:^33}", contestant.name());
    }
    let _ = write!(out, "\n{:>6}", "bytes");
    for _ in Contestant::ALL {
        let _ = write!(out, "  {:>24}  {:>7}", "ns (quartiles)", "instr.");
    }
    out.push('\n');
    for echo in echoes {
        let _ = write!(out, "{:>6}", echo.size + HEADERS);
        for costs in &echo.costs {
            let Some(cost) = costs.get(direction) else { continue };
            let (ns, count) = (cost.ns().text(1), number(cost.instructions, 0));
            let _ = write!(out, "  {ns:>24}  {count:>7}");
        }
        out.push('\n');
    }
    out.push('\n');
}

fn transfers(out: &mut String, bulk: &Bulk) {
    let _ = writeln!(
        out,
        "Bulk in memory, MTU 1500, both hosts on one processor; the receiver reads after {}\n\
         {:<22}  {:>22}  {:>25}  {:>7}  {:>5}  {:>12}",
        if bulk.burst == 1 { "each packet".into() } else { format!("{} packets", bulk.burst) },
        "",
        "Gb/s (quartiles)",
        "ns a segment (quartiles)",
        "instr.",
        "ratio",
        "ACKs/segment"
    );
    let base = bulk.costs.first().cloned().unwrap_or_default();
    let each = Contestant::ALL.iter().zip(&bulk.costs).zip(&bulk.rates).zip(&bulk.acknowledgements);
    for (((contestant, cost), rate), acknowledgements) in each {
        let _ = writeln!(
            out,
            "{:<22}  {:>22}  {:>25}  {:>7}  {:>5}  {acknowledgements:>12.2}",
            contestant.name(),
            rate.text(2),
            cost.ns().text(0),
            number(cost.instructions, 0),
            number(cost.ratio(&base).1, 2),
        );
    }
    out.push('\n');
}

fn between(out: &mut String, l: &link::Results) {
    let [client, servers] = l.processors;
    let _ = writeln!(
        out,
        "SIGCOMM 1999 Figure 6, end to end: over veth, {} trials; the client (kernel) on processor {client}, servers on processor \
         {servers}\n{:<10}  {:>24}  {:>8}  {:>22}  {:>22}",
        l.trials, "server", "round trip, us", "paper us", "receives, Gb/s", "sends, Gb/s"
    );
    for (i, name) in SERVERS.into_iter().enumerate() {
        let [receives, sends] = [0, 1].map(|d| l.rates[d].get(i).copied().unwrap_or_default());
        let latency = l.latency.get(i).copied().unwrap_or_default();
        let _ = writeln!(
            out,
            "{name:<10}  {:>24}  {:>8.0}  {:>22}  {:>22}",
            latency.text(1),
            PAPER.get(i).copied().unwrap_or_default(),
            receives.text(2),
            sends.text(2)
        );
    }
    let share = |of: [Quartiles; 2]| of[1].median / of[0].median.max(1e-9);
    let _ = writeln!(
        out,
        "{:<10}  {:>24.2}  {:>8.2}  {:>22.2}  {:>22.2}\n",
        "ratio",
        l.latency_ratio.median,
        PAPER[1] / PAPER[0],
        share(l.rates[0]),
        share(l.rates[1])
    );
}

/// CSV with a header: one line for each value.
pub fn csv(r: &Results) -> String {
    let mut out = String::from("what,name,size,unit,median,lower,upper\n");
    let mut line = |what: &str, name: &str, size: usize, unit: &str, q: Quartiles| {
        let _ =
            writeln!(out, "{what},\"{name}\",{size},{unit},{:.4},{:.4},{:.4}", q.median, q.lower, q.upper);
    };
    let exact = |n: f64| Quartiles { lower: n, median: n, upper: n };
    for echo in &r.echoes {
        for (contestant, costs) in Contestant::ALL.into_iter().zip(&echo.costs) {
            for ((direction, _), cost) in DIRECTIONS_OF_ECHO.into_iter().zip(costs) {
                line(direction, contestant.name(), echo.size + HEADERS, "ns", cost.ns());
                if let Some(n) = cost.instructions {
                    line(direction, contestant.name(), echo.size + HEADERS, "instructions", exact(n));
                }
            }
        }
    }
    for bulk in &r.bulk {
        for ((contestant, cost), rate) in Contestant::ALL.into_iter().zip(&bulk.costs).zip(&bulk.rates) {
            line("bulk", contestant.name(), bulk.burst, "Gb/s", *rate);
            line("bulk", contestant.name(), bulk.burst, "ns", cost.ns());
            if let Some(n) = cost.instructions {
                line("bulk", contestant.name(), bulk.burst, "instructions", exact(n));
            }
        }
    }
    if let Some(l) = &r.link {
        for (name, latency) in SERVERS.into_iter().zip(l.latency) {
            line("round trip", name, 4, "us", latency);
        }
        for (direction, rates) in DIRECTIONS.into_iter().zip(l.rates) {
            for (name, rate) in SERVERS.into_iter().zip(rates) {
                line(direction, name, 0, "Gb/s", rate);
            }
        }
    }
    out
}

fn cost(c: &Cost) -> Value {
    json!({ "ns": c.ns().json(), "instructions": c.instructions })
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let named = |of: &dyn Fn(usize) -> Value| {
        let all = Contestant::ALL.iter().enumerate().map(|(i, c)| (c.name().to_string(), of(i)));
        Value::Object(all.collect())
    };
    let echo = |e: &Echo| {
        let of = |i: usize| match e.costs.get(i) {
            Some([input, output]) => json!({ "input": cost(input), "output": cost(output) }),
            None => Value::Null,
        };
        json!({ "data": e.size, "packet": e.size + HEADERS, "costs": named(&of) })
    };
    let bulk = |b: &Bulk| {
        let of = |i: usize| {
            json!({
                "gbps": b.rates.get(i).copied().map(Quartiles::json),
                "segment": b.costs.get(i).map(cost),
                "acknowledgements": b.acknowledgements.get(i),
            })
        };
        json!({ "burst": b.burst, "costs": named(&of) })
    };
    let link = r.link.as_ref().map(|l| {
        let of = |i: usize| {
            json!({
                "round_trip_us": l.latency.get(i).copied().map(Quartiles::json),
                "receives_gbps": l.rates[0].get(i).copied().map(Quartiles::json),
                "sends_gbps": l.rates[1].get(i).copied().map(Quartiles::json),
            })
        };
        json!({ "trials": l.trials, "kernel": of(0), "castanet": of(1), "processors": l.processors })
    });
    json!({ "tcp": {
        "echo": r.echoes.iter().map(echo).collect::<Vec<_>>(),
        "bulk": r.bulk.iter().map(bulk).collect::<Vec<_>>(),
        "link": link,
        "paper": { "cycles": Contestant::ALL.map(Contestant::paper), "latency_us": PAPER },
        "notes": r.notes,
    } })
}
