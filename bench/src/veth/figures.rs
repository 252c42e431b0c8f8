// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of papers that the measurement draws: their axes, and the values that the papers state.

use super::{Results, Subject};
use serde_json::{Value, json};
use std::fmt::Write;

/// A figure of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// TOCS 2000, Figure 17.
    Tocs17,
    /// SOSP 1999, Figure 15.
    Sosp15,
    /// SOSP 1999, Figure 16.
    Sosp16,
    /// SOSP 1999, Figure 17.
    Sosp17,
    /// HPSR 2005, Figure 4.
    Hpsr4,
    /// HPSR 2005, Figure 5.
    Hpsr5,
    /// HPSR 2005, Figure 6(a).
    Hpsr6a,
    /// HPSR 2005, Figure 6(b).
    Hpsr6b,
    /// HPSR 2005, Figure 7.
    Hpsr7,
}

/// Results that a paper states in its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The name of the router in the paper.
    pub router: &'static str,
    /// Values, with their place on the horizontal axis.
    pub values: &'static [(usize, f64)],
}

/// The axes of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Forwarded against offered rates: a line for each subject.
    Rates,
    /// The maximum forwarding rate against the frame length: a line for each router.
    Lengths,
    /// The rate in saturation for each number of flows: a bar for each router.
    Flows,
    /// The rate in saturation in Gbit/s for each length of the payload: a bar for each router.
    Payloads,
}

/// The bytes of an Ethernet header.
const ETHER_HEADER: usize = 14;

impl Figure {
    /// All figures.
    pub const ALL: [Figure; 9] = [
        Figure::Tocs17,
        Figure::Sosp15,
        Figure::Sosp16,
        Figure::Sosp17,
        Figure::Hpsr4,
        Figure::Hpsr5,
        Figure::Hpsr6a,
        Figure::Hpsr6b,
        Figure::Hpsr7,
    ];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Tocs17 => "tocs-17",
            Figure::Sosp15 => "sosp-15",
            Figure::Sosp16 => "sosp-16",
            Figure::Sosp17 => "sosp-17",
            Figure::Hpsr4 => "hpsr-4",
            Figure::Hpsr5 => "hpsr-5",
            Figure::Hpsr6a => "hpsr-6a",
            Figure::Hpsr6b => "hpsr-6b",
            Figure::Hpsr7 => "hpsr-7",
        }
    }

    /// The title of the drawing.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Tocs17 => "TOCS 2000, Figure 17: forwarding rate of the IP router against the input rate",
            Figure::Sosp15 => {
                "SOSP 1999, Figure 15: forwarding rate against the input rate, of the IP router and of simple forwarding"
            }
            Figure::Sosp16 => "SOSP 1999, Figure 16: effect of the frame size on the maximum forwarding rate",
            Figure::Sosp17 => {
                "SOSP 1999, Figure 17: forwarding rate against the input rate, of some configurations"
            }
            Figure::Hpsr4 => "HPSR 2005, Figure 4: reception rate against the number of receiving interfaces",
            Figure::Hpsr5 => {
                "HPSR 2005, Figure 5: transmission rate against the number of sending interfaces"
            }
            Figure::Hpsr6a => "HPSR 2005, Figure 6(a): transfer rate against the number of flows",
            Figure::Hpsr6b => "HPSR 2005, Figure 6(b): transfer rate for several payload sizes",
            Figure::Hpsr7 => "HPSR 2005, Figure 7: forwarding rate of IP routers against the number of flows",
        }
    }

    /// The axes.
    fn shape(self) -> Shape {
        match self {
            Figure::Tocs17 | Figure::Sosp15 | Figure::Sosp17 => Shape::Rates,
            Figure::Sosp16 => Shape::Lengths,
            Figure::Hpsr4 | Figure::Hpsr5 | Figure::Hpsr6a | Figure::Hpsr7 => Shape::Flows,
            Figure::Hpsr6b => Shape::Payloads,
        }
    }

    /// The quantity on the horizontal axis of bars.
    pub(super) fn groups(self) -> &'static str {
        match self {
            Figure::Hpsr4 => "receiving interfaces",
            Figure::Hpsr5 => "sending interfaces",
            Figure::Hpsr6b => "payload (bytes)",
            _ => "flows",
        }
    }

    /// The values that the paper states in its text, in the unit of the figure.
    pub fn stated(self) -> &'static [Stated] {
        match self {
            // Section 6.2: 73,000 packets of 64 bytes.
            Figure::Sosp16 => &[Stated { router: "Click 1999", values: &[(60, 73.0)] }],
            // Section IV-B. A link of 1 Gbit/s carries 1,488 thousand.
            Figure::Hpsr4 => &[
                Stated { router: "Linux udpcount 2005", values: &[(1, 1100.0), (8, 1000.0)] },
                Stated { router: "Linux no touch 2005", values: &[(1, 1488.0), (8, 1250.0)] },
                Stated { router: "Click udpcount 2005", values: &[(1, 1488.0), (2, 3000.0), (8, 3000.0)] },
            ],
            // Section IV-C.
            Figure::Hpsr5 => &[
                Stated { router: "Linux packetgen 2005", values: &[(1, 740.0), (8, 690.0)] },
                Stated { router: "Click udpgen 2005", values: &[(1, 730.0), (7, 4200.0), (8, 4200.0)] },
            ],
            // Section IV-D.
            Figure::Hpsr6a => &[
                Stated { router: "Linux 2005", values: &[(1, 650.0), (2, 1200.0), (4, 1000.0)] },
                Stated { router: "Click 2005", values: &[(1, 650.0), (2, 1200.0), (3, 1800.0), (4, 2100.0)] },
            ],
            Figure::Hpsr6b => &[Stated { router: "best of 2005", values: &[(1500, 5.5)] }],
            _ => &[],
        }
    }

    /// Further statements in the paper's text about its results.
    pub(super) fn remarks(self) -> &'static [&'static str] {
        match self {
            Figure::Tocs17 => &[
                "TOCS 2000, section 6.2: loss-free 333 (Click), 84 (Linux), 284 (Linux with polling); Click's peak is 360",
            ],
            Figure::Sosp15 => {
                &["SOSP 1999, section 6.2: Click forwards up to 73, which is 90 % of what Linux does"]
            }
            Figure::Sosp16 => {
                &["SOSP 1999, section 6.2: from 250 bytes on the links of 100 Mbit/s were the limit"]
            }
            Figure::Sosp17 => &[
                "SOSP 1999, section 6.3: the lines lie close together, RED drops nothing, and the switch does much less work",
            ],
            Figure::Hpsr6a => &[
                "HPSR 2005, section IV-D, one flow: offered 1488, received about 1400 (Linux) or all (Click), transmitted 650",
            ],
            Figure::Hpsr7 => &["HPSR 2005, section IV-E: the greatest rate is about 800, or 0.5 Gbit/s"],
            _ => &[],
        }
    }
}

impl std::str::FromStr for Figure {
    type Err = String;
    fn from_str(text: &str) -> Result<Figure, String> {
        let found = Figure::ALL.into_iter().find(|f| f.name() == text);
        found.ok_or_else(|| format!("there is no figure '{text}'"))
    }
}

impl Results {
    /// The axes of the figure: those of the paper, or those that show in what the kinds of traffic differ.
    pub(super) fn shape(&self) -> Shape {
        let differ = |of: fn(&Subject) -> usize| {
            self.subjects.iter().any(|s| self.subjects.first().map(of) != Some(of(s)))
        };
        match self.figure {
            Some(figure) => figure.shape(),
            None if differ(|s| s.traffic.length) => Shape::Lengths,
            None if differ(|s| s.traffic.flows) => Shape::Flows,
            None => Shape::Rates,
        }
    }

    /// The title of the drawing.
    pub(super) fn title(&self) -> &'static str {
        match (self.figure, self.shape()) {
            (Some(figure), _) => figure.title(),
            (None, Shape::Rates) => "Forwarded against offered rate",
            (None, Shape::Lengths) => "Maximum forwarding rate against the frame size",
            (None, Shape::Flows | Shape::Payloads) => "Forwarding rate in saturation",
        }
    }
}

/// A value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    /// The value that the figure compares.
    pub value: f64,
    /// The offered and the received rate, where a figure shows them.
    pub around: [Option<f64>; 2],
    /// The smallest and the largest value.
    pub spread: [f64; 2],
}

/// The contents of a figure that is not drawn over offered rates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// The quantity on the horizontal axis, and its values.
    pub across: (&'static str, Vec<usize>),
    /// The unit of the values.
    pub unit: &'static str,
    /// The name of each line or kind of bar, and its values in the order of `across`.
    pub series: Vec<(String, Vec<Option<Bar>>)>,
}

impl Grid {
    /// The grid of results; `None` if the figure has offered rates on its axis.
    pub fn of(r: &Results) -> Option<Grid> {
        let shape = r.shape();
        let x = |s: &Subject| match shape {
            Shape::Lengths => s.traffic.length,
            Shape::Payloads => s.traffic.length.saturating_sub(ETHER_HEADER),
            Shape::Rates | Shape::Flows => s.traffic.flows,
        };
        let (across, unit) = match shape {
            Shape::Rates => return None,
            Shape::Lengths => ("frame (bytes)", "thousands of packets a second"),
            Shape::Flows => (r.figure.map_or("flows", Figure::groups), "thousands of packets a second"),
            Shape::Payloads => ("payload (bytes)", "Gbit/s"),
        };
        let mut places: Vec<usize> = r.subjects.iter().map(x).collect();
        places.sort_unstable();
        places.dedup();
        // A line or kind of bar is a router, with what differs besides the horizontal axis.
        let differ =
            |of: fn(&Subject) -> usize| r.subjects.iter().any(|s| r.subjects.first().map(of) != Some(of(s)));
        let flows = shape != Shape::Flows && differ(|s| s.traffic.flows);
        let lengths = shape == Shape::Flows && differ(|s| s.traffic.length);
        let name = |s: &Subject| {
            let mut name = s.router.clone();
            if flows {
                let _ =
                    write!(name, ", {} flow{}", s.traffic.flows, if s.traffic.flows == 1 { "" } else { "s" });
            }
            if lengths {
                let _ = write!(name, ", {} bytes", s.traffic.length);
            }
            if s.traffic.both_ways {
                name += ", both ways";
            }
            name
        };
        let mut series: Vec<(String, Vec<Option<Bar>>)> = Vec::new();
        for (who, subject) in r.subjects.iter().enumerate() {
            let name = name(subject);
            let at = series.iter().position(|s| s.0 == name).unwrap_or_else(|| {
                series.push((name, vec![None; places.len()]));
                series.len() - 1
            });
            let place = places.iter().position(|p| *p == x(subject));
            if let (Some(place), Some((_, values))) = (place, series.get_mut(at))
                && let Some(bar) = values.get_mut(place)
            {
                *bar = value(r, who, shape);
            }
        }
        Some(Grid { across: (across, places), unit, series })
    }

    /// The paper's values at a place on the horizontal axis, with their routers.
    fn stated(r: &Results, place: usize) -> Vec<(&'static str, Option<f64>)> {
        let all = r.figure.map_or(&[][..], Figure::stated);
        let value = |s: &Stated| s.values.iter().find(|(x, _)| *x == place).map(|(_, v)| *v);
        all.iter().map(|s| (s.router, value(s))).collect()
    }
}

/// The value of a subject in a figure with these axes.
fn value(r: &Results, who: usize, shape: Shape) -> Option<Bar> {
    let traffic = r.subjects.get(who)?.traffic;
    let mut cells = r.points.iter().filter_map(|p| p.cells.get(who));
    // The maximum over all offered rates, or the rate in saturation.
    let cell = match shape {
        Shape::Lengths => cells.max_by(|a, b| a.forwarded.median.total_cmp(&b.forwarded.median))?,
        Shape::Rates | Shape::Flows | Shape::Payloads => cells.next_back()?,
    };
    let unit = |rate: f64| if shape == Shape::Payloads { traffic.gbits(rate) } else { rate / 1e3 };
    let f = cell.forwarded;
    Some(Bar {
        value: unit(f.median),
        around: [cell.received.map(|_| unit(cell.offered)), cell.received.map(unit)],
        spread: [unit(f.min), unit(f.max)],
    })
}

/// The table of a figure: the values of the routers, and those that the paper states; empty for figures over offered rates.
pub(super) fn table(r: &Results) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some(figure) = r.figure {
        let _ = writeln!(out, "\n{}", figure.title());
    }
    if let Some(grid) = Grid::of(r) {
        let digits = if grid.unit == "Gbit/s" { 3 } else { 1 };
        let first = grid.across.0.len();
        let names = grid.series.iter().map(|s| s.0.as_str());
        let stated = Grid::stated(r, 0).into_iter().map(|s| s.0);
        let names: Vec<&str> = names.chain(stated).collect();
        let _ = write!(out, "{}{:>first$}", if r.figure.is_some() { "" } else { "\n" }, grid.across.0);
        for name in &names {
            let _ = write!(out, "  {name:>9}");
        }
        for (i, place) in grid.across.1.iter().enumerate() {
            let _ = write!(out, "\n{place:>first$}");
            let own = grid.series.iter().map(|s| s.1.get(i).copied().flatten().map(|v| v.value));
            let all = own.chain(Grid::stated(r, *place).into_iter().map(|s| s.1));
            for (name, value) in names.iter().zip(all) {
                let width = name.len().max(9);
                let value = value.map_or("-".into(), |v| format!("{v:.digits$}"));
                let _ = write!(out, "  {value:>width$}");
            }
        }
        let _ = writeln!(out, "\n{}", grid.unit);
    }
    for remark in r.figure.map_or(&[][..], Figure::remarks) {
        let _ = writeln!(out, "{remark}");
    }
    out
}

/// The figure as JSON: each place on the horizontal axis, with the values of the routers and of the paper.
pub(super) fn json(r: &Results) -> Value {
    let Some(grid) = Grid::of(r) else { return json!(r.figure.map(Figure::name)) };
    let rows = grid.across.1.iter().enumerate().map(|(i, place)| {
        let own = grid.series.iter().map(|(name, values)| {
            let v = values.get(i).copied().flatten();
            (name.clone(), json!(v.map(|v| v.value)))
        });
        let stated = Grid::stated(r, *place).into_iter().map(|(name, v)| (name.to_string(), json!(v)));
        json!({ "at": place, "values": Value::Object(own.collect()), "paper": Value::Object(stated.collect()) })
    });
    json!({
        "name": r.figure.map(Figure::name),
        "across": grid.across.0,
        "unit": grid.unit,
        "rows": rows.collect::<Vec<_>>(),
    })
}
