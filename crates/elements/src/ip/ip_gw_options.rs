// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPGWOptions: the options that a router fills in.

use castanet_element::prelude::*;
use castanet_spec::anno::ICMP_PARAMPROB;
use castanet_wire::options::{Options, kind};
use castanet_wire::{Ipv4Header, checksum, ipv4};
use std::net::Ipv4Addr;

/// Fills in the record route and timestamp options of IPv4 packets.
///
/// RFC 791 section 3.1 and RFC 1812 section 5.3.13 say how: record route gets `MYADDR`, timestamp the milliseconds since midnight
/// UT, with `MYADDR` where addresses are asked for, or only where the next address given is one of the router's. A full
/// record route stays as it is; a full timestamp counts an overflow. A packet with a malformed option leaves unchanged
/// on output 1, its ICMP_PARAMPROB annotation the offset of the bad byte in the header. Header checksums are updated.
/// The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the same with options filled in. Output 1 (optional): packets with malformed options.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> options :: IPGWOptions(10.0.0.1) -> Discard;
/// options [1] -> ICMPError(10.0.0.1, parameterproblem) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPGWOptions", ports = "1/1-2", processing = "a/ah", packets = "ip/ip", workers = replicate(sum))]
#[class(drops(BadIpOption, NoIpHeader, BadIpHeader))]
pub struct IpGwOptions {
    args: Args,
    /// Packets with malformed options.
    #[handler]
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
}

/// What options come to.
enum Filled {
    Unchanged,
    Changed,
    /// Malformed; the offset of the bad byte from the start of the header.
    Bad(usize),
}

impl IpGwOptions {
    fn is_mine(&self, addr: [u8; 4]) -> bool {
        let addr = Ipv4Addr::from(addr);
        addr == self.args.myaddr || self.args.otheraddrs.0.contains(&addr)
    }

    /// Fills in `options`: what follows the first 20 bytes of a header.
    fn fill(&self, options: &mut [u8], now: i64) -> Filled {
        let mut result = Filled::Unchanged;
        let mut at = 0;
        loop {
            let rest = options.get(at..).unwrap_or_default();
            let (offset, kind, len) = match Options::new(rest).next() {
                None => return result,
                // Offsets from here on count from the whole header.
                Some(Err(e)) => return Filled::Bad(e.offset.saturating_add(at)),
                Some(Ok(o)) => (Ipv4Header::LEN + at, o.kind(), o.bytes.len()),
            };
            let Some(option) = options.get_mut(at..).and_then(|o| o.get_mut(..len)) else { return result };
            let filled = match kind {
                kind::RECORD_ROUTE => self.record_route(option),
                kind::TIMESTAMP => self.timestamp(option, now),
                _ => Filled::Unchanged,
            };
            match filled {
                Filled::Unchanged => {}
                Filled::Changed => result = Filled::Changed,
                Filled::Bad(byte) => return Filled::Bad(offset + byte),
            }
            at += len;
        }
    }

    fn record_route(&self, option: &mut [u8]) -> Filled {
        let &[_, _, pointer, ..] = &*option else { return Filled::Bad(1) };
        if pointer < 4 {
            return Filled::Bad(2);
        }
        // The pointer counts from 1.
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
            // RFC 791: the overflow count goes up; when that overflows, the packet is in error.
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
        // On a copy: what turns out malformed at its end must leave as it came.
        let mut copy = [0; 40];
        let old = header.get(Ipv4Header::LEN..).unwrap_or_default();
        let Some(new) = copy.get_mut(..old.len()) else { return Verdict::Next };
        new.copy_from_slice(old);
        match self.fill(new, cx.now()) {
            Filled::Unchanged => {}
            Filled::Changed => {
                let (before, after) = (checksum::sum(old), checksum::sum(new));
                if let Some((h, rest)) = p.network_mut().and_then(Ipv4Header::split_mut) {
                    checksum::update_field16(&mut h.checksum, before, after);
                    rest.iter_mut().zip(new.iter()).for_each(|(to, from)| *to = *from);
                }
            }
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

#[cfg(test)]
#[path = "tests/ip_gw_options.rs"]
mod tests;
