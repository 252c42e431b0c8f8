// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: which elements are measured, and that a profile changes nothing else.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_testkit::{real, router, simulated};
use std::collections::BTreeMap;

/// The packets that a profile saw, by element; `-` is the run loop.
fn packets(profile: &str) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for line in profile.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [_, element, class, time, packets] = words[..] else { panic!("{line}") };
        assert_eq!(element == "-", class == "-");
        time.parse::<u64>().unwrap();
        *out.entry(element.to_string()).or_default() += packets.parse::<u64>().unwrap();
    }
    out
}

const TEXT: &str = "source :: InfiniteSource(LIMIT 40000, STOP false) -> a :: Counter -> paint :: Paint(1)
        -> kinds :: Classifier(0/00, -) -> dropped :: Discard; kinds[1] -> queue :: Queue(100000);
    queue -> pulled :: Counter -> unqueue :: Unqueue -> b :: Counter -> sink :: Discard;
    DriverManager(wait 1, stop);";

#[test]
fn every_element_on_the_way_is_measured() {
    for burst in [1, 32] {
        for batch in [1, 32] {
            let text = TEXT.replace("STOP false", &format!("STOP false, BURST {burst}"));
            let mut r = router(&text, simulated(batch).0);
            r.running().begin_profile();
            r.run().unwrap();
            r.ledger().check();
            for e in ["a", "b", "pulled"] {
                assert_eq!(r.read(r.find(e), "count", "").unwrap(), "40000", "{e}");
            }
            let seen = packets(&r.read(None, "profile", "").unwrap());
            let of = |e: &str| *seen.get(e).unwrap_or_else(|| panic!("{e}: {seen:?}"));
            assert!(of("source") > 20 && of("unqueue") > 20, "{seen:?}");
            for e in ["a", "paint", "kinds"] {
                assert_eq!(of(e), of("source"), "{e} {seen:?}");
            }
            for e in ["b", "sink", "queue", "pulled"] {
                // A queue takes packets and gives them.
                let twice = if e == "queue" { of("source") } else { 0 };
                assert_eq!(of(e), of("unqueue") + twice, "{e} {seen:?}");
            }
            assert!(seen.contains_key("-") && !seen.contains_key("dropped"), "{seen:?}");
        }
    }
}

#[test]
fn handlers_begin_and_end_profiles() {
    let mut r = router(&TEXT.replace("wait 1", "wait 0.1, write profile false, wait 1"), simulated(32).0);
    assert_eq!(r.read(None, "profile", "").unwrap(), "");
    assert!(r.write(None, "profile", "perhaps").is_err());
    r.write(None, "profile", "true").unwrap();
    r.run().unwrap();
    assert!(packets(&r.read(None, "profile", "").unwrap()).contains_key("source"));
    r.write(None, "profile", "true").unwrap();
    assert_eq!(r.read(None, "profile", "").unwrap(), "", "a new profile begins at zero");
}

#[test]
fn an_element_may_be_configured_while_it_is_measured() {
    // The 50th packet makes the script write. The queue keeps its packets.
    let text =
        "InfiniteSource(LIMIT 100) -> Script(TYPE PACKET, init n 0, set n $(add $n 1), goto done $(ne $n 50),
                write q.config 500, label done, return 0)
            -> q :: Queue(1000) -> Unqueue(ACTIVE false) -> Discard;
        DriverManager(wait 1, stop);";
    for batch in [1, 32] {
        let mut r = router(text, simulated(batch).0);
        r.running().begin_profile();
        r.run().unwrap();
        assert_eq!(r.read(r.find("q"), "length", "").unwrap(), "100");
        assert!(r.read(r.find("q"), "config", "").unwrap().contains("500"));
        r.ledger().check();
    }
}

#[test]
fn elements_under_a_lock_are_measured() {
    let text = "a :: InfiniteSource(LIMIT 30000) -> [0] q :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1) -> Discard;
        b :: InfiniteSource(LIMIT 30000) -> [0] q; Idle -> [1] q;
        r :: RED(1000, 2000, 0.1) -> Queue(1) -> Discard; c :: InfiniteSource(LIMIT 9000) -> r;
        d :: InfiniteSource(LIMIT 9000) -> r; DriverManager(wait 0.2, stop);";
    let mut r = router(text, real(2).0);
    r.running().begin_profile();
    r.run().unwrap();
    r.ledger().check();
    let seen = packets(&r.read(None, "profile", "").unwrap());
    assert!(seen.get("r").is_some_and(|n| *n > 0), "{seen:?}");
}
