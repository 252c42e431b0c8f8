// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects diagnostics: removes duplicates, limits their number, sorts them by source position.

use crate::diagnostic::{Diagnostic, MAX_ERRORS, Severity};
use crate::source::Span;
use std::collections::HashSet;

#[derive(Default)]
pub(super) struct Report {
    all: Vec<Diagnostic>,
    seen: HashSet<(String, Option<Span>)>,
    dropped: usize,
    /// The number of name comparisons made for suggestions.
    compared: usize,
}

/// Limit on name comparisons, after which errors have no "did you mean". In a long configuration with many
/// wrong names the comparisons would dominate the run time.
const MAX_COMPARISONS: usize = 1 << 20;

impl Report {
    /// Whether the limit on diagnostics allows another one. Callers need to make its text only in this case.
    pub fn has_room(&self) -> bool {
        self.all.len() < MAX_ERRORS
    }
    /// Counts the comparisons of a name with `others` names of the configuration. Returns whether the total is within
    /// the limit. If so, the caller may also compare the name with the known classes. Those comparisons are not
    /// counted.
    pub fn may_compare(&mut self, others: usize) -> bool {
        self.compared = self.compared.saturating_add(others);
        self.compared <= MAX_COMPARISONS
    }
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.has_room() {
            self.dropped += 1;
        } else if self.seen.insert((diagnostic.message.clone(), diagnostic.span)) {
            self.all.push(diagnostic);
        }
    }
    pub fn error(&mut self, message: impl Into<String>, span: impl Into<Option<Span>>, at: &str) {
        self.push(Diagnostic::error(message, span).at(at));
    }
    pub fn finish(mut self) -> Vec<Diagnostic> {
        // The sort is stable: diagnostics without a position stay last, in the order they were added.
        self.all.sort_by_key(|d| d.span.map_or((1, Span::default()), |s| (0, s)));
        if self.dropped > 0 {
            self.all.push(Diagnostic::more(self.dropped, Severity::Error));
        }
        self.all
    }
}
