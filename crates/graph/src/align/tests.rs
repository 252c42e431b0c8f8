// SPDX-License-Identifier: MIT OR Apache-2.0
use super::align;
use crate::Graph;
use crate::csr::STEPS;
use crate::testing::{TestClasses, flat};
use castanet_lang::print::driver;

/// Returns the transformed configuration, and the names of the elements that were inserted and removed.
fn aligned(text: &str) -> (String, Vec<String>, Vec<String>) {
    let (flat, changes) = align(flat(text).0, &TestClasses, false);
    let (graph, errors) = Graph::new(flat, &TestClasses);
    assert!(errors.is_empty(), "{errors:?}\n{text}\n{}", driver(&graph.flat));
    (driver(&graph.flat), changes.inserted, changes.removed)
}

/// Work grows in proportion to the configuration: long chains, chains of superfluous Aligns behind many sources, many
/// inputs that need an Align.
#[test]
fn work_is_linear() {
    let chain = |n: usize| format!("Unheard{} -> Discard;", " -> StripOne -> WantsIp".repeat(n));
    let superfluous = |n: usize| {
        let sources: String = (0..n).map(|i| format!("p{i} :: Packets -> c;")).collect();
        format!("c :: Counter{} -> Discard; {sources}", " -> Align(4, 0)".repeat(n))
    };
    let tee = |n: usize| {
        let outputs: String = (0..n).map(|i| format!("t[{i}] -> StripOne -> WantsIp -> Discard;")).collect();
        format!("Unheard -> t :: Tee; {outputs}")
    };
    let cases: [(&dyn Fn(usize) -> String, bool); 3] = [(&chain, true), (&superfluous, false), (&tee, true)];
    for (case, inserts) in cases {
        let steps = |n: usize| {
            STEPS.set(0);
            let (_, inserted, removed) = aligned(&case(n));
            assert_eq!(if inserts { inserted.len() } else { removed.len() }, n);
            STEPS.get()
        };
        let (few, many) = (steps(300), steps(1200));
        assert!(many < 5 * few, "{few} {many}");
    }
}

/// An Align that leads only to itself cannot be taken out.
#[test]
fn cycles_stay_connected() {
    for text in [
        "Packets -> a :: Align(4, 0) -> a;",
        "Packets -> a :: Align(4, 0) -> b :: Align(4, 0) -> a;",
        "Packets -> c :: Counter -> a :: Align(4, 0) -> c;",
        "a :: Align(4, 0) -> b :: Align(4, 0) -> a;",
        "Packets -> c :: Counter -> StripOne -> WantsIp -> c;",
    ] {
        aligned(text);
    }
}
