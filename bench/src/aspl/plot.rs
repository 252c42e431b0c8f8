// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the results: bars for the tables, and curves for Figures 10 and 11.

use super::devices::Results as Devices;
use super::report::OUTCOMES;
use super::{Line, Results};
use crate::chart::{self, Chart, legend};
use castanet_graph::drawing::escaped;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 250.0;
const BAR: f64 = 14.0;
const CURVES: f64 = 300.0;
/// The colours of routers in Figure 10, and of outcomes in Figure 11.
const COLORS: [&str; 6] = ["#777777", "#2f6f8f", "#c9a227", "#a23b3b", "#5a8f3c", "#7a4f9a"];
/// The colours of our bars and of the paper's.
const OURS: [&str; 2] = ["#2f6f8f", "#c9a227"];

/// Draws all results below each other.
// Writing to a string cannot fail, so the results of `write!` in this file are ignored.
pub fn svg(r: &Results) -> String {
    let mut body = String::new();
    let mut y = 20.0;
    for group in r.lines.chunk_by(|a, b| (a.figure, a.batch) == (b.figure, b.batch)) {
        y = bars(&mut body, y, group);
    }
    if let Some(d) = &r.devices {
        y = rates(&mut body, y, d);
        for router in 0..d.routers.len() {
            y = outcomes(&mut body, y, d, router);
        }
    }
    chart::open("Figures of ASPLOS 2002 and TOCS 2000", WIDTH, y) + &body + chart::CLOSE
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

/// Draws a table as bars: the ratios of this measurement, in instructions where they were counted, and those of the paper.
fn bars(out: &mut String, top: f64, group: &[Line]) -> f64 {
    let Some(first) = group.first() else { return top };
    let batch = if first.batch > 0 { format!("; batch {}", first.batch) } else { String::new() };
    let _ = writeln!(
        out,
        "<text x=\"10\" y=\"{:.1}\" font-weight=\"bold\">{}{batch}</text>",
        top + 12.0,
        first.figure.title()
    );
    let ours = |l: &Line| l.instruction_ratio.unwrap_or(l.ratio.median);
    let most = group.iter().flat_map(|l| [ours(l), l.paper_ratio.unwrap_or(0.0)]).fold(0.1, f64::max);
    let mut y = top + 40.0;
    let unit = if group.iter().any(|l| l.instruction_ratio.is_some()) { "instructions" } else { "ns" };
    legend(out, (LEFT, y - 18.0), OURS[0], &format!("ratio in {unit}"));
    legend(out, (LEFT + 160.0, y - 18.0), OURS[1], "ratio in the paper, ns");
    for l in group {
        text(out, (LEFT - 8.0, y + BAR), "end", &l.name);
        for (k, (value, color)) in
            [(Some(ours(l)), OURS[0]), (l.paper_ratio, OURS[1])].into_iter().enumerate()
        {
            let Some(value) = value else { continue };
            let at = y + BAR * k as f64;
            let width = (WIDTH - LEFT - 130.0) * (value / most).clamp(0.0, 1.0);
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{at:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\"/>",
                BAR - 2.0
            );
            let ns = if k == 0 { Some(l.ns.median) } else { l.paper };
            let ns = ns.map_or(String::new(), |ns| format!(" ({ns:.1} ns)"));
            text(out, (LEFT + width + 6.0, at + BAR - 3.0), "start", &format!("{value:.2}{ns}"));
        }
        y += 2.0 * BAR + 6.0;
    }
    y + 24.0
}

fn frame(out: &mut String, top: f64, title: &str, most: (f64, f64), up: &str) -> Chart {
    let _ = writeln!(out, "<text x=\"10\" y=\"{:.1}\" font-weight=\"bold\">{title}</text>", top + 12.0);
    let chart = Chart { left: 80.0, top: top + 50.0, width: WIDTH - 120.0, height: CURVES, most };
    chart.axes(out, "input (thousands of packets a second)", up);
    let end = most.0.min(most.1);
    chart.line(out, [(0.0, 0.0), (end, end)], "stroke=\"#bbb\" stroke-dasharray=\"4 4\"");
    chart
}

/// Figure 10: the forwarding rate of each router against the input rate.
fn rates(out: &mut String, top: f64, d: &Devices) -> f64 {
    let all = || (0..d.routers.len()).flat_map(|i| d.of(i));
    let across = all().map(|o| o.input / 1e3).fold(1.0, f64::max) * 1.02;
    let up = all().map(|o| o.sent / 1e3).fold(1.0, f64::max) * 1.08;
    let chart =
        frame(out, top, "ASPLOS Figure 10", (across, up), "forwarded (thousands of packets a second)");
    for (i, (name, color)) in d.routers.iter().zip(COLORS).enumerate() {
        let mut points: Vec<(f64, f64)> = d.of(i).map(|o| (o.input / 1e3, o.sent / 1e3)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.line(out, points.iter().copied(), &format!("stroke=\"{color}\" stroke-width=\"2\""));
        for (x, y) in points {
            chart.mark(out, (x, y), 3.0, color, &format!("{name}: {x:.0} in, {y:.0} forwarded"));
        }
        legend(out, (chart.left + 150.0 * i as f64, top + 24.0), color, name);
    }
    chart.top + chart.height + 70.0
}

/// Figure 11: what becomes of the packets of one router. Each line adds an outcome to those below it.
fn outcomes(out: &mut String, top: f64, d: &Devices, router: usize) -> f64 {
    let Some(name) = d.routers.get(router) else { return top };
    let most = d.of(router).map(|o| o.input / 1e3).fold(1.0, f64::max) * 1.02;
    let title = format!("ASPLOS Figure 11: {name}");
    let chart = frame(out, top, &title, (most, most), "packets (thousands a second), added up");
    let mut points: Vec<_> = d.of(router).collect();
    points.sort_by(|a, b| a.input.total_cmp(&b.input));
    for (i, ((outcome, _), color)) in OUTCOMES.into_iter().zip(COLORS.into_iter().skip(1)).enumerate() {
        let sum =
            |o: &super::devices::Outcome| OUTCOMES.iter().take(i + 1).map(|(_, value)| value(o)).sum::<f64>();
        let line = points.iter().map(|o| (o.input / 1e3, sum(o) / 1e3));
        let style = if i == 0 { "stroke-width=\"2\"" } else { "stroke-dasharray=\"5 3\"" };
        chart.line(out, line, &format!("stroke=\"{color}\" {style}"));
        legend(out, (chart.left + 120.0 * i as f64, top + 24.0), color, outcome);
    }
    chart.top + chart.height + 70.0
}
