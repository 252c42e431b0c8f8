// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random configurations that are valid by construction, and smaller configurations made from them.

mod sources;

mod time;

use crate::known;
use castanet_element::Random;
use std::fmt::Write as _;

/// The features that a configuration may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Where paths branch at an element, each of its outputs leads to a Mark element, so that the path of a packet can
    /// be recognised.
    pub marks: bool,
    /// Paths may form cycles.
    pub cycles: bool,
    /// At batch size 1, all records must be in the same order as with the naive interpreter.
    pub exact: bool,
    /// Queues may overflow.
    pub overflow: bool,
    /// There is one task, and there are elements with outside effects.
    pub effects: bool,
    /// There are elements that delay packets, or choose a port by rate or in turn.
    pub time: bool,
    /// Sources may be of any class that makes packets without a device.
    pub sources: bool,
    /// There are elements whose class allows one instance only, even with several workers.
    pub lone: bool,
}

#[derive(Clone, Debug)]
struct Node {
    declaration: String,
    /// By output: the element and input that it leads to.
    outputs: Vec<Option<(usize, usize)>>,
    /// The number of inputs.
    inputs: usize,
    /// Whether packets are pulled through the inputs.
    pulls: bool,
}

/// A configuration.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    nodes: Vec<Node>,
}

/// An output that leads nowhere yet.
type Open = (usize, usize);

struct Maker {
    c: Configuration,
    r: Random,
    wish: Wish,
    push: Vec<Open>,
    pull: Vec<Open>,
    marks: usize,
    sinks: usize,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        self.r.below(n as u64) as usize
    }
    fn add(&mut self, declaration: String, inputs: usize, outputs: usize, pulls: bool) -> usize {
        self.c.nodes.push(Node { declaration, outputs: vec![None; outputs], inputs, pulls });
        self.c.nodes.len() - 1
    }
    fn connect(&mut self, from: Open, to: usize, input: usize) {
        self.c.nodes[from.0].outputs[from.1] = Some((to, input));
    }
    fn take_push(&mut self) -> Open {
        let i = self.below(self.push.len());
        self.push.swap_remove(i)
    }
    fn take_pull(&mut self) -> Open {
        let i = self.below(self.pull.len());
        self.pull.swap_remove(i)
    }
    /// Adds an open push output of an element with several outputs. If marks are requested, a mark follows
    /// it.
    fn open(&mut self, from: Open) {
        if !self.wish.marks {
            return self.push.push(from);
        }
        self.marks += 1;
        let mark = self.add(format!("Mark({})", self.marks), 1, 1, false);
        self.connect(from, mark, 0);
        self.push.push((mark, 0));
    }
    /// Returns a random action: its declaration, and whether it has a side output.
    fn action(&mut self, pushed: bool) -> (String, bool) {
        let (a, b) = (self.below(3) + 2, self.below(2));
        self.sinks += 1;
        let id = self.sinks;
        let side = self.below(2) == 0;
        let mut list = vec![
            (format!("Record({id})"), false),
            (format!("Edit({id})"), false),
            (format!("Paint({a})"), false),
            ("Counter".into(), false),
            (format!("Strip({a})"), false),
            (format!("Unstrip({a})"), false),
            ("Null".into(), false),
            (format!("Resize({}, {})", 2 * b as i32 - a as i32, 3 - a as i32), false),
            (format!("Pick({a}, {b})"), side),
            (format!("Pick({a}, {b})"), side),
            (format!("Copy({a}, {b})"), side),
            (format!("Copy({a}, {b})"), side),
        ];
        if pushed {
            list.push((format!("Twice({a}, {b})"), false));
        }
        let switch = self.c.nodes.iter().position(|n| n.declaration.starts_with("Switch"));
        if let Some(s) = switch.filter(|_| self.wish.exact) {
            list.push((format!("Counter(COUNT_CALL {} e{s}.switch {})", 3 * a, b), false));
        }
        for (class, text, side) in [
            ("CheckPaint", format!("CheckPaint({a})"), side),
            ("PaintTee", format!("PaintTee({a})"), true),
            ("CheckLength", format!("CheckLength({})", 30 + a * 5), side),
        ] {
            if known(class) {
                list.push((text, side));
            }
        }
        if self.wish.lone {
            list.extend((0..list.len() / 2).map(|_| ("Lone".into(), false)).collect::<Vec<_>>());
        }
        if self.wish.effects {
            list.extend([(format!("Say({id})"), false), (format!("Say({id})"), false)]);
        }
        let i = self.below(list.len());
        list.swap_remove(i)
    }
    /// Adds a Hub with `n` ports, and connects a path to one of them.
    fn hub(&mut self, from: Open, n: usize) {
        let (e, input) = (self.add("Hub".into(), n, n, false), self.below(n));
        self.connect(from, e, input);
        for port in (0..n).filter(|&p| p != input) {
            self.open((e, port));
        }
    }
    /// Leads two paths through a Clipboard. Its result depends on the order in which the packets of both
    /// paths arrive, so it is used only at batch size 1.
    fn clipboard(&mut self) {
        let (a, b) = (self.take_push(), self.take_push());
        let e = self.add("Clipboard(0/9, 30/3)".into(), 2, 2, false);
        self.connect(a, e, 0);
        self.connect(b, e, 1);
        self.push.extend([(e, 0), (e, 1)]);
    }
    fn grow(&mut self) {
        let kinds = match self.wish {
            Wish { effects: true, .. } => 7,
            Wish { time: true, .. } | Wish { lone: true, .. } => 21,
            _ => 13,
        };
        match self.below(kinds) {
            // An action on a push path.
            0..=2 if !self.push.is_empty() => {
                let from = self.take_push();
                let (text, side) = self.action(true);
                let e = self.add(text, 1, 1 + usize::from(side), false);
                self.connect(from, e, 0);
                if side {
                    self.open((e, 1));
                    self.open((e, 0));
                } else {
                    self.push.push((e, 0));
                }
            }
            3 if !self.push.is_empty() => {
                let from = self.take_push();
                let n = 1 + self.below(3);
                let text = match self.below(4) {
                    0 => "Tee".to_string(),
                    1 => "Split".to_string(),
                    2 if n > 1 => return self.hub(from, n),
                    _ if known("Switch") && n > 1 => format!("Switch({})", self.below(n)),
                    _ => format!(
                        "Classifier({}-)",
                        (1..n).map(|i| format!("0/{:02x}%{:02x}, ", i, 3)).collect::<String>()
                    ),
                };
                let e = self.add(text, 1, n, false);
                self.connect(from, e, 0);
                for port in 0..n {
                    self.open((e, port));
                }
            }
            4 if self.push.len() > 1 && self.wish.exact && !self.wish.marks && self.below(4) == 0 => {
                self.clipboard();
            }
            // Two paths join. In a batch, all packets of the first path come before those of the second. Single packets
            // would come in another order. The order matters to queues that overflow, and to elements that choose a
            // port by rate or in rotation. If there may be such queues or elements, paths join only if packets go one
            // by one.
            4 if self.push.len() > 1 && !((self.wish.time || self.wish.overflow) && self.wish.marks) => {
                let (a, b) = (self.take_push(), self.take_push());
                let (text, inputs) = [("Null", 1), ("Counter", 1), ("InputSwitch(1)", 2)][self.below(3)];
                let e = self.add(text.into(), inputs, 1, false);
                self.connect(a, e, 0);
                self.connect(b, e, inputs - 1);
                self.push.push((e, 0));
            }
            // A path leads to an input that is already connected, perhaps back upstream.
            5 | 6 if self.wish.cycles && !self.push.is_empty() => {
                let from = self.take_push();
                let n = self.below(3);
                let e = self.add(format!("Lap({n})"), 1, 2, false);
                self.connect(from, e, 0);
                self.open((e, 1));
                let targets: Vec<_> = (0..self.c.nodes.len() - 1)
                    .filter(|&t| self.c.nodes[t].inputs == 1 && !self.c.nodes[t].pulls)
                    .collect();
                if targets.is_empty() {
                    self.open((e, 0));
                } else {
                    let t = targets[self.below(targets.len())];
                    if self.wish.marks {
                        self.marks += 1;
                        let mark = self.add(format!("Mark({})", self.marks), 1, 1, false);
                        self.connect((e, 0), mark, 0);
                        self.connect((mark, 0), t, 0);
                    } else {
                        self.connect((e, 0), t, 0);
                    }
                }
            }
            7 | 8 if !self.push.is_empty() => {
                let from = self.take_push();
                let capacity = if self.wish.overflow { 1 + self.below(12) } else { 100_000 };
                let side = self.wish.overflow && self.below(2) == 0;
                let mixed = self.wish.lone && !side && self.below(3) == 0;
                let (class, inputs) = if mixed { ("MixedQueue", 2) } else { ("Queue", 1) };
                let e = self.add(format!("{class}({capacity})"), inputs, 1 + usize::from(side), false);
                self.connect(from, e, 0);
                self.pull.push((e, 0));
                if side {
                    self.open((e, 1));
                }
            }
            9 | 10 if !self.pull.is_empty() => {
                let from = self.take_pull();
                let (text, side) = self.action(false);
                let e = self.add(text, 1, 1 + usize::from(side), true);
                self.connect(from, e, 0);
                self.pull.push((e, 0));
                if side {
                    self.open((e, 1));
                }
            }
            11 if !self.pull.is_empty() => {
                let class = ["RoundRobinSched", "PrioSched"][self.below(2)];
                if known(class) {
                    let n = 1 + self.below(self.pull.len().min(3));
                    let e = self.add(class.into(), n, 1, true);
                    for input in 0..n {
                        let from = self.take_pull();
                        self.connect(from, e, input);
                    }
                    self.pull.push((e, 0));
                }
            }
            12 if !self.pull.is_empty() => {
                let from = self.take_pull();
                let n = 1 + self.below(9);
                let class = ["Unqueue", "Unqueue", "RatedUnqueue", "Unqueue2"][self.below(4)];
                let rate = if self.wish.lone { 30_000 } else { 300 };
                let n = if class == "RatedUnqueue" { rate * n } else { n };
                let e = self.add(format!("{class}({n})"), 1, 1, true);
                self.connect(from, e, 0);
                self.push.push((e, 0));
            }
            13..=16 if self.wish.lone && !self.push.is_empty() => {
                let from = self.take_push();
                let counts = ["Numbers", "Lone", "Counter", "Sink", "Unqueue("];
                let counting = |n: &Node| counts.iter().any(|c| n.declaration.starts_with(c));
                let asked: Vec<usize> =
                    (0..self.c.nodes.len()).filter(|&i| counting(&self.c.nodes[i])).collect();
                let ask = format!("LoneAsk(e{}.count)", asked[self.below(asked.len())]);
                let text = ["LonePush", "LoneTimer", "LoneTask", &ask][self.below(4)].to_string();
                let e = self.add(text, 1, 1, false);
                self.connect(from, e, 0);
                self.push.push((e, 0));
            }
            17 | 18 if self.wish.lone && !self.pull.is_empty() => {
                let from = self.take_pull();
                let e = self.add("LonePull".into(), 1, 1, true);
                self.connect(from, e, 0);
                self.pull.push((e, 0));
            }
            13.. if self.wish.lone => {}
            13 | 14 if !self.pull.is_empty() => self.hold_up(),
            15 | 16 if !self.pull.is_empty() => self.unqueue(),
            17 | 18 if !self.push.is_empty() => self.share_out(),
            19 | 20 if !self.pull.is_empty() => self.bring_together(),
            _ => {}
        }
    }
    fn finish(&mut self) {
        while !self.pull.is_empty() {
            let from = self.take_pull();
            self.sinks += 1;
            let (id, n) = (self.sinks, 1 + self.below(9));
            if self.below(3) == 0 {
                let r = self.add(format!("Record({id})"), 1, 1, true);
                let e = self.add(format!("Discard(BURST {n})"), 1, 0, true);
                self.connect(from, r, 0);
                self.connect((r, 0), e, 0);
            } else {
                let e = self.add(format!("Unqueue({n})"), 1, 1, true);
                self.connect(from, e, 0);
                self.push.push((e, 0));
            }
        }
        while !self.push.is_empty() {
            let from = self.take_push();
            self.sinks += 1;
            let text = if self.below(6) == 0 { "Discard".into() } else { format!("Sink({})", self.sinks) };
            let e = self.add(text, 1, 0, false);
            self.connect(from, e, 0);
        }
    }
}

impl Configuration {
    pub fn random(seed: u64, wish: Wish) -> Configuration {
        let mut m = Maker {
            c: Configuration::default(),
            r: Random::new(seed, "graph"),
            wish,
            push: Vec::new(),
            pull: Vec::new(),
            marks: 0,
            sinks: 0,
        };
        let sources = if wish.effects { 1 } else { 1 + m.below(3) };
        for s in 0..sources {
            if wish.sources && m.below(4) > 0 {
                m.source(s);
                continue;
            }
            let (total, burst) = (m.below(if wish.lone { 800 } else { 60 }), 1 + m.below(40));
            let e = m.add(format!("Numbers({s}, {total}, {burst})"), 0, 1, false);
            m.push.push((e, 0));
        }
        let size = 3 + m.below(20);
        for _ in 0..4 * size {
            if m.c.nodes.len() >= size {
                break;
            }
            m.grow();
        }
        m.finish();
        m.c
    }

    /// Returns the text. Unconnected outputs are connected to Discard, and unconnected inputs to Idle.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (i, n) in self.nodes.iter().enumerate() {
            let _ = writeln!(out, "e{i} :: {};", n.declaration);
        }
        let mut fed: Vec<Vec<bool>> = self.nodes.iter().map(|n| vec![false; n.inputs]).collect();
        for (i, n) in self.nodes.iter().enumerate() {
            for (port, to) in n.outputs.iter().enumerate() {
                let _ = match to {
                    Some((e, input)) => {
                        fed[*e][*input] = true;
                        writeln!(out, "e{i} [{port}] -> [{input}] e{e};")
                    }
                    None => writeln!(out, "e{i} [{port}] -> Discard;"),
                };
            }
        }
        for (i, inputs) in fed.iter().enumerate() {
            for port in inputs.iter().enumerate().filter(|f| !f.1).map(|f| f.0) {
                let _ = writeln!(out, "Idle -> [{port}] e{i};");
            }
        }
        out + "Quit(1000);\n"
    }

    /// Names and classes of the elements.
    pub fn elements(&self) -> impl Iterator<Item = (String, &str)> {
        let class = |d: &str| d.find('(').unwrap_or(d.len());
        self.nodes
            .iter()
            .enumerate()
            .map(move |(i, n)| (format!("e{i}"), &n.declaration[..class(&n.declaration)]))
    }

    /// Returns smaller configurations: with one element removed and its neighbours connected directly, or
    /// with fewer packets.
    pub fn smaller(&self) -> Vec<Configuration> {
        let mut all = Vec::new();
        for gone in 0..self.nodes.len() {
            // Keep these elements: without Lap, packets would go round for ever, and without Mark, paths could not
            // be told apart.
            if ["Lap", "Mark"].iter().any(|c| self.nodes[gone].declaration.starts_with(c)) {
                continue;
            }
            let mut c = self.clone();
            let next = c.nodes.remove(gone).outputs.first().copied().flatten().filter(|n| n.0 != gone);
            for n in &mut c.nodes {
                for to in &mut n.outputs {
                    if to.is_some_and(|t| t.0 == gone) {
                        *to = next;
                    }
                    if let Some(t) = to
                        && t.0 > gone
                    {
                        t.0 -= 1;
                    }
                }
            }
            all.push(c);
        }
        for i in 0..self.nodes.len() {
            if let Some(args) = self.nodes[i].declaration.strip_prefix("Numbers(") {
                let n: Vec<usize> =
                    args.trim_end_matches(')').split(", ").filter_map(|a| a.parse().ok()).collect();
                for (total, burst) in [(n[1] / 2, n[2]), (n[1].saturating_sub(1), n[2]), (n[1], n[2] / 2)] {
                    if (total, burst) != (n[1], n[2]) && burst > 0 {
                        let mut c = self.clone();
                        c.nodes[i].declaration = format!("Numbers({}, {total}, {burst})", n[0]);
                        all.push(c);
                    }
                }
            }
        }
        all
    }
}
