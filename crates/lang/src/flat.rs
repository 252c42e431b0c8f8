// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flat configuration: elements and connections after expansion of compounds.

use crate::class_name::ClassName;
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
    /// The position of the connection in the source text.
    pub span: Span,
}

/// One expansion step of an element: a compound that it was expanded from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The compound's instance name, such as `two`.
    pub instance: String,
    /// The compound class's name, or `{...}` for an anonymous one.
    pub class: String,
    /// The position of the compound's use.
    pub span: Span,
    /// The parameters of the compound, without their `$`.
    pub parameters: Vec<String>,
}

impl Origin {
    /// The approximate memory that this expansion step takes, in bytes.
    pub fn size(&self) -> usize {
        let parameters: usize = self.parameters.iter().map(|p| p.len() + 24).sum();
        self.instance.len() + self.class.len() + parameters + 88
    }
}

/// An element of the flat configuration.
#[derive(Clone, Debug)]
pub struct Element {
    /// Full name, such as `two/s` or `Strip@3`.
    pub name: String,
    /// Class name as written; aliases are not resolved here.
    pub class: ClassName,
    /// Configuration string after variable substitution.
    pub config: String,
    /// The position of the declaration: the class or name in the text.
    pub span: Span,
    /// The position of the configuration string without its parentheses. Empty, at the end of `span`, if there
    /// is none.
    pub config_span: Span,
    /// Maps ranges of `config` to source positions, in order. A piece whose length differs from its source is a
    /// substituted variable.
    pub config_map: Vec<(Range<usize>, Span)>,
    /// The compounds that the element was expanded from, outermost first.
    pub origin: Vec<Origin>,
}

impl Element {
    /// The source position of a range of bytes of `config`.
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
    /// The name prefix of the element's scope ([`scope_of`]).
    pub fn scope(&self) -> &str {
        scope_of(&self.name)
    }
    /// The element as messages show it: `name :: Class`.
    pub fn declaration(&self) -> String {
        format!("{} :: {}", self.name, self.class)
    }
}

/// The prefix of the scope that a full name lies in, with its `/`: `two/` for `two/s`, empty at the top level.
pub fn scope_of(name: &str) -> &str {
    name.rfind('/').and_then(|i| name.get(..=i)).unwrap_or("")
}

/// A configuration without compounds, the result of elaboration.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// Elements in flat order: the top level in order of appearance, then the contents of compounds in order of
    /// expansion.
    pub elements: Vec<Element>,
    /// Connections without duplicates: first direct ones, then those that lead through compounds.
    pub connections: Vec<Connection>,
    /// Requirements in order, such as `("package", "foo")`.
    pub requirements: Vec<(String, String)>,
    /// The position of each requirement.
    pub required_at: Vec<Span>,
    /// The file of the configuration.
    pub file: FileId,
    /// The members of the archive that held the configuration, except `config`.
    pub archive: Vec<(String, Vec<u8>)>,
}

impl Flat {
    /// Adds `files` to all file numbers, after [`crate::Sources::append`].
    pub fn shift_files(&mut self, files: u32) {
        self.file.0 = self.file.0.saturating_add(files);
        let spans = self.elements.iter_mut().flat_map(|e| {
            let own = [&mut e.span, &mut e.config_span].into_iter();
            own.chain(e.config_map.iter_mut().map(|m| &mut m.1))
                .chain(e.origin.iter_mut().map(|o| &mut o.span))
        });
        let connections = self.connections.iter_mut().map(|c| &mut c.span);
        for span in spans.chain(connections).chain(&mut self.required_at) {
            *span = span.shifted(files);
        }
    }
    /// The index of the element with this full name; `None` if there is none.
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
