// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small reader of drawings: the tree of their tags, and the geometry of their shapes.

use crate::drawing::card::DIGIT;
use std::collections::HashMap;

/// A tag with its contents.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) tag: String,
    pub(super) attrs: HashMap<String, String>,
    pub(super) children: Vec<Node>,
    /// All text in this tag and in its children.
    pub(super) text: String,
}

impl Node {
    pub(super) fn class(&self) -> &str {
        self.attrs.get("class").map_or("", String::as_str)
    }
    pub(super) fn title(&self) -> &str {
        self.children.iter().find(|n| n.tag == "title").map_or("", |n| &n.text)
    }
    pub(super) fn number(&self, attribute: &str) -> f64 {
        self.attrs[attribute].parse().unwrap()
    }
    /// All parts for which `f` is true.
    pub(super) fn all<'a>(&'a self, f: &dyn Fn(&Node) -> bool) -> Vec<&'a Node> {
        let own = f(self).then_some(self);
        own.into_iter().chain(self.children.iter().flat_map(|n| n.all(f))).collect()
    }
    pub(super) fn has(&self, f: &dyn Fn(&Node) -> bool) -> bool {
        !self.all(f).is_empty()
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    for amp in text.split('&').skip(1) {
        if !["amp;", "lt;", "gt;", "quot;"].iter().any(|e| amp.starts_with(e)) {
            return Err(format!("stray '&' in {text}"));
        }
    }
    Ok(text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"))
}

/// Reads a drawing, if its tags are balanced and its text is escaped.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut open = vec![Node::default()];
    for piece in text.split('<').skip(1) {
        let (tag, after) = piece.split_once('>').ok_or("tag without end")?;
        let raw = open.last().is_some_and(|n| n.tag == "style") || tag == "style";
        if after.contains('>') && !raw {
            return Err(format!("stray '>' in {after}"));
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes in {tag}"));
        }
        let name = tag.split([' ', '/']).find(|n| !n.is_empty()).ok_or("tag without name")?;
        if tag.starts_with('/') {
            let node = open.pop().filter(|n| n.tag == name).ok_or(format!("</{name}> closes nothing"))?;
            let parent = open.last_mut().ok_or("nothing is open")?;
            parent.text.push_str(&node.text);
            parent.children.push(node);
        } else {
            let mut node = Node { tag: name.to_string(), ..Node::default() };
            let mut rest = tag.trim_end_matches('/').get(name.len()..).unwrap_or("").trim();
            while let Some((key, value)) = rest.split_once("=\"") {
                let (value, more) = value.split_once('"').ok_or("quotes")?;
                node.attrs.insert(key.trim().to_string(), unescaped(value)?);
                rest = more;
            }
            match tag.ends_with('/') {
                true => open.last_mut().ok_or("nothing is open")?.children.push(node),
                false => open.push(node),
            }
        }
        if let Some(n) = open.last_mut().filter(|_| !after.trim().is_empty()) {
            n.text.push_str(&unescaped(after.trim_matches('\n'))?);
        }
    }
    match open.as_mut_slice() {
        [all] if all.children.len() == 1 => Ok(all.children.remove(0)),
        _ => Err(format!("open: {}", open.len())),
    }
}

/// The left, right, upper and lower edge of a rectangle.
pub(super) fn rectangle(n: &Node) -> [f64; 4] {
    let (x, y) = (n.number("x"), n.number("y"));
    [x, x + n.number("width"), y, y + n.number("height")]
}

/// The left and the right end of a text, given the widths of characters. Of the two signs of a
/// compound (open, folded) only one is visible; the other has no width.
pub(super) fn extent(text: &Node, wide: f64, narrow: f64) -> (f64, f64) {
    let each = match text.class() {
        "config" => narrow,
        "number" => DIGIT,
        _ => wide,
    };
    let signs = text.children.iter().filter(|n| n.class() == "sign shut").count();
    let width = (text.text.chars().count() - signs) as f64 * each;
    let x = text.number("x");
    match text.attrs.get("text-anchor").map(String::as_str) {
        Some("middle") => (x - width / 2.0, x + width / 2.0),
        _ => (x, x + width),
    }
}

/// The pieces of path data, each a letter and its numbers.
fn pieces(d: &str) -> Vec<(char, Vec<f64>)> {
    let starts: Vec<usize> =
        d.match_indices(|c: char| c.is_alphabetic()).map(|m| m.0).chain([d.len()]).collect();
    let piece = |w: &[usize]| {
        let text = &d[w[0]..w[1]];
        let numbers = text[1..].split_whitespace().map(|n| n.parse().unwrap()).collect();
        (text.chars().next().unwrap(), numbers)
    };
    starts.windows(2).map(piece).collect()
}

/// The ends of the pieces of a path.
pub(super) fn points(d: &str) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (letter, n) in pieces(d) {
        let x = all.last().map_or(0.0, |p| p.0);
        all.push(if letter == 'V' { (x, n[0]) } else { (n[n.len() - 2], n[n.len() - 1]) });
    }
    all
}

/// Points along a path.
pub(super) fn along(d: &str) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (letter, n) in pieces(d) {
        let Some(&from) = all.last() else {
            all.push((n[0], n[1]));
            continue;
        };
        for step in 1..=16 {
            let t = f64::from(step) / 16.0;
            let bezier = |a: f64, b: f64, c: f64, d: f64| {
                let u = 1.0 - t;
                u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
            };
            all.push(match letter {
                'V' => (from.0, from.1 + (n[0] - from.1) * t),
                _ => (bezier(from.0, n[0], n[2], n[4]), bezier(from.1, n[1], n[3], n[5])),
            });
        }
    }
    all
}
