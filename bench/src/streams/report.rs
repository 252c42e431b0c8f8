// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::Results;
use crate::aspl::measure::Quartiles;
use serde_json::{Value, json};
use std::fmt::Write;

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.

/// The results as a table.
pub fn table(r: &Results) -> String {
    let mut out = format!(
        "TCP across the routers, over veth, {} trials; the programs share all processors\n\
         {:<10}  {:<22}  {:>22}  {:>5}  {:>24}\n",
        r.trials, "router", "offloads", "Gb/s (quartiles)", "ratio", "round trip, us"
    );
    for m in &r.routers {
        let _ = writeln!(
            out,
            "{:<10}  {:<22}  {:>22}  {:>5.2}  {:>24}",
            m.name,
            m.offloads.name(),
            m.rate.text(2),
            m.ratio.median,
            m.latency.text(1)
        );
    }
    out
}

/// CSV with a header: one line for each value.
pub fn csv(r: &Results) -> String {
    let mut out = String::from("router,offloads,what,unit,median,lower,upper\n");
    for m in &r.routers {
        let values: [(&str, &str, Quartiles); 3] =
            [("rate", "Gb/s", m.rate), ("rate", "ratio", m.ratio), ("round trip", "us", m.latency)];
        for (what, unit, q) in values {
            let _ = writeln!(
                out,
                "{},{},{what},{unit},{:.4},{:.4},{:.4}",
                m.name,
                m.offloads.name(),
                q.median,
                q.lower,
                q.upper
            );
        }
    }
    out
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let router = |m: &super::Measured| {
        json!({
            "router": m.name,
            "offloads": m.offloads.name(),
            "gbps": m.rate.json(),
            "ratio": m.ratio.json(),
            "round_trip_us": m.latency.json(),
        })
    };
    json!({ "streams": { "trials": r.trials, "routers": r.routers.iter().map(router).collect::<Vec<_>>() } })
}
