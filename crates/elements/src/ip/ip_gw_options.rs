// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPGWOptions: fills in the record route and timestamp options, and follows source routes.

mod source_route;

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_spec::anno::ICMP_PARAMPROB;
use castanet_wire::options::{Options, kind};
use castanet_wire::{Ipv4Header, checksum, ipv4};
use std::net::Ipv4Addr;

/// Fills in the record route and timestamp options of IPv4 packets.
///
/// The rules are those of RFC 791 section 3.1 and RFC 1812 section 5.3.13. `MYADDR` is written into a record route
/// option. The milliseconds since midnight UT are written into a timestamp option, together with `MYADDR` if the option
/// asks for addresses. An option in which the sender has listed the addresses gets the time only if the next address is
/// one of the router's. A full record route option stays unchanged. For a full timestamp option, the overflow count is
/// incremented. A packet with a malformed option leaves unchanged on output 1, with the offset of the bad byte in the
/// header as its ICMP_PARAMPROB annotation. Header checksums are updated. The network header must be marked.
///
/// By default, packets with a source route pass. With `SOURCE_ROUTE drop`, they are dropped, as RFC 7126 recommends
/// (sections 4.3.5 and 4.4.5). With `SOURCE_ROUTE follow`, they follow their routes (RFC 791 section 3.1, RFC 1812
/// section 5.3.13.4). If a packet is addressed to the router but its route has not ended, the next address of the route
/// becomes its destination, in header and annotation. The packet must then be routed again. Therefore packets to the
/// router's addresses must pass this element before the router accepts them as its own. When a packet leaves, and the
/// last recorded address of its source route is one of the router's, MYADDR replaces this address. If the route is
/// strict, the packet's next hop (the destination annotation) must be the next address of the route. With `drop` or
/// `follow`, record route and timestamp are not filled in for packets to the router's own addresses. These packets
/// either end at the router or pass an element of this class again when they leave.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with options filled in. Output 1 (optional): packets with malformed
/// options. Output 2 (optional): packets whose strict source route cannot be followed.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> options :: IPGWOptions(10.0.0.1) -> Discard;
/// options [1] -> ICMPError(10.0.0.1, parameterproblem) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPGWOptions", ports = "1/1-3", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(drops(BadIpOption, NoIpHeader, BadIpHeader, SourceRoute), depends = packet, clock)]
#[class(kernel)]
pub struct IpGwOptions {
    args: Args,
    /// Packets dropped or sent to output 1 because an option is malformed.
    #[count(unit = "packets")]
    drops: Count,
}

/// Arguments of IPGWOptions.
#[derive(Args)]
pub struct Args {
    /// The router's address that is written into options.
    myaddr: Ipv4Addr,
    /// Further addresses of the router.
    #[arg(default = IpList::default(), show = "")]
    otheraddrs: IpList,
    /// What to do with packets that have a source route: `pass`, `drop` or `follow`.
    #[arg(keyword, default = SourceRoutes::Pass, show = "pass")]
    source_route: SourceRoutes,
}

/// What to do with packets that have a source route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRoutes {
    /// Source routes are left unchanged.
    Pass,
    /// Packets with a source route are dropped.
    Drop,
    /// Source routes are followed.
    Follow,
}

impl ArgValue for SourceRoutes {
    const TYPE: &'static str = "pass, drop or follow";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<SourceRoutes, ValueError> {
        match text {
            "pass" => Ok(SourceRoutes::Pass),
            "drop" => Ok(SourceRoutes::Drop),
            "follow" => Ok(SourceRoutes::Follow),
            _ => Err(format!("'{text}' is not 'pass', 'drop' or 'follow'").into()),
        }
    }
}

/// The result of filling in the options of a packet.
enum Filled {
    Unchanged,
    Changed,
    /// An option is malformed. The number is the offset of the bad byte from the start of the header.
    Bad(usize),
    /// The packet has a source route, and SOURCE_ROUTE is `drop`.
    Forbidden,
    /// The packet has a strict source route, and its next hop is not the next address of the route.
    Failed,
}

/// The destination and next hop of a packet. Following a source route changes the destination.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The destination in the packet's header.
    dst: [u8; 4],
    /// The next hop; 0.0.0.0 if it is not known.
    hop: [u8; 4],
    /// Whether the destination is one of this router's addresses.
    here: bool,
    /// Whether a source route option has been read.
    routed: bool,
}

impl IpGwOptions {
    fn is_mine(&self, addr: [u8; 4]) -> bool {
        let addr = Ipv4Addr::from(addr);
        addr == self.args.myaddr || self.args.otheraddrs.0.contains(&addr)
    }

    /// Fills in `options`, the part of a header after its first 20 bytes. `now` is the time in nanoseconds since 1970.
    fn fill(&self, options: &mut [u8], way: &mut Way, now: i64) -> Filled {
        // With `drop` or `follow`, record route and timestamp are not filled in for packets to the router itself. Such
        // a packet ends here, or it has a source route that continues. In the latter case, the packet is forwarded, and
        // passes an element of this class again when it leaves.
        let ends = way.here && self.args.source_route != SourceRoutes::Pass;
        let mut result = Filled::Unchanged;
        let mut at = 0;
        loop {
            let rest = options.get(at..).unwrap_or_default();
            let (offset, kind, len) = match Options::new(rest).next() {
                None => return result,
                // `e.offset` is computed as if `rest` came right after the fixed header, so add `at`.
                Some(Err(e)) => return Filled::Bad(e.offset.saturating_add(at)),
                Some(Ok(o)) => (Ipv4Header::LEN + at, o.kind(), o.bytes.len()),
            };
            let Some(option) = options.get_mut(at..).and_then(|o| o.get_mut(..len)) else { return result };
            let filled = match kind {
                kind::LOOSE_SOURCE_ROUTE | kind::STRICT_SOURCE_ROUTE => match self.args.source_route {
                    SourceRoutes::Pass => Filled::Unchanged,
                    SourceRoutes::Drop => return Filled::Forbidden,
                    SourceRoutes::Follow => self.source_route(option, way),
                },
                kind::RECORD_ROUTE if !ends => self.record_route(option),
                kind::TIMESTAMP if !ends => self.timestamp(option, now),
                _ => Filled::Unchanged,
            };
            match filled {
                Filled::Unchanged => {}
                Filled::Changed => result = Filled::Changed,
                Filled::Bad(byte) => return Filled::Bad(offset + byte),
                other => return other,
            }
            at += len;
        }
    }

    fn record_route(&self, option: &mut [u8]) -> Filled {
        let &[_, _, pointer, ..] = &*option else { return Filled::Bad(1) };
        if pointer < 4 {
            return Filled::Bad(2);
        }
        // The pointer of the option counts from 1.
        let at = usize::from(pointer) - 1;
        if at >= option.len() {
            return Filled::Unchanged;
        }
        let Some(place) = option.get_mut(at..).and_then(|o| o.first_chunk_mut::<4>()) else {
            return Filled::Bad(2);
        };
        *place = self.args.myaddr.octets();
        option[2] = pointer.saturating_add(4);
        Filled::Changed
    }

    fn timestamp(&self, option: &mut [u8], now: i64) -> Filled {
        let &[_, _, pointer, flags, ..] = &*option else { return Filled::Bad(1) };
        if pointer < 5 {
            return Filled::Bad(2);
        }
        let at = usize::from(pointer) - 1;
        if at >= option.len() {
            // RFC 791: the overflow count is incremented. If the count itself overflows, the packet is in error.
            if flags >> 4 == 15 {
                return Filled::Bad(3);
            }
            option[3] = flags + 0x10;
            return Filled::Changed;
        }
        let time = u32::try_from(now.div_euclid(1_000_000).rem_euclid(86_400_000)).unwrap_or(0).to_be_bytes();
        let place = option.get_mut(at..).unwrap_or_default();
        let used = match flags & 15 {
            0 => {
                let Some(t) = place.first_chunk_mut::<4>() else { return Filled::Bad(2) };
                *t = time;
                4
            }
            form @ (1 | 3) => {
                let Some(&mut [a0, a1, a2, a3, ref mut t @ ..]) = place.first_chunk_mut::<8>() else {
                    return Filled::Bad(2);
                };
                if form == 3 && !self.is_mine([a0, a1, a2, a3]) {
                    return Filled::Unchanged;
                }
                *t = time;
                if form == 1
                    && let Some(a) = place.first_chunk_mut::<4>()
                {
                    *a = self.args.myaddr.octets();
                }
                8
            }
            _ => return Filled::Bad(3),
        };
        option[2] = pointer.saturating_add(used);
        Filled::Changed
    }

    #[cold]
    #[inline(never)]
    fn with_options(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(header) = p.network().and_then(ipv4::whole_header) else {
            return Verdict::Drop(if p.network().is_some() {
                Reason::BadIpHeader
            } else {
                Reason::NoIpHeader
            });
        };
        // Work on a copy, because a packet must leave unchanged if a later option turns out to be malformed.
        let mut copy = [0; 40];
        let old = header.get(Ipv4Header::LEN..).unwrap_or_default();
        let Some(new) = copy.get_mut(..old.len()) else { return Verdict::Next };
        new.copy_from_slice(old);
        let dst = Ipv4Header::from_prefix(header).map_or([0; 4], |h| h.dst.get().to_be_bytes());
        let mut way = Way { dst, hop: p.dst_ip().to_be_bytes(), here: self.is_mine(dst), routed: false };
        match self.fill(new, &mut way, cx.now()) {
            Filled::Unchanged => {}
            Filled::Changed => {
                let both =
                    |dst: [u8; 4], options: &[u8]| checksum::add(checksum::sum(&dst), checksum::sum(options));
                let (before, after) = (both(dst, old), both(way.dst, new));
                if let Some((h, rest)) = p.network_mut().and_then(Ipv4Header::split_mut) {
                    checksum::update_field16(&mut h.checksum, before, after);
                    h.dst.set(u32::from_be_bytes(way.dst));
                    rest.iter_mut().zip(new.iter()).for_each(|(to, from)| *to = *from);
                }
                if way.dst != dst {
                    p.set_dst_ip(u32::from_be_bytes(way.dst));
                }
            }
            Filled::Forbidden => return Verdict::Drop(Reason::SourceRoute),
            Filled::Failed => return cx.out_or(2, Reason::SourceRoute),
            Filled::Bad(byte) => {
                self.drops.add(1);
                p.set_anno_u8(ICMP_PARAMPROB, u8::try_from(byte).unwrap_or(0));
                return cx.out_or(1, Reason::BadIpOption);
            }
        }
        Verdict::Next
    }
}

impl Action for IpGwOptions {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match p.network() {
            Some([first, ..]) if first & 15 == 5 => Verdict::Next,
            _ => self.with_options(p, cx),
        }
    }
}

impl InKernel for IpGwOptions {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let other = code.label();
        match code.plain_header() {
            Some(at) => {
                code.need_at(at, 1, other);
                code.next(0);
            }
            _ => code.jump(other),
        }
        code.bind(other);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/ip_gw_options.rs"]
mod tests;
