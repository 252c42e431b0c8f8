// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckCRC32: checks and removes the CRC-32 at the end of packets.

use castanet_element::prelude::*;

/// Checks the CRC-32 at the end of packets and removes it.
///
/// The CRC is that of `SetCRC32` and of Ethernet frames. It covers all bytes before it, and takes 4 bytes, the least
/// significant one first (IEEE 802.3 section 3.2.9). Packets with a wrong CRC, and packets shorter than 4 bytes, are
/// dropped.
///
/// # Ports
/// Input 0: packets with a CRC at the end. Output 0: packets whose CRC was correct, without the CRC.
///
/// # Example
/// ```click
/// InfiniteSource(DATA "123456789\<2639f4cb>", LIMIT 5, STOP true) -> CheckCRC32 -> CheckLength(9) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckCRC32", offload = none, ports = "1/1", processing = "a/a", packets = "any/same")]
#[class(workers = replicate, drops(TooShort, BadCrc), depends = packet)]
pub struct CheckCrc32 {
    /// Packets dropped because their CRC was wrong or missing.
    #[count(unit = "packets")]
    drops: Count,
}

impl CheckCrc32 {
    #[cold]
    fn refuse(&mut self, reason: Reason) -> Verdict {
        self.drops.add(1);
        Verdict::Drop(reason)
    }
}

impl Action for CheckCrc32 {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        match p.data().split_last_chunk() {
            None => self.refuse(Reason::TooShort),
            Some((data, crc)) if crc32fast::hash(data).to_le_bytes() != *crc => self.refuse(Reason::BadCrc),
            Some((data, _)) => {
                p.truncate(data.len());
                Verdict::Next
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn with_crc(data: &[u8]) -> Vec<u8> {
        [data, &crc32fast::hash(data).to_le_bytes()].concat()
    }

    #[test]
    fn right_ones_pass_without_it() {
        let mut kit = Kit::<CheckCrc32>::new("").unwrap();
        let standard = [&b"123456789"[..], &0xcbf4_3926_u32.to_le_bytes()].concat();
        assert_eq!(kit.act([packet(&standard)])[0].1.data(), b"123456789");
        for len in 0..200 {
            let data = vec![len as u8; len];
            assert_eq!(kit.act([packet(&with_crc(&data))])[0].1.data(), data);
        }
        assert_eq!((kit.read("drops").unwrap().as_str(), kit.all_dropped()), ("0", 0));
    }

    #[test]
    fn every_wrong_bit_is_found() {
        let mut kit = Kit::<CheckCrc32>::new("").unwrap();
        let right = with_crc(&[0x5a; 60]);
        for bit in 0..8 * right.len() {
            let mut wrong = right.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(kit.act([packet(&wrong)]).is_empty(), "{bit}");
        }
        let bits = 8 * right.len() as u64;
        assert_eq!((kit.dropped(Reason::BadCrc), kit.read("drops").unwrap()), (bits, bits.to_string()));
    }

    #[test]
    fn short_packets() {
        let mut kit = Kit::<CheckCrc32>::new("").unwrap();
        for len in 0..4 {
            assert!(kit.act([packet(&[0; 3][..len])]).is_empty());
        }
        assert_eq!((kit.dropped(Reason::TooShort), kit.all_dropped()), (4, 4));
        assert_eq!(kit.act([packet(&[0; 4])])[0].1.data(), b"", "the checksum of nothing is 0");
    }
}
