// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mappers, which choose one of several patterns for a new flow.

use super::pattern::Pattern;
use super::registry::Registry;
use super::spec::{PatternText, Target};
use super::tuple::Tuple;
use castanet_element::prelude::ValueError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The names of the mapper classes.
pub const CLASSES: &[&str] = &["RoundRobinIPMapper", "SourceIPHashMapper"];

/// Chooses a pattern for each new flow.
pub struct Mapper {
    written: Vec<Target<PatternText>>,
    scope: String,
    targets: OnceLock<Vec<Target<Arc<Pattern>>>>,
    choice: Choice,
}

/// How a mapper chooses a target for a new flow.
pub enum Choice {
    /// Round robin. The counter, modulo the number of targets, is the index of the next target.
    RoundRobin(AtomicUsize),
    /// By source address, on a ring of points (consistent hashing).
    Ring {
        /// The seed of the hashes that place servers and clients on the ring.
        seed: u32,
        /// The points on the ring in ascending order, each with the index of its target.
        points: Vec<(u32, u16)>,
    },
}

/// Hashes a number by mixing its bits (Stafford 2011, variant 13).
fn mix(x: u64) -> u32 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) as u32
}

impl Choice {
    /// Makes a ring with `nodes` points for each server. The points of a server depend only on its number and
    /// `seed`. So when a server is added or removed, no client moves between the other servers (Karger et al.
    /// 1997).
    pub fn ring(servers: &[u32], nodes: u32, seed: u32) -> Choice {
        let mut points = Vec::new();
        for (i, s) in (0u16..).zip(servers) {
            let base = u64::from(mix(u64::from(*s) << 32 | u64::from(seed))) << 32;
            points.extend((0..nodes).map(|n| (mix(base | u64::from(n)), i)));
        }
        points.sort_unstable();
        Choice::Ring { seed, points }
    }
}

impl Mapper {
    /// Makes a mapper. `written` holds its targets. `scope` is the compound element in which their pattern names are
    /// looked up.
    pub fn new(written: Vec<Target<PatternText>>, scope: &str, choice: Choice) -> Mapper {
        Mapper { written, scope: scope.to_string(), targets: OnceLock::new(), choice }
    }
    /// Looks up the patterns of the targets that name a pattern.
    pub fn resolve(&self, registry: &Registry) -> Result<(), ValueError> {
        if self.targets.get().is_none() {
            let all =
                self.written.iter().map(|t| t.resolve(registry, &self.scope)).collect::<Result<_, _>>()?;
            // Ignore an error here: it means that another replica has already set the same targets.
            let _ = self.targets.set(all);
        }
        Ok(())
    }
    /// The patterns that the mapper chooses from, with their outputs.
    pub fn targets(&self) -> &[Target<Arc<Pattern>>] {
        self.targets.get().map_or(&[], Vec::as_slice)
    }
    /// Continues the round-robin order of another mapper.
    pub fn go_on_from(&self, other: &Mapper) {
        if let (Choice::RoundRobin(mine), Choice::RoundRobin(theirs)) = (&self.choice, &other.choice) {
            mine.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    /// The targets to try for a new flow, in order.
    pub fn order(&self, flow: Tuple) -> impl Iterator<Item = &Target<Arc<Pattern>>> {
        let targets = self.targets();
        let n = targets.len().max(1);
        // On a ring, each client belongs to one server. Only the target of this server is tried, even if its pattern
        // has no free port, because a client must not change its server.
        let (first, tries) = match &self.choice {
            Choice::RoundRobin(next) => (next.fetch_add(1, Ordering::Relaxed) % n, n),
            Choice::Ring { seed, points } => {
                let h = mix(u64::from(flow.src()) << 32 | u64::from(*seed));
                let at = points.partition_point(|p| p.0 < h);
                let point = points.get(at).or(points.first());
                (point.map_or(0, |p| usize::from(p.1)), 1)
            }
        };
        (0..tries).filter_map(move |i| targets.get((first + i) % n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(servers: &[u32], nodes: u32) -> Vec<u16> {
        let Choice::Ring { seed, points } = Choice::ring(servers, nodes, 5) else { return Vec::new() };
        let of = |ip: u32| {
            let h = mix(u64::from(ip) << 32 | u64::from(seed));
            points.get(points.partition_point(|p| p.0 < h)).or(points.first()).map_or(0, |p| p.1)
        };
        (0x0a00_0000..0x0a00_4000).map(of).collect()
    }

    #[test]
    fn a_ring_is_fair_and_stable() {
        let (all, fewer) = (shares(&[1, 2, 3, 4], 200), shares(&[1, 2, 3], 200));
        for s in 0..4 {
            let n = all.iter().filter(|&&x| x == s).count();
            assert!((3000..5200).contains(&n), "server {s} has {n} of {}", all.len());
        }
        let moved = all.iter().zip(&fewer).filter(|(a, b)| **a != 3 && a != b).count();
        assert_eq!(moved, 0, "only the clients of the server that went have moved");
    }
}
