// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong, or doubtful, in a pattern, as data.

use std::fmt;
use std::ops::Range;

/// A pattern that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern}: {message}")]
pub struct PatternError {
    /// Which pattern or rule, counting from 0.
    pub pattern: usize,
    /// The bytes of the pattern's text that are to blame; empty at the end of the text.
    pub range: Range<usize>,
    /// What is wrong, in a few words.
    pub message: String,
    /// What could stand there instead, when that is known.
    pub expected: Option<String>,
}

/// What a [`Warning`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// No packet leaves on this output.
    OutputMatchesNothing,
    /// No packet reaches this rule, or none that reaches it matches.
    RuleMatchesNothing,
    /// A relation that holds for every value, or for none.
    RedundantRelation,
    /// A rule names an output that does not exist; its packets are dropped.
    NoSuchOutput,
}

/// A pattern that can be understood but hardly says what its author meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What kind of doubt.
    pub kind: WarningKind,
    /// Which pattern or rule, counting from 0.
    pub pattern: usize,
    /// The bytes of the pattern's text that the warning is about.
    pub range: Range<usize>,
    /// The text to print.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A complaint while the number of the pattern does not matter yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
}

impl Fault {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { range, message: message.into(), expected: None }
    }

    pub(crate) fn expected(mut self, what: impl Into<String>) -> Fault {
        self.expected = Some(what.into());
        self
    }

    pub(crate) fn in_pattern(self, pattern: usize) -> PatternError {
        PatternError { pattern, range: self.range, message: self.message, expected: self.expected }
    }
}
