// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses and ports of a connection.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::SocketAddrV4;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The end of this stack.
    pub local: SocketAddrV4,
    /// The end of the peer.
    pub remote: SocketAddrV4,
}

impl Flow {
    /// The flow as words, for hashes.
    pub(super) fn words(self) -> [u64; 2] {
        [self.local, self.remote].map(|e| u64::from(e.ip().to_bits()) << 16 | u64::from(e.port()))
    }
}

/// `LOCAL REMOTE`.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.local, self.remote)
    }
}

impl Hash for Flow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().into_iter().for_each(|word| state.write_u64(word));
    }
}

/// Hashes flows with a seed: one wide multiplication, folded (Yi 2019, wyhash). The seed must be secret, so that no peer can
/// choose flows that all have the same place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(pub(super) [u64; 2]);

/// The words of a flow that were hashed, each changed by its word of the seed.
pub(super) struct FlowHasher([u64; 2]);

impl BuildHasher for Seeded {
    type Hasher = FlowHasher;
    fn build_hasher(&self) -> FlowHasher {
        FlowHasher(self.0)
    }
}

impl Hasher for FlowHasher {
    fn write_u64(&mut self, word: u64) {
        let [first, second] = self.0;
        self.0 = [second, first ^ word];
    }
    /// Flows are hashed by their words, so this is not called for them.
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn finish(&self) -> u64 {
        let wide = u128::from(self.0[0]).wrapping_mul(u128::from(self.0[1]));
        (wide as u64) ^ ((wide >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn flow(port: u16, peer: u16) -> Flow {
        let end = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        Flow { local: end(port), remote: end(peer) }
    }

    #[test]
    fn hashes_depend_on_both_ends_and_on_the_seed() {
        let seed = Seeded([0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f]);
        let hash = seed.hash_one(flow(1, 2));
        for other in [flow(2, 1), flow(1, 3), flow(3, 2)] {
            assert_ne!(hash, seed.hash_one(other));
        }
        assert_ne!(hash, Seeded([1, 2]).hash_one(flow(1, 2)));
        // Flows of one listener spread over the places of a table.
        let places: std::collections::BTreeSet<u64> =
            (0..1000).map(|peer| seed.hash_one(flow(80, peer)) % 4096).collect();
        assert!(places.len() > 800, "{}", places.len());
    }
}
