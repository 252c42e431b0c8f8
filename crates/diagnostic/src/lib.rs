// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnostics of every language of the project: [`source`] (files and positions), [`diagnostic`] (errors, positions,
//! fixes), [`render`] (diagnostics to text).
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod render;
pub mod source;

pub use diagnostic::{Diagnostic, DiagnosticKind, Label, Severity};
pub use source::{FileId, Sources, Span};
