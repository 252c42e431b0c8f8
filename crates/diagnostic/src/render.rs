// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders diagnostics as text: a pretty format with source excerpts, and the classic format of one line each
//! that scripts parse.

use crate::diagnostic::{Diagnostic, Severity, shown};
use crate::source::{Sources, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use std::fmt::Write;

/// Lines longer than `LONG_LINE` are cut to `AROUND` bytes before and after the span.
const AROUND: usize = 60;
const LONG_LINE: usize = 200;

/// Renders diagnostics with source lines, carets, labels and helps. A summary line at the end also counts the
/// diagnostics that [`shown`] omits. The result is empty if there are no diagnostics.
pub fn render_pretty(sources: &Sources, diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(LONG_LINE);
    let mut out = String::new();
    for d in shown(diagnostics).iter() {
        out.push_str(&renderer.render(&report(sources, d)));
        out.push_str("\n\n");
    }
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let warnings = diagnostics.iter().filter(|d| !d.is_error() && !d.beside_errors).count();
    match (errors, warnings) {
        (0, 0) => {}
        (0, w) => out.push_str(&format!("{}\n", count(w, "warning"))),
        (e, 0) => out.push_str(&format!("{}\n", count(e, "error"))),
        (e, w) => out.push_str(&format!("{}, {}\n", count(e, "error"), count(w, "warning"))),
    }
    out
}

/// An excerpt of a source: whole lines, or part of one long line.
struct Window {
    span: Span,
    start: usize,
    end: usize,
    /// Whether the excerpt starts or ends inside a line.
    cut: bool,
}

/// A position with its label.
type Mark<'a> = (Span, &'a str, AnnotationKind);

fn report<'a>(sources: &'a Sources, d: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning if d.beside_errors => Level::NOTE,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(printable(&d.message));
    let mut group = Group::with_title(title);
    let mut marks: Vec<Mark<'_>> = Vec::new();
    marks.extend(d.span.map(|s| (s, d.at.as_str(), AnnotationKind::Primary)));
    marks.extend(d.labels.iter().map(|l| (l.span, l.text.as_str(), AnnotationKind::Context)));
    // The excerpts to show. Those that are near to each other in a file are merged. The excerpt with the primary
    // position comes first.
    let mut windows: Vec<(Window, Vec<Mark<'_>>)> = Vec::new();
    for mark in marks {
        let w = window(sources, mark.0);
        let touching = windows.iter_mut().find(|(o, _)| near(sources, o, &w));
        match touching {
            Some((o, all)) => {
                (o.start, o.end) = (o.start.min(w.start), o.end.max(w.end));
                all.push(mark);
            }
            None => windows.push((w, vec![mark])),
        }
    }
    for (window, marks) in &windows {
        for element in snippet(sources, window, marks) {
            group = group.element(element);
        }
    }
    if let Some((text, _)) = &d.context {
        group = group.element(Level::NOTE.message(printable(text.trim_end_matches(':'))));
    }
    let mut groups = Vec::new();
    let mut notes = Vec::new();
    for (text, span) in &d.notes {
        match span {
            // The note has its own position, which is not shown yet.
            Some(s) if d.span != Some(*s) && !text.starts_with("  ") && !text.ends_with(':') => {
                let mut note = Group::with_title(Level::NOTE.secondary_title(printable(text)));
                for element in snippet(sources, &window(sources, *s), &[(*s, "", AnnotationKind::Primary)]) {
                    note = note.element(element);
                }
                notes.push(note);
            }
            _ => group = group.element(Level::NOTE.message(printable(text))),
        }
    }
    for help in &d.helps {
        group = group.element(Level::HELP.message(printable(help)));
    }
    groups.push(group);
    groups.extend(notes);
    groups
}

/// Replaces control characters, which would disturb the terminal.
fn printable(text: &str) -> String {
    let shown: String =
        text.chars().take(2 * LONG_LINE).map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    if shown.len() < text.len() && text.chars().nth(2 * LONG_LINE).is_some() { shown + "…" } else { shown }
}

/// The lines of a span. Long lines and long spans are cut.
fn window(sources: &Sources, span: Span) -> Window {
    let text = sources.text(span.file);
    let bytes = text.as_bytes();
    let at = span.range().start.min(bytes.len());
    let is_end = |b: &u8| *b == b'\n' || *b == b'\r';
    let rest = bytes.get(at..).unwrap_or(&[]);
    // The search for the start of the line is bounded, because a line may be very long.
    let far = at.saturating_sub(LONG_LINE + 1);
    let before = bytes.get(far..at).unwrap_or(&[]);
    let start = before.iter().rposition(is_end).map_or(far, |n| far + n + 1);
    let mut end = rest
        .iter()
        .take(LONG_LINE * 4)
        .position(is_end)
        .map_or(bytes.len().min(at + LONG_LINE * 4), |n| at + n);
    // Extend the excerpt by at most four more lines of the span.
    for _ in 0..4 {
        let last = span.range().end.min(bytes.len());
        if last <= end + 1 || end >= bytes.len() {
            break;
        }
        let from = end + 1;
        let more = bytes.get(from..).unwrap_or(&[]).iter().take(LONG_LINE).position(is_end);
        match more {
            Some(n) => end = from + n,
            None => break,
        }
    }
    let cut = at - start > LONG_LINE || (end - at > LONG_LINE && !rest.iter().take(LONG_LINE).any(is_end));
    if !cut {
        return Window { span, start, end: floor(text, end), cut };
    }
    let start = floor(text, start.max(at.saturating_sub(AROUND)));
    let stop = at.saturating_add(AROUND.max((span.range().end - span.range().start).min(2 * AROUND)));
    Window { span, start, end: floor(text, end.min(stop)), cut }
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether two excerpts are close enough to be shown as one.
fn near(sources: &Sources, a: &Window, b: &Window) -> bool {
    if a.span.file != b.span.file || a.cut || b.cut {
        return false;
    }
    let between = if a.end < b.start { a.end..b.start } else { b.end..a.start };
    let gap = sources.text(a.span.file).get(between).unwrap_or("");
    // A line directive in the gap changes the line numbers, so the excerpts cannot be merged.
    gap.len() < LONG_LINE && gap.lines().count() <= 4 && !gap.lines().any(|l| l.starts_with('#'))
}

fn snippet<'a>(sources: &'a Sources, w: &Window, marks: &[Mark<'a>]) -> Vec<Element<'a>> {
    let source = sources.text(w.span.file).get(w.start..w.end).unwrap_or("");
    let place = sources.place(Span::new(w.span.file, w.start..w.start));
    let clip = |n: usize| floor(source, n.clamp(w.start, w.end) - w.start);
    let annotations = marks.iter().map(|&(span, label, kind)| {
        let a: Annotation<'a> = kind.span(clip(span.range().start)..clip(span.range().end));
        if label.is_empty() { a } else { a.label(printable(label)) }
    });
    let snippet = Snippet::source(source).line_start(place.line as usize).fold(true).annotations(annotations);
    if !w.cut {
        return vec![snippet.path(place.file).into()];
    }
    // In the excerpt of a cut line, columns are counted from the cut. So the header of the excerpt states the column in
    // the whole line.
    let place = sources.place(w.span);
    let origin = Origin::path(place.file).line(place.line as usize).char_column(place.column as usize);
    vec![origin.into(), snippet.into()]
}

/// Renders the classic format, which scripts parse: `FILE:LINE: TEXT`. Consecutive messages with the same context are
/// indented below one line with this context.
pub fn render_classic(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    let mut context: Option<&(String, Option<Span>)> = None;
    let place = |span: Option<Span>| {
        span.map_or(String::new(), |s| {
            let place = sources.place(s);
            format!("{}:{}: ", place.file, place.line)
        })
    };
    let all = shown(diagnostics);
    for d in all.iter() {
        if let Some((text, span)) = &d.context
            && context != d.context.as_ref()
        {
            let _ = writeln!(out, "{}{text}", place(*span));
        }
        context = d.context.as_ref();
        let warning = if d.is_error() { "" } else { "warning: " };
        // The context line already states the position, so it is not repeated.
        let told = matches!(context, Some((_, Some(_))));
        let line = |out: &mut String, text: &str, span: Option<Span>| {
            let start = if told { String::new() } else { place(span) };
            let indent = if context.is_some() { "  " } else { "" };
            // Control characters would disturb a terminal.
            let shown = text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "?");
            for part in shown.lines() {
                // `FILE:   TEXT` states its own position and is already indented.
                let own = context.is_some() && part.contains(":   ");
                let _ = if own { writeln!(out, "{part}") } else { writeln!(out, "{start}{indent}{part}") };
            }
        };
        match &d.classic {
            Some(text) => line(&mut out, text, d.span),
            None => line(&mut out, &format!("{warning}{}", d.message), d.span),
        }
        for (text, span) in &d.notes {
            line(&mut out, text, *span);
        }
    }
    out
}

#[cfg(test)]
mod tests;
