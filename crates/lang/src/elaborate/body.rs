// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scope after its names are resolved: what expansion needs to make elements and connections of it.

use crate::source::Span;
use std::borrow::Cow;
use std::collections::HashSet;

/// A class as a scope sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class<'a> {
    /// One from outside the configuration.
    Plain(&'a str),
    /// A compound class, by index in the list of definitions.
    Defined(usize),
}

/// A compound class.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    /// `{...}` for an anonymous one.
    pub name: &'a str,
    pub span: Span,
    /// How many compounds its text lies in, itself included.
    pub depth: usize,
    pub alternatives: Vec<Body<'a>>,
    /// What `...` stands for.
    pub extends: Option<Class<'a>>,
}

/// An element of a scope.
#[derive(Debug)]
pub(super) struct Decl<'a> {
    pub name: Cow<'a, str>,
    pub class: Class<'a>,
    pub span: Span,
    pub config: Option<Span>,
}

/// What connections join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// An element, by index in `decls`.
    Element(usize),
    /// The compound's own `input`.
    Input,
    /// The compound's own `output`.
    Output,
    /// `input` or `output` of a group: what enters a port leaves by the same one.
    Group,
}

/// A connection between two nodes' ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub from: (usize, usize),
    pub to: (usize, usize),
    pub span: Span,
}

/// A parameter of a compound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Formal<'a> {
    pub name: &'a str,
    /// `__REST__` for the one that takes what is left.
    pub keyword: Option<&'a str>,
}

/// A resolved scope.
#[derive(Debug, Default)]
pub(super) struct Body<'a> {
    pub span: Span,
    pub decls: Vec<Decl<'a>>,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub formals: Vec<Formal<'a>>,
    /// Variables defined here: name and value.
    pub defines: Vec<(&'a str, &'a str)>,
    /// The names of parameters and of variables defined here.
    pub variables: HashSet<&'a str>,
    /// How many inputs and outputs it uses of the compound that it is the body of.
    pub inputs: usize,
    pub outputs: usize,
}
