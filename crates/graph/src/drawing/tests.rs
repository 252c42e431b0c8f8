// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that drawings are complete and deterministic, have no overlaps, and explain in their legend exactly the
//! symbols that they use.
#![allow(clippy::unwrap_used)]

mod cycles;
mod dom;
mod folding;
mod picture;
mod rates;

use super::card::{NARROW, WIDE};
use super::layout::{Edge, Pin, layout, overlaps};
use super::svg::escaped;
use super::{Drawing, Fold};
use crate::graph::{Graph, PortKind};
use crate::testing::{Random, TestClasses, checked, random_graph};
use castanet_lang::{Origin, Span};
use dom::Node;
use std::collections::BTreeSet;

const SMALL: &str = "in :: Source(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800, -); c [0] -> Discard; \
     c [1] -> Strip(14) -> q :: Queue(1000) -> out :: Sink(eth1); c [2] -> q; idle :: Idle;";

/// Two interfaces of an IP router, with ICMP errors that are routed again.
fn large() -> String {
    let mut text = String::from("rt :: Classifier(18.26.4.24/32 0, 18.26.4.255/32 0, 18.26.4.0/24 1);");
    for i in 0..2 {
        text.push_str(&format!(
            "in{i} :: Source(eth{i}) -> c{i} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -); \
             c{i} [0] -> ar{i} :: Strip(18.26.4.24 00:00:C0:AE:67:EF) -> q{i} :: Queue(200) -> out{i} :: Sink(eth{i}); \
             arpq{i} :: Check(18.26.4.24, 00:00:C0:AE:67:EF) -> q{i}; arpq{i} [1] -> q{i}; \
             c{i} [1] -> arpq{i}; c{i} [2] -> Counter -> Strip(14) -> CheckIPHeader{i} :: Check(18.26.4.255) -> rt; \
             CheckIPHeader{i} [1] -> Discard; c{i} [3] -> Print(\"eth{i} <other> & more\") -> Discard;"
        ));
    }
    text.push_str("rt [0] -> Counter -> ToHost :: Discard;");
    for i in 0..2 {
        text.push_str(&format!(
            "rt [{}] -> db{i} :: Counter -> cp{i} :: Tee; cp{i} [0] -> gio{i} :: Check(18.26.4.24) -> FixIPSrc{i} :: Strip \
             -> dt{i} :: Check -> fr{i} :: Check(1500) -> arpq{i}; cp{i} [1] -> r{i} :: Strip(redirect, host) -> rt; \
             gio{i} [1] -> pp{i} :: Strip(parameterproblem) -> rt; dt{i} [1] -> te{i} :: Strip(timeexceeded) -> rt; \
             fr{i} [1] -> un{i} :: Strip(unreachable, needfrag) -> rt;",
            i + 1
        ));
    }
    text.push_str("ScheduleInfo@9 :: Idle(in0 1, in1 1); AddressInfo@3 :: Idle(a 1.2.3.4 <b>);");
    text
}

/// Compounds inside each other, with several inputs and outputs and a cycle. One compound class is used twice.
const NESTED: &str = "elementclass Inner { input -> q :: Queue -> u :: Unqueue -> output; input [1] -> Counter -> [1] output; }
    elementclass Outer { input -> c :: Classifier(a, b, -); c [0] -> i :: Inner -> output; c [1] -> [1] i;
        c [2] -> [1] output; i [1] -> [1] output; }
    s :: Source -> one :: Outer -> two :: Outer -> Discard; one [1] -> bad :: Tee -> three :: Strange(1) -> Sink2;
    two [1] -> bad; bad [1] -> { input -> Strip(14) -> output } -> Discard; Sched@7 :: Idle;";

fn svg(g: &Graph) -> String {
    Drawing::new(g, &Fold::None).unwrap().svg()
}

fn folded(g: &Graph, names: &[&str]) -> String {
    let names = names.iter().map(|n| (*n).to_string()).collect();
    Drawing::new(g, &Fold::Named(names)).unwrap().svg()
}

/// The drawing without its legend, and the legend.
fn parts(drawing: &str) -> (Node, Node) {
    let mut root = dom::parse(drawing).unwrap();
    let legend = root.children.iter().position(|n| n.class() == "legend");
    let legend = legend.map_or_else(Node::default, |i| root.children.remove(i));
    (root, legend)
}

#[test]
fn other_formats() {
    let text = "elementclass C { input -> q :: Queue(\"<é&\") -> output } Source -> c :: C -> Unqueue -> t :: Tee -> Discard; t [1] -> Discard; i :: Idle";
    let g = checked(text).0;
    let open = Drawing::new(&g, &Fold::None).unwrap();
    let start = "graph [\n  directed 1\n  label \"Click configuration: 7 elements, 5 connections\"\n  node [ id 0 label \"";
    assert!(open.gml().starts_with(start), "{}", open.gml());
    let queue = "label \"c/q\" class \"Queue\" config \"&quot;<&#233;&amp;&quot;\" ]\n";
    assert!(open.gml().contains(queue), "{}", open.gml());
    let folded = Drawing::new(&g, &Fold::All).unwrap();
    assert!(folded.gml().contains("label \"c\" class \"C\" ]\n"), "{}", folded.gml());
    for (drawing, nodes, graphs) in [(open, 8, 2), (folded, 7, 1)] {
        let (gml, graphml) = (drawing.gml(), drawing.graphml());
        assert_eq!(gml.matches("  edge [").count(), 5, "{gml}");
        let document = roxmltree::Document::parse(&graphml).unwrap();
        let count = |tag: &str| document.descendants().filter(|n| n.tag_name().name() == tag).count();
        assert_eq!((count("node"), count("graph"), count("edge")), (nodes, graphs, 5), "{graphml}");
        let ids: BTreeSet<&str> = document.descendants().filter_map(|n| n.attribute("id")).collect();
        for end in
            document.descendants().flat_map(|n| [n.attribute("source"), n.attribute("target")]).flatten()
        {
            assert!(ids.contains(end), "{end}: {graphml}");
        }
    }
}

/// A random graph, each of whose elements is in randomly chosen compounds.
fn random_compounds(random: &mut Random) -> Graph {
    let g = random_graph(random, &["Tee", "Joined", "Queue", "Sched", "Strip", "<&\">"]);
    let mut flat = g.flat;
    for e in &mut flat.elements {
        let chain: &[&str] =
            [&[][..], &["a"], &["a", "b"], &["a", "b", "c"], &["d"], &["a", "d"]][random.below(6)];
        let origin = |name: &&str| Origin {
            instance: (*name).to_string(),
            class: format!("<{name}>"),
            span: Span::default(),
            parameters: Vec::new(),
        };
        e.origin = chain.iter().map(origin).collect();
        e.name = chain.iter().map(|c| format!("{c}/")).collect::<String>() + &e.name;
    }
    Graph::new(flat, &TestClasses).0
}

fn samples() -> Vec<Graph> {
    let texts = [
        SMALL.to_string(),
        large(),
        String::new(),
        NESTED.into(),
        "s :: Sched; s -> Sink; s -> s; Idle -> [1] s;".into(),
    ];
    let mut all: Vec<Graph> = texts.iter().map(|t| checked(t).0).collect();
    let mut random = Random(8);
    all.extend((0..100).map(|_| random_compounds(&mut random)));
    all
}

/// The start and the end of a line.
fn ends(path: &Node) -> ((f64, f64), (f64, f64)) {
    let points = dom::points(&path.attrs["d"]);
    (points[0], *points.last().unwrap())
}

#[test]
fn every_element_and_connection_appears() {
    for g in samples() {
        let drawing = svg(&g);
        let (body, _) = parts(&drawing);
        for e in 0..g.len() {
            assert!(drawing.contains(&escaped(&g.declaration(e))), "{}", g.declaration(e));
        }
        let edges: Vec<&Node> = body.all(&|n| n.class().starts_with("edge "));
        let mut carried = 0;
        for (_, c) in crate::testing::valid(&g) {
            let (from, to) = (g.name(c.from.element), g.name(c.to.element));
            let title = format!("{from} [{}] to [{}] {to}", c.from.port, c.to.port);
            let pieces: Vec<_> = edges.iter().filter(|n| n.title().split("; ").any(|t| t == title)).collect();
            carried += pieces.len();
            // The pieces follow each other: each except the first begins on the frame where another one ends.
            let starts = pieces.iter().filter(|p| {
                let from = ends(p).0;
                !pieces.iter().any(|q| {
                    let to = ends(q).1;
                    (to.0 - from.0).abs() < 0.3 && (from.1 - to.1).abs() < 12.0
                })
            });
            assert_eq!(starts.count(), 1, "{title}");
        }
        assert_eq!(carried, edges.iter().map(|n| n.title().split("; ").count()).sum::<usize>());
        assert!(!drawing.contains("NaN") && !drawing.contains("inf "));
        assert_eq!(drawing, svg(&g));
        if let Some(folder) = std::env::var_os("CASTANET_DRAWINGS") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{}.svg", g.len())), drawing).unwrap();
        }
    }
}

#[test]
fn comments_are_not_arguments() {
    let (g, ..) = checked(
        "Idle -> s :: Strip(/* the Ethernet header */ 14 // bytes\n) -> Discard; Idle(a /* b */, \"/* c */\");",
    );
    for drawing in [svg(&g), Drawing::new(&g, &Fold::None).unwrap().dot()] {
        let comment = ["header", "bytes", "/* b"].iter().any(|c| drawing.contains(c));
        assert!(!comment && drawing.contains("Strip(14)"), "{drawing}");
    }
    assert!(
        svg(&g).contains(">14</text>") && svg(&g).contains("Idle(a, &quot;/* c */&quot;)"),
        "{}",
        svg(&g)
    );
}

/// The texts that a legend needs, found in the graph and in the drawing above the legend.
fn needed(g: &Graph, body: &Node) -> Vec<String> {
    let mut all = Vec::new();
    let lines = crate::testing::valid(g);
    let connected = |e: usize| lines.iter().any(|(_, c)| c.from.element == e || c.to.element == e);
    let shown: Vec<usize> = (0..g.len()).filter(|&e| connected(e)).collect();
    let crossed = |path: &str| {
        body.all(&|n| n.class() == "port" && n.attrs.get("fill").is_some_and(|f| f == path)).len()
    };
    // Ports of open compounds have the kind of the ports that they are connected to, and are never agnostic.
    let frames = body.all(&|n| n.children.iter().any(|c| c.class() == "frame"));
    let on_frames = |tag: &str, kind: PortKind, agnostic: bool| {
        let fill = if kind == PortKind::Push { "#22262b" } else { "#ffffff" };
        let port = |c: &Node| c.class() == "port" && c.tag == tag && c.attrs["fill"] == fill;
        !agnostic && frames.iter().any(|f| f.children.iter().any(port))
    };
    for (agnostic, kind) in
        [(false, PortKind::Push), (false, PortKind::Pull), (true, PortKind::Push), (true, PortKind::Pull)]
    {
        let input = |e: usize| {
            (0..g.inputs(e)).any(|i| (g.input_is_agnostic(e, i), g.input_kind(e, i)) == (agnostic, kind))
        };
        let output = |e: usize| {
            (0..g.outputs(e)).any(|o| (g.output_is_agnostic(e, o), g.output_kind(e, o)) == (agnostic, kind))
        };
        let what = match (
            shown.iter().any(|&e| input(e)) || on_frames("path", kind, agnostic),
            shown.iter().any(|&e| output(e)) || on_frames("rect", kind, agnostic),
        ) {
            (true, true) => "input, output",
            (true, false) => "input",
            (false, true) => "output",
            (false, false) => continue,
        };
        assert!(crossed(if kind == PortKind::Push { "#22262b" } else { "#ffffff" }) > 0);
        all.push(if agnostic { format!("agnostic {what}, {kind} here") } else { format!("{kind} {what}") });
    }
    for (class, text) in [
        ("edge push", "push connection"),
        ("edge pull", "pull connection"),
        ("box storage", "stores packets"),
        ("box task", "has a task"),
        ("box", "other element"),
        ("box unknown", "unknown class"),
        ("box compound", "compound, folded"),
        ("frame", "compound; click on its name to fold it, and again to open it"),
        ("number", "port numbers"),
        ("config", "configuration"),
    ] {
        all.extend(body.has(&|n| n.class() == class).then(|| text.to_string()));
    }
    let dim = |at: bool| move |n: &Node| n.class() == "dim" && n.text.starts_with('@') == at;
    all.extend(body.has(&dim(true)).then(|| "element without a name".to_string()));
    all.extend(body.has(&dim(false)).then(|| "compound of an element".to_string()));
    all
}

#[test]
fn the_legend_explains_what_appears_and_nothing_else() {
    for g in samples() {
        let (body, legend) = parts(&svg(&g));
        let texts: Vec<String> =
            legend.children.iter().filter(|n| n.class() == "config").map(|n| n.text.clone()).collect();
        let texts: BTreeSet<String> = texts.into_iter().filter(|t| t != "grey").collect();
        assert_eq!(texts, needed(&g, &body).into_iter().collect());
        let markers = body.all(&|n| n.tag == "marker").len();
        assert_eq!(markers, texts.iter().filter(|t| t.ends_with(" connection")).count());
    }
    let (g, ..) = checked(NESTED);
    let (body, legend) = parts(&folded(&g, &["one", "Inner"]));
    for (class, text) in [("box compound", "compound, folded"), ("frame", "compound; click on its name")] {
        assert!(body.has(&|n| n.class() == class) && legend.has(&|n| n.text.starts_with(text)), "{text}");
    }
}

#[test]
fn the_title_and_the_size_are_given_and_everything_is_inside() {
    let (g, ..) = checked(SMALL);
    assert!(svg(&g).contains("<title>Click configuration: 7 elements, 6 connections</title>"), "{}", svg(&g));
    for g in samples() {
        let root = dom::parse(&svg(&g)).unwrap();
        let (width, height) = (root.number("width"), root.number("height"));
        assert_eq!(root.attrs["viewBox"], format!("0 0 {width} {height}"));
        for text in root.all(&|n| n.tag == "text") {
            let (left, right) = dom::extent(text, WIDE, NARROW);
            assert!(left >= 0.0 && right <= width && text.number("y") <= height, "{} {width}", text.text);
        }
        for path in root.all(&|n| n.class().starts_with("edge ")) {
            for (x, y) in dom::points(&path.attrs["d"]) {
                assert!(x >= 0.0 && x <= width && y >= 0.0 && y <= height);
            }
        }
    }
}

#[test]
fn boxes_and_frames_do_not_overlap_and_frames_contain_their_boxes() {
    for g in samples() {
        let (body, _) = parts(&svg(&g));
        // Each box with the frames that it is drawn in.
        let mut boxes: Vec<([f64; 4], Vec<[f64; 4]>)> = Vec::new();
        let mut todo: Vec<(&Node, Vec<[f64; 4]>)> = vec![(&body, Vec::new())];
        while let Some((node, frames)) = todo.pop() {
            let frame = node.children.iter().find(|n| n.class() == "frame").map(dom::rectangle);
            for child in &node.children {
                let mut inner = frames.clone();
                inner.extend(frame.filter(|_| child.class() == "inside"));
                if child.class() == "frame" || child.class().split(' ').next() == Some("box") {
                    boxes.push((dom::rectangle(child), frames.clone()));
                }
                todo.push((child, inner));
            }
        }
        for (i, (a, frames)) in boxes.iter().enumerate() {
            for f in frames {
                assert!(
                    a[0] > f[0] && a[1] < f[1] && a[2] > f[2] && a[3] < f[3],
                    "{a:?} is not inside {f:?}"
                );
            }
            for (b, others) in boxes.iter().take(i) {
                let apart = a[1] < b[0] || b[1] < a[0] || a[3] < b[2] || b[3] < a[2];
                assert!(apart || frames.contains(b) || others.contains(a), "{a:?} and {b:?}");
            }
        }
    }
}

#[test]
fn labels_are_inside_their_boxes_and_names_of_compounds_beside_lines() {
    for g in samples() {
        let drawing = svg(&g);
        let (body, _) = parts(&drawing);
        let cards = body.all(&|n| n.children.iter().any(|c| c.class().split(' ').next() == Some("box")));
        for card in cards {
            let shape = card.children.iter().find(|c| c.tag == "rect").unwrap();
            let [left, right, top, bottom] = dom::rectangle(shape);
            for text in card.children.iter().filter(|c| c.tag == "text") {
                let (from, to) = dom::extent(text, WIDE, NARROW);
                let y = text.number("y");
                assert!(from >= left && to <= right + 1.0 && y - 8.0 > top && y < bottom, "{}", text.text);
            }
        }
        for frame in body.all(&|n| n.children.iter().any(|c| c.class() == "head")) {
            let head = frame.children.iter().find(|c| c.class() == "head").unwrap();
            let [left, right, ..] = dom::rectangle(&head.children[0]);
            let (from, to) = dom::extent(&head.children[1], WIDE, NARROW);
            assert!(from >= left && to <= right, "{}", head.children[1].text);
            let inside = frame.children.iter().find(|c| c.class() == "inside").unwrap();
            let top = dom::rectangle(&head.children[0])[2];
            for line in inside.children.iter().filter(|c| c.class().starts_with("edge ")) {
                let (x, y) = ends(line).0;
                assert!(y > top + 12.0 || x < from || x > to, "a line crosses {}", head.children[1].text);
            }
        }
    }
}

#[test]
fn lines_pass_beside_boxes() {
    for g in samples() {
        let (body, _) = parts(&svg(&g));
        let boxes: Vec<[f64; 4]> = body
            .all(&|n| n.class().split(' ').next() == Some("box"))
            .into_iter()
            .map(dom::rectangle)
            .collect();
        for path in body.all(&|n| n.class().starts_with("edge ")) {
            for (x, y) in dom::along(&path.attrs["d"]) {
                let hit = boxes.iter().find(|b| x > b[0] && x < b[1] && y > b[2] + 1.0 && y < b[3] - 1.0);
                assert!(hit.is_none(), "{} at {x} {y}: {hit:?}", path.title());
            }
        }
    }
}

#[test]
fn layers_keep_their_distances() {
    let mut random = Random(7);
    for _ in 0..100 {
        let n = 1 + random.below(30);
        let widths: Vec<f64> = (0..n).map(|_| 40.0 + random.below(100) as f64).collect();
        let edges: Vec<Edge> = (0..random.below(3 * n))
            .map(|_| Edge {
                from: random.below(n),
                to: random.below(n),
                from_offset: random.below(30) as f64 - 15.0,
                to_offset: 0.0,
            })
            .collect();
        let l = layout(&widths, &edges, &[]);
        assert_eq!(overlaps(&l, &widths), 0);
        for (e, &back) in edges.iter().zip(&l.back) {
            assert!(back || l.layer[e.from] < l.layer[e.to]);
        }
        assert!(l.ways.iter().flatten().all(|w| w.1.is_finite() && w.0 < l.layers));
    }
}

#[test]
fn pinned_boxes_are_in_the_first_and_last_layer() {
    let mut random = Random(11);
    for _ in 0..100 {
        let n = 3 + random.below(20);
        let widths = vec![40.0; n];
        let mut edges = Vec::new();
        for _ in 0..random.below(3 * n) {
            // Box 0 is an entry, and box 1 an exit.
            let (from, to) = ([0, 2 + random.below(n - 2)][random.below(2)], 1 + random.below(n - 1));
            edges.push(Edge { from, to, from_offset: 0.0, to_offset: 0.0 });
        }
        let l = layout(&widths, &edges, &[Pin::Top, Pin::Bottom]);
        assert_eq!(overlaps(&l, &widths), 0);
        assert!((2..n).all(|b| l.layer[b] > l.layer[0] && l.layer[b] < l.layer[1]), "{:?}", l.layer);
    }
}

#[test]
fn large_graphs_take_bounded_time() {
    let mut text = String::from("j :: Joined;");
    for i in 0..1500 {
        text.push_str(&format!("s{i} :: Source -> Strip -> [{i}] j;"));
    }
    text.push_str(&format!("j{} -> j;", " -> Counter".repeat(1000)));
    let (g, ..) = checked(&text);
    // The limit is generous: a slow computer must stay below it, but superlinear growth would take hours.
    let start = std::time::Instant::now();
    dom::parse(&svg(&g)).unwrap();
    assert!(start.elapsed().as_secs() < 200, "{:?}", start.elapsed());
}

#[test]
fn text_is_escaped() {
    assert_eq!(escaped("a<b>&\"\u{1}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd} ");
}
