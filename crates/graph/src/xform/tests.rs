// SPDX-License-Identifier: MIT OR Apache-2.0
//! What matches and what does not, what replacements look like, and what a search costs.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::{Direction, Limits, Outcome, Rule, TooLarge, within, xform};
use crate::testing::{Random, TestClasses, flat, rendered};
use castanet_lang::elaborate::load_fragments;
use castanet_lang::print::driver;
use castanet_lang::{Flat, NoLibrary, Options, Sources, Unknown};
use std::collections::BTreeSet;
use std::fmt::Write;

fn options() -> Options<'static> {
    Options { classes: &TestClasses, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque }
}

/// Reads rules; the second result has the diagnostics.
fn read(patterns: &str, direction: Direction) -> (Vec<Rule>, String) {
    let mut sources = Sources::new();
    let mut file = load_fragments(&mut sources, "patterns.click", patterns.as_bytes(), &options());
    let (rules, wrong) = Rule::read(&file.fragments, direction);
    file.diagnostics.extend(wrong);
    (rules, rendered(&file.diagnostics, &sources))
}

fn rules(patterns: &str, direction: Direction) -> Vec<Rule> {
    let (rules, wrong) = read(patterns, direction);
    assert_eq!(wrong, "", "{patterns}");
    rules
}

fn run(text: &str, patterns: &str) -> Outcome {
    xform(flat(text).0, &rules(patterns, Direction::Forward), &TestClasses).unwrap()
}

/// The result as one line.
fn line(flat: &Flat) -> String {
    driver(flat).replace("\n    ->", " ->").replace('\n', " ").replace("  ", " ").trim().to_string()
}

const PAIR: &str = "elementclass P { $a, $b | input -> Strip($a) -> Counter($b) -> output }
    elementclass P_Replacement { $a, $b | input -> Check($b, $a) -> output }";

#[test]
fn what_a_pattern_matches() {
    for (text, want) in [
        // The arguments of the replacement come from the match.
        (
            "Source -> Strip(14) -> Counter(x) -> Discard",
            "Source@1 :: Source; Check@xform@1 :: Check(x, 14); Discard@4 :: Discard; Source@1 -> Check@xform@1 -> Discard@4;",
        ),
        // Several matches; each takes the place of its elements.
        (
            "a :: Source -> Strip(1) -> Counter(x) -> d :: Discard; b :: Source -> Strip(2) -> Counter(y) -> d",
            "a :: Source; Check@xform@1 :: Check(x, 1); d :: Discard; b :: Source; Check@xform@2 :: Check(y, 2); a -> Check@xform@1 -> d; b -> Check@xform@2 -> d;",
        ),
        // All connections at an input and output of the pattern lead to the replacement.
        (
            "a :: Source -> s :: Strip(1) -> Counter(x) -> d :: Discard; b :: Source -> s",
            "a :: Source; Check@xform@1 :: Check(x, 1); d :: Discard; b :: Source; a -> Check@xform@1 -> d; b -> Check@xform@1;",
        ),
        // A match in a compound.
        (
            "elementclass C { input -> Strip(1) -> Counter(x) -> output } Source -> c :: C -> Discard",
            "Source@1 :: Source; Discard@3 :: Discard; c/Check@xform@1 :: Check(x, 1); Source@1 -> c/Check@xform@1 -> Discard@3;",
        ),
        // A cycle.
        (
            "s :: Strip(1) -> c :: Counter(x) -> s",
            "Check@xform@1 :: Check(x, 1); Check@xform@1 -> Check@xform@1;",
        ),
    ] {
        assert_eq!(line(&run(text, PAIR).flat), want, "{text}");
    }
}

#[test]
fn what_a_pattern_does_not_match() {
    for text in [
        "Source -> Counter(x) -> Strip(14) -> Discard",
        // Other arguments.
        "Source -> Strip -> Counter(x) -> Discard",
        "Source -> Strip(14, 1) -> Counter(x) -> Discard",
        // A connection into the match.
        "a :: Source -> Strip(14) -> c :: Counter(x) -> Discard; b :: Source -> c",
        // A connection out of the match.
        "q :: Unknown -> s :: Strip(14) -> c :: Counter(x) -> Discard; s -> Discard",
        // A port that the pattern does not use.
        "Source -> s :: Strip(14) -> c :: Counter(x) -> Discard; s [1] -> Discard",
        // Another port.
        "Source -> Strip(14) -> [1] c :: Counter(x) -> Discard",
        // An end without connection.
        "Source -> Strip(14) -> Counter(x)",
    ] {
        let outcome = run(text, PAIR);
        assert_eq!(line(&outcome.flat), line(&flat(text).0), "{text}");
        assert!(outcome.applied.is_empty());
    }
}

#[test]
fn names_of_replaced_elements() {
    let patterns = "elementclass P { input -> c :: Counter -> Strip(1) -> output }
        elementclass P_Replacement { input -> Check -> c :: Counter(2) -> output }";
    let text = "Source -> mine :: Counter -> Strip(1) -> Discard; Unknown(mine.count)";
    assert_eq!(
        line(&run(text, patterns).flat),
        "Source@1 :: Source; Check@xform@1 :: Check; mine :: Counter(2); Discard@4 :: Discard; Unknown@5 :: Unknown(mine.count); Source@1 -> Check@xform@1 -> mine -> Discard@4;"
    );
    // An element that another one names does not vanish, and keeps its class.
    assert_eq!(run(text, &patterns.replace("Counter(2)", "Print")).refused.len(), 1);
    let patterns = patterns.replace("c :: Counter(2)", "Counter(2)");
    for (config, named) in [
        ("mine.count", true),
        ("write mine.reset 1, 2", true),
        ("mine", true),
        ("X mine", true),
        ("mine2", false),
        ("mine:ip", false),
        ("a/mine", false),
    ] {
        let outcome = run(&text.replace("mine.count", config), &patterns);
        assert_eq!(outcome.applied.is_empty(), named, "{config}");
        let refused: Vec<_> =
            outcome.refused.iter().map(|r| (r.element.as_str(), r.named_by.as_str())).collect();
        assert_eq!(refused, if named { vec![("mine", "Unknown@5")] } else { Vec::new() }, "{config}");
    }
    // From inside a compound, the name of an element outside.
    let inside = "elementclass C { Unknown(c.count) } c :: Counter; Source -> c -> Strip(1) -> Discard; C";
    assert_eq!(run(inside, &patterns).refused.len(), 1);
}

/// Takes one Strip off a Counter that several share.
const SHARED: &str = "elementclass S { $n | input -> Strip($n) -> c :: Counter -> output; input [1] -> c }
    elementclass S_Replacement { $n | input -> Check($n) -> output; input [1] -> c :: Counter -> output }
    elementclass T { $n | input -> Strip($n) -> Counter -> output }
    elementclass T_Replacement { $n | input -> Check($n) -> output }";

#[test]
fn elements_that_stay() {
    let text = "a :: Source -> Strip(1) -> shared :: Counter -> Discard; b :: Source -> Strip(2) -> shared; c :: Source -> Strip(3) -> shared";
    let outcome = run(text, SHARED);
    assert_eq!(
        line(&outcome.flat),
        "a :: Source; Check@xform@1 :: Check(1); Check@xform@3 :: Check(3); Discard@4 :: Discard; b :: Source; Check@xform@2 :: Check(2); c :: Source; a -> Check@xform@1 -> Discard@4; b -> Check@xform@2 -> Discard@4; c -> Check@xform@3 -> Discard@4;"
    );
    let names: Vec<_> = outcome.applied.iter().map(|a| a.rule.as_str()).collect();
    assert_eq!(names, ["S", "S", "T"]);
}

#[test]
fn ports_that_need_a_connection() {
    // Input 1 of S has no connection, so its Counter would be left without one.
    let only_s = SHARED.split("elementclass T ").next().unwrap();
    assert!(run("Source -> Strip(1) -> Counter -> Discard", only_s).applied.is_empty());
    // If the Counter keeps a connection, the input may be unused.
    let patterns = "elementclass S { input -> s :: Strip -> c :: Counter -> output; input [1] -> c }
        elementclass S_Replacement { input -> Check -> c :: Counter -> output; input [1] -> c }";
    for (text, want) in [
        ("a :: Source -> Strip -> c :: Counter -> Discard", "a -> Check@xform@1 -> c -> Discard@4;"),
        (
            "a :: Source -> Strip -> c :: Counter -> Discard; b :: Source -> c",
            "a -> Check@xform@1 -> c -> Discard@4; b -> c;",
        ),
    ] {
        assert!(line(&run(text, patterns).flat).ends_with(want), "{text}");
    }
}

#[test]
fn several_ports_of_one_side() {
    let patterns = "elementclass P { input -> t :: Tee -> output; t [1] -> Print -> [1] output; t [2] -> Strip -> [1] output }
        elementclass P_Replacement { input -> c :: Classifier -> output; c [1] -> [1] output }";
    let text = |last: &str| {
        format!(
            "Source -> t :: Tee -> [1] j :: Joined; t [1] -> Print -> d :: Discard; t [2] -> Strip -> {last}"
        )
    };
    let flat = line(&run(&text("d"), patterns).flat);
    let want = "Source@1 -> c@xform@1 -> [1] j; c@xform@1 [1] -> d;";
    assert!(flat.ends_with(want), "{flat}");
    // Output 1 of the pattern stands for two ports, which must lead to the same place.
    assert!(run(&text("Discard"), patterns).applied.is_empty());
}

#[test]
fn all_connections_of_a_pattern_must_be_there() {
    let patterns =
        "elementclass P { input -> t :: Tee -> Strip -> j :: Joined -> output; t [1] -> Print -> [1] j }
        elementclass P_Replacement { input -> Check -> output }";
    let text = |ports: [usize; 4]| {
        let [a, b, c, d] = ports;
        format!(
            "Source -> t :: Tee; t [{a}] -> Strip -> [{b}] j :: Joined; t [{c}] -> Print -> [{d}] j; j -> Discard"
        )
    };
    assert_eq!(run(&text([0, 0, 1, 1]), patterns).applied.len(), 1);
    for other in [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]] {
        assert!(run(&text(other), patterns).applied.is_empty(), "{other:?}");
    }
    // Two such parts with crossed connections.
    let crossed = "Source -> t :: Tee; Source -> u :: Tee; j :: Joined -> Discard; k :: Joined -> Discard;
        t -> Strip -> j; t [1] -> Print -> [1] k; u -> Strip -> k; u [1] -> Print -> [1] j";
    assert!(run(crossed, patterns).applied.is_empty());
    assert_eq!(
        run(&crossed.replace("[1] k", "[1] x").replace("[1] j", "[1] k").replace("[1] x", "[1] j"), patterns)
            .applied
            .len(),
        2
    );
}

#[test]
fn a_replacement_without_elements() {
    let patterns =
        "elementclass P { input -> Strip -> output } elementclass P_Replacement { input -> output }";
    let text = "a :: Source; b :: Source; a, b -> Strip -> Strip -> d :: Discard";
    assert!(line(&run(text, patterns).flat).ends_with("a -> d; b -> d;"));
    // A push output is not connected to a pull input.
    assert!(
        run(
            "Source -> Queue -> Sink",
            "elementclass P { input -> Queue -> output } elementclass P_Replacement { input -> output }"
        )
        .applied
        .is_empty()
    );
    let cycle = run("s :: Strip -> s", patterns);
    assert!(cycle.applied.is_empty());
}

#[test]
fn push_and_pull() {
    let patterns =
        "elementclass P { input -> Strip -> output } elementclass P_Replacement { input -> Tee -> output }";
    assert_eq!(run("Source -> Strip -> Queue -> Sink", patterns).applied.len(), 1);
    assert!(run("Source -> Queue -> Strip -> Sink", patterns).applied.is_empty());
}

#[test]
fn rules_come_to_an_end() {
    let grow = "elementclass P { input -> Strip -> output } elementclass P_Replacement { input -> Strip -> Strip -> output }";
    assert_eq!(run("Source -> Strip -> Discard", grow).applied.len(), 1);
    let swap =
        "elementclass A { input -> Strip -> output } elementclass A_Replacement { input -> Print -> output }
        elementclass B { input -> Print -> output } elementclass B_Replacement { input -> Strip -> output }";
    let done = run("Source -> Strip -> Print -> Discard", swap);
    assert_eq!(done.applied.iter().map(|a| a.rule.as_str()).collect::<String>(), "ABBA");
    assert!(line(&done.flat).contains("Strip@xform@1 -> Print@xform@2"), "{}", line(&done.flat));
    // A chain becomes as short as possible, wherever the search begins.
    let shorten = "elementclass P { input -> Strip -> Strip -> output } elementclass P_Replacement { input -> Strip -> output }";
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 3, 4, 0, 1], [1, 3, 0, 2, 4]] {
        let mut text: String = order.iter().map(|n| format!("s{n} :: Strip; ")).collect();
        text += "Source -> s0 -> s1 -> s2 -> s3 -> s4 -> Discard";
        let outcome = run(&text, shorten);
        assert_eq!((outcome.applied.len(), outcome.flat.elements.len()), (4, 3), "{order:?}");
    }
    // Each rule doubles the elements.
    let mut patterns = String::new();
    for n in 0..30 {
        let _ = writeln!(
            patterns,
            "elementclass P{n} {{ input -> A{n} -> output }} elementclass P{n}_Replacement {{ input -> A{m} -> A{m} -> output }}",
            m = n + 1
        );
    }
    let all = rules(&patterns, Direction::Forward);
    let limits = Limits { added: 1000, ..Limits::DEFAULT };
    let text = "Source -> A0 -> Discard";
    assert_eq!(within(limits, flat(text).0, &all, &TestClasses).err(), Some(TooLarge::Elements));
}

#[test]
fn searches_are_bounded() {
    // Elements that are not connected, of which the last is missing.
    let part = "A($x); ".repeat(6);
    let patterns = format!("elementclass P {{ {part} A(last) }} elementclass P_Replacement {{ B }}");
    let text: String = (0..200).map(|_| "A(1); ").collect();
    let all = rules(&patterns, Direction::Forward);
    let limits = Limits { comparisons: 100_000, ..Limits::DEFAULT };
    assert_eq!(within(limits, flat(&text).0, &all, &TestClasses).err(), Some(TooLarge::Comparisons));
}

#[test]
fn files_with_mistakes() {
    for (patterns, direction, want) in [
        ("elementclass P { input -> Strip -> output }", Direction::Forward, ""),
        (
            "elementclass Paterns_Replacement { input -> Strip -> output } elementclass Patterns { }",
            Direction::Forward,
            "did you mean 'Patterns_Replacement'?",
        ),
        (
            "elementclass P { input -> output } elementclass P_Replacement { input -> output }",
            Direction::Forward,
            "no elements",
        ),
        (
            "elementclass P { input -> Strip -> output; input [1] -> [1] output } elementclass P_Replacement { input -> Strip -> output; input [1] -> [1] output }",
            Direction::Forward,
            "input 1 is connected directly to output 1",
        ),
        (
            "elementclass P { input -> Strip -> output; input [1] -> Print -> output } elementclass P_Replacement { input -> Strip -> output }",
            Direction::Forward,
            "'P' has 2 inputs, but 'P_Replacement' has 1",
        ),
        (
            "elementclass P { input -> s :: Strip -> output; input [1] -> s } elementclass P_Replacement { input -> s :: Strip -> output; input [1] -> Discard }",
            Direction::Forward,
            "input 0 of 's' is input 0 and input 1 of the pattern",
        ),
        (
            "elementclass P { input -> Strip($lenght) -> output } elementclass P_Replacement { input -> Strip($length) -> output }",
            Direction::Forward,
            "did you mean '$lenght'?",
        ),
        (
            "elementclass P { input -> Strip($dev:ip) -> output } elementclass P_Replacement { input -> Print -> output }",
            Direction::Forward,
            "must be a whole word",
        ),
        (
            "elementclass P { input -> Strip($a) -> output } elementclass P_Replacement { input -> output }",
            Direction::Reverse,
            "'P' cannot be applied in reverse",
        ),
        (
            "elementclass P { input -> Strip($a) -> output || input -> Print -> output } elementclass P_Replacement { input -> Print -> output }",
            Direction::Forward,
            "'P' has 2 alternatives, but 'P_Replacement' has 1",
        ),
        ("elementclass P { input -> Strip -> ", Direction::Forward, "expected"),
    ] {
        let (_, wrong) = read(patterns, direction);
        assert!(wrong.contains(want) && (want.is_empty() == wrong.is_empty()), "{patterns}\n{wrong}");
    }
    let long = "Strip -> ".repeat(501);
    let (all, wrong) = read(
        &format!(
            "elementclass P {{ input -> {long} output }} elementclass P_Replacement {{ input -> Strip -> output }}"
        ),
        Direction::Forward,
    );
    assert!(all.is_empty() && wrong.contains("at most 500"), "{wrong}");
    // A pattern of the maximum size works.
    let long = "Strip -> ".repeat(500);
    let patterns = format!(
        "elementclass P {{ input -> {long} output }} elementclass P_Replacement {{ input -> Print -> output }}"
    );
    assert_eq!(run(&format!("Source -> {long} Discard"), &patterns).applied.len(), 1);
}

#[test]
fn alternatives_and_compounds_in_patterns() {
    let patterns = "elementclass Inner { $x | input -> Strip($x) -> output }
        elementclass P { $v | input -> Inner($v) -> Counter -> output || $v | input -> Print($v) -> output }
        elementclass P_Replacement { $v | input -> Check($v) -> output || $v | input -> Check(printed $v) -> output }
        define($v 5, $w 14)
        elementclass Q { input -> Strip($w) -> output } elementclass Q_Replacement { input -> Check(q) -> output }";
    let text = "Source -> Strip(3) -> Counter -> Print(x) -> Strip(14) -> Strip(13) -> Discard";
    let flat = run(text, patterns).flat;
    let configs: Vec<_> = flat.elements.iter().map(|e| e.config.as_str()).collect();
    assert_eq!(configs, ["", "3", "printed x", "q", "13", ""]);
}

/// `n` matches in a configuration of about ten times as many elements, and the rule.
fn many(n: usize) -> (String, &'static str) {
    let mut text = String::from("d :: Discard; ");
    for i in 0..n {
        let _ = writeln!(
            text,
            "Source -> Strip({i}) -> Counter -> Check -> Strip(14) -> Check -> Counter -> Strip(4) -> Print -> d;"
        );
    }
    let rule = "elementclass P { $a | input -> Check -> Strip($a) -> Check -> output }
        elementclass P_Replacement { $a | input -> Meter($a) -> output }";
    (text, rule)
}

#[test]
fn five_hundred_replacements_need_few_comparisons() {
    // ASPLOS 2002, section 6.2: a minute for several hundred replacements in thousands of elements.
    let (text, rule) = many(500);
    let outcome = run(&text, rule);
    assert_eq!((outcome.applied.len(), outcome.flat.elements.len()), (500, 3501));
    assert!(outcome.comparisons <= 500 * 12, "{}", outcome.comparisons);
    // The number is proportional to the number of matches.
    let (text, rule) = many(1000);
    assert_eq!(run(&text, rule).comparisons, 2 * outcome.comparisons);
}

#[test]
fn a_shared_element_is_not_searched_again_for_each_match() {
    for n in [200, 400] {
        let mut text = String::from("shared :: Counter -> Discard; ");
        (0..n).for_each(|i| text += &format!("Source -> Strip({i}) -> shared; "));
        let outcome = run(&text, SHARED);
        assert_eq!(outcome.applied.len(), n);
        assert!(outcome.comparisons <= 12 * n as u64, "{n}: {}", outcome.comparisons);
    }
}

/// A configuration without names: each connection with the classes and configuration strings at its ends, sorted.
fn shape(flat: &Flat) -> Vec<String> {
    let end =
        |e: usize| flat.elements.get(e).map(|e| format!("{}({})", e.class, e.config)).unwrap_or_default();
    let all = flat.connections.iter();
    let mut all: Vec<_> = all
        .map(|c| {
            format!("{} [{}] -> [{}] {}", end(c.from.element), c.from.port, c.to.port, end(c.to.element))
        })
        .collect();
    all.sort();
    all
}

/// Connects elements `e0`, `e1` and so on: most of them to the next one, and a few others.
fn random_connections(random: &mut Random, n: usize) -> String {
    let mut text = String::new();
    for i in 0..n.saturating_sub(1) {
        if random.below(6) > 0 {
            let _ = write!(text, "e{i} -> e{}; ", i + 1);
        }
    }
    for _ in 0..random.below(n / 2 + 2) {
        let (a, b, port) = (random.below(n), random.below(n), random.below(2));
        let _ = write!(text, "e{a} [{port}] -> e{b}; ");
    }
    text
}

#[test]
fn back_and_forth() {
    // Each element has a configuration string of its own, so that the shape tells all of them apart.
    let patterns = "elementclass P { $a, $b | input -> Counter($a) -> Counter($b) -> output }
        elementclass P_Replacement { $a, $b | input -> Check($a) -> Meter($b) -> output }
        elementclass Q { $a, $b | input -> c :: Classifier($a) -> Strip($b) -> output; c [1] -> [1] output }
        elementclass Q_Replacement { $a, $b | input -> Joined($a) -> c :: Odd($b) -> output; c [1] -> [1] output }";
    let (forward, reverse) = (rules(patterns, Direction::Forward), rules(patterns, Direction::Reverse));
    let mut random = Random(7);
    let mut applied = 0;
    for _ in 0..300 {
        let n = 2 + random.below(20);
        let mut text = String::new();
        for i in 0..n {
            let class = ["Counter", "Counter", "Counter", "Classifier", "Strip"][random.below(5)];
            let _ = write!(text, "e{i} :: {class}({i}); ");
        }
        text += &random_connections(&mut random, n);
        let before = flat(&text).0;
        let there = xform(before.clone(), &forward, &TestClasses).unwrap();
        let back = xform(there.flat.clone(), &reverse, &TestClasses).unwrap();
        assert_eq!(shape(&back.flat), shape(&before), "{text}\n{}", line(&there.flat));
        assert_eq!(back.applied.len(), there.applied.len());
        applied += there.applied.len();
        // The result has no match, and the order of the search does not depend on chance.
        assert!(xform(there.flat.clone(), &forward, &TestClasses).unwrap().applied.is_empty(), "{text}");
        assert_eq!(line(&xform(before, &forward, &TestClasses).unwrap().flat), line(&there.flat));
    }
    assert!(applied > 200, "{applied}");
}

/// Finds a match of two connected elements by trying all pairs.
fn naive_pairs(flat: &Flat) -> usize {
    let class = |e: usize| flat.elements[e].class.as_str();
    let degree = |e: usize, input: bool| {
        let ports = flat.connections.iter().map(|c| if input { c.to } else { c.from });
        ports.filter(|p| p.element == e).map(|p| p.port).collect::<Vec<_>>()
    };
    let only_port_0 =
        |e: usize, input: bool| degree(e, input).iter().collect::<BTreeSet<_>>() == BTreeSet::from([&0]);
    let matches = flat.connections.iter().filter(|c| {
        let (a, b) = (c.from.element, c.to.element);
        a != b
            && (class(a), class(b), c.from.port, c.to.port) == ("Strip", "Counter", 0, 0)
            && degree(a, false) == [0]
            && degree(b, true) == [0]
            && only_port_0(a, true)
            && only_port_0(b, false)
    });
    matches.count()
}

#[test]
fn the_search_finds_what_trying_everything_finds() {
    let rule = rules(
        "elementclass P { input -> Strip -> Counter -> output } elementclass P_Replacement { input -> Check -> output }",
        Direction::Forward,
    );
    let mut random = Random(11);
    let mut found = 0;
    for _ in 0..500 {
        let n = 2 + random.below(12);
        let mut text = String::new();
        for i in 0..n {
            let _ = write!(text, "e{i} :: {}; ", ["Strip", "Counter"][random.below(2)]);
        }
        text += &random_connections(&mut random, n);
        let flat = flat(&text).0;
        // Matches do not overlap: an element is the first or the second of a pair.
        let want = naive_pairs(&flat);
        assert_eq!(xform(flat, &rule, &TestClasses).unwrap().applied.len(), want, "{text}");
        found += want;
    }
    assert!(found > 100, "{found}");
}
