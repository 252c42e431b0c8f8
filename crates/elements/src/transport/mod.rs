// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that check TCP and UDP headers or set their checksums.

use castanet_element::{ClassDef, action};
use castanet_wire::Ipv4Header;

pub mod check_tcp_header;
pub mod check_udp_header;
pub(crate) mod faults;
pub mod set_tcp_checksum;
pub mod set_udp_checksum;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<check_tcp_header::CheckTcpHeader>(),
    action::<check_udp_header::CheckUdpHeader>(),
    action::<set_tcp_checksum::SetTcpChecksum>(),
    action::<set_udp_checksum::SetUdpChecksum>(),
];

/// Returns the IPv4 header at the start of `network`, and the data of the packet without padding. None if the lengths
/// in the header contradict each other or exceed the packet.
#[inline]
pub(crate) fn segment(network: &[u8]) -> Option<(&Ipv4Header, &[u8])> {
    let h = Ipv4Header::from_prefix(network)?;
    let from = h.header_len();
    let carried = network.get(from..usize::from(h.total_len.get()))?;
    (from >= Ipv4Header::LEN).then_some((h, carried))
}

/// Like [`segment`], but returns mutable references.
#[inline]
pub(crate) fn segment_mut(network: &mut [u8]) -> Option<(&mut Ipv4Header, &mut [u8])> {
    let h = Ipv4Header::from_prefix(network)?;
    let (from, to) = (h.header_len(), usize::from(h.total_len.get()));
    if from < Ipv4Header::LEN {
        return None;
    }
    let (front, carried) = network.get_mut(..to)?.split_at_mut_checked(from)?;
    Some((Ipv4Header::from_prefix_mut(front)?, carried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carried_is_what_both_lengths_leave() {
        for words in 0..16u8 {
            for total in 0..70u16 {
                for len in 0..70usize {
                    let mut b = vec![0; len];
                    if let Some(h) = Ipv4Header::from_prefix_mut(&mut b) {
                        h.version_ihl = 0x40 | words;
                        h.total_len.set(total);
                    }
                    let (from, to) = (usize::from(words) * 4, usize::from(total));
                    let want = (len >= 20 && from >= 20 && from <= to && to <= len).then(|| to - from);
                    assert_eq!(segment(&b).map(|s| s.1.len()), want, "{words} {total} {len}");
                    assert_eq!(segment_mut(&mut b).map(|s| s.1.len()), want, "{words} {total} {len}");
                }
            }
        }
    }
}
