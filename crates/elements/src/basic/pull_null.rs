// SPDX-License-Identifier: MIT OR Apache-2.0
//! PullNull: passes packets unchanged on a pull path.

use castanet_element::prelude::*;

/// Passes packets unchanged on a pull path.
///
/// The ports of PullNull are always pull, whereas those of Null are agnostic.
///
/// # Ports
/// Input 0, output 0 (both pull): packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Queue -> PullNull -> Unqueue -> Discard;
/// ```
#[derive(Class)]
#[class(name = "PullNull", ports = "1/1", processing = "l/l", packets = "any/same", workers = replicate)]
pub struct PullNull {}

impl Action for PullNull {
    #[inline]
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
    #[inline]
    fn action_batch(&mut self, _: &mut Batch, _: &mut Cx<'_>) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn passes_everything() {
        let mut kit = Kit::<PullNull>::new("").unwrap();
        for n in [0, 1, 2, 3, 32] {
            let out = kit.act((0..n).map(|i| packet(&[i; 60])));
            assert_eq!(out.len(), usize::from(n));
            assert!(out.iter().zip(0..).all(|((port, p), i)| *port == 0 && p.data() == [i; 60]));
        }
        assert!(Kit::<PullNull>::new("1").is_err());
    }
}
