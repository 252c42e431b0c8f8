// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::fastclassifier`: what it replaces and combines, that a router with fast classifiers treats packets as
//! before, and that the original comes back.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_classify::definitions::{Definitions, MEMBER};
use castanet_element::Random;
use castanet_graph::fastclassifier::{Fast, Options, fastclassifier, restore};
use castanet_lang::print::driver;
use castanet_lang::{Flat, archive};
use castanet_runtime::swap::Loaded;
use castanet_spec::ArgCx;
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::{simulated, try_router};
use std::collections::BTreeMap;

const ALL: Options = Options { combine: true, classes: true };

fn load(text: &str) -> Loaded {
    castanet_testkit::load(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn fast_with(text: &str, options: Options) -> (Fast, Flat) {
    let Loaded { graph, classes, .. } = load(text);
    let names = castanet_runtime::portable_names(&graph, classes.as_ref());
    let tree = |e: usize| {
        let element = graph.element(e)?;
        let cx = ArgCx { scope: element.scope(), names: &names, origin: names.origin() };
        castanet_elements::classify::program(graph.spec(e)?, &element.config, graph.outputs(e), cx)
    };
    let trees = (0..graph.len()).map(tree).collect();
    (fastclassifier(&graph, &trees, Definitions::default(), options), graph.flat)
}

/// Returns the text of an archive.
fn bundle(fast: &Fast) -> String {
    let definitions = fast.definitions.to_string();
    // What is written is what is read.
    assert_eq!(Definitions::parse(definitions.as_bytes()).unwrap().to_string(), definitions);
    let members = [("config", driver(&fast.flat)), (MEMBER, definitions)];
    let members = members.map(|(name, text)| (name.to_string(), text.into_bytes()));
    String::from_utf8(archive::write(&members).unwrap()).unwrap()
}

/// Returns the archive with fast classifiers, and checks that the original comes back.
fn transformed(text: &str, options: Options) -> (String, Fast) {
    let (fast, original) = fast_with(text, options);
    let before = load(&driver(&original)).graph.flat;
    let after = load(&bundle(&fast)).graph.flat;
    assert_eq!(driver(&restore(&after, &before, &fast.definitions)), driver(&before), "{text}");
    (bundle(&fast), fast)
}

#[test]
fn what_is_replaced_and_combined() {
    let kinds = "12/0800, 12/0806, -";
    for (text, lines, made) in [
        // Two classifiers with the same tree have one class.
        (
            "Idle -> a :: Classifier(12/0800, -) -> d :: Discard; a[1] -> d; Idle -> b :: Classifier( 12/08?0%fff0 , -); b[0] -> d; b[1] -> d;
             Idle -> c :: Classifier(12/0800,-) -> d; c[1] -> d;",
            "a :: FastClassifier@@a; b :: FastClassifier@@b; c :: FastClassifier@@a",
            &["a", "b", "c"][..],
        ),
        // A classifier behind another is part of it. The outputs keep their order.
        (
            &format!("Idle -> a :: Classifier({kinds}); a[0] -> d :: Discard; a[1] -> b :: Classifier(20/0001, 20/0002, -); a[2] -> e :: Discard;
             b[0] -> d; b[1] -> e; b[2] -> Null -> d;"),
            "a :: FastClassifier@@a; a [1] -> d; a [2] -> e; a [3] -> Null; a [4] -> e",
            &["a+b"],
        ),
        // Classifiers of different kinds stay apart, and so do those with another input or a name that is used.
        (
            "Idle -> a :: Classifier(12/0800, -); a[0] -> b :: IPClassifier(tcp, -); a[1] -> c :: Classifier(0/01, -); Idle -> c;
             b[0] -> d :: Discard; b[1] -> d; c[0] -> d; c[1] -> e :: Classifier(0/02, -); e[0] -> d; e[1] -> d; Script(print e.program);",
            "a :: FastClassifier@@a; b :: FastClassifier@@b; c :: FastClassifier@@c; e :: Classifier",
            &["a", "b", "c"],
        ),
        // A classifier of another kind does not keep its neighbours apart.
        (
            "Idle -> a :: Classifier(12/0800, -); a[0] -> b :: IPClassifier(tcp, -); a[1] -> c :: Classifier(0/01, -); b[0] -> d :: Discard; b[1] -> d;
             c[0] -> d; c[1] -> d;",
            "a :: FastClassifier@@a; b :: FastClassifier@@b; a [2] -> d",
            &["a+c", "b"],
        ),
        // IPFilter and IPClassifier are alike. Names of the configuration have their meaning, names of devices do not.
        (
            "AddressInfo(lan 10.0.0.0/8); Idle -> f :: IPFilter(deny src net lan, allow all) -> c :: IPClassifier(tcp, udp dst port www, -);
             c[0] -> d :: Discard; c[1] -> d; c[2] -> g :: IPFilter(allow src host lo) -> d; c[2] -> g;",
            "f :: FastClassifier@@f; g :: IPFilter; f [2] -> g",
            &["f+c"],
        ),
        // A compound's names.
        (
            "elementclass X { input -> c :: Classifier(12/0800, -) -> output; c[1] -> c2 :: Classifier(12/0806) -> Discard; } Idle -> x :: X -> Discard;",
            "x/c :: FastClassifier@@x_c",
            &["x/c+x/c2"],
        ),
        // In a cycle, the connection that closes it stays.
        (
            "Idle -> a :: Classifier(0/01, -); a[0] -> d :: Discard; a[1] -> b :: Classifier(1/01, -); b[0] -> d; b[1] -> a;",
            "a :: FastClassifier@@a; a [2] -> a",
            &["a+b"],
        ),
        // No source leads into this cycle.
        (
            "a :: Classifier(0/01, -); a[0] -> d :: Discard; a[1] -> b :: Classifier(1/01, -); b[0] -> d; b[1] -> a;",
            "a :: FastClassifier@@a; a [2] -> a",
            &["a+b"],
        ),
    ] {
        let (archive, fast) = transformed(text, ALL);
        let name = |declaration: &String| declaration.split(' ').next().unwrap().to_string();
        let got: Vec<String> = fast
            .made
            .iter()
            .map(|m| std::iter::once(&m.element).chain(&m.merged).map(name).collect::<Vec<_>>().join("+"))
            .collect();
        assert_eq!(got, made, "{text}\n{archive}");
        for line in lines.split("; ") {
            assert!(driver(&fast.flat).contains(line), "{line}\n{archive}");
        }
    }
}

#[test]
fn options_are_followed() {
    let text = "Idle -> a :: Classifier(12/0800, -); a[0] -> d :: Discard; a[1] -> b :: Classifier(12/0806, -); b[0] -> d; b[1] -> d;";
    let (_, fast) = transformed(text, Options { combine: false, classes: true });
    assert_eq!(fast.made.len(), 2);
    let (_, fast) = transformed(text, Options { combine: true, classes: false });
    let flat = driver(&fast.flat);
    let line =
        "a :: FastClassifier(data 3, 12/08000000%ffff0000 14 [0] 1, 12/08060000%ffff0000 14 [1] [2]);\n";
    assert!(flat.contains(line), "{flat}");
    assert!(fast.definitions.classes.is_empty());
}

#[test]
fn changes_after_the_transformation_stay() {
    let text = "Idle -> n :: Null -> a :: Classifier(12/0800, -); a[0] -> d :: Discard; a[1] -> b :: Classifier(12/0806, -); b[0] -> d; b[1] -> d;";
    let (fast, original) = fast_with(text, ALL);
    let changed = bundle(&fast).replace("n :: Null;", "n :: Tee ;");
    let before = load(&driver(&original)).graph.flat;
    let restored = driver(&restore(&load(&changed).graph.flat, &before, &fast.definitions));
    for line in [
        "n :: Tee;",
        "a :: Classifier(12/0800, -);",
        "b :: Classifier(12/0806, -);",
        "a [1] -> b",
        "b [1] -> d",
    ] {
        assert!(restored.contains(line), "{line}\n{restored}");
    }
    assert_eq!(restored.matches("->").count(), driver(&original).matches("->").count());
}

#[test]
fn configurations_of_the_project_come_back() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let (mut seen, mut made) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "click") {
            let text = std::fs::read_to_string(&file).unwrap();
            made += transformed(&text, ALL).1.made.len();
            seen += 1;
        }
    }
    assert!(seen > 20 && made > 10, "{seen} configurations, {made} classifiers");
}

/// Broken archives are errors with the place, when the router is built.
#[test]
fn damaged_archives_are_refused() {
    let plain = "Idle -> c :: FastClassifier@@c -> Discard; c[1] -> Discard;";
    let bundled = |config: &str, definitions: &str| {
        let members = [("config", config), (MEMBER, definitions)];
        let members = members.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec()));
        String::from_utf8(archive::write(&members).unwrap()).unwrap()
    };
    let with = |definitions: &str| bundled(plain, definitions);
    let right = "class FastClassifier@@c\ndata 2\n12/08000000%ffff0000 14 [0] [1]\n";
    let error = |text: &str| try_router(text, simulated(1).0).err().unwrap_or_default();
    assert_eq!(error(&with(right)), "");
    let undefined = "no archive defines the class 'FastClassifier@@c'";
    for (text, message) in [
        (
            with(&right.replace("[1]", "0")),
            "member 'fastclassifier' of the archive: line 3: a step leads to a later step",
        ),
        (with(&right.replace("data 2", "data 3")), "the decision tree has 3 outputs, but 2 are in use"),
        (with("garbage"), "member 'fastclassifier' of the archive: line 1: no class"),
        (with(&right.replace("@@c", "@@d")), undefined),
        (plain.to_string(), undefined),
        (bundled(&plain.replace("@@c", "@@c(5)"), right), "class 'FastClassifier@@c' takes no arguments"),
    ] {
        assert!(error(&text).contains(message), "{message}\n{}", error(&text));
    }
}

/// The observable results of a run: records by place, source and path, each in order; counts; drops by reason. Drops
/// by element differ, because elements are combined.
type Seen = (BTreeMap<String, Vec<String>>, BTreeMap<String, String>, BTreeMap<&'static str, u64>);

fn run(text: &str, batch: usize) -> Seen {
    let (options, log) = simulated(batch);
    let mut r = try_router(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    r.run().unwrap();
    r.ledger().check();
    let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in log.lines() {
        let end = line.match_indices(' ').nth(2).map_or(line.len(), |m| m.0);
        records.entry(line[..end].to_string()).or_default().push(line[end..].to_string());
    }
    let counting = |class: &str| ["Counter", "Numbers", "Sink"].contains(&class);
    let elements = r.shared().graph.flat.elements.iter().filter(|e| counting(&e.class));
    let names: Vec<String> = elements.map(|e| e.name.clone()).collect();
    let counts = names
        .into_iter()
        .map(|name| {
            let e = r.find(&name);
            let count = r.read(e, "count", "").unwrap();
            (name, count)
        })
        .collect();
    let mut drops = BTreeMap::new();
    for ((_, reason), n) in r.drops() {
        *drops.entry(reason.name()).or_default() += n;
    }
    (records, counts, drops)
}

/// Returns a random pattern of a Classifier. The packets of the test begin with small numbers.
fn pattern(random: &mut Random) -> String {
    let clause = |random: &mut Random| {
        let (offset, value, mask) =
            (random.below(4), random.below(8), [0x07, 0x03, 0x0f, 0x01][random.below(4) as usize]);
        let not = if random.below(4) == 0 { "!" } else { "" };
        format!("{not}{offset}/{:02x}%{mask:02x}", value & mask)
    };
    let clauses: Vec<String> = (0..1 + random.below(2)).map(|_| clause(random)).collect();
    clauses.join(" ")
}

/// Returns a configuration in which packets of random contents go through a tree of classifiers, some of them combined with
/// others, some with a Counter or a second input between.
fn classifiers(random: &mut Random) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    for s in 0..1 + random.below(2) {
        text += &format!("s{s} :: Numbers({s}, {}, {});\n", 20 + random.below(60), 1 + random.below(40));
        text += &format!("s{s} -> v{s} :: Edit({s}) -> w{s} :: Pick(3, 1);\n");
        open.extend([format!("w{s} [0]"), format!("w{s} [1]")]);
    }
    for number in 0..2 + random.below(8) {
        let from = open.swap_remove(random.below(open.len() as u64) as usize);
        let patterns: Vec<String> = (0..1 + random.below(4)).map(|_| pattern(random)).collect();
        let rest = if random.below(2) == 0 { ", -" } else { "" };
        let c = format!("c{number}");
        text += &format!("{c} :: Classifier({}{rest});\n", patterns.join(", "));
        let between = ["", "", "", "Counter -> ", "Paint(3) -> "][random.below(5) as usize];
        text += &format!("{from} -> {between}{c};\n");
        if random.below(5) == 0 && open.len() > 1 {
            let other = open.swap_remove(random.below(open.len() as u64) as usize);
            text += &format!("{other} -> {c};\n");
        }
        let outputs = patterns.len() + usize::from(!rest.is_empty());
        open.extend((0..outputs).map(|o| format!("{c} [{o}]")));
    }
    for (i, from) in open.into_iter().enumerate() {
        text += &format!("{from} -> Mark({i}) -> r{i} :: Record({i}) -> n{i} :: Counter -> Sink({i});\n");
    }
    text + "Quit(1000);\n"
}

#[test]
fn routers_with_fast_classifiers_do_the_same() {
    let mut random = Random::new(5, "classifiers");
    let (mut made, mut merged, mut spread) = (0, 0, 0);
    for seed in 0..150 {
        let text = if seed % 3 == 0 {
            let wish = Wish { marks: true, cycles: true, ..Wish::default() };
            Configuration::random(seed, wish).text()
        } else {
            classifiers(&mut random)
        };
        let (archive, fast) = transformed(&text, ALL);
        made += fast.made.len();
        merged += fast.made.iter().map(|m| m.merged.len()).sum::<usize>();
        let apart = transformed(&text, Options { combine: false, classes: false }).0;
        for batch in [1, 32] {
            let before = run(&text, batch);
            assert_eq!(before, run(&archive, batch), "seed {seed}, batch {batch}\n{text}\n{archive}");
            assert_eq!(before, run(&apart, batch), "seed {seed}, batch {batch}\n{text}\n{apart}");
            spread += before.0.len();
        }
    }
    assert!(made > 200 && merged > 100 && spread > 1000, "{made} made, {merged} merged, {spread} places");
}
