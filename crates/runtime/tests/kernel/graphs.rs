// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random configurations of classes that can run in the kernel, and the smallest configuration that shows a difference.

use crate::frames::Random;
use crate::pieces::PIECES;
use crate::{Outcome, Timed, World, try_compare};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The place of an input or output: the element and the port.
type Port = (usize, usize);

#[derive(Clone)]
struct Node {
    text: String,
    inputs: usize,
    outputs: Vec<Option<Port>>,
    /// Whether packets are pulled from the output.
    pulled: bool,
}

/// A random configuration.
#[derive(Clone)]
pub struct Graph {
    nodes: Vec<Node>,
    /// The times in milliseconds, the elements, and handlers with values.
    writes: Vec<(u64, usize, String)>,
}

/// The kinds of packets before the first random element.
const BEGINNINGS: [&[&str]; 8] = [
    &[],
    &["Strip(14)", "CheckIPHeader"],
    &["Strip(14)", "CheckIPHeader", "GetIPAddress(16)"],
    &["CheckIPHeader(14)"],
    &["MarkIPHeader(14)"],
    &["Classifier(12/0800)", "Strip(14)", "MarkIPHeader"],
    &["VLANDecap"],
    &["HostEtherFilter(2:0:0:0:0:0)", "Classifier(12/0800)", "Paint(1)", "Strip(14)", "CheckIPHeader"],
];

impl Graph {
    fn add(&mut self, text: impl Into<String>, inputs: usize, outputs: usize) -> usize {
        self.nodes.push(Node { text: text.into(), inputs, outputs: vec![None; outputs], pulled: false });
        self.nodes.len() - 1
    }
    fn connect(&mut self, (from, port): Port, to: Port) {
        self.nodes[from].outputs[port] = Some(to);
    }
    fn next(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        self.nodes[from].outputs.iter().flatten().map(|p| p.0)
    }
    /// The elements that packets of some elements may reach, themselves included.
    fn reached(&self, mut from: Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        while let Some(n) = from.pop() {
            if !std::mem::replace(&mut reached[n], true) {
                from.extend(self.next(n));
            }
        }
        reached
    }

    /// A configuration that follows from a seed. Timed arrive until `end` milliseconds.
    pub fn random(seed: u64, end: u64) -> Graph {
        let mut r = Random::new(seed ^ 0x6a09_e667);
        let mut g = Graph { nodes: Vec::new(), writes: Vec::new() };
        let mut open = Vec::new();
        for device in 0..1 + usize::from(r.one_in(3)) {
            let mut last = g.add(format!("FromDevice(eth{device})"), 0, 1);
            for text in r.of(&BEGINNINGS) {
                let e = g.add(*text, 1, 1);
                g.connect((last, 0), (e, 0));
                last = e;
            }
            open.push((last, 0));
        }
        for _ in 0..2 + r.below(14) {
            if open.is_empty() || open.len() > 10 {
                break;
            }
            let from = open.swap_remove(r.below(open.len() as u64) as usize);
            let joins: Vec<usize> = (0..g.nodes.len())
                .filter(|&n| g.nodes[n].inputs > 0 && !g.reached(vec![n])[from.0])
                .collect();
            match r.below(12) {
                0 | 1 if !joins.is_empty() => {
                    let to = r.of(&joins);
                    let input = r.below(g.nodes[to].inputs as u64) as usize;
                    g.connect(from, (to, input));
                }
                // A packet passes the same elements twice.
                2 => {
                    let (first, check) = (g.add("Null", 1, 1), g.add("CheckPaint(7, 21)", 1, 2));
                    let paint = g.add("Paint(7, 21)", 1, 1);
                    g.connect(from, (first, 0));
                    g.connect((first, 0), (check, 0));
                    g.connect((check, 1), (paint, 0));
                    g.connect((paint, 0), (first, 0));
                    open.push((check, 0));
                }
                // A queue that stays at user level.
                3 if r.one_in(3) => {
                    let (queue, out) = (g.add("Queue", 1, 1), g.add("Unqueue", 1, 1));
                    g.nodes[queue].pulled = true;
                    g.connect(from, (queue, 0));
                    g.connect((queue, 0), (out, 0));
                    open.push((out, 0));
                }
                _ => {
                    let piece = PIECES[r.below(PIECES.len() as u64) as usize].1(&mut r);
                    let e = g.add(piece.text, piece.ports.0, piece.ports.1);
                    g.connect(from, (e, 0));
                    open.extend((0..piece.ports.1).map(|port| (e, port)));
                    if !piece.writes.is_empty() && r.one_in(3) {
                        for _ in 0..1 + r.below(3) {
                            let write = &piece.writes[r.below(piece.writes.len() as u64) as usize];
                            g.writes.push((r.below(end), e, write.clone()));
                        }
                    }
                }
            }
        }
        for from in open {
            g.end(from, &mut r);
        }
        g.writes.sort();
        g
    }

    /// The same configuration, in which no handlers are written.
    pub fn without_writes(self) -> Graph {
        Graph { writes: Vec::new(), ..self }
    }

    /// Lets packets of an output end.
    fn end(&mut self, from: Port, r: &mut Random) {
        let to = match r.below(6) {
            0 | 1 => self.add("Discard", 1, 0),
            2 | 3 => {
                let text = r.of(&[
                    "ToDevice(eth0)",
                    "ToDevice(eth1)",
                    "ToDevice(eth1)",
                    "ToDevice(eth1, METHOD PACKET)",
                ]);
                // Some pass on what they could not send, or also what they have sent.
                let outputs = r.below(8).saturating_sub(5) as usize;
                let (queue, out) = (self.add("Queue", 1, 1), self.add(text, 1, outputs));
                for port in 0..outputs {
                    let seen = self.add(format!("Observe(p{})", self.nodes.len()), 1, 0);
                    self.connect((out, port), (seen, 0));
                }
                self.nodes[queue].pulled = true;
                self.connect((queue, 0), (out, 0));
                queue
            }
            _ => self.add(format!("Observe(p{})", self.nodes.len()), 1, 0),
        };
        self.connect(from, (to, 0));
    }

    /// The text. Elements that no packet can reach are left out.
    pub fn text(&self) -> String {
        let sources = (0..self.nodes.len()).filter(|&n| self.nodes[n].inputs == 0).collect();
        let reached = self.reached(sources);
        let (mut text, mut links) = (String::new(), String::new());
        let here = || (0..self.nodes.len()).filter(|&n| reached[n]);
        for n in here() {
            let _ = write!(text, "e{n} :: {}; ", self.nodes[n].text);
            for (port, to) in self.nodes[n].outputs.iter().enumerate() {
                let _ = match to {
                    Some((e, 0)) if port == 0 => write!(links, "e{n} -> e{e}; "),
                    Some((e, input)) => write!(links, "e{n} [{port}] -> [{input}] e{e}; "),
                    None => write!(links, "e{n} [{port}] -> Discard; "),
                };
            }
            for input in 0..self.nodes[n].inputs {
                if !here().any(|m| self.nodes[m].outputs.contains(&Some((n, input)))) {
                    let _ = write!(links, "Idle -> [{input}] e{n}; ");
                }
            }
        }
        text += &links;
        let writes: Vec<_> = self.writes.iter().filter(|w| reached[w.1]).collect();
        if !writes.is_empty() {
            let (mut now, mut steps) = (0, Vec::new());
            for (at, e, write) in writes {
                steps.push(format!(
                    "wait {}us, write e{e}.{write}",
                    (at - now) * 1000 + if now == 0 { 500 } else { 0 }
                ));
                now = *at;
            }
            let _ = write!(text, "Script({});", steps.join(", "));
        }
        text
    }

    /// Configurations that are a little smaller.
    fn smaller(&self) -> Vec<Graph> {
        let mut all = Vec::new();
        for i in 0..self.writes.len() {
            let mut g = self.clone();
            g.writes.remove(i);
            all.push(g);
        }
        for (n, node) in self.nodes.iter().enumerate() {
            for (port, to) in node.outputs.iter().enumerate() {
                if to.is_some_and(|t| self.nodes[t.0].text != "Discard") && !node.pulled {
                    let mut g = self.clone();
                    let end = g.add("Discard", 1, 0);
                    g.connect((n, port), (end, 0));
                    all.push(g);
                }
                if node.inputs > 0 && to.is_some() {
                    // Packets go around the element.
                    let mut g = self.clone();
                    let ways = g.nodes.iter_mut().flat_map(|x| x.outputs.iter_mut());
                    ways.filter(|way| way.is_some_and(|p| p.0 == n)).for_each(|way| *way = *to);
                    all.push(g);
                }
            }
        }
        all
    }
}

/// Why the two runs of a configuration differ, or none.
fn difference(text: &str, frames: &Timed, world: fn() -> World) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| try_compare(text, frames, world))) {
        Ok(Outcome::Differs(how)) => Some(how),
        Ok(_) => None,
        Err(panic) => Some(match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, text) => text.copied().unwrap_or("a panic").to_string(),
        }),
    }
}

/// Removes all that is not needed to show a difference. Returns a report.
fn reduced(graph: Graph, mut frames: Timed, world: fn() -> World) -> String {
    let mut smallest = graph;
    let mut size = frames.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < frames.len() {
            let mut fewer = frames.clone();
            // The times of the others stay.
            fewer[at..(at + size).min(frames.len())].iter_mut().for_each(|f| f.1.clear());
            fewer.retain(|f| !f.1.is_empty());
            if difference(&smallest.text(), &fewer, world).is_some() {
                frames = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    while let Some(smaller) = smallest
        .smaller()
        .into_iter()
        .filter(|g| g.text().len() < smallest.text().len())
        .find(|g| difference(&g.text(), &frames, world).is_some())
    {
        smallest = smaller;
    }
    let text = smallest.text();
    let how = difference(&text, &frames, world).unwrap_or_default();
    format!("{text}\n{frames:02x?}\n{how}")
}

/// Compares random configurations on random and mutated frames. Returns how many ran, and the numbers of frames that came up
/// and that did not.
pub fn random_graphs_in(
    world: fn() -> World,
    seeds: std::ops::Range<u64>,
    frames_each: usize,
) -> (u64, u64, u64) {
    let mut sums = (0, 0, 0);
    for seed in seeds {
        if seed % 500 == 0 {
            println!("from seed {seed} on");
        }
        let graph = Graph::random(seed, frames_each as u64);
        // The clock of the real kernel is not that of the simulated one.
        if graph.text().contains("Meter(") && world().is_real() {
            continue;
        }
        let mut random = Random::new(seed);
        let frames: Timed = (0..frames_each)
            .map(|i| {
                let device = u8::from(random.one_in(6));
                (i as i64 + 1, random.mutated_for(device), if device == 0 { "eth0" } else { "eth1" })
            })
            .map(|(at, frame, device)| (at, frame, device.to_string()))
            .collect();
        match catch_unwind(AssertUnwindSafe(|| try_compare(&graph.text(), &frames, world))) {
            Ok(Outcome::Refused(_)) => {}
            Ok(Outcome::Same(world)) => {
                let (up, gone, _) = world.ways();
                sums = (sums.0 + 1, sums.1 + up, sums.2 + gone);
            }
            _ => panic!("seed {seed}: {}", reduced(graph, frames, world)),
        }
    }
    sums
}
