// SPDX-License-Identifier: MIT OR Apache-2.0
//! PushNull: passes packets unchanged on a push path.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Passes packets unchanged on a push path.
///
/// The ports of PushNull are always push, whereas those of Null are agnostic.
///
/// # Ports
/// Input 0, output 0 (both push): packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> PushNull -> Discard;
/// ```
#[derive(Class)]
#[class(name = "PushNull", ports = "1/1", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(depends = packet)]
#[class(kernel)]
pub struct PushNull {}

impl Action for PushNull {
    #[inline]
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
    #[inline]
    fn action_batch(&mut self, _: &mut Batch, _: &mut Cx<'_>) {}
}

impl InKernel for PushNull {
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
        let mut kit = Kit::<PushNull>::new("").unwrap();
        for n in [0, 1, 2, 3, 32] {
            let out = kit.act((0..n).map(|i| packet(&[i; 60])));
            assert_eq!(out.len(), usize::from(n));
            assert!(out.iter().zip(0..).all(|((port, p), i)| *port == 0 && p.data() == [i; 60]));
        }
        assert!(Kit::<PushNull>::new("1").is_err());
    }
}
