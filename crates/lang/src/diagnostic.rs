// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnostics: what is wrong, where, and how to mend it.

use crate::source::Span;
use std::borrow::Cow;

/// The most errors that are reported one by one; further ones are counted.
pub(crate) const MAX_ERRORS: usize = 500;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration runs, but probably not as meant.
    Warning,
    /// The configuration cannot run.
    Error,
}

/// A second place that belongs to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What stands there: `declared here`.
    pub text: String,
}

/// One message about a configuration. `message` is the one line that scripts may read; labels and helps are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// One line, without place: `undeclared element 'Foo'`.
    pub message: String,
    /// What was being done, with its place: `While configuring 'x :: Strip':`.
    pub context: Option<(String, Option<Span>)>,
    /// The place; none for what concerns no text.
    pub span: Option<Span>,
    /// What stands at `span`, shown beside the caret: `expected a class name`.
    pub at: String,
    /// Further lines that the classic format prints too, each with its own place.
    pub notes: Vec<(String, Option<Span>)>,
    /// Other places, shown with their source to people only.
    pub labels: Vec<Label>,
    /// How to mend it, shown to people only.
    pub helps: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(message: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            context: None,
            span: span.into(),
            at: String::new(),
            notes: Vec::new(),
            labels: Vec::new(),
            helps: Vec::new(),
        }
    }
    /// A warning at a place.
    pub fn warning(message: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message, span) }
    }
    /// Says what stands at the place.
    pub fn at(mut self, text: impl Into<String>) -> Diagnostic {
        self.at = text.into();
        self
    }
    /// Says what was being done.
    pub fn context(mut self, text: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        self.context = Some((text.into(), span.into()));
        self
    }
    /// Adds a line that the classic format prints too.
    pub fn note(mut self, text: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        self.notes.push((text.into(), span.into()));
        self
    }
    /// Adds another place.
    pub fn label(mut self, text: impl Into<String>, span: Span) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }
    /// Adds how to mend it.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.helps.push(text.into());
        self
    }
    /// Whether it keeps the configuration from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
    /// Counts what is not reported one by one.
    pub(crate) fn more(count: usize, severity: Severity) -> Diagnostic {
        let word = match (severity, count) {
            (Severity::Error, 1) => "error",
            (Severity::Error, _) => "errors",
            (Severity::Warning, 1) => "warning",
            (Severity::Warning, _) => "warnings",
        };
        Diagnostic { severity, ..Diagnostic::error(format!("{count} more {word} not shown"), None) }
    }
}

/// The diagnostics that are shown, in their order: all of them, or the first 500 and how many more there are. Showing one
/// takes far more time than finding it. Warnings leave room for errors.
pub fn shown(all: &[Diagnostic]) -> Cow<'_, [Diagnostic]> {
    // The elaborator may have added its own count to as many errors.
    if all.len() <= MAX_ERRORS + 1 {
        return Cow::Borrowed(all);
    }
    let errors = all.iter().filter(|d| d.is_error()).count();
    let mut room = (errors.min(MAX_ERRORS), MAX_ERRORS.saturating_sub(errors));
    let more = (errors - room.0, (all.len() - errors).saturating_sub(room.1));
    let mut out = Vec::with_capacity(MAX_ERRORS + 2);
    for d in all {
        let left = if d.is_error() { &mut room.0 } else { &mut room.1 };
        if *left > 0 {
            *left -= 1;
            out.push(d.clone());
        }
    }
    let counts = [(more.0, Severity::Error), (more.1, Severity::Warning)];
    out.extend(counts.into_iter().filter(|c| c.0 > 0).map(|(n, severity)| Diagnostic::more(n, severity)));
    Cow::Owned(out)
}
