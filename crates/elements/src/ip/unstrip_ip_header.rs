// SPDX-License-Identifier: MIT OR Apache-2.0
//! UnstripIPHeader: restores the IP header that StripIPHeader has stripped.

use castanet_element::prelude::*;

/// Restores the marked IPv4 header that was stripped from the front of packets.
///
/// A packet whose header was not stripped passes unchanged. A packet without a marked header is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: IP packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> StripIPHeader -> UnstripIPHeader -> Discard;
/// ```
#[derive(Class)]
#[class(name = "UnstripIPHeader", ports = "1/1", processing = "a/a", packets = "ip/to network", workers = replicate)]
#[class(drops(NoIpHeader, TooLong), depends = packet)]
pub struct UnstripIpHeader {}

impl Action for UnstripIpHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(at) = p.network_offset() else { return Verdict::Drop(Reason::NoIpHeader) };
        if at < 0 && !p.unstrip(at.unsigned_abs()) {
            return Verdict::Drop(Reason::TooLong);
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
    fn as_much_as_was_stripped() {
        let mut kit = Kit::<UnstripIpHeader>::new("").unwrap();
        let data: Vec<u8> = (0..60).collect();
        for at in [0, 14] {
            for stripped in 0..=60 {
                let mut p = packet(&data);
                p.set_network_header(at, 24);
                assert!(p.strip(stripped));
                let out = kit.act([p]);
                let want = if stripped > at { at } else { stripped };
                assert_eq!(out[0].1.data(), &data[want..], "{at} {stripped}");
                assert_eq!(out[0].1.network_header_length(), 24);
            }
        }
        assert!(kit.act([packet(&data)]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }
}
