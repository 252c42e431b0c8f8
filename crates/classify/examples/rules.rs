// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how long rule lists take to compile, and how long they take for a packet: `rules [NUMBER...]`, with the numbers of rules.

use std::hint::black_box;
use std::time::Instant;

use castanet_classify::{NoNames, OffsetBase, Program, Target};

/// A seeded random number generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(n)) >> 32) as u32
    }
}

/// A rule over five fields. `None` for a field that it does not test.
#[derive(Clone, Copy, Default)]
struct Rule {
    /// Address and length of the prefix.
    src: Option<(u32, u32)>,
    dst: Option<(u32, u32)>,
    proto: Option<u8>,
    /// The first and the last port.
    sport: Option<(u16, u16)>,
    dport: Option<(u16, u16)>,
}

impl Rule {
    fn text(&self) -> String {
        let net = |side: &str, net: Option<(u32, u32)>| {
            let address = |n: u32| n.to_be_bytes().map(|b| b.to_string()).join(".");
            net.map(|(n, len)| match len {
                32 => format!("{side} host {}", address(n)),
                _ => format!("{side} net {}/{len}", address(n)),
            })
        };
        let port = |side: &str, range: Option<(u16, u16)>| {
            range.map(|(low, high)| match (low, high) {
                _ if low == high => format!("{side} port {low}"),
                (0, _) => format!("{side} port <= {high}"),
                (_, 65535) => format!("{side} port >= {low}"),
                _ => format!("{side} port >= {low} && {side} port <= {high}"),
            })
        };
        let proto = self.proto.map(|p| format!("ip proto {p}"));
        let parts = [net("src", self.src), net("dst", self.dst), proto, port("src", self.sport)];
        let parts: Vec<String> = parts.into_iter().chain([port("dst", self.dport)]).flatten().collect();
        if parts.is_empty() { "all".to_owned() } else { parts.join(" && ") }
    }

    /// A packet that matches the rule.
    fn packet(&self, rng: &mut Rng) -> [u8; 40] {
        let mut address = |net: Option<(u32, u32)>| {
            let (net, len) = net.unwrap_or((0, 0));
            let host = u32::MAX.checked_shr(len).unwrap_or(0);
            net | (rng.next() & host)
        };
        let (src, dst) = (address(self.src), address(self.dst));
        let mut port = |range: Option<(u16, u16)>| {
            let (low, high) = range.unwrap_or((0, 65535));
            low + rng.below(u32::from(high - low) + 1) as u16
        };
        let (sport, dport) = (port(self.sport), port(self.dport));
        let mut packet = [0; 40];
        packet[0] = 0x45;
        packet[9] = self.proto.unwrap_or([6, 17][rng.below(2) as usize]);
        packet[12..16].copy_from_slice(&src.to_be_bytes());
        packet[16..20].copy_from_slice(&dst.to_be_bytes());
        packet[20..22].copy_from_slice(&sport.to_be_bytes());
        packet[22..24].copy_from_slice(&dport.to_be_bytes());
        packet
    }
}

fn prefix(rng: &mut Rng, shortest: u32, longest: u32) -> (u32, u32) {
    let len = shortest + rng.below(longest - shortest + 1);
    // A few large networks hold most of the addresses.
    let base = if rng.below(4) > 0 { [10 << 24, 0xc0a8_0000, 0xac10_0000][rng.below(3) as usize] } else { 0 };
    let host = if base == 0 { u32::MAX } else { 0x000f_ffff };
    let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
    ((base ^ (rng.next() & host)) & mask, len)
}

const SERVICES: [u16; 10] = [22, 25, 53, 80, 110, 143, 443, 993, 3306, 8080];

/// Rules that test all five fields.
fn random(rng: &mut Rng) -> Rule {
    let port =
        |rng: &mut Rng| if rng.below(2) == 0 { SERVICES[rng.below(10) as usize] } else { rng.next() as u16 };
    let (sport, dport) = (port(rng), port(rng));
    Rule {
        src: Some(prefix(rng, 8, 32)),
        dst: Some(prefix(rng, 8, 32)),
        proto: Some([6, 17][rng.below(2) as usize]),
        sport: (rng.below(3) == 0).then_some((sport, sport)),
        dport: Some((dport, dport)),
    }
}

/// Rules as sites have them: a wide or no source for services, a wide or no destination for clients, and pairs of networks.
fn firewall(rng: &mut Rng) -> Rule {
    let service = SERVICES[rng.below(10) as usize];
    let proto = Some([6, 6, 6, 17][rng.below(4) as usize]);
    let exact = Some((service, service));
    let dport = match rng.below(10) {
        0 => None,
        1 => Some((1024, 65535)),
        2 => {
            let low = rng.below(60_000) as u16;
            Some((low, low + rng.below(5000) as u16))
        }
        _ => exact,
    };
    match rng.below(100) {
        0..50 => Rule { dst: Some(prefix(rng, 24, 32)), proto, dport, ..Rule::default() },
        50..60 => Rule { src: Some(prefix(rng, 16, 32)), proto, dport, ..Rule::default() },
        60..65 => Rule { src: Some(prefix(rng, 16, 24)), ..Rule::default() },
        65..68 => Rule { dst: Some(prefix(rng, 16, 24)), ..Rule::default() },
        68..70 => Rule { proto, sport: exact, dport: Some((1024, 65535)), ..Rule::default() },
        _ => Rule {
            src: Some(prefix(rng, 16, 32)),
            dst: Some(prefix(rng, 16, 32)),
            proto: (rng.below(4) > 0).then_some(6),
            dport: if rng.below(2) == 0 { dport } else { None },
            ..Rule::default()
        },
    }
}

fn host(rng: &mut Rng) -> Rule {
    Rule { src: Some((rng.next(), 32)), ..Rule::default() }
}

fn net(rng: &mut Rng) -> Rule {
    Rule { src: Some(prefix(rng, 8, 32)), ..Rule::default() }
}

fn port(rng: &mut Rng) -> Rule {
    let port = rng.next() as u16;
    Rule { proto: Some([6, 17][rng.below(2) as usize]), dport: Some((port, port)), ..Rule::default() }
}

type Kind = (&'static str, fn(&mut Rng) -> Rule);
const KINDS: [Kind; 5] =
    [("random", random), ("firewall", firewall), ("hosts", host), ("nets", net), ("ports", port)];

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let numbers = if numbers.is_empty() { vec![100, 1_000, 10_000] } else { numbers };
    for (name, make) in KINDS {
        for &number in &numbers {
            let mut rng = Rng(0x5eed);
            let rules: Vec<Rule> = (0..number).map(|_| make(&mut rng)).collect();
            // Every tenth rule denies.
            let deny: Vec<bool> = rules.iter().map(|_| rng.below(10) == 0).collect();
            let with = |allow: bool| -> Vec<String> {
                let action = |deny: bool| match (allow, deny) {
                    (false, _) => "",
                    (true, true) => "deny ",
                    (true, false) => "allow ",
                };
                rules.iter().zip(&deny).map(|(r, d)| action(*d).to_owned() + &r.text()).collect()
            };
            measure(name, "filter", &rules, &with(true), &mut rng, |r| {
                Program::from_ip_filter(r, &NoNames, 1).ok()
            });
            measure(name, "classes", &rules, &with(false), &mut rng, |r| {
                Program::from_ip_classifier(r, &NoNames).ok()
            });
        }
    }
}

fn measure<W>(
    name: &str,
    form: &str,
    rules: &[Rule],
    texts: &[String],
    rng: &mut Rng,
    compile: impl Fn(&[&str]) -> Option<(Program, W)>,
) {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let start = Instant::now();
    let Some((program, _)) = compile(&texts) else {
        println!("{name:8} {form:7} {:6} rules: refused", rules.len());
        return;
    };
    let compiled = start.elapsed().as_secs_f64() * 1e3;
    // Half of the packets match a rule, half are random.
    let packets: Vec<[u8; 40]> = (0..4096)
        .map(|i| {
            let rule =
                if i % 2 == 0 { rules[rng.below(rules.len() as u32) as usize] } else { Rule::default() };
            rule.packet(rng)
        })
        .collect();
    let steps: usize = packets.iter().map(|p| steps(&program, p)).sum();
    let mut best = f64::MAX;
    for _ in 0..30 {
        let t = Instant::now();
        let mut sum = 0u32;
        for p in &packets {
            sum = sum.wrapping_add(black_box(&program).classify_ip(black_box(p)).number());
        }
        black_box(sum);
        best = best.min(t.elapsed().as_nanos() as f64 / packets.len() as f64);
    }
    println!(
        "{name:8} {form:7} {:6} rules: compiled in {compiled:7.1} ms, {:6} steps, {:8.1} steps a packet, {best:8.1} ns a packet{}",
        rules.len(),
        program.steps().len(),
        steps as f64 / packets.len() as f64,
        if program.is_searched() { ", searched" } else { "" },
    );
}

/// The number of steps that a packet passes if none is skipped by a search.
fn steps(program: &Program, packet: &[u8; 40]) -> usize {
    assert_eq!(program.kind(), OffsetBase::Ip);
    let (mut at, mut count) = (program.root(), 0);
    while let Target::Step(i) = at {
        let Some(step) = program.steps().get(i as usize) else { break };
        let offset = step.offset as usize;
        let start = if offset >= 512 { offset - 512 + 20 } else { offset - 256 };
        let word =
            packet.get(start..start + 4).map_or(0, |b| b.iter().fold(0, |n, b| n << 8 | u32::from(*b)));
        at = if word & step.mask == step.value { step.yes } else { step.no };
        count += 1;
    }
    count
}
