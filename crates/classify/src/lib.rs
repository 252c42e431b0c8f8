// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifier languages and their decision trees.
//!
//! Two languages are read here: the byte patterns of `Classifier` ([`Program::from_classifier`]) and the header
//! expressions of `IPClassifier` and `IPFilter` ([`Program::from_ip_classifier`], [`Program::from_ip_filter`]).
//! Both become a boolean expression over tests of aligned 4-byte words, then one decision tree with shared
//! branches for all patterns, then a [`Program`].
//!
//! - `pattern`, `ip`: the languages; errors are data with a byte range into the pattern.
//! - `expr`: tests and boolean expressions over them.
//! - `dag`, `facts`, `optimise`: expressions to trees, and what a branch knows about the packet.
//! - [`bpf`]: capture filters, the language of tcpdump, compiled for the kernel.
//! - `program`, `run`: the result, its text, and the interpreter.
//! - [`names`]: the public name tables of ports, protocols and ICMP messages.
#![forbid(unsafe_code)]

pub mod bpf;
mod dag;
mod error;
mod expr;
mod facts;
mod ip;
pub mod names;
mod optimise;
mod pattern;
mod program;
mod run;

pub use error::{PatternError, Warning, WarningKind};
pub use names::{Names, NoNames};
pub use program::{Kind, Output, Program, Shape, Step, Target};
