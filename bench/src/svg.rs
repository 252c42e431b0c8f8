// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the results for Figure 8 as one figure. For each pattern and batch size, the figure has one bar for the
//! configuration, one for the monolith, and the ratio of the two.

use crate::chart;
use crate::fig8::{Results, Row, Spread};
use crate::frames::Traffic;
use std::fmt::Write;

const PANEL: f64 = 360.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 50.0;
const BAR: f64 = 26.0;
const COLORS: [(&str, &str); 2] = [("castanet", "#2f6f8f"), ("monolith", "#c9a227")];

/// Draws the nanoseconds per packet of configuration and monolith, with one panel for each pattern.
pub fn svg(results: &Results) -> String {
    let most = results.rows.iter().flat_map(|r| [r.castanet.median, r.monolith.median]).fold(1.0, f64::max);
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0];
    let step = step.into_iter().find(|s| most / s <= 6.0).unwrap_or(most / 5.0);
    let top = (most * 1.08 / step).ceil() * step;
    let width = LEFT + PANEL * Traffic::ALL.len() as f64 + 20.0;
    let title = "Nanoseconds per packet of configuration and monolith";
    let mut out = chart::open(title, width, TOP + HEIGHT + 60.0);
    let y = |ns: f64| TOP + HEIGHT * (1.0 - (ns / top).min(1.0));
    // Writing to a string cannot fail, so the results of `write!` in this function are ignored.
    let mut ns = 0.0;
    while ns <= top {
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{ns}</text>",
            width - 20.0,
            y(ns),
            LEFT - 6.0,
            y(ns) + 4.0
        );
        ns += step;
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">ns/packet</text>",
        LEFT + 12.0,
        TOP - 12.0
    );
    for (i, (name, color)) in COLORS.into_iter().enumerate() {
        let x = LEFT + 40.0 + 110.0 * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"12\" width=\"12\" height=\"12\" fill=\"{color}\"/><text x=\"{}\" y=\"22\">{name}</text>",
            x + 18.0
        );
    }
    for (i, traffic) in Traffic::ALL.into_iter().enumerate() {
        let rows: Vec<&Row> = results.rows.iter().filter(|r| r.traffic == traffic).collect();
        let left = LEFT + PANEL * i as f64;
        let room = PANEL / rows.len().max(1) as f64;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{traffic}</text>",
            left + PANEL / 2.0,
            TOP + HEIGHT + 45.0
        );
        for (k, r) in rows.into_iter().enumerate() {
            let middle = left + room * (k as f64 + 0.5);
            let bar = BAR.min(room / 3.0);
            for (j, (spread, (_, color))) in [r.castanet, r.monolith].into_iter().zip(COLORS).enumerate() {
                draw(&mut out, middle + bar * (j as f64 - 1.0), bar, spread, color, &y);
            }
            let _ = writeln!(
                out,
                "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">batch {}</text>\
                 <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{:.2}x</text>",
                TOP + HEIGHT + 20.0,
                r.batch,
                y(r.castanet.median) - 8.0,
                r.ratio.median
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, x: f64, width: f64, s: Spread, color: &str, y: &dyn Fn(f64) -> f64) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\"><title>{:.1} ns, {:.1} to {:.1}</title></rect>",
        y(s.median),
        width - 2.0,
        y(0.0) - y(s.median),
        s.median,
        s.min,
        s.max
    );
}
