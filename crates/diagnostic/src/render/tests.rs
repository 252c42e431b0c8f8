// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of rendering. The crate's snapshots show each diagnostic.

use super::*;
use crate::source::FileId;

fn span(file: FileId, range: std::ops::Range<usize>) -> Span {
    Span::new(file, range)
}

#[test]
fn classic_lines() {
    let mut sources = Sources::new();
    let f = sources.add("e.click", "a\nb\nc\n");
    let context = |d: Diagnostic| d.context("While configuring 'b :: B':", span(f, 2..3));
    let all = [
        Diagnostic::error("redeclaration of element 'a'", span(f, 2..3))
            .note("element 'a' previously declared here", span(f, 0..1)),
        context(Diagnostic::error("first", span(f, 2..3))),
        context(Diagnostic::warning("second\nthird", span(f, 2..3))),
        Diagnostic::error("nowhere", None),
        Diagnostic::warning("there", span(f, 4..5)).help("not shown"),
        Diagnostic::error("inside", None).context("While initializing:", None),
    ];
    assert_eq!(
        render_classic(&sources, &all),
        "e.click:2: redeclaration of element 'a'\ne.click:1: element 'a' previously declared here\n\
         e.click:2: While configuring 'b :: B':\n  first\n  warning: second\n  third\nnowhere\n\
         e.click:3: warning: there\nWhile initializing:\n  inside\n"
    );
}

#[test]
fn long_lines_are_cut() {
    let mut sources = Sources::new();
    let text = format!("{} needle {}\nnext", "x".repeat(100_000), "é".repeat(100_000));
    let at = text.find("needle").unwrap_or(0);
    let f = sources.add("long", text);
    let d = [Diagnostic::error("found", span(f, at..at + 6)).at("here").label("start", span(f, 0..1))];
    let out = render_pretty(&sources, &d, false);
    assert!(out.contains("long:1:100002") && out.contains("needle") && out.contains("^^^^^^ here"), "{out}");
    assert!(out.lines().all(|l| l.chars().count() < 260), "{out}");
    // A span over the whole text is cut too.
    let out = render_pretty(&sources, &[Diagnostic::error("all", span(f, 0..300_000))], false);
    assert!(out.len() < 2_000, "{out}");
}

#[test]
fn the_summary_counts() {
    let sources = Sources::new();
    let (e, w) = (Diagnostic::error("e", None), Diagnostic::warning("w", None));
    for (all, want) in [
        (vec![], ""),
        (vec![e.clone()], "1 error"),
        (vec![w.clone(), w.clone()], "2 warnings"),
        (vec![e.clone(), e, w], "2 errors, 1 warning"),
    ] {
        assert_eq!(render_pretty(&sources, &all, false).lines().last().unwrap_or(""), want);
    }
}

#[test]
fn odd_spans_do_no_harm() {
    let mut sources = Sources::new();
    let f = sources.add("f", "é\r\nx\ty\u{7}\n\n");
    let end = sources.text(f).len();
    for a in 0..end + 3 {
        for b in a..end + 3 {
            let d = Diagnostic::error("m\u{1b}[0m", span(f, a..b))
                .at("x")
                .label("l", span(f, b..b))
                .note("n", span(f, a..a));
            let out = render_pretty(&sources, &[d], true);
            assert!(!out.contains("m\u{1b}[0m m"));
        }
    }
    render_pretty(&sources, &[Diagnostic::error("m", span(FileId(9), 3..4))], false);
}

#[test]
fn shown_diagnostics_are_limited() {
    let sources = Sources::new();
    let many = |errors: usize, warnings: usize| -> Vec<Diagnostic> {
        let warnings = (0..warnings).map(|i| Diagnostic::warning(format!("w{i}"), None));
        warnings.chain((0..errors).map(|i| Diagnostic::error(format!("e{i}"), None))).collect()
    };
    let lines = |all: &[Diagnostic]| {
        let text = render_classic(&sources, all);
        let last = text.lines().rev().take(2).map(str::to_string).collect::<Vec<_>>();
        (text.lines().count(), last)
    };
    let last = |a: &str, b: &str| vec![a.to_string(), b.to_string()];
    assert_eq!(lines(&many(501, 0)), (501, last("e500", "e499")));
    assert_eq!(lines(&many(502, 0)), (501, last("2 more errors not shown", "e499")));
    assert_eq!(lines(&many(100_000, 0)), (501, last("99500 more errors not shown", "e499")));
    assert_eq!(lines(&many(1, 1000)), (501, last("warning: 501 more warnings not shown", "e0")));
    let both = last("warning: 1000 more warnings not shown", "1 more error not shown");
    assert_eq!(lines(&many(501, 1000)), (502, both));
    let pretty = render_pretty(&sources, &many(501, 1000), false);
    assert!(pretty.ends_with("\n501 errors, 1000 warnings\n"), "{}", &pretty[pretty.len() - 60..]);
}
