// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves out errors that other errors cause, so that each mistake gives one error.

use castanet_lang::{Diagnostic, DiagnosticKind, Span};
use std::collections::HashSet;

/// Adds errors of arguments to `all`, except errors in elements that `all` already mentions. `elements` holds
/// the positions of all elements.
pub fn independent(all: &mut Vec<Diagnostic>, arguments: Vec<Diagnostic>, elements: &[Span]) {
    let spans = all.iter().flat_map(|d| d.span.into_iter().chain(d.labels.iter().map(|l| l.span)));
    let mentioned: HashSet<Span> = spans.collect();
    let reported: HashSet<&Span> = elements.iter().filter(|e| mentioned.contains(*e)).collect();
    let about = |d: &Diagnostic| d.context.as_ref().and_then(|c| c.1);
    let mut seen = HashSet::new();
    let new =
        arguments.into_iter().filter(|d| d.is_error() && about(d).is_none_or(|e| !reported.contains(&e)));
    // An element of a compound is configured once for each use of the compound, so its error may occur
    // several times. Only the first is added.
    let new: Vec<_> = new.filter(|d| seen.insert((d.message.clone(), d.span))).collect();
    all.extend(new);
}

/// Merges the warning about an undefined variable with the error about the argument that uses the variable.
/// The error takes over the position, text and help of the warning, and the warning is removed.
pub fn variables(all: &mut Vec<Diagnostic>) {
    let is_cause = |d: &Diagnostic| d.kind == DiagnosticKind::UndefinedVariable;
    let causes: Vec<Diagnostic> = all.iter().filter(|d| is_cause(d)).cloned().collect();
    let mut merged: HashSet<Span> = HashSet::new();
    for error in all.iter_mut().filter(|d| d.is_error() && d.context.is_some()) {
        let Some(at) = error.span else { continue };
        let inside = |s: Span| s.file == at.file && at.start <= s.start && s.end <= at.end;
        let Some((span, cause)) = causes.iter().find_map(|c| c.span.filter(|s| inside(*s)).map(|s| (s, c)))
        else {
            continue;
        };
        error.span = Some(span);
        error.at = cause.message.clone();
        (error.helps, error.replacement) = (cause.helps.clone(), cause.replacement.clone());
        merged.insert(span);
    }
    all.retain(|d| !is_cause(d) || d.span.is_none_or(|s| !merged.contains(&s)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_lang::FileId;

    #[test]
    fn an_undefined_variable_is_one_error() {
        let span = |range| Span::new(FileId(0), range);
        let warning = |range| {
            let d = Diagnostic::warning("variable '$X' is not defined", span(range));
            d.kind(DiagnosticKind::UndefinedVariable).help("define it")
        };
        let error = |range| {
            Diagnostic::error("LIMIT: invalid number", span(range)).context("While configuring", None)
        };
        let mut all = vec![warning(10..12), warning(30..32), error(8..14), error(40..42)];
        variables(&mut all);
        let left: Vec<_> = all.iter().map(|d| (d.is_error(), d.span.unwrap_or_default().start)).collect();
        assert_eq!(left, [(false, 30), (true, 10), (true, 40)]);
        assert_eq!(
            (all[1].at.as_str(), &all[1].helps[..]),
            ("variable '$X' is not defined", &["define it".to_string()][..])
        );
    }

    #[test]
    fn consequences_are_left_out() {
        let (a, b) = (Span::new(FileId(0), 0..4), Span::new(FileId(0), 10..14));
        let mut all = vec![Diagnostic::error("'a' input 0 unused", a)];
        let argument =
            |element: Span, message: &str| Diagnostic::error(message, element).context("While", element);
        independent(&mut all, vec![argument(a, "x"), argument(b, "y"), argument(b, "y")], &[a, b]);
        assert_eq!(all.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(), ["'a' input 0 unused", "y"]);
    }
}
