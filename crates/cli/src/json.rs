// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnostics as JSON, one object per line, in the format of `rustc --error-format=json`, which editors can read.

use castanet_lang::diagnostic::shown;
use castanet_lang::render::render_pretty;
use castanet_lang::{Diagnostic, Sources, Span};
use serde_json::{Value, json};

/// Returns one line for each diagnostic. Positions are those in the file that was read: line directives have
/// no effect.
pub fn lines(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let lines: String = shown(diagnostics).iter().map(|d| format!("{}\n", object(sources, d))).collect();
    castanet_lang::bytes::replaced(&lines).into_owned()
}

/// Returns one diagnostic.
pub fn object(sources: &Sources, d: &Diagnostic) -> Value {
    let mut spans: Vec<Value> = Vec::new();
    spans.extend(d.span.map(|at| span(sources, at, &d.at, true, None)));
    for label in &d.labels {
        // A diagnostic with positions must have a primary position. If it has only labels, the first label is marked
        // as primary.
        spans.push(span(sources, label.span, &label.text, spans.is_empty(), None));
    }
    let level = match d.is_error() {
        true => "error",
        false if d.beside_errors => "note",
        false => "warning",
    };
    let rendered = render_pretty(sources, std::slice::from_ref(d), false);
    // The summary that counts the errors is left out.
    let rendered = rendered.rsplit_once("\n\n").map_or(rendered.as_str(), |r| r.0);
    json!({
        "$message_type": "diagnostic",
        "message": d.message,
        "code": null,
        "level": level,
        "spans": spans,
        "children": children(sources, d),
        "rendered": format!("{rendered}\n"),
    })
}

/// Returns the child messages of a diagnostic: its context, its notes, and its help lines. The first help line has the
/// replacement.
fn children(sources: &Sources, d: &Diagnostic) -> Vec<Value> {
    let at = |place: Option<Span>| place.map(|s| span(sources, s, "", true, None)).into_iter().collect();
    let context = d.context.as_ref().map(|(text, place)| child("note", text, at(*place)));
    let notes = d.notes.iter().map(|(text, place)| child("note", text, at(*place)));
    let mut replacement = d.replacement.as_ref();
    let helps = d.helps.iter().map(|text| {
        let spans = replacement.take().map(|(place, new)| span(sources, *place, "", true, Some(new)));
        child("help", text, spans.into_iter().collect())
    });
    context.into_iter().chain(notes).chain(helps).collect()
}

fn child(level: &str, message: &str, spans: Vec<Value>) -> Value {
    json!({ "message": message, "code": null, "level": level, "spans": spans, "children": [], "rendered": null })
}

fn span(sources: &Sources, at: Span, label: &str, primary: bool, replacement: Option<&str>) -> Value {
    let (line_start, column_start) = sources.position(at.file, at.start);
    let (line_end, column_end) = sources.position(at.file, at.end);
    let text: Vec<Value> = (line_start..=line_end)
        .map(|n| {
            let line = sources.line(at.file, n);
            let start = if n == line_start { column_start } else { 1 };
            let end = if n == line_end { column_end } else { line.chars().count() + 1 };
            json!({ "text": line, "highlight_start": start, "highlight_end": end })
        })
        .collect();
    json!({
        "file_name": sources.name(at.file),
        "byte_start": at.start,
        "byte_end": at.end,
        "line_start": line_start,
        "line_end": line_end,
        "column_start": column_start,
        "column_end": column_end,
        "is_primary": primary,
        "text": text,
        "label": if label.is_empty() { None } else { Some(label) },
        "suggested_replacement": replacement,
        "suggestion_applicability": replacement.map(|_| "MaybeIncorrect"),
        "expansion": null,
    })
}
