// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::align`: where it inserts Align elements, that routers then treat packets as before, and that packet
//! data has the addresses that AlignmentInfo declares.
#![allow(clippy::unwrap_used, clippy::panic)]

mod packet_paths;

use castanet_graph::Graph;
use castanet_graph::align::{Changes, align};
use castanet_lang::print::driver;
use castanet_lang::{Connection, Element, Flat, PortRef};
use castanet_runtime::swap::Loaded;
use castanet_spec::Reason;
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::{simulated, try_router};
use packet_paths::{WITNESS, load, random_configuration};
use std::collections::BTreeMap;

/// Returns the aligned configuration, and what was changed.
fn transformed(text: &str) -> (Flat, Changes) {
    let loaded: Loaded = load(text);
    let (flat, changes) = align(loaded.graph.flat, loaded.classes.as_ref(), false);
    let (graph, errors) = Graph::new(flat, loaded.classes.as_ref());
    assert!(errors.iter().all(|d| !d.is_error()), "{errors:?}\n{text}\n{}", driver(&graph.flat));
    (graph.flat, changes)
}

#[test]
fn what_is_inserted_and_removed() {
    for (text, inserted, removed, info) in [
        // Devices align the IP header of Ethernet frames.
        ("FromDevice(eth0) -> Strip(14) -> ip :: CheckIPHeader -> Discard;", &[][..], &[][..], "ip  4 0"),
        ("FromDevice(eth0) -> ip :: CheckIPHeader(14) -> Discard;", &[], &[], "ip  4 2"),
        (
            "FromDevice(eth0) -> VLANDecap -> Strip(14) -> ip :: CheckIPHeader -> Discard;",
            &["ip"],
            &[],
            "ip  4 0",
        ),
        (
            "FromDevice(eth0, HEADROOM 29) -> Strip(14) -> ip :: CheckIPHeader -> Discard;",
            &["ip"],
            &[],
            "ip  4 0",
        ),
        ("FromDevice(uplink) -> Strip(14) -> ip :: CheckIPHeader -> Discard;", &["ip"], &[], "ip  4 0"),
        ("InfiniteSource -> Strip(14) -> ip :: CheckIPHeader -> Discard;", &["ip"], &[], "ip  4 0"),
        (
            "InfiniteSource -> ip :: CheckIPHeader -> ttl :: DecIPTTL -> Discard;",
            &[],
            &[],
            "ip  4 0, ttl  4 0",
        ),
        // Once aligned, headers stay aligned.
        (
            "InfiniteSource -> Strip(3) -> ip :: CheckIPHeader -> ttl :: DecIPTTL -> Discard;",
            &["ip"],
            &[],
            "ip  4 0, ttl  4 0",
        ),
        // A new header is not aligned for certain: without headroom, the packet moves to another buffer.
        (
            "InfiniteSource -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> p :: IPPrint -> Discard;",
            &["p"],
            &[],
            "p  4 0",
        ),
        // Two paths with different alignments meet: one Align mends both.
        (
            "InfiniteSource -> Strip(14) -> ip :: CheckIPHeader -> Discard; InfiniteSource -> ip;",
            &["ip"],
            &[],
            "ip  4 0",
        ),
        // One Align before a Tee in place of two behind it.
        (
            "InfiniteSource -> Strip(14) -> t :: Tee -> a :: CheckIPHeader -> Discard; t [1] -> b :: CheckIPHeader -> Discard;",
            &["t"],
            &[],
            "a  4 0, b  4 0",
        ),
        (
            "InfiniteSource -> Strip(14) -> t :: Tee -> a :: CheckIPHeader -> Discard; t [1] -> Discard;",
            &["a"],
            &[],
            "a  4 0",
        ),
        // Aligns that are redundant, that nobody needs, and that are needed.
        (
            "InfiniteSource -> x :: Align(4, 0) -> ip :: CheckIPHeader -> y :: Align(4, 2) -> Discard;",
            &[],
            &["x :: Align", "y :: Align"],
            "ip  4 0",
        ),
        (
            "InfiniteSource -> Strip(2) -> x :: Align(4, 0) -> ip :: CheckIPHeader -> Discard;",
            &[],
            &[],
            "ip  4 0",
        ),
        (
            "InfiniteSource -> Strip(2) -> x :: Align(8, 0) -> y :: Align(4, 0) -> ip :: CheckIPHeader -> Discard;",
            &[],
            &["y :: Align"],
            "ip  8 0",
        ),
        (
            "InfiniteSource -> Strip(2) -> x :: Align(4, 1) -> ip :: CheckIPHeader -> Discard;",
            &["ip"],
            &["x :: Align"],
            "ip  4 0",
        ),
        ("InfiniteSource -> Discard;", &[], &[], ""),
    ] {
        let (flat, changes) = transformed(text);
        let behind = |name: &str| {
            let e = flat.find(name.split_once(" :: ").unwrap().0).unwrap();
            let next = flat.connections.iter().find(|c| c.from.element == e).unwrap().to.element;
            flat.elements[next].name.clone()
        };
        let before: Vec<String> = changes.inserted.iter().map(|i| behind(i)).collect();
        assert_eq!(before, inserted, "{text}\n{}", driver(&flat));
        assert_eq!(changes.removed, removed, "{text}");
        let told = flat.elements.iter().find(|e| e.class == "AlignmentInfo").map_or("", |e| &e.config);
        assert_eq!(told, info, "{text}");
        // A second transformation changes nothing.
        let (again, changes) = transformed(&driver(&flat));
        assert_eq!((driver(&again), changes), (driver(&flat), Changes::default()), "{text}");
    }
}

#[test]
fn assertions_and_unknown_classes() {
    let loaded = load("InfiniteSource -> Strip(1) -> CheckIPHeader -> Discard;");
    let (flat, changes) = align(loaded.graph.flat, loaded.classes.as_ref(), true);
    assert_eq!(changes.inserted, ["CheckAlign@click_align@5 :: CheckAlign(4, 0)"]);
    assert!(flat.find("AlignmentInfo@click_align@6").is_some(), "{}", driver(&flat));
    // The result runs, and a second transformation inserts nothing.
    let text = driver(&flat);
    let loaded = load(&text);
    assert_eq!(align(loaded.graph.flat, loaded.classes.as_ref(), true).1, Changes::default(), "{text}");
    let (options, _) = simulated(32);
    let mut router =
        try_router(&text.replace(":: InfiniteSource", ":: InfiniteSource(LIMIT 5, STOP true)"), options)
            .unwrap();
    router.run().unwrap();
    let drops: Vec<_> = router.drops().into_iter().map(|((_, reason), n)| (reason, n)).collect();
    assert_eq!(drops, [(Reason::Misaligned, 5)], "{text}");
}

#[test]
fn configurations_of_the_project_stay_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "click") {
            let (flat, _) = transformed(&std::fs::read_to_string(&file).unwrap());
            assert_eq!(transformed(&driver(&flat)).1, Changes::default(), "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} configurations");
}

/// Runs a configuration. Returns its messages by their first word, with the number of each, and its drops.
type Seen = (BTreeMap<String, Vec<String>>, BTreeMap<(String, &'static str), u64>);

fn run(text: &str, batch: usize) -> Seen {
    let (options, log) = simulated(batch);
    let (mut r, _) = load(text).build(options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    r.run().unwrap();
    r.ledger().check();
    let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in log.lines() {
        // Only the address of the data may change.
        let line = if line.starts_with(WITNESS) { line.rsplit_once(' ').unwrap().0.into() } else { line };
        let place = line.match_indices(' ').nth(1).map_or(line.len(), |m| m.0);
        records.entry(line[..place].to_string()).or_default().push(line[place..].to_string());
    }
    let drops = r.drops().into_iter();
    let name = |e: u32| r.shared().graph.name(e as usize).to_string();
    let drops = drops.map(|((e, reason), n)| ((name(e), reason.name()), n)).collect();
    (records, drops)
}

#[test]
fn aligned_routers_do_the_same() {
    let mut inserted = 0;
    let random = |seed: u64| match seed % 2 {
        0 => random_configuration(seed),
        _ => Configuration::random(seed, Wish { marks: true, cycles: true, ..Wish::default() }).text(),
    };
    for seed in 0..150 {
        let text = random(seed);
        let (flat, changes) = transformed(&text);
        inserted += changes.inserted.len();
        for batch in [1, 32] {
            assert_eq!(run(&text, batch), run(&driver(&flat), batch), "seed {seed}, batch {batch}\n{text}");
        }
    }
    assert!(inserted > 40, "{inserted}");
}

/// Puts a Witness before each input that the AlignmentInfo of a configuration mentions. Returns the alignment declared
/// for each.
fn with_witnesses(flat: &mut Flat) -> Vec<(usize, usize)> {
    let info = flat.elements.iter().find(|e| e.class == "AlignmentInfo").map(|e| e.config.clone());
    let mut declared = Vec::new();
    for about in info.iter().flat_map(|i| i.split(',')) {
        let mut words = about.split_whitespace();
        let element = flat.find(words.next().unwrap()).unwrap();
        let numbers: Vec<usize> = words.map(|w| w.parse().unwrap()).collect();
        for (port, pair) in numbers.chunks(2).enumerate() {
            let to = PortRef { element, port };
            let from = PortRef { element: flat.elements.len(), port: 0 };
            let name = format!("declared{}", declared.len());
            let config = (1_000_000 + declared.len()).to_string();
            let like = flat.elements[element].clone();
            flat.elements.push(Element { name, class: WITNESS.into(), config, ..like });
            flat.connections.iter_mut().filter(|c| c.to == to).for_each(|c| c.to = from);
            flat.connections.push(Connection { from, to, span: Default::default() });
            declared.push((pair[0], pair[1]));
        }
    }
    declared
}

#[test]
fn data_has_the_declared_addresses() {
    let mut compared = 0;
    for seed in 0..300 {
        // An Unstrip that needs more headroom than there is moves packets to other buffers.
        let text = random_configuration(seed);
        let line = |l: &str| match l.split_once(" :: Unstrip") {
            Some((name, _)) => format!("{name} :: Null;\n"),
            None => format!("{l}\n"),
        };
        let text: String = text.lines().map(line).collect();
        let (mut flat, _) = transformed(&text);
        let declared = with_witnesses(&mut flat);
        let text = driver(&flat);
        let (options, log) = simulated(1 + (seed as usize % 2) * 31);
        let (mut r, _) = load(&text).build(options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        r.run().unwrap();
        for line in log.lines() {
            let [WITNESS, number, _, _, address] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let Some(&(modulus, offset)) =
                number.parse::<usize>().unwrap().checked_sub(1_000_000).and_then(|n| declared.get(n))
            else {
                continue;
            };
            compared += 1;
            let address: usize = address.parse().unwrap();
            assert_eq!(address % modulus, offset, "seed {seed}: {line}\n{text}");
        }
    }
    assert!(compared > 500, "{compared}");
}
