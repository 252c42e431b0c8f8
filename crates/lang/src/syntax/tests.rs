// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the parser: trees reproduce their text, and deep or long texts are bounded.

use super::*;
use proptest::prelude::*;

fn round_trip(text: &str) -> (SyntaxNode, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    let (root, diagnostics) = tree(&mut sources, file);
    assert_eq!(root.text().to_string(), text);
    (root, diagnostics)
}

fn messages(text: &str) -> Vec<String> {
    round_trip(text).1.into_iter().map(|d| d.message).collect()
}

#[test]
fn a_tree() {
    let text = "# 3 \"f\"\nelementclass C { $x, K $y | -> [0] a :: B ($x) [1-] -> || ... };\n/*c*/ (a, b) => C; require(package p) define($v 1)";
    let (root, diagnostics) = round_trip(text);
    assert_eq!(diagnostics, []);
    let kinds: Vec<SyntaxKind> = root.descendants().map(|n| n.kind()).collect();
    use SyntaxKind::*;
    assert_eq!(
        kinds,
        [
            Root,
            ElementClass,
            Compound,
            Alternative,
            Params,
            Connection,
            Element,
            Element,
            Ports,
            Config,
            Ports,
            Element,
            Connection,
            Element,
            Group,
            Connection,
            Element,
            Element,
            Element,
            Require,
            Config,
            Define,
            Config
        ]
    );
}

#[test]
fn correct_texts() {
    for text in [
        "",
        ";;",
        "a;",
        "a::B",
        "a b c",
        "a, b :: C(x)",
        "a -> b => c",
        "a [0] -> [1,2-3,4-] b [] -> [ ] c",
        "{}; {->}; {=>}",
        "(->) (a -> b)",
        "a :: {$x|}",
        "a -> { $a, B $b, __REST__ $c | [1] -> x } (1) -> b",
        "elementclass A B; elementclass A {a || b || ...}",
        "elementclass A { ... }",
        "{ input -> a; -> b -> }",
        "{ a -> [1] }",
        "a :: B(()) ; b :: C(')') ; c :: D(\")\\\")\") ; d :: E(\\<29)>) ; e :: F(/*)*/) ; f :: G(//)\n)",
        "require(x); require(package p, library \"f\", compact_config)",
        "define($a 1, $b \"x\")",
        "#line 1\r\n# 2 \"x\"\r\n#3\r",
        "a // c\n/* d\n*/ -> b",
        "{|}",
        "input -> output",
        "\u{feff}a",
    ] {
        assert_eq!(messages(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("{", "}"), ("(", ")"), ("x::{a->(", ")}"), ("{a->", "}")] {
        let (levels, message) =
            (50 / open.matches(['{', '(']).count(), "maximum compound element nesting depth exceeded");
        let nested = |n: usize| messages(&format!("{}{}", open.repeat(n), close.repeat(n)));
        let count = |n: usize| nested(n).iter().filter(|m| *m == message).count();
        assert_eq!((count(levels), count(levels + 1)), (0, 1), "{open}");
    }
    for text in
        ["{", "(", "({", "{(", "[", "{||", "a::{", "{->", "a(", "(a,", "elementclass a{", "{$a|", "a\n("]
    {
        let (root, diagnostics) = round_trip(&text.repeat(20_000));
        assert!(!diagnostics.is_empty() && diagnostics.len() < 300);
        assert!(root.descendants().map(|n| n.ancestors().count()).max().unwrap_or(0) < 400);
    }
}

#[test]
fn errors_are_counted() {
    let all = messages(&"%;\n".repeat(1000));
    assert_eq!(all.len(), 201);
    assert_eq!(all.last().map(String::as_str), Some("800 more syntax errors not shown"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn any_text_comes_back(text in "\\PC{0,80}|[\\x00-\\x7f]{0,80}") {
        round_trip(&text);
    }
    #[test]
    fn any_tokens_come_back(tokens in proptest::collection::vec(proptest::sample::select(vec![
        "a", "B", " ", "\n", "0", "1-", "::", "->", "=>", ",", ";", "(", ")", "[", "]", "{", "}", "|", "||", "...", "$x",
        "$", "elementclass ", "require", "define", "provide ", "input", "output", "#", "# 1 \"x\"\n", "//", "/*", "*/",
        "'", "\"", "\\<", ">", "\\", "é", "(a)", "{->}",
    ]), 0..60)) {
        round_trip(&tokens.concat());
    }
}
