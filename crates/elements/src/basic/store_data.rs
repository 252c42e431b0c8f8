// SPDX-License-Identifier: MIT OR Apache-2.0
//! StoreData: writes bytes into packets.

use castanet_element::prelude::*;

/// Writes bytes into packets. Bytes beyond the end of a packet are left out.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with the bytes written.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> StoreData(12, \<0800>) -> Classifier(12/0800) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StoreData", ports = "1/1", processing = "a/a", packets = "any/changed", workers = replicate)]
#[class(depends = packet)]
pub struct StoreData {
    args: Args,
}

/// Arguments of StoreData.
#[derive(Args)]
pub struct Args {
    /// Where to write, in bytes from the start of the packet.
    offset: u32,
    /// The bytes to write.
    data: Data,
}

impl Action for StoreData {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let offset = self.args.offset as usize;
        // `data_mut` copies a shared buffer, so call it only if there is something to write.
        if offset < p.len() {
            let there = p.data_mut().get_mut(offset..).unwrap_or_default();
            for (to, from) in there.iter_mut().zip(&self.args.data.0) {
                *to = *from;
            }
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        let mut kit = Kit::<StoreData>::new("10, \\<01 02 03>").unwrap();
        for len in 0..60 {
            let mut want = vec![7; len];
            for (i, b) in [(10, 1), (11, 2), (12, 3)] {
                if let Some(w) = want.get_mut(i) {
                    *w = b;
                }
            }
            assert_eq!(kit.act([packet(&vec![7; len])])[0].1.data(), &want[..]);
        }
        let mut kit = Kit::<StoreData>::new("4294967295, x").unwrap();
        assert_eq!(kit.act([packet(b"abc")])[0].1.data(), b"abc");
        assert!(Kit::<StoreData>::new("-1, x").is_err() && Kit::<StoreData>::new("1").is_err());
    }
}
