// SPDX-License-Identifier: MIT OR Apache-2.0
//! StripIPHeader: strips the IP header and everything before it.

use castanet_element::prelude::*;

/// Strips the IPv4 header with its options, and everything before it.
///
/// The network header must be marked; packets without one are dropped.
///
/// # Ports
/// Input 0: IP packets. Output 0: the data of the packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> StripIPHeader -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StripIPHeader", ports = "1/1", processing = "a/a", packets = "ip/changed", workers = replicate)]
#[class(drops(NoIpHeader), depends = packet)]
pub struct StripIpHeader {}

impl Action for StripIpHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(end) = p.transport_offset() else { return Verdict::Drop(Reason::NoIpHeader) };
        // A negative offset means that the header has been stripped already.
        p.strip(usize::try_from(end).unwrap_or(0).min(p.len()));
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
        let mut kit = Kit::<StripIpHeader>::new("").unwrap();
        for len in 0..60usize {
            let mut p = packet(&vec![7; len]);
            p.set_network_header(0, 24);
            assert_eq!(kit.act([p])[0].1.len(), len.saturating_sub(24));
        }
        let mut p = packet(&[7; 60]);
        p.set_network_header(14, 20);
        p.strip(40);
        assert_eq!(kit.act([p])[0].1.len(), 20);
        assert!(kit.act([packet(&[7; 60])]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }
}
