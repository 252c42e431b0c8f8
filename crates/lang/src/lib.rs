// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration language: lexer, syntax tree, diagnostics, elaboration, archives.
