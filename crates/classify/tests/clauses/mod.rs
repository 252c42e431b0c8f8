// SPDX-License-Identifier: MIT OR Apache-2.0
//! The patterns of `Classifier` as data: random generation, conversion to text, and evaluation byte by byte.
#![allow(dead_code)]

use crate::packets::Rng;

/// A clause as data: bytes and masks from an offset on.
pub struct Clause {
    pub negated: bool,
    pub offset: usize,
    /// Value and mask.
    pub bytes: Vec<(u8, u8)>,
}

impl Clause {
    pub fn random(rng: &mut Rng) -> Clause {
        let (negated, offset) = (rng.below(4) == 0, rng.below(12));
        let bytes = (0..1 + rng.below(6)).map(|_| {
            let mask = [0xff, 0xff, 0xf0, 0x0f, 0x03, 0x00][rng.below(6)];
            ([0x00, 0x01, 0x10, 0xff, 0x5a][rng.below(5)], mask)
        });
        Clause { negated, offset, bytes: bytes.collect() }
    }

    pub fn text(&self, rng: &mut Rng) -> String {
        let bang = if self.negated { "!" } else { "" };
        let mut value = String::new();
        let mut mask = String::new();
        let mut masked = false;
        for (v, m) in &self.bytes {
            for shift in [4, 0] {
                let (v, m) = (v >> shift & 15, m >> shift & 15);
                // A question mark is another notation for a zero mask.
                if m == 0 && rng.below(2) == 0 {
                    value.push('?');
                } else {
                    value += &format!("{v:x}");
                }
                mask += &if m == 0 && rng.below(2) == 0 { "?".to_owned() } else { format!("{m:X}") };
                masked |= m != 15 && value.ends_with(|c| c != '?');
            }
        }
        let mask = if masked || rng.below(3) == 0 { format!("%{mask}") } else { String::new() };
        format!("{bang}{}/{value}{mask}", self.offset)
    }

    pub fn holds(&self, packet: &[u8]) -> bool {
        let end = self.offset + self.bytes.len();
        let equal = packet.len() >= end
            && self.bytes.iter().zip(&packet[self.offset..]).all(|((v, m), p)| v & m == p & m);
        equal != self.negated
    }
}

/// Returns the number of the first pattern whose clauses all hold.
pub fn first_match(patterns: &[Vec<Clause>], packet: &[u8]) -> Option<usize> {
    patterns.iter().position(|p| p.iter().all(|c| c.holds(packet)))
}

/// Returns up to six random patterns, of up to three clauses each.
pub fn patterns(rng: &mut Rng) -> Vec<Vec<Clause>> {
    (0..1 + rng.below(6)).map(|_| (0..rng.below(4)).map(|_| Clause::random(rng)).collect()).collect()
}

/// Returns the texts of patterns.
pub fn texts(patterns: &[Vec<Clause>], rng: &mut Rng) -> Vec<String> {
    let text = |p: &Vec<Clause>, rng: &mut Rng| match &p[..] {
        [] => "-".to_owned(),
        _ => p.iter().map(|c| c.text(rng)).collect::<Vec<_>>().join(" "),
    };
    patterns.iter().map(|p| text(p, rng)).collect()
}

/// Returns 24 random bytes that probably match one of the patterns.
pub fn packet(patterns: &[Vec<Clause>], rng: &mut Rng) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..24).map(|_| [0x00, 0x01, 0x10, 0xff, 0x5a][rng.below(5)]).collect();
    for clause in &patterns[rng.below(patterns.len())] {
        for (i, (v, _)) in clause.bytes.iter().enumerate() {
            packet[clause.offset + i] = *v;
        }
    }
    packet
}
