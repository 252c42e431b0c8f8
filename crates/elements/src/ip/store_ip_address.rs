// SPDX-License-Identifier: MIT OR Apache-2.0
//! StoreIPAddress: writes an IPv4 address into packets.

use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Operand, Refused, Size, Test};
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::ipv4::OFFSET_MASK;
use castanet_wire::ipv4::protocol::{DCCP, TCP, UDP, UDP_LITE};
use castanet_wire::{Be16, Ipv4Header, checksum};
use std::net::Ipv4Addr;

/// Writes an IPv4 address into packets: ADDR, or the destination address annotation.
///
/// With OFFSET `src` or `dst`, the address is written to the marked IP header. The checksums of this header and of TCP,
/// UDP, UDP-Lite or DCCP are updated incrementally (RFC 1624). If OFFSET is a number, the address is written at that
/// byte of the packet, and nothing else changes. A packet leaves unchanged on output 1 if it is too short, or if it
/// lacks the marked header that `src` and `dst` need. If output 1 is not connected, the packet is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: the packets with the address. Output 1 (optional): packets that are too short or have no
/// marked header.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
/// -> CheckIPHeader -> StoreIPAddress(10.0.0.1, src) -> CheckIPHeader(VERBOSE true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StoreIPAddress", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(offload = none, drops(TooShort, NoIpHeader), build, depends = packet)]
#[class(kernel)]
pub struct StoreIpAddress {
    args: Args,
    addr: Option<Ipv4Addr>,
    place: FieldToWrite,
}

/// Arguments of StoreIPAddress.
#[derive(Args)]
pub struct Args {
    /// The address; if only OFFSET is given, the destination address annotation is written.
    addr: String,
    /// Where to write the address: bytes from the start of the packet, `src` or `dst`.
    offset: Option<String>,
}

/// Where the address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldToWrite {
    /// At this offset in the packet data.
    Data(usize),
    /// At this offset in the IP header.
    Header(usize),
}

impl Build for StoreIpAddress {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let arg_cx = cx.arg_cx();
        // If there is only one argument, it is the offset.
        let (addr, place) = match &args.offset {
            Some(place) => {
                let addr = Ipv4Addr::parse(&args.addr, &arg_cx).map_err(|e| format!("ADDR: {e}"))?;
                (Some(addr), place)
            }
            None => (None, &args.addr),
        };
        let place = match place.trim() {
            "src" => FieldToWrite::Header(12),
            "dst" => FieldToWrite::Header(16),
            number => match u32::parse(number, &arg_cx) {
                Ok(n) => FieldToWrite::Data(n as usize),
                Err(_) => return Err("OFFSET: expected a number of bytes, 'src' or 'dst'".into()),
            },
        };
        Ok(StoreIpAddress { args, addr, place })
    }
}

/// Returns the offset of the transport checksum that covers the addresses, counted from the end of the IP header. None
/// if the protocol has no such checksum, or if the packet is not a first fragment. The flag says whether a checksum of
/// zero means "no checksum".
fn checksum_place(h: &Ipv4Header) -> Option<(usize, bool)> {
    if !h.is_first_fragment() {
        return None;
    }
    match h.protocol {
        TCP => Some((16, false)),
        UDP | UDP_LITE => Some((6, true)),
        DCCP => Some((6, false)),
        _ => None,
    }
}

/// Writes `addr` over the source (`at` is 12) or the destination of the IP header at the start of `network`, and
/// updates the checksums. Returns false if the header is truncated.
#[inline]
fn rewrite(network: &mut [u8], at: usize, addr: u32) -> bool {
    let Some(h) = Ipv4Header::from_prefix_mut(network) else { return false };
    let old = if at == 12 { h.src.get() } else { h.dst.get() };
    if at == 12 {
        h.rewrite_src(addr);
    } else {
        h.rewrite_dst(addr);
    }
    // INVARIANT: bytes after the total length do not belong to the packet.
    let (from, total, sum) = (h.header_len(), usize::from(h.total_len.get()), checksum_place(h));
    let carried = network.get_mut(..total).and_then(|n| n.get_mut(from.max(Ipv4Header::LEN)..));
    if let Some((sum, optional)) = sum
        && let Some(field) = carried.and_then(|c| c.get_mut(sum..)?.first_chunk_mut())
    {
        let before = u16::from_be_bytes(*field);
        let mut after = Be16::new(before);
        checksum::update_field32(&mut after, old, addr);
        // RFC 768, RFC 3828 section 3.1: a zero field means "no checksum", so a computed checksum of zero is sent as
        // 0xffff.
        if !(optional && before == 0) {
            let after = after.get();
            *field = if optional && after == 0 { [255, 255] } else { after.to_be_bytes() };
        }
    }
    true
}

/// Describes `rewrite` for the header at offset `ip`. Packets that have options or lack their transport checksum go up.
fn lower_rewrite(code: &mut Code<'_>, ip: i32, field: i32, new: Operand, short: Label) {
    let (plain, other) = (code.label(), code.label());
    code.need_at(ip, Ipv4Header::LEN as u32, short);
    let header = |code: &mut Code<'_>| {
        let old = code.load(ip + field, Size::Word);
        code.store(ip + field, Size::Word, new);
        code.update_checksum(ip + 10, Size::Word, old, new);
    };
    let fragment = code.load(ip + 6, Size::Half);
    code.branch(fragment, Test::Common, u32::from(OFFSET_MASK.to_be()), plain);
    let protocol = code.load(ip + 9, Size::Byte);
    for (numbers, sum, optional) in
        [(&[TCP][..], 16, false), (&[UDP, UDP_LITE], 6, true), (&[DCCP], 6, false)]
    {
        let (these, others, finish) = (code.label(), code.label(), code.label());
        for number in numbers {
            code.branch(protocol, Test::Equal, u32::from(*number), these);
        }
        code.jump(others);
        code.bind(these);
        let first = code.load(ip, Size::Byte);
        let words = code.compute(Arithmetic::And, first, 15u32);
        code.branch(words, Test::Differ, Ipv4Header::LEN as u32 / 4, other);
        let end = Ipv4Header::LEN as u32 + sum + 2;
        let total = code.load_number(ip + 2, Size::Half);
        code.branch(total, Test::Less, end, other);
        let total = code.compute(Arithmetic::Add, total, i64::from(ip));
        code.branch_length(total, Some(other), None);
        code.need_at(ip, end, other);
        let place = ip + end as i32 - 2;
        if optional {
            let before = code.load(place, Size::Half);
            code.branch(before, Test::Equal, 0u32, plain);
        }
        let old = code.load(ip + field, Size::Word);
        code.update_checksum(place, Size::Word, old, new);
        if optional {
            let after = code.load(place, Size::Half);
            code.branch(after, Test::Differ, 0u32, finish);
            code.store(place, Size::Half, 0xffffu32);
            code.bind(finish);
        }
        header(code);
        code.next(0);
        code.bind(others);
    }
    code.bind(plain);
    header(code);
    code.next(0);
    code.bind(other);
    code.up();
}

impl Action for StoreIpAddress {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let addr = self.addr.map_or(p.dst_ip(), Ipv4Addr::to_bits);
        match self.place {
            FieldToWrite::Header(at) => match p.network() {
                None => cx.out_or(1, Reason::NoIpHeader),
                Some(n) if n.len() < Ipv4Header::LEN => cx.out_or(1, Reason::TooShort),
                Some(_) => match p.network_mut().is_some_and(|n| rewrite(n, at, addr)) {
                    true => Verdict::Next,
                    false => cx.out_or(1, Reason::TooShort),
                },
            },
            FieldToWrite::Data(at) => {
                if p.len().checked_sub(4).is_none_or(|room| room < at) {
                    return cx.out_or(1, Reason::TooShort);
                }
                if let Some(field) = p.data_mut().get_mut(at..).and_then(|b| b.first_chunk_mut()) {
                    *field = addr.to_be_bytes();
                }
                Verdict::Next
            }
        }
    }
}

impl InKernel for StoreIpAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let new: Operand = match self.addr {
            Some(addr) => u32::from_ne_bytes(addr.octets()).into(),
            None => code.annotation(anno::DST_IP, Size::Word).into(),
        };
        let short = code.label();
        match self.place {
            FieldToWrite::Data(at) => {
                let at = i32::try_from(at).map_err(|_| Refused("OFFSET is too large".into()))?;
                code.need_at(at, 4, short);
                code.store(at, Size::Word, new);
                code.next(0);
            }
            FieldToWrite::Header(field) => match code.network() {
                None => code.next_or(1, Reason::NoIpHeader as u16),
                Some((at, _)) => lower_rewrite(code, at, field as i32, new, short),
            },
        }
        code.bind(short);
        code.next_or(1, Reason::TooShort as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use etherparse::{Ipv4Slice, PacketBuilder, TcpSlice, UdpSlice};

    fn marked(data: &[u8]) -> Packet {
        let mut p = packet(data);
        p.set_network_header(0, 20);
        p.set_dst_ip(0x0909_0909);
        p
    }
    fn built(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut data = Vec::new();
        write(&mut data);
        data
    }

    #[test]
    fn checksums_stay_right() {
        let from = || PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64);
        let tcp = built(|d| from().tcp(1, 2, 3, 4).write(d, b"abc").unwrap());
        let udp = built(|d| from().udp(1, 2).write(d, b"abc").unwrap());
        for a in 0..=255u8 {
            for (place, at) in [("src", 12), ("dst", 16)] {
                let addr = [a, 255 - a, a.wrapping_mul(7), 255];
                let mut kit =
                    Kit::<StoreIpAddress>::new(&format!("{}, {place}", Ipv4Addr::from(addr))).unwrap();
                for data in [&tcp, &udp] {
                    let out = kit.act([marked(data)]);
                    let bytes = out[0].1.data();
                    let ip = Ipv4Slice::from_slice(bytes).unwrap();
                    let h = ip.header().to_header();
                    assert_eq!(bytes[at..at + 4], addr);
                    assert_eq!(h.calc_header_checksum(), h.header_checksum);
                    let right = match bytes[9] {
                        6 => {
                            let t = TcpSlice::from_slice(ip.payload().payload).unwrap();
                            t.calc_checksum_ipv4(h.source, h.destination).unwrap() == t.checksum()
                        }
                        _ => {
                            let u = UdpSlice::from_slice(ip.payload().payload).unwrap();
                            let u_header = u.to_header();
                            u_header.calc_checksum_ipv4(&h, u.payload()).unwrap() == u.checksum()
                        }
                    };
                    assert!(right, "{place} {addr:?}");
                }
            }
        }
    }

    /// RFC 768: a checksum that is computed as zero is sent as 0xffff.
    #[test]
    fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
        let udp =
            built(|d| PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64).udp(1, 2).write(d, b"ab").unwrap());
        let mut zeros = 0;
        for low in 0..=u16::MAX {
            let [c, d] = low.to_be_bytes();
            let mut kit = Kit::<StoreIpAddress>::new(&format!("2.0.{c}.{d}, dst")).unwrap();
            let out = kit.act([marked(&udp)]);
            let sum = &out[0].1.data()[26..28];
            assert_ne!(sum, [0, 0], "{low}");
            zeros += usize::from(sum == [255, 255]);
        }
        assert_eq!(zeros, 1, "one address gives zero");
    }

    #[test]
    fn checksums_that_are_not_there_stay_away() {
        let mut data = built(|d| {
            PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64).udp(1, 2).write(d, b"abc").unwrap()
        });
        let mut kit = Kit::<StoreIpAddress>::new("9.9.9.9, dst").unwrap();
        for (at, v) in [(7, 1), (9, 47)] {
            let mut other = data.clone();
            other[at] = v;
            assert_eq!(kit.act([marked(&other)])[0].1.data()[20..], other[20..]);
        }
        data[26..28].fill(0);
        assert_eq!(kit.act([marked(&data)])[0].1.data()[20..], data[20..]);
        data[26..28].fill(1);
        data[3] = 26;
        assert_eq!(kit.act([marked(&data)])[0].1.data()[20..], data[20..], "behind the total length");
    }

    #[test]
    fn at_a_byte() {
        for (config, want) in
            [("3", [9, 9, 9, 9]), ("OFFSET 3, ADDR 1.2.3.4", [1, 2, 3, 4]), ("1.2.3.4, 3", [1, 2, 3, 4])]
        {
            for outputs in [1, 2] {
                let mut kit = Kit::<StoreIpAddress>::with_ports(config, 1, outputs).unwrap();
                for n in 0..60 {
                    let out = kit.act([marked(&vec![7; n])]);
                    if n >= 7 {
                        let mut all = vec![7; n];
                        all[3..7].copy_from_slice(&want);
                        assert_eq!((out[0].0, out[0].1.data()), (0, &all[..]));
                    } else if outputs == 2 {
                        assert_eq!((out[0].0, out[0].1.data()), (1, &vec![7; n][..]));
                    } else {
                        assert!(out.is_empty());
                    }
                }
                assert_eq!(kit.dropped(Reason::TooShort), if outputs == 1 { 7 } else { 0 });
            }
        }
        let mut kit = Kit::<StoreIpAddress>::new("4294967295").unwrap();
        assert!(kit.act([marked(&[0; 60])]).is_empty());
    }

    #[test]
    fn short_headers_and_errors() {
        for n in 0..20 {
            let mut kit = Kit::<StoreIpAddress>::new("dst").unwrap();
            assert!(kit.act([marked(&vec![0x45; n]), packet(&[0x45; 60])]).is_empty());
            assert_eq!((kit.dropped(Reason::TooShort), kit.dropped(Reason::NoIpHeader)), (1, 1));
        }
        for bad in ["", "x", "-1", "1.2.3.4, x", "x, 3", "1.2.3.4, 3, 4"] {
            assert!(Kit::<StoreIpAddress>::new(bad).is_err(), "{bad}");
        }
    }
}
