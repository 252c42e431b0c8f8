// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnostics: errors and warnings with their source positions and suggested fixes.

use crate::source::Span;
use std::borrow::Cow;

/// At most this many errors are reported one by one. Further ones are only counted.
pub const MAX_ERRORS: usize = 500;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration runs, but probably not as intended.
    Warning,
    /// The configuration cannot run.
    Error,
}

/// The subject of a diagnostic. Only subjects that other code distinguishes have a variant of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// A use of an undefined variable.
    UndefinedVariable,
    /// A nonexistent or unconnected port of the element with this index in the flat configuration.
    Port(usize),
    /// Anything else.
    #[default]
    Other,
}

/// A secondary source position of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The source position.
    pub span: Span,
    /// The text shown at this position, such as `declared here`.
    pub text: String,
}

/// One message about a configuration. Scripts parse `message`; labels and helps are shown to people only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// Its subject.
    pub kind: DiagnosticKind,
    /// The message: one line, without its position, such as `undeclared element 'Foo'`.
    pub message: String,
    /// The line that the classic format (that of Click) shows. `None` if this line is the severity and `message`.
    pub classic: Option<String>,
    /// The operation that failed, such as `While configuring 'x :: Strip':`, and its position. `None` if none is shown.
    pub context: Option<(String, Option<Span>)>,
    /// The primary position. `None` if the diagnostic concerns no source text.
    pub span: Option<Span>,
    /// The text shown beside the caret at `span`, such as `expected a class name`.
    pub at: String,
    /// Additional lines, each with its own position. The classic format prints them too.
    pub notes: Vec<(String, Option<Span>)>,
    /// Secondary positions. Only the pretty format shows them, with their source.
    pub labels: Vec<Label>,
    /// Suggested fixes. Only the pretty format shows them.
    pub helps: Vec<String>,
    /// The source text that a suggestion replaces, and the replacement. Editors offer this change.
    pub replacement: Option<(Span, String)>,
    /// Whether the flat configuration has all elements and connections in spite of this error. If so, further
    /// checks find only errors that this one did not cause.
    pub flat: bool,
    /// Whether another error explains this one. `castanet check` leaves such a diagnostic out.
    pub consequence: bool,
    /// Whether this is a message that is shown only if there are errors.
    pub beside_errors: bool,
}

impl Diagnostic {
    /// An error at a position.
    pub fn error(message: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            kind: DiagnosticKind::Other,
            message: message.into(),
            classic: None,
            context: None,
            span: span.into(),
            at: String::new(),
            notes: Vec::new(),
            labels: Vec::new(),
            helps: Vec::new(),
            replacement: None,
            flat: false,
            consequence: false,
            beside_errors: false,
        }
    }
    /// A warning at a position.
    pub fn warning(message: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message, span) }
    }
    /// Makes the diagnostic a warning.
    pub fn into_warning(self) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self }
    }
    /// Sets the subject of the diagnostic.
    pub fn kind(mut self, kind: DiagnosticKind) -> Diagnostic {
        self.kind = kind;
        self
    }
    /// Sets the text beside the caret.
    pub fn at(mut self, text: impl Into<String>) -> Diagnostic {
        self.at = text.into();
        self
    }
    /// Sets the operation that failed.
    pub fn context(mut self, text: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        self.context = Some((text.into(), span.into()));
        self
    }
    /// Adds a note. The classic format, that of Click, prints notes too.
    pub fn note(mut self, text: impl Into<String>, span: impl Into<Option<Span>>) -> Diagnostic {
        self.notes.push((text.into(), span.into()));
        self
    }
    /// Adds a secondary position.
    pub fn label(mut self, text: impl Into<String>, span: Span) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }
    /// Adds a suggested fix.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.helps.push(text.into());
        self
    }
    /// Marks this diagnostic as explained by another error.
    pub fn consequence(mut self) -> Diagnostic {
        self.consequence = true;
        self
    }
    /// States that the flat configuration has all elements and connections in spite of this error.
    pub fn keeps_flat(mut self) -> Diagnostic {
        self.flat = true;
        self
    }
    /// Suggests another name for the text at the primary position.
    pub fn did_you_mean(mut self, name: &str) -> Diagnostic {
        self.replacement = self.span.map(|span| (span, name.to_string()));
        self.help(format!("did you mean '{name}'?"))
    }
    /// Whether this diagnostic prevents the configuration from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
    /// The summary line for `count` diagnostics that are not shown.
    pub fn more(count: usize, severity: Severity) -> Diagnostic {
        let word = match (severity, count) {
            (Severity::Error, 1) => "error",
            (Severity::Error, _) => "errors",
            (Severity::Warning, 1) => "warning",
            (Severity::Warning, _) => "warnings",
        };
        Diagnostic { severity, ..Diagnostic::error(format!("{count} more {word} not shown"), None) }
    }
}

/// The diagnostics to show, in order: all of them, or the first 500 and a count of the rest. Rendering a
/// diagnostic takes far longer than finding it, which is why there is a limit. Warnings are left out before
/// errors.
pub fn shown(all: &[Diagnostic]) -> Cow<'_, [Diagnostic]> {
    // Allow one diagnostic more: the elaborator may append a summary line to its [`MAX_ERRORS`] errors.
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
