// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lossless parser. It accepts any text.
//!
//! One parse serves two consumers: [`tree`] builds the lossless rowan tree for formatters and editors, and
//! elaboration reads the plain statements. Nesting is bounded by [`MAX_NESTING`], so that recursion over a tree
//! cannot overflow the stack.

pub(crate) mod ast;
mod element;
mod kind;
pub(crate) mod lexer;
mod nest;
mod parsed;
mod parser;

pub use kind::{ConfigLanguage, SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};
pub(crate) use parsed::{Keep, Parsed};
pub(crate) use parser::parse;

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Sources};

/// The maximum nesting depth of compounds and groups.
pub const MAX_NESTING: usize = 50;

/// The lossless tree of a text, and its syntax errors. Concatenating the tree's tokens gives the text back.
pub fn tree(sources: &mut Sources, file: FileId) -> (SyntaxNode, Vec<Diagnostic>) {
    let parsed = parse_into(sources, file, Keep::Everything);
    (SyntaxNode::new_root(parsed.green(sources.text(file))), parsed.diagnostics)
}

/// Parses a file for elaboration, without its lossless tree, and records its line directives.
pub(crate) fn parse_file(sources: &mut Sources, file: FileId) -> Parsed {
    parse_into(sources, file, Keep::Statements)
}

fn parse_into(sources: &mut Sources, file: FileId, keep: Keep) -> Parsed {
    let mut parsed = parse(file, sources.text(file), keep);
    for (at, line, name) in std::mem::take(&mut parsed.directives) {
        sources.add_directive(file, at, line, name);
    }
    parsed
}

#[cfg(test)]
mod tests;
