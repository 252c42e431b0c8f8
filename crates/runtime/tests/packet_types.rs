// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::packets` with the declarations of all classes: what is wrong, what is right, and that no packet of a
//! router contradicts the types that were found.
#![allow(clippy::unwrap_used, clippy::panic)]

mod packet_paths;

use castanet_graph::Graph;
use castanet_graph::packets::{Data as Start, PacketType, Types, check};
use castanet_lang::PortRef;
use castanet_runtime::swap::Loaded;
use castanet_testkit::simulated;
use packet_paths::{WITNESS, load, random_configuration};
use std::collections::HashSet;
use std::path::Path;

fn graph(text: &str) -> Graph {
    load(text).graph
}

/// Returns the diagnostics of a configuration, each as one line: severity, message, advice.
fn diagnostics(text: &str) -> Vec<String> {
    let line = |d: &castanet_lang::Diagnostic| {
        format!("{:?}: {} | {}", d.severity, d.message, d.helps.first().map_or("", String::as_str))
    };
    check(&graph(text)).iter().map(line).collect()
}

#[test]
fn wrong_configurations() {
    for (text, want) in [
        // Frames where IP packets are wanted.
        (
            "FromDevice(eth0) -> ttl :: DecIPTTL -> Discard;",
            "Error: 'ttl :: DecIPTTL' takes IP packets with marked header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have no marked IP header | strip the Ethernet header, check the IP header and mark it: FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> ttl",
        ),
        (
            "FromDevice(eth0) -> f :: IPFilter(allow tcp, deny all) -> Queue -> ToDevice(eth1);",
            "Error: 'f :: IPFilter' takes IP packets with marked header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have no marked IP header | mark the IP header, and keep the Ethernet frames: FromDevice(eth0) -> MarkIPHeader(14) -> f",
        ),
        (
            "FromDevice(eth0) -> Strip(14) -> ttl :: DecIPTTL -> Discard;",
            "Error: 'ttl :: DecIPTTL' takes IP packets with marked header, but stripped Ethernet frames from 'FromDevice@1 :: FromDevice' have no marked IP header | check the IP header and mark it: Strip(14) -> CheckIPHeader -> ttl",
        ),
        (
            "FromDevice(eth0) -> check :: CheckIPHeader -> Discard;",
            "Error: 'check :: CheckIPHeader' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have their Ethernet header there | strip the Ethernet header: FromDevice(eth0) -> Strip(14) -> check",
        ),
        (
            "FromDevice(eth0) -> check :: CheckIPHeader -> Queue -> ToDevice(eth1);",
            "Error: 'check :: CheckIPHeader' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have their Ethernet header there | the IP header is 14 bytes after the start of the data: CheckIPHeader(14)",
        ),
        (
            "FromDevice(eth0) -> CheckIPHeader(18.26.4.255 10.0.0.255) -> Discard;",
            "Error: 'CheckIPHeader@2 :: CheckIPHeader' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have their Ethernet header there | strip the Ethernet header: FromDevice(eth0) -> Strip(14) -> CheckIPHeader(...)",
        ),
        ("FromDevice(eth0) -> Strip(14) -> MarkIPHeader(14) -> Discard;", ""),
        (
            "FromDevice(eth0) -> MarkIPHeader -> Discard;",
            "Error: 'MarkIPHeader@2 :: MarkIPHeader' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@1 :: FromDevice' have their Ethernet header there | strip the Ethernet header: FromDevice(eth0) -> Strip(14) -> MarkIPHeader",
        ),
        // Prints nothing.
        (
            "FromDevice(eth0) -> IPPrint -> Discard;",
            "Warning: 'IPPrint@2 :: IPPrint' reads IP headers that are marked, but Ethernet frames from 'FromDevice@1 :: FromDevice' have no marked IP header | strip the Ethernet header, check the IP header and mark it: FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> IPPrint",
        ),
        // A source of packets without annotation, and a device of unknown type.
        (
            "InfiniteSource(LENGTH 60) -> DecIPTTL -> Discard;",
            "Error: 'DecIPTTL@2 :: DecIPTTL' takes IP packets with marked header, but the packets from 'InfiniteSource@1 :: InfiniteSource' have no marked IP header | check the IP header and mark it; if the packets have an Ethernet header, Strip(14) removes it first: InfiniteSource(LENGTH 60) -> CheckIPHeader -> DecIPTTL",
        ),
        (
            "FromDevice(uplink) -> IPClassifier(tcp) -> Discard;",
            "Error: 'IPClassifier@2 :: IPClassifier' takes IP packets with marked header, but the packets from 'FromDevice@1 :: FromDevice' have no marked IP header | check the IP header and mark it; if the packets have an Ethernet header, Strip(14) removes it first: FromDevice(uplink) -> CheckIPHeader -> IPClassifier(tcp)",
        ),
        // IP packets where frames are wanted.
        (
            "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> q :: Queue -> to :: ToDevice(eth1);",
            "Error: 'to :: ToDevice' takes Ethernet frames, but stripped Ethernet frames from 'FromDevice@1 :: FromDevice' have no Ethernet header | restore the Ethernet header, or make a new one with EtherEncap or ARPQuerier: q -> Unstrip(14) -> to",
        ),
        (
            "InfiniteSource -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> q :: Queue -> ToDevice(eth1);",
            "Error: 'ToDevice@4 :: ToDevice' takes Ethernet frames, but IP packets from 'UDPIPEncap@2 :: UDPIPEncap' have no Ethernet header | put an Ethernet header before them, with EtherEncap, or with ARPQuerier if addresses are to be found by ARP: q -> EtherEncap(0x0800, SRC, DST) -> ToDevice(eth1)",
        ),
        // Outputs of a Classifier that are confused.
        (
            "FromDevice(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800); c[1] -> ar :: ARPResponder(1.0.0.1 2:0:0:0:0:1) -> Discard; c[0] -> Discard;",
            "Error: 'ar :: ARPResponder' takes ARP packets in Ethernet frames, but Ethernet frames from 'FromDevice@1 :: FromDevice' are IP packets | the Classifier pattern of ARP packets is 12/0806",
        ),
        (
            "FromDevice(eth0) -> c :: Classifier(12/0806, 12/0800); c[0] -> Strip(14) -> ip :: CheckIPHeader -> Discard; c[1] -> Discard;",
            "Error: 'ip :: CheckIPHeader' takes packets that begin with an IP header, but stripped Ethernet frames from 'FromDevice@1 :: FromDevice' are ARP packets | the Classifier pattern of IP packets is 12/0800",
        ),
        // The second input of an ARPQuerier gets frames, the first one IP packets.
        (
            "aq :: ARPQuerier(1.0.0.1, 2:0:0:0:0:1) -> Discard; FromDevice(eth0) -> [0] aq; Idle -> [1] aq;",
            "Error: 'aq :: ARPQuerier' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@3 :: FromDevice' have their Ethernet header there | strip the Ethernet header: FromDevice(eth0) -> Strip(14) -> aq",
        ),
        (
            "KernelTun(10.0.0.1/24) -> h :: HostEtherFilter(2:0:0:0:0:1) -> Discard;",
            "Error: 'h :: HostEtherFilter' takes Ethernet frames, but the packets from 'KernelTun@1 :: KernelTun' have no Ethernet header | put an Ethernet header before them, with EtherEncap, or with ARPQuerier if addresses are to be found by ARP: KernelTun(10.0.0.1/24) -> EtherEncap(0x0800, SRC, DST) -> h",
        ),
        // One of two paths that join is wrong.
        (
            "FromDevice(eth0) -> Strip(14) -> q :: Queue; FromDevice(eth1) -> q -> Unqueue -> check :: CheckIPHeader -> Discard;",
            "Error: 'check :: CheckIPHeader' takes packets that begin with an IP header, but Ethernet frames from 'FromDevice@4 :: FromDevice' have their Ethernet header there | strip the Ethernet header: Unqueue -> Strip(14) -> check",
        ),
    ] {
        let want: Vec<&str> = Some(want).filter(|w| !w.is_empty()).into_iter().collect();
        assert_eq!(diagnostics(text), want, "{text}");
    }
}

#[test]
fn right_configurations() {
    for text in [
        "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Queue -> ToDevice(eth1);",
        "FromDevice(eth0) -> CheckIPHeader(14) -> IPFilter(allow all) -> Queue -> ToDevice(eth1);",
        "FromDevice(eth0) -> CheckIPHeader(18.26.4.255, 14) -> IPFilter(allow all) -> Queue -> ToDevice(eth1);",
        "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> Unstrip(14) -> Queue -> ToDevice(eth1);",
        "FromDevice(eth0) -> MarkIPHeader(14) -> StripToNetworkHeader -> DecIPTTL -> Discard;",
        "FromDevice(eth0) -> GetIPAddress(30) -> r :: StaticIPLookup(0/0 0) -> Queue -> ToDevice(eth1);",
        "FromDevice(eth0) -> Strip(18) -> CheckIPHeader -> Discard;",
        "FromDevice(eth0) -> VLANDecap -> Strip(14) -> CheckIPHeader -> Discard;",
        "FromDevice(eth0) -> StripEtherVLANHeader -> CheckIPHeader -> Discard;",
        "FromDevice(eth0, FORCE_IP true) -> IPClassifier(tcp) -> Discard;",
        // Devices that may have no link header.
        "FromDevice(tun0) -> CheckIPHeader -> Queue -> ToDevice(tun1);",
        "FromDevice(uplink) -> CheckIPHeader -> Queue -> ToDevice(uplink);",
        "FromDevice(eth0, ENCAP IP) -> CheckIPHeader -> Discard;",
        "FromDump(/dev/null) -> DecIPTTL -> Discard;",
        "KernelTun(10.0.0.1/24) -> IPPrint -> KernelTun(10.1.0.1/24) -> Discard;",
        "KernelTun(10.0.0.1/24, TAP true) -> HostEtherFilter(2:0:0:0:0:1) -> Discard;",
        "InfiniteSource -> EtherEncap(0x0806, 1:1:1:1:1:1, 2:2:2:2:2:2) -> ARPResponder(1.0.0.1 2:0:0:0:0:1) -> Discard;",
        "InfiniteSource -> MarkIPHeader -> ARPPrint -> Discard;",
        "InfiniteSource -> IPPrint -> Discard;",
        // IP in IP, and Ethernet in Ethernet.
        "RawSocket(ipip) -> StripIPHeader -> CheckIPHeader -> Discard;",
        "FromDevice(eth0) -> MarkIPHeader(14) -> CheckIPHeader(34) -> Discard;",
        "FromDevice(eth0) -> c :: Classifier(12/6558) -> Strip(14) -> Queue -> ToDevice(eth1);",
        // Paint tells the two types apart.
        "FromDevice(eth0) -> Paint(0) -> q :: Queue -> u :: Unqueue; FromDevice(eth1) -> Strip(14) -> CheckIPHeader -> Paint(1) -> q; u -> s :: PaintSwitch -> Queue -> ToDevice(eth0); s[1] -> DecIPTTL -> Discard;",
        "FromDevice(eth0) -> c :: Classifier(12/0806, 12/0800, -); c[0] -> ARPResponder(1.0.0.1 2:0:0:0:0:1) -> Discard; c[1] -> Strip(14) -> CheckIPHeader -> Discard; c[2] -> Discard;",
    ] {
        assert_eq!(diagnostics(text), [""; 0], "{text}");
    }
}

/// Adds the configurations below a folder: files, and the `click` blocks of Markdown and Rust files.
fn configurations_below(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.display().to_string();
        if entry.is_dir() {
            let skipped = ["target", ".git", "mistakes", "crashes", "corpus"];
            if skipped.iter().all(|s| !entry.ends_with(s)) {
                configurations_below(&entry, all);
            }
            continue;
        }
        let kind = entry.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if !["click", "md", "rs"].contains(&kind) {
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap();
        if kind == "click" {
            all.push((name, text));
            continue;
        }
        let mut block: Option<String> = None;
        for line in text.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or(line);
            match (line.trim(), &mut block) {
                ("```click", _) => block = Some(String::new()),
                ("```", _) => all.extend(block.take().map(|b| (name.clone(), b))),
                (_, Some(b)) => *b += &format!("{line}\n"),
                _ => {}
            }
        }
    }
}

#[test]
fn configurations_of_the_project_have_the_right_types() {
    let mut all = Vec::new();
    configurations_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut all);
    let mut read = 0;
    for (name, text) in all {
        // Some blocks are parts of configurations, and some files need packages or variables.
        let Ok(loaded) = castanet_testkit::load(&text) else { continue };
        read += 1;
        let wrong = check(&loaded.graph);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
    assert!(read > 200, "{read}");
}

/// Whether a packet may be of this type. Frames of these tests begin with 02, and their IP packets with 45.
fn fits(packets: PacketType, marked: bool, start: &str) -> bool {
    let protocol = |at: usize, protocol: Option<u16>| {
        protocol.is_none_or(|p| start.get(2 * at..2 * at + 4) == Some(&format!("{p:04x}")))
    };
    let contents = match packets.data {
        Start::Frame { at: 0, protocol: p } => start.starts_with("02") && protocol(12, p),
        Start::Network { at: 0, protocol: Some(0x800) } => start.starts_with("45"),
        _ => true,
    };
    packets.marked.is_none_or(|m| m == marked) && contents
}

/// The elements that packets reach from these elements.
fn behind(g: &Graph, mut open: Vec<usize>) -> HashSet<usize> {
    let mut seen = HashSet::new();
    while let Some(e) = open.pop() {
        for port in 0..g.outputs(e) {
            let next = g.downstream(PortRef { element: e, port }).iter().map(|p| p.element);
            open.extend(next.filter(|&e| seen.insert(e)));
        }
    }
    seen
}

#[test]
fn no_packet_contradicts_the_types() {
    let (mut compared, mut known, mut refused) = (0, 0, 0);
    for seed in 0..400 {
        let text = random_configuration(seed);
        let loaded: Loaded = load(&text);
        let g = loaded.graph.clone();
        let types = Types::new(&g);
        // Types are not followed beyond an element that refuses packets, though it may pass some of them on.
        let wrong: Vec<usize> = types.refused(&g).map(|p| p.element).collect();
        refused += wrong.len();
        let beyond = behind(&g, wrong);
        let (options, log) = simulated(1 + (seed as usize % 2) * 31);
        let (mut router, _) = loaded.build(options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        router.run().unwrap();
        for line in log.lines() {
            let [WITNESS, config, marked, start, _] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            let witness = g.flat.elements.iter().position(|e| e.class == WITNESS && e.config == config);
            let witness = witness.unwrap();
            if beyond.contains(&witness) {
                continue;
            }
            let all: Vec<PacketType> = types.input(&g, PortRef { element: witness, port: 0 }).collect();
            known += usize::from(!all.contains(&PacketType::ANY));
            compared += 1;
            let fit = all.iter().any(|&t| fits(t, marked == "true", start));
            assert!(fit, "seed {seed}: {line} is none of {all:?}\n{text}");
        }
    }
    assert!(compared > 2000 && known > 1000 && refused > 100, "{compared} {known} {refused}");
}
