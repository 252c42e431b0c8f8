// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports undeclared names: the position of the name allows an element or a class, but the name is neither.

use super::body::Class;
use super::names::nearest;
use super::scope::{Name, Scope, Scopes};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::Elem;

impl<'a> Scopes<'a, '_> {
    /// Reports an undeclared name and adds an element in its place.
    pub(super) fn undeclared(
        &mut self,
        scope: &mut Scope<'a, '_>,
        name: &'a str,
        span: Span,
        elem: &Elem,
    ) -> Option<usize> {
        if self.in_itself(name, span, "undeclared element") {
            return self.guess(scope, name, span, elem);
        }
        if self.report.has_room() {
            let mut d = Diagnostic::error(format!("undeclared element '{name}'"), span)
                .at("neither an element nor a class");
            let mut element_meant = false;
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                // The number is probably meant as an argument of the class before it, as in `Strip 14`. If so, the flat
                // configuration lacks a connection of the element of that class, and further checks could report
                // consequences of this error.
                element_meant = true;
                d = d.help(format!("the arguments of a class stand in parentheses: CLASS({name})"));
            } else if let Some(later) = scope.declared_after(self.sources, name, span) {
                d = d.label("declared here", later).help("declare an element before its first use");
            } else if self.report.may_compare(scope.names.len() + self.local_classes()) {
                let mut names = self.class_names();
                names.extend(scope.names.iter().filter(|n| n.1.node.is_some() && !n.1.guessed).map(|n| *n.0));
                names.extend(scope.ports.last().into_iter().flat_map(|_| ["input", "output"]));
                if let Some(near) = nearest(name, names) {
                    // If the user means the element `near`, the flat configuration lacks the connection of `near` that
                    // was written with the wrong name. Further checks could then report consequences of this error.
                    element_meant = scope.names.contains_key(near) || matches!(near, "input" | "output");
                    d = d.did_you_mean(near);
                } else if matches!(name, "input" | "output") {
                    d = d.help(format!("'{name}' has its special meaning only inside '{{…}}' and '(…)'"));
                } else {
                    d = d.help(format!("declare it with its class: '{name} :: CLASS'"));
                }
            }
            self.report.push(if element_meant { d } else { d.keeps_flat() });
        } else {
            self.report.error(format!("undeclared element '{name}'"), span, "");
        }
        self.guess(scope, name, span, elem)
    }
    /// Adds an element of unknown class for an undeclared name that has been reported, so that further checks see the
    /// connections of this element.
    fn guess(&mut self, scope: &mut Scope<'a, '_>, name: &'a str, span: Span, elem: &Elem) -> Option<usize> {
        let node =
            scope.element(Some(name), name, Class::Plain(name), (span, elem.config), self.classes.len());
        scope.names.insert(name, Name { node: Some(node), span, guessed: true });
        Some(node)
    }
}
