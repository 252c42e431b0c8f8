// SPDX-License-Identifier: MIT OR Apache-2.0
//! MarkMACHeader: marks the position of the link-level header.

use castanet_element::kernel::{Code, Lowered, Refused};
use castanet_element::prelude::*;

/// Marks the MAC header of packets, and with LENGTH also the network header after it.
///
/// A packet that is too short for these headers passes unmarked.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with marked headers.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkMACHeader(0, 14) -> StripToNetworkHeader -> Discard;
/// ```
#[derive(Class)]
#[class(name = "MarkMACHeader", ports = "1/1", processing = "a/a", packets = "any/any", workers = replicate)]
#[class(reconfigure = keeps, packets_if("LENGTH 0", "any/same"), depends = packet)]
#[class(kernel)]
pub struct MarkMacHeader {
    args: Args,
}

/// Arguments of MarkMACHeader.
#[derive(Args)]
pub struct Args {
    /// Where the MAC header starts, in bytes from the start of the packet.
    #[arg(default = 0)]
    offset: u32,
    /// The length of the MAC header in bytes; 0 to leave the network header unmarked.
    #[arg(default = 0)]
    length: u32,
}

impl Action for MarkMacHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let (offset, length) = (self.args.offset as usize, self.args.length as usize);
        let end = offset.saturating_add(length);
        if end <= p.len() {
            p.set_mac_header(offset as isize);
            if length > 0 {
                p.set_network_header(end, 0);
            }
        }
        Verdict::Next
    }
}

impl InKernel for MarkMacHeader {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Args { offset, length } = self.args;
        let at = i32::try_from(offset).map_err(|_| Refused("OFFSET is too large".into()))?;
        let Some(end) = at.checked_add_unsigned(length) else { return Err("LENGTH is too large".into()) };
        let short = code.label();
        code.need(end.unsigned_abs(), short);
        code.mark_mac(at);
        if length > 0 {
            code.mark_network(end, 0);
        }
        code.next(0);
        code.bind(short);
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
    fn every_length() {
        for (config, mac, network, needs) in [
            ("", 0, None, 0),
            ("3", 3, None, 3),
            ("2, 14", 2, Some(16), 16),
            ("OFFSET 0, LENGTH 60", 0, Some(60), 60),
        ] {
            let mut kit = Kit::<MarkMacHeader>::new(config).unwrap();
            for len in 0..=60 {
                let out = kit.act([packet(&vec![7; len])]);
                let p = &out[0].1;
                let fits = len >= needs;
                assert_eq!(p.mac_offset(), fits.then_some(mac), "{config} {len}");
                assert_eq!(p.network_offset(), network.filter(|_| fits), "{config} {len}");
            }
        }
        let mut kit = Kit::<MarkMacHeader>::new("4294967295, 4294967295").unwrap();
        assert_eq!(kit.act([packet(b"x")])[0].1.mac_offset(), None);
        assert!(Kit::<MarkMacHeader>::new("-1").is_err());
    }
}
