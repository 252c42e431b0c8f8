// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPRewriter: rewrites ICMP errors about packets that rewriters have rewritten.

mod kernel;

use super::flow::{RewriterKind, bit};
use super::handle::{self, Link};
use super::header::{self, Addr, AddrPair, Family, Key, Ping, Ports};
use super::pattern::words;
use super::registry::Registry;
use super::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;
use castanet_wire::{IcmpHeader, TcpHeader, checksum, icmp};
use std::sync::Arc;

/// Rewrites ICMP errors about rewritten packets, for the senders of those packets (RFC 5508 section 4).
///
/// ICMPRewriter looks up the flow of the quoted packet in the rewriters in MAPS. If it finds one, it restores the
/// addresses and ports (or identifier) that the quoted packet was sent with. It then updates the checksums of the
/// quoted packet and of the ICMP message (RFC 1624), and readdresses the error to the packet's sender. If the packet's
/// receiver itself sent the error, the new source is the address by which the sender knows the receiver.
///
/// In the kernel, errors about flows are rewritten of which the kernel has copies (IPRewriter and its relatives by ports, and
/// ICMPPingRewriter, without PORTOFFSET); all others go up.
///
/// # Ports
/// Input 0: ICMP packets. Output 0: rewritten errors. If MAPS gives a rewriter a PORTOFFSET, errors about its flows do
/// not leave on output 0, but on the output whose number is the flow's output number plus PORTOFFSET. Output 1
/// (optional): other ICMP packets; without output 1 they are dropped.
///
/// # Example
/// ```click
/// rw :: UDPRewriter(pattern 9.9.9.9 1024-65535# - - 0 1);
/// icmp :: ICMPRewriter(rw);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> rw;
/// rw [0] -> ICMPError(3.0.0.3, unreachable, host) -> icmp -> IPPrint(back) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, stop);
/// ```
#[derive(Class)]
#[class(name = "ICMPRewriter", ports = "1/1-", processing = "h/h", packets = "ip/same", workers = share, build, lifecycle, kernel)]
#[class(offload = none, drops(NoMapping, NotRewritable, NoIpHeader, NoPort))]
pub struct IcmpRewriter {
    args: Args,
    registry: Arc<Registry>,
    maps: Vec<(Link, RewriterKind, Option<u16>)>,
}

/// Arguments of ICMPRewriter.
#[derive(Args)]
pub struct Args {
    /// Names of rewriters, separated by spaces; `NAME:PORTOFFSET` sends errors to the output whose number is
    /// that of the flow's output plus PORTOFFSET.
    maps: Maps,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
    /// A one-byte annotation: errors in the reply direction get the value that the flow keeps for replies.
    #[arg(keyword)]
    reply_anno: Option<Anno1>,
}

/// The rewriters to search, each as element number and PORTOFFSET. If the PORTOFFSET is `None`, errors about the
/// rewriter's flows go to output 0.
#[derive(Clone, Debug)]
pub struct Maps(Vec<(u32, Option<u16>)>);

impl ArgValue for Maps {
    const TYPE: &'static str = "list of rewriters";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Maps, ValueError> {
        let one = |word: &&str| {
            let (name, offset) = match word.rsplit_once(':') {
                Some((n, o)) => (n, Some(u16::parse(o, cx)?)),
                None => (*word, None),
            };
            Ok((handle::rewriter(name, handle::CLASSES, cx)?, offset))
        };
        let all = words(text).iter().map(one).collect::<Result<Vec<_>, ValueError>>()?;
        if all.is_empty() { Err("expected the names of rewriters".into()) } else { Ok(Maps(all)) }
    }
}

impl Build for IcmpRewriter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(IcmpRewriter { args, registry: Registry::of(cx), maps: Vec::new() })
    }
}

impl Lifecycle for IcmpRewriter {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        for (element, offset) in &self.args.maps.0 {
            let handle = self.registry.rewriter(*element).ok_or("MAPS: names no rewriter")?;
            self.maps.push((handle.link(&self.registry)?.clone(), handle.kind(), *offset));
        }
        Ok(())
    }
}

impl Element for IcmpRewriter {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.recent();
        for mut p in batch.drain() {
            let Some(net) = p.network() else {
                cx.drop(p, Reason::NoIpHeader);
                continue;
            };
            if net.get(9) != Some(&protocol::ICMP) {
                cx.drop(p, Reason::NotRewritable);
                continue;
            }
            match self.translate(&mut p, now) {
                Some(out) => cx.emit(out, p),
                None => cx.emit_or(1, p, Reason::NoMapping),
            }
        }
    }
}

/// An ICMP error and the packet that it quotes.
struct Quote {
    /// The offset of the quoted packet from the network header.
    at: usize,
    /// The key of the error itself.
    outer: Key,
    /// Fields of the quoted packet: its addresses, the first eight bytes behind its IP header (if they are
    /// quoted), its protocol, and the length of its IP header.
    addrs: u64,
    first: Option<[u8; 8]>,
    proto: u8,
    header: u8,
}

fn quote(net: &[u8]) -> Option<Quote> {
    let outer = AddrPair::key(net)?;
    let total = usize::from(u16::from_be_bytes(*net.get(2..)?.first_chunk()?));
    let fragment = u16::from_be_bytes(*net.get(6..)?.first_chunk()?);
    // Fragments are not rewritten: a first fragment has only part of the error, and later ones have no ICMP
    // header.
    if fragment & (castanet_wire::ipv4::MORE_FRAGMENTS | castanet_wire::ipv4::OFFSET_MASK) != 0 {
        return None;
    }
    let net = net.get(..total)?;
    let message = net.get(usize::from(outer.header)..)?;
    if !icmp::is_error(IcmpHeader::from_prefix(message)?.kind) {
        return None;
    }
    let at = usize::from(outer.header) + IcmpHeader::LEN;
    let quoted = net.get(at..)?;
    let key = AddrPair::key(quoted)?;
    let fragment = u16::from_be_bytes(*quoted.get(6..)?.first_chunk()?);
    let first = quoted.get(usize::from(key.header)..)?.first_chunk().copied();
    let first = first.filter(|_| fragment & castanet_wire::ipv4::OFFSET_MASK == 0);
    Some(Quote { at, outer, addrs: key.tuple.addrs, first, proto: key.proto, header: key.header })
}

impl Quote {
    /// Returns the tuple and the protocol number by which a rewriter of `kind` looks up the quoted packet;
    /// `None` if such a rewriter does not rewrite it.
    fn tuple(&self, kind: RewriterKind) -> Option<(Tuple, u8)> {
        let addrs = self.addrs;
        match kind {
            RewriterKind::Ports | RewriterKind::AnyPorts => {
                let has_ports = matches!(self.proto, protocol::TCP | protocol::UDP | protocol::DCCP);
                let [a, b, c, d, ..] = self.first.filter(|_| has_ports)?;
                Some((Tuple { addrs, ports: u32::from_le_bytes([a, b, c, d]) }, kind.table(self.proto)))
            }
            RewriterKind::Ping if self.proto == protocol::ICMP => {
                let [kind, _, _, _, a, b, ..] = self.first?;
                let ports = match kind {
                    icmp::kind::ECHO => [a, b, 0, 0],
                    icmp::kind::ECHO_REPLY => [0, 0, a, b],
                    _ => return None,
                };
                Some((Tuple { addrs, ports: u32::from_le_bytes(ports) }, 0))
            }
            RewriterKind::Ping => None,
            RewriterKind::Addr | RewriterKind::Pair => Some((Tuple { addrs, ports: 0 }, 0)),
        }
    }
}

impl IcmpRewriter {
    /// Rewrites an error and returns its output; `None` if no flow is found.
    fn translate(&self, p: &mut Packet, now: i64) -> Option<usize> {
        let quote = quote(p.network()?)?;
        for (link, kind, offset) in &self.maps {
            let Some((sent, proto)) = quote.tuple(*kind) else { continue };
            // A genuine error is addressed to the sender of the packet that it quotes. An error to any other
            // address is not trusted.
            let back = sent.reversed();
            if quote.outer.tuple.dst() != back.dst() {
                return None;
            }
            let mut store = link.store();
            let found = match kind {
                RewriterKind::Addr => {
                    let key = Key { tuple: back, proto, header: 20 };
                    let forward = store.look_up(link.space, proto, Addr::forward_key(key), now);
                    forward.or_else(|| store.look_up(link.space, proto, Addr::reply_key(key)?, now))
                }
                _ => store.look_up(link.space, proto, back, now),
            };
            let Some(value) = found else { continue };
            let (place, reply) = (value >> 1, value & 1 == 1);
            let flow = store.flow(place)?;
            let mut to = flow.rewritten(reply);
            if *kind == RewriterKind::Addr {
                to = Addr::become_of(Key { tuple: back, proto, header: 20 }, to, reply);
            }
            let (out, anno) = (flow.outs[usize::from(reply)], flow.anno);
            // If the flow shifts the sequence number of the quoted segment, compute the number that the sender of the
            // segment used.
            let shifted = flow.bits & bit::SHIFTED != 0 && quote.proto == protocol::TCP;
            let shifts = if shifted { store.shifts(place) } else { None };
            let seq = shifts.zip(quote.first).map(|([forward, back], [.., a, b, c, d])| {
                let shift = if reply { forward } else { back };
                shift.back(u32::from_be_bytes([a, b, c, d]))
            });
            drop(store);
            mend(p.network_mut()?, &quote, *kind, sent, to, seq);
            if self.args.dst_anno {
                p.set_dst_ip(to.dst());
            }
            if let Some(Anno1(at)) = self.args.reply_anno
                && reply
            {
                p.set_anno_u8(at, anno);
            }
            return Some(offset.map_or(0, |o| usize::from(o) + usize::from(out)));
        }
        None
    }
}

/// Restores the quoted packet as its sender sent it, and addresses the error to this sender. `to` is the tuple that the
/// flow gives to packets in the direction of the error. `seq` is the original sequence number, if it was shifted.
fn mend(net: &mut [u8], quote: &Quote, kind: RewriterKind, sent: Tuple, to: Tuple, seq: Option<u32>) {
    let original = to.reversed();
    let change = sent.change(original);
    let key = Key { tuple: sent, proto: quote.proto, header: quote.header };
    let (ip, transport) = (change.addrs, kind.transport_change(change));
    let Some(quoted) = net.get_mut(quote.at..) else { return };
    // All changes are in the quoted IP header and in the 20 bytes behind it.
    let reach = (usize::from(quote.header) + TcpHeader::LEN).min(quoted.len());
    let before = checksum::sum(quoted.get(..reach).unwrap_or_default());
    match kind {
        RewriterKind::Ports | RewriterKind::AnyPorts => {
            header::rewrite::<Ports<true, true, true>>(
                quoted, key, key.proto, original, false, ip, transport,
            );
        }
        RewriterKind::Ping => header::rewrite::<Ping>(quoted, key, key.proto, original, false, ip, transport),
        RewriterKind::Addr | RewriterKind::Pair => {
            header::rewrite::<AddrPair>(quoted, key, key.proto, original, false, ip, transport);
        }
    }
    if let Some(seq) = seq {
        mend_sequence(quoted.get_mut(usize::from(quote.header)..).unwrap_or_default(), seq);
    }
    let after = checksum::sum(quoted.get(..reach).unwrap_or_default());
    let Some((outer, rest)) = net.split_at_mut_checked(usize::from(quote.outer.header)) else { return };
    if let Some(h) = IcmpHeader::from_prefix_mut(rest) {
        // RFC 1624, equation 3 updates a checksum for one word that changes. It also holds for the sum of all words
        // before and after the change.
        h.checksum.set(checksum::update16(h.checksum.get(), before, after));
    }
    let old = quote.outer.tuple;
    // An error from the receiver itself gets the address by which the sender knows the receiver.
    let src = if old.src() == sent.dst() { to.src() } else { old.src() };
    let new = Tuple::new(src, 0, to.dst(), 0);
    header::rewrite::<AddrPair>(outer, quote.outer, protocol::ICMP, new, false, old.change(new).addrs, 0);
}

/// Restores the original sequence number in the quoted segment, and updates the quoted checksum if it is present.
fn mend_sequence(segment: &mut [u8], seq: u32) {
    let Some(&old) = segment.get(4..).and_then(|s| s.first_chunk::<4>()) else { return };
    let new = seq.to_be_bytes();
    if let Some(place) = segment.get_mut(4..8) {
        place.copy_from_slice(&new);
    }
    if let Some(place) = segment.get_mut(16..).and_then(|s| s.first_chunk_mut::<2>())
        && old != new
    {
        let sum = u16::from_be_bytes(*place);
        *place = checksum::update32(sum, u32::from_be_bytes(old), u32::from_be_bytes(new)).to_be_bytes();
    }
}
