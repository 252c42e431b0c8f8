// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the stored inputs of the fuzz targets in fuzz/corpus and fuzz/crashes. Then runs each target for
//! about a second on inputs derived from them by a deterministic generator.
#![allow(clippy::unwrap_used)]

use castanet_element::Random;
use castanet_tests::fuzz::{TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time limit for derived inputs.
const TIME: Duration = Duration::from_secs(1);
/// The maximum number of derived inputs.
const MOST: usize = 20_000;

fn files(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|p| p.is_file()).collect();
    all.sort();
    all
}

/// Whether the target accepted the input. A failure is reported on standard error.
fn taken(target: &Target, data: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.body)(data))).is_ok()
}

/// Derives an input: changes some bytes, and removes, duplicates or splices pieces.
fn changed(data: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = data.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() as u64 + 1) as usize;
        let n = (random.below(16) as usize).min(out.len() - at);
        match random.below(6) {
            0 => drop(out.drain(at..at + n)),
            1 => {
                let piece = out[at..at + n].to_vec();
                out.splice(at..at, piece);
            }
            2 => {
                let from = random.below(other.len() as u64 + 1) as usize;
                let n = (random.below(32) as usize).min(other.len() - from);
                out.splice(at..at, other[from..from + n].iter().copied());
            }
            3 => {
                let strange = [0, 1, 0x7f, 0x80, 0xff, b'(', b')', b'"', b',', b'$'];
                out.insert(at, strange[random.below(10) as usize]);
            }
            _ => {
                if let Some(b) = out.get_mut(at) {
                    *b ^= 1 << random.below(8);
                }
            }
        }
    }
    out
}

fn replay(name: &str) {
    let target = TARGETS.iter().find(|t| t.name == name).unwrap();
    let mut bad = Vec::new();
    let mut inputs = Vec::new();
    for path in [files("corpus", name), files("crashes", name)].concat() {
        let data = std::fs::read(&path).unwrap();
        if !taken(target, &data) {
            bad.push(path.display().to_string());
        }
        inputs.push(data);
    }
    assert!(!inputs.is_empty(), "fuzz/corpus/{name} is empty");
    let (start, mut random) = (Instant::now(), Random::new(1, name));
    for _ in 0..MOST {
        if start.elapsed() > TIME {
            break;
        }
        let [a, b] = [0; 2].map(|_| &inputs[random.below(inputs.len() as u64) as usize]);
        let made = changed(a, b, &mut random);
        if !taken(target, &made) {
            bad.push(format!("{:?} (put it into fuzz/crashes/{name})", made.escape_ascii().to_string()));
            break;
        }
    }
    assert!(bad.is_empty(), "{name} does not take:\n{}", bad.join("\n"));
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
        #[test]
        fn all_are_there() {
            assert_eq!([$(stringify!($name)),*].as_slice(), TARGETS.iter().map(|t| t.name).collect::<Vec<_>>());
        }
    };
}

replays!(archive arguments bpdu capture classifier control elements handlers jit language paths prolac rewriter router script summary tcp);
