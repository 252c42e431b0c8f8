// SPDX-License-Identifier: MIT OR Apache-2.0
use super::{Data, PacketType, Types, check};
use crate::csr::STEPS;
use crate::testing::{checked, graph, rendered};
use castanet_lang::PortRef;
use castanet_spec::packets::{Amount, Contents, Gives};

#[test]
fn the_path_is_shown() {
    let many = " -> Counter".repeat(20);
    for (name, text) in [
        ("connected", "Frames -> WantsIp -> Discard;".to_string()),
        ("agnostic", "f :: Frames -> q :: Queue -> Unqueue -> ip :: WantsIp -> Discard;".into()),
        ("long", format!("Frames{many} -> WantsIp -> Discard;")),
        ("joined", "f :: Frames -> c :: Counter; Packets -> c -> WantsIp -> Discard;".into()),
        ("compound", "elementclass C { input -> WantsIp -> output } Frames -> C -> Discard;".into()),
        ("stripped", "Packets -> WantsEther -> Discard;".into()),
    ] {
        let (graph, errors, sources) = checked(&text);
        assert!(errors.is_empty(), "{errors:?}");
        insta::assert_snapshot!(name, rendered(&check(&graph), &sources));
    }
}

#[test]
fn each_input_is_reported_once() {
    for (text, errors) in [
        ("Frames -> WantsIp -> WantsIp -> Discard;", 1),
        ("f :: Frames; g :: Frames; f -> ip :: WantsIp -> Discard; g -> ip;", 1),
        ("Frames -> t :: Tee -> WantsIp -> Discard; t[1] -> WantsIp -> Discard;", 2),
        ("Packets -> WantsIp -> Discard;", 0),
        // Nothing is known about these packets.
        ("Source -> WantsIp -> Discard;", 0),
        ("Frames -> Unheard -> WantsIp -> Discard;", 0),
        // A classifier may send frames and IP packets to different outputs.
        (
            "f :: Frames -> c :: Classifier -> WantsIp -> Discard; Packets -> c; c[1] -> WantsEther -> Discard;",
            0,
        ),
        // Without IP packets, all packets of both outputs are frames.
        ("Frames -> c :: Classifier -> WantsIp -> Discard; c[1] -> WantsEther -> Discard;", 1),
    ] {
        assert_eq!(check(&graph(text)).len(), errors, "{text}");
    }
}

/// The types in a cycle are finitely many, though each turn strips a byte.
#[test]
fn cycles_end() {
    let g = graph("Frames -> s :: StripOne -> t :: Tee -> s; t[1] -> WantsEther -> Discard;");
    // Packets of many types enter the Tee, which has several outputs, so nothing is known about them afterwards.
    assert_eq!(check(&g).len(), 0);
    let types = Types::new(&g);
    let at = PortRef { element: g.find("t").unwrap_or_default(), port: 0 };
    let all: Vec<_> = types.input(&g, at).collect();
    assert!(all.len() < 10 && all.contains(&PacketType::ANY), "{all:?}");
}

/// The work grows in proportion to the configuration, even if many inputs refuse packets that come a long way.
#[test]
fn work_is_linear() {
    let steps = |n: usize| {
        let text = format!("Frames{} -> t :: Tee;", " -> Counter".repeat(n))
            + &(0..n).map(|i| format!("t[{i}] -> WantsIp -> Discard;\n")).collect::<String>();
        let g = graph(&text);
        STEPS.set(0);
        assert_eq!(check(&g).len(), n.min(500));
        STEPS.get()
    };
    let (few, many) = (steps(600), steps(2400));
    assert!(many < 5 * few, "{few} {many}");
}

#[test]
fn what_elements_do() {
    let frame = |at, protocol| PacketType { data: Data::Frame { at, protocol }, marked: Some(false) };
    let ip = |at| PacketType { data: Data::Network { at, protocol: Some(0x800) }, marked: Some(true) };
    let (n, k) = (Amount::Number, Some(0x800));
    for (before, gives, after) in [
        (frame(0, None), Gives::Strip(n(14)), frame(14, None)),
        (frame(14, k), Gives::Unstrip(n(14)), frame(0, k)),
        (frame(0, None), Gives::Strip(Amount::Unknown), PacketType { data: Data::Any, marked: Some(false) }),
        (frame(0, None), Gives::Strip(n(i64::MAX)), PacketType { data: Data::Any, marked: Some(false) }),
        (frame(14, None), Gives::Check(n(0)), PacketType { marked: Some(true), ..frame(14, k) }),
        (PacketType::ANY, Gives::Check(n(14)), ip(-14)),
        (
            PacketType { marked: Some(true), ..frame(14, k) },
            Gives::ToNetwork,
            PacketType { data: Data::Network { at: 0, protocol: None }, marked: Some(true) },
        ),
        (frame(0, None), Gives::ToNetwork, frame(0, None)),
        (ip(0), Gives::Framed(Some(n(0x806))), PacketType { marked: Some(true), ..frame(0, Some(0x806)) }),
        (frame(0, None), Gives::OfType(Some(0x806)), frame(0, Some(0x806))),
        (frame(14, None), Gives::OfType(Some(0x806)), frame(14, None)),
        (ip(0), Gives::Fixed(Contents::Any, None), PacketType::ANY),
    ] {
        assert_eq!(before.after(gives), after, "{before:?} {gives:?}");
    }
    let joined = PacketType { marked: None, data: Data::Network { at: 0, protocol: k } };
    assert_eq!(ip(0).join(frame(14, k)), joined);
    assert_eq!(ip(0).join(frame(0, k)), PacketType::ANY);
    assert_eq!(frame(0, k).join(frame(0, None)), frame(0, None));
}
