// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture, drawn as Figure 17 of TOCS 2000: forwarded against offered rate, a line a router.

use super::{Results, WHO};
use std::fmt::Write;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;
const COLORS: [&str; 2] = ["#c9a227", "#2f6f8f"];

/// The distance of ticks, in thousands: about six of them up to `most`.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most.max(1e-9) / 6.0).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|n| n * power).find(|s| most / s <= 7.0).unwrap_or(10.0 * power)
}

/// Draws forwarded against offered rates, in thousands of packets a second.
pub fn svg(r: &Results) -> String {
    let cells = || r.points.iter().flat_map(|p| &p.cells);
    let across = cells().map(|c| c.offered / 1e3).fold(1.0, f64::max) * 1.02;
    let up = cells().map(|c| c.forwarded.max / 1e3).fold(1.0, f64::max) * 1.08;
    let x = |kpps: f64| LEFT + WIDTH * kpps / across;
    let y = |kpps: f64| TOP + HEIGHT * (1.0 - kpps / up);
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        right + 30.0,
        bottom + 60.0
    );
    // Writing to a string cannot fail, here and below.
    for (i, step) in [step(up), step(across)].into_iter().enumerate() {
        let most = if i == 0 { up } else { across };
        let mut kpps = 0.0;
        while kpps <= most {
            let _ = if i == 0 {
                let y = y(kpps);
                writeln!(
                    out,
                    "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{kpps}</text>",
                    LEFT - 6.0,
                    y + 4.0
                )
            } else {
                let x = x(kpps);
                writeln!(
                    out,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
                     <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{kpps}</text>",
                    bottom + 18.0
                )
            };
            kpps += step;
        }
    }
    let (middle, line) = (LEFT + WIDTH / 2.0, TOP + HEIGHT / 2.0);
    let end = across.min(up);
    let _ = writeln!(
        out,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">offered (thousands of packets a second)</text>\
         <text x=\"18\" y=\"{line}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {line})\">forwarded (thousands of \
         packets a second)</text>\n\
         <line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#bbb\" stroke-dasharray=\"4 4\"/>",
        bottom + 42.0,
        x(0.0),
        y(0.0),
        x(end),
        y(end)
    );
    for (who, (name, color)) in WHO.into_iter().zip(COLORS).enumerate() {
        let mut cells: Vec<_> = r.points.iter().filter_map(|p| p.cells.get(who)).collect();
        cells.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let line: Vec<String> = cells
            .iter()
            .map(|c| format!("{:.1},{:.1}", x(c.offered / 1e3), y(c.forwarded.median / 1e3)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for c in cells {
            let (x, median) = (x(c.offered / 1e3), c.forwarded.median / 1e3);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>\
                 <circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{color}\"><title>{name}: {:.0} offered, {median:.0} \
                 forwarded</title></circle>",
                y(c.forwarded.min / 1e3),
                y(c.forwarded.max / 1e3),
                y(median),
                c.offered / 1e3
            );
        }
        let at = LEFT + 20.0 + 300.0 * who as f64;
        let free = r.capacities.get(who).map_or(0.0, |c| c.loss_free / 1e3);
        let _ = writeln!(
            out,
            "<rect x=\"{at}\" y=\"20\" width=\"12\" height=\"12\" fill=\"{color}\"/><text x=\"{}\" y=\"30\">{name} (loss-free \
             to {free:.0})</text>",
            at + 18.0
        );
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn ticks_are_round_numbers() {
        for (most, want) in
            [(1.0, 0.2), (7.0, 1.0), (8.0, 2.0), (940.0, 200.0), (1400.0, 200.0), (1500.0, 500.0)]
        {
            assert!((step(most) - want).abs() < 1e-9, "{most}: {}", step(most));
        }
    }
}
