// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the results: bars for Figure 6 and bulk transfers, curves for Figures 7 and 8.

use super::contestant::Contestant;
use super::host::HEADERS;
use super::link::{DIRECTIONS, PAPER, SERVERS};
use super::report::DIRECTIONS_OF_ECHO;
use super::{Echo, Results};
use crate::aspl::measure::Cost;
use crate::bars::{Bar, WIDTH, draw as bars, heading};
use crate::chart::{self, Chart, legend};

/// The colours of [`Contestant::ALL`].
const COLORS: [&str; 4] = ["#2f6f8f", "#a23b3b", "#c9a227", "#777777"];

/// Draws all results below each other.
pub fn svg(r: &Results) -> String {
    let mut body = String::new();
    let mut y = 20.0;
    let is_counted = r.echoes.iter().flat_map(|e| &e.costs).flatten().any(|c| c.instructions.is_some());
    let unit = if is_counted { "instructions" } else { "ns" };
    let value = |c: &Cost| c.instructions.filter(|_| is_counted).unwrap_or(c.ns().median);
    let named = || Contestant::ALL.into_iter().zip(COLORS).enumerate();
    if let Some(echo) = r.echoes.first() {
        let all: Vec<Bar<'_>> = named()
            .map(|(i, (contestant, color))| {
                let cost = echo.packet(i);
                let paper =
                    contestant.paper().map_or(String::new(), |p| format!("; the paper: {p:.0} cycles"));
                let says = format!("{:.0} ({:.0} ns{paper})", value(&cost), cost.ns().median);
                (contestant.name(), value(&cost), says, color)
            })
            .collect();
        y = bars(&mut body, y, &format!("Figure 6: {unit} a packet, echo of {} bytes", echo.size), &all);
    }
    if !r.echoes.is_empty() {
        for (direction, (name, figure)) in DIRECTIONS_OF_ECHO.into_iter().enumerate() {
            let title = format!("{figure}: {unit} a packet, {name}");
            y = curves(&mut body, y, &title, &r.echoes, |costs| value(&costs[direction]));
        }
    }
    for bulk in &r.bulk {
        let all: Vec<Bar<'_>> = named()
            .filter_map(|(i, (contestant, color))| {
                let rate = bulk.rates.get(i)?.median;
                Some((contestant.name(), rate, format!("{rate:.1}"), color))
            })
            .collect();
        let reads = if bulk.burst == 1 { "each packet".into() } else { format!("{} packets", bulk.burst) };
        let title = format!("Bulk in memory: Gb/s, the receiver reads after {reads}");
        y = bars(&mut body, y, &title, &all);
    }
    if let Some(l) = &r.link {
        let of = |title: &str, values: [f64; 2], says: [String; 2], body: &mut String, y: f64| {
            let all = SERVERS.into_iter().zip(values).zip(says).zip([COLORS[3], COLORS[0]]);
            let all: Vec<Bar<'_>> = all.map(|(((name, v), says), color)| (name, v, says, color)).collect();
            bars(body, y, title, &all)
        };
        let times = l.latency.map(|q| q.median);
        let says = [0, 1].map(|i| format!("{:.1} (the paper: {:.0})", times[i], PAPER[i]));
        y = of("Figure 6: microseconds end to end, over veth", times, says, &mut body, y);
        for (direction, rates) in DIRECTIONS.into_iter().zip(l.rates) {
            let rates = rates.map(|q| q.median);
            let title = format!("Bulk over veth: Gb/s, the server {direction}");
            y = of(&title, rates, rates.map(|r| format!("{r:.1}")), &mut body, y);
        }
    }
    chart::open("TCP: figures of SIGCOMM 1999", WIDTH, y) + &body + chart::CLOSE
}

/// One line for each contestant, over the size of packets.
fn curves(
    out: &mut String,
    top: f64,
    title: &str,
    echoes: &[Echo],
    value: impl Fn(&[Cost; 2]) -> f64,
) -> f64 {
    heading(out, top, title);
    let across = echoes.iter().map(|e| (e.size + HEADERS) as f64).fold(1.0, f64::max) * 1.02;
    let up = echoes.iter().flat_map(|e| &e.costs).map(&value).fold(1.0, f64::max) * 1.08;
    let chart =
        Chart { left: 80.0, top: top + 50.0, width: WIDTH - 120.0, height: 260.0, most: (across, up) };
    chart.axes(out, "bytes of the packet", "cost of a packet");
    for (i, (contestant, color)) in Contestant::ALL.into_iter().zip(COLORS).enumerate() {
        let points: Vec<(f64, f64)> =
            echoes.iter().filter_map(|e| Some(((e.size + HEADERS) as f64, value(e.costs.get(i)?)))).collect();
        chart.line(out, points.iter().copied(), &format!("stroke=\"{color}\" stroke-width=\"2\""));
        for (x, y) in points {
            let says = format!("{}: {x:.0} bytes, {y:.0}", contestant.name());
            chart.mark(out, (x, y), 3.0, color, &says);
        }
        legend(out, (chart.left + 160.0 * i as f64, top + 24.0), color, contestant.name());
    }
    chart.top + chart.height + 70.0
}
