// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes and configurations for the tests of this crate.
#![allow(clippy::unwrap_used)]

use crate::graph::{Graph, PortKind};
use castanet_lang::{
    ClassNames, Connection, Diagnostic, Element, Flat, NoLibrary, Options, PortRef, Sources, Span,
};
use castanet_lang::{Unknown, load};
use castanet_spec::{
    ArgKind, ArgSpec, Capability, ClassSpec, ClassSpecs, Depends, Effects, LedgerRole, Offload, Reconfigure,
    Workers,
};

const BASE: ClassSpec = ClassSpec {
    name: "",
    aliases: &[],
    module: module_path!(),
    type_name: "Test",
    doc: "",
    ports: "1/1",
    processing: "a/a",
    flow: "x/x",
    packets: "any/same",
    packets_if: &[],
    alignment: "",
    args: &[],
    handlers: &[],
    arg_handlers: &[],
    indexed: &[],
    workers: Workers::Replicate,
    offload: Offload::Transparent,
    effects: Effects::empty(),
    reconfigure: Reconfigure::Refused,
    config_follows: false,
    takes_state: "",
    counts: &[],
    drops: &[],
    ledger_role: LedgerRole::empty(),
    ends: &[],
    capabilities: &[],
    host: &[],
    task: false,
    copies: false,
    descending: false,
    fifo: false,
    depends: Depends::Anything,
    clock: false,
    information: false,
};

const fn class(name: &'static str, ports: &'static str, processing: &'static str) -> ClassSpec {
    ClassSpec { name, ports, processing, ..BASE }
}

const STORAGE: &[Capability] = &[Capability::Storage, Capability::EmptyNotifier, Capability::FullNotifier];

const ALIGN: &[ArgSpec] = &[
    ArgSpec { name: "MODULUS", kind: ArgKind::Positional, mandatory: true, ..ArgSpec::EMPTY },
    ArgSpec { name: "OFFSET", kind: ArgKind::Positional, mandatory: true, ..ArgSpec::EMPTY },
];

static CLASSES: &[ClassSpec] = &[
    ClassSpec { task: true, ..class("Source", "0/1", "h/h") },
    ClassSpec { task: true, ..class("Sink", "1/0", "l/l") },
    ClassSpec { task: true, ..class("Unqueue", "1/1", "l/h") },
    ClassSpec { capabilities: STORAGE, workers: Workers::Share, ..class("Queue", "1/1-2", "h/lh") },
    ClassSpec {
        capabilities: &[Capability::Storage],
        workers: Workers::Share,
        ..class("SimpleQueue", "1/1-2", "h/lh")
    },
    ClassSpec { flow: "x/y", ..class("Idle", "-/-", "a/a") },
    ClassSpec { aliases: &["Sink2"], ..class("Discard", "1/0", "a/a") },
    class("Strip", "1/1", "a/a"),
    class("Counter", "1/1", "a/a"),
    ClassSpec { effects: Effects::PRINTS, ..class("Print", "1/1", "a/a") },
    class("Check", "1/1-2", "a/ah"),
    class("Tee", "1/1-", "h/h"),
    class("PullTee", "1/1-", "l/lh"),
    class("Classifier", "1/-", "h/h"),
    class("Sched", "1-/1", "l/l"),
    class("Joined", "-/-", "a/a"),
    ClassSpec { flow: "#/#", ..class("Suppressor", "-/=", "a/a") },
    ClassSpec { flow: "#/#", ..class("Plus", "1-/=+", "h/h") },
    ClassSpec { flow: "xy/x", workers: Workers::Exclusive, ..class("Querier", "2/1-2", "h/h") },
    ClassSpec { flow: "xy#/x[^x]#", ..class("Odd", "-/-", "a/a") },
    ClassSpec { workers: Workers::Exclusive, ..class("Meter", "1/1", "a/a") },
    ClassSpec { effects: Effects::FILES, task: true, ..class("ToDump", "1/0", "l/l") },
    ClassSpec {
        capabilities: &[Capability::Offloads],
        offload: Offload::Aware,
        ..class("Device", "0/1", "h/h")
    },
    ClassSpec { offload: Offload::None, ..class("Dump", "1/1", "a/a") },
    ClassSpec { offload: Offload::Aware, ..class("CompleteOffload", "1/1", "a/a") },
    ClassSpec { packets: "/ether unmarked", ..class("Frames", "0/1", "h/h") },
    ClassSpec { packets: "/ip", alignment: "4 0", ..class("Packets", "0/1", "h/h") },
    ClassSpec { args: ALIGN, ..class("Align", "1/1", "a/a") },
    ClassSpec { packets: "ip/same", ..class("WantsIp", "1/1", "a/a") },
    ClassSpec { packets: "ether/same", ..class("WantsEther", "1/1", "a/a") },
    ClassSpec { packets: "any/strip 1", ..class("StripOne", "1/1", "a/a") },
    ClassSpec { task: true, depends: Depends::Packet, ..class("PlainSource", "0/1-", "h/h") },
    ClassSpec { task: true, depends: Depends::Packet, ..class("PlainUnqueue", "1/1-", "l/h") },
    ClassSpec { task: true, depends: Depends::Packet, ..class("PlainPair", "2/1", "l/h") },
    ClassSpec { fifo: true, capabilities: STORAGE, ..class("Fifo", "1/1-2", "h/lh") },
    ClassSpec { depends: Depends::Packet, ..class("Plain", "-/-", "a/ah") },
    ClassSpec { depends: Depends::Packet, clock: true, ..class("Timed", "1/1", "a/a") },
    ClassSpec { depends: Depends::Packet, effects: Effects::PRINTS, ..class("PlainPrint", "1/1", "a/a") },
    ClassSpec { depends: Depends::Order, ..class("Ordered", "-/-", "h/h") },
];

/// The registry of the classes above.
pub(crate) struct TestClasses;

impl ClassNames for TestClasses {
    fn knows(&self, name: &str) -> bool {
        self.spec(name).is_some()
    }
    fn names(&self) -> Vec<&str> {
        CLASSES.iter().flat_map(|c| std::iter::once(c.name).chain(c.aliases.iter().copied())).collect()
    }
}

impl ClassSpecs for TestClasses {
    fn spec(&self, name: &str) -> Option<&'static ClassSpec> {
        CLASSES.iter().find(|c| c.name == name || c.aliases.contains(&name))
    }
}

/// Parses a configuration.
pub(crate) fn flat(text: &str) -> (Flat, Sources) {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    let options =
        Options { classes: &TestClasses, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let (flat, diagnostics) = load(&mut sources, file, &options);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    (flat, sources)
}

/// The graph of a configuration, with its diagnostics.
pub(crate) fn checked(text: &str) -> (Graph, Vec<Diagnostic>, Sources) {
    let (flat, sources) = flat(text);
    let (graph, diagnostics) = Graph::new(flat, &TestClasses);
    (graph, diagnostics, sources)
}

/// The graph of a configuration without errors.
pub(crate) fn graph(text: &str) -> Graph {
    let (graph, diagnostics, _) = checked(text);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    graph
}

/// Formats diagnostics for snapshots: the message, then each position with line, column and source text.
pub(crate) fn rendered(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let mut out = String::new();
    let place = |span: Span| {
        let p = sources.place(span);
        format!("{}:{} `{}`", p.line, p.column, sources.snippet(span))
    };
    for d in diagnostics {
        out.push_str(&format!("{:?}: {}\n", d.severity, d.message));
        if let Some(span) = d.span {
            out.push_str(&format!("  at {} {}\n", place(span), d.at).replace(" \n", "\n"));
        }
        for (text, span) in &d.notes {
            out.push_str(&format!("  note: {text} {}\n", span.map(place).unwrap_or_default()));
        }
        for l in &d.labels {
            out.push_str(&format!("  - {}: {}\n", place(l.span), l.text));
        }
        for h in &d.helps {
            out.push_str(&format!("  help: {h}\n"));
        }
    }
    out
}

/// A small random number generator with a fixed seed (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let x = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(x).unwrap() % n.max(1)
    }
}

/// A random configuration with any classes and connections, cycles included. It is valid only by chance.
pub(crate) fn random_graph(random: &mut Random, classes: &[&str]) -> Graph {
    let n = 1 + random.below(6);
    let mut flat = Flat::default();
    for i in 0..n {
        let class = classes[random.below(classes.len())].into();
        flat.elements.push(Element {
            name: format!("e{i}"),
            class,
            config: String::new(),
            span: Span::default(),
            config_span: Span::default(),
            config_map: Vec::new(),
            origin: Vec::new(),
        });
    }
    for _ in 0..random.below(n * 3 + 1) {
        let mut end = || PortRef { element: random.below(n), port: [0, 0, 0, 0, 1, 1, 2][random.below(7)] };
        let c = Connection { from: end(), to: end(), span: Span::default() };
        if !flat.connections.iter().any(|d| (d.from, d.to) == (c.from, c.to)) {
            flat.connections.push(c);
        }
    }
    Graph::new(flat, &TestClasses).0
}

/// The connections between existing ports.
pub(crate) fn valid(graph: &Graph) -> Vec<(usize, Connection)> {
    let all = graph.flat.connections.iter().copied().enumerate();
    all.filter(|(_, c)| c.from.port < graph.outputs(c.from.element) && c.to.port < graph.inputs(c.to.element))
        .collect()
}

/// A call into an element, as the naive models count calls: a push at an input, or a pull at an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Entry {
    Push(PortRef),
    Pull(PortRef),
}

impl Entry {
    pub(crate) fn element(self) -> usize {
        match self {
            Entry::Push(p) | Entry::Pull(p) => p.element,
        }
    }
}

/// The calls that follow when an element emits by an output.
fn emitted(graph: &Graph, e: usize, output: usize) -> Vec<Entry> {
    if graph.output_kind(e, output) != PortKind::Push {
        return Vec::new();
    }
    let from = PortRef { element: e, port: output };
    let to = valid(graph).into_iter().filter(|(_, c)| c.from == from).map(|(_, c)| c.to);
    to.filter(|p| graph.input_kind(p.element, p.port) == PortKind::Push).map(Entry::Push).collect()
}

fn pulled(graph: &Graph, e: usize, input: usize) -> Vec<Entry> {
    let to = PortRef { element: e, port: input };
    let from = valid(graph).into_iter().filter(|(_, c)| c.to == to).map(|(_, c)| c.from);
    from.filter(|p| graph.output_kind(p.element, p.port) == PortKind::Pull).map(Entry::Pull).collect()
}

/// The calls that an element makes when called, with duplicates if several paths inside it lead to the same
/// call.
pub(crate) fn calls_from(graph: &Graph, entry: Entry) -> Vec<Entry> {
    let mut calls = Vec::new();
    match entry {
        Entry::Push(p) => {
            for o in (0..graph.outputs(p.element)).filter(|&o| graph.flows(p.element, p.port, o)) {
                calls.extend(emitted(graph, p.element, o));
            }
        }
        Entry::Pull(p) => {
            for i in (0..graph.inputs(p.element)).filter(|&i| graph.flows(p.element, i, p.port)) {
                if graph.input_kind(p.element, i) == PortKind::Pull {
                    calls.extend(pulled(graph, p.element, i));
                    // Pulled packets may be pushed to a side output.
                    for o in (0..graph.outputs(p.element)).filter(|&o| graph.flows(p.element, i, o)) {
                        calls.extend(emitted(graph, p.element, o));
                    }
                }
            }
        }
    }
    calls
}

/// The calls that an element's task makes: pushes from the push outputs of the element, and pulls through its pull
/// inputs. A pulled packet adds no calls, because it leaves by one of these push outputs.
pub(crate) fn calls_of_task(graph: &Graph, e: usize) -> Vec<Entry> {
    let mut calls = Vec::new();
    for o in 0..graph.outputs(e) {
        calls.extend(emitted(graph, e, o));
    }
    for i in (0..graph.inputs(e)).filter(|&i| graph.input_kind(e, i) == PortKind::Pull) {
        calls.extend(pulled(graph, e, i));
    }
    calls
}
