// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flat configuration: elements and connections after compounds are expanded.

use crate::source::{FileId, Span};
use std::ops::Range;

/// One port of one element, by the element's index in [`Flat::elements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRef {
    /// Index in [`Flat::elements`].
    pub element: usize,
    /// Port number, from 0.
    pub port: usize,
}

/// A connection from an output to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The output.
    pub from: PortRef,
    /// The input.
    pub to: PortRef,
    /// The connection's text in its chain.
    pub span: Span,
}

/// One step of how an element came to be: the use of a compound that it was expanded from, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The compound's instance name, such as `two`.
    pub instance: String,
    /// The compound class's name, or `{...}` for an anonymous one.
    pub class: String,
    /// Where the compound was used.
    pub span: Span,
}

/// An element of the flat configuration.
#[derive(Clone, Debug)]
pub struct Element {
    /// Full name, such as `two/s` or `Strip@3`.
    pub name: String,
    /// Class name as written (an alias is not resolved here).
    pub class: String,
    /// Configuration string, variables substituted.
    pub config: String,
    /// Where the element is declared: the class or name in the text.
    pub span: Span,
    /// Where the configuration string stands, without its parentheses; empty at the end of `span` if there is none.
    pub config_span: Span,
    /// Pieces of `config` and where they come from, in order; a piece of another length is a substituted variable.
    pub config_map: Vec<(Range<usize>, Span)>,
    /// The compounds it was expanded from, outermost first.
    pub origin: Vec<Origin>,
}

impl Element {
    /// Where a range of bytes of `config` stands in the source.
    pub fn config_place(&self, range: Range<usize>) -> Span {
        let at = |n: usize, end: bool| {
            self.config_map.iter().find(|(r, _)| n >= r.start && (n < r.end || (end && n == r.end))).map(
                |(r, s)| {
                    let same = r.len() == s.range().len();
                    let n = u32::try_from(n - r.start).unwrap_or(0);
                    match (same, end) {
                        (true, _) => Span { file: s.file, start: s.start + n, end: s.start + n },
                        (false, false) => Span { file: s.file, start: s.start, end: s.start },
                        (false, true) => Span { file: s.file, start: s.end, end: s.end },
                    }
                },
            )
        };
        match (at(range.start, false), at(range.end, true)) {
            (Some(a), Some(b)) if a.file == b.file && a.start <= b.end => a.to(b),
            _ => self.config_span,
        }
    }
    /// The prefix of names in its scope, with its `/`: `two/` for `two/s`, empty at the top.
    pub fn scope(&self) -> &str {
        self.name.rfind('/').map_or("", |i| self.name.get(..=i).unwrap_or(""))
    }
    /// How messages name it: `name :: Class`.
    pub fn declaration(&self) -> String {
        format!("{} :: {}", self.name, self.class)
    }
}

/// A configuration without compounds, as elaboration leaves it.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// Elements in flat order: the top level in order of appearance, then contents of compounds as expanded.
    pub elements: Vec<Element>,
    /// Connections in stored order, without repetitions.
    pub connections: Vec<Connection>,
    /// Requirements in order, such as `("package", "foo")`.
    pub requirements: Vec<(String, String)>,
    /// The file the configuration came from.
    pub file: FileId,
    /// Members of the archive that the configuration came in, but `config`.
    pub archive: Vec<(String, Vec<u8>)>,
}

impl Flat {
    /// Index of the element of that full name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|e| e.name == name)
    }
    /// Looks a name up from a scope prefix outward: `a/b/` tries `a/b/NAME`, `a/NAME`, `NAME`.
    pub fn find_from(&self, scope: &str, name: &str) -> Option<usize> {
        let mut scope = scope.trim_end_matches('/');
        loop {
            let full = if scope.is_empty() { name.to_string() } else { format!("{scope}/{name}") };
            if let Some(i) = self.find(&full) {
                return Some(i);
            }
            if scope.is_empty() {
                return None;
            }
            scope = scope.rfind('/').and_then(|i| scope.get(..i)).unwrap_or("");
        }
    }
}
