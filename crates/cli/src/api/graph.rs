// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graph of a router as JSON, with the positions of its drawing.

use crate::classes::BuiltIn;
use crate::control::FromClients;
use crate::load::{Reach, Source, load_in};
use castanet_classes::Registry;
use castanet_graph::{Drawing, Fold, Frame, Graph, Picture, PictureBox, PictureLine, PicturePort, Shown};
use castanet_lang::{Origin, Unknown};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Makes the graph of a router that is reached over a socket, from its configuration as it was read, and with compounds
/// expanded. The first one is used if it expands to the second one without a library or a variable of the router's command
/// line, because it knows the classes of compounds. Otherwise compounds are those parts of the second one whose names have
/// a common prefix.
pub fn received(text: &str, flat: &str) -> Graph {
    let available = BuiltIn::of(Registry::new()).available(Some(""));
    let read = |text: &str| {
        let reach = Reach::Client(FromClients::default());
        let source = Source { reach, ..Source::text("config", text, Vec::new()) };
        load_in(&available, &source, Unknown::Opaque).graph
    };
    let mut expanded = read(flat);
    let complete = read(text);
    let names = |g: &Graph| g.flat.elements.iter().map(|e| e.name.clone()).collect::<BTreeSet<_>>();
    if names(&complete) == names(&expanded)
        && complete.flat.connections.len() == expanded.flat.connections.len()
    {
        return complete;
    }
    for element in &mut expanded.flat.elements {
        let scopes = element.name.match_indices('/').filter_map(|(i, _)| element.name.get(..i));
        let span = element.span;
        element.origin = scopes
            .map(|scope| Origin {
                instance: scope.rsplit('/').next().unwrap_or(scope).to_string(),
                class: "{...}".to_string(),
                span,
                parameters: Vec::new(),
            })
            .collect();
    }
    expanded
}

/// Returns the drawing of a graph in which these compounds are folded. Names that no compound has are ignored; `*` folds all.
fn picture(graph: &Graph, folded: &[String]) -> Picture {
    let fold = match folded {
        [] => Fold::None,
        all if all.iter().any(|name| name == "*") => Fold::All,
        names => {
            let known = compounds(graph);
            let names: Vec<String> = names.iter().filter(|n| known.contains(*n)).cloned().collect();
            if names.is_empty() { Fold::None } else { Fold::Named(names) }
        }
    };
    let drawing = Drawing::new(graph, &fold).or_else(|_| Drawing::new(graph, &Fold::None));
    drawing.map(|d| d.picture()).unwrap_or_default()
}

/// Returns the full names of all compounds.
fn compounds(graph: &Graph) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for element in &graph.flat.elements {
        let mut path = String::new();
        for origin in &element.origin {
            let name = origin.instance.rsplit('/').next().unwrap_or(&origin.instance);
            path = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            out.insert(path.clone());
        }
    }
    out
}

/// Returns a text that changes when elements or connections change.
pub fn identity(graph: &Graph) -> String {
    let mut hash = DefaultHasher::new();
    for e in &graph.flat.elements {
        (&e.name, &e.class).hash(&mut hash);
    }
    for c in &graph.flat.connections {
        (c.from, c.to).hash(&mut hash);
    }
    format!("{:016x}", hash.finish())
}

/// Returns a graph as JSON, drawn with these compounds folded.
pub fn json(graph: &Graph, folded: &[String]) -> Value {
    let picture = picture(graph, folded);
    let elements = graph
        .flat
        .elements
        .iter()
        .map(|e| json!({ "name": e.name, "class": e.class.as_str(), "configuration": e.config }));
    let end = |p: castanet_lang::PortRef| json!({ "element": graph.name(p.element), "port": p.port });
    let connections = graph.flat.connections.iter().map(|c| {
        let kind = graph.output_kind(c.from.element, c.from.port).to_string();
        json!({ "from": end(c.from), "to": end(c.to), "kind": kind })
    });
    json!({
        "identity": identity(graph),
        "elements": elements.collect::<Vec<_>>(),
        "connections": connections.collect::<Vec<_>>(),
        "compounds": compounds(graph),
        "drawing": {
            "width": rounded(picture.width),
            "height": rounded(picture.height),
            "boxes": picture.boxes.iter().map(|b| shape(graph, b)).collect::<Vec<_>>(),
            "frames": picture.frames.iter().map(frame).collect::<Vec<_>>(),
            "lines": picture.lines.iter().map(line).collect::<Vec<_>>(),
            "alone": picture.alone.iter().map(|&e| graph.name(e)).collect::<Vec<_>>(),
        },
    })
}

/// Positions have a tenth of a pixel, so that they are short.
fn rounded(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

fn place(place: [f64; 4]) -> Value {
    let [x, y, width, height] = place.map(rounded);
    json!({ "x": x, "y": y, "width": width, "height": height })
}

fn ports(all: &[PicturePort]) -> Vec<Value> {
    let kind = |p: &PicturePort| if p.pull { "pull" } else { "push" };
    all.iter().map(|p| json!({ "x": rounded(p.x), "kind": kind(p), "agnostic": p.agnostic })).collect()
}

fn shape(graph: &Graph, b: &PictureBox) -> Value {
    let (element, compound) = match &b.shown {
        Shown::Element(e) => (Some(graph.name(*e)), None),
        Shown::Compound(path) => (None, Some(path.as_str())),
    };
    let text = b.text.iter().map(|(text, font)| json!({ "text": text, "font": font }));
    json!({
        "element": element, "compound": compound, "place": place(b.place), "look": b.look, "title": b.title,
        "text": text.collect::<Vec<_>>(), "inputs": ports(&b.inputs), "outputs": ports(&b.outputs),
    })
}

fn frame(f: &Frame) -> Value {
    json!({
        "compound": f.path, "head": f.head, "size": f.size(), "place": place(f.place), "name": rounded(f.name),
        "inputs": ports(&f.inputs), "outputs": ports(&f.outputs),
    })
}

fn line(l: &PictureLine) -> Value {
    json!({
        "path": l.path, "kind": if l.pull { "pull" } else { "push" }, "arrow": l.arrow,
        "start": { "x": rounded(l.start.0), "y": rounded(l.start.1) }, "connections": l.connections,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "elementclass Shaper { $r | input -> q :: SimpleQueue($r) -> output }
        InfiniteSource -> s :: Shaper(5) -> Unqueue -> Discard; Idle -> t :: Shaper(6) -> Unqueue -> Discard;";
    const FLAT: &str =
        "s/q :: SimpleQueue(5); t/q :: SimpleQueue(6); a :: InfiniteSource; b :: Unqueue; c :: Discard;
        a -> s/q -> b -> c; Idle -> t/q -> Unqueue -> Discard;";

    fn boxes(graph: &Graph, folded: &[&str]) -> Vec<String> {
        let folded: Vec<String> = folded.iter().map(ToString::to_string).collect();
        let all = json(graph, &folded);
        let all = all["drawing"]["boxes"].as_array().cloned().unwrap_or_default();
        let name = |b: &Value| {
            b["compound"].as_str().map(|c| format!("{c}/")).or(b["element"].as_str().map(Into::into))
        };
        let mut names: Vec<String> = all.iter().filter_map(name).filter(|n| n.contains('/')).collect();
        names.sort();
        names
    }

    #[test]
    fn compounds_are_known_or_follow_from_names() {
        let own = received(TEXT, &castanet_lang::print::driver(&received(TEXT, TEXT).flat));
        let class = |g: &Graph| {
            g.find("s/q").and_then(|e| g.element(e)).and_then(|e| e.origin.first()).map(|o| o.class.clone())
        };
        assert_eq!(class(&own).as_deref(), Some("Shaper"));
        let cut = received("require(library x) Idle -> Discard;", FLAT);
        assert_eq!(class(&cut).as_deref(), Some("{...}"));
        for g in [own, cut] {
            assert_eq!(boxes(&g, &[]), ["s/q", "t/q"]);
            assert_eq!(boxes(&g, &["s", "gone"]), ["s/", "t/q"]);
            assert_eq!(boxes(&g, &["gone"]), ["s/q", "t/q"]);
            assert_eq!(boxes(&g, &["*"]), ["s/", "t/"]);
        }
    }
}
