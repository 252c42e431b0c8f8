// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats results as a table, CSV or JSON.

use super::definition::Series;
use super::{Results, Sample};
use serde_json::{Value, json};
use std::fmt::Write;

/// Whether a figure's horizontal axis shows something other than the load.
fn follows(r: &Results) -> bool {
    r.series.iter().flatten().any(|s| s.x != s.load)
}

fn title(r: &Results, s: &Series) -> &'static str {
    r.what.panels.get(s.panel).copied().unwrap_or_default()
}

/// The sample with the largest deviation from its ideal.
fn furthest(r: &Results) -> Option<(&'static Series, Sample, f64)> {
    let distances = r.iter().flat_map(|(s, all)| all.iter().map(move |p| (s, *p, p.y - (s.ideal)(p.x))));
    distances.max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()))
}

/// The results as a table.
pub fn table(r: &Results) -> String {
    let (dx, dy) = r.what.decimals;
    let files: Vec<&str> = r.what.files.iter().map(|f| f.name).collect();
    let mut out = format!(
        "{}: {}\n{}\n{} by {}{}{}: measured (ideal)\n\n",
        r.what.title,
        files.join(", "),
        r.how,
        r.what.y.shows,
        r.what.x.shows,
        if r.what.x.unit.is_empty() { "" } else { ", " },
        r.what.x.unit
    );
    let wide = follows(r);
    // Writing to a string cannot fail, so the results of `write!` in this function are ignored.
    for (panel, title) in r.what.panels.iter().enumerate() {
        let columns: Vec<_> = r.iter().filter(|(s, _)| s.panel == panel).collect();
        if !title.is_empty() {
            let _ = writeln!(out, "{title}");
        }
        let _ = write!(out, "{:>9}", r.what.load);
        for (s, _) in &columns {
            let _ = if wide { write!(out, "  {:>23}", s.name) } else { write!(out, "  {:>16}", s.name) };
        }
        out.push('\n');
        let rows = columns.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
        for row in 0..rows {
            let load = columns.iter().find_map(|(_, all)| all.get(row)).map_or(0.0, |p| p.load);
            let _ = write!(out, "{load:>9.*}", if wide { dy } else { dx });
            for (s, all) in &columns {
                let p = all.get(row).copied().unwrap_or_default();
                if wide {
                    let _ = write!(out, "  {:>7.dx$}", p.x);
                }
                let ideal = format!("({:.dy$})", (s.ideal)(p.x));
                let _ = write!(out, "  {:>6.dy$} {ideal:>8}", p.y);
                if !wide {
                    out.push(' ');
                }
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        out.push('\n');
    }
    if let Some((s, p, distance)) = furthest(r) {
        let _ = writeln!(
            out,
            "furthest from the ideal curve: {distance:+.dy$} at {:.dx$} ({}{}{})",
            p.x,
            s.name,
            if title(r, s).is_empty() { "" } else { ", " },
            title(r, s)
        );
    }
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// CSV with a header: one line for each sample.
pub fn csv(r: &Results) -> String {
    let mut out = String::from("panel,series,load,x,y,ideal\n");
    for (s, all) in r.iter() {
        for p in all {
            let _ = writeln!(
                out,
                "{},{},{:.6},{:.6},{:.6},{:.6}",
                title(r, s).replace(',', ""),
                s.name,
                p.load,
                p.x,
                p.y,
                (s.ideal)(p.x)
            );
        }
    }
    out
}

/// The results as JSON.
pub fn json(r: &Results) -> Value {
    let series = r.iter().map(|(s, all)| {
        let points =
            all.iter().map(|p| json!({ "load": p.load, "x": p.x, "y": p.y, "ideal": (s.ideal)(p.x) }));
        json!({
            "panel": title(r, s),
            "name": s.name,
            "label": s.label,
            "points": points.collect::<Vec<_>>(),
        })
    });
    let files = r.what.files.iter().map(|f| f.name);
    json!({ r.what.name: {
        "title": r.what.title,
        "files": files.collect::<Vec<_>>(),
        "how": r.how,
        "x": { "shows": r.what.x.shows, "unit": r.what.x.unit },
        "y": { "shows": r.what.y.shows, "unit": r.what.y.unit },
        "series": series.collect::<Vec<_>>(),
        "notes": r.notes,
    } })
}
