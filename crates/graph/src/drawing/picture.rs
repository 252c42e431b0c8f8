// SPDX-License-Identifier: MIT OR Apache-2.0
//! The positions of everything in a drawing, for programs that draw it themselves.

use super::Drawing;
use super::card::{Card, Font, Look, Port, counted, offset};
use super::place::{Placed, head, place};
use super::scene::{End, Item};
use crate::graph::PortKind;

/// The shape of a drawing. All positions are in pixels, from the upper left corner.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The width of the drawing.
    pub width: f64,
    /// The height of the drawing.
    pub height: f64,
    /// The open compounds, each after the one that contains it.
    pub frames: Vec<Frame>,
    /// The elements and the folded compounds.
    pub boxes: Vec<PictureBox>,
    /// The connections. A connection that crosses the frames of compounds has one line in each of them.
    pub lines: Vec<PictureLine>,
    /// Elements without connections, which are not drawn, by their index in the graph.
    pub alone: Vec<usize>,
}

/// What a box shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// An element, by its index in the graph.
    Element(usize),
    /// A folded compound, by its full name.
    Compound(String),
}

/// A port on the edge of a box or a frame.
#[derive(Clone, Copy, Debug)]
pub struct PicturePort {
    /// The horizontal position of its middle.
    pub x: f64,
    /// Whether it is a pull port.
    pub pull: bool,
    /// Whether its class declares it agnostic.
    pub agnostic: bool,
}

/// A line of text in a box: the text, and whether it is the name, the class or the configuration.
pub type TextLine = (String, &'static str);

/// An element or a folded compound.
#[derive(Clone, Debug)]
pub struct PictureBox {
    /// What it shows.
    pub shown: Shown,
    /// Left, top, width and height.
    pub place: [f64; 4],
    /// What kind of element it is: `storage`, `task`, `other`, `unknown` or `folded`.
    pub look: &'static str,
    /// The declaration, on one line.
    pub title: String,
    /// The text.
    pub text: Vec<TextLine>,
    /// The inputs, on the upper edge.
    pub inputs: Vec<PicturePort>,
    /// The outputs, on the lower edge.
    pub outputs: Vec<PicturePort>,
}

/// An open compound.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The full name of the compound.
    pub path: String,
    /// The text of its head.
    pub head: String,
    /// The number of elements in it.
    pub elements: usize,
    /// Left, top, width and height.
    pub place: [f64; 4],
    /// The horizontal position where the text of the head begins.
    pub name: f64,
    /// The inputs, on the upper edge.
    pub inputs: Vec<PicturePort>,
    /// The outputs, on the lower edge.
    pub outputs: Vec<PicturePort>,
}

/// A line.
#[derive(Clone, Debug)]
pub struct PictureLine {
    /// The line, as path data of SVG.
    pub path: String,
    /// Whether packets are pulled along it.
    pub pull: bool,
    /// Whether it ends at a box, with an arrow head.
    pub arrow: bool,
    /// The position where it begins.
    pub start: (f64, f64),
    /// The connections that it shows, by their index in the flat configuration.
    pub connections: Vec<usize>,
}

impl Drawing<'_> {
    /// The positions of everything in the drawing.
    pub fn picture(&self) -> Picture {
        let placed = place(self.graph, &self.scene);
        let mut out = Picture { alone: self.scene.alone.clone(), ..Picture::default() };
        if let Some(root) = placed.first() {
            (out.width, out.height) = (root.width, root.height);
        }
        self.contents(&mut out, &placed, 0, (0.0, 0.0));
        out
    }

    /// Adds the contents of an open compound whose frame has its upper left corner at `corner`. The language limits how
    /// deep compounds nest.
    fn contents(&self, out: &mut Picture, placed: &[Placed], compound: usize, corner: (f64, f64)) {
        let (Some(c), Some(p)) = (self.scene.compounds.get(compound), placed.get(compound)) else { return };
        for (link, line) in c.links.iter().zip(&p.lines) {
            out.lines.push(PictureLine {
                path: line.path(corner),
                pull: link.kind == PortKind::Pull,
                arrow: !matches!(link.to, End::Exit(_)),
                start: (line.start.0 + corner.0, line.start.1 + corner.1),
                connections: link.connections.clone(),
            });
        }
        for node in &p.nodes {
            let (left, top) = (node.x - node.width / 2.0 + corner.0, node.top + corner.1);
            match (node.item, &node.card) {
                (Some(item), Some(card)) => out.boxes.push(self.card(item, card, left, top)),
                (Some(Item::Compound(inner)), None) => {
                    self.frame(out, placed, inner, (left, top));
                    self.contents(out, placed, inner, (left, top));
                }
                _ => {}
            }
        }
    }

    fn frame(&self, out: &mut Picture, placed: &[Placed], compound: usize, (left, top): (f64, f64)) {
        let (Some(c), Some(p)) = (self.scene.compounds.get(compound), placed.get(compound)) else { return };
        let ports = |at: &[f64], kinds: &[PortKind]| {
            let each = at.iter().zip(kinds);
            each.map(|(x, kind)| PicturePort { x: x + left, pull: *kind == PortKind::Pull, agnostic: false })
                .collect()
        };
        out.frames.push(Frame {
            path: c.path.clone(),
            head: head(c),
            elements: c.elements,
            place: [left, top, p.width, p.height],
            name: left + p.name,
            inputs: ports(&p.entries, &c.entries),
            outputs: ports(&p.exits, &c.exits),
        });
    }

    fn card(&self, item: Item, card: &Card, left: f64, top: f64) -> PictureBox {
        let ports = |all: &[Port]| {
            let x = |i| left + card.width / 2.0 + offset(card.width, all.len(), i);
            let each = all.iter().enumerate();
            each.map(|(i, p)| PicturePort { x: x(i), pull: p.pull, agnostic: p.agnostic }).collect()
        };
        let font = |line: &[(String, Font)]| match line.last().map(|piece| piece.1) {
            Some(Font::Class) => "class",
            Some(Font::Config) => "config",
            _ => "name",
        };
        let text = card.lines.iter();
        let text = text.map(|line| (line.iter().map(|piece| piece.0.as_str()).collect(), font(line)));
        PictureBox {
            shown: match item {
                Item::Element(e) => Shown::Element(e),
                Item::Compound(c) => {
                    Shown::Compound(self.scene.compounds.get(c).map(|c| c.path.clone()).unwrap_or_default())
                }
            },
            place: [left, top, card.width, card.height],
            look: match card.look {
                Look::Storage => "storage",
                Look::Task => "task",
                Look::Other => "other",
                Look::Unknown => "unknown",
                Look::Folded => "folded",
            },
            title: card.title.clone(),
            text: text.collect(),
            inputs: ports(&card.inputs),
            outputs: ports(&card.outputs),
        }
    }
}

impl Frame {
    /// The number of elements in words: `3 elements`.
    pub fn size(&self) -> String {
        counted(self.elements, "element")
    }
}
