// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects diagnostics: drops repetitions, bounds their number, puts them in the order of the text.

use crate::diagnostic::Diagnostic;
use crate::source::Span;
use std::collections::HashSet;

/// After this many, further errors are only counted.
const MAX_ERRORS: usize = 500;

#[derive(Default)]
pub(super) struct Report {
    all: Vec<Diagnostic>,
    seen: HashSet<(String, Option<Span>)>,
    dropped: usize,
}

impl Report {
    /// Whether a further diagnostic would be kept; what is costly to word need not be made otherwise.
    pub fn has_room(&self) -> bool {
        self.all.len() < MAX_ERRORS
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
            self.all.push(Diagnostic::error(format!("{} more errors not shown", self.dropped), None));
        }
        self.all
    }
}
