// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text to syntax tree: lossless, and for any text at all.
//!
//! One parser feeds two readers: [`tree`] builds the lossless rowan tree that formatters and editors want, elaboration takes
//! the plain statements. Nesting is bounded by [`MAX_NESTING`], so no tree is deep enough to exhaust a stack.

pub(crate) mod ast;
mod element;
mod kind;
pub(crate) mod lexer;
mod nest;
mod parser;

pub use kind::{ConfigLanguage, SyntaxKind, SyntaxNode, SyntaxToken};
pub(crate) use parser::{Parsed, parse};

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Sources};

/// How deep compounds and groups may nest.
pub const MAX_NESTING: usize = 50;

/// The lossless tree of a text, and what is wrong with its syntax. The tree's text is the text.
pub fn tree(sources: &mut Sources, file: FileId) -> (SyntaxNode, Vec<Diagnostic>) {
    let parsed = parse_file(sources, file);
    (SyntaxNode::new_root(parsed.green(sources.text(file))), parsed.diagnostics)
}

/// Parses a file and makes its line directives known.
pub(crate) fn parse_file(sources: &mut Sources, file: FileId) -> Parsed {
    let mut parsed = parse(file, sources.text(file));
    for (at, line, name) in std::mem::take(&mut parsed.directives) {
        sources.add_directive(file, at, line, name);
    }
    parsed
}

#[cfg(test)]
mod tests;
