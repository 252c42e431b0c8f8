// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifier languages and their decision trees.
//!
//! This crate parses two languages: the byte patterns of `Classifier` ([`Program::from_classifier`]), and the
//! header expressions of `IPClassifier` and `IPFilter` ([`Program::from_ip_classifier`],
//! [`Program::from_ip_filter`]). Both are compiled to boolean expressions over tests of aligned 4-byte words,
//! then to one decision tree with shared branches for all patterns, then to a [`Program`].
//!
//! - `pattern`, `ip`: the parsers. Errors are data with a byte range into the pattern.
//! - `expr`: tests and boolean expressions.
//! - `dag`, `facts`, `optimise`: decision trees, and their optimisation by facts known on each path.
//! - `merge`: long lists of rules, divided so that a packet is compared with few of them.
//! - [`bpf`]: capture filters, the language of tcpdump, compiled for the kernel.
//! - `program`, `run`, `chain`: the compiled program, its text forms, how several are joined to one, and the interpreter.
//! - [`definitions`]: the classes of an archive that stand for programs.
//! - [`names`]: the public name tables of ports, protocols and ICMP messages.
#![forbid(unsafe_code)]

pub mod bpf;
mod chain;
mod dag;
pub mod definitions;
mod error;
mod expr;
mod facts;
mod ip;
mod merge;
pub mod names;
mod optimise;
mod pattern;
mod program;
mod run;

pub use error::{AssemblyError, PatternError, Warning, WarningKind};
pub use names::{Names, NoNames};
pub use program::{Exit, Header, OffsetBase, Output, Part, Program, Shape, Step, Target};
pub use run::FastLengths;
