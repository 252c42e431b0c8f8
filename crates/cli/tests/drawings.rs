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

#[test]
fn compounds_are_open_down_to_a_depth() {
    let b = Bench::new();
    b.file("r.click", TEXT);
    for (depth, frames, folded) in [("0", 0, 2), ("1", 2, 2), ("2", 4, 0)] {
        let ran = b.run("castanet", &["graph", "r.click", "--depth", depth], "");
        let drawn = ran.out.split("<g class=\"legend\">").next().unwrap();
        assert_eq!(drawn.matches("class=\"head\"").count(), frames, "{depth}");
        assert_eq!(drawn.matches("class=\"box compound\"").count(), folded, "{depth}");
    }
    assert_eq!(b.run("castanet", &["graph", "r.click", "--depth", "1", "--fold-all"], "").code, 2);
}

#[test]
fn rates_of_a_running_router_are_drawn() {
    let b = Bench::new();
    let socket = b.folder.path().join("router.sock");
    let text = "elementclass In { RatedSource(RATE 2000) -> output } In -> c :: Counter -> Discard;";
    let mut router = std::process::Command::new(common::BINARY);
    router.args(["run", "-q", "-u"]).arg(&socket).args(["-e", text]);
    let _router = common::Live(router.stdout(std::process::Stdio::null()).spawn().unwrap());
    castanet_testkit::until("the router listens", || socket.exists());
    let ran = b.run("castanet", &["graph", "--live", "router.sock", "--interval", "0.2"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    // The configuration comes from the router, with its compound. All of its connections have a rate.
    assert!(ran.out.contains("In@1 :: In"), "{}", ran.out);
    assert_eq!(ran.out.matches("packets per second</title>").count(), 3, "{}", ran.out);
    assert!(ran.out.contains("class=\"rate\""));
    let dot = b.run("castanet", &["graph", "--live", "router.sock", "--interval", "0.2", "--dot"], "");
    assert_eq!(
        dot.out.matches("[label=\"").count() - dot.out.matches(" [label=\"{").count(),
        2,
        "{}",
        dot.out
    );
    assert_eq!(b.run("castanet", &["graph", "--live", "nothing.sock"], "").code, 3);
}
