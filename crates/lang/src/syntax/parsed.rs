// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a parse.

use super::ast::Statement;
use super::kind::SyntaxKind;
use crate::diagnostic::Diagnostic;

/// A step of the construction of the lossless tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Start(SyntaxKind),
    Token(SyntaxKind, u32),
    Finish,
}

/// The parts of a text that a parse keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The statements only.
    Statements,
    /// Also what the lossless tree needs.
    Everything,
}

/// The result of parsing a text.
pub(crate) struct Parsed {
    pub statements: Vec<Statement>,
    pub diagnostics: Vec<Diagnostic>,
    /// The line directives. The fields are the byte from which the directive applies, the line number, and the file
    /// name (`None`: the file's own name).
    pub directives: Vec<(usize, u32, Option<String>)>,
    /// The steps that make the lossless tree.
    pub(super) events: Vec<Event>,
}

impl Parsed {
    /// The lossless tree over `text`, which must be the parsed text. The parse must have kept everything.
    pub fn green(&self, text: &str) -> rowan::GreenNode {
        let mut builder = rowan::GreenNodeBuilder::new();
        let mut at = 0usize;
        builder.start_node(SyntaxKind::Root.into());
        for event in &self.events {
            match *event {
                Event::Start(kind) => builder.start_node(kind.into()),
                Event::Finish => builder.finish_node(),
                Event::Token(kind, end) => {
                    builder.token(kind.into(), text.get(at..end as usize).unwrap_or(""));
                    at = end as usize;
                }
            }
        }
        builder.finish_node();
        builder.finish()
    }
}
