// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPFragmenter: fragments packets that are too long for the next link.

use crate::device::offload::finish;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_packet::{DEFAULT_HEADROOM, MAX_HEADROOM};
use castanet_wire::ipv4::{self, MAX_HEADER_LEN};
use castanet_wire::{Ipv4Header, checksum, options};
use std::net::Ipv4Addr;

/// Fragments IPv4 packets that are longer than the MTU.
///
/// Packets are fragmented as RFC 791 section 3.2 says. The first fragment keeps all options. Later fragments keep only
/// the options whose copied bit is set. Each fragment but the last carries a multiple of 8 bytes. If the packet was
/// itself a fragment, the last fragment keeps its "more fragments" flag. Fragments leave in order, with the annotations
/// of the packet. A packet that must not or cannot be fragmented leaves whole on output 1. With `HONOR_DF false`, the
/// "do not fragment" flag is cleared. A random identification is then set, because the identification of a packet with
/// that flag need not be unique. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: packets and fragments of at most `MTU` bytes. Output 1 (optional): packets that
/// were too long.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> fragment :: IPFragmenter(576) -> Discard;
/// fragment [1] -> ICMPError(10.0.0.1, unreachable, needfrag) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "IPFragmenter", offload = aware, ports = "1/1-2", processing = "h/h", packets = "ip/same", workers = replicate)]
#[class(effects(prints), drops(MustFragment, NoIpHeader, NoBuffer, BadFragment), copies, build, lifecycle)]
#[class(depends = packet)]
#[class(kernel)]
pub struct IpFragmenter {
    args: Args,
    /// Packets that were too long, and could not or must not be fragmented.
    #[count(unit = "packets")]
    drops: Count,
    /// Fragments that were emitted, first fragments included.
    #[count(unit = "packets")]
    fragments: Count,
    headroom: usize,
    identifications: Secret,
    /// The output of packets that are too long.
    refused: u16,
    pieces: Batch,
    /// The number of fragments of the last fragmented packet, without the first fragment.
    last_pieces: usize,
}

/// Arguments of IPFragmenter.
#[derive(Args)]
pub struct Args {
    /// The maximum length of a packet in bytes, including the IP header; at least 8.
    #[arg(min = 8)]
    mtu: u32,
    /// Whether packets marked "do not fragment" leave whole on output 1; false to clear the mark and fragment them.
    #[arg(default = true)]
    honor_df: bool,
    /// Whether a message is printed for every packet that could not be fragmented, not only for the first five.
    #[arg(default = false)]
    verbose: bool,
    /// Headroom of each fragment in bytes, for headers that later elements add.
    #[arg(keyword, show = "28", max = MAX_HEADROOM)]
    headroom: Option<u32>,
}

impl Build for IpFragmenter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let headroom = args.headroom.map_or(DEFAULT_HEADROOM, |h| h as usize);
        let (drops, fragments) = Default::default();
        Ok(IpFragmenter {
            args,
            drops,
            fragments,
            headroom,
            identifications: cx.secret(),
            refused: 1,
            pieces: Batch::new(),
            last_pieces: 0,
        })
    }
}

impl Lifecycle for IpFragmenter {
    /// Without VERBOSE, returns no effects: messages are printed only for the first five packets, so packets may be
    /// processed in batches.
    fn effects(&self, declared: Effects) -> Effects {
        if self.args.verbose { declared } else { Effects::empty() }
    }
}

/// The maximum length of an IPv4 packet in bytes, including the header.
const LONGEST: usize = 65_535;

/// How a packet is cut into fragments.
struct Plan {
    /// The length of the packet's header, in bytes.
    header: usize,
    /// The length of header and data, in bytes. Padding after the data is cut off.
    total: usize,
    /// The length of the data in the first fragment, in bytes.
    first: usize,
    /// The options of all fragments but the first. Only the first `options_len` bytes are used.
    options: [u8; 40],
    options_len: usize,
    /// The maximum length of the data in each fragment but the first, in bytes.
    later: usize,
}

impl IpFragmenter {
    /// Makes packets that must not or cannot be fragmented leave on another output, for a class that contains this one.
    pub(super) fn with_output(self, refused: u16) -> IpFragmenter {
        IpFragmenter { refused, ..self }
    }
    /// Returns how to cut a packet into fragments. None if the packet must not or cannot be fragmented.
    fn plan(&self, network: &[u8]) -> Option<Plan> {
        let (h, whole) = (Ipv4Header::from_prefix(network)?, ipv4::whole_header(network)?);
        if h.dont_fragment() && self.args.honor_df {
            return None;
        }
        let (header, mtu) = (whole.len(), self.args.mtu as usize);
        let total = usize::from(h.total_len.get()).min(network.len());
        let mut options = [0; 40];
        let options_len = options::copy_for_fragment(whole.get(Ipv4Header::LEN..)?, &mut options);
        let first = mtu.checked_sub(header)? & !7;
        let later = mtu.checked_sub(Ipv4Header::LEN + options_len)? & !7;
        (first > 0 && later > 0 && total >= header).then_some(Plan {
            header,
            total,
            first,
            options,
            options_len,
            later,
        })
    }

    /// Appends the fragments after the first to `self.pieces`. Returns false if no buffer is free for one of them.
    fn later_pieces(&mut self, p: &Packet, plan: &Plan, id: u16) -> bool {
        let Some(network) = p.network() else { return false };
        let Some(old) = Ipv4Header::from_prefix(network) else { return false };
        let data = network.get(plan.header..plan.total).unwrap_or_default();
        let header_len = Ipv4Header::LEN + plan.options_len;
        let mut at = plan.first;
        while at < data.len() {
            let end = data.len().min(at + plan.later);
            let Some(mut piece) = Packet::with_headroom(self.headroom, header_len + end - at) else {
                return false;
            };
            let mut h = *old;
            h.set_header_len(header_len);
            h.total_len.set(u16::try_from(header_len + end - at).unwrap_or(u16::MAX));
            h.id.set(id);
            // INVARIANT: the offset fits, because the last byte of the last piece lies below LONGEST.
            let offset = old.fragment_offset().saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
            h.set_fragment(offset, end < data.len() || old.more_fragments(), false);
            let mut header = [0; MAX_HEADER_LEN];
            let (fixed, rest) = header.split_at_mut(Ipv4Header::LEN);
            fixed.copy_from_slice(h.as_array());
            rest.copy_from_slice(&plan.options);
            let header = header.get_mut(..header_len).unwrap_or_default();
            let sum = checksum::ipv4_header_checksum(header);
            if let Some(h) = Ipv4Header::from_prefix_mut(header) {
                h.checksum.set(sum);
            }
            let (to_header, to_data) = piece.data_mut().split_at_mut(header_len);
            to_header.copy_from_slice(header);
            to_data.copy_from_slice(data.get(at..end).unwrap_or_default());
            piece.set_network_header(0, header_len);
            piece.copy_annotations(p);
            self.pieces.push(piece);
            at = end;
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn fragment(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network() else { return Verdict::Drop(Reason::NoIpHeader) };
        let length = network.len();
        if let Some(segment) = largest_segment(p) {
            return if segment <= self.args.mtu as usize { Verdict::Next } else { self.split(p, cx) };
        }
        let Some(plan) = self.plan(network) else { return self.too_long(p, cx) };
        if plan.total <= self.args.mtu as usize {
            // Without its padding, the packet is short enough.
            p.take_end(length - plan.total);
            return Verdict::Next;
        }
        let Some(h) = Ipv4Header::from_prefix(network) else { return self.too_long(p, cx) };
        // RFC 791 section 3.2: no packet is longer than LONGEST, so a fragment that ends beyond LONGEST is malformed.
        // If it were fragmented further, offsets would wrap to 0, and later fragments would look like first fragments.
        if usize::from(h.fragment_offset()).saturating_add(plan.total) > LONGEST {
            self.drops.add(1);
            return Verdict::Drop(Reason::BadFragment);
        }
        // RFC 6864 section 4.1: the identification of a packet marked "do not fragment" need not be unique. Fragments
        // need a unique identification, so such a packet gets a new one before it is fragmented.
        let fresh = h.dont_fragment() && !h.is_fragment();
        let id = if fresh { self.identifications.next_u64() as u16 } else { h.id.get() };
        if !self.later_pieces(p, &plan, id) {
            self.pieces.clear();
            return Verdict::Drop(Reason::NoBuffer);
        }
        let first_len = plan.header + plan.first;
        p.take_end(length - first_len);
        if let Some(network) = p.network_mut() {
            if let Some(h) = Ipv4Header::from_prefix_mut(network) {
                h.total_len.set(u16::try_from(first_len).unwrap_or(u16::MAX));
                h.id.set(id);
                h.set_fragment(h.fragment_offset(), true, false);
            }
            let sum = network.get(..plan.header).map_or(0, checksum::ipv4_header_checksum);
            if let Some(h) = Ipv4Header::from_prefix_mut(network) {
                h.checksum.set(sum);
            }
        }
        self.fragments.add(1 + self.pieces.len() as u64);
        self.last_pieces = self.pieces.len();
        cx.made(self.pieces.len() as u64);
        for piece in self.pieces.drain() {
            cx.behind(piece);
        }
        Verdict::Several
    }

    /// Cuts a super-packet whose segments are longer than the MTU into segments, and cuts each segment into fragments.
    fn split(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network() else { return Verdict::Drop(Reason::NoIpHeader) };
        if self.args.honor_df && Ipv4Header::from_prefix(network).is_some_and(|h| h.dont_fragment()) {
            return self.too_long(p, cx);
        }
        let Some(whole) = p.share() else { return Verdict::Drop(Reason::NoBuffer) };
        let mut segments = Batch::empty();
        if let Err(reason) = finish(whole, &mut segments) {
            return Verdict::Drop(reason);
        }
        let mut first = true;
        let count = segments.len();
        for mut segment in segments.drain() {
            let verdict = if segment.network().is_some_and(|n| n.len() <= self.args.mtu as usize) {
                Verdict::Next
            } else {
                self.fragment(&mut segment, cx)
            };
            // If `segment` was fragmented, its later fragments are queued already. `segment` is now the first fragment,
            // and is inserted before them.
            match verdict {
                Verdict::Next | Verdict::Several if first => {
                    *p = segment;
                    first = false;
                }
                Verdict::Next => cx.behind(segment),
                Verdict::Several => {
                    let own = self.last_pieces;
                    cx.behind_before(own, segment);
                }
                Verdict::Out(port) => cx.emit(usize::from(port), segment),
                Verdict::Drop(reason) => cx.drop(segment, reason),
            }
        }
        // The first segment takes the place of the super-packet in the ledger, so it does not count as made.
        cx.made((count - usize::from(!first)) as u64);
        if first { Verdict::Drop(Reason::MustFragment) } else { Verdict::Several }
    }

    fn too_long(&mut self, p: &Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.verbose || self.drops.get() < 5 {
            let h = p.network().and_then(Ipv4Header::from_prefix);
            let (df, src, dst) = h.map_or((false, 0, 0), |h| (h.dont_fragment(), h.src.get(), h.dst.get()));
            cx.message(&format!(
                "IPFragmenter({}){} {} {} len={}",
                self.args.mtu,
                if df { " DF" } else { "" },
                Ipv4Addr::from_bits(src),
                Ipv4Addr::from_bits(dst),
                h.map_or(0, |h| h.total_len.get()),
            ));
        }
        self.drops.add(p.segments().0);
        cx.out_or(self.refused, Reason::MustFragment)
    }
}

impl Action for IpFragmenter {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if p.network().is_some_and(|n| n.len() <= self.args.mtu as usize) {
            return Verdict::Next;
        }
        self.fragment(p, cx)
    }
}

/// Returns the length of a super-packet's largest segment, counted from the IP header on. None for other packets.
fn largest_segment(p: &Packet) -> Option<usize> {
    let (headers, size) = p.super_packet()?;
    let network = usize::try_from(p.network_offset()?).ok()?;
    Some(headers.saturating_sub(network) + usize::from(size))
}

impl InKernel for IpFragmenter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let long = code.label();
        match code.network() {
            Some((at, _)) => {
                let most = i64::from(self.args.mtu) + i64::from(at);
                code.branch_length(most, None, Some(long));
                code.next(0);
            }
            None => code.jump(long),
        }
        code.bind(long);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/ip_fragmenter.rs"]
mod tests;
