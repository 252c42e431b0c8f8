// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the formatter: its layout, and that it changes neither the meaning of a text nor its comments.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::elaborate::{Globals, NoLibrary, Options, Unknown, load_with};
use crate::syntax::SyntaxKind;
use proptest::prelude::*;

fn formatted(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    format(&mut sources, file)
}

/// The tokens of a text, without blanks and semicolons: those that are not comments, and the comments.
fn tokens(text: &str) -> (Vec<String>, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    let (root, _) = tree(&mut sources, file);
    let all = root.descendants_with_tokens().filter_map(|t| t.into_token());
    let kept = all.filter(|t| !matches!(t.kind(), SyntaxKind::Whitespace | SyntaxKind::Semicolon));
    let (comments, tokens): (Vec<_>, Vec<_>) = kept.partition(|t| t.kind().is_trivia());
    let texts =
        |all: Vec<crate::syntax::SyntaxToken>| all.iter().map(|t| t.text().trim_end().to_string()).collect();
    (texts(tokens), texts(comments))
}

/// The flat configuration of a text, with everything but the positions in the text, and the messages.
fn meaning(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    let options = Options { classes: &["Idle"], defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let loaded = load_with(&mut sources, file, &options, Globals::Keep);
    let flat = &loaded.flat;
    let elements = flat.elements.iter().map(|e| {
        let origin: Vec<_> = e.origin.iter().map(|o| (&o.instance, &o.class, &o.parameters)).collect();
        (&e.name, &e.class, &e.config, origin)
    });
    let connections = flat.connections.iter().map(|c| (c.from, c.to));
    let messages = loaded.diagnostics.iter().map(|d| &d.message);
    format!(
        "{:#?}",
        (
            elements.collect::<Vec<_>>(),
            connections.collect::<Vec<_>>(),
            &flat.requirements,
            &loaded.defines,
            messages.collect::<Vec<_>>()
        )
    )
}

/// Formats a text and checks what must hold for every text.
fn checked(text: &str) -> String {
    let once = formatted(text).unwrap();
    assert_eq!(tokens(&once), tokens(text), "{text:?} {once:?}");
    assert_eq!(meaning(&once), meaning(text), "{text:?} {once:?}");
    assert_eq!(formatted(&once).unwrap(), once, "{text:?}");
    once
}

#[test]
fn layouts() {
    for (text, want) in [
        ("", ""),
        (" \n\n\t", ""),
        ("a", "a;\n"),
        ("\u{feff}a", "a;\n"),
        ("\n\n\na;b  ;\n\n\n\nc", "a; b;\n\nc;\n"),
        ("a;;;b", "a; b;\n"),
        ("a::B  (c,  d)", "a :: B(c,  d);\n"),
        ("a,b,c::D->e=>f", "a, b, c :: D -> e => f;\n"),
        ("a[0]->[0]b[1,2-3 , 4 -]=>[ ]c", "a [0] -> [0] b [1, 2-3, 4-] => [] c;\n"),
        // A line break before or behind an arrow or a comma.
        ("a->\nb\n->c\n\n -> d,\ne", "a\n    -> b\n    -> c\n    -> d,\n    e;\n"),
        // Other line breaks within a statement.
        ("a\n::\nB\n(\n)\n[\n0\n]\n", "a :: B(\n) [0];\n"),
        ("define\n( $a  1 )  require( x )", "define( $a  1 ); require( x );\n"),
        // Compounds and groups.
        ("elementclass  A{}elementclass B C", "elementclass A {} elementclass B C;\n"),
        ("elementclass A {a}; b", "elementclass A { a } b;\n"),
        ("{;};{->};(->);({|})", "{}; { -> }; (->); ({ | });\n"),
        ("{ }->{\n}", "{} -> {};\n"),
        ("a->{$x,K $y|b->c;}->d", "a -> { $x, K $y | b -> c; } -> d;\n"),
        ("a->{b||$x|c||...}", "a -> { b || $x | c || ... };\n"),
        ("a->( b,c;d )", "a -> (b, c; d);\n"),
        ("{a\nb}", "{\n    a;\n    b;\n};\n"),
        ("{ a -> \n}", "{\n    a ->\n};\n"),
        ("{ a -> ;\n}", "{\n    a ->;\n};\n"),
        (
            "a\n->{$x|b\n->c;\n\n\nd}->e",
            "a\n    -> { $x |\n        b\n            -> c;\n\n        d;\n    } -> e;\n",
        ),
        ("a\n->{b\nc}\n->d", "a\n    -> {\n        b;\n        c;\n    }\n    -> d;\n"),
        ("a -> (\n->b->\n)->c", "a -> (\n    -> b ->\n) -> c;\n"),
        ("elementclass A{a\n||$x|\nb\n\n||...}", "elementclass A {\n    a;\n|| $x |\n    b;\n|| ...\n}\n"),
        ("elementclass A {\n...}", "elementclass A {\n    ...\n}\n"),
        ("{(a;b\n)}", "{\n    (\n        a; b;\n    );\n};\n"),
        // Line directives stand at the start of a line. CR LF stays if all lines end so.
        ("# 3 \"f\"\na\n#line 5\n->b", "# 3 \"f\"\na\n#line 5\n    -> b;\n"),
        ("a\r\n\r\nb", "a;\r\n\r\nb;\r\n"),
        ("a\r\nb\nc", "a;\nb;\nc;\n"),
        ("a\rb", "a;\nb;\n"),
    ] {
        let once = formatted(text).unwrap();
        assert_eq!(once, want, "{text:?}");
        assert_eq!(formatted(&once).unwrap(), once, "{text:?}");
        assert_eq!(tokens(&once), tokens(text), "{text:?}");
        assert_eq!(meaning(&once), meaning(text), "{text:?}");
    }
}

#[test]
fn comments() {
    for (text, want) in [
        ("// a  \n\n\n/* b */", "// a\n\n/* b */\n"),
        ("  // a\nb", "// a\nb;\n"),
        ("/* a */b;/* c */d/* e */;/* f */", "/* a */ b; /* c */ d; /* e */ /* f */\n"),
        ("a // b\n;// c\nd", "a; // b\n// c\nd;\n"),
        ("a// b\n,c", "a, // b\n    c;\n"),
        ("a -> // b\nc", "a // b\n    -> c;\n"),
        ("a // b\n-> /* c */ d", "a // b\n    -> /* c */ d;\n"),
        ("a /* b */ -> /* c */ d", "a /* b */ -> /* c */ d;\n"),
        ("a\n/* b\n c */ -> d", "a\n    /* b\n c */ -> d;\n"),
        ("a :: // b\nB /* c */ (d)", "a :: // b\n    B /* c */ (d);\n"),
        ("a[/*b*/0]->c", "a [ /*b*/ 0] -> c;\n"),
        ("{// a\n}", "{ // a\n};\n"),
        ("{/* a */}", "{ /* a */ };\n"),
        (
            "{\n\n// a\n\n\n// b\nc;// d\n\n// e\n\n}",
            "{\n    // a\n\n    // b\n    c; // d\n\n    // e\n};\n",
        ),
        ("{$x|// a\nb}", "{ $x | // a\n    b;\n};\n"),
        ("{a\n// b\n||// c\nd}", "{\n    a;\n    // b\n|| // c\n    d;\n};\n"),
        ("{ a-> // b\n}", "{\n    a -> // b\n};\n"),
        // Comments at the ends of lines stay in their columns.
        ("a;       // b\nccc;  // d", "a;       // b\nccc;  // d\n"),
        ("a[0]->b;  // c\nd   ->e; // f", "a [0] -> b;  // c\nd -> e; // f\n"),
        ("a\t// b\n\ta /* c */\t/* d */", "a;      // b\na; /* c */              /* d */\n"),
    ] {
        let once = formatted(text).unwrap();
        assert_eq!(once, want, "{text:?}");
        assert_eq!(formatted(&once).unwrap(), once, "{text:?}");
        assert_eq!(tokens(&once), tokens(text), "{text:?}");
    }
}

#[test]
fn errors() {
    for (text, want) in
        [("a -> -> b", "syntax error near '->'"), ("a(", "expected ')'"), ("/*", "unclosed comment")]
    {
        assert_eq!(formatted(text).unwrap_err().first().unwrap().message, want, "{text}");
    }
}

#[test]
fn large_texts() {
    let lines: String = (0..20_000).map(|n| format!("e{n}::A(x)->  // c\n")).collect();
    let text = format!("{lines}last");
    assert_eq!(checked(&text).lines().count(), 20_001);
    let blanks = "a /* b */".repeat(20_000);
    assert_eq!(checked(&blanks).matches("/* b */").count(), 20_000);
    let deep = format!("{}a\n{}", "{->(".repeat(25), ")}".repeat(25));
    assert_eq!(checked(&deep).lines().count(), 101);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]
    #[test]
    fn any_text_keeps_its_meaning(words in proptest::collection::vec(proptest::sample::select(vec![
        "a", "b :: B", "C(x, y)", "C /*c*/ (\n x)", "c, d :: D", " ", "\n", "\n\n", "\r\n", "  ", "\t", "[0]", "[1-]", "[0, 2-3]", "->", "->",
        "->\n", "=>", ";", ";", ",", "{", "}", "(", ")", "{$x|", "{$x, K $y |", "||", "|| ...", "// l\n", "  // l\n", "/* m */", "/* m\n n */",
        "elementclass E {", "elementclass F E", "define($v 1)", "require(p)", "input", "output", "\n# 3 \"f\"\n", "{->}", "(->)", "$v",
    ]), 0..24)) {
        let text = words.concat();
        if formatted(&text).is_ok() {
            checked(&text);
        }
    }
}
