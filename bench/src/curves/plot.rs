// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the figure: ideal curves as thin lines, measurements as marks, each line with its name beside it.

use super::{Results, Sample};
use crate::chart::{self, CLOSE, Chart};
use std::fmt::Write;

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 72.0;
/// The width reserved for names to the right of each panel, in pixels.
const BESIDE: f64 = 64.0;
/// The number of line segments that make up an ideal curve.
const FINE: u32 = 860;
/// The height of a line of text, in pixels.
const LINE: f64 = 18.0;

/// Moves the heights of names apart until the names do not overlap. The heights are sorted from top to bottom, and
/// none is moved below `bottom`.
fn apart(places: &mut [f64], bottom: f64) {
    const ROOM: f64 = 13.0;
    let mut last = f64::NEG_INFINITY;
    for y in places.iter_mut() {
        *y = y.max(last + ROOM);
        last = *y;
    }
    let mut next = bottom + ROOM;
    for y in places.iter_mut().rev() {
        *y = y.min(next - ROOM);
        next = *y;
    }
}

/// Draws all panels side by side.
pub fn svg(r: &Results) -> String {
    let what = r.what;
    let (ux, uy) = (what.x.scale, what.y.scale);
    let most = |end: f64, of: fn(&Sample) -> f64| match end {
        e if e > 0.0 => e,
        _ => r.series.iter().flatten().map(of).fold(0.0, f64::max) * 1.04,
    };
    let most = (most(what.ends.0, |p| p.x).max(1e-9) / ux, most(what.ends.1, |p| p.y).max(1e-9) / uy);
    let lines = (0..what.panels.len()).map(|i| r.iter().filter(|(s, _)| s.panel == i).count()).max();
    let bottom = TOP + HEIGHT + 66.0;
    let width = LEFT + (WIDTH + BESIDE) * what.panels.len() as f64 + LEFT * (what.panels.len() as f64 - 1.0);
    let mut out = chart::open(what.title, width, bottom + LINE * (lines.unwrap_or(0) as f64 + 1.0) + 6.0);
    // Writing to a string cannot fail, so the results of `write!` in this function are ignored.
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\
         <text x=\"{LEFT}\" y=\"40\" fill=\"#555\">{}; lines: ideal, marks: measured</text>",
        what.title, r.how
    );
    for (panel, title) in what.panels.iter().enumerate() {
        let left = LEFT + (WIDTH + BESIDE + LEFT) * panel as f64;
        let chart = Chart { left, top: TOP, width: WIDTH, height: HEIGHT, most };
        chart.axes(&mut out, &what.x.label(), &what.y.label());
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{title}</text>",
            left + WIDTH / 2.0,
            TOP - 8.0
        );
        let mut names = Vec::new();
        for (row, (s, all)) in r.iter().filter(|(s, _)| s.panel == panel).enumerate() {
            let ideal = |i: u32| {
                let x = most.0 * f64::from(i) / f64::from(FINE);
                (x, (s.ideal)(x * ux) / uy)
            };
            let style = format!("stroke=\"{}\" stroke-width=\"1.5\"", s.color);
            chart.line(&mut out, (0..=FINE).map(ideal), &style);
            // Series have marks of different sizes, so that marks that coincide stay visible.
            let radius = 5.0 - 1.2 * row.min(3) as f64;
            for p in all {
                let (dx, dy) = what.decimals;
                let says = format!("{}: {:.dy$} at {:.dx$}", s.name, p.y, p.x);
                chart.mark(&mut out, (p.x / ux, p.y / uy), radius, s.color, &says);
            }
            chart::legend(&mut out, (left, bottom + LINE * row as f64), s.color, s.label);
            names.push((chart.y(ideal(FINE).1), s));
        }
        // If all lines end at the same height, only the legend names them.
        if names.windows(2).all(|pair| matches!(pair, [a, b] if (a.0 - b.0).abs() < 0.5)) {
            names.clear();
        }
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut places: Vec<f64> = names.iter().map(|(y, _)| y + 4.0).collect();
        apart(&mut places, TOP + HEIGHT + 4.0);
        for (y, (_, s)) in places.iter().zip(&names) {
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{y:.1}\" fill=\"{}\" font-weight=\"bold\">{}</text>",
                left + WIDTH + 6.0,
                s.color,
                s.name
            );
        }
    }
    out.push_str(CLOSE);
    out
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn names_do_not_cover_each_other() {
        for (mut places, want) in [
            (vec![], vec![]),
            (vec![10.0, 50.0], vec![10.0, 50.0]),
            (vec![10.0, 12.0, 13.0], vec![10.0, 23.0, 36.0]),
            (vec![98.0, 99.0, 100.0], vec![74.0, 87.0, 100.0]),
        ] {
            apart(&mut places, 100.0);
            assert_eq!(places, want);
        }
    }
}
