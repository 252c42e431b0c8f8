// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares long lists of rules with the rules one by one, on packets of every length.
#![allow(clippy::unwrap_used)]

mod clauses;
mod oracle;
mod packets;

use castanet_classify::{NoNames, Program};
use oracle::{Dir, Packet, Test, Tree};
use packets::{ADDRESSES, PORTS, Rng, packet};

/// A rule that few packets match: addresses and ports, sometimes with a test of any kind.
fn rule(rng: &mut Rng) -> Tree {
    let mut all = Vec::new();
    for dir in [Dir::Src, Dir::Dst] {
        if !rng.chance(4) {
            let mask = rng.pick(&[u32::MAX, u32::MAX, 0xffff_ff00, 0xffff_fff0, 0xffff_0000, 0xff00_0000]);
            let address = u32::from_be_bytes(rng.pick(&ADDRESSES)) ^ rng.pick(&[0, 0, 1, 6, 0x100, 0x7_0000]);
            let (rel, net) = (if rng.chance(20) { "!=" } else { "" }, mask != u32::MAX);
            all.push(Tree::Test(Test::Host { dir, mask, rel, address, net }));
        }
    }
    if !rng.chance(3) {
        let (dir, proto) = (rng.pick(&[Dir::Src, Dir::Dst, Dir::Dst]), rng.pick(&["tcp", "udp", "tcpudp"]));
        let (rel, value) = (rng.pick(&["", "", "", ">", "<="]), u32::from(rng.pick(&PORTS)));
        all.push(Tree::Test(Test::Port { dir, proto, mask: 0xffff, rel, value }));
    }
    if rng.chance(4) {
        all.push(Tree::random(rng, 1));
    }
    match all.len() {
        0 => Tree::random(rng, 2),
        1 => all.remove(0),
        _ if rng.chance(16) => Tree::Or(all),
        _ => Tree::And(all),
    }
}

#[test]
fn lists_of_expressions_at_every_length() {
    let mut rng = Rng(0x5eed_2001);
    let mut hits = [0usize; 3];
    for round in 0..45 {
        let count = [35, 80, 150, 300, 700][round % 5];
        let trees: Vec<Tree> = (0..count).map(|_| rule(&mut rng)).collect();
        let texts: Vec<String> = trees.iter().map(|t| t.text(&mut rng)).collect();
        let patterns: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (program, warnings) = Program::from_ip_classifier(&patterns, &NoNames).unwrap();
        let actions: Vec<usize> = trees.iter().map(|_| rng.pick(&[0, 0, 0, 1, 2, 3])).collect();
        let rules: Vec<String> = std::iter::zip(&actions, &texts)
            .map(|(a, t)| format!("{} {t}", ["allow", "1", "2", "deny"][*a]))
            .collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let (filter, _) = Program::from_ip_filter(&rules, &NoNames, 3).unwrap();
        let lines = filter.disassemble();
        let again = Program::assemble(lines.iter().map(String::as_str)).unwrap();
        let never: Vec<usize> =
            warnings.iter().filter(|w| !w.message.starts_with("rel")).map(|w| w.pattern).collect();
        for _ in 0..25 {
            let (ether, network) = packet(&mut rng);
            for len in 0..=network.len() {
                let p = Packet { ether: &ether, network: &network[..len] };
                let want = trees.iter().position(|t| t.holds(&p));
                let got = program.classify_frame(p.ether, p.network).port();
                assert_eq!(got, want, "round {round}: {count} rules, {len} of {network:02x?}");
                let action = want.map(|w| actions[w]).filter(|a| *a < 3);
                for filter in [&filter, &again] {
                    let got = filter.classify_frame(p.ether, p.network).port();
                    assert_eq!(got, action, "round {round}: {count} rules, {len} of {network:02x?}");
                }
                assert!(want.is_none_or(|w| !never.contains(&w)), "round {round}: {want:?}");
                hits[want.map_or(0, |w| 1 + usize::from(w > 20))] += 1;
            }
        }
    }
    assert!(hits.iter().all(|h| *h > 4_000), "{hits:?}");
}

#[test]
fn lists_of_patterns_at_every_length() {
    let mut rng = Rng(0x5eed_2002);
    for round in 0..40 {
        let mut patterns = Vec::new();
        while patterns.len() < [40, 120, 350, 600][round % 4] {
            // Patterns of few clauses would match all packets.
            patterns.extend(clauses::patterns(&mut rng).into_iter().filter(|p| p.len() > 2));
        }
        let texts = clauses::texts(&patterns, &mut rng);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (program, _) = Program::from_classifier(&texts).unwrap();
        for _ in 0..30 {
            let packet = clauses::packet(&patterns, &mut rng);
            for len in 0..=packet.len() {
                let want = clauses::first_match(&patterns, &packet[..len]);
                assert_eq!(program.classify(&packet[..len]).port(), want, "{round}: {len} of {packet:02x?}");
            }
        }
    }
}
