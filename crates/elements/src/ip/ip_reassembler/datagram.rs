// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the fragments of one packet, in order and without overlap.

use castanet_element::prelude::*;
use castanet_wire::checksum;
use castanet_wire::ipv4::{DONT_FRAGMENT, Ipv4Header, whole_header};

/// The maximum length of the data in a packet without options, in bytes.
const MOST: u32 = 65_535 - Ipv4Header::LEN as u32;

/// The header fields of a valid fragment that reassembly needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    start: u16,
    end: u16,
    more: bool,
    length: u16,
}

impl Fragment {
    /// Reads the header of a fragment, and cuts off padding. Returns none if the fragment is truncated or empty, or
    /// cannot be part of any packet.
    pub(super) fn of(p: &mut Packet) -> Option<Fragment> {
        let network = p.network()?;
        let h = Ipv4Header::from_prefix(network)?;
        let (header, total) = (h.header_len(), h.total_len.get());
        let carried = usize::from(total).checked_sub(header)?;
        let (start, more) = (h.fragment_offset(), h.more_fragments());
        let fits = header >= Ipv4Header::LEN && usize::from(total) <= network.len();
        // RFC 791 section 3.2: all fragments but the last carry a multiple of 8 bytes.
        if !fits || carried == 0 || more && carried % 8 != 0 {
            return None;
        }
        let end = u32::from(start).checked_add(u32::try_from(carried).ok()?).filter(|&end| end <= MOST)?;
        // The end of the IP packet, as an offset into the data of `p`. It is negative if the whole IP packet and bytes
        // after it have been stripped from the front of `p`.
        let keep = p.network_offset()?.checked_add_unsigned(usize::from(total))?;
        p.truncate(usize::try_from(keep).ok()?);
        Some(Fragment { start, end: u16::try_from(end).ok()?, more, length: total })
    }
}

/// A fragment that waits for others.
#[derive(Debug)]
pub(super) struct Piece {
    /// The offset of the fragment's data in the whole packet, in bytes.
    pub(super) start: u16,
    /// The offset of the end of the fragment's data, in bytes.
    pub(super) end: u16,
    /// The fragment, cut to its total length.
    pub(super) packet: Packet,
}

impl Piece {
    /// Returns the data that the fragment carries.
    fn carried(&self) -> &[u8] {
        carried(&self.packet)
    }
}

fn carried(p: &Packet) -> &[u8] {
    let n = p.network().unwrap_or_default();
    let from = whole_header(n).map_or(n.len(), <[u8]>::len);
    n.get(from..).unwrap_or_default()
}

/// The result of adding a fragment to a datagram.
#[derive(Debug)]
pub(super) enum Added {
    /// The fragment waits for others.
    Held,
    /// The fragment was the last one missing.
    Complete,
    /// The fragment repeats one that waits already.
    Repeated(Packet),
    /// The fragment overlaps others, or contradicts them about the length of the packet.
    Suspect(Packet),
    /// The fragment is refused, because earlier fragments of the datagram overlapped or contradicted each other.
    Shunned(Packet),
}

/// The fragments of one packet that have arrived.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The fragments that have arrived, in order and without overlap.
    pieces: Vec<Piece>,
    /// The number of bytes of data in `pieces`.
    have: u32,
    /// The length of the whole packet's data, in bytes. None until the last fragment (without "more fragments") has
    /// arrived.
    total: Option<u16>,
    /// Whether fragments overlapped or contradicted each other, so that all fragments of the datagram are dropped.
    suspect: bool,
    /// The length of the longest fragment, including its header, in bytes.
    pub(super) longest: u16,
    /// The key of the datagram in `IpReassembler::order`; none until a fragment has been added.
    pub(super) order: Option<u64>,
    /// The timestamp of the last accepted fragment; `i64::MAX` if that fragment has none.
    pub(super) stamp: i64,
    /// The clock time, in nanoseconds, at which the datagram expires.
    pub(super) due: i64,
}

impl Datagram {
    /// Makes a datagram without fragments. `pieces` is an empty vector to reuse.
    pub(super) fn new(pieces: Vec<Piece>) -> Datagram {
        let (have, total, suspect, longest, order) = (0, None, false, 0, None);
        Datagram { pieces, have, total, suspect, longest, order, stamp: 0, due: 0 }
    }
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
    pub(super) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }
    /// Marks the datagram as suspect. Removes and returns its fragments.
    pub(super) fn suspect(&mut self) -> Vec<Piece> {
        self.suspect = true;
        std::mem::take(&mut self.pieces)
    }

    /// Adds a fragment. `packet` holds the fragment, and `f` is the result of reading its header.
    pub(super) fn add(&mut self, f: Fragment, packet: Packet) -> Added {
        if self.suspect {
            return Added::Shunned(packet);
        }
        // Most fragments arrive in order, so check first whether this one follows the last.
        let at = match self.pieces.last() {
            Some(last) if f.start < last.end => self.pieces.partition_point(|p| p.start < f.start),
            _ => self.pieces.len(),
        };
        let after = self.pieces.get(at);
        if let Some(same) = after.filter(|p| (p.start, p.end) == (f.start, f.end)) {
            let says_the_same = f.more == (self.total != Some(f.end));
            return if says_the_same && same.carried() == carried(&packet) {
                Added::Repeated(packet)
            } else {
                Added::Suspect(packet)
            };
        }
        let before = at.checked_sub(1).and_then(|i| self.pieces.get(i));
        let overlaps = before.is_some_and(|p| p.end > f.start) || after.is_some_and(|p| p.start < f.end);
        let ends_late = self.total.is_some_and(|total| if f.more { f.end >= total } else { f.end != total });
        let ends_early = !f.more && self.pieces.last().is_some_and(|p| p.end > f.end);
        if overlaps || ends_late || ends_early {
            return Added::Suspect(packet);
        }
        if !f.more {
            self.total = Some(f.end);
        }
        self.longest = self.longest.max(f.length);
        // This cannot overflow. The fragments do not overlap, so the sum is at most 65535.
        self.have += u32::from(f.end - f.start);
        self.pieces.insert(at, Piece { start: f.start, end: f.end, packet });
        if self.total.is_some_and(|total| u32::from(total) == self.have) {
            Added::Complete
        } else {
            Added::Held
        }
    }
}

/// Appends the data of `others` to `first`, and returns the whole packet. Returns `first` and a drop reason if the
/// whole packet would be too long, if the ECN bits of the fragments contradict each other, or if no buffer is free.
pub(super) fn assemble(first: Piece, others: &[Piece]) -> Result<Packet, (Packet, Reason)> {
    let Piece { end, packet: mut whole, .. } = first;
    let total = others.last().map_or(end, |p| p.end).into();
    let headers =
        std::iter::once(&whole).chain(others.iter().map(|p| &p.packet)).filter_map(Packet::ip_header);
    let ecn = headers.fold(0u8, |seen, h| seen | 1 << (h[1] & 3));
    let header_len = whole.network().and_then(whole_header).map_or(Ipv4Header::LEN, <[u8]>::len);
    let length = u16::try_from(header_len.saturating_add(total)).ok();
    // RFC 3168 section 5.3: fragments marked CE (congestion experienced) contradict fragments that say "not
    // ECN-capable". If the packet has fragments of both kinds, it is dropped. If it has the first kind and not the
    // second, it is marked CE.
    let (congested, unable) = (ecn & 1 << 3 != 0, ecn & 1 != 0);
    let Some(length) = length.filter(|_| !(congested && unable)) else {
        return Err((whole, Reason::BadFragment));
    };
    if !whole.put(total.saturating_sub(usize::from(end))) {
        return Err((whole, Reason::NoBuffer));
    }
    let network = whole.network_mut().unwrap_or_default();
    for piece in others {
        let from = header_len.saturating_add(usize::from(piece.start));
        let data = piece.carried();
        if let Some(to) = network.get_mut(from..).and_then(|n| n.get_mut(..data.len())) {
            to.copy_from_slice(data);
        }
    }
    if let Some(h) = Ipv4Header::from_prefix_mut(network) {
        h.total_len.set(length);
        h.fragment.set(h.fragment.get() & DONT_FRAGMENT);
        if congested {
            h.tos |= 3;
        }
    }
    let sum = whole_header(network).map(checksum::ipv4_header_checksum);
    if let (Some(sum), Some(h)) = (sum, Ipv4Header::from_prefix_mut(network)) {
        h.checksum.set(sum);
    }
    Ok(whole)
}
