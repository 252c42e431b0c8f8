// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetIPChecksum: sets the checksum of IPv4 headers.

use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_wire::{Ipv4Header, checksum, ipv4};

/// Sets the checksum of IPv4 headers (RFC 791 section 3.1).
///
/// Classes that change a header update its checksum themselves, so this class is needed only after changes by other
/// means. A packet is dropped if it has no marked header, or if its header is truncated or has an impossible
/// length.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with a correct header checksum.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 40110000 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
///     -> MarkIPHeader -> SetIPChecksum -> CheckIPHeader(VERBOSE true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetIPChecksum", ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(drops(BadIpHeader, NoIpHeader), depends = packet)]
#[class(kernel)]
pub struct SetIpChecksum {
    /// Packets dropped because their header is truncated or has an impossible length.
    #[count(unit = "packets")]
    drops: Count,
}

impl Action for SetIpChecksum {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network_mut() else { return Verdict::Drop(Reason::NoIpHeader) };
        let sum = ipv4::whole_header(network).map(checksum::ipv4_header_checksum);
        let header = Ipv4Header::from_prefix_mut(network);
        let (Some(sum), Some(header)) = (sum, header) else {
            self.drops.add(1);
            return Verdict::Drop(Reason::BadIpHeader);
        };
        header.checksum.set(sum);
        Verdict::Next
    }
}

impl InKernel for SetIpChecksum {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Some((at, _)) = code.network() else {
            code.drop(Reason::NoIpHeader as u16);
            return Ok(());
        };
        // Headers with options, truncated and impossible headers go up.
        let other = code.label();
        code.need_at(at, Ipv4Header::LEN as u32, other);
        let first = code.load(at, Size::Byte);
        let words = code.compute(Arithmetic::And, first, 15u32);
        code.branch(words, Test::Differ, Ipv4Header::LEN as u32 / 4, other);
        let sum = code.load(at, Size::Word);
        for (offset, size) in [(4, Size::Word), (8, Size::Half), (12, Size::Word), (16, Size::Word)] {
            let part = code.load(at + offset, size);
            code.compute_into(sum, Arithmetic::Add, sum, part);
        }
        code.fold_checksum(sum);
        let sum = code.compute(Arithmetic::Xor, sum, 0xffffu32);
        code.store(at + 10, Size::Half, sum);
        code.next(0);
        code.bind(other);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_header_length_and_cut() {
        let data: Vec<u8> = (0..70u8).map(|i| i.wrapping_mul(91)).collect();
        let (mut kit, mut bad) = (Kit::<SetIpChecksum>::new("").unwrap(), 0);
        for words in 0..16u8 {
            for len in 0..=data.len() {
                let mut data = data[..len].to_vec();
                if let Some(b) = data.first_mut() {
                    *b = 0x40 | words;
                }
                let mut p = packet(&data);
                p.set_network_header(0, usize::from(words) * 4);
                let out = kit.act([p]);
                if words < 5 || usize::from(words) * 4 > len {
                    bad += 1;
                    assert!(out.is_empty());
                } else {
                    let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
                    assert_eq!(h.calc_header_checksum(), h.header_checksum, "{words} {len}");
                }
            }
        }
        assert_eq!((kit.dropped(Reason::BadIpHeader), kit.read("drops").unwrap()), (bad, bad.to_string()));
        assert!(kit.act([packet(&data)]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }
}
