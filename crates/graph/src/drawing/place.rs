// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes and positions of everything in a drawing. Each compound is laid out on its own, and is a single box
//! in the layout of the compound around it.

use super::card::{Card, Font, offset, width_of};
use super::layout::{Edge, Layout, Pin, layers_with_boxes, layout};
use super::scene::{Compound, End, Item, Scene};
use crate::graph::Graph;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Distances in pixels: between layers (`LAYER_GAP`), and between the frame of a compound and its contents (`PADDING`).
const LAYER_GAP: f64 = 38.0;
const PADDING: f64 = 14.0;
/// The height in pixels of the band at the top of a compound that shows its name.
pub(crate) const HEAD: f64 = 24.0;
/// The height in pixels of a port on the frame of a compound.
pub(crate) const PORT: f64 = 8.5;
/// The distance in pixels between the contents of the whole drawing and its border.
pub(crate) const MARGIN: f64 = 28.0;

/// A box inside a compound, or a port on the frame of the compound.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The element or compound that the box shows; `None` for a port on the frame.
    pub(crate) item: Option<Item>,
    /// The text box of an element or a folded compound; `None` for an open compound or a port.
    pub(crate) card: Option<Card>,
    /// The position of the node, relative to the frame of the compound around it: the horizontal middle (`x`) and the
    /// upper edge (`top`).
    pub(crate) x: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The horizontal positions of ports relative to the middle of the box.
    inputs: Vec<f64>,
    outputs: Vec<f64>,
}

/// A compound with the positions of its contents, relative to the upper left corner of the compound's frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed {
    pub(crate) nodes: Vec<Node>,
    /// The lines, in the order of the compound's links.
    pub(crate) lines: Vec<Line>,
    /// The horizontal positions of the compound's inputs (`entries`) and outputs (`exits`).
    pub(crate) entries: Vec<f64>,
    pub(crate) exits: Vec<f64>,
    /// The horizontal position where the compound's name begins.
    pub(crate) name: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A line: its start, then vertical (one point) and curved (three points) pieces.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) start: (f64, f64),
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a line: its end, and the control points of a curve.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    Down((f64, f64)),
    Curve([(f64, f64); 3]),
}

impl Line {
    /// The line as SVG path data, moved by an offset.
    pub(crate) fn path(&self, (x, y): (f64, f64)) -> String {
        let mut d = format!("M{:.1} {:.1}", self.start.0 + x, self.start.1 + y);
        for piece in &self.pieces {
            let _ = match piece {
                Piece::Down(p) => write!(d, "V{:.1}", p.1 + y),
                Piece::Curve([a, b, c]) => {
                    let [a, b, c] = [a, b, c].map(|p| (p.0 + x, p.1 + y));
                    write!(d, "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}", a.0, a.1, b.0, b.1, c.0, c.1)
                }
            };
        }
        d
    }
}

/// Places everything; the result has an entry for each compound of the scene.
pub(crate) fn place(graph: &Graph, scene: &Scene) -> Vec<Placed> {
    let mut all = vec![Placed::default(); scene.compounds.len()];
    // Compounds are placed in reverse order, so that each is placed before the compound that contains it.
    for (i, compound) in scene.compounds.iter().enumerate().rev() {
        if !compound.folded && !compound.items.is_empty() {
            all[i] = Placed::new(graph, scene, &all, compound, i == 0);
        }
    }
    all
}

/// The text in the head of a compound. It does not include the sign that shows whether the compound is open.
pub(crate) fn head(compound: &Compound) -> String {
    format!("{} :: {}", compound.name(), compound.class)
}

fn nodes(graph: &Graph, scene: &Scene, placed: &[Placed], compound: &Compound) -> Vec<Node> {
    let even = |width: f64, ports: usize| (0..ports).map(|p| offset(width, ports, p)).collect();
    let port = |inputs: Vec<f64>, outputs: Vec<f64>| Node {
        item: None,
        card: None,
        x: 0.0,
        top: 0.0,
        width: 12.0,
        height: PORT,
        inputs,
        outputs,
    };
    let boxes = compound.items.iter().map(|&item| {
        let open = match item {
            Item::Compound(c) if scene.compounds.get(c).is_some_and(|c| !c.folded) => placed.get(c),
            _ => None,
        };
        if let Some(p) = open {
            let from_middle = |all: &[f64]| all.iter().map(|x| x - p.width / 2.0).collect();
            let (inputs, outputs) = (from_middle(&p.entries), from_middle(&p.exits));
            let (width, height) = (p.width, p.height);
            return Node { item: Some(item), card: None, x: 0.0, top: 0.0, width, height, inputs, outputs };
        }
        let card = Card::new(graph, scene, &compound.path, item);
        let (width, height) = (card.width, card.height);
        let (inputs, outputs) = (even(width, card.inputs.len()), even(width, card.outputs.len()));
        Node { item: Some(item), card: Some(card), x: 0.0, top: 0.0, width, height, inputs, outputs }
    });
    let entries = compound.entries.iter().map(|_| port(Vec::new(), vec![0.0]));
    let exits = compound.exits.iter().map(|_| port(vec![0.0], Vec::new()));
    boxes.chain(entries).chain(exits).collect()
}

impl Placed {
    fn new(graph: &Graph, scene: &Scene, placed: &[Placed], compound: &Compound, root: bool) -> Placed {
        let mut nodes = nodes(graph, scene, placed, compound);
        let (boxes, entries) = (compound.items.len(), compound.entries.len());
        let index: HashMap<Item, usize> = compound.items.iter().enumerate().map(|(i, &x)| (x, i)).collect();
        // The node at an end of a link, and the port's number there.
        let at = |end: End| match end {
            End::Port(item, port) => (index.get(&item).copied().unwrap_or(0), port),
            End::Entry(i) => (boxes + i, 0),
            End::Exit(i) => (boxes + entries + i, 0),
        };
        let offset = |ports: &[f64], port: usize| ports.get(port).copied().unwrap_or(0.0);
        let edges: Vec<Edge> = compound
            .links
            .iter()
            .map(|link| {
                let ((from, output), (to, input)) = (at(link.from), at(link.to));
                let from_offset = offset(&nodes[from].outputs, output);
                Edge { from, to, from_offset, to_offset: offset(&nodes[to].inputs, input) }
            })
            .collect();
        let widths: Vec<f64> = nodes.iter().map(|n| n.width).collect();
        let pins: Vec<Pin> = (0..nodes.len())
            .map(|n| match n {
                n if n < boxes => Pin::Free,
                n if n < boxes + entries => Pin::Top,
                _ => Pin::Bottom,
            })
            .collect();
        let layout = layout(&widths, &edges, &pins);
        let (left, top) = match root {
            true => (MARGIN, MARGIN),
            // The inputs are drawn at the top edge of the frame (`Pin::Top` below). The layout puts them in the first
            // layer, so this layer stays empty. The first layer ends where the title band of the frame ends.
            false if entries > 0 => (PADDING, HEAD - PORT),
            false => (PADDING, HEAD + PADDING),
        };
        let rows = Rows::new(&layout, &nodes, top);
        for (i, node) in nodes.iter_mut().enumerate() {
            node.x = layout.x[i] + left;
            node.top = rows.top[layout.layer[i]];
            if pins[i] == Pin::Top {
                node.top = 0.0;
            }
        }
        let lines: Vec<Line> =
            edges.iter().enumerate().map(|(i, e)| line(&layout, &rows, &nodes, e, i, left)).collect();
        let right = nodes.iter().map(|n| n.x + n.width / 2.0);
        let passing = layout.ways.iter().flatten().map(|w| w.1 + left + 8.0);
        let mut width = right.chain(passing).fold(0.0, f64::max) + left;
        let height = match nodes.get(boxes + entries) {
            Some(exit) => exit.top + PORT,
            None => rows.bottom,
        };
        let ports = |range: &[Node]| range.iter().map(|n| n.x).collect::<Vec<f64>>();
        let (entries, exits) = (ports(&nodes[boxes..boxes + entries]), ports(&nodes[boxes + entries..]));
        let mut name = 0.0;
        if !root {
            let text = 32.0 + width_of(&head(compound), Font::Class);
            name = gap(&entries, text, width);
            width = width.max(name + text);
        }
        nodes.truncate(boxes);
        Placed { nodes, lines, entries, exits, name, width, height }
    }
}

/// Returns the leftmost position in the title bar of a compound at which no line to an input crosses a text of this
/// width.
fn gap(entries: &[f64], text: f64, width: f64) -> f64 {
    let mut taken = entries.to_vec();
    taken.sort_by(f64::total_cmp);
    let starts = std::iter::once(0.0).chain(taken.iter().map(|x| x + 8.0));
    let ends = taken.iter().map(|x| x - 8.0).chain([width]);
    let found = starts.clone().zip(ends).find(|(start, end)| end - start >= text);
    found.map(|f| f.0).or(starts.last()).unwrap_or(0.0)
}

/// The vertical positions of layers.
struct Rows {
    top: Vec<f64>,
    end: Vec<f64>,
    bottom: f64,
}

impl Rows {
    fn new(layout: &Layout, nodes: &[Node], start: f64) -> Rows {
        let mut height = vec![0.0f64; layout.layers];
        for (n, &l) in nodes.iter().zip(&layout.layer) {
            height[l] = height[l].max(n.height);
        }
        let used = layers_with_boxes(layout);
        let (mut top, mut end, mut y) = (Vec::new(), Vec::new(), start);
        for (l, h) in height.into_iter().enumerate() {
            top.push(y);
            end.push(y + h);
            y += h + if used.contains(&l) { LAYER_GAP } else { LAYER_GAP / 3.0 };
        }
        Rows { top, end, bottom: y - if layout.layers > 0 { LAYER_GAP / 2.0 } else { 0.0 } }
    }
}

/// The path of a line: straight beside boxes, curved between layers.
fn line(layout: &Layout, rows: &Rows, nodes: &[Node], e: &Edge, index: usize, left: f64) -> Line {
    let (from, to) = (&nodes[e.from], &nodes[e.to]);
    let start = (from.x + e.from_offset, from.top + from.height);
    let end = (to.x + e.to_offset, to.top - 1.0);
    let mut at = (start.0, rows.end[layout.layer[e.from]]);
    let mut pieces = vec![Piece::Down(at)];
    let curve = |a: (f64, f64), b: (f64, f64)| {
        let middle = (a.1 + b.1) / 2.0;
        Piece::Curve([(a.0, middle), (b.0, middle), b])
    };
    if layout.back[index] {
        for (i, &(l, x)) in layout.ways[index].iter().enumerate() {
            let x = x + left;
            if i == 0 {
                let turn = at.1 + LAYER_GAP * 0.8;
                pieces.push(Piece::Curve([(at.0, turn), (x, turn), (x, at.1)]));
            } else {
                pieces.push(curve(at, (x, rows.end[l])));
            }
            at = (x, rows.top[l]);
            pieces.push(Piece::Down(at));
        }
        let turn = at.1 - LAYER_GAP * 0.8;
        pieces.push(Piece::Curve([(at.0, turn), (end.0, turn), end]));
        return Line { start, pieces };
    }
    for &(l, x) in &layout.ways[index] {
        let x = x + left;
        pieces.push(curve(at, (x, rows.top[l])));
        at = (x, rows.end[l]);
        pieces.push(Piece::Down(at));
    }
    pieces.push(curve(at, end));
    Line { start, pieces }
}
