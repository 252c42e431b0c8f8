// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetCRC32: appends a CRC-32 to packets.

use castanet_element::prelude::*;

/// Appends a CRC-32 to packets, like the frame check sequence of Ethernet.
///
/// The CRC covers all bytes of the packet. It takes 4 bytes, the least significant one first, as in Ethernet frames
/// (IEEE 802.3 section 3.2.9). A packet that would become too long is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: the packets, 4 bytes longer.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetCRC32 -> CheckCRC32 -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetCRC32", offload = none, ports = "1/1", processing = "a/a", packets = "any/same")]
#[class(workers = replicate, drops(TooLong), depends = packet)]
pub struct SetCrc32 {}

impl Action for SetCrc32 {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let crc = crc32fast::hash(p.data()).to_le_bytes();
        if !p.put(crc.len()) {
            return Verdict::Drop(Reason::TooLong);
        }
        if let Some(end) = p.data_mut().last_chunk_mut() {
            *end = crc;
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Computes the checksum by its definition, a bit at a time (IEEE 802.3 section 3.2.9).
    fn bit_by_bit(data: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in data {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            }
        }
        !crc
    }

    #[test]
    fn check_value_of_the_standard() {
        let mut kit = Kit::<SetCrc32>::new("").unwrap();
        let out = kit.act([packet(b"123456789")]);
        assert_eq!(out[0].1.data(), [&b"123456789"[..], &0xcbf4_3926_u32.to_le_bytes()].concat());
        assert_eq!(kit.act([packet(b"")])[0].1.data(), [0; 4]);
    }

    #[test]
    fn every_length() {
        let mut random = Random::new(3, "crc");
        let mut kit = Kit::<SetCrc32>::new("").unwrap();
        for len in 0..200 {
            let data: Vec<u8> = (0..len).map(|_| random.next_u32() as u8).collect();
            let mut p = packet(&data);
            let copy = p.share().unwrap();
            let out = kit.act([p]).remove(0).1;
            assert_eq!(out.data(), [&data[..], &bit_by_bit(&data).to_le_bytes()].concat());
            // The residue: the checksum of any frame together with its check sequence has this value.
            assert_eq!(crc32fast::hash(out.data()), 0x2144_df1c);
            assert_eq!(copy.data(), data, "a copy stays as it was");
        }
        let long = packet(&vec![0; castanet_packet::MAX_LENGTH - castanet_packet::DEFAULT_HEADROOM]);
        assert!(kit.act([long]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 1);
        assert!(Kit::<SetCrc32>::new("1").is_err());
    }
}
