// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the program compiled from patterns: `program c|i|f PATTERN...` for `Classifier`, `IPClassifier` or
//! `IPFilter`. `program bench` times some programs.

use std::hint::black_box;
use std::time::Instant;

use castanet_classify::{NoNames, Program};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((kind, patterns)) = args.split_first() else {
        eprintln!("usage: program c|i|f PATTERN... | program bench");
        return;
    };
    if kind == "bench" {
        return bench();
    }
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    match compile(kind, &patterns) {
        Ok((program, warnings)) => {
            warnings.iter().for_each(|w| println!("warning: {w}"));
            print!("{program}");
        }
        Err(errors) => {
            errors.iter().for_each(|e| println!("{e} at {:?}, expected {:?}", e.range, e.expected))
        }
    }
}

fn compile(
    kind: &str,
    patterns: &[&str],
) -> Result<(Program, Vec<castanet_classify::Warning>), Vec<castanet_classify::PatternError>> {
    match kind {
        "c" => Program::from_classifier(patterns),
        "i" => Program::from_ip_classifier(patterns, &NoNames),
        _ => Program::from_ip_filter(patterns, &NoNames, patterns.len()),
    }
}

/// Prints nanoseconds per classification, over 1024 packets with different protocols and ports.
fn bench() {
    let firewall = [
        "deny src net 10.1.0.0/16",
        "allow dst host 10.1.0.1 and tcp dst port smtp and src port > 1023",
        "allow dst host 10.1.0.1 and tcp src port smtp and dst port > 1023 and tcp opt ack",
        "allow dst host 10.1.0.1 and tcp dst port www and src port > 1023",
        "allow dst host 10.1.0.1 and tcp src port www and dst port > 1023 and tcp opt ack",
        "allow dst host 10.1.0.1 and tcp dst port ssh",
        "allow dst host 10.1.0.1 and udp dst port dns and src port > 1023",
        "allow dst host 10.1.0.1 and udp src port dns and dst port dns",
        "deny all",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut packets: Vec<[u8; 60]> = Vec::new();
    for _ in 0..1024 {
        let mut p = [0u8; 60];
        p[12] = 8;
        p[14] = 0x45;
        p[23] = [6, 6, 17][below(3)];
        p[26..34].copy_from_slice(&[20, 1, 1, 7, 10, 1, 0, 1]);
        p[34..38].copy_from_slice(
            &[[0x10, 0, 0, 53], [0x10, 0, 0, 80], [0, 53, 0, 53], [0, 25, 0x10, 0]][below(4)],
        );
        p[47] = 0x10;
        packets.push(p);
    }
    let same = vec![packets[0]; 1024];
    for (name, kind, patterns) in [
        ("one step", "c", &["12/0800", "-"][..]),
        ("values", "c", &["12/0806", "12/0800", "-"]),
        ("figure 8", "c", &["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"]),
        ("tcp or udp", "i", &["tcp", "udp", "-"]),
        ("firewall", "f", &firewall),
    ] {
        let Ok((program, _)) = compile(kind, patterns) else { continue };
        for (traffic, packets) in [("mixed", &packets), ("same", &same)] {
            let start = if kind == "c" { 0 } else { 14 };
            let mut best = f64::MAX;
            for _ in 0..200 {
                let t = Instant::now();
                let mut sum = 0u32;
                for p in packets {
                    sum = sum.wrapping_add(black_box(&program).classify(&black_box(p)[start..]).number());
                }
                black_box(sum);
                best = best.min(t.elapsed().as_nanos() as f64 / packets.len() as f64);
            }
            println!(
                "{name:10} {traffic:5} {:3} steps {:?} {best:6.2} ns",
                program.steps().len(),
                program.shape()
            );
        }
    }
}
