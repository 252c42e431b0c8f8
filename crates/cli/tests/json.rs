// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet check --json`: the form of each object, and its positions compared with the file.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Bench, objects};
use serde_json::Value;

fn number(v: &Value) -> usize {
    usize::try_from(v.as_u64().unwrap()).unwrap()
}

/// Compares the positions of a span with the file's text. Returns the text that the span covers.
fn covered(file: &str, text: &str, span: &Value) -> String {
    assert_eq!(span["file_name"], file);
    let bytes = number(&span["byte_start"])..number(&span["byte_end"]);
    let place = |at: usize| {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        (line, before.rsplit('\n').next().unwrap().chars().count() + 1)
    };
    let (start, end) = (place(bytes.start), place(bytes.end));
    assert_eq!((number(&span["line_start"]), number(&span["column_start"])), start, "{span}");
    assert_eq!((number(&span["line_end"]), number(&span["column_end"])), end, "{span}");
    let lines: Vec<&str> =
        span["text"].as_array().unwrap().iter().map(|l| l["text"].as_str().unwrap()).collect();
    let want: Vec<&str> = text.split('\n').skip(start.0 - 1).take(end.0 - start.0 + 1).collect();
    assert_eq!(lines, want, "{span}");
    text[bytes].to_string()
}

/// Checks the form of an object and of its children.
fn check(file: &str, text: &str, d: &Value) {
    assert_eq!(d["$message_type"], "diagnostic");
    assert!(matches!(d["level"].as_str().unwrap(), "error" | "warning"), "{d}");
    assert!(d["code"].is_null() && !d["message"].as_str().unwrap().is_empty());
    let spans = d["spans"].as_array().unwrap();
    let primary = spans.iter().filter(|s| s["is_primary"] == true).count();
    assert_eq!(primary, usize::from(!spans.is_empty()), "{d}");
    let rendered = d["rendered"].as_str().unwrap();
    let title = format!("{}: ", d["level"].as_str().unwrap());
    assert!(
        rendered.starts_with(&title) && rendered.ends_with('\n') && !rendered.ends_with("\n\n"),
        "{rendered}"
    );
    for child in d["children"].as_array().unwrap() {
        assert!(matches!(child["level"].as_str().unwrap(), "note" | "help"), "{child}");
        assert!(child["rendered"].is_null() && child["children"] == Value::Array(Vec::new()));
        child["spans"].as_array().unwrap().iter().for_each(|s| drop(covered(file, text, s)));
    }
    spans.iter().for_each(|s| drop(covered(file, text, s)));
}

#[test]
fn one_object_a_line() {
    let b = Bench::new();
    let text = "// Grüße\nq :: Queue(\n  -1);\nIdle -> Coutner -> q -> Discard;\n/* ä */ Idle -> Strip(5, LENGTH $N) -> Discard;\n";
    b.file("bad.click", text);
    let ran = b.run("castanet", &["check", "--json", "bad.click"], "");
    assert_eq!((ran.out.as_str(), ran.code), ("", 1));
    let all = objects(&ran.err);
    all.iter().for_each(|d| check("bad.click", text, d));
    let first = all.iter().find(|d| d["message"] == "undeclared element 'Coutner'").unwrap();
    assert!(
        all.iter().any(|d| d["message"] == "CAPACITY: must be positive"),
        "independent errors are all there"
    );
    assert_eq!(covered("bad.click", text, &first["spans"][0]), "Coutner");
    assert_eq!(first["spans"][0]["label"], "neither an element nor a class");
    let help = &first["children"][0];
    assert_eq!((&help["level"], &help["message"]), (&"help".into(), &"did you mean 'Counter'?".into()));
    assert_eq!(covered("bad.click", text, &help["spans"][0]), "Coutner");
    assert_eq!(help["spans"][0]["suggested_replacement"], "Counter");
}

#[test]
fn warnings_leave_the_exit_code() {
    let b = Bench::new();
    let text = "# 10 \"elsewhere.click\"\nIdle -> Paint(1) -> c :: CheckPaint(1) -> Discard;\nc [1] -> ICMPError(1.0.0.1, redirect) -> Discard;\n";
    b.file("a.click", text);
    let ran = b.run("castanet", &["check", "--json", "a.click"], "");
    let all = objects(&ran.err);
    assert_eq!((all.len(), ran.code, ran.out.as_str()), (1, 0, ""), "{}", ran.err);
    check("a.click", text, &all[0]);
    assert_eq!((&all[0]["level"], &all[0]["spans"][0]["line_start"]), (&"warning".into(), &2.into()));
}

/// Checks the positions of all configurations in tests/mistakes.
#[test]
fn the_positions_of_all_mistakes() {
    let b = Bench::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mistakes");
    let mut objects_seen = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.extension().is_none_or(|e| e != "click") {
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap();
        b.file("a.click", &text);
        let ran = b.run("castanet", &["check", "--json", "a.click"], "");
        for d in objects(&ran.err) {
            check("a.click", &text, &d);
            objects_seen += 1;
        }
    }
    assert!(objects_seen >= 60, "{objects_seen}");
}
