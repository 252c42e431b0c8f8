// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::network`: routers that were combined come out as they were, and links that are wrong are reported.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_classes::Registry;
use castanet_element::Random;
use castanet_graph::network::{Component, Link, Order, combine, components, uncombine};
use castanet_lang::{Flat, NoLibrary, Options, Sources, Unknown, load_bytes, print};
use castanet_testkit::random_graph::{Configuration, Wish};
use std::collections::BTreeSet;

/// Returns the flat configuration of a text. Unknown classes are accepted.
fn flat(text: &str) -> Flat {
    let registry = Registry::new();
    let options = Options { classes: &registry, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let (flat, diagnostics) = load_bytes(&mut Sources::new(), "config", text.as_bytes(), &options);
    assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:?}\n{text}");
    flat
}

fn combined(routers: &[(&str, &Flat)], links: &[Link], order: Order) -> Result<Flat, Vec<String>> {
    let all = routers.iter().map(|(name, flat)| Component { name: (*name).into(), flat: (*flat).clone() });
    combine(all.collect(), links, &Registry::new(), order)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// The elements of a configuration, in order, and its connections, as text.
fn parts(flat: &Flat) -> (Vec<String>, Vec<String>) {
    let name = |e: usize| &flat.elements[e].name;
    let elements = flat.elements.iter().map(|e| format!("{} :: {}({})", e.name, e.class, e.config));
    let connections = flat.connections.iter().map(|c| {
        format!("{} [{}] -> [{}] {}", name(c.from.element), c.from.port, c.to.port, name(c.to.element))
    });
    (elements.collect(), connections.collect())
}

fn sorted((elements, connections): (Vec<String>, Vec<String>)) -> (BTreeSet<String>, BTreeSet<String>) {
    (elements.into_iter().collect(), connections.into_iter().collect())
}

/// Checks that each router comes out as it was: the same elements and connections in the same order. After the combined
/// configuration has been printed and read again, connections may come in another order, and without places elements
/// also.
fn check_round_trip(routers: &[(&str, &Flat)], links: &[Link]) {
    let kept = combined(routers, links, Order::Kept).unwrap();
    let again = flat(&print::driver(&kept));
    let forgotten = combined(routers, links, Order::Forgotten).unwrap();
    assert_eq!(components(&kept), routers.iter().map(|r| r.0).collect::<Vec<_>>());
    for (name, before) in routers {
        let after = uncombine(&kept, name).unwrap();
        assert_eq!(parts(&after), parts(before), "{links:?}");
        let from_text = parts(&uncombine(&again, name).unwrap());
        assert_eq!(from_text.0, parts(before).0, "{links:?}");
        assert_eq!(sorted(from_text), sorted(parts(before)));
        assert_eq!(sorted(parts(&uncombine(&forgotten, name).unwrap())), sorted(parts(before)));
    }
}

/// Returns the names of the elements that can send (true) or receive over a link.
fn ends(flat: &Flat, sends: bool) -> Vec<String> {
    let class = if sends { "ToDevice" } else { "FromDevice" };
    let used = |i: usize| {
        let inputs = flat.connections.iter().filter(|c| c.to.element == i).count();
        let outputs = flat.connections.iter().filter(|c| c.from.element == i).count();
        if sends { (inputs > 0, outputs) == (true, 0) } else { (inputs, outputs > 0) == (0, true) }
    };
    let all = flat.elements.iter().enumerate().filter(|(i, e)| e.class == class && used(*i));
    all.map(|(_, e)| e.name.clone()).collect()
}

#[test]
fn configurations_of_the_project_come_out_as_they_were() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "click") {
            all.push(flat(&std::fs::read_to_string(&file).unwrap()));
        }
    }
    let mut pairs = 0;
    for a in &all {
        for b in &all {
            let ways = [(a, "A", b, "B"), (b, "B", a, "A")].into_iter().flat_map(|(from, f, to, t)| {
                let pairs = ends(from, true).into_iter().zip(ends(to, false));
                pairs.map(move |(x, y)| format!("{f}.{x}={t}.{y}").parse().unwrap()).collect::<Vec<Link>>()
            });
            let links: Vec<Link> = ways.collect();
            if !links.is_empty() {
                check_round_trip(&[("A", a), ("B", b)], &links);
                pairs += 1;
            }
        }
    }
    assert!(pairs >= 16, "{pairs} pairs");
}

#[test]
fn random_networks_come_out_as_they_were() {
    let mut random = Random::new(1, "networks");
    let mut merged = 0;
    for seed in 0..100 {
        let number = 1 + random.below(4) as usize;
        let routers: Vec<Flat> = (0..number)
            .map(|r| {
                let c = Configuration::random(seed * 4 + r as u64, Wish { cycles: true, ..Wish::default() });
                let mut lines: Vec<String> = c.text().lines().map(Into::into).collect();
                for d in 0..4 {
                    let ends = [format!("to{d} :: ToDevice(d{d});"), format!("from{d} :: FromDevice(d{d});")];
                    for line in ends {
                        lines.insert(random.below(1 + lines.len() as u64) as usize, line);
                    }
                }
                lines.extend((0..4).map(|d| format!("from{d} -> Queue -> to{};", (d + 1) % 4)));
                flat(&lines.join("\n"))
            })
            .collect();
        let names = ["A", "B", "C", "D"];
        let routers: Vec<(&str, &Flat)> = names.into_iter().zip(&routers).collect();
        let mut end = || format!("{}.d{}", names[random.below(number as u64) as usize], random.below(4));
        let links: Vec<Link> =
            (0..8).map(|n| format!("{}{}{}", end(), ["=", "=="][n % 2], end()).parse().unwrap()).collect();
        check_round_trip(&routers, &links);
        let flat = combined(&routers, &links, Order::Kept).unwrap();
        merged +=
            flat.elements.iter().filter(|e| e.name == "link1" && e.config.matches(" d").count() > 2).count();
        merged += usize::from(flat.elements.iter().filter(|e| e.class == "RouterLink").count() < 12);
    }
    assert!(merged > 10, "{merged} networks with links that share a device");
}

#[test]
fn how_links_become_elements() {
    let router = flat("from :: FromDevice(eth0) -> q :: Queue -> to :: ToDevice(eth0);");
    let routers = [("A", &router), ("B", &router), ("C", &router)];
    for (links, want) in [
        (
            &["A.eth0==B.from"][..],
            Err(
                "link A.eth0==B.from: 'from :: FromDevice' cannot send: a link replaces an element that has one connected input and no connected output",
            ),
        ),
        (
            &["A.eth0==B.eth0"],
            Ok(&[
                "A to ToDevice, \"eth0\", B from FromDevice, \"eth0\"",
                "B to ToDevice, \"eth0\", A from FromDevice, \"eth0\"",
            ][..]),
        ),
        (
            &["A.to=B.from", "A.eth0=C.eth0"],
            Ok(&["A to ToDevice, \"eth0\", B from FromDevice, \"eth0\", C from FromDevice, \"eth0\""]),
        ),
        (
            &["A.to=B.from", "C.eth0=B.eth0"],
            Ok(&["A to ToDevice, \"eth0\", C to ToDevice, \"eth0\", B from FromDevice, \"eth0\""]),
        ),
        (
            &["A.eth1=B.eth0"],
            Err(
                "link A.eth1=B.eth0: router A has no element and no ToDevice named eth1; it has ToDevice for eth0",
            ),
        ),
        (&["A.eth0=D.eth0"], Err("link A.eth0=D.eth0: there is no router D; the routers are A, B, C")),
        (
            &["A.q=B.eth0"],
            Err(
                "link A.q=B.eth0: 'q :: Queue' cannot send: a link replaces an element that has one connected input and no connected output",
            ),
        ),
    ] {
        let links: Vec<Link> = links.iter().map(|l| l.parse().unwrap()).collect();
        let got = combined(&routers, &links, Order::Forgotten).map(|flat| {
            let links = flat.elements.into_iter().filter(|e| e.class == "RouterLink");
            links.map(|e| e.config).collect::<Vec<_>>()
        });
        match want {
            Ok(want) => assert_eq!(got.unwrap(), want),
            Err(want) => assert_eq!(got.unwrap_err().first().map(String::as_str), Some(want)),
        }
    }
    let two = flat("FromDevice(eth0, FANOUT 1) -> d :: Discard; FromDevice(eth0, FANOUT 1) -> d;");
    let error = combined(&[("A", &router), ("B", &two)], &["A.eth0=B.eth0".parse().unwrap()], Order::Kept);
    assert_eq!(
        error.unwrap_err(),
        [
            "link A.eth0=B.eth0: several elements use B.eth0: FromDevice@1, FromDevice@3; name one of them instead of the device"
        ]
    );
    let error = combined(&[("A", &router), ("A", &router), ("1", &two)], &[], Order::Kept).unwrap_err();
    assert_eq!(error.len(), 2, "{error:?}");
}

#[test]
fn what_tools_add_stays_with_its_router() {
    let text = "A/from :: FromDevice(x); Idle@undead@1 :: Idle; B/d :: Discard; Info@1 :: AlignmentInfo; A/x :: Counter;\n\
                link1 :: RouterLink(A to ToDevice, \"eth0\", B eth FromDevice, \"eth0\");\n\
                A/from -> A/x -> Null@1 :: Null -> Null@2 :: Null -> link1 -> n :: Null -> B/d;\n";
    let network = flat(text);
    let names = |name| uncombine(&network, name).map(|f| parts(&f));
    assert_eq!(
        names("A").unwrap().0,
        [
            "from :: FromDevice(x)",
            "Idle@undead@1 :: Idle()",
            "Info@1 :: AlignmentInfo()",
            "x :: Counter()",
            "Null@1 :: Null()",
            "Null@2 :: Null()",
            "to :: ToDevice(eth0)"
        ]
    );
    assert_eq!(names("B").unwrap().1, ["eth [0] -> [0] n", "n [0] -> [0] d"]);
    for (text, router, error) in [
        ("Idle -> Discard", "A", "there is no router A: the configuration is not one of several routers"),
        ("A/i :: Idle -> B/d :: Discard", "C", "there is no router C; the routers are A, B"),
        (
            "A/i :: Idle -> B/d :: Discard",
            "A",
            "'A/i' is connected to 'B/d', which belongs to another router, without a RouterLink between them",
        ),
        (
            "A/i :: Idle -> l :: RouterLink(A x Y); l -> B/d :: Discard",
            "A",
            "'l :: RouterLink': expected two arguments for each port: ROUTER ELEMENT CLASS, and the element's configuration string in quotes",
        ),
        (
            "A/i :: Idle -> l :: RouterLink(A x Y, \"\"); l -> B/d :: Discard",
            "A",
            "'l :: RouterLink': its configuration string describes 1 ports, but 1 inputs and 1 outputs are connected",
        ),
    ] {
        assert_eq!(uncombine(&flat(text), router).unwrap_err().to_string(), error);
    }
}

#[test]
fn large_networks_are_combined_quickly() {
    let router = flat("from :: FromDevice(eth0) -> q :: Queue -> to :: ToDevice(eth0);");
    let names: Vec<String> = (0..20_000).map(|n| format!("r{n}")).collect();
    let routers: Vec<(&str, &Flat)> = names.iter().map(|n| (n.as_str(), &router)).collect();
    let links: Vec<Link> =
        (1..20_000).map(|n| format!("r{}.eth0=r{n}.eth0", n - 1).parse().unwrap()).collect();
    let flat = combined(&routers, &links, Order::Kept).unwrap();
    assert_eq!(flat.elements.len(), 20_000 * 3 - 19_999);
    assert_eq!(parts(&uncombine(&flat, "r777").unwrap()), parts(&router));
}
