// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects diagnostics: drops repetitions, bounds their number, puts them in the order of the text.

use crate::diagnostic::{Diagnostic, MAX_ERRORS, Severity};
use crate::source::Span;
use std::collections::HashSet;

#[derive(Default)]
pub(super) struct Report {
    all: Vec<Diagnostic>,
    seen: HashSet<(String, Option<Span>)>,
    dropped: usize,
    /// Names that were compared with misspelt ones.
    compared: usize,
}

/// After this many comparisons of names, errors do not say what the nearest name is. The comparisons would take most of the
/// time where many names of a long configuration are wrong.
const MAX_COMPARISONS: usize = 1 << 20;

impl Report {
    /// Whether a further diagnostic would be kept; what is costly to word need not be made otherwise.
    pub fn has_room(&self) -> bool {
        self.all.len() < MAX_ERRORS
    }
    /// Whether a name may be compared with the known classes and with `others` more names.
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
        // Stable, so that what concerns no text stays last in its order.
        self.all.sort_by_key(|d| d.span.map_or((1, Span::default()), |s| (0, s)));
        if self.dropped > 0 {
            self.all.push(Diagnostic::more(self.dropped, Severity::Error));
        }
        self.all
    }
}
