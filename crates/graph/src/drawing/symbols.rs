// SPDX-License-Identifier: MIT OR Apache-2.0
//! The symbols of a drawing, and the legend, which explains the symbols that the drawing uses.

use super::card::{Look, NARROW, Port};
use super::place::{HEAD, MARGIN};
use super::svg::escaped;
use crate::graph::PortKind;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const BLACK: &str = "#22262b";
const BLUE: &str = "#2469b3";
const WHITE: &str = "#ffffff";
/// The maximum width of a legend, in pixels. Below a wider drawing, a legend may be as wide as the drawing.
const LEGEND_WIDTH: f64 = 760.0;
const LEGEND_LINE: f64 = 21.0;

/// The symbols that a drawing uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    inputs: BTreeSet<Port>,
    outputs: BTreeSet<Port>,
    push: bool,
    pull: bool,
    looks: BTreeSet<Look>,
    pub(crate) compounds: bool,
    pub(crate) numbers: bool,
    pub(crate) rates: bool,
    pub(crate) unnamed: bool,
    pub(crate) scopes: bool,
    pub(crate) config: bool,
}

/// The style class of a box.
pub(crate) fn style(look: Look) -> &'static str {
    match look {
        Look::Storage => "box storage",
        Look::Task => "box task",
        Look::Other => "box",
        Look::Unknown => "box unknown",
        Look::Folded => "box compound",
    }
}

/// The arrow head of a connection.
fn arrow(kind: PortKind) -> String {
    let colour = if kind == PortKind::Push { BLACK } else { BLUE };
    format!(
        "<marker id=\"{kind}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 1L10 5L0 9z\" fill=\"{colour}\"/></marker>"
    )
}

fn fill(port: Port) -> &'static str {
    if port.pull { WHITE } else { BLACK }
}

impl Seen {
    /// Draws an input, with its base on the upper edge of the box.
    pub(crate) fn input(&mut self, out: &mut String, x: f64, y: f64, port: Port) {
        self.inputs.insert(port);
        triangle(out, x, y, port);
    }

    /// Draws an output, with its base on the lower edge of the box.
    pub(crate) fn output(&mut self, out: &mut String, x: f64, y: f64, port: Port) {
        self.outputs.insert(port);
        rectangle(out, x, y, port);
    }

    /// Records that the drawing has a box of this look, and returns its style class.
    pub(crate) fn look(&mut self, look: Look) -> &'static str {
        self.looks.insert(look);
        style(look)
    }

    /// Records that the drawing has a line of this kind. Returns `kind`, whose text (`push` or `pull`) names the style
    /// and the arrow head.
    pub(crate) fn line(&mut self, kind: PortKind) -> PortKind {
        *(if kind == PortKind::Push { &mut self.push } else { &mut self.pull }) = true;
        kind
    }

    /// The definitions of the arrow heads in use.
    pub(crate) fn arrows(&self) -> String {
        let used = [(self.push, PortKind::Push), (self.pull, PortKind::Pull)].into_iter().filter(|k| k.0);
        used.map(|k| arrow(k.1)).collect()
    }

    /// Draws the legend below a drawing of this width and height. Returns the right and the lower edge of the legend.
    pub(crate) fn legend(&self, out: &mut String, width: f64, height: f64) -> (f64, f64) {
        let limit = (width - MARGIN).max(LEGEND_WIDTH);
        let (mut x, mut y, mut right) = (MARGIN, height + LEGEND_LINE, 0.0f64);
        let samples = self.samples();
        if samples.is_empty() {
            return (0.0, height + MARGIN);
        }
        out.push_str("<g class=\"legend\">\n");
        for (sample, text) in samples {
            let size = sample.width() + 8.0;
            let whole = size + text.chars().count() as f64 * NARROW;
            if x > MARGIN && x + whole > limit {
                (x, y) = (MARGIN, y + LEGEND_LINE);
            }
            sample.draw(out, x, y);
            let _ = writeln!(out, "<text class=\"config\" x=\"{:.1}\" y=\"{y:.1}\">{text}</text>", x + size);
            right = right.max(x + whole);
            x += whole + 20.0;
        }
        out.push_str("</g>\n");
        (right, y + MARGIN)
    }

    fn samples(&self) -> Vec<(Sample, String)> {
        let mut all = Vec::new();
        for (agnostic, pull) in [(false, false), (false, true), (true, false), (true, true)] {
            let port = Port { pull, agnostic };
            let (input, output) = (self.inputs.contains(&port), self.outputs.contains(&port));
            let kind = if pull { PortKind::Pull } else { PortKind::Push };
            let what = match (input, output) {
                (true, true) => "input, output",
                (true, false) => "input",
                (false, true) => "output",
                (false, false) => continue,
            };
            let text =
                if agnostic { format!("agnostic {what}, {kind} here") } else { format!("{kind} {what}") };
            all.push((Sample::Port { port, input, output }, text));
        }
        let lines = [(self.push, PortKind::Push), (self.pull, PortKind::Pull)];
        for (_, kind) in lines.into_iter().filter(|k| k.0) {
            all.push((Sample::Line(kind), format!("{kind} connection")));
        }
        all.extend(self.looks.iter().map(|&look| {
            let text = match look {
                Look::Storage => "stores packets",
                Look::Task => "has a task",
                Look::Other => "other element",
                Look::Unknown => "unknown class",
                Look::Folded => "compound, folded",
            };
            (Sample::Box(look), text.to_string())
        }));
        let mut add = |used: bool, sample: Sample, text: &str| {
            if used {
                all.push((sample, text.to_string()));
            }
        };
        add(self.compounds, Sample::Frame, "compound; click on its name to fold it, and again to open it");
        add(self.numbers, Sample::Text("0 1", "number", 18.0), "port numbers");
        add(self.rates, Sample::Text("12.3k", "rate", 30.0), "packets per second");
        add(self.unnamed, Sample::Text("Class@3", "dim", 54.0), "element without a name");
        add(self.scopes, Sample::Text("scope/", "dim", 48.0), "compound of an element");
        add(self.config, Sample::Text("grey", "config", 26.0), "configuration");
        all
    }
}

/// A symbol in the legend.
enum Sample {
    Port { port: Port, input: bool, output: bool },
    Line(PortKind),
    Box(Look),
    Frame,
    Text(&'static str, &'static str, f64),
}

impl Sample {
    fn width(&self) -> f64 {
        match self {
            Sample::Port { input, output, .. } => 14.0 * f64::from(u8::from(*input) + u8::from(*output)),
            Sample::Line(_) | Sample::Box(_) | Sample::Frame => 24.0,
            Sample::Text(_, _, width) => *width,
        }
    }

    /// Draws the symbol beside a text whose base line is at `y`.
    fn draw(&self, out: &mut String, x: f64, y: f64) {
        let _ = match self {
            Sample::Port { port, input, output } => {
                if *input {
                    triangle(out, x + 7.0, y - 9.0, *port);
                }
                if *output {
                    rectangle(out, x + if *input { 21.0 } else { 7.0 }, y, *port);
                }
                Ok(())
            }
            // The sample does not get the style class `edge`, which is only for lines that show connections.
            Sample::Line(kind) => write!(
                out,
                "<path class=\"{kind}\" stroke-width=\"1.4\" marker-end=\"url(#{kind})\" d=\"M{x:.1} {:.1}h24\"/>",
                y - 4.0
            ),
            Sample::Box(look) => write!(
                out,
                "<rect class=\"{}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"24\" height=\"12\" rx=\"3\"/>",
                style(*look),
                y - 10.0
            ),
            Sample::Frame => write!(
                out,
                "<rect class=\"frame\" x=\"{x:.1}\" y=\"{:.1}\" width=\"24\" height=\"13\" rx=\"3\"/>\
                 <text class=\"sign\" x=\"{:.1}\" y=\"{y:.1}\">▾</text>",
                y - 10.5,
                x + 4.0
            ),
            Sample::Text(text, class, _) => {
                write!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>")
            }
        };
    }
}

fn triangle(out: &mut String, x: f64, y: f64, port: Port) {
    let mut one = |half: f64, top: f64, depth: f64, fill: &str| {
        let (left, right, tip) = (x - half, x + half, top + depth);
        let _ = write!(
            out,
            "<path class=\"port\" fill=\"{fill}\" d=\"M{left:.1} {top:.1}H{right:.1}L{x:.1} {tip:.1}z\"/>"
        );
    };
    if port.agnostic {
        one(6.5, y, 10.0, WHITE);
        one(3.2, y + 2.0, 4.6, fill(port));
    } else {
        one(5.5, y, 8.5, fill(port));
    }
}

fn rectangle(out: &mut String, x: f64, y: f64, port: Port) {
    let mut one = |half: f64, up: f64, height: f64, fill: &str| {
        let (left, top, width) = (x - half, y - up, 2.0 * half);
        let _ = write!(
            out,
            "<rect class=\"port\" fill=\"{fill}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    };
    if port.agnostic {
        one(5.5, 9.0, 9.0, WHITE);
        one(3.2, 6.8, 4.6, fill(port));
    } else {
        one(4.5, 7.5, 7.5, fill(port));
    }
}

/// Draws the frame of an open compound, with the band at its top that shows its name (`head`). Also draws the text that
/// replaces the contents of the compound when a browser folds it.
pub(crate) fn frame(out: &mut String, head: &str, size: &str, at: [f64; 5]) {
    let [x, y, width, height, name] = at;
    let (head, size) = (escaped(head), escaped(size));
    let (middle, centre) = (x + width / 2.0, y + height / 2.0);
    let _ = writeln!(
        out,
        "<rect class=\"frame\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>\
         <g class=\"head\" tabindex=\"0\" role=\"button\" aria-expanded=\"true\" aria-label=\"Fold {head}\">\
         <rect class=\"band\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEAD:.1}\" rx=\"6\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\"><tspan class=\"sign open\">▾</tspan><tspan class=\"sign shut\">▸</tspan> {head}</text></g>\
         <text class=\"shut\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{centre:.1}\">{size}</text>",
        x + name + 8.0,
        y + HEAD - 8.0,
    );
}
