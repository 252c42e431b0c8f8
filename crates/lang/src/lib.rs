// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration language: text in, a flat configuration and diagnostics out. Never panics, never fails.
//!
//! Layers, bottom up: [`source`] (files and places), [`diagnostic`] (what went wrong, where, how to mend it),
//! [`args`] (splitting and quoting configuration strings), [`archive`] (the `ar` files a configuration may come in),
//! [`syntax`] (lexer, parser, lossless tree), [`flat`] (the flat configuration), [`elaborate`] (syntax to flat),
//! [`read`] (files with a limit), [`library`] (required files along a path), [`print`](mod@print) (flat back to text), [`render`] (diagnostics to text).
#![forbid(unsafe_code)]

pub mod archive;
pub mod args;
pub mod diagnostic;
pub mod elaborate;
pub mod flat;
pub mod library;
pub mod print;
pub mod read;
pub mod render;
pub mod source;
pub mod syntax;
mod text;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use elaborate::nearest;
pub use elaborate::{ClassNames, Library, NoLibrary, Options, Unknown, load, load_bytes};
pub use flat::{Connection, Element, Flat, Origin, PortRef};
pub use source::{FileId, Sources, Span};
