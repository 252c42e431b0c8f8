// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration language: source text to a flat configuration and diagnostics. It never panics and accepts
//! any input.
//!
//! Modules, bottom up: [`bytes`] (texts that hold any bytes), [`args`] (splitting and quoting configuration strings),
//! [`look_alike`] (characters that look like others), [`archive`] (`ar` files that hold a configuration), [`syntax`]
//! (lexer, parser, lossless tree), [`format`](mod@format) (canonical layout of a text), [`class_name`] (names of classes,
//! which elements share), [`flat`] (the flat configuration), [`elaborate`] (from the syntax to the flat configuration),
//! [`read`] (reading files with a limit), [`library`] (finding required files), [`print`](mod@print) (flat configuration
//! to text).
//! Positions and diagnostics come from the crate `castanet_diagnostic`: [`source`], [`diagnostic`], [`render`].
#![forbid(unsafe_code)]

pub mod archive;
pub mod args;
pub mod bytes;
pub mod class_name;
pub mod elaborate;
pub mod flat;
pub mod format;
pub mod library;
pub mod look_alike;
pub mod print;
pub mod read;
pub mod syntax;
mod text;

pub use castanet_diagnostic::{Diagnostic, DiagnosticKind, FileId, Label, Severity, Sources, Span};
pub use castanet_diagnostic::{diagnostic, render, source};
pub use class_name::ClassName;
pub use elaborate::{ClassNames, Library, LibraryError, NoLibrary, Options, Unknown, load, load_bytes};
pub use elaborate::{MissingFrom, missing_class, missing_classes, nearest, unknown_class};
pub use flat::{Connection, Element, Flat, Origin, PortRef};
