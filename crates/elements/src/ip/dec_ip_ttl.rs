// SPDX-License-Identifier: MIT OR Apache-2.0
//! DecIPTTL: decrements the time to live.

use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;

/// Decrements the IPv4 time to live.
///
/// A packet whose time to live is 1 or 0 has expired (RFC 1812 section 5.3.1). It leaves unchanged on output 1, or is
/// dropped if that output is not connected. Other packets leave on output 0, with their header checksum updated
/// incrementally (RFC 1624). The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: packets with the new time to live. Output 1 (optional): expired packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> ttl :: DecIPTTL -> Discard;
/// ttl [1] -> ICMPError(10.0.0.1, timeexceeded) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "DecIPTTL", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(drops(TtlExpired, NoIpHeader), packets_if("ACTIVE false", "any/same"), depends = packet)]
#[class(kernel)]
pub struct DecIpTtl {
    args: Args,
    /// Packets whose time to live was 1 or 0.
    #[count(name = "drops", unit = "packets")]
    expired: Count,
}

/// Arguments of DecIPTTL.
#[derive(Args)]
pub struct Args {
    /// If false, every packet passes unchanged.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// If false, packets to multicast addresses pass unchanged.
    #[arg(keyword, default = true)]
    multicast: bool,
}

impl Action for DecIpTtl {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if !self.args.active {
            return Verdict::Next;
        }
        match p.ip_header_in_place() {
            Some(h) => self.decrement(h, cx),
            None => self.uncommon(p, cx),
        }
    }
}

impl DecIpTtl {
    /// Handles a packet that has no IP header, or whose buffer is shared and must be copied first.
    #[cold]
    #[inline(never)]
    fn uncommon(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match p.ip_header_mut() {
            Some(h) => self.decrement(h, cx),
            None => Verdict::Drop(Reason::NoIpHeader),
        }
    }

    #[cold]
    #[inline(never)]
    fn expire(&mut self, cx: &mut Cx<'_>) -> Verdict {
        self.expired.add(1);
        cx.out_or(1, Reason::TtlExpired)
    }

    #[inline(always)]
    fn decrement(&mut self, h: &mut [u8; Ipv4Header::LEN], cx: &mut Cx<'_>) -> Verdict {
        if !self.args.multicast && h[16] >> 4 == 0xe {
            return Verdict::Next;
        }
        let Some(field) = h[8..].first_chunk_mut() else { return Verdict::Drop(Reason::NoIpHeader) };
        // One load and one store cover time to live, protocol and checksum. The time to live is the lowest byte of
        // `word`.
        let mut word = u32::from_le_bytes(*field);
        if word & 0xfe == 0 {
            return self.expire(cx);
        }
        // One addition both increments the checksum (RFC 1624) and decrements the time to live. The time to live is at
        // least 2, so nothing is borrowed. The checksum is added as loaded from memory, without swapping bytes (RFC
        // 1071 section 2(B)). If the checksum overflows, the branch adds the carry back to the checksum, as
        // `checksum::update_ttl_decrement_field` does.
        if word >= 0xfffe_0000 {
            std::hint::cold_path();
            word = word.wrapping_add(0x0001_0000);
        }
        *field = word.wrapping_add(0x0001_0000 - 1).to_le_bytes();
        Verdict::Next
    }
}

impl InKernel for DecIpTtl {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if !self.args.active {
            code.next(0);
            return Ok(());
        }
        let other = code.label();
        self.lower_decrement(code, other, |code| code.next(0));
        code.bind(other);
        code.up();
        Ok(())
    }
}

impl DecIpTtl {
    /// Describes `action` of an active element. Packets that are not forwarded continue unchanged at the label `other`, all others
    /// with `next`.
    pub(super) fn lower_decrement(&self, code: &mut Code<'_>, other: Label, next: impl Fn(&mut Code<'_>)) {
        let Some((at, _)) = code.network() else { return code.jump(other) };
        code.need_at(at, Ipv4Header::LEN as u32, other);
        if !self.args.multicast {
            let first = code.load(at + 16, Size::Byte);
            let class = code.compute(Arithmetic::And, first, 0xf0u32);
            let unicast = code.label();
            code.branch(class, Test::Differ, 0xe0u32, unicast);
            next(code);
            code.bind(unicast);
        }
        // As in `decrement`: one word has time to live, protocol and checksum, and one addition changes both fields. The
        // order of memory is that of the processor of which the time to live is the lowest byte.
        let word = code.load(at + 8, Size::Word);
        let word = if cfg!(target_endian = "little") { word } else { code.swapped(word, Size::Word) };
        let lives = code.label();
        code.branch(word, Test::Common, 0xfeu32, lives);
        code.jump(other);
        code.bind(lives);
        let fits = code.label();
        code.branch(word, Test::Less, 0xfffe_0000u32, fits);
        code.compute_into(word, Arithmetic::Add, word, 0x0001_0000u32);
        code.bind(fits);
        code.compute_into(word, Arithmetic::Add, word, 0xffffu32);
        code.store(at + 8, Size::Word, word);
        next(code);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn ip(ttl: u8, dst: [u8; 4]) -> Packet {
        let b = etherparse::PacketBuilder::ipv4([1, 0, 0, 1], dst, ttl).udp(1, 2);
        let mut data = Vec::new();
        b.write(&mut data, &[1, 2, 3]).unwrap();
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn every_ttl() {
        let mut kit = Kit::<DecIpTtl>::with_ports("", 1, 2).unwrap();
        for ttl in 0..=255u8 {
            let before = ip(ttl, [2, 0, 0, 2]);
            let data = before.data().to_vec();
            let out = kit.act([before]);
            let (port, p) = &out[0];
            if ttl <= 1 {
                assert_eq!((*port, p.data()), (1, &data[..]), "expired packets leave unchanged");
            } else {
                let (h, _) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
                assert_eq!((*port, h.time_to_live), (0, ttl - 1));
                assert_eq!(h.calc_header_checksum(), h.header_checksum, "ttl {ttl}");
            }
        }
        assert_eq!(kit.read("drops").unwrap(), "2");
    }

    #[test]
    fn every_checksum() {
        let mut kit = Kit::<DecIpTtl>::new("").unwrap();
        let all = (0..=u16::MAX).map(|sum| {
            let mut p = ip(2 + (sum % 254) as u8, [2, 0, 0, 2]);
            p.data_mut()[10..12].copy_from_slice(&sum.to_be_bytes());
            p
        });
        let out = kit.act(all);
        assert_eq!(out.len(), 1 << 16);
        for (sum, (_, p)) in (0..=u16::MAX).zip(out) {
            let h = &p.data()[8..12];
            let want = castanet_wire::checksum::update16(sum, 0x4011, 0x3f11).to_be_bytes();
            assert_eq!(*h, [1 + (sum % 254) as u8, 17, want[0], want[1]], "{sum:04x}");
        }
    }

    #[test]
    fn without_output_or_header_it_counts_drops() {
        let mut kit = Kit::<DecIpTtl>::new("").unwrap();
        assert!(kit.act([ip(1, [2, 0, 0, 2]), packet(&[1; 40])]).is_empty());
        assert_eq!((kit.dropped(Reason::TtlExpired), kit.dropped(Reason::NoIpHeader)), (1, 1));
    }

    #[test]
    fn arguments_and_handlers() {
        let mut kit = Kit::<DecIpTtl>::new("MULTICAST false").unwrap();
        assert_eq!(kit.act([ip(9, [224, 0, 0, 1])])[0].1.data()[8], 9);
        kit.write("active", "false").unwrap();
        assert_eq!(kit.act([ip(1, [2, 0, 0, 1])])[0].1.data()[8], 1);
        assert_eq!(kit.read("active").unwrap(), "false");
        assert!(kit.write("active", "perhaps").is_err());
        assert_eq!(Kit::<DecIpTtl>::new("NOPE 1").err().unwrap(), ["NOPE: unknown argument"]);
    }
}
