// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statements that elaboration reads. They come from the same parse as the lossless tree, but are plain
//! data without trivia (blanks, comments, line directives).

use crate::source::Span;
use std::ops::Deref;

/// One statement.
#[derive(Debug)]
pub(crate) enum Statement {
    Connection(Connection),
    ElementClass(ElementClass),
    Require(Args),
    Define(Args),
}

/// A declaration (one list) or a chain of lists.
#[derive(Debug)]
pub(crate) struct Connection {
    pub lists: Vec<List>,
    /// For each link between two lists: whether it is `=>`, and its position.
    pub links: Vec<(bool, Span)>,
}

/// A list of elements. Most lists have one element, which needs no memory of its own.
#[derive(Debug)]
pub(crate) enum List {
    One(Elem),
    Several(Vec<Elem>),
}

impl List {
    /// The list that ends with `last`.
    pub fn new(mut before: Vec<Elem>, last: Elem) -> List {
        if before.is_empty() {
            return List::One(last);
        }
        before.push(last);
        List::Several(before)
    }
}

impl Deref for List {
    type Target = [Elem];
    fn deref(&self) -> &[Elem] {
        match self {
            List::One(elem) => std::slice::from_ref(elem),
            List::Several(all) => all,
        }
    }
}

/// One element in a list.
#[derive(Debug)]
pub(crate) struct Elem {
    pub span: Span,
    pub inputs: Option<Box<Ports>>,
    pub core: Core,
    /// The text between its parentheses.
    pub config: Option<Span>,
    pub outputs: Option<Box<Ports>>,
}

#[derive(Debug)]
pub(crate) enum Core {
    /// Nothing is written, which means `input` at the start of a chain and `output` at its end.
    Implicit,
    /// Nothing is written where an element is required. An error has been reported.
    Missing,
    Name {
        name: Span,
        class: Option<Class>,
    },
    Compound(Box<Compound>),
    Group(Box<Group>),
}

#[derive(Debug)]
pub(crate) enum Class {
    Name(Span),
    Compound(Box<Compound>),
    Missing,
}

#[derive(Debug)]
pub(crate) struct Compound {
    pub span: Span,
    pub alternatives: Vec<Alternative>,
    /// The position of `...`; `None` if the compound has none.
    pub extends: Option<Span>,
    /// Whether its `}` was found.
    pub closed: bool,
}

#[derive(Debug)]
pub(crate) struct Alternative {
    pub span: Span,
    pub params: Vec<Param>,
    pub statements: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub keyword: Option<Span>,
    /// The position of the parameter's name, including the `$`.
    pub name: Span,
}

#[derive(Debug)]
pub(crate) struct Group {
    pub span: Span,
    pub statements: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Ports {
    pub span: Span,
    pub items: Vec<PortItem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortItem {
    /// First and last port.
    Range(usize, usize),
    /// From this port on, as many ports as the other side has.
    From(usize),
}

#[derive(Debug)]
pub(crate) struct ElementClass {
    pub name: Span,
    pub class: Class,
}

/// `require(…)` or `define(…)`.
#[derive(Debug)]
pub(crate) struct Args {
    pub config: Option<Span>,
}
