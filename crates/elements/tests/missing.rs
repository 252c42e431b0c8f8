// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the errors for classes of other routers: classes that Castanet lacks are reported as missing, classes that it
//! has are not.
#![allow(clippy::unwrap_used)]

use castanet_classes::Registry;
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, NoLibrary, Options, Sources, Unknown, load, missing_classes};

/// Returns all errors of a configuration, each rendered on its own lines.
fn errors(text: &str) -> Vec<String> {
    let classes = Registry::new();
    let mut sources = Sources::new();
    let file = sources.add("config", text);
    let options = Options { classes: &classes, defines: &[], library: &NoLibrary, unknown: Unknown::Error };
    let (flat, mut diagnostics) = load(&mut sources, file, &options);
    let (_, more) = Graph::new(flat, &classes);
    diagnostics.extend(more);
    let wrong = diagnostics.iter().filter(|d| Diagnostic::is_error(d));
    wrong
        .map(|d| {
            let place = sources.place(d.span.unwrap());
            format!("{}:{}: {}", place.file, place.line, d.message)
        })
        .collect()
}

#[test]
fn no_missing_class_exists() {
    let registry = Registry::new();
    let found: Vec<_> = missing_classes().filter(|m| registry.get(m.1).is_some()).collect();
    assert!(found.is_empty(), "these classes exist: remove them from missing.txt: {found:?}");
}

#[test]
fn each_is_one_error_at_its_place() {
    for (from, name) in missing_classes() {
        let text =
            format!("Idle -> Null\n  -> x :: {name}(1, A 2) -> Discard;\nIdle -> {name} -> Discard;\n");
        let want =
            format!("config:2: '{name}' is a class of {} that Castanet does not have yet", from.words());
        assert_eq!(errors(&text), [want]);
    }
    let known: Vec<_> = missing_classes().map(|m| m.1).collect();
    let wrong = known.iter().map(|n| format!("{n}x")).find(|n| !known.contains(&n.as_str())).unwrap();
    assert_eq!(errors(&format!("x :: {wrong};")), [format!("config:1: unknown element class '{wrong}'")]);
}

#[test]
fn other_names_of_classes_lead_to_them() {
    let registry = Registry::new();
    let nulls = (1..=8).map(|n| (format!("Null{n}"), "Null"));
    let others = [
        ("DiscardNoFree", "Discard"),
        ("SimpleIdle", "Idle"),
        ("SimplePrioSched", "PrioSched"),
        ("SimpleRoundRobinSched", "RoundRobinSched"),
        ("SimplePullSwitch", "PullSwitch"),
    ];
    for (name, class) in nulls.chain(others.map(|(n, c)| (n.to_string(), c))) {
        assert_eq!(registry.get(&name).map(|d| d.spec.name), Some(class), "{name}");
    }
    let all = "InfiniteSource(LIMIT 9) -> Null1 -> Null8 -> Queue -> [0] p :: SimplePrioSched -> Null3 -> DiscardNoFree;
        SimpleIdle -> SimpleRoundRobinSched -> [1] p;";
    assert!(errors(all).is_empty(), "{:?}", errors(all));
}
