// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors and warnings about patterns, as data.

use std::fmt;
use std::ops::Range;

/// A pattern that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern}: {message}")]
pub struct PatternError {
    /// The number of the pattern or rule, counting from 0.
    pub pattern: usize,
    /// The faulty bytes of the pattern's text; empty at the end of the text.
    pub range: Range<usize>,
    /// A short description of the error.
    pub message: String,
    /// Valid alternatives, if known.
    pub expected: Option<String>,
}

/// The first line that is wrong in the text of a program or of several programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}: {message}{}", line + 1, expected.as_ref().map(|e| format!(", expected {e}")).unwrap_or_default())]
pub struct AssemblyError {
    /// The number of the line, counting from 0. Behind the last line if a line is missing.
    pub line: usize,
    /// The faulty bytes of the line; empty if the line is wrong in its context.
    pub range: Range<usize>,
    /// A short description of the error.
    pub message: String,
    /// Valid alternatives, if known.
    pub expected: Option<String>,
}

/// The subject of a [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// No packet leaves on this output.
    OutputMatchesNothing,
    /// No packet reaches this rule, or none of the packets that reach it match it.
    RuleMatchesNothing,
    /// A relation that holds for every value, or for none.
    RedundantRelation,
    /// A rule names an output that does not exist; its packets are dropped.
    NoSuchOutput,
}

/// A pattern that is valid but probably not as intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The subject of the warning.
    pub kind: WarningKind,
    /// The number of the pattern or rule, counting from 0.
    pub pattern: usize,
    /// The bytes of the pattern's text that the warning concerns.
    pub range: Range<usize>,
    /// The text to print.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error that is not yet associated with a pattern number.
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

    pub(crate) fn in_line(self, line: usize) -> AssemblyError {
        AssemblyError { line, range: self.range, message: self.message, expected: self.expected }
    }

    pub(crate) fn in_pattern(self, pattern: usize) -> PatternError {
        PatternError { pattern, range: self.range, message: self.message, expected: self.expected }
    }
}
