// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle: a source and sink for ports that must be connected but are not needed.

use castanet_element::prelude::*;

/// Emits no packets, and drops packets that it receives.
///
/// Use it for ports that must be connected but are not needed. Pulls from Idle return no packet. Its notifier is never
/// on, so packet schedulers skip it, and tasks that pull from it sleep. `SimpleIdle` is an alias.
///
/// # Ports
/// Any number of inputs and outputs. Inputs: packets to drop. Outputs: no packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Queue -> [1] merge :: PrioSched -> Unqueue -> Discard;
/// Idle -> [0] merge;
/// ```
#[derive(Class)]
#[class(name = "Idle", ports = "-/-", processing = "a/a", flow = "x/y", packets = "any/any", workers = replicate)]
#[class(aliases("SimpleIdle"), drops(Discarded), capabilities(EmptyNotifier), depends = packet)]
pub struct Idle {}

impl Element for Idle {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.drop_all(batch, Reason::Discarded);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn drops_what_comes_and_gives_nothing() {
        let mut kit = Kit::<Idle>::with_ports("", 2, 3).unwrap();
        for n in [1, 2, 3, 32] {
            assert!(kit.push(1, (0..n).map(|_| packet(b"x"))).is_empty());
            assert!(kit.pull(2, n).is_empty());
        }
        assert_eq!(kit.dropped(Reason::Discarded), 38);
        assert!(!kit.note(Capability::EmptyNotifier));
        assert!(Kit::<Idle>::new("1").is_err());
    }
}
