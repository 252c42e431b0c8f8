// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of name resolution: scopes in which every name is resolved. Expansion reads these scopes.

use crate::source::Span;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// A class name, resolved in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class<'a> {
    /// A class defined outside the configuration.
    Plain(&'a str),
    /// A compound class, by index in the list of definitions.
    Defined(usize),
}

/// A compound class.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    /// The name of the class; `{...}` for an anonymous class.
    pub name: &'a str,
    pub span: Span,
    /// Nesting depth of the definition in the text, counting this compound.
    pub depth: usize,
    pub alternatives: Vec<Body<'a>>,
    /// The class that this class extends by `...`; `None` without `...`.
    pub extends: Option<Class<'a>>,
}

impl Definition<'_> {
    /// Whether the class has no name.
    pub fn is_anonymous(&self) -> bool {
        self.name == "{...}"
    }
}

/// An element of a scope.
#[derive(Debug)]
pub(super) struct Decl<'a> {
    pub name: Cow<'a, str>,
    pub class: Class<'a>,
    pub span: Span,
    pub config: Option<Span>,
    /// The number of compound classes that were defined before this declaration, in all scopes.
    pub classes: usize,
}

/// A node of a scope, where connections start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// An element, by index in `decls`.
    Element(u32),
    /// The compound's own `input` pseudo-element.
    Input,
    /// The compound's own `output` pseudo-element.
    Output,
    /// The `input` or `output` of a group. A packet that enters at a port leaves at the port of the same number.
    Group,
}

/// A node and one of its ports.
// INVARIANT: the limits on elements, connections and ports keep both numbers far below 2^32.
pub(super) type End = (u32, u32);

/// A connection between ports of two nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub from: End,
    pub to: End,
    pub span: Span,
}

/// A parameter of a compound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Formal<'a> {
    pub name: &'a str,
    /// The keyword. `None` for a positional parameter; `__REST__` for the parameter that takes all remaining arguments.
    pub keyword: Option<&'a str>,
}

/// A scope whose names are resolved.
#[derive(Debug, Default)]
pub(super) struct Body<'a> {
    pub span: Span,
    pub decls: Vec<Decl<'a>>,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub formals: Vec<Formal<'a>>,
    /// Variables defined here: name and value.
    pub defines: Vec<(&'a str, &'a str)>,
    /// All variable names bound here: parameters and definitions.
    pub variables: HashSet<&'a str>,
    /// The numbers of inputs (`inputs`) and outputs (`outputs`) of the compound, counted from their uses in its body.
    pub inputs: usize,
    pub outputs: usize,
    /// The compound classes defined in this scope and in compounds inside it, by index in the list of definitions.
    pub classes: Range<usize>,
    /// Whether there are gaps between the numbers of the used ports. If so, an error has been reported.
    pub gaps: bool,
}
