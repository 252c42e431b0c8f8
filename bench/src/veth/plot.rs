// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the figure like Figure 17 of TOCS 2000: forwarded against offered rate, one line for each router.

use super::Results;
use crate::chart::{self, Chart};
use std::fmt::Write;

const COLORS: [&str; 7] = ["#c9a227", "#2f6f8f", "#9c3d54", "#4f7a3a", "#6b5b95", "#d2691e", "#777"];
/// The number of legends in a row.
const LEGENDS: usize = 3;

/// Draws forwarded against offered rates, in thousands of packets per second, with this title.
pub fn svg(r: &Results, title: &str) -> String {
    let cells = || r.points.iter().flat_map(|p| &p.cells);
    let across = cells().map(|c| c.offered / 1e3).fold(1.0, f64::max) * 1.02;
    let up = cells().map(|c| c.forwarded.max / 1e3).fold(1.0, f64::max) * 1.08;
    let rows = r.names.len().div_ceil(LEGENDS).max(1);
    let chart =
        Chart { left: 70.0, top: 30.0 + 20.0 * rows as f64, width: 560.0, height: 380.0, most: (across, up) };
    let mut out = chart::open(title, chart.left + chart.width + 30.0, chart.top + chart.height + 60.0);
    chart.axes(
        &mut out,
        "offered (thousands of packets a second)",
        "forwarded (thousands of packets a second)",
    );
    let end = across.min(up);
    chart.line(&mut out, [(0.0, 0.0), (end, end)], "stroke=\"#bbb\" stroke-dasharray=\"4 4\"");
    for (who, (name, color)) in r.names.iter().zip(COLORS.into_iter().cycle()).enumerate() {
        let mut cells: Vec<_> = r.points.iter().filter_map(|p| p.cells.get(who)).collect();
        cells.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let line = cells.iter().map(|c| (c.offered / 1e3, c.forwarded.median / 1e3));
        chart.line(&mut out, line, &format!("stroke=\"{color}\" stroke-width=\"2\""));
        for c in cells {
            let (offered, median) = (c.offered / 1e3, c.forwarded.median / 1e3);
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
                chart.y(c.forwarded.min / 1e3),
                chart.y(c.forwarded.max / 1e3),
                x = chart.x(offered)
            );
            let says = format!("{name}: {offered:.0} offered, {median:.0} forwarded");
            chart.mark(&mut out, (offered, median), 3.5, color, &says);
        }
        let free = r.capacities.get(who).map_or(0.0, |c| c.loss_free / 1e3);
        let apart = 600.0 / r.names.len().clamp(1, LEGENDS) as f64;
        let (row, column) = (who / LEGENDS, who % LEGENDS);
        let at = (chart.left + 20.0 + apart * column as f64, 20.0 + 20.0 * row as f64);
        chart::legend(&mut out, at, color, &format!("{name} (loss-free to {free:.0})"));
    }
    out.push_str(chart::CLOSE);
    out
}
