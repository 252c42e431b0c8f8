// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats the text of a configuration: uniform blanks, indentation and semicolons.
//!
//! Line breaks stay where the author put them, as with gofmt. Configuration strings and the contents of comments are
//! not changed, so a formatted configuration elaborates to the same flat configuration. Formatting a formatted text
//! changes nothing.
//!
//! - `layout` walks over the syntax tree and decides what stands between two tokens
//! - `printer` writes tokens, and the comments between them

mod layout;
mod printer;

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Sources};
use crate::syntax::tree;

/// The number of columns of one level of indentation.
const INDENT: usize = 4;

/// Returns the formatted text of a file.
///
/// # Errors
/// The syntax errors of the text. A text with syntax errors cannot be formatted.
pub fn format(sources: &mut Sources, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let (root, diagnostics) = tree(sources, file);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    Ok(layout::lay_out(&root, sources.text(file)))
}

#[cfg(test)]
mod tests;
