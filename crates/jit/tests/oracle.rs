// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine code and the interpreter send the same packets to the same outputs.
#![allow(clippy::unwrap_used)]

#[path = "../../classify/tests/clauses/mod.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod clauses;
#[path = "../../classify/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod oracle;
#[path = "../../classify/tests/packets/mod.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod packets;

use castanet_classify::{NoNames, Output, Program};
use castanet_jit::compile;
use castanet_native::Code;
use clauses::{patterns, texts};
use oracle::Tree;
use packets::Rng;

/// Checks all beginnings of a packet, and returns how many of them the code classified.
fn check(code: &Code, program: &Program, packet: &[u8]) -> usize {
    let ran = |len: &usize| {
        let data = &packet[..*len];
        let got = code.run(data).map(Output::from_number);
        assert!(got.is_none_or(|got| got == program.classify(data)), "{got:?} {data:02x?}\n{program}");
        got.is_some()
    };
    (0..=packet.len()).filter(ran).count()
}

#[test]
fn random_patterns() {
    let mut rng = Rng(0x5eed_3001);
    let (mut compiled, mut ran) = (0, 0);
    for _ in 0..200 {
        let patterns = patterns(&mut rng);
        let texts = texts(&patterns, &mut rng);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let program = Program::from_classifier(&texts).unwrap().0;
        let Some(code) = compile(&program) else { continue };
        compiled += 1;
        for _ in 0..12 {
            ran += check(&code, &program, &clauses::packet(&patterns, &mut rng));
        }
    }
    assert!(compiled > 100 && ran > 2_000, "{compiled} {ran}");
}

#[test]
fn random_expressions() {
    let mut rng = Rng(0x5eed_3002);
    let (mut compiled, mut ran) = (0, 0);
    for _ in 0..200 {
        let trees: Vec<Tree> = (0..1 + rng.below(4)).map(|_| Tree::random(&mut rng, 2)).collect();
        let texts: Vec<String> = trees.iter().map(|t| t.text(&mut rng)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let program = Program::from_ip_classifier(&texts, &NoNames).unwrap().0;
        let Some(code) = compile(&program) else { continue };
        compiled += 1;
        for _ in 0..20 {
            ran += check(&code, &program, &packets::packet(&mut rng).1);
        }
    }
    assert!(compiled > 50 && ran > 2_000, "{compiled} {ran}");
}

/// Patterns of two words with few values, so that there are long chains, equal values, and entries in the middle of chains.
#[test]
fn long_chains() {
    let mut rng = Rng(0x5eed_3003);
    let (mut compiled, mut outputs) = (0, 0);
    for count in [4, 5, 6, 12, 40, 300, 1000] {
        for mask in ["", "%ffff0000", "%00ff0000", "%0ffffff0"] {
            let range = count / 2 + 3;
            let word = |n: u32| {
                format!(
                    "{:08x}",
                    (n | (n << 16)) & u32::from_str_radix(mask.get(1..).unwrap_or("ffffffff"), 16).unwrap()
                )
            };
            let rules: Vec<(u32, u32)> =
                (0..count).map(|_| (rng.below(range) as u32, rng.below(4) as u32)).collect();
            let texts: Vec<String> =
                rules.iter().map(|(a, b)| format!("0/{}{mask} 4/{b:08x}", word(*a))).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let program = Program::from_classifier(&texts).unwrap().0;
            let Some(code) = compile(&program) else { continue };
            compiled += 1;
            for (a, b) in (0..range as u32 + 2).flat_map(|a| (0..5u32).map(move |b| (a, b))) {
                let data = [(a | (a << 16)).to_be_bytes(), b.to_be_bytes()].concat();
                assert_eq!(
                    code.run(&data).map(Output::from_number),
                    Some(program.classify(&data)),
                    "{count} rules, {a} {b}"
                );
                outputs += usize::from(program.classify(&data) != Output::DROP);
            }
        }
    }
    assert!(compiled > 20 && outputs > 1_000, "{compiled} {outputs}");
}

#[test]
fn programs_without_code() {
    for (patterns, why) in [
        (vec!["-"], "there is no test"),
        (vec!["src host 1.2.3.4 and ip ttl 3", "ether host 0:1:2:3:4:5"], "the Ethernet header is tested"),
    ] {
        let program = match why {
            "there is no test" => Program::from_classifier(&patterns).unwrap().0,
            _ => Program::from_ip_classifier(&patterns, &NoNames).unwrap().0,
        };
        assert!(compile(&program).is_none(), "{why}");
    }
    // Networks of many lengths are a path of many tests, which the interpreter searches.
    let nets: Vec<String> =
        (0..200u32).map(|n| format!("{} src net 10.{n}.0.0/{}", n % 2, 16 + n % 8)).collect();
    let nets: Vec<&str> = nets.iter().map(String::as_str).collect();
    let program = Program::from_ip_filter(&nets, &NoNames, 2).unwrap().0;
    assert!(program.is_searched() && compile(&program).is_none());
    let program = Program::from_ip_filter(&nets[..20], &NoNames, 2).unwrap().0;
    assert!(program.is_searched() && compile(&program).is_some());
    let many: Vec<String> =
        (0..castanet_jit::MAX_STEPS as u32 + 1).map(|n| format!("{}/{n:08x}", n % 7 * 4)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let program = Program::from_classifier(&many).unwrap().0;
    assert!(program.steps().len() > castanet_jit::MAX_STEPS && compile(&program).is_none());
}
