// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up classes by name, and resolves the definitions of compound classes.

use super::{Scope, Scopes};
use crate::diagnostic::Diagnostic;
use crate::elaborate::Unknown;
use crate::elaborate::body::{Body, Class, Definition, Node};
use crate::elaborate::missing::{missing_class, unknown_class};
use crate::elaborate::names::nearest;
use crate::source::Span;
use crate::syntax::ast::{self, Compound};
use rustc_hash::FxHashMap;

impl<'a> Scopes<'a, '_> {
    /// The class that a name refers to at the current position.
    pub fn find_class(&self, name: &'a str) -> Option<Class<'a>> {
        let defined = self.lexical.iter().rev().find_map(|names| names.get(name).copied());
        defined.or_else(|| self.options.classes.knows(name).then_some(Class::Plain(name)))
    }
    /// Records that a name has been used as a class. From here on, no element may have this name.
    pub fn use_as_class(&mut self, name: &'a str, span: Span) {
        self.used.entry(name).or_insert(span);
    }
    /// Reports the declaration of an element whose name has been used as a class.
    pub fn refuse_class_name(&mut self, name: &str, span: Span) {
        let Some(&first) = self.used.get(name) else { return };
        // A class may be used after the element name, as in `Idle :: Idle`. Only a use before the name is an error.
        if first.file == span.file && first > span {
            return;
        }
        let d = Diagnostic::error(format!("class '{name}' used as element name"), span)
            .at("declared as an element")
            .label("used as a class here", first)
            .help("choose another name for the element");
        // If there is no such class, the use of the name as a class has been reported.
        let d = if self.find_class(name).is_some() { d } else { d.consequence() };
        self.report.push(d.keeps_flat());
    }
    /// The number of classes defined by the configuration and visible here.
    pub fn local_classes(&self) -> usize {
        self.lexical.iter().map(FxHashMap::len).sum()
    }
    /// The names of all classes visible here.
    pub fn class_names(&self) -> Vec<&'a str> {
        let mut all: Vec<&'a str> = self.options.classes.names();
        all.extend(self.lexical.iter().flat_map(|names| names.keys().copied()));
        all
    }
    /// Resolves a written class. An unknown class is reported, and treated as if it were defined outside the
    /// configuration.
    pub fn class(&mut self, class: &ast::Class, depth_of: &'a str) -> Option<Class<'a>> {
        match class {
            ast::Class::Missing => None,
            ast::Class::Compound(c) => Some(self.compound(c, depth_of, c.span)),
            ast::Class::Name(span) => {
                let name = self.text(*span);
                self.use_as_class(name, *span);
                let found = self.find_class(name);
                if found.is_none() && self.in_itself(name, *span, "unknown element class") {
                    return Some(Class::Plain(name));
                }
                if found.is_none()
                    && self.options.unknown == Unknown::Error
                    && !self.missing_class(name, *span)
                {
                    let others = self.local_classes();
                    let may_compare = self.report.has_room() && self.report.may_compare(others);
                    let near = || may_compare.then(|| nearest(name, self.class_names())).flatten();
                    let error = unknown_class(name, *span, near).at("no such class");
                    self.report.push(error);
                }
                Some(found.unwrap_or(Class::Plain(name)))
            }
        }
    }
    /// Whether an unknown name is that of a class whose definition encloses the current position. If so, reports an
    /// error, unless the definition lacks its `}`. In that case, the missing `}` has been reported already, and the
    /// user may have meant to write the `}` before the current position.
    pub fn in_itself(&mut self, name: &str, span: Span, what: &str) -> bool {
        let Some(&(_, definition, closed)) = self.within.iter().rfind(|w| w.0 == name) else { return false };
        if closed {
            let d = Diagnostic::error(format!("{what} '{name}'"), span)
                .at("a class is not known inside its own definition")
                .label("the definition begins here", definition)
                .help("a compound cannot contain itself; use another class here");
            self.report.push(d.keeps_flat());
        }
        true
    }
    /// Reports a class that only other routers have, at its first use. Returns whether the name is that of
    /// such a class.
    pub fn missing_class(&mut self, name: &'a str, span: Span) -> bool {
        let missing = missing_class(name).is_some();
        if missing && self.missing.insert(name) {
            self.report.push(unknown_class(name, span, || None).at("no such class"));
        }
        missing
    }
    pub(super) fn element_class(&mut self, c: &ast::ElementClass) {
        let name = self.text(c.name);
        self.use_as_class(name, c.name);
        let class = match &c.class {
            ast::Class::Compound(body) => {
                self.within.push((name, c.name, body.closed));
                let class = self.compound(body, name, c.name);
                self.within.pop();
                Some(class)
            }
            other => self.class(other, name),
        };
        if let (Some(class), Some(names)) = (class, self.lexical.last_mut()) {
            names.insert(name, class);
        }
    }
    /// Resolves a compound; `name` is empty for an anonymous compound.
    pub fn compound(&mut self, c: &Compound, name: &'a str, span: Span) -> Class<'a> {
        let mut extends = None;
        if let Some(dots) = c.extends {
            extends = if name.is_empty() { None } else { self.find_class(name) };
            if extends.is_none() {
                let what = if name.is_empty() {
                    "an anonymous class".into()
                } else {
                    format!("unknown class '{name}'")
                };
                let d = Diagnostic::error(format!("'...' cannot extend {what}"), dots);
                self.report.push(d.at("no class of this name is visible before").help("remove the '...'"));
            }
        }
        let depth = self.lexical.len();
        let alternatives = c.alternatives.iter().map(|a| self.alternative(a, name)).collect();
        let name = if name.is_empty() { "{...}" } else { name };
        self.classes.push(Definition { name, span, depth, alternatives, extends });
        Class::Defined(self.classes.len() - 1)
    }
    fn alternative(&mut self, a: &ast::Alternative, name: &str) -> Body<'a> {
        self.lexical.push(FxHashMap::default());
        let first = self.classes.len();
        let mut scope = Scope::default();
        scope.body.span = a.span;
        let ports = (scope.node(Node::Input), scope.node(Node::Output));
        scope.ports.push(ports);
        self.params(&mut scope.body, &a.params);
        self.statements(&mut scope, &a.statements, false);
        scope.name_anonymous();
        let what = if name.is_empty() { "(anonymous compound)" } else { name };
        let (counts, gaps) = self.port_counts(&scope.body, ports, 0, what, a.span);
        (scope.body.inputs, scope.body.outputs) = counts;
        scope.body.gaps = gaps;
        scope.body.classes = first..self.classes.len();
        self.lexical.pop();
        scope.body
    }
}
