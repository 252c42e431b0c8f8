// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a configuration as SVG, with ports as in the Click papers (TOCS 2000, Figure 1).

use crate::graph::{Graph, Kind};
use crate::layout::{Edge, Layout, layers_with_boxes, layout};
use castanet_lang::args::{cleaned, split};
use castanet_spec::Capability;
use std::fmt::Write as _;

/// Sizes in pixels: character widths of the two font sizes, line height, ports, distances.
const WIDE: f64 = 7.3;
const NARROW: f64 = 6.1;
const LINE: f64 = 15.0;
const PORT_STEP: f64 = 22.0;
const PORT_ROOM: f64 = 12.0;
const LAYER_GAP: f64 = 46.0;
const MARGIN: f64 = 28.0;
const CONFIG_LENGTH: usize = 30;
const NAME_LENGTH: usize = 40;

const STYLE: &str = "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px;fill:#22262b}\
.name{font-weight:bold}.dim{fill:#767d86;font-weight:normal}.config{font-size:10px;fill:#5d646d}\
.number{font-size:8px;fill:#767d86}.box{fill:#fff;stroke:#3a4048;stroke-width:1.2}.storage{fill:#e8f1fb}\
.task{fill:#eef7ea}.unknown{stroke-dasharray:4 3}.push{stroke:#22262b}.pull{stroke:#2469b3}\
.edge{fill:none;stroke-width:1.4}.port{stroke:#22262b;stroke-width:1}";

/// Draws the configuration. Inputs are triangles on top, outputs are rectangles at the bottom. Push ports are
/// black, pull ports are white, and agnostic ports have a double outline. Elements without connections are
/// listed below the drawing.
pub fn svg(graph: &Graph) -> String {
    let mut connected = vec![false; graph.len()];
    for c in 0..graph.flat.connections.len() {
        if let Some((a, _, b, _)) = ends(graph, c) {
            connected[a] = true;
            connected[b] = true;
        }
    }
    let elements: Vec<usize> = (0..graph.len()).filter(|&e| connected[e]).collect();
    let alone: Vec<usize> = (0..graph.len()).filter(|&e| !connected[e]).collect();
    let boxes: Vec<Card> = elements.iter().map(|&e| Card::new(graph, e)).collect();
    let mut index = vec![0; graph.len()];
    for (i, &e) in elements.iter().enumerate() {
        index[e] = i;
    }
    let lines: Vec<(usize, usize, usize, usize)> =
        (0..graph.flat.connections.len()).filter_map(|c| ends(graph, c)).collect();
    let edges: Vec<Edge> = lines
        .iter()
        .map(|&(a, output, b, input)| {
            let (from, to) = (index[a], index[b]);
            let from_offset = boxes[from].offset(boxes[from].outputs, output);
            Edge { from, to, from_offset, to_offset: boxes[to].offset(boxes[to].inputs, input) }
        })
        .collect();
    let widths: Vec<f64> = boxes.iter().map(|b| b.width).collect();
    let layout = layout(&widths, &edges);
    let rows = Rows::new(&layout, &boxes);
    let mut body = String::new();
    for (i, &(a, output, b, _)) in lines.iter().enumerate() {
        let kind = graph.output_kind(a, output);
        let title = format!("{} [{output}] to {}", graph.name(a), graph.name(b));
        let _ = writeln!(
            body,
            "<path class=\"edge {kind}\" marker-end=\"url(#{kind})\" d=\"{}\"><title>{}</title></path>",
            way(&layout, &rows, &boxes, &edges[i], i),
            escaped(&title)
        );
    }
    for (i, card) in boxes.iter().enumerate() {
        card.draw(graph, layout.x[i] + MARGIN, rows.top[layout.layer[i]], &mut body);
    }
    let right = (0..boxes.len()).map(|i| layout.x[i] + boxes[i].width / 2.0);
    let passing = layout.ways.iter().flatten().map(|w| w.1 + 8.0);
    let mut width = right.chain(passing).fold(200.0, f64::max) + 2.0 * MARGIN;
    let mut bottom = rows.bottom;
    for e in alone {
        let text = alone_text(graph, e);
        bottom += LINE;
        width = width.max(text.chars().count() as f64 * NARROW + 2.0 * MARGIN);
        let _ = writeln!(
            body,
            "<text class=\"config\" x=\"{MARGIN}\" y=\"{bottom:.1}\">{}</text>",
            escaped(&text)
        );
    }
    let right;
    (right, bottom) = legend(&mut body, bottom);
    width = width.max(right + MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width:.0}\" height=\"{bottom:.0}\" viewBox=\"0 0 {width:.0} {bottom:.0}\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<defs>{}{}</defs>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fbfaf7\"/>\n{body}</svg>\n",
        title(graph.len(), lines.len()),
        arrow("push", "#22262b"),
        arrow("pull", "#2469b3")
    )
}

/// The title of a drawing, which browsers and screen readers show.
fn title(elements: usize, connections: usize) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!("Click configuration: {}, {}", count(elements, "element"), count(connections, "connection"))
}

/// The arguments of a configuration string, without comments.
fn arguments(config: &str) -> String {
    let all = split(config).into_iter().map(|range| cleaned(config, range).trim().to_string());
    all.collect::<Vec<_>>().join(", ")
}

fn arrow(id: &str, colour: &str) -> String {
    format!(
        "<marker id=\"{id}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 1L10 5L0 9z\" fill=\"{colour}\"/></marker>"
    )
}

/// The ends of a connection between existing ports: element and output, element and input.
fn ends(graph: &Graph, c: usize) -> Option<(usize, usize, usize, usize)> {
    let c = graph.flat.connections.get(c)?;
    let good = c.from.port < graph.outputs(c.from.element) && c.to.port < graph.inputs(c.to.element);
    good.then_some((c.from.element, c.from.port, c.to.element, c.to.port))
}

fn alone_text(graph: &Graph, e: usize) -> String {
    let Some(element) = graph.element(e) else { return String::new() };
    let config = shortened(&arguments(&element.config), 3 * CONFIG_LENGTH);
    if config.is_empty() { element.declaration() } else { format!("{}({config})", element.declaration()) }
}

/// One element as drawn.
struct Card {
    element: usize,
    /// The name in three parts: scope, local name, number of an anonymous element.
    name: [String; 3],
    class: Option<String>,
    config: String,
    inputs: usize,
    outputs: usize,
    width: f64,
    height: f64,
}

impl Card {
    fn new(graph: &Graph, e: usize) -> Card {
        let (full, class, config) = graph.element(e).map_or(("", "", ""), |e| (&e.name, &e.class, &e.config));
        let cut = full.rfind('/').map_or(0, |i| i + 1);
        let (scope, last) = full.split_at_checked(cut).unwrap_or(("", full));
        // An anonymous element is named after its class.
        let number = last.strip_prefix(class).filter(|n| n.starts_with('@') && !class.is_empty());
        let main = number.map_or(last, |_| class);
        let name =
            [shortened(scope, NAME_LENGTH), shortened(main, NAME_LENGTH), number.unwrap_or("").to_string()];
        let class = number.is_none().then(|| shortened(class, NAME_LENGTH));
        let config = shortened(&arguments(config), CONFIG_LENGTH);
        let length = |s: &str| s.chars().count() as f64;
        let (inputs, outputs) = (graph.inputs(e), graph.outputs(e));
        let text = (name.iter().map(|n| length(n)).sum::<f64>() * WIDE)
            .max(class.as_deref().map_or(0.0, length) * WIDE)
            .max(length(&config) * NARROW);
        let ports = inputs.max(outputs) as f64 * PORT_STEP;
        let lines = 1.0 + f64::from(u8::from(class.is_some())) + f64::from(u8::from(!config.is_empty()));
        Card {
            element: e,
            name,
            class,
            config,
            inputs,
            outputs,
            width: (text + 20.0).max(ports).max(56.0),
            height: lines * LINE + 2.0 * PORT_ROOM + 2.0,
        }
    }

    /// The position of a port relative to the middle of the box.
    fn offset(&self, ports: usize, port: usize) -> f64 {
        self.width * ((port as f64 + 0.5) / ports.max(1) as f64 - 0.5)
    }

    fn draw(&self, graph: &Graph, x: f64, top: f64, out: &mut String) {
        let spec = graph.spec(self.element);
        let style = match spec {
            None => " unknown",
            Some(s) if s.has(Capability::Storage) => " storage",
            Some(s) if s.task => " task",
            Some(_) => "",
        };
        let left = x - self.width / 2.0;
        let title = alone_text(graph, self.element);
        let _ = write!(
            out,
            "<g><title>{}</title><rect class=\"box{style}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"/>",
            escaped(&title),
            self.width,
            self.height
        );
        let mut y = top + PORT_ROOM + LINE - 3.0;
        let [scope, main, number] = &self.name;
        let _ = write!(out, "<text class=\"name\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\">");
        for (text, class) in [(scope, " class=\"dim\""), (main, ""), (number, " class=\"dim\"")] {
            if !text.is_empty() {
                let _ = write!(out, "<tspan{class}>{}</tspan>", escaped(text));
            }
        }
        out.push_str("</text>");
        let config = (!self.config.is_empty()).then_some((&self.config, "config"));
        for (text, class) in self.class.as_ref().map(|c| (c, "class")).into_iter().chain(config) {
            y += LINE;
            let text = escaped(text);
            let _ = write!(
                out,
                "<text class=\"{class}\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
            );
        }
        for i in 0..self.inputs {
            let x = x + self.offset(self.inputs, i);
            triangle(
                out,
                x,
                top,
                graph.input_kind(self.element, i),
                graph.input_is_agnostic(self.element, i),
            );
            number_beside(out, self.inputs, i, x, top + 8.0);
        }
        let bottom = top + self.height;
        for o in 0..self.outputs {
            let x = x + self.offset(self.outputs, o);
            rectangle(
                out,
                x,
                bottom,
                graph.output_kind(self.element, o),
                graph.output_is_agnostic(self.element, o),
            );
            number_beside(out, self.outputs, o, x, bottom - 2.0);
        }
        out.push_str("</g>\n");
    }
}

fn number_beside(out: &mut String, ports: usize, port: usize, x: f64, y: f64) {
    if ports > 1 {
        let _ = write!(out, "<text class=\"number\" x=\"{:.1}\" y=\"{y:.1}\">{port}</text>", x + 6.5);
    }
}

fn fill(kind: Kind) -> &'static str {
    match kind {
        Kind::Push => "#22262b",
        Kind::Pull => "#ffffff",
    }
}

/// Draws an input, with its base on the upper edge of the box.
fn triangle(out: &mut String, x: f64, y: f64, kind: Kind, agnostic: bool) {
    let mut one = |half: f64, top: f64, depth: f64, fill: &str| {
        let (left, right, tip) = (x - half, x + half, top + depth);
        let _ = write!(
            out,
            "<path class=\"port\" fill=\"{fill}\" d=\"M{left:.1} {top:.1}H{right:.1}L{x:.1} {tip:.1}z\"/>"
        );
    };
    if agnostic {
        one(6.5, y, 10.0, "#ffffff");
        one(3.2, y + 2.0, 4.6, fill(kind));
    } else {
        one(5.5, y, 8.5, fill(kind));
    }
}

/// Draws an output, with its base on the lower edge of the box.
fn rectangle(out: &mut String, x: f64, y: f64, kind: Kind, agnostic: bool) {
    let mut one = |half: f64, up: f64, height: f64, fill: &str| {
        let (left, top, width) = (x - half, y - up, 2.0 * half);
        let _ = write!(
            out,
            "<rect class=\"port\" fill=\"{fill}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    };
    if agnostic {
        one(5.5, 9.0, 9.0, "#ffffff");
        one(3.2, 6.8, 4.6, fill(kind));
    } else {
        one(4.5, 7.5, 7.5, fill(kind));
    }
}

/// The vertical positions of layers.
struct Rows {
    top: Vec<f64>,
    end: Vec<f64>,
    bottom: f64,
}

impl Rows {
    fn new(layout: &Layout, boxes: &[Card]) -> Rows {
        let mut height = vec![0.0f64; layout.layers];
        for (b, &l) in boxes.iter().zip(&layout.layer) {
            height[l] = height[l].max(b.height);
        }
        let used = layers_with_boxes(layout);
        let (mut top, mut end, mut y) = (Vec::new(), Vec::new(), MARGIN);
        for (l, h) in height.into_iter().enumerate() {
            top.push(y);
            end.push(y + h);
            y += h + if used.contains(&l) { LAYER_GAP } else { LAYER_GAP / 3.0 };
        }
        Rows { top, end, bottom: y - if layout.layers > 0 { LAYER_GAP / 2.0 } else { 0.0 } }
    }
}

/// The path of a connection: straight beside boxes, curved between layers.
fn way(layout: &Layout, rows: &Rows, boxes: &[Card], e: &Edge, index: usize) -> String {
    let (from, to) = (layout.layer[e.from], layout.layer[e.to]);
    let start = (layout.x[e.from] + e.from_offset + MARGIN, rows.top[from] + boxes[e.from].height);
    let end = (layout.x[e.to] + e.to_offset + MARGIN, rows.top[to] - 1.0);
    let mut d = format!("M{:.1} {:.1}", start.0, start.1);
    let mut at = (start.0, rows.end[from]);
    let _ = write!(d, "V{:.1}", at.1);
    let curve = |d: &mut String, a: (f64, f64), b: (f64, f64)| {
        let middle = (a.1 + b.1) / 2.0;
        let _ = write!(d, "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", a.0, b.0, b.0, b.1);
    };
    if layout.back[index] {
        for (i, &(l, x)) in layout.ways[index].iter().enumerate() {
            let x = x + MARGIN;
            if i == 0 {
                let turn = at.1 + LAYER_GAP * 0.8;
                let _ = write!(d, "C{:.1} {turn:.1} {x:.1} {turn:.1} {x:.1} {:.1}", at.0, at.1);
            } else {
                curve(&mut d, at, (x, rows.end[l]));
            }
            at = (x, rows.top[l]);
            let _ = write!(d, "V{:.1}", at.1);
        }
        let turn = at.1 - LAYER_GAP * 0.8;
        let _ = write!(d, "C{:.1} {turn:.1} {:.1} {turn:.1} {:.1} {:.1}", at.0, end.0, end.0, end.1);
        return d;
    }
    for &(l, x) in &layout.ways[index] {
        let x = x + MARGIN;
        curve(&mut d, at, (x, rows.top[l]));
        at = (x, rows.end[l]);
        let _ = write!(d, "V{:.1}", at.1);
    }
    curve(&mut d, at, end);
    d
}

/// The legend in two rows, ports and connections, then boxes; returns its right and its lower edge.
fn legend(out: &mut String, bottom: f64) -> (f64, f64) {
    let y = bottom + LINE + 6.0;
    let mut x = MARGIN;
    let label = |out: &mut String, x: f64, y: f64, text: &str| {
        let _ = writeln!(out, "<text class=\"config\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
        x + 12.0 + text.chars().count() as f64 * NARROW
    };
    for (text, kind, agnostic) in [
        ("push input, output", Kind::Push, false),
        ("pull input, output", Kind::Pull, false),
        ("agnostic, push here", Kind::Push, true),
        ("agnostic, pull here", Kind::Pull, true),
    ] {
        triangle(out, x + 6.0, y - 8.0, kind, agnostic);
        rectangle(out, x + 20.0, y, kind, agnostic);
        x = label(out, x + 30.0, y, text);
    }
    for kind in [Kind::Push, Kind::Pull] {
        // Not of the class `edge`, which counts the connections.
        let _ = write!(
            out,
            "<path class=\"{kind}\" stroke-width=\"1.4\" marker-end=\"url(#{kind})\" d=\"M{x:.1} {:.1}h24\"/>",
            y - 4.0
        );
        x = label(out, x + 30.0, y, &format!("{kind} connection"));
    }
    let right = x;
    let y = y + LINE + 4.0;
    x = MARGIN;
    for (style, text) in [
        (" storage", "stores packets"),
        (" task", "has a task"),
        ("", "other element"),
        (" unknown", "unknown class"),
    ] {
        let _ = write!(
            out,
            "<rect class=\"box{style}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"24\" height=\"11\" rx=\"3\"/>",
            y - 10.0
        );
        x = label(out, x + 30.0, y, text);
    }
    (right.max(x), y + LINE)
}

/// Shortens a text to at most `length` characters on one line.
fn shortened(text: &str, length: usize) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let mut count = 0;
    for word in &mut words {
        let n = word.chars().count();
        if count + n >= length {
            let rest = word.chars().take(length.saturating_sub(count + 2));
            if count > 0 {
                line.push(' ');
            }
            line.extend(rest);
            line.push('…');
            return line;
        }
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
        count += n + 1;
    }
    line
}

/// Escapes text for XML. Characters that XML does not allow become replacement characters.
fn escaped(text: &str) -> String {
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

#[cfg(test)]
#[path = "svg_tests.rs"]
mod tests;
