// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckIPHeader: checks IPv4 headers.

use super::sources::Addresses;
use castanet_element::count;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Refused, Size, Test};
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::checksum;
use castanet_wire::ipv4::{Ipv4Error, Ipv4Header};
use std::net::Ipv4Addr;

/// Checks IPv4 headers and marks them.
///
/// The tests are those of RFC 1812 section 5.2.2, in this order: at least 20 bytes, version 4, a header length that
/// fits, a total length that fits, a correct checksum. Finally, the source address must not be a bad source, unless the
/// destination is one of `GOODDST`. A good packet is cut to its total length, its network header is marked, and the
/// destination address annotation is set. A bad packet leaves on output 1, or is dropped if that output is not
/// connected. A message is printed for the first bad packet only or, with `VERBOSE`, for every bad packet.
/// `CheckIPHeader2` does the same, but does not check the checksum. In old configurations, the first argument is the
/// list of bad sources, and the second is the offset.
///
/// # Ports
/// Input 0: packets with an IP header at `OFFSET`. Output 0: good packets. Output 1 (optional): bad packets.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
///     -> check :: CheckIPHeader(INTERFACES 1.0.0.9/8 2.0.0.9/8) -> Discard;
/// check [1] -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "CheckIPHeader",
    aliases("CheckIPHeader2"),
    ports = "1/1-2",
    processing = "a/ah",
    packets = "ip at OFFSET/check OFFSET, same"
)]
#[class(workers = replicate, effects(prints), drops(BadIpHeader, TooShort, BadSource), build, lifecycle, handlers)]
#[class(packets_if("OLD_OFFSET *", "ip at OLD_OFFSET/check OLD_OFFSET, same"))]
#[class(packets_if("OFFSET *.*", "ip at 0/check 0, same"), depends = packet)]
#[class(kernel)]
pub struct CheckIpHeader {
    args: Args,
    offset: usize,
    checksum: bool,
    bad_sources: Addresses,
    good_destinations: Addresses,
    /// Packets that failed a test.
    #[count(name = "drops", unit = "packets", hidden, label(reason = &FAULTS))]
    bad: [Count; FAULTS.len()],
}

/// Arguments of CheckIPHeader.
#[derive(Args)]
pub struct Args {
    /// Where the IP header starts, in bytes from the start of the packet.
    #[arg(show = "0")]
    offset: Option<First>,
    /// The offset in old configurations, where the first argument is the list of bad sources.
    #[arg(rest, name = "OLD_OFFSET")]
    old: Vec<First>,
    /// The router's networks, each written as the router's own address with a prefix length. 0.0.0.0, 255.255.255.255
    /// and the networks' broadcast addresses become bad sources; the router's addresses become good destinations.
    #[arg(keyword)]
    interfaces: Option<Interfaces>,
    /// Source addresses that are bad.
    #[arg(keyword)]
    badsrc: Option<IpList>,
    /// Destination addresses of packets that are accepted even if their source address is bad.
    #[arg(keyword)]
    gooddst: Option<IpList>,
    /// Whether to print a message for every bad packet, not only for the first.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether the handler drop_details reports the number of bad packets by fault.
    #[arg(keyword, default = false)]
    details: bool,
    /// Whether to check the checksum; false for CheckIPHeader2.
    #[arg(keyword, show = "true")]
    checksum: Option<bool>,
}

/// The first argument: an offset or, in old configurations, the bad sources.
#[derive(Clone, Debug)]
enum First {
    Offset(u32),
    BadSources(IpList),
}

impl ArgValue for First {
    const TYPE: &'static str = "int";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<First, ValueError> {
        match u32::parse(text, cx) {
            Ok(n) => Ok(First::Offset(n)),
            Err(number) => IpList::parse(text, cx).map(First::BadSources).map_err(|_| number),
        }
    }
}

/// The router's networks, each written as the router's own address with a prefix length.
struct Interfaces(Vec<Prefix>);

impl ArgValue for Interfaces {
    const TYPE: &'static str = "list of ip-prefix";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Interfaces, ValueError> {
        let words = castanet_lang::args::words(text).into_iter();
        words
            .map(|r| Prefix::read(text.get(r).unwrap_or(""), cx, false))
            .collect::<Result<_, _>>()
            .map(Interfaces)
    }
}

/// The faults of a header, in the order in which they are tested.
const FAULTS: [&str; 6] = [
    "tiny packet",
    "bad IP version",
    "bad IP header length",
    "bad IP length",
    "bad IP checksum",
    "bad source address",
];

impl Build for CheckIpHeader {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let (mut offsets, mut bad, mut lists) = (Vec::new(), Vec::new(), 0);
        for first in args.offset.iter().chain(&args.old) {
            match first {
                First::Offset(n) => offsets.push(*n as usize),
                First::BadSources(list) => {
                    bad.extend(&list.0);
                    lists += 1;
                }
            }
        }
        if offsets.len() > 1 || lists > 1 {
            return Err("too many arguments".into());
        }
        bad.extend(args.badsrc.iter().flat_map(|l| &l.0));
        let mut good: Vec<_> = args.gooddst.iter().flat_map(|l| &l.0).copied().collect();
        if let Some(Interfaces(list)) = &args.interfaces {
            bad.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
            // Networks with a prefix of 31 bits (RFC 3021) and single hosts (32 bits) have no broadcast address.
            bad.extend(list.iter().filter(|p| p.len < 31).map(|p| p.broadcast()));
            good.extend(list.iter().map(|p| p.addr));
        }
        Ok(CheckIpHeader {
            offset: offsets.first().copied().unwrap_or(0),
            checksum: args.checksum.unwrap_or(cx.written_class != "CheckIPHeader2"),
            bad_sources: Addresses::new(bad),
            good_destinations: Addresses::new(good),
            bad: Default::default(),
            args,
        })
    }
}

impl Lifecycle for CheckIpHeader {
    /// Without VERBOSE, returns no effects: a message is printed only for the first bad packet, so packets may be
    /// processed in batches.
    fn effects(&self, declared: Effects) -> Effects {
        if self.args.verbose { declared } else { Effects::empty() }
    }
}

#[handlers]
impl CheckIpHeader {
    /// Packets that failed a test.
    #[read(unit = "packets", merge = sum)]
    pub(super) fn drops(&self) -> Counted {
        Counted(self.bad.iter().map(|c| c.get()).fold(0, u64::wrapping_add))
    }
    /// Packets that failed a test, by fault; an error unless DETAILS is true.
    #[read(merge = sum)]
    pub(super) fn drop_details(&self) -> Result<Table, HandlerError> {
        if !self.args.details {
            return Err("the element keeps no details without 'DETAILS true'".into());
        }
        Ok(Table(count::table(&self.bad, &FAULTS)))
    }
}

impl CheckIpHeader {
    /// Runs all tests. Returns the header length, or the index in `FAULTS` of the first fault.
    fn examine(&self, bytes: &[u8]) -> Result<usize, usize> {
        let header = Ipv4Header::checked(bytes, self.checksum).map_err(|e| match e {
            Ipv4Error::Tiny => 0usize,
            Ipv4Error::Version => 1,
            Ipv4Error::HeaderLen => 2,
            Ipv4Error::TotalLen => 3,
            Ipv4Error::Checksum => 4,
        })?;
        if self.bad_sources.contains(header.src.get()) && !self.good_destinations.contains(header.dst.get()) {
            return Err(5);
        }
        Ok(header.header_len())
    }

    /// Returns the total length and the destination of a packet. None if the packet fails a quick test. Nearly every
    /// packet passes the quick tests, because it has version 4 and no options.
    #[inline(always)]
    fn common(&self, bytes: &[u8]) -> Option<(usize, u32)> {
        let h = bytes.first_chunk::<{ Ipv4Header::LEN }>()?;
        // The checksum is tested first. If a branch on the first byte came first, the compiler would know that byte,
        // and would split the wide loads. For the same reason, one wide load reads both version and total length.
        if self.checksum && !checksum::ipv4_header20_ok(h) {
            return None;
        }
        let front = u64::from_le_bytes(*h.first_chunk()?);
        let total = usize::from(((front >> 16) as u16).swap_bytes());
        let dst = u32::from_be_bytes(*h.last_chunk()?);
        // If the total length is below 20, the subtraction wraps around, and the result is larger than any packet's
        // length.
        let fits = total.wrapping_sub(h.len()) <= bytes.len().wrapping_sub(h.len());
        let good = front as u8 == 0x45 && fits && !self.bad_sources.may_end_with(h[15]);
        good.then_some((total, dst))
    }

    /// Runs all tests one by one. Called for packets that fail a quick test, for example because they have options.
    #[cold]
    #[inline(never)]
    fn uncommon(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let bytes = p.data().get(self.offset..).unwrap_or_default();
        match self.examine(bytes) {
            Ok(header_len) => {
                let Some(header) = Ipv4Header::from_prefix(bytes) else {
                    return Verdict::Drop(Reason::TooShort);
                };
                let (total, dst) = (usize::from(header.total_len.get()), header.dst.get());
                self.mark(p, header_len, total, dst);
                Verdict::Next
            }
            Err(fault) => {
                let text = FAULTS.get(fault).copied().unwrap_or_default();
                let reason = match fault {
                    0 => Reason::TooShort,
                    5 => Reason::BadSource,
                    _ => Reason::BadIpHeader,
                };
                if self.args.verbose || self.drops().0 == 0 {
                    cx.message(&format!("{}: IP header check failed: {text}", cx.name()));
                }
                if let Some(n) = self.bad.get_mut(fault) {
                    n.add(1);
                }
                cx.out_or(1, reason)
            }
        }
    }

    #[inline(always)]
    fn mark(&self, p: &mut Packet, header_len: usize, total: usize, dst: u32) {
        p.set_network_header(self.offset, header_len);
        p.truncate(self.offset + total);
        p.set_dst_ip(dst);
    }
}

impl Action for CheckIpHeader {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match p.data().get(self.offset..).and_then(|bytes| self.common(bytes)) {
            Some((total, dst)) => {
                self.mark(p, Ipv4Header::LEN, total, dst);
                Verdict::Next
            }
            None => self.uncommon(p, cx),
        }
    }
}

impl CheckIpHeader {
    /// Describes the tests. Good packets continue with `good`.
    pub(super) fn lower_tests(&self, code: &mut Code<'_>, good: impl Fn(&mut Code<'_>)) -> Lowered {
        let at = i32::try_from(self.offset).map_err(|_| Refused("OFFSET is too large".into()))?;
        // Packets that fail a quick test go up, as they go to `uncommon` at user level.
        let uncommon = code.label();
        code.need_at(at, Ipv4Header::LEN as u32, uncommon);
        let first = code.load(at, Size::Byte);
        code.branch(first, Test::Differ, 0x45u32, uncommon);
        if self.checksum {
            let sum = code.load(at, Size::Word);
            for word in 1..5 {
                let next = code.load(at + 4 * word, Size::Word);
                code.compute_into(sum, Arithmetic::Add, sum, next);
            }
            // Two rounds are enough: the sum of five words has 35 bits, after one round 19 and after two at most 0xffff + 5.
            for _ in 0..2 {
                let high = code.compute(Arithmetic::ShiftRight, sum, 16u32);
                code.compute_into(sum, Arithmetic::And, sum, 0xffffu32);
                code.compute_into(sum, Arithmetic::Add, sum, high);
            }
            code.branch(sum, Test::Differ, 0xffffu32, uncommon);
        }
        let bad: Vec<u32> = self.bad_sources.all();
        if !bad.is_empty() {
            let source = code.load(at + 12, Size::Word);
            for address in bad {
                code.branch(source, Test::Equal, address.to_be(), uncommon);
            }
        }
        let total = code.load_number(at + 2, Size::Half);
        code.branch(total, Test::Less, Ipv4Header::LEN as u32, uncommon);
        let end = if at == 0 { total } else { code.compute(Arithmetic::Add, total, i64::from(at)) };
        let longer = code.label();
        code.branch_length(end, Some(uncommon), Some(longer));
        let mark = |code: &mut Code<'_>| {
            code.mark_network(at, Ipv4Header::LEN as u32);
            let dst = code.load(at + 16, Size::Word);
            code.set_annotation(anno::DST_IP, Size::Word, dst);
            good(code);
        };
        mark(code);
        code.bind(longer);
        code.shorten(end, at as u32 + Ipv4Header::LEN as u32);
        mark(code);
        code.bind(uncommon);
        code.up();
        Ok(())
    }
}

impl InKernel for CheckIpHeader {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.lower_tests(code, |code| code.next(0))
    }
}

#[cfg(test)]
#[path = "tests/check_ip_header.rs"]
mod tests;
