// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares header expressions with an evaluator that walks the expression and reads the packet's bytes.
#![allow(clippy::unwrap_used)]

mod oracle;
mod packets;

use castanet_classify::{NoNames, Program};
use etherparse::Ipv4HeaderSlice;
use oracle::{Packet, Test, Tree};
use packets::{Rng, packet};

#[test]
fn random_expressions_at_every_length() {
    let mut rng = Rng(0x5eed_1001);
    let mut hits = [0usize; 3];
    for round in 0..500 {
        let trees: Vec<Tree> = (0..1 + rng.below(4)).map(|_| Tree::random(&mut rng, 2)).collect();
        let texts: Vec<String> = trees.iter().map(|t| t.text(&mut rng)).collect();
        let patterns: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (program, warnings) = Program::from_ip_classifier(&patterns, &NoNames)
            .unwrap_or_else(|e| panic!("{patterns:?}: {e:?}"));
        let actions: Vec<usize> = trees.iter().map(|_| rng.below(4)).collect();
        let rules: Vec<String> = std::iter::zip(&actions, &texts)
            .map(|(a, t)| format!("{} {t}", ["allow", "1", "2", "deny"][*a]))
            .collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let (filter, _) = Program::from_ip_filter(&rules, &NoNames, 3).unwrap();
        for _ in 0..4 {
            let (ether, network) = packet(&mut rng);
            for len in 0..=network.len() {
                let p = Packet { ether: &ether, network: &network[..len] };
                let want = trees.iter().position(|t| t.holds(&p));
                let got = program.classify_frame(p.ether, p.network).port();
                assert_eq!(got, want, "round {round}: {patterns:#?} {len} of {network:02x?}\n{program}");
                let action = want.map(|w| actions[w]).filter(|a| *a < 3);
                assert_eq!(filter.classify_frame(p.ether, p.network).port(), action, "{rules:#?}\n{filter}");
                hits[want.map_or(0, |w| 1 + w.min(1))] += 1;
                assert!(warnings.iter().all(|w| w.message.starts_with("rel") || Some(w.pattern) != want));
            }
        }
    }
    assert!(hits.iter().all(|h| *h > 7_000), "{hits:?}");
}

#[test]
fn every_test_alone_on_every_kind_of_packet() {
    let mut rng = Rng(0x5eed_1002);
    for _ in 0..800 {
        let test = Test::random(&mut rng);
        let text = test.text(&mut rng);
        let inverse = format!("not ({text})");
        let (program, _) = Program::from_ip_classifier(&[&text], &NoNames).unwrap();
        let (negated, _) = Program::from_ip_classifier(&[&inverse], &NoNames).unwrap();
        for _ in 0..20 {
            let (ether, mut network) = packet(&mut rng);
            if rng.chance(4) {
                // Any header length, including those below 5.
                network[0] = rng.below(256) as u8;
            }
            network.truncate(if rng.chance(3) { rng.below(48) } else { 99 });
            let p = Packet { ether: &ether, network: &network };
            let want = test.holds(&p);
            assert_eq!(
                program.classify_frame(&ether, &network).port().is_some(),
                want,
                "{text} {network:02x?}"
            );
            assert_eq!(negated.classify_frame(&ether, &network).port().is_none(), want, "{inverse}");
        }
    }
}

#[test]
fn fields_are_read_as_etherparse_reads_them() {
    let mut rng = Rng(0x5eed_1003);
    for _ in 0..300 {
        let (_, network) = packet(&mut rng);
        let ip = Ipv4HeaderSlice::from_slice(&network).unwrap();
        let address = |a: [u8; 4]| a.map(|b| b.to_string()).join(".");
        let rest = &network[ip.slice().len()..];
        let mut tests = vec![
            format!("ip vers {}", ip.version()),
            format!("ip hl {}", ip.ihl()),
            format!("ip dscp {}", ip.dcp().value()),
            format!("ip tos & 3 = {}", ip.ecn().value()),
            format!("ip len {}", ip.total_len()),
            format!("ip id {}", ip.identification()),
            format!("ip ttl {}", ip.ttl()),
            format!("ip proto {}", ip.protocol().0),
            format!("src {}", address(ip.source())),
            format!("dst {}", address(ip.destination())),
            (if ip.is_fragmenting_payload() { "frag" } else { "unfrag" }).to_owned(),
        ];
        if ip.fragments_offset().value() == 0 && ip.protocol().0 == 6 {
            let tcp = etherparse::TcpHeaderSlice::from_slice(rest).unwrap();
            tests.push(format!("tcp src port {}", tcp.source_port()));
            tests.push(format!("tcp dst port {}", tcp.destination_port()));
            tests.push(format!("tcp win {}", tcp.window_size()));
            for (set, name) in
                [(tcp.syn(), "syn"), (tcp.ack(), "ack"), (tcp.urg(), "urg"), (tcp.psh(), "psh")]
            {
                tests.push(format!("{}tcp opt {name}", if set { "" } else { "not " }));
            }
        }
        let all = tests.join(" and ");
        let (program, _) = Program::from_ip_classifier(&[&all], &NoNames).unwrap();
        assert_eq!(program.classify_ip(&network).port(), Some(0), "{all}\n{program}");
        assert_eq!(program.classify_ip(&network[..19]).port(), None);
    }
}
