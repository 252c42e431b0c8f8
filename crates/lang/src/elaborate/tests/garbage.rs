// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elaboration ends quickly on any input: random text, exponential expansions, large configurations.

use super::*;
use crate::render::{render_classic, render_pretty};
use proptest::prelude::*;

/// The factor for input sizes, which are larger in optimised builds.
const SCALE: usize = if cfg!(debug_assertions) { 1 } else { 50 };

fn survive(bytes: &[u8]) -> Vec<Diagnostic> {
    let mut sources = Sources::new();
    let (flat, diagnostics) = load_bytes(&mut sources, "g", bytes, &options(&[], &NoLibrary));
    let _ =
        (driver(&flat), render_pretty(&sources, &diagnostics, false), render_classic(&sources, &diagnostics));
    for c in &flat.connections {
        assert!(c.from.element < flat.elements.len() && c.to.element < flat.elements.len());
    }
    diagnostics
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        survive(&bytes);
    }
    #[test]
    fn any_tokens(tokens in proptest::collection::vec(proptest::sample::select(vec![
        "a", "b", "Idle", "Tee", " ", " ", "\n", "[0]", "[1-]", "[]", "::", "->", "=>", ",", ";", "(", ")", "[", "]", "{", "}",
        "|", "||", "...", "$x", "(1)", "($x)", "elementclass C ", "C", "require(a)", "define($x 1)", "input", "output", "# 1 \"x\"\n",
        "//", "/*", "*/", "'", "\"", "é", "{->}", "(->)", "{ -> Null -> }", "${x",
    ]), 0..60)) {
        survive(tokens.concat().as_bytes());
    }
}

#[test]
fn long_garbage() {
    let size = 10_000 * SCALE;
    let ports = if SCALE > 1 { ["[0-65535]a=>", "Idle[0-65535]=>"] } else { ["[0-99]a=>", "Idle[0-99]=>"] };
    for part in [
        "(",
        "{",
        "[",
        "({",
        "a(",
        "a(\n",
        "\"",
        "'",
        "${a",
        "a ",
        "a,",
        "a::",
        "->",
        "{||",
        "{a->",
        "#\n",
        "#1\n",
        ";",
        "/*",
        "\\<",
        "é",
        "\0",
        "define(",
        "define($a ",
        "require(",
        ports[0],
        ports[1],
        "Idle->",
        "(->)",
        "elementclass A{",
        "Idle;",
        "a::Idle(b",
    ] {
        survive(part.repeat(size / part.len()).as_bytes());
    }
    survive(format!("Idle({})", "${a".repeat(size / 3)).as_bytes());
    survive(format!("Idle({}}}", "${a-".repeat(size / 3)).as_bytes());
    survive(format!("a{}", "-> \n".repeat(size / 4)).as_bytes());
    survive(format!("{} :: Idle(x", "a".repeat(size)).as_bytes());
}

#[test]
fn bombs_end() {
    let doubling = |first: &str, step: &dyn Fn(usize) -> String, last: &str| {
        let steps: String = (1..50).map(step).collect();
        format!("{first}\n{steps}{last}")
    };
    let chain = |i: usize| format!("elementclass A{i} {{ -> A{} -> A{} -> }}\n", i - 1, i - 1);
    let side = |i: usize| format!("elementclass A{i} {{ A{}; A{} }}\n", i - 1, i - 1);
    let text = |i: usize| format!("elementclass A{i} {{ $x | A{}($x$x) }}\n", i - 1);
    let values: String = (1..10).map(|i| format!(", $v{i} {}", format!("$v{}", i - 1).repeat(30))).collect();
    let big = |text: String| {
        let all = survive(text.as_bytes());
        assert!(all.iter().any(|d| d.message.starts_with("configuration is too large")), "{all:?}");
    };
    big(doubling("elementclass A0 { -> Null -> }", &chain, "Idle -> A49 -> Discard"));
    big(doubling("elementclass A0 { $x | Idle($x) }", &text, "A49(abcdefgh)"));
    big(format!("define($v0 aaaaaaaaaaaaaaaaaaaa{values}) Idle($v9)"));
    if SCALE > 1 {
        big(doubling("elementclass A0 { -> }", &chain, "Idle -> A49 -> Discard"));
        big(doubling("elementclass A0 { }", &side, "A49"));
        big(format!("t :: {{->}}; {}", "Idle -> t; t -> Discard;".repeat(5000)));
    }
    // Empty variables add no text, so any number of uses stays below the limit.
    assert_eq!(survive(format!("define($v0{values}) Idle($v9)").as_bytes()), []);
    let deep: String = (1..60).map(|i| format!("elementclass A{i} {{ -> A{} -> }}\n", i - 1)).collect();
    let all = survive(format!("elementclass A0 {{ -> }}\n{deep}Idle -> A59 -> Discard").as_bytes());
    assert_eq!(all[0].message, "maximum compound element nesting depth exceeded");
}

/// A configuration of `n` elements that uses the common features.
fn large(n: usize) -> String {
    let mut text = String::from("define($l 5)\nelementclass C { $x | -> Strip($x) -> Counter -> }\nIdle");
    for i in 0..n / 4 {
        text.push_str(&format!(" -> e{i} :: Queue(LIMIT $l, BURST {i})\n -> C({i}) -> Null"));
    }
    text.push_str(" -> Discard;\n");
    text
}

#[test]
#[ignore = "measures time; run by .ci/long"]
fn large_configurations_take_linear_time() {
    let time = |text: &str| {
        let start = std::time::Instant::now();
        assert_eq!(elaborate(text).2, []);
        start.elapsed()
    };
    let (small, double) = (large(10_000), large(20_000));
    assert_eq!(elaborate(&small).1.elements.len(), 10_002);
    // The minimum of several runs filters out disturbances by other processes. Quadratic growth would give a
    // ratio of 4.
    let best = |text: &str| (0..4).map(|_| time(text)).min().unwrap();
    let ratio = best(&double).as_secs_f64() / best(&small).as_secs_f64();
    assert!(ratio < 3.5, "{ratio}");
}
