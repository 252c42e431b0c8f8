// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reverses a recorded source route, for an ICMP error to the sender (RFC 791 section 3.1, RFC 1812 section 4.3.2.6).

use castanet_wire::ipv4;
use castanet_wire::options::{Ipv4Option, kind};

/// The source route option of an ICMP error, made from the source route of the packet that the error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    first_hop: u32,
    bytes: [u8; 40],
    len: usize,
}

/// Returns the first source route option of the IP header at the start of `ip`.
pub fn find(ip: &[u8]) -> Option<Ipv4Option<'_>> {
    ipv4::options(ip)
        .map_while(Result::ok)
        .find(|o| matches!(o.kind(), kind::LOOSE_SOURCE_ROUTE | kind::STRICT_SOURCE_ROUTE))
}

impl SourceRoute {
    /// Reverses the addresses that were recorded before the option's pointer, and ends the route with `src`. Returns
    /// none if no address was recorded, or if the pointer is invalid.
    pub fn reversed(option: &Ipv4Option<'_>, src: u32) -> Option<SourceRoute> {
        let pointer = usize::from(option.pointer()?);
        let recorded = option.data().get(1..pointer.checked_sub(1)?.checked_sub(2)?)?;
        let (addresses, rest) = recorded.as_chunks::<4>();
        let (last, before) = addresses.split_last()?;
        if !rest.is_empty() {
            return None;
        }
        // A no-operation option (1 byte) and the first 3 bytes of the option come first, so addresses are at multiples
        // of 4.
        let len = 4 + 4 * addresses.len();
        let mut bytes = [0; 40];
        let option_len = u8::try_from(len - 1).ok()?;
        *bytes.first_chunk_mut()? = [kind::NOP, option.kind(), option_len, 4];
        let back = before.iter().rev().copied().chain([src.to_be_bytes()]);
        let (places, _) = bytes.get_mut(4..len)?.as_chunks_mut::<4>();
        for (place, address) in places.iter_mut().zip(back) {
            *place = address;
        }
        Some(SourceRoute { first_hop: u32::from_be_bytes(*last), bytes, len })
    }
    /// Returns the first address of the route, which is the destination of the error's IP header.
    pub fn first_hop(&self) -> u32 {
        self.first_hop
    }
    /// Returns the option, with the no-operation option before it.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
    /// Returns the length of `bytes`, a multiple of 4.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn option(bytes: &[u8]) -> Ipv4Option<'_> {
        Ipv4Option { offset: 20, bytes }
    }

    #[test]
    fn reverses_what_was_recorded() {
        let three = [131, 15, 12, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3];
        let r = SourceRoute::reversed(&option(&three), 0x0909_0909).unwrap();
        assert_eq!(r.first_hop(), 0x0202_0202);
        assert_eq!(r.bytes(), [1, 131, 11, 4, 1, 1, 1, 1, 9, 9, 9, 9]);
        let mut all = three;
        all[2] = 16;
        let r = SourceRoute::reversed(&option(&all), 0x0909_0909).unwrap();
        assert_eq!((r.first_hop(), r.len()), (0x0303_0303, 16));
        let one = [137, 7, 8, 5, 5, 5, 5];
        let r = SourceRoute::reversed(&option(&one), 7).unwrap();
        assert_eq!((r.first_hop(), r.bytes()), (0x0505_0505, &[1, 137, 7, 4, 0, 0, 0, 7][..]));
    }

    #[test]
    fn nothing_recorded_or_nonsense_gives_none() {
        for pointer in (0..=255).filter(|p| !matches!(p, 8 | 12)) {
            let bytes = [131, 11, pointer, 1, 1, 1, 1, 2, 2, 2, 2];
            assert_eq!(SourceRoute::reversed(&option(&bytes), 1), None, "{pointer}");
        }
        assert_eq!(SourceRoute::reversed(&option(&[131, 2]), 1), None);
    }
}
