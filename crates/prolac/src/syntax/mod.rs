// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lossless parser. It accepts any text.
//!
//! One parse serves two consumers: [`tree`] builds the lossless rowan tree for the formatter and for editors, and
//! resolution reads the plain syntax. Nesting is bounded by [`MAX_NESTING`], so that recursion over a tree cannot
//! overflow the stack.

pub(crate) mod ast;
mod exprs;
mod forms;
mod items;
mod kind;
mod lexer;
mod members;
mod parser;
mod words;

pub use kind::{Prolac, SyntaxKind, SyntaxNode, SyntaxToken};
pub(crate) use parser::parse;
pub(crate) use words::BUILTIN;
pub use words::words_and_operators;

use castanet_diagnostic::{Diagnostic, FileId, Sources};

/// The maximum nesting depth of modules and namespaces, and of expressions.
pub const MAX_NESTING: u16 = 100;

/// The lossless tree of a text, and its syntax errors. Concatenating the tree's tokens gives the text back.
pub fn tree(sources: &Sources, file: FileId) -> (SyntaxNode, Vec<Diagnostic>) {
    let text = sources.text(file);
    let parsed = parse(file, text);
    (SyntaxNode::new_root(parsed.green(text)), parsed.diagnostics)
}

/// Whether a word is reserved, and so cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    words::RESERVED.contains(&word) || BUILTIN.contains(&word)
}

/// Whether two tokens stay apart without a blank between them.
pub(crate) fn stay_apart(first: &str, second: &str) -> bool {
    lexer::token(&format!("{first}{second}"), 0).1 == first.len()
}

#[cfg(test)]
mod tests;
