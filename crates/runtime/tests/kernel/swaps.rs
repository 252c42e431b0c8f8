// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps between random configurations while frames arrive.

use crate::frames::Random;
use crate::graphs::Graph;
use crate::world::{World, classes};
use crate::{Outcome, Timed, try_compare};
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_spec::Origin;

/// Begins each of the configurations that follow the first one in a text.
pub const NEXT: &str = "// NEXT";

/// The configurations after the first one. The text `1` stands for the first of them, and so on.
pub struct Texts(Vec<String>);

impl Texts {
    /// The first configuration of a text, and the others.
    pub fn split(text: &str) -> (&str, Texts) {
        let mut all = text.split(NEXT);
        (all.next().unwrap_or(text), Texts(all.map(String::from).collect()))
    }
}

impl Loader for Texts {
    fn load(&self, _: Origin, name: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        let text = text.trim().parse::<usize>().ok().and_then(|n| self.0.get(n - 1)).map_or(text, |t| t);
        let loaded = Loaded::from_text(name, text.as_bytes(), &[], classes());
        loaded.map(|l| l.0).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
}

/// Milliseconds from one swap to the next.
const BETWEEN: u64 = 40;

/// Some configurations, of which the first is replaced by the second after a while, and so on.
fn chain(texts: &[String]) -> String {
    let (last, former) = texts.split_last().unwrap();
    let with_swap = |(i, text): (usize, &String)| {
        format!("{text} swap{i} :: Script(wait {BETWEEN}300us, write hotconfig {});\n{NEXT}\n", i + 1)
    };
    former.iter().enumerate().map(with_swap).collect::<String>() + last
}

/// Configurations that follow one another. Some come again, so that the state of their elements moves on.
fn texts(random: &mut Random, number: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    while all.len() < number {
        let text = Graph::random(random.below(1 << 40), 1000).without_writes().text();
        // A swap may be refused for what a router alone would not; then both runs go on with the same former one.
        if crate::try_start(&text, &World::default()).is_ok() {
            all.extend([text.clone(), text]);
        }
        if all.len() > 3 && random.one_in(2) {
            all.push(all[random.below(all.len() as u64) as usize].clone());
        }
    }
    all.truncate(number);
    all
}

/// Compares chains of random configurations. Returns the numbers of frames that came up and that did not.
fn chains_in(world: fn() -> World, seeds: std::ops::Range<u64>, number: usize) -> (u64, u64) {
    let mut sums = (0, 0);
    for seed in seeds {
        let mut random = Random::new(0x5eed + seed);
        let text = chain(&texts(&mut random, number));
        let frames: Timed = (0..BETWEEN as i64 * number as i64)
            .map(|i| (i + 1, random.mutated_for(0), "eth0".to_string()))
            .collect();
        match try_compare(&text, &frames, world) {
            Outcome::Same(world) => {
                let (up, gone, _) = world.ways();
                sums = (sums.0 + up, sums.1 + gone);
            }
            Outcome::Refused(why) | Outcome::Differs(why) => panic!("seed {seed}: {why}\n{text}"),
        }
    }
    sums
}

#[test]
fn swaps() {
    let (up, gone) = chains_in(World::default, 0..10, 10);
    println!("{up} frames up, {gone} not");
    assert!(up > 300 && gone > 300, "{up} {gone}");
}
