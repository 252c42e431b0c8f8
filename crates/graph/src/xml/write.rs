// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes configurations as XML.

use super::{NAMESPACE, REQUIRE};
use crate::graph::{Graph, PortKind};
use crate::markup::attribute;
use castanet_lang::args::quote;
use castanet_lang::elaborate::structure::{
    Alternative, ClassRef, Connection, Element, End, Item, Scope, Structure,
};
use castanet_lang::{Sources, Span};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Writes a flat configuration.
pub fn flat(graph: &Graph, sources: &Sources) -> String {
    let mut writer = Writer::new(graph, sources);
    for (e, element) in graph.flat.elements.iter().enumerate() {
        let ports = (graph.inputs(e), graph.outputs(e));
        writer.element(&element.name, (&element.class, None), &element.config, element.span, ports);
    }
    for c in &graph.flat.connections {
        let name = |e: usize| graph.name(e);
        let kind = graph.output_kind(c.from.element, c.from.port);
        writer.connection(
            (name(c.from.element), c.from.port),
            (name(c.to.element), c.to.port),
            Some(kind),
            c.span,
        );
    }
    writer.finish()
}

/// Writes a configuration with its compounds. `graph` is the same configuration with its compounds expanded; it tells
/// push from pull.
pub fn structured(structure: &Structure, graph: &Graph, sources: &Sources) -> String {
    let mut writer = Writer::new(graph, sources);
    writer.structure = Some(structure);
    writer.scope(&structure.top);
    writer.finish()
}

struct Writer<'a> {
    graph: &'a Graph,
    sources: &'a Sources,
    structure: Option<&'a Structure>,
    /// The first element that is declared at each position.
    elements: HashMap<Span, usize>,
    /// The kind of the first connection at each position.
    kinds: HashMap<Span, PortKind>,
    out: String,
}

/// Appends ` NAME="VALUE"`.
fn attr(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, " {name}=\"{}\"", attribute(&value.to_string()));
}

/// The identifier of an alternative of a compound class. The first alternative has the identifier of the class.
fn class_id(class: usize, alternative: usize) -> String {
    match alternative {
        0 => format!("c{class}"),
        n => format!("c{class}-{n}"),
    }
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph, sources: &'a Sources) -> Writer<'a> {
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<configuration xmlns=\"{NAMESPACE}\">\n"
        );
        for (kind, name) in &graph.flat.requirements {
            // The text of a processing instruction ends at the first `?>`.
            let name = if name.is_empty() {
                String::new()
            } else {
                format!(" {}", quote(name).replace('>', "\\076"))
            };
            let _ = writeln!(out, "<?{REQUIRE} {kind}{name}?>");
        }
        let (mut elements, mut kinds) = (HashMap::new(), HashMap::new());
        for (e, element) in graph.flat.elements.iter().enumerate() {
            elements.entry(element.span).or_insert(e);
        }
        for c in &graph.flat.connections {
            kinds.entry(c.span).or_insert_with(|| graph.output_kind(c.from.element, c.from.port));
        }
        Writer { graph, sources, structure: None, elements, kinds, out }
    }

    fn finish(mut self) -> String {
        self.out.push_str("</configuration>\n");
        self.out
    }

    fn place(&mut self, span: Span) {
        let place = self.sources.place(span);
        attr(&mut self.out, "file", &place.file);
        attr(&mut self.out, "line", place.line);
    }

    /// Writes an element. `class` is the name of its class, and the identifier of a compound class.
    fn element(
        &mut self,
        name: &str,
        class: (&str, Option<String>),
        config: &str,
        span: Span,
        (inputs, outputs): (usize, usize),
    ) {
        self.out.push_str("<element");
        attr(&mut self.out, "name", name);
        attr(&mut self.out, "classname", class.0);
        let compound = class.1.is_some();
        if let Some(id) = class.1 {
            attr(&mut self.out, "classid", id);
        }
        self.place(span);
        attr(&mut self.out, "ninputs", inputs);
        attr(&mut self.out, "noutputs", outputs);
        if let Some(&e) = self.elements.get(&span).filter(|_| !compound) {
            attr(&mut self.out, "processing", processing(self.graph, e));
        }
        if !config.is_empty() {
            attr(&mut self.out, "config", config);
        }
        self.out.push_str("/>\n");
    }

    fn connection(&mut self, from: (&str, usize), to: (&str, usize), kind: Option<PortKind>, span: Span) {
        self.out.push_str("<connection");
        attr(&mut self.out, "from", from.0);
        attr(&mut self.out, "fromport", from.1);
        attr(&mut self.out, "to", to.0);
        attr(&mut self.out, "toport", to.1);
        if let Some(kind) = kind {
            attr(&mut self.out, "processing", letter(kind));
        }
        self.place(span);
        self.out.push_str("/>\n");
    }

    /// Writes the contents of the file or of a compound. The recursion is bounded, because the language limits how deep
    /// compounds nest.
    fn scope(&mut self, scope: &Scope) {
        let mut ports: HashMap<&str, (usize, usize)> = HashMap::new();
        for Connection { from, to, .. } in &scope.connections {
            if let (End::Element(name), port) = from {
                let outputs = &mut ports.entry(name).or_default().1;
                *outputs = (*outputs).max(port + 1);
            }
            if let (End::Element(name), port) = to {
                let inputs = &mut ports.entry(name).or_default().0;
                *inputs = (*inputs).max(port + 1);
            }
        }
        for item in &scope.items {
            match item {
                Item::Compound(class) => self.compound(*class),
                Item::Element(Element { name, class, config, span }) => {
                    let used = ports.get(name.as_str()).copied().unwrap_or_default();
                    let (class, id) = self.class(class);
                    self.element(name, (&class, id), config, *span, used);
                }
            }
        }
        let name = |end: &'_ End| match end {
            End::Element(name) => name.clone(),
            End::Input => "input".to_string(),
            End::Output => "output".to_string(),
        };
        for c in &scope.connections {
            let kind = self.kinds.get(&c.span).copied();
            self.connection((&name(&c.from.0), c.from.1), (&name(&c.to.0), c.to.1), kind, c.span);
        }
    }

    /// The name of a class, and its identifier if it is a compound class. An anonymous class has no name.
    fn class(&self, class: &ClassRef) -> (String, Option<String>) {
        match class {
            ClassRef::Plain(name) => (name.clone(), None),
            ClassRef::Compound(c) => {
                let compound = self.structure.and_then(|s| s.classes.get(*c));
                (compound.and_then(|c| c.name.clone()).unwrap_or_default(), Some(class_id(*c, 0)))
            }
        }
    }

    /// Writes the alternatives of a class, the last one first, so that each stands behind the one it refers to.
    fn compound(&mut self, class: usize) {
        let Some(compound) = self.structure.and_then(|s| s.classes.get(class)) else { return };
        let name = compound.name.clone().unwrap_or_default();
        let mut next = compound.extends.as_ref().map(|e| self.class(e));
        for (n, alternative) in compound.alternatives.iter().enumerate().rev() {
            let id = class_id(class, n);
            self.out.push_str("<elementclass");
            attr(&mut self.out, "classname", &name);
            attr(&mut self.out, "classid", &id);
            self.place(compound.span);
            self.out.push_str(">\n");
            self.alternative(alternative, next);
            self.out.push_str("</elementclass>\n");
            next = Some((name.clone(), Some(id)));
        }
    }

    fn alternative(&mut self, alternative: &Alternative, next: Option<(String, Option<String>)>) {
        self.out.push_str("<compound");
        if let Some((name, id)) = next {
            attr(&mut self.out, "overloadclassname", name);
            if let Some(id) = id {
                attr(&mut self.out, "overloadclassid", id);
            }
        }
        attr(&mut self.out, "ninputs", alternative.inputs);
        attr(&mut self.out, "noutputs", alternative.outputs);
        attr(&mut self.out, "nformals", alternative.parameters.len());
        self.out.push_str(">\n");
        for (number, (name, key)) in alternative.parameters.iter().enumerate() {
            self.out.push_str("<formal");
            attr(&mut self.out, "number", number);
            attr(&mut self.out, "name", name);
            if let Some(key) = key {
                attr(&mut self.out, "key", key);
            }
            self.out.push_str("/>\n");
        }
        self.scope(&alternative.scope);
        self.out.push_str("</compound>\n");
    }
}

/// The processing code of a port: `h` for push, `l` for pull.
fn letter(kind: PortKind) -> char {
    if kind == PortKind::Push { 'h' } else { 'l' }
}

/// The processing code of an element in its configuration, such as `h/hl`.
fn processing(graph: &Graph, e: usize) -> String {
    let inputs = (0..graph.inputs(e)).map(|p| letter(graph.input_kind(e, p)));
    let outputs = (0..graph.outputs(e)).map(|p| letter(graph.output_kind(e, p)));
    inputs.chain(['/']).chain(outputs).collect()
}
