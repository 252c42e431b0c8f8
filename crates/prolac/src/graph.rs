// SPDX-License-Identifier: MIT OR Apache-2.0
//! A drawing of the modules of a program and how they extend each other, as SVG.

use crate::counted;
use crate::program::{ModuleId, Program};
use std::fmt::Write;

const CHARACTER: usize = 8;
const HEIGHT: usize = 28;
const GAP: usize = 16;
const ROW: usize = 64;

/// A module in the drawing: the middle of its box, the row, and the width.
struct Placed {
    module: ModuleId,
    x: usize,
    row: usize,
    width: usize,
}

/// The drawing of a program. Parents stand above their children; exported modules have a thick frame.
pub fn svg(program: &Program) -> String {
    let mut placed: Vec<Placed> = Vec::new();
    let mut right = GAP;
    for (i, m) in program.modules.iter().enumerate() {
        if m.parent.is_none() {
            right = place(program, &mut placed, ModuleId(i), 0, right);
        }
    }
    let rows = placed.iter().map(|p| p.row + 1).max().unwrap_or(0);
    let (width, height) = (right.max(2 * GAP), rows * ROW + GAP);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    );
    out.push_str(
        "<style>text { font: 13px monospace; text-anchor: middle } rect { fill: white; stroke: black } ",
    );
    out.push_str("path { fill: none; stroke: gray }</style>\n");
    let top = |row: usize| GAP + row * ROW;
    for p in &placed {
        let parent = program.module(p.module).parent.and_then(|m| placed.iter().find(|q| q.module == m));
        if let Some(q) = parent {
            let (from, to) = (top(q.row) + HEIGHT, top(p.row));
            let middle = (from + to) / 2;
            let _ = writeln!(out, "<path d=\"M{} {from} V{middle} H{} V{to}\"/>", q.x, p.x);
        }
    }
    for p in &placed {
        let m = program.module(p.module);
        let y = top(p.row);
        let frame = if program.exports.contains(&p.module) { 2 } else { 1 };
        let _ = writeln!(
            out,
            "<g><title>{}: {}, {}</title><rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{HEIGHT}\" \
             rx=\"4\" stroke-width=\"{frame}\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
            m.name,
            counted(program.methods.iter().filter(|x| x.module == p.module).count(), "method"),
            counted(m.fields.len(), "field"),
            p.x - p.width / 2,
            p.width,
            p.x,
            y + 18,
            m.name,
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Places a module and its descendants from the column `left` on. Returns the first column after them.
fn place(program: &Program, placed: &mut Vec<Placed>, module: ModuleId, row: usize, left: usize) -> usize {
    let m = program.module(module);
    let width = m.name.chars().count() * CHARACTER + GAP;
    let mut right = left;
    for child in &m.children {
        right = place(program, placed, *child, row + 1, right);
    }
    // The box is centred over the boxes below it.
    let right = right.max(left + width + GAP);
    placed.push(Placed { module, x: left + (right - GAP - left) / 2, row, width });
    right
}
