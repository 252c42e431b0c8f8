// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flame graphs: a box for each frame, as wide as its time, above the frames that it consists of.

use castanet_bench::chart;
use castanet_graph::drawing::escaped;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
/// The height of a row of boxes.
const ROW: f64 = 20.0;
const TITLE: f64 = 30.0;
/// The width of a letter, for texts that must fit into a box.
const LETTER: f64 = 7.0;
/// The colours of the boxes, by depth.
const COLORS: [&str; 4] = ["#d9d4c7", "#e8b35a", "#e08e4f", "#d7694c"];

/// A frame, with the frames in it.
#[derive(Default)]
struct Frame {
    time: u64,
    note: String,
    inner: BTreeMap<String, Frame>,
}

impl Frame {
    fn depth(&self) -> usize {
        1 + self.inner.values().map(Frame::depth).max().unwrap_or(0)
    }
}

/// Draws stacks of frames, each with its time in nanoseconds and a note.
pub fn svg(stacks: impl Iterator<Item = (Vec<String>, u64, String)>) -> String {
    let mut root = Frame::default();
    for (frames, time, note) in stacks {
        root.time = root.time.saturating_add(time);
        let mut frame = &mut root;
        for name in frames {
            frame = frame.inner.entry(name).or_default();
            frame.time = frame.time.saturating_add(time);
        }
        frame.note = note;
    }
    let height = TITLE + ROW * root.depth() as f64 + MARGIN;
    let mut out = chart::open("Share of the time of each element", WIDTH, height);
    let scale = (WIDTH - 2.0 * MARGIN) / root.time.max(1) as f64;
    draw(&mut out, ("all", &root), (MARGIN, TITLE), 0, (scale, root.time.max(1) as f64));
    out + chart::CLOSE
}

/// Draws a frame at a place, and below it the frames in it, the longest first.
fn draw(
    out: &mut String,
    (name, frame): (&str, &Frame),
    (x, y): (f64, f64),
    depth: usize,
    (scale, all): (f64, f64),
) {
    let width = frame.time as f64 * scale;
    let color = COLORS[depth.min(COLORS.len() - 1)];
    let share = 100.0 * frame.time as f64 / all;
    let name = escaped(name);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<g><title>{name}: {share:.1} %{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" \
         fill=\"{color}\" stroke=\"white\"/>",
        escaped(&frame.note),
        ROW - 1.0
    );
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    if room >= 3 {
        let full = format!("{name} {share:.1} %");
        let text = if full.chars().count() <= room { full } else { shortened(&name, room) };
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{text}</text>", x + 3.0, y + 14.0);
    }
    out.push_str("</g>\n");
    let mut inner: Vec<_> = frame.inner.iter().collect();
    inner.sort_by_key(|f| std::cmp::Reverse(f.1.time));
    let mut left = x;
    for (name, inside) in inner {
        draw(out, (name, inside), (left, y + ROW), depth + 1, (scale, all));
        left += inside.time as f64 * scale;
    }
}

/// The beginning of a name. A name that was escaped is not cut inside a reference.
fn shortened(name: &str, room: usize) -> String {
    if name.chars().count() <= room || name.contains('&') {
        return if name.chars().count() <= room { name.to_string() } else { String::new() };
    }
    name.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}
