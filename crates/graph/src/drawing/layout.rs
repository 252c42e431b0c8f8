// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of a drawing: layers by longest path, few crossings, straight edges. The result is deterministic.

use std::collections::HashSet;

/// An edge to draw, with the positions of its ends relative to the middle of their boxes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) from_offset: f64,
    pub(crate) to_offset: f64,
}

/// The layout: the layer and the horizontal middle of each box, and the positions where each edge crosses layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The layer of each box.
    pub(crate) layer: Vec<usize>,
    /// The horizontal middle of each box.
    pub(crate) x: Vec<f64>,
    /// For each edge, its horizontal position in each layer that it crosses. The layers are ordered from top to bottom,
    /// or from bottom to top for a back edge.
    pub(crate) ways: Vec<Vec<(usize, f64)>>,
    /// For each edge, whether it is a back edge.
    pub(crate) back: Vec<bool>,
    /// The number of layers.
    pub(crate) layers: usize,
}

/// Where a box must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// In any layer.
    Free,
    /// In the first layer, which contains no box with the pin `Free`. A box with the pin `Top` has no incoming edges.
    Top,
    /// In the last layer, which contains no box with the pin `Free`. A box with the pin `Bottom` has no outgoing edges.
    Bottom,
}

/// The cells of all layers: boxes first, then points where edges pass or turn.
pub(crate) struct Cells {
    pub(crate) layer: Vec<usize>,
    pub(crate) width: Vec<f64>,
    pub(crate) x: Vec<f64>,
    /// Neighbours in the layers above and below: cell, offset at this cell, offset at the other cell.
    pub(crate) above: Vec<Vec<(usize, f64, f64)>>,
    pub(crate) below: Vec<Vec<(usize, f64, f64)>>,
    pub(crate) boxes: usize,
}

/// The maximum number of cells: boxes, and points where edges pass or turn. When the maximum is reached, further edges
/// are drawn without points. In such a large drawing, single edges cannot be followed anyway.
const MAX_POINTS: usize = 200_000;

/// Lays out boxes of the given widths. A box for which `pins` has no entry is free.
pub(crate) fn layout(widths: &[f64], edges: &[Edge], pins: &[Pin]) -> Layout {
    let back = back_edges(widths.len(), edges);
    let mut layer = layers(widths.len(), edges, &back, pins);
    // A back edge that turns above the top layer needs a further layer there.
    if edges.iter().zip(&back).any(|(e, &b)| b && layer[e.to] == 0) {
        layer.iter_mut().for_each(|l| *l += 1);
    }
    let mut cells = Cells {
        width: widths.to_vec(),
        x: vec![0.0; widths.len()],
        above: vec![Vec::new(); widths.len()],
        below: vec![Vec::new(); widths.len()],
        boxes: widths.len(),
        layer,
    };
    let chains: Vec<Vec<usize>> = edges.iter().zip(&back).map(|(e, &b)| cells.chain(e, b)).collect();
    let layers = cells.layer.iter().max().map_or(0, |l| l + 1);
    let mut rows = cells.first_order(layers);
    cells.reduce_crossings(&mut rows);
    cells.place(&rows);
    cells.straighten(&rows, &chains);
    let ways = chains.iter().zip(edges).zip(&back).map(|((chain, e), &b)| {
        // Leave out the first and the last point of a back edge, which only keep space free for its turns.
        let inner = if b { chain.get(1..chain.len().saturating_sub(1)).unwrap_or(&[]) } else { chain };
        let own =
            if b && inner.is_empty() { vec![(cells.layer[e.from], cells.x[e.from])] } else { Vec::new() };
        inner.iter().map(|&c| (cells.layer[c], cells.x[c])).chain(own).collect()
    });
    let ways = ways.collect();
    cells.layer.truncate(widths.len());
    cells.x.truncate(widths.len());
    Layout { layer: cells.layer, x: cells.x, ways, back, layers }
}

/// Finds the edges that close cycles, by a depth-first search. The search starts at boxes without incoming edges, in
/// order.
fn back_edges(n: usize, edges: &[Edge]) -> Vec<bool> {
    let mut out = vec![Vec::new(); n];
    let mut entered = vec![false; n];
    for (i, e) in edges.iter().enumerate() {
        out[e.from].push(i);
        entered[e.to] |= e.from != e.to;
    }
    let mut back = vec![false; edges.len()];
    let mut state = vec![0u8; n];
    for root in (0..n).filter(|&b| !entered[b]).chain((0..n).filter(|&b| entered[b])) {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, 0)];
        while let Some((b, next)) = stack.last_mut() {
            let (b, i) = (*b, *next);
            *next += 1;
            match out[b].get(i) {
                Some(&e) => match state[edges[e].to] {
                    0 => {
                        state[edges[e].to] = 1;
                        stack.push((edges[e].to, 0));
                    }
                    1 => back[e] = true,
                    _ => {}
                },
                None => {
                    state[b] = 2;
                    stack.pop();
                }
            }
        }
    }
    back
}

/// Assigns layers by longest path. Pinned boxes get the first or the last layer. Free boxes without incoming edges
/// then move down to just above their nearest successor.
fn layers(n: usize, edges: &[Edge], back: &[bool], pins: &[Pin]) -> Vec<usize> {
    let pin = |b: usize| pins.get(b).copied().unwrap_or(Pin::Free);
    let mut out = vec![Vec::new(); n];
    let mut missing = vec![0usize; n];
    for (e, _) in edges.iter().zip(back).filter(|(_, b)| !**b) {
        out[e.from].push(e.to);
        missing[e.to] += 1;
    }
    let sources: Vec<usize> = (0..n).filter(|&b| missing[b] == 0).collect();
    let first = usize::from(pins.contains(&Pin::Top));
    let mut layer: Vec<usize> = (0..n).map(|b| if pin(b) == Pin::Top { 0 } else { first }).collect();
    let mut ready = sources.clone();
    while let Some(b) = ready.pop() {
        for &t in &out[b] {
            layer[t] = layer[t].max(layer[b] + 1);
            missing[t] -= 1;
            if missing[t] == 0 {
                ready.push(t);
            }
        }
    }
    let last = (0..n).filter(|&b| pin(b) != Pin::Bottom).map(|b| layer[b] + 1).max().unwrap_or(0);
    for b in (0..n).filter(|&b| pin(b) == Pin::Bottom) {
        layer[b] = last;
    }
    for b in sources.into_iter().filter(|&b| pin(b) == Pin::Free) {
        if let Some(nearest) = out[b].iter().map(|&t| layer[t]).min() {
            layer[b] = nearest.saturating_sub(1);
        }
    }
    layer
}

impl Cells {
    fn point(&mut self, layer: usize) -> usize {
        self.layer.push(layer);
        self.width.push(0.0);
        self.x.push(0.0);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.layer.len() - 1
    }

    fn tie(&mut self, a: (usize, f64), b: (usize, f64)) {
        let ((upper, upper_offset), (lower, lower_offset)) =
            if self.layer[a.0] < self.layer[b.0] { (a, b) } else { (b, a) };
        self.below[upper].push((lower, upper_offset, lower_offset));
        self.above[lower].push((upper, lower_offset, upper_offset));
    }

    /// Adds the points where an edge crosses layers. A back edge turns below its start, passes upward beside
    /// all boxes between its two ends, and turns above its end.
    fn chain(&mut self, e: &Edge, back: bool) -> Vec<usize> {
        let (from, to) = (self.layer[e.from], self.layer[e.to]);
        let crossed: Vec<usize> =
            if back { (to.saturating_sub(1)..=from + 1).rev().collect() } else { (from + 1..to).collect() };
        if self.layer.len() + crossed.len() > MAX_POINTS {
            return Vec::new();
        }
        let chain: Vec<usize> = crossed.into_iter().map(|l| self.point(l)).collect();
        let mut last = (e.from, e.from_offset);
        for &c in &chain {
            self.tie(last, (c, 0.0));
            last = (c, 0.0);
        }
        self.tie(last, (e.to, e.to_offset));
        chain
    }

    /// The initial order of cells in each layer: depth-first along edges, so that connected cells stay close.
    fn first_order(&self, layers: usize) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); layers];
        let mut seen = vec![false; self.layer.len()];
        for root in 0..self.layer.len() {
            let mut stack = vec![root];
            while let Some(c) = stack.pop() {
                if std::mem::replace(&mut seen[c], true) {
                    continue;
                }
                rows[self.layer[c]].push(c);
                stack.extend(
                    self.above[c].iter().chain(&self.below[c]).rev().map(|n| n.0).filter(|&n| !seen[n]),
                );
            }
        }
        rows
    }

    /// Reduces crossings by sweeping down and up. The cells of each layer are sorted by the mean position of their
    /// neighbours, and the best order found is kept.
    fn reduce_crossings(&self, rows: &mut Vec<Vec<usize>>) {
        let rounds = if self.layer.len() > 5000 { 4 } else { 24 };
        let mut place = vec![0.0; self.layer.len()];
        for row in rows.iter() {
            for (i, &c) in row.iter().enumerate() {
                place[c] = i as f64;
            }
        }
        let (mut best, mut fewest) = (rows.clone(), self.crossings(rows, &place));
        for round in 0..rounds {
            let down = round % 2 == 0;
            for step in 0..rows.len() {
                let l = if down { step } else { rows.len() - 1 - step };
                let wanted = |c: usize| {
                    let near = if down { &self.above[c] } else { &self.below[c] };
                    // If two edges lead to the same box, the order of their ports on the box decides.
                    let sum: f64 = near.iter().map(|&(n, _, o)| place[n] + o / (self.width[n] + 1.0)).sum();
                    if near.is_empty() { place[c] } else { sum / near.len() as f64 }
                };
                let mut keys: Vec<(f64, usize)> = rows[l].iter().map(|&c| (wanted(c), c)).collect();
                keys.sort_by(|a, b| a.0.total_cmp(&b.0));
                for (i, &(_, c)) in keys.iter().enumerate() {
                    place[c] = i as f64;
                }
                rows[l] = keys.into_iter().map(|k| k.1).collect();
            }
            let crossings = self.crossings(rows, &place);
            if crossings < fewest {
                (best, fewest) = (rows.clone(), crossings);
            }
        }
        *rows = best;
    }

    /// Counts the crossings between adjacent layers as inversions, using a Fenwick tree.
    fn crossings(&self, rows: &[Vec<usize>], place: &[f64]) -> usize {
        let mut total = 0;
        for row in rows {
            let mut ends: Vec<(f64, f64)> = Vec::new();
            for &c in row {
                let near = self.below[c].iter();
                ends.extend(near.map(|&(n, o, p)| {
                    (place[c] + o / (self.width[c] + 1.0), place[n] + p / (self.width[n] + 1.0))
                }));
            }
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let mut targets: Vec<f64> = ends.iter().map(|e| e.1).collect();
            targets.sort_by(f64::total_cmp);
            targets.dedup();
            let mut tree = vec![0usize; targets.len() + 1];
            for (seen, e) in ends.iter().enumerate() {
                let rank = targets.partition_point(|t| *t <= e.1);
                let mut i = rank;
                let mut not_right = 0;
                while i > 0 {
                    not_right += tree[i];
                    i &= i - 1;
                }
                total += seen - not_right;
                let mut i = rank;
                while i < tree.len() {
                    tree[i] += 1;
                    i += i & i.wrapping_neg();
                }
            }
        }
        total
    }
}

/// The number of pairs of overlapping boxes; zero for a correct layout.
#[cfg(test)]
pub(crate) fn overlaps(layout: &Layout, widths: &[f64]) -> usize {
    let mut n = 0;
    for a in 0..widths.len() {
        for b in 0..a {
            let near = (layout.x[a] - layout.x[b]).abs() < (widths[a] + widths[b]) / 2.0 + 1.0;
            n += usize::from(layout.layer[a] == layout.layer[b] && near);
        }
    }
    n
}

/// The layers that contain at least one box.
pub(crate) fn layers_with_boxes(layout: &Layout) -> HashSet<usize> {
    layout.layer.iter().copied().collect()
}
