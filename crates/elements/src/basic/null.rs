// SPDX-License-Identifier: MIT OR Apache-2.0
//! Null: passes packets unchanged.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Passes packets unchanged.
///
/// The aliases `Null1` to `Null8` are for benchmarks that need several classes with the same behaviour.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Null -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Null", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(aliases("Null1", "Null2", "Null3", "Null4", "Null5", "Null6", "Null7", "Null8"), depends = packet)]
#[class(kernel)]
pub struct Null {}

impl Action for Null {
    #[inline]
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
    #[inline]
    fn action_batch(&mut self, _: &mut Batch, _: &mut Cx<'_>) {}
}

impl InKernel for Null {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.next(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn passes_everything() {
        let mut kit = Kit::<Null>::new("").unwrap();
        for n in [0, 1, 2, 3, 32] {
            let out = kit.act((0..n).map(|i| packet(&[i; 60])));
            assert_eq!(out.len(), usize::from(n));
            assert!(out.iter().zip(0..).all(|((port, p), i)| *port == 0 && p.data() == [i; 60]));
        }
        assert_eq!(kit.act1(packet(b"")).0, Verdict::Next);
        assert_eq!(kit.all_dropped(), 0);
    }
}
