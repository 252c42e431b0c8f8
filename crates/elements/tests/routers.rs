// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests behaviour of classes that is visible only in a whole router: seeds, free space in queues, names of
//! annotations, packet order.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_runtime::Options;
use castanet_testkit::{number, real, router, run, simulated, try_router, value, watched};

/// Runs a configuration with random elements under a seed. Returns the number of packets sampled, and their
/// bytes after bit errors.
fn drawn(text: &str, seed: Option<u64>) -> (u64, Vec<String>) {
    let (options, log) = simulated(32);
    let mut r = try_router(text, Options { seed, ..options }).unwrap();
    r.run().unwrap();
    r.ledger().check();
    (number(&mut r, "c", "count"), log.lines())
}

#[test]
fn random_classes_depend_on_the_seed_alone() {
    let path = "InfiniteSource(LENGTH 60, LIMIT 200, STOP true) -> s :: RandomSample(0.5) -> e :: RandomBitErrors(0.01)
        -> c :: Counter -> Print(MAXLENGTH 60) -> Discard;";
    let given = |seed| drawn(path, Some(seed));
    assert_eq!(given(7), given(7));
    assert!(given(7) != given(8));
    // A seed in the configuration has the same effect. A seed given to the run overrides it.
    let seeded = format!("RandomSeed(7); {path}");
    assert_eq!(drawn(&seeded, None), given(7));
    assert_eq!(drawn(&seeded, Some(8)), given(8));
    assert_eq!(drawn(&format!("RandomSeed; {path}"), Some(8)), given(8));
}

#[test]
fn the_seed_can_be_read() {
    for (text, seed, shown) in [("r :: RandomSeed(7)", None, "7"), ("r :: RandomSeed(7)", Some(8), "8")] {
        let (options, _) = simulated(32);
        let mut r = try_router(text, Options { seed, ..options }).unwrap();
        assert_eq!(value(&mut r, "r", "seed"), shown);
    }
}

#[test]
fn a_full_queue_between_workers_costs_one_source_nothing() {
    const LIMIT: u64 = 20_000;
    watched(|| {
        for (workers, sources, burst) in
            [(1, 1, 1), (2, 1, 1), (2, 1, 7), (4, 1, 7), (2, 2, 1), (4, 3, 7), (4, 3, 1)]
        {
            let source = format!("InfiniteSource(LENGTH 60, LIMIT {LIMIT}, BURST {burst}, STOP true) -> q;");
            let text = format!(
                "q :: Queue(64) -> Unqueue -> c :: Counter -> Discard; {} DriverManager({});",
                source.repeat(sources),
                vec!["pause"; sources].join(", ")
            );
            let mut r = router(&text, real(workers).0);
            r.run().unwrap();
            let what = format!("{workers} workers, {sources} sources, burst {burst}");
            let [sent, waiting] = [("c", "count"), ("q", "length")].map(|(e, h)| number(&mut r, e, h));
            let drops = number(&mut r, "q", "drops");
            assert_eq!(sent + waiting + drops, LIMIT * sources as u64, "{what}");
            // Several sources may see the same free space in the queue. If so, the packets of the source that sends
            // later are dropped.
            assert!(sources > 1 || drops == 0, "{what}: {drops} lost");
        }
    });
}

#[test]
fn unqueue2_leaves_packets_upstream_while_a_queue_is_full() {
    for burst in [1, 3, 8, 100, -1] {
        for batch in [1, 2, 32, 256] {
            let text = |class: &str| {
                format!(
                    "InfiniteSource(LENGTH 60, LIMIT 50, BURST 50) -> up :: Queue(100) -> u :: {class}({burst})
                     -> down :: Queue(5) -> t :: TimedSink(0.1);
                     Script(wait 2, stop);"
                )
            };
            let (mut r, _) = run(&text("Unqueue2"), batch);
            let lengths = (number(&mut r, "up", "length"), number(&mut r, "down", "length"));
            assert_eq!((number(&mut r, "down", "drops"), lengths.1), (0, 5), "burst {burst}, batch {batch}");
            assert_eq!(number(&mut r, "u", "packets"), 50 - lengths.0);
            let (mut r, _) = run(&text("Unqueue"), batch);
            assert!(number(&mut r, "down", "drops") > 0, "Unqueue pushes into a full queue");
        }
    }
}

#[test]
fn names_of_annotations_are_known_where_they_were_defined() {
    let text = "AnnotationInfo(MARK 40 1);
        InfiniteSource(LIMIT 9, STOP true) -> Paint(3, MARK) -> p :: CheckPaint(3, 40) -> c :: Counter -> Discard;
        p [1] -> Discard;";
    let (mut r, _) = run(text, 32);
    assert_eq!(number(&mut r, "c", "count"), 9);
    let inner = "elementclass C { AnnotationInfo(MARK 40 1); input -> Paint(3, MARK) -> output }
        Idle -> C -> Paint(3, MARK) -> Discard;";
    let error = try_router(inner, simulated(32).0).err().unwrap();
    assert!(error.contains("no annotation named 'MARK'") && error.contains("1 error"), "{error}");
}

#[test]
fn a_clipboard_sees_packets_one_by_one() {
    // At every batch size, the Clipboard copies the bytes of each packet before it writes them into the
    // packet's copy from the Tee. No other element in this configuration makes tasks move packets one by one.
    let source = "RandomSource(4, LIMIT 1000, BURST 32, STOP true)";
    let end = "k :: Classifier(0/00%80, -) -> c :: Counter -> Discard; k [1] -> Discard;";
    let text = format!(
        "{source} -> t :: Tee -> [0] b :: Clipboard(0/4) [0] -> Discard;
         t [1] -> Truncate(0) -> Pad(4) -> [1] b [1] -> {end}"
    );
    // Without the Clipboard, the source sends the same random bytes, because it has the same name.
    let want = number(&mut run(&format!("{source} -> {end}"), 1).0, "c", "count");
    assert!((400..600).contains(&want), "{want}");
    for batch in [1, 32, 256] {
        assert_eq!(number(&mut run(&text, batch).0, "c", "count"), want, "batch {batch}");
    }
}

#[test]
fn early_drops_are_the_same_in_batches() {
    let policies = [
        "RED(2, 9, 0.6, STABILITY 1)",
        "RED(3, 6, 0.3, STABILITY 2, GENTLE false)",
        "AdaptiveRED(8, 0.4, STABILITY 1)",
        "PI(200, 0.02, 0.015, 5, STABILITY 1)",
    ];
    for (policy, queue) in
        policies.iter().flat_map(|p| ["Queue(9)", "Queue(40)", "FrontDropQueue(9)"].map(|q| (p, q)))
    {
        // Bursts of 16 packets arrive every 5 ms, and 8 packets are sent in this time.
        let text = format!(
            "RandomSource(4, LIMIT 3000) -> Queue(3000) -> TimedUnqueue(0.005, 16) -> policy :: {policy} -> queue :: {queue}
                -> RatedUnqueue(1600) -> Print(MAXLENGTH 4) -> Discard;
             DriverManager(wait 3s, stop);"
        );
        let [one, many] = [1, 32].map(|batch| {
            let (mut r, log) = run(&text, batch);
            (number(&mut r, "policy", "drops"), number(&mut r, "queue", "drops"), log)
        });
        assert!((200..2000).contains(&one.0), "{policy}, {queue}: {} drops", one.0);
        assert_eq!(one, many, "{policy}, {queue}");
    }
}

#[test]
fn early_drops_allow_batches_where_they_know_their_queue() {
    // Packets of two lengths come by two ways. If they move one at a time, their lengths alternate at the queue.
    let alternate = |policy: &str, between: &str| {
        let text = format!(
            "InfiniteSource(LENGTH 60, LIMIT 4, BURST 4) -> t :: Tee -> Truncate(20) -> policy :: {policy};
             t [1] -> policy -> {between} queue :: Queue -> Unqueue -> Print(MAXLENGTH 0) -> Discard;
             DriverManager(wait 1s, stop);"
        );
        let (_, log) = run(&text, 32);
        assert_eq!(log.len(), 8, "{log:?}");
        log.windows(2).filter(|pair| pair[0] != pair[1]).count() > 1
    };
    for policy in ["RED(1000, 2000, 0.1", "AdaptiveRED(1000, 0.1", "PI(170, 0.1, 0.1, 1000"] {
        assert!(!alternate(&format!("{policy})"), ""), "{policy}");
        assert!(alternate(&format!("{policy}, QUEUES queue)"), ""), "{policy}");
        assert!(alternate(&format!("{policy})"), "Null ->"), "{policy}");
        // Without a queue, the length is always 0. If packets moved one at a time, output 0 would get those of one length only.
        let text = format!(
            "InfiniteSource(LENGTH 60, LIMIT 4, BURST 4) -> t :: Tee -> Truncate(20) -> policy :: {policy});
             t [1] -> policy -> r :: RoundRobinSwitch -> c :: Counter -> Discard; r [1] -> Discard;
             DriverManager(wait 1s, stop);"
        );
        let (mut r, _) = run(&text, 32);
        assert_eq!(number(&mut r, "c", "byte_count"), 2 * 20 + 2 * 60, "{policy}");
    }
}
