// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats the costs of classes as a table, CSV or JSON.

use super::{Cost, Results};
use crate::aspl::measure::Quartiles;
use serde_json::{Value, json};
use std::fmt::Write;

/// The results as a table, with one line for each class.
pub fn table(r: &Results) -> String {
    let mut out = String::from("ns a packet more than a Null, median (quartiles)\n");
    let width = r.rows.iter().map(|row| row.class.len()).max().unwrap_or_default().max(5);
    let counted = r.rows.iter().flat_map(|row| &row.costs).any(|c| c.instructions.is_some());
    // Writing to a string cannot fail, so the results of `write!` in this file are ignored.
    let _ = write!(out, "{:width$}", "class");
    for cost in r.rows.first().map_or(&[][..], |row| &row.costs) {
        let _ = write!(out, "  {:>26}", format!("batch {}", cost.batch));
        if counted {
            let _ = write!(out, "  {:>7}", "instr.");
        }
    }
    out.push('\n');
    for row in &r.rows {
        let _ = write!(out, "{:width$}", row.class);
        for Cost { ns, instructions, .. } in &row.costs {
            let ns = format!("{:.1} ({:.1} to {:.1})", ns.median, ns.lower, ns.upper);
            let _ = write!(out, "  {ns:>26}");
            if counted {
                let _ = write!(out, "  {:>7}", instructions.map_or("-".into(), |n| format!("{n:.0}")));
            }
        }
        out.push('\n');
    }
    if !r.others.is_empty() {
        out.push_str("\nnot measured:\n");
    }
    for (class, reason) in &r.others {
        let _ = writeln!(out, "{class}: {}", reason.lines().next().unwrap_or_default());
    }
    out
}

/// CSV with a header: one line for each class and batch size.
pub fn csv(r: &Results) -> String {
    let mut out = String::from("class,batch,rounds,ns,ns_lower,ns_upper,ends_ns,instructions\n");
    for row in &r.rows {
        for c in &row.costs {
            let instructions = c.instructions.map_or(String::new(), |n| format!("{n:.3}"));
            let _ = writeln!(
                out,
                "{},{},{},{:.3},{:.3},{:.3},{:.3},{instructions}",
                row.class, c.batch, c.rounds, c.ns.median, c.ns.lower, c.ns.upper, c.ends.median
            );
        }
    }
    out
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let quartiles = |q: Quartiles| json!({ "lower": q.lower, "median": q.median, "upper": q.upper });
    let cost = |c: &Cost| {
        json!({
            "batch": c.batch,
            "rounds": c.rounds,
            "ns": quartiles(c.ns),
            "ends_ns": quartiles(c.ends),
            "instructions": c.instructions,
        })
    };
    let rows = r.rows.iter().map(|row| {
        json!({
            "class": row.class,
            "element": row.element,
            "costs": row.costs.iter().map(cost).collect::<Vec<_>>(),
        })
    });
    let others = r.others.iter().map(|(class, reason)| json!({ "class": class, "reason": reason }));
    json!({ "classes": rows.collect::<Vec<_>>(), "not_measured": others.collect::<Vec<_>>() })
}
