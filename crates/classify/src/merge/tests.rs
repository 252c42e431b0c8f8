// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divided lists do what the rules do one by one, in few steps, and stay small.

use super::*;
use crate::program::{Output, Program, Tree};
use crate::run::tests::effort;
use crate::{NoNames, Target};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Whether `e` holds for a packet of three words, of which the first `len` bytes are present.
fn holds(e: &Expr, words: [u32; 3], len: u32) -> bool {
    match e {
        Expr::Const(b) => *b,
        Expr::Atom(a) => a.need <= len && words[a.offset as usize / 4] & a.mask == a.value,
        Expr::Not(e) => !holds(e, words, len),
        Expr::And(v) => v.iter().all(|e| holds(e, words, len)),
        Expr::Or(v) => v.iter().any(|e| holds(e, words, len)),
        Expr::If(v) => holds(&v[if holds(&v[0], words, len) { 1 } else { 2 }], words, len),
    }
}

const MASKS: [u32; 8] = [0xff, 0xff, 0xf0, 0xfe, 0xffff_ff00, 0xffff_0000, 0x8000_0001, 0];

fn test(rng: &mut Rng) -> Expr {
    let (word, mask) = (rng.below(3) as u32, rng.pick(&MASKS));
    let values = [0x0101_0101, 0xc0a8_0000, 0x0a00_0000, 0x1234_5678];
    let value = (rng.pick(&values) ^ (rng.below(64) as u32)) & mask;
    let end = word * 4 + 4 - (mask.trailing_zeros() / 8).min(3);
    let need = end + rng.below((word * 4 + 5 - end) as usize) as u32;
    Expr::Atom(Atom { offset: word * 4, mask, value, need })
}

fn random(rng: &mut Rng, depth: usize) -> Expr {
    if depth == 0 {
        return test(rng);
    }
    match rng.below(12) {
        0 => Expr::Not(Box::new(random(rng, depth - 1))),
        1 => Expr::Or((0..rng.below(3)).map(|_| random(rng, depth - 1)).collect()),
        2 if rng.below(4) == 0 => Expr::If(Box::new([0; 3].map(|_| random(rng, depth - 1)))),
        3 if rng.below(8) == 0 => Expr::Const(rng.below(2) == 0),
        _ => Expr::And((0..2 + rng.below(2)).map(|_| random(rng, depth - 1)).collect()),
    }
}

/// A rule that few packets match, except one in eight.
fn selective(rng: &mut Rng, depth: usize) -> Expr {
    let mut all = vec![random(rng, depth - 1)];
    for _ in 0..rng.below(8).min(2) {
        let mask = rng.pick(&[u32::MAX, 0xffff_ff00, 0xffff_fff8, 0x00ff_ffff, 0xffff_0000, 0x0000_ffff]);
        let value =
            rng.pick(&[0x0101_0101, 0xc0a8_0000]) ^ (rng.pick(&[1, 0x101, 0x1_0100]) * rng.below(32) as u32);
        let end = 4 - mask.trailing_zeros() / 8;
        let word = 4 * rng.below(3) as u32;
        all.push(Expr::Atom(Atom { offset: word, mask, value: value & mask, need: word + end }));
    }
    all.reverse();
    Expr::And(all)
}

/// A packet that probably fulfills many of the tests of `e`.
fn towards(e: &Expr, words: &mut [u32; 3]) {
    match e {
        Expr::Const(_) => {}
        Expr::Atom(a) => {
            let word = &mut words[a.offset as usize / 4];
            *word = (*word & !a.mask) | a.value;
        }
        Expr::Not(e) => towards(e, words),
        Expr::And(v) | Expr::Or(v) => v.iter().for_each(|e| towards(e, words)),
        Expr::If(v) => v.iter().for_each(|e| towards(e, words)),
    }
}

fn walk(dag: &Dag, root: u32, words: [u32; 3], len: u32) -> u32 {
    let mut at = root;
    while let Some(n) = dag.get(at) {
        at = if holds(&Expr::Atom(n.atom), words, len) { n.yes } else { n.no };
    }
    at & !LEAF
}

/// Lists of random rules, in which most tests are prefixes and fields, and packets of all lengths.
#[test]
fn divided_lists_keep_the_order_of_rules() {
    let mut rng = Rng(0x5eed_0010);
    let (mut cuts, mut matched) = (0, [0; 2]);
    for round in 0..160 {
        let count = [33, 60, 120, 400][round % 4];
        let depth = 1 + round / 4 % 2;
        let exprs: Vec<Expr> = (0..count).map(|_| selective(&mut rng, depth)).collect();
        let actions: Vec<u32> = exprs.iter().map(|_| rng.pick(&[0, 0, 0, 1, DROP])).collect();
        let rules = Rules::new(OffsetBase::Data, &exprs).unwrap();
        let Some(parts) = Parts::new(rules) else { continue };
        cuts += parts.parts.len() / 2;
        let all = parts.parts.len();
        let mut trees = Vec::new();
        for actions in [None, Some(&actions[..])] {
            for all_present in [false, true] {
                for count in [all, (all / 2) | 1] {
                    let (dag, root) = parts.first(count, actions, all_present).unwrap();
                    trees.push((actions.is_some(), all_present, dag, root));
                }
            }
        }
        let program = |checked: usize, fast: usize| {
            let [checked, fast] = [checked, fast].map(|at| Tree::new(&trees[at].2, trees[at].3));
            Program::from_trees(OffsetBase::Data, count, fast, checked)
        };
        let programs = [program(0, 2), program(4, 6)];
        for _ in 0..200 {
            let mut words = [rng.next(), rng.next(), rng.next()];
            for _ in 0..rng.below(4) {
                towards(&exprs[rng.below(count)], &mut words);
            }
            for len in 0..=12 {
                let first = exprs.iter().position(|e| holds(e, words, len));
                matched[usize::from(first.is_some())] += 1;
                let want = [first.map_or(DROP, |f| f as u32), first.map_or(DROP, |f| actions[f])];
                for (by_action, all_present, dag, root) in &trees {
                    if len == 12 || !all_present {
                        let got = walk(dag, *root, words, len);
                        assert_eq!(got, want[usize::from(*by_action)], "round {round}, {len} of {words:x?}");
                    }
                }
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).take(len as usize).collect();
                let got = programs.each_ref().map(|p| p.classify(&bytes));
                assert_eq!(got, want.map(Output::from_number), "round {round}, {len} of {words:x?}");
            }
        }
    }
    assert!(cuts > 1000 && matched.iter().all(|m| *m > 20_000), "{cuts} cuts, {matched:?}");
}

/// If all bytes are present, a bit that is not set is clear, so the other half of the rules needs no test of it.
#[test]
fn known_bits_are_not_tested_again() {
    let equal = |offset, mask, value| Expr::Atom(Atom { offset, mask, value, need: offset + 4 });
    let rule = |i: u32| Expr::And(vec![equal(4, 1, i % 2), equal(0, 0xff, i / 2)]);
    let exprs: Vec<Expr> = (0..40).map(rule).collect();
    let parts = Parts::new(Rules::new(OffsetBase::Data, &exprs).unwrap()).unwrap();
    let [checked, fast] = [false, true].map(|all_present| parts.tree(None, all_present).unwrap());
    let tests = |dag: &Dag| dag.nodes.iter().filter(|n| n.atom.offset == 4).count();
    assert_eq!([tests(&checked.0), tests(&fast.0)], [2, 1]);
    for (a, b) in (0..24).flat_map(|a| [(a, 0), (a, 1)]) {
        let want = if a < 20 { a * 2 + b } else { DROP };
        assert_eq!(walk(&fast.0, fast.1, [a, b, 0], 8), want);
        assert_eq!(walk(&checked.0, checked.1, [a, b, 0], 8), want);
        assert_eq!(walk(&checked.0, checked.1, [a, b, 0], 7), DROP);
    }
}

fn net(rng: &mut Rng, side: &str, shortest: usize) -> String {
    let len = shortest + rng.below(33 - shortest);
    let base = rng.pick(&[0x0a00_0000, 0xc0a8_0000, 0xac10_0000]);
    let address = (base | (rng.next() & 0x000f_ffff)) & (u32::MAX << (32 - len));
    format!("{side} net {}/{len}", address.to_be_bytes().map(|b| b.to_string()).join("."))
}

/// A rule over all fields, or over some of them as in firewalls.
fn rule(rng: &mut Rng, all: bool) -> String {
    let proto = rng.pick(&["tcp", "udp"]);
    let port = rng.pick(&[22, 25, 53, 80, 110, 143, 443, 993, 3306, 8080]);
    let kind = if all { 0 } else { rng.below(10) };
    match kind {
        0 => format!("{} && {} && {proto} dst port {port}", net(rng, "src", 12), net(rng, "dst", 12)),
        1 => format!("{proto} src port {port} && dst port > 1023 && {}", net(rng, "src", 16)),
        2 => net(rng, "src", 16),
        3 => format!("{} && {proto} dst port {port} or {}", net(rng, "dst", 16), rng.below(65536)),
        4 | 5 => format!("{} && {}", net(rng, "src", 16), net(rng, "dst", 16)),
        _ => format!("{} && {proto} dst port {port}", net(rng, "dst", 24)),
    }
}

/// A packet from and to the networks of the rules, with ports that they have.
fn packet(rng: &mut Rng) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[9] = rng.pick(&[6, 17]);
    for at in [12, 16] {
        let base = rng.pick(&[0x0a00_0000, 0xc0a8_0000, 0xac10_0000]);
        packet[at..at + 4].copy_from_slice(&(base | (rng.next() & 0x000f_ffff)).to_be_bytes());
    }
    let ports = [rng.below(65536) as u16, rng.pick(&[22, 25, 53, 80, 110, 143, 443])];
    packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
    packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
    packet
}

/// With ten thousand rules, packets take few steps, though thousands of rules come before the one that matches.
#[test]
fn long_lists_take_few_steps() {
    for (all, most) in [(true, 100), (false, 100)] {
        let mut rng = Rng(0x5eed_0011);
        let rules: Vec<String> = (0..10_000).map(|_| rule(&mut rng, all)).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let (program, _) = Program::from_ip_classifier(&rules, &NoNames).unwrap();
        let packets: Vec<[u8; 40]> = (0..2000).map(|_| packet(&mut rng)).collect();
        let before = |p: &[u8; 40]| program.classify_ip(p).port().unwrap_or(rules.len());
        let tried = packets.iter().map(before).sum::<usize>() / packets.len();
        let steps = packets.iter().map(|p| effort(&program, p, 20)).sum::<usize>() / packets.len();
        assert!(steps <= most && tried > 20 * steps, "{steps} steps, {tried} rules tried");
        assert!(program.steps().len() < 80_000, "{}", program.steps().len());
    }
}

/// Lists that cannot be divided well do not grow much, and are compiled in a bounded number of steps.
#[test]
fn adverse_lists_stay_small() {
    type Make = fn(usize, &mut Rng) -> String;
    let ip: [(Make, usize); 8] = [
        (|_, _| "all".to_owned(), 1),
        (|_, _| "src net 10.0.0.0/8 && tcp dst port 80".to_owned(), 4),
        (|i, _| format!("host 10.0.{}.{}", i / 256, i % 256), 2),
        (
            |i, r| {
                format!("(src 10.0.{}.1 && dst port {}) or (dst 10.1.2.3 && tcp)", i % 256, r.below(65536))
            },
            6,
        ),
        (|_, r| format!("src port > {} && dst port < {}", r.below(65536), r.below(65536)), 40),
        (|_, r| format!("not src net 10.{}.0.0/16 && dst port != {}", r.below(256), r.below(65536)), 6),
        (|i, r| net(r, ["src", "dst"][i * 7 % 5 % 2], 24), 1),
        (|_, r| format!("tcp ? dst port {} : {}", r.below(65536), net(r, "src", 16)), 4),
    ];
    let data: [(Make, usize); 4] = [
        (|i, _| format!("{}/0102", i * 4), 1),
        (|i, _| format!("{}/{:02x}%{:02x}", i / 8 % 40, 1 << (i % 8), 1 << (i % 8)), 1),
        (|_, r| format!("0/{:08x}%{:08x} 4/{:08x}%{:08x}", r.next(), r.next(), r.next(), r.next()), 2),
        (|_, r| format!("!0/{:04x} !4/{:04x} 8/{:02x}", r.below(65536), r.below(65536), r.below(256)), 3),
    ];
    let mut rng = Rng(0x5eed_0012);
    for count in [100, 1500] {
        for (at, (make, tests)) in ip.iter().chain(&data).enumerate() {
            let rules: Vec<String> = (0..count).map(|i| make(i, &mut rng)).collect();
            let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
            let compiled = match at < ip.len() {
                true => Program::from_ip_classifier(&rules, &NoNames),
                false => Program::from_classifier(&rules),
            };
            let (program, _) = compiled.unwrap_or_else(|e| panic!("list {at}: {:?}", e.first()));
            let most = (GROWTH + 1) * tests * count;
            let (fast, checked) = (program.steps().len(), program.checked_steps().len());
            assert!(fast <= most && checked <= most, "list {at} of {count}: {fast} and {checked} steps");
            let later = |(at, s): (usize, &crate::Step)| {
                [s.yes, s.no].iter().all(|t| !matches!(t, Target::Step(to) if *to as usize <= at))
            };
            assert!(program.steps().iter().enumerate().all(later), "list {at} of {count}");
        }
    }
}
