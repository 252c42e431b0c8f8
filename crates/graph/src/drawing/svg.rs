// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a configuration as SVG, with ports as in the Click papers (TOCS 2000, Figure 1).

use super::card::{BESIDE, Card, Font, LINE, NARROW, PORT_ROOM, Port, counted, offset, summary};
use super::place::{Line, MARGIN, Placed, head, place};
use super::rate::short;
use super::scene::{End, Item, Link, Scene};
use super::symbols::{Seen, frame};
use super::title;
use crate::graph::Graph;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px;fill:#22262b}\
.name{font-weight:bold}.dim{fill:#767d86;font-weight:normal}text.config{font-size:11px;fill:#5d646d}\
text.number{font-size:9px;fill:#767d86}\
text.rate{font-size:9px;fill:#8a3b12;stroke:#fbfaf7;stroke-width:2.5;paint-order:stroke}.box{fill:#fff;stroke:#3a4048;stroke-width:1.2}.storage{fill:#e8f1fb}\
.task{fill:#eef7ea}.unknown{stroke-dasharray:4 3}.compound{fill:#f6efe0;stroke-width:2.4}.push{stroke:#22262b}.pull{stroke:#2469b3}\
.edge{fill:none;stroke-width:1.4}.port{stroke:#22262b;stroke-width:1}\
.frame{fill:#f6efe0;fill-opacity:.55;stroke:#a08a58;stroke-width:1.2}.band{fill:#eadfc4}.sign{fill:#6d5a2c}\
.head{cursor:pointer}.shut,.folded>.inside,.folded .open{display:none}.folded>.shut,.folded>.head .shut{display:inline}\
.folded>.frame{fill-opacity:1}";

/// Folds and opens a compound when its head is clicked, or when Enter or the space bar is pressed on it.
const SCRIPT: &str = "document.querySelectorAll('.head').forEach(function(head){\
function turn(event){event.preventDefault();\
var folded=head.parentNode.classList.toggle('folded');head.setAttribute('aria-expanded',String(!folded))}\
head.addEventListener('click',turn);\
head.addEventListener('keydown',function(event){if(event.key==='Enter'||event.key===' ')turn(event)})})";

/// Draws a scene. Inputs are triangles on top, outputs are rectangles at the bottom. Push ports are black, pull ports
/// are white, and agnostic ports have a double outline. Elements without connections are listed below the drawing.
pub(crate) fn svg(graph: &Graph, scene: &Scene) -> String {
    let placed = place(graph, scene);
    let mut sheet = Sheet { graph, scene, placed: &placed, seen: Seen::default(), body: String::new() };
    sheet.contents(0, (0.0, 0.0));
    let root = placed.first();
    let mut width = root.map_or(0.0, |r| r.width).max(200.0);
    let mut bottom = root.map_or(0.0, |r| r.height).max(MARGIN);
    for &e in &scene.alone {
        let text = summary(graph, e);
        bottom += LINE;
        width = width.max(text.chars().count() as f64 * NARROW + 2.0 * MARGIN);
        let _ = writeln!(
            sheet.body,
            "<text class=\"config\" x=\"{MARGIN}\" y=\"{bottom:.1}\">{}</text>",
            escaped(&text)
        );
        sheet.seen.config = true;
    }
    let Sheet { seen, mut body, .. } = sheet;
    let (right, bottom) = seen.legend(&mut body, width, bottom);
    width = width.max(right + MARGIN);
    // In a drawing with the role `img`, no part can have a role of its own. The head of a compound (the band with its
    // name) is a button, so a drawing with compounds is a `group`.
    let role = if seen.compounds { "group" } else { "img" };
    let script = if seen.compounds { format!("<script>{SCRIPT}</script>\n") } else { String::new() };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"{role}\" width=\"{width:.0}\" height=\"{bottom:.0}\" viewBox=\"0 0 {width:.0} {bottom:.0}\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<defs>{}</defs>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fbfaf7\"/>\n{body}{script}</svg>\n",
        title(graph, scene),
        seen.arrows()
    )
}

/// The drawing under construction.
struct Sheet<'a> {
    graph: &'a Graph,
    scene: &'a Scene,
    placed: &'a [Placed],
    seen: Seen,
    body: String,
}

impl Sheet<'_> {
    /// Draws the lines and the boxes of a compound whose frame has its upper left corner at `corner`. The
    /// recursion is bounded, because the language limits how deep compounds nest.
    fn contents(&mut self, compound: usize, corner: (f64, f64)) {
        let (scene, placed) = (self.scene, self.placed);
        let (Some(c), Some(p)) = (scene.compounds.get(compound), placed.get(compound)) else { return };
        for (link, line) in c.links.iter().zip(&p.lines) {
            let kind = self.seen.line(link.kind);
            // A line that ends on the frame of its compound has no arrow head, because it continues outside the frame.
            let marker = match link.to {
                End::Exit(_) => String::new(),
                _ => format!(" marker-end=\"url(#{kind})\""),
            };
            let _ = writeln!(
                self.body,
                "<path class=\"edge {kind}\"{marker} d=\"{}\"><title>{}</title></path>",
                line.path(corner),
                escaped(&self.carried(link))
            );
        }
        self.rates(&c.links, &p.lines, corner);
        for node in &p.nodes {
            let (x, y) = (node.x + corner.0, node.top + corner.1);
            match (node.item, &node.card) {
                (_, Some(card)) => self.card(card, x, y),
                (Some(Item::Compound(inner)), None) => self.compound(inner, (x - node.width / 2.0, y)),
                _ => {}
            }
        }
    }

    /// Writes the rates of lines beside their starts, where they leave an element or a folded compound. Lines that leave
    /// the same output have one rate together.
    fn rates(&mut self, links: &[Link], lines: &[Line], corner: (f64, f64)) {
        // By output: where its lines start, and their rate. None if the rate of one of them is not known.
        type Start = ((f64, f64), Option<f64>);
        let mut starts: BTreeMap<(Item, usize), Start> = BTreeMap::new();
        for (link, line) in links.iter().zip(lines) {
            let End::Port(item, port) = link.from else { continue };
            let open =
                matches!(item, Item::Compound(c) if self.scene.compounds.get(c).is_some_and(|c| !c.folded));
            let rate = self.scene.rate(link);
            if open {
                continue;
            }
            let of = starts.entry((item, port)).or_insert((line.start, Some(0.0)));
            of.1 = of.1.zip(rate).map(|(a, b)| a + b);
        }
        for ((x, y), rate) in starts.into_values() {
            let Some(rate) = rate else { continue };
            self.seen.rates = true;
            let _ = writeln!(
                self.body,
                "<text class=\"rate\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + corner.0 + BESIDE - 3.0,
                y + corner.1 + 10.0,
                short(rate)
            );
        }
    }

    /// Lists the connections that a line is part of, separated by semicolons.
    fn carried(&self, link: &Link) -> String {
        let all = link.connections.iter().filter_map(|&c| self.graph.flat.connections.get(c));
        let each = all.map(|c| {
            let (from, to) = (self.graph.name(c.from.element), self.graph.name(c.to.element));
            format!("{from} [{}] to [{}] {to}", c.from.port, c.to.port)
        });
        let rate = self.scene.rate(link).map(|r| format!("; {} packets per second", short(r)));
        each.collect::<Vec<_>>().join("; ") + &rate.unwrap_or_default()
    }

    /// Draws an open compound.
    fn compound(&mut self, compound: usize, (x, y): (f64, f64)) {
        let (scene, placed) = (self.scene, self.placed);
        let (Some(c), Some(p)) = (scene.compounds.get(compound), placed.get(compound)) else { return };
        self.seen.compounds = true;
        let size = counted(c.elements, "element");
        let _ = write!(self.body, "<g><title>{}, {size}</title>", escaped(&c.declaration()));
        frame(&mut self.body, &head(c), &size, [x, y, p.width, p.height, p.name]);
        self.body.push_str("<g class=\"inside\">\n");
        self.contents(compound, (x, y));
        self.body.push_str("</g>");
        for (&at, &kind) in p.entries.iter().zip(&c.entries) {
            self.seen.input(&mut self.body, x + at, y, Port::new(kind, false));
        }
        for (&at, &kind) in p.exits.iter().zip(&c.exits) {
            self.seen.output(&mut self.body, x + at, y + p.height, Port::new(kind, false));
        }
        self.body.push_str("</g>\n");
    }

    /// Draws an element or a folded compound.
    fn card(&mut self, card: &Card, x: f64, top: f64) {
        let left = x - card.width / 2.0;
        let style = self.seen.look(card.look);
        let _ = write!(
            self.body,
            "<g><title>{}</title><rect class=\"{style}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"/>",
            escaped(&card.title),
            card.width,
            card.height
        );
        let mut y = top + PORT_ROOM - 3.0;
        for line in &card.lines {
            y += LINE;
            self.text(line, x, y);
        }
        let numbered = |ports: &[Port]| ports.len() > 1;
        for (i, &port) in card.inputs.iter().enumerate() {
            let x = x + offset(card.width, card.inputs.len(), i);
            self.seen.input(&mut self.body, x, top, port);
            self.number(numbered(&card.inputs), i, x, top + 9.0);
        }
        let bottom = top + card.height;
        for (o, &port) in card.outputs.iter().enumerate() {
            let x = x + offset(card.width, card.outputs.len(), o);
            self.seen.output(&mut self.body, x, bottom, port);
            self.number(numbered(&card.outputs), o, x, bottom - 2.0);
        }
        self.body.push_str("</g>\n");
    }

    fn text(&mut self, line: &[(String, Font)], x: f64, y: f64) {
        let class = match line.first().map(|piece| piece.1) {
            Some(Font::Config) => "config",
            Some(Font::Class) => "class",
            _ => "name",
        };
        self.seen.config |= class == "config";
        let _ =
            write!(self.body, "<text class=\"{class}\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\">");
        for (text, font) in line {
            let text = escaped(text);
            let _ = if *font == Font::Dim {
                *(if text.starts_with('@') { &mut self.seen.unnamed } else { &mut self.seen.scopes }) = true;
                write!(self.body, "<tspan class=\"dim\">{text}</tspan>")
            } else {
                write!(self.body, "{text}")
            };
        }
        self.body.push_str("</text>");
    }

    fn number(&mut self, shown: bool, port: usize, x: f64, y: f64) {
        if shown {
            self.seen.numbers = true;
            let _ = write!(
                self.body,
                "<text class=\"number\" x=\"{:.1}\" y=\"{y:.1}\">{port}</text>",
                x + BESIDE
            );
        }
    }
}

/// Escapes text for XML. Characters that XML does not allow become replacement characters.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
