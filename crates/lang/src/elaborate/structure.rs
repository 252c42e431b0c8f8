// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structure of a configuration: its scopes, with all names resolved, and without expanding compounds.

use super::body::{Body, Class, Definition, Node};
use super::tunnels::{Net, TUNNEL};
use super::variables::{Budget, Env};
use super::{MAX_TEXT, Options, files, report, scope};
use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Sources, Span};
use std::rc::Rc;

/// A configuration whose compounds are not expanded.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    /// The compound classes, each after those that it uses.
    pub classes: Vec<Compound>,
    /// The scope of the file.
    pub top: Scope,
}

/// A class as elements use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassRef {
    /// A class defined outside the configuration.
    Plain(String),
    /// A compound class, by index in [`Structure::classes`].
    Compound(usize),
}

/// A compound class.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    /// The name; `None` for an anonymous compound.
    pub name: Option<String>,
    /// The position of the definition.
    pub span: Span,
    /// The alternatives, in order.
    pub alternatives: Vec<Alternative>,
    /// The class that this class extends by `...`.
    pub extends: Option<ClassRef>,
}

/// An alternative of a compound class.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The parameters: name without `$`, and keyword.
    pub parameters: Vec<(String, Option<String>)>,
    /// The number of inputs.
    pub inputs: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// What the alternative contains.
    pub scope: Scope,
}

/// The elements, classes and connections of a file or of an alternative. Groups are dissolved.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Elements and class definitions, in the order of the text.
    pub items: Vec<Item>,
    /// The connections, without duplicates.
    pub connections: Vec<Connection>,
}

/// An element or a class definition.
#[derive(Clone, Debug)]
pub enum Item {
    /// An element.
    Element(Element),
    /// A compound class, by index in [`Structure::classes`].
    Compound(usize),
}

/// An element.
#[derive(Clone, Debug)]
pub struct Element {
    /// The name in its scope.
    pub name: String,
    /// The class.
    pub class: ClassRef,
    /// The configuration string. Variables are substituted, except parameters of compounds.
    pub config: String,
    /// The position of the declaration.
    pub span: Span,
}

/// An end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A port of the element with this name.
    Element(String),
    /// A port of the compound's own `input`.
    Input,
    /// A port of the compound's own `output`.
    Output,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The source and its port.
    pub from: (End, usize),
    /// The destination and its port.
    pub to: (End, usize),
    /// The position of the connection in the text.
    pub span: Span,
}

/// Resolves the names of a file, without expanding compounds. Errors of the expansion are not found.
pub fn structure(sources: &mut Sources, file: FileId, options: &Options<'_>) -> (Structure, Vec<Diagnostic>) {
    let mut report = report::Report::default();
    let files = files::read(sources, file, options, &mut report);
    let sources = &*sources;
    let mut scopes = scope::Scopes::new(sources, options, &mut report);
    let top = scopes.top(&files);
    let budget = Budget { left: MAX_TEXT, cycle: false, spent: false };
    let classes = vec![Compound::default(); scopes.classes.len()];
    let mut builder = Builder { sources, all: &scopes.classes, classes, budget };
    let env = Env::top(&top.defines, options.defines);
    let top = builder.scope(&top, 0, &env);
    let (classes, spent) = (builder.classes, builder.budget.spent);
    if spent {
        let d = Diagnostic::error(
            format!("configuration is too large: more than {} MB of text", MAX_TEXT >> 20),
            None,
        );
        report.push(d);
    }
    (Structure { classes, top }, report.finish())
}

struct Builder<'a, 'd> {
    sources: &'a Sources,
    all: &'d [Definition<'a>],
    /// The classes that have been built, and empty ones for the others.
    classes: Vec<Compound>,
    budget: Budget,
}

fn class_ref(class: Class<'_>) -> ClassRef {
    match class {
        Class::Plain(name) => ClassRef::Plain(name.to_string()),
        Class::Defined(index) => ClassRef::Compound(index),
    }
}

impl<'a> Builder<'a, '_> {
    /// Builds a scope. `depth` is the number of compounds that enclose it.
    fn scope(&mut self, body: &Body<'a>, depth: usize, env: &Rc<Env<'a>>) -> Scope {
        let all = self.all;
        let inside = |c: &usize| all.get(*c).is_some_and(|d| d.depth == depth + 1);
        let mut defined = body.classes.clone().filter(inside).peekable();
        let mut scope = Scope::default();
        for decl in &body.decls {
            while let Some(class) = defined.next_if(|&c| c < decl.classes) {
                self.compound(class, env);
                scope.items.push(Item::Compound(class));
            }
            let raw = decl.config.map_or("", |span| self.sources.snippet(span));
            let config = match env.substitute(raw, &mut self.budget) {
                None => raw.to_string(),
                Some(pieces) => pieces.iter().map(|p| p.text.as_ref()).collect(),
            };
            self.budget.take(config.len());
            let (name, class) = (decl.name.to_string(), class_ref(decl.class));
            scope.items.push(Item::Element(Element { name, class, config, span: decl.span }));
        }
        for class in defined {
            self.compound(class, env);
            scope.items.push(Item::Compound(class));
        }
        scope.connections = connections(body);
        scope
    }

    /// Builds a class. The recursion is bounded, because the language limits how deep compounds nest.
    fn compound(&mut self, index: usize, env: &Rc<Env<'a>>) {
        let all = self.all;
        let Some(definition) = all.get(index) else { return };
        let mut alternative = |body: &Body<'a>| {
            let env = Env::unexpanded(env, body.formals.iter().map(|f| f.name), &body.defines);
            let parameter = |f: &super::body::Formal<'_>| (f.name.to_string(), f.keyword.map(str::to_string));
            Alternative {
                parameters: body.formals.iter().map(parameter).collect(),
                inputs: body.inputs,
                outputs: body.outputs,
                scope: self.scope(body, definition.depth, &env),
            }
        };
        let compound = Compound {
            name: Some(definition.name).filter(|n| *n != "{...}").map(str::to_string),
            span: definition.span,
            alternatives: definition.alternatives.iter().map(&mut alternative).collect(),
            extends: definition.extends.map(class_ref),
        };
        if let Some(place) = self.classes.get_mut(index) {
            *place = compound;
        }
    }
}

/// The connections of a scope between its elements, its `input` and its `output`.
fn connections(body: &Body<'_>) -> Vec<Connection> {
    let (input, output) = (body.decls.len() as u32, body.decls.len() as u32 + 1);
    let mut net = Net::default();
    for node in &body.nodes {
        net.node(match *node {
            Node::Element(decl) => decl,
            Node::Input => input,
            Node::Output => output,
            Node::Group => TUNNEL,
        });
    }
    net.links.clone_from(&body.links);
    let end = |element: usize| match body.decls.get(element) {
        Some(decl) => End::Element(decl.name.to_string()),
        None if element == input as usize => End::Input,
        None => End::Output,
    };
    let found = net.connections().0.into_iter();
    found
        .map(|c| Connection {
            from: (end(c.from.element), c.from.port),
            to: (end(c.to.element), c.to.port),
            span: c.span,
        })
        .collect()
}

#[cfg(test)]
mod tests;
