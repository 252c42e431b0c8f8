// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of packages in routers: packets in both directions, panics, unloading.

use super::common::{alone, mapped, router, router_that_says};
use castanet_package::Packages;
use parking_lot::Mutex;
use std::sync::Arc;

/// The packages in the directory of built files.
fn packages() -> Arc<Packages> {
    Packages::new(Some(&super::common::folder().display().to_string()))
}

#[test]
fn a_package_is_there_as_long_as_a_router_uses_it() {
    let _alone = alone();
    super::common::tally();
    let packages = packages();
    let text = "require(package tally); InfiniteSource(DATA \\<02 00>, LIMIT 1000, STOP true)
        -> CheckSize(2, 9) -> t :: TallySwitch -> Discard; t [1] -> Discard; t [2] -> d :: Discard;";
    let plain = "InfiniteSource(LIMIT 10, STOP true) -> d :: Discard;";
    for round in 0..3 {
        assert_eq!(mapped("tally"), 0, "{round}");
        let mut first = router(&packages, text, 1).unwrap();
        assert!(mapped("tally") > 0);
        assert_eq!(packages.names(), ["tally"]);
        // The next router uses the same loaded package.
        let n = mapped("tally");
        let mut second = router(&packages, text, 1).unwrap();
        assert_eq!(mapped("tally"), n);
        for r in [&mut first, &mut second] {
            r.run().unwrap();
            assert_eq!(r.read(r.find("t"), "tally", "").unwrap(), "0 0\n1 0\n2 1000\n");
            assert_eq!(r.read(r.find("t"), "class", "").unwrap(), "TallySwitch");
        }
        drop(first);
        assert!(mapped("tally") > 0);
        // Declarations in the graph may outlive the router.
        let spec = second.shared().spec(second.find("t").unwrap()).unwrap();
        let mut next = router(&packages, plain, 1).unwrap();
        drop(second);
        assert_eq!(mapped("tally"), 0, "no router uses it");
        assert_eq!(packages.names(), [""; 0]);
        assert!(spec.doc.contains("counts them") && spec.args[0].name == "OFFSET");
        next.run().unwrap();
        assert_eq!(next.read(next.find("d"), "count", "").unwrap(), "10");
    }
}

#[test]
fn packages_loaded_by_name_stay_for_a_configuration() {
    let _alone = alone();
    super::common::tally();
    let packages = packages();
    assert_eq!(packages.keep("tally").unwrap(), ["CheckSize", "TallySwitch"]);
    let n = mapped("tally");
    assert!(n > 0);
    assert_eq!(packages.keep(&super::common::tally().display().to_string()).unwrap().len(), 2);
    assert_eq!(mapped("tally"), n, "twice is once");
    let r = router(&packages, "Idle -> CheckSize(1) -> Discard;", 1).unwrap();
    packages.settle();
    assert_eq!(mapped("tally"), n, "a router uses it");
    drop(r);
    assert_eq!(mapped("tally"), 0);
    packages.keep("tally").unwrap();
    packages.settle();
    assert_eq!(mapped("tally"), 0, "nobody used it");
    let error = packages.keep("nosuch").unwrap_err().to_string();
    assert!(
        error.contains("can't find required package 'nosuch.uo'") && error.contains("nosuch.castanet"),
        "{error}"
    );
}

#[test]
fn a_missing_package_is_reported() {
    let _alone = alone();
    let error = router(&packages(), "require(package nosuch); Idle -> Discard;", 1).err().unwrap();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "While loading package 'nosuch':");
    assert_eq!(lines[1], "  can't find required package 'nosuch.uo'");
    assert!(lines[2].starts_with("  in CLICKPATH or '/"), "{error}");
    assert_eq!(lines[3], "requirement 'nosuch' not available");
}

#[test]
fn packets_cross_in_both_directions() {
    let _alone = alone();
    super::common::probe();
    let packages = packages();
    // One path: the library creates packets, the program drops them. Another path: the program creates packets,
    // the library copies them and keeps the copies. Packets also wait in queues between the two sides.
    let text = "require(package probe);
        s :: ProbeSource(5000) -> q :: Queue(1000) -> Unqueue -> a :: ProbeKeep -> d :: Discard;
        DriverManager(wait_stop 2); InfiniteSource(LIMIT 5000, STOP true) -> b :: ProbeKeep -> Queue(100) -> Unqueue -> Strip(4) -> e :: Discard;";
    for workers in [1, 2] {
        let mut r = router(&packages, text, workers).unwrap();
        r.run().unwrap();
        for (name, kept) in [("a", "100"), ("b", "100")] {
            let e = r.find(name);
            let seen: u64 = r.read(e, "seen", "").unwrap().parse().unwrap();
            assert!(seen > 100, "{name} has seen {seen}");
            assert_eq!(r.read(e, "kept", "").unwrap(), kept);
        }
        drop(r);
        // The workers have ended, and the kept packets have returned to their pools. So the library is unloaded.
        assert_eq!(packages.names(), [""; 0]);
        assert_eq!(mapped("probe"), 0);
    }
}

#[test]
fn a_panic_in_a_package_is_one_of_its_element() {
    let _alone = alone();
    super::common::probe();
    let packages = packages();
    let text = |place: &str| {
        format!(
            "require(package probe); InfiniteSource(LIMIT 5, STOP true) -> p :: ProbePanic({place}) -> Discard;"
        )
    };
    // Returns the text of a panic in an element of the package. If the element panics while the router is built, the
    // caller gets a panic or an error. If it panics later, the text is in a printed message or in the error of a
    // handler call.
    let said = |place: &str| -> String {
        let messages = Arc::new(Mutex::new(String::new()));
        let printer = {
            let messages = messages.clone();
            Box::new(move |text: &str| messages.lock().push_str(text))
        };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut r = router_that_says(&packages, &text(place), 1, printer)?;
            r.run().unwrap();
            r.read(r.find("p"), "boom", "").map_err(|e| e.to_string())
        }));
        let error = match ran {
            Ok(answer) => answer.err().unwrap_or_default(),
            Err(panic) => *panic.downcast::<String>().unwrap(),
        };
        let messages = messages.lock();
        format!("{error}{messages}")
    };
    for place in ["build", "initialise", "packet", "handler"] {
        for _ in 0..2 {
            let said = said(place);
            assert!(said.contains(&format!("the probe panics at {place}")), "{said}");
            assert!(place == "build" || said.contains("p :: ProbePanic (test:1) panicked"), "{said}");
        }
    }
    assert_eq!(said("nowhere"), "");
    assert_eq!(mapped("probe"), 0, "unloaded after panics too");
}

#[test]
fn a_package_that_stays_is_never_unloaded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages/probe");
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::copy(from.join("Cargo.toml"), folder.path().join("Cargo.toml")).unwrap();
    let text = std::fs::read_to_string(from.join("src/lib.rs")).unwrap();
    let text = text.replace("castanet_element::package! {", "castanet_element::package! {\n    stays;");
    std::fs::write(folder.path().join("src/lib.rs"), text).unwrap();
    let file = super::common::package(folder.path(), "stayer.castanet").display().to_string();
    let packages = packages();
    drop(packages.load_file(&file).unwrap());
    let n = mapped("stayer");
    assert!(n > 0);
    drop(packages.load_file(&file).unwrap());
    assert_eq!(mapped("stayer"), n, "and loaded once");
}

/// Repeated loading and unloading leaks nothing.
#[test]
fn repeated_loading_leaks_nothing() {
    let _alone = alone();
    super::common::tally();
    let packages = packages();
    let text = "require(package tally); InfiniteSource(LIMIT 9, STOP true) -> CheckSize(1) -> Discard;";
    let state = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let memory = status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().split(' ').next()).unwrap();
        (files, memory.parse::<usize>().unwrap())
    };
    let mut before = state();
    for round in 0..60 {
        if round == 10 {
            before = state();
        }
        let mut r = router(&packages, text, 1).unwrap();
        r.run().unwrap();
    }
    let after = state();
    assert_eq!(mapped("tally"), 0);
    // Other tests run concurrently. A leak would be one file and several megabytes per repetition.
    assert!(after.0 <= before.0 + 30, "{before:?} {after:?}");
    assert!(after.1 <= before.1 + (64 << 10), "{before:?} {after:?}");
}
