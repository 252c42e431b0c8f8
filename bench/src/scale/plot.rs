// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the sweep over the share of work under a lock, and the predictions.

use super::{CORES, Results};
use crate::chart::{CLOSE, Chart, Coordinates, legend, open};
use std::fmt::Write;

const COLORS: [&str; 8] =
    ["#2f6f8f", "#c9a227", "#a23b52", "#3f8f4f", "#7a52a2", "#d9772b", "#444444", "#4aa3a3"];

fn color(i: usize) -> &'static str {
    COLORS.get(i % COLORS.len()).copied().unwrap_or("black")
}

/// Draws two charts. The first shows the measured and the modelled throughput of two workers over the share of work
/// under the lock. The second shows the predicted throughput over the number of cores, with its range as a shaded area.
pub fn svg(results: &Results) -> String {
    let mut out = open("Throughput of workers that share elements", 1180.0, 440.0);
    lock(&mut out, results);
    cores(&mut out, results);
    out.push_str(CLOSE);
    out
}

fn lock(out: &mut String, results: &Results) {
    let chart = Chart { left: 70.0, top: 60.0, width: 360.0, height: 310.0, most: (70.0, 2.2) };
    chart.axes(out, "share of the work under the lock, %", "throughput of 2 workers, relative to 1");
    let rows: Vec<_> = results
        .sweep
        .iter()
        .map(|r| {
            let [one, _] = r.ns;
            (r, r.work().under / one.median.max(1e-9) * 100.0)
        })
        .collect();
    for (i, f) in results.fits.iter().enumerate() {
        let places: Vec<Coordinates> =
            rows.iter().map(|(r, share)| (*share, r.work().speedup(f.meeting, f.handover, 2))).collect();
        chart.line(out, places, &format!("stroke=\"{}\" stroke-width=\"1.5\"", color(i + 1)));
        legend(out, (80.0 + 110.0 * i as f64, 14.0), color(i + 1), f.meeting.name());
    }
    for (r, share) in rows {
        let says = format!("{share:.1} %: {:.2}", 2.0 * r.left.median);
        let (low, high) = ((share, 2.0 * r.left.min), (share, 2.0 * r.left.max));
        chart.line(out, [low, high], &format!("stroke=\"{}\"", color(0)));
        chart.mark(out, (share, 2.0 * r.left.median), 4.0, color(0), &says);
    }
    legend(out, (80.0, 36.0), color(0), "measured, minimum to maximum");
}

fn cores(out: &mut String, results: &Results) {
    let most = CORES.into_iter().max().unwrap_or(64) as f64;
    let chart = Chart { left: 520.0, top: 60.0, width: 400.0, height: 310.0, most: (most, most) };
    chart.axes(out, "cores, one worker each", "throughput, relative to one worker");
    chart.line(out, [(0.0, 0.0), (most, most)], "stroke=\"#999\" stroke-dasharray=\"4 4\"");
    legend(out, (940.0, 60.0), "#999", "ideal");
    let drawn = |name: &str| {
        let shown = ["independent chains", "one Queue, several pullers", "several sources, one Queue"];
        let shown = shown.contains(&name) || name.starts_with("locked work");
        (shown && !name.contains("10 %") && !name.contains("25 %") && !name.contains("45 %"))
            || results.shipped.iter().any(|(r, _)| r.name == name)
    };
    for (i, p) in results.predictions.iter().filter(|p| drawn(&p.name)).enumerate() {
        let dash = if i < COLORS.len() { "" } else { " stroke-dasharray=\"6 3\"" };
        let known = [(1.0, [1.0, 1.0]), (2.0, [p.two, p.two])].into_iter();
        let all: Vec<(f64, [f64; 2])> =
            known.chain(CORES.into_iter().map(|n| n as f64).zip(p.cores.iter().copied())).collect();
        let edge = all.iter().map(|(n, [low, _])| (*n, *low));
        let back = all.iter().rev().map(|(n, [_, high])| (*n, *high));
        let area: Vec<String> =
            edge.chain(back).map(|(x, y)| format!("{:.1},{:.1}", chart.x(x), chart.y(y))).collect();
        let _ = writeln!(
            out,
            "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.08\"/>",
            area.join(" "),
            color(i)
        );
        for end in 0..2 {
            let places = all.iter().map(|(n, ends)| (*n, ends.get(end).copied().unwrap_or_default()));
            chart.line(out, places, &format!("stroke=\"{}\" stroke-width=\"1.5\"{dash}", color(i)));
        }
        legend(out, (940.0, 82.0 + 22.0 * i as f64), color(i), &p.name);
    }
}
