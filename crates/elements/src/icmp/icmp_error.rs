// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPError: makes ICMP error messages about packets.

mod source_route;
#[cfg(test)]
mod tests;

use crate::ip::numbers::Numbers;
use castanet_classify::names;
use castanet_element::prelude::*;
use castanet_spec::{Show, anno};
use castanet_wire::icmp::{self, IcmpHeader};
use castanet_wire::ipv4::{self, Ipv4Header};
use castanet_wire::{Be16, checksum};
use source_route::SourceRoute;
use std::net::Ipv4Addr;

/// Replaces each packet by an ICMP error message about it.
///
/// The message (RFC 792, RFC 1812 section 4.3) goes to the source of the packet. It quotes the packet from its IP
/// header on. The quote is as long as a message of MTU bytes allows, and has at least the header and 8 bytes. RFC 1812
/// section 4.3.2.7 forbids errors about some packets, which are dropped. Dropped by protocol: ICMP errors, and ICMP
/// messages that are too short to have a type. Dropped by destination: packets to a multicast or broadcast address, of
/// IP or of the link layer (packet type annotation), or to one of BADADDRS. Dropped by source: packets whose source is
/// not a single host (0/8, 127/8, multicast, 240/4 and above, BADADDRS). All fragments other than the first are dropped
/// too. No redirects are sent about packets with a source route (section 5.2.7.2). An error about a packet with a
/// source route returns by the recorded part of that route, in reverse order (section 4.3.2.6), unless the error is
/// about the source route option itself.
///
/// The pointer of a parameter problem is the packet's ICMP_PARAMPROB annotation. The gateway of a redirect is the
/// destination address annotation. The next-hop MTU of `unreachable needfrag` is PMTU (RFC 1191 section 4). The message
/// has TTL 200, type of service 0, and an identification that counts up from an unpredictable number (from 1 with
/// `--seed`). Replicas on several workers use different identifications. These annotations of the message are set anew:
/// destination address, FIX_IP_SRC (so that FixIPSrc inserts the address of the interface on which the message leaves),
/// and the current time as timestamp.
///
/// # Ports
/// Input 0: IP packets with marked network header. Output 0: ICMP errors.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<45000030 00010000 01110000 0a000001 0a000002 03e807d0 001c0000>, LIMIT 1, STOP true)
///     -> MarkIPHeader -> ICMPError(10.0.0.9, timeexceeded, transit) -> IPPrint(error) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ICMPError", offload = none, ports = "1/1", processing = "a/a", packets = "ip/ip", workers = replicate, build, lifecycle)]
#[class(reconfigure = keeps, takes_state = "the next IP identification")]
#[class(drops(NoIcmpError, NoIpHeader, BadIpHeader, TooLong), depends = order, clock)]
pub struct IcmpError {
    args: Args,
    /// The ICMP code of the messages.
    code: u8,
    /// The counter for the IP identifications of messages.
    numbers: Numbers,
    /// ICMP errors made.
    #[count(unit = "packets")]
    sent: Count,
}

/// Arguments of ICMPError.
#[derive(Args)]
pub struct Args {
    /// Source address of the messages.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Type of the messages: `unreachable`, `timeexceeded`... or a number.
    #[arg(name = "TYPE")]
    kind: ErrorType,
    /// Code of the messages: `host`, `transit`... or a number.
    #[arg(default = Word("0".into()), show = "0")]
    code: Word,
    /// Bad addresses: no errors are sent about packets from them or to them.
    #[arg(default = IpList::default(), show = "")]
    badaddrs: IpList,
    /// The maximum length of a message, including its IP header, in bytes.
    #[arg(keyword, default = 576, handler = "rw")]
    mtu: u32,
    /// The next-hop MTU that `unreachable needfrag` reports, in bytes.
    #[arg(keyword, default = 0, handler = "rw")]
    pmtu: u16,
    /// Whether the FIX_IP_SRC annotation is set, so that FixIPSrc replaces the source address of the messages.
    #[arg(keyword, default = true)]
    set_fix_anno: bool,
}

/// The type of an ICMP error, given by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorType(u8);

impl ArgValue for ErrorType {
    const TYPE: &'static str = "ICMP error type";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<ErrorType, ValueError> {
        let kind = match names::icmp_type_number(text) {
            Some(n) => n,
            None => u8::parse(text, cx).map_err(|_| format!("'{text}' is not an ICMP type"))?,
        };
        if icmp::is_error(kind) {
            Ok(ErrorType(kind))
        } else {
            Err(format!("'{text}' is not an ICMP error type").into())
        }
    }
}

impl Show for ErrorType {
    fn show(&self) -> String {
        names::icmp_type_name(self.0).map_or_else(|| self.0.to_string(), Into::into)
    }
}

impl Build for IcmpError {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let text = &args.code.0;
        let named = names::icmp_code_number(args.kind.0, text);
        let Some(code) = named.or_else(|| u8::parse(text, &cx.arg_cx()).ok()) else {
            return Err(format!("CODE: '{text}' is not a code of ICMP type {}", args.kind.show()).into());
        };
        Ok(IcmpError { args, code, numbers: Numbers::new(cx, 1), sent: Count::default() })
    }
}

/// Returns true for addresses that do not identify a single host, such as multicast addresses (RFC 1812 section
/// 4.3.2.7).
fn is_no_host(addr: u32) -> bool {
    matches!(addr >> 24, 0 | 127 | 224..)
}

impl IcmpError {
    fn is_bad(&self, addr: u32) -> bool {
        self.args.badaddrs.0.iter().any(|b| b.to_bits() == addr)
    }

    /// Whether an error may be sent about the packet with IP header `h` and link-layer packet type `kind` (RFC 1812
    /// section 4.3.2.7).
    fn allowed(&self, h: &Ipv4Header, ip: &[u8], kind: PacketType) -> bool {
        if matches!(kind, PacketType::Broadcast | PacketType::Multicast) || !h.is_first_fragment() {
            return false;
        }
        let (src, dst) = (h.src.get(), h.dst.get());
        if is_no_host(src)
            || self.is_bad(src)
            || ipv4::is_multicast(dst)
            || dst == u32::MAX
            || self.is_bad(dst)
        {
            return false;
        }
        // An ICMP message that is too short to have a type may itself be an error, so no error is sent about it.
        h.protocol != ipv4::protocol::ICMP || ip.get(h.header_len()).is_some_and(|&t| !icmp::is_error(t))
    }

    /// Returns the second word of the ICMP header. Depending on the type, it holds the pointer, the gateway, the
    /// next-hop MTU or zero.
    fn rest(&self, p: &Packet) -> u32 {
        match (self.args.kind.0, self.code) {
            (icmp::kind::PARAMETER_PROBLEM, icmp::parameter_problem::POINTER) => {
                icmp::pointer_word(p.anno_u8(anno::ICMP_PARAMPROB))
            }
            (icmp::kind::REDIRECT, _) => p.dst_ip(),
            (icmp::kind::UNREACHABLE, icmp::unreachable::NEED_FRAGMENT) => u32::from(self.args.pmtu),
            _ => 0,
        }
    }

    /// Returns what the message about a packet needs: its destination, its source route (if it gets one), and the
    /// number of bytes to quote. If no message may be sent, the error is the drop reason.
    fn answer(&self, p: &Packet) -> Result<(u32, Option<SourceRoute>, usize), Reason> {
        let ip = p.network().ok_or(Reason::NoIpHeader)?;
        let h = Ipv4Header::from_prefix(ip).ok_or(Reason::NoIpHeader)?;
        let header_len = h.header_len();
        if h.version() != 4 || header_len < Ipv4Header::LEN || header_len > ip.len() {
            return Err(Reason::BadIpHeader);
        }
        if !self.allowed(h, ip, p.packet_type()) {
            return Err(Reason::NoIcmpError);
        }
        let mut route = None;
        if let Some(option) = source_route::find(ip) {
            if self.args.kind.0 == icmp::kind::REDIRECT {
                return Err(Reason::NoIcmpError);
            }
            let pointer = usize::from(p.anno_u8(anno::ICMP_PARAMPROB));
            let complains = self.args.kind.0 == icmp::kind::PARAMETER_PROBLEM
                && (option.offset..option.offset.saturating_add(option.bytes.len())).contains(&pointer);
            if !complains {
                route = SourceRoute::reversed(&option, h.src.get());
            }
        }
        // Bytes after the end of the IP packet are padding of the link, and are not quoted.
        let datagram = ip.len().min(usize::from(h.total_len.get()).max(header_len));
        let headers = Ipv4Header::LEN + route.as_ref().map_or(0, SourceRoute::len) + IcmpHeader::LEN;
        // RFC 792: quote at least the header and 8 bytes of data.
        let room = (self.args.mtu as usize).saturating_sub(headers).max(header_len.saturating_add(8));
        Ok((h.src.get(), route, datagram.min(room)))
    }

    /// Puts the ICMP header, the IP options and the IP header before the quoted packet. None if they do not fit.
    fn encapsulate(&mut self, p: &mut Packet, rest: u32, dst: u32, options: &[u8]) -> Option<()> {
        let message = p.push_header::<{ IcmpHeader::LEN }>()?;
        *message = IcmpHeader::new(self.args.kind.0, self.code, rest).to_bytes();
        icmp::set_checksum(p.data_mut());
        if !p.unstrip(options.len()) {
            return None;
        }
        p.data_mut().get_mut(..options.len())?.copy_from_slice(options);
        let header_len = Ipv4Header::LEN + options.len();
        // The total length fits, unless MTU is larger than IPv4 allows. The message has at most MTU bytes, or just
        // enough to quote the packet's header and 8 bytes.
        let total = u16::try_from(p.len().saturating_add(Ipv4Header::LEN)).ok()?;
        let mut h = Ipv4Header::new(ipv4::protocol::ICMP, self.args.src.to_bits(), dst, total, 200);
        h.id = Be16::new(self.numbers.id());
        h.set_header_len(header_len);
        h.checksum = Be16::new(0);
        *p.push_header::<{ Ipv4Header::LEN }>()? = h.to_bytes();
        let whole = p.data_mut().get_mut(..header_len)?;
        let sum = checksum::ipv4_header_checksum(whole);
        Ipv4Header::from_prefix_mut(whole)?.checksum.set(sum);
        p.set_network_header(0, header_len);
        self.numbers.advance();
        Some(())
    }
}

impl Lifecycle for IcmpError {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers.go_on_from(old.numbers);
        Ok(())
    }
}

impl Action for IcmpError {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let (src, route, quoted) = match self.answer(p) {
            Ok(a) => a,
            Err(reason) => return Verdict::Drop(reason),
        };
        let rest = self.rest(p);
        let moved = match p.network_offset() {
            Some(n) if n >= 0 => p.strip(n.unsigned_abs()),
            Some(n) => p.unstrip(n.unsigned_abs()),
            None => false,
        };
        p.truncate(quoted);
        let dst = route.as_ref().map_or(src, SourceRoute::first_hop);
        let options = route.as_ref().map_or(&[][..], SourceRoute::bytes);
        if !moved || self.encapsulate(p, rest, dst, options).is_none() {
            return Verdict::Drop(Reason::TooLong);
        }
        p.clear_mac_header();
        p.set_packet_type(PacketType::Host);
        p.set_anno(0, [0; anno::SIZE]);
        p.set_dst_ip(dst);
        p.set_anno_u8(anno::FIX_IP_SRC, u8::from(self.args.set_fix_anno));
        let now = cx.now();
        p.set_timestamp(now);
        self.sent.add(1);
        Verdict::Next
    }
}
