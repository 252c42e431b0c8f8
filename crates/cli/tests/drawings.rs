// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet graph` and its options.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::Bench;

const TEXT: &str = "elementclass Path { input -> Counter -> Queue -> Unqueue -> output }
    elementclass Twice { input -> Path -> Path -> output }
    Idle -> one :: Path -> two :: Twice -> Discard;";

#[test]
fn compounds_are_drawn_open_or_folded() {
    let b = Bench::new();
    b.file("r.click", TEXT);
    for (options, frames, folded) in [
        (&[][..], 4, 0),
        (&["--fold", "one"], 3, 1),
        (&["--fold", "one", "--fold", "two/Path@1"], 2, 2),
        (&["--fold", "Path"], 1, 3),
        (&["--fold-all"], 0, 2),
    ] {
        let ran = b.run("castanet", &[&["graph", "r.click"], options].concat(), "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{options:?}");
        let drawn = ran.out.split("<g class=\"legend\">").next().unwrap();
        assert_eq!(drawn.matches("class=\"head\"").count(), frames, "{options:?}");
        assert_eq!(drawn.matches("class=\"box compound\"").count(), folded, "{options:?}");
        let dot = b.run("castanet", &[&["graph", "--dot", "r.click"], options].concat(), "").out;
        assert!(dot.starts_with("digraph configuration {\n") && dot.ends_with("}\n"), "{dot}");
        assert_eq!(dot.matches("subgraph cluster_").count(), frames, "{options:?}");
    }
}

#[test]
fn a_compound_that_does_not_exist_is_an_error() {
    let b = Bench::new();
    b.file("r.click", TEXT);
    let ran = b.run("castanet", &["graph", "r.click", "--fold", "three"], "");
    let listed = "castanet: no compound is named 'three': there are one, two, two/Path@1, two/Path@2\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (1, "", listed));
    assert_eq!(b.run("castanet", &["graph", "r.click", "--fold", "one", "--fold-all"], "").code, 2);
}
