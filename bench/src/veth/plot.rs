// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the figures: lines over offered rates or frame lengths, and groups of bars.

use super::figures::{Bar, Grid, Shape};
use super::{Results, Spread};
use crate::chart::{self, Chart};
use std::fmt::Write;

const COLORS: [&str; 9] =
    ["#c9a227", "#2f6f8f", "#9c3d54", "#4f7a3a", "#6b5b95", "#d2691e", "#777", "#1b9e9e", "#b08b6e"];
/// The dashes of lines. The first lines are whole; further lines with the same color are dashed.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""];
/// The width of the drawing area.
const WIDTH: f64 = 560.0;

/// The color and dashes of a line or a kind of bar.
fn style(number: usize) -> (&'static str, &'static str) {
    let pick = |all: &[&'static str], i: usize| all.get(i % all.len().max(1)).copied().unwrap_or_default();
    (pick(&COLORS, number), pick(&DASHES, number / COLORS.len()))
}

/// The number of legends in a row: at most three, and fewer if the texts are long.
fn columns(texts: &[String]) -> usize {
    let longest = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    // A letter is about 6.6 pixels wide, and the mark and the gaps take 30.
    ((WIDTH + 70.0) / (longest as f64 * 6.6 + 30.0)).clamp(1.0, 3.0) as usize
}

/// The axes below these legends.
fn axes(texts: &[String], most: (f64, f64)) -> Chart {
    let rows = texts.len().div_ceil(columns(texts)).max(1);
    Chart { left: 70.0, top: 30.0 + 20.0 * rows as f64, width: WIDTH, height: 380.0, most }
}

/// Draws the legends in rows above the axes.
fn legends(out: &mut String, texts: &[String]) {
    let columns = columns(texts);
    let apart = (WIDTH + 70.0) / columns as f64;
    for (number, text) in texts.iter().enumerate() {
        let (row, column) = (number / columns, number % columns);
        let at = (20.0 + apart * column as f64, 20.0 + 20.0 * row as f64);
        chart::legend(out, at, style(number).0, text);
    }
}

/// Draws the figure.
pub fn svg(r: &Results) -> String {
    match (r.shape(), Grid::of(r)) {
        (Shape::Lengths, Some(grid)) => lengths(r, &grid),
        (_, Some(grid)) => bars(r, &grid),
        (_, None) => rates(r),
    }
}

/// A line with marks, and the spread of each value.
fn line(out: &mut String, chart: &Chart, number: usize, name: &str, values: &[(f64, Spread)], unit: &str) {
    let (color, dashes) = style(number);
    let places = values.iter().map(|(x, s)| (*x, s.median));
    chart.line(out, places, &format!("stroke=\"{color}\" stroke-width=\"2\"{dashes}"));
    for (x, s) in values {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
            chart.y(s.min),
            chart.y(s.max),
            x = chart.x(*x)
        );
        chart.mark(
            out,
            (*x, s.median),
            3.5,
            color,
            &format!("{name}: {x:.0} {unit}, {:.0} forwarded", s.median),
        );
    }
}

/// Forwarded against offered rates, in thousands of packets per second.
fn rates(r: &Results) -> String {
    let cells = || r.points.iter().flat_map(|p| &p.cells);
    let across = cells().map(|c| c.offered / 1e3).fold(1.0, f64::max) * 1.02;
    let up = cells().map(|c| c.forwarded.max / 1e3).fold(1.0, f64::max) * 1.08;
    let text = |(who, name): (usize, &str)| {
        let free = r.capacities.get(who).and_then(|c| c.loss_free);
        free.map_or(name.to_string(), |n| format!("{name} (loss-free {:.0})", n / 1e3))
    };
    let texts: Vec<String> = r.names().enumerate().map(text).collect();
    let chart = axes(&texts, (across, up));
    let mut out = chart::open(r.title(), chart.left + chart.width + 30.0, chart.top + chart.height + 60.0);
    chart.axes(
        &mut out,
        "offered (thousands of packets a second)",
        "forwarded (thousands of packets a second)",
    );
    let end = across.min(up);
    chart.line(&mut out, [(0.0, 0.0), (end, end)], "stroke=\"#bbb\" stroke-dasharray=\"4 4\"");
    for (who, name) in r.names().enumerate() {
        let cells = r.points.iter().filter_map(|p| p.cells.get(who));
        let thousands = |s: Spread| Spread { median: s.median / 1e3, min: s.min / 1e3, max: s.max / 1e3 };
        let mut values: Vec<_> = cells.map(|c| (c.offered / 1e3, thousands(c.forwarded))).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        line(&mut out, &chart, who, name, &values, "offered");
    }
    legends(&mut out, &texts);
    out.push_str(chart::CLOSE);
    out
}

/// The greatest value of a grid, with some room above it.
fn top(grid: &Grid) -> f64 {
    let values = grid.series.iter().flat_map(|s| &s.1).flatten();
    let all = values.flat_map(|v| [Some(v.spread[1]), v.around[0], v.around[1]]).flatten();
    all.fold(0.0, f64::max).max(1e-3) * 1.08
}

/// The maximum forwarding rate against the frame length.
fn lengths(r: &Results, grid: &Grid) -> String {
    let across = grid.across.1.last().copied().unwrap_or(1) as f64 * 1.03;
    let texts: Vec<String> = grid.series.iter().map(|s| s.0.clone()).collect();
    let chart = axes(&texts, (across, top(grid)));
    let mut out = chart::open(r.title(), chart.left + chart.width + 30.0, chart.top + chart.height + 60.0);
    chart.axes(&mut out, grid.across.0, grid.unit);
    for (number, (name, values)) in grid.series.iter().enumerate() {
        let values = grid.across.1.iter().zip(values).filter_map(|(x, v)| {
            let v = (*v)?;
            Some((*x as f64, Spread { median: v.value, min: v.spread[0], max: v.spread[1] }))
        });
        line(&mut out, &chart, number, name, &values.collect::<Vec<_>>(), "bytes");
    }
    legends(&mut out, &texts);
    out.push_str(chart::CLOSE);
    out
}

/// Groups of bars. A pale bar behind another shows the rate that was offered, and a less pale one the rate that was received.
fn bars(r: &Results, grid: &Grid) -> String {
    let groups = grid.across.1.len().max(1);
    let texts: Vec<String> = grid.series.iter().map(|s| s.0.clone()).collect();
    let chart = axes(&texts, (groups as f64, top(grid)));
    let mut out = chart::open(r.title(), chart.left + chart.width + 70.0, chart.top + chart.height + 60.0);
    let parts = grid.series.iter().flat_map(|s| &s.1).flatten().any(|v| v.around[0].is_some());
    let across = if parts {
        format!("{}; pale: offered, less pale: received, full: transmitted", grid.across.0)
    } else {
        grid.across.0.to_string()
    };
    let lengths = || r.subjects.iter().map(|s| s.traffic);
    let gbits = lengths().next().filter(|first| lengths().all(|t| t.length == first.length));
    // The right-hand scale of HPSR 2005: the same rate in Gbit/s, if all frames have the same length.
    let gbits = gbits.filter(|_| grid.unit != "Gbit/s").map(|t| t.gbits(1e3));
    chart.bar_axes(&mut out, [across.as_str(), grid.unit], gbits);
    let width = 0.8 / grid.series.len().max(1) as f64;
    for (number, (name, values)) in grid.series.iter().enumerate() {
        for (i, (place, bar)) in grid.across.1.iter().zip(values).enumerate() {
            let left = i as f64 + 0.1 + width * number as f64;
            if let Some(bar) = bar {
                draw(&mut out, &chart, (left, width), style(number), &format!("{name}, {place}"), *bar);
            }
        }
    }
    legends(&mut out, &texts);
    for (i, place) in grid.across.1.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{place}</text>",
            chart.x(i as f64 + 0.5),
            chart.top + chart.height + 18.0
        );
    }
    out.push_str(chart::CLOSE);
    out
}

/// Draws one bar.
fn draw(
    out: &mut String,
    chart: &Chart,
    (left, width): (f64, f64),
    (color, dashes): (&str, &str),
    name: &str,
    bar: Bar,
) {
    let bottom = chart.y(0.0);
    let (x, width) = (chart.x(left), (chart.x(left + width) - chart.x(left)).max(1.5) - 0.5);
    let names = ["offered", "received", "transmitted"];
    for ((value, opacity), says) in
        [(bar.around[0], 0.25), (bar.around[1], 0.5), (Some(bar.value), 1.0)].into_iter().zip(names)
    {
        let Some(value) = value else { continue };
        let y = chart.y(value);
        let says = if bar.around[0].is_some() {
            format!("{name}: {says} {value:.3}")
        } else {
            format!("{name}: {value:.3}")
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\" fill-opacity=\"{opacity}\"\
             {}><title>{says}</title></rect>",
            (bottom - y).max(0.0),
            if dashes.is_empty() { String::new() } else { format!(" stroke=\"{color}\"{dashes}") },
        );
    }
    let middle = x + width / 2.0;
    let _ = writeln!(
        out,
        "<line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#333\"/>",
        chart.y(bar.spread[0]),
        chart.y(bar.spread[1])
    );
}
