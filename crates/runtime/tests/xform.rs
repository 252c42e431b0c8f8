// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::xform`: a router treats packets as before after replacements that do the same, and the patterns that come
//! with the program do what they say.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::{Classes, Random};
use castanet_graph::Graph;
use castanet_graph::xform::{Direction, Outcome, Rule, Shipped, xform};
use castanet_lang::elaborate::load_fragments;
use castanet_lang::print::driver;
use castanet_lang::{NoLibrary, Options, Sources, Unknown};
use castanet_runtime::swap::Loaded;
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::seen::Seen;
use castanet_testkit::{simulated, try_router};
use std::sync::Arc;

fn rules(patterns: &str, direction: Direction, classes: &dyn Classes) -> Vec<Rule> {
    let options = Options { classes, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let file = load_fragments(&mut Sources::new(), "patterns", patterns.as_bytes(), &options);
    assert!(file.diagnostics.is_empty(), "{:?}", file.diagnostics);
    let (rules, wrong) = Rule::read(&file.fragments, direction);
    assert!(wrong.is_empty(), "{wrong:?}");
    rules
}

/// Returns the configuration after all replacements, which has no errors, and what was replaced.
fn transformed(text: &str, patterns: &str, direction: Direction) -> (String, Outcome) {
    let loaded: Loaded = castanet_testkit::load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let classes: Arc<dyn Classes> = loaded.classes;
    let rules = rules(patterns, direction, classes.as_ref());
    let outcome = xform(loaded.graph.flat, &rules, classes.as_ref()).unwrap();
    let text = driver(&outcome.flat);
    let (_, errors) = Graph::new(outcome.flat.clone(), classes.as_ref());
    assert!(errors.iter().all(|d| !d.is_error()), "{errors:?}\n{text}");
    (text, outcome)
}

/// Patterns whose replacements do the same.
const IDENTITIES: &str = "
    elementclass Shorter { input -> Null -> Null -> output } elementclass Shorter_Replacement { input -> Null -> output }
    elementclass LastPaint { $a, $b | input -> Paint($a) -> Paint($b) -> output }
    elementclass LastPaint_Replacement { $a, $b | input -> Paint($b) -> output }
    elementclass Swapped { $a | input -> c :: Counter -> Paint($a) -> output }
    elementclass Swapped_Replacement { $a | input -> Paint($a) -> c :: Counter -> output }
    elementclass Gone { $n | input -> Unstrip($n) -> Strip($n) -> output } elementclass Gone_Replacement { input -> output }
    elementclass Chosen { input -> w :: StaticSwitch(1) -> Discard; w [1] -> output }
    elementclass Chosen_Replacement { input -> Null -> output }";
/// What the patterns match.
const SPLICES: [&str; 6] = [
    "Null -> Null -> Null",
    "Paint(1) -> Paint(2)",
    "Counter -> Paint(3)",
    "Unstrip(2) -> Strip(2)",
    "Counter -> Counter -> Paint(4)",
    "[0] Null",
];

/// Returns a configuration in which some connections lead through elements that patterns match.
fn with_matches(c: &Configuration, random: &mut Random) -> String {
    let mut text = String::new();
    for line in c.text().lines() {
        match line.split_once("] -> [") {
            Some((from, to)) if random.below(2) == 0 => {
                let splice = SPLICES[random.below(SPLICES.len() as u64) as usize];
                text += &format!("{from}] -> {splice} -> [{to}\n");
            }
            _ => text += &format!("{line}\n"),
        }
    }
    text
}

#[test]
fn routers_with_replacements_do_the_same() {
    let mut random = Random::new(5, "xform");
    let mut applied = 0;
    for seed in 0..150 {
        let wish = Wish { marks: true, cycles: true, ..Wish::default() };
        let text = with_matches(&Configuration::random(seed, wish), &mut random);
        let (after, outcome) = transformed(&text, IDENTITIES, Direction::Forward);
        applied += outcome.applied.len();
        for batch in [1, 32] {
            assert_eq!(
                Seen::of(&text, batch),
                Seen::of(&after, batch),
                "seed {seed}, batch {batch}\n{text}\n{after}"
            );
        }
    }
    assert!(applied > 500, "{applied} replacements");
}

#[test]
fn a_variable_in_the_place_of_a_positional_argument_is_no_keyword_argument() {
    let patterns = "elementclass P { $x | input -> CheckIPHeader($x) -> output }
        elementclass P_Replacement { $x | input -> MarkIPHeader($x) -> output }";
    for (config, matches) in [("14", true), ("OFFSET 14", true), ("VERBOSE true", false), ("", false)] {
        let text = format!("Idle -> CheckIPHeader({config}) -> Discard");
        let (_, outcome) = transformed(&text, patterns, Direction::Forward);
        assert_eq!(outcome.applied.len(), usize::from(matches), "{config}");
    }
}

fn shipped(name: &str) -> &'static str {
    Shipped::named(name).unwrap().text
}

fn conf(file: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("conf").join(file)).unwrap()
}

/// How many elements of each class a configuration has.
fn count(outcome: &Outcome, class: &str) -> usize {
    outcome.flat.elements.iter().filter(|e| e.class == class).count()
}

#[test]
fn ip_routers_get_combination_elements() {
    for (file, gone) in [
        ("ip-router-trace.click", &["Paint", "PaintTee", "IPGWOptions", "DecIPTTL", "IPFragmenter"][..]),
        (
            "bench/fig8-path.click",
            &["Paint", "Strip", "CheckIPHeader", "GetIPAddress", "PaintTee", "IPFragmenter"],
        ),
        ("ip-router.click", &["Paint", "PaintTee", "Strip", "CheckIPHeader", "IPFragmenter", "DecIPTTL"]),
    ] {
        let text = conf(file);
        let (after, outcome) = transformed(&text, shipped("ip"), Direction::Forward);
        for class in ["IPInputCombo", "IPOutputCombo"] {
            assert_eq!(count(&outcome, class), 2, "{file}: {class}\n{after}");
        }
        for class in gone {
            assert_eq!(count(&outcome, class), 0, "{file}: {class}\n{after}");
        }
        assert!(outcome.refused.is_empty(), "{:?}", outcome.refused);
        // In reverse, each combination element becomes elements of its own again.
        let (back, outcome) = transformed(&after, shipped("ip"), Direction::Reverse);
        for (class, n) in
            [("IPInputCombo", 0), ("IPOutputCombo", 0), ("Paint", 2), ("PaintTee", 2), ("DecIPTTL", 2)]
        {
            assert_eq!(count(&outcome, class), n, "{file}: {class}\n{back}");
        }
    }
}

/// Two routers, joined by links in both directions. Each has a source of packets to the other one, and prints what it gets.
fn two_routers(link: &str, others: &str) -> String {
    let side = |me: &str, ip: u8, other: u8| {
        format!(
            "elementclass {me} {{
                s :: TimedSource(INTERVAL 0.01, LIMIT 20, DATA \\<45000014 00000000 40110000 0a00000{ip} 0a00000{other}>)
                    -> MarkIPHeader -> GetIPAddress(16) -> arp :: ARPQuerier(10.0.0.{ip}, 2:0:0:0:0:{ip}) -> q :: Queue -> output;
                input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800{others});
                kind [0] -> ARPResponder(10.0.0.{ip} 2:0:0:0:0:{ip}) -> q; kind [1] -> [1] arp;
                kind [2] -> Print({me}, 34) -> Discard; {}
            }}\n",
            if others.is_empty() { "" } else { "kind [3] -> Discard;" }
        )
    };
    let (a, b) = (side("A", 1, 2), side("B", 2, 1));
    format!("{a}{b}a :: A; b :: B; a -> {link} -> b -> {link} -> a; DriverManager(wait 1s, stop);")
}

fn printed(text: &str, batch: usize) -> Vec<String> {
    let (options, log) = simulated(batch);
    let mut r = try_router(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    r.run().unwrap();
    r.ledger().check();
    let mut lines = log.lines();
    lines.sort();
    lines
}

#[test]
fn arp_is_removed_between_two_routers() {
    for link in [
        "Unqueue",
        "Counter -> Unqueue",
        "LinkUnqueue(1ms, 1MBps) -> HostEtherFilter(2:0:0:0:0:9, DROP_OTHER false)",
    ] {
        for others in ["", ", -"] {
            let text = two_routers(link, others);
            let (after, outcome) = transformed(&text, shipped("arp"), Direction::Forward);
            let gone = ["ARPQuerier", "ARPResponder", "AnsweredBy", "NoRequests"].map(|class| (class, 0));
            for (class, n) in gone.into_iter().chain([("EtherEncap", 2)]) {
                assert_eq!(count(&outcome, class), n, "{class}\n{after}");
            }
            let encap = |name: &str| {
                let e = outcome.flat.elements.iter().find(|e| e.name == name);
                e.map(|e| format!("{}({})", e.class, e.config))
            };
            assert_eq!(encap("a/arp").as_deref(), Some("EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2)"));
            assert_eq!(encap("b/arp").as_deref(), Some("EtherEncap(0x0800, 2:0:0:0:0:2, 2:0:0:0:0:1)"));
            for batch in [1, 32] {
                let before = printed(&text, batch);
                assert_eq!(before.len(), 40, "{before:?}");
                assert_eq!(printed(&after, batch), before, "{text}\n{after}");
            }
        }
    }
}

#[test]
fn routers_answer_where_requests_may_come() {
    // Another source of packets in the queue of router a.
    let text = two_routers("Unqueue", "").replacen(
        "input -> kind",
        "TimedSource(LIMIT 1, DATA \\<ffffffffffff 020000000001 0806 0001080006040001 020000000001 0a000001 000000000000 0a000002>) -> q;
        input -> kind",
        1,
    );
    let (after, outcome) = transformed(&text, shipped("arp"), Direction::Forward);
    for (class, n) in [("ARPQuerier", 0), ("ARPResponder", 1), ("NoRequests", 0)] {
        assert_eq!(count(&outcome, class), n, "{class}\n{after}");
    }
    assert!(outcome.flat.elements.iter().any(|e| e.class == "ARPResponder" && e.name.starts_with("b/")));
    assert_eq!(printed(&after, 1), printed(&text, 1));
}

#[test]
fn arp_stays_where_the_other_side_is_not_known() {
    for (text, why) in [
        (two_routers("Unqueue -> Tee(1)", ""), "a Tee may lead to several routers"),
        (
            two_routers("Unqueue", "")
                .replace("2:0:0:0:0:2)", "two)")
                .replace("a :: A;", "a :: A; AddressInfo(two 2:0:0:0:0:2);"),
            "the name of an address may mean something else in the other router",
        ),
    ] {
        let (after, outcome) = transformed(&text, shipped("arp"), Direction::Forward);
        assert!(count(&outcome, "ARPQuerier") > 0, "{why}\n{after}");
        assert_eq!(count(&outcome, "AnsweredBy") + count(&outcome, "NoRequests"), 0, "{why}");
        assert_eq!(printed(&after, 1), printed(&text, 1), "{why}");
    }
}
