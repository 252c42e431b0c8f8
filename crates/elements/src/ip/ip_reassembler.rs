// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPReassembler: reassembles packets from their fragments.

mod datagram;
#[cfg(test)]
mod tests;

use crate::device::offload;
use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::Anno2;
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::ipv4::{MORE_FRAGMENTS, OFFSET_MASK};
use datagram::{Added, Datagram, Fragment, Piece};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Reassembles fragmented IPv4 packets (RFC 791 section 3.2, RFC 815).
///
/// Unfragmented packets pass immediately. Fragments wait for those with the same source, destination, protocol and
/// identification. When no fragment is missing, the packet leaves with the header, the options and the annotations of
/// its first fragment, and with new lengths and checksum. It is marked CE (congestion experienced) if one of its
/// fragments is (RFC 3168 section 5.3). A repeated fragment is dropped. If a fragment overlaps others, or contradicts
/// them about the length, all fragments of the packet are dropped, including later ones, as RFC 5722 demands for IPv6.
/// If a fragment is empty or truncated, or would make the packet longer than IPv4 allows, only that fragment is
/// dropped.
///
/// Reassembly of a packet fails if 30 seconds pass without a further fragment, by the clock or by the timestamps of
/// packets. If more than HIMEM bytes wait, reassembly also fails for the packets that have waited longest, until a
/// quarter of HIMEM is free. When reassembly fails, the fragments that have arrived leave unchanged on output 1, so
/// that an ICMPError can answer the first fragment. Without output 1 they are dropped. A fragment counts as at least
/// 2048 bytes, the size of its buffer. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: whole packets. Output 1 (optional): fragments of packets whose reassembly failed.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> IPEncap(udp, 10.0.0.1, 10.0.0.2) -> IPFragmenter(40)
///     -> whole :: IPReassembler -> IPPrint(whole) -> Discard;
/// whole [1] -> ICMPError(10.0.0.9, timeexceeded, reassembly) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(holds), kernel)]
#[class(name = "IPReassembler", offload = aware, ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = exclusive)]
#[class(takes_state = "the fragments that wait")]
#[class(
    drops(BadFragment, BadOffload, Consumed, ReassemblyTimeout, ReassemblyFull, NoIpHeader),
    build,
    lifecycle,
    handlers
)]
pub struct IpReassembler {
    args: Args,
    max_mtu_anno: Option<usize>,
    datagrams: BTreeMap<Key, Datagram>,
    /// The keys of all datagrams, ordered by the arrival of their last accepted fragments, oldest first.
    order: BTreeMap<u64, Key>,
    next_order: u64,
    /// The number of bytes that all datagrams and their fragments count towards HIMEM.
    charged: u64,
    /// Fragments received.
    #[count(unit = "packets", hidden)]
    seen: Count,
    /// Packets that were reassembled.
    #[count(unit = "packets", hidden)]
    good: Count,
    /// Packets whose reassembly failed.
    #[count(unit = "packets", hidden)]
    failed: Count,
    /// Fragments that were dropped because they were malformed or contradicted other fragments.
    #[count(unit = "packets", hidden)]
    bad: Count,
    /// The timestamp of the packet that triggered the last removal of expired datagrams; 0 before the first removal.
    reaped: i64,
    /// Empty vectors of fragments, kept for reuse.
    spare: Vec<Vec<Piece>>,
}

/// Arguments of IPReassembler.
#[derive(Args)]
pub struct Args {
    /// The maximum number of bytes that waiting fragments may occupy.
    #[arg(keyword, default = 256 * 1024, show = "262144")]
    himem: u32,
    /// The two-byte annotation in which a reassembled packet gets the length of its longest fragment; -1 for none.
    #[arg(keyword, default = MtuAnno(None), show = "-1")]
    max_mtu_anno: MtuAnno,
}

/// The offset of a two-byte annotation, or none.
#[derive(Clone, Copy, Debug)]
struct MtuAnno(Option<usize>);

impl ArgValue for MtuAnno {
    const TYPE: &'static str = "anno2";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<MtuAnno, ValueError> {
        if text == "-1" { Ok(MtuAnno(None)) } else { Anno2::parse(text, cx).map(|a| MtuAnno(Some(a.0))) }
    }
}

/// The key that the fragments of one packet share (RFC 791 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    src: u32,
    dst: u32,
    id: u16,
    protocol: u8,
}

/// How long a datagram waits for its next fragment, in nanoseconds.
const PATIENCE: i64 = 30_000_000_000;
/// The minimum time between two searches for expired datagrams, in nanoseconds of packet timestamps.
const BETWEEN_REAPS: i64 = 10_000_000_000;
/// Bytes that a datagram counts towards HIMEM in addition to its fragments. A suspect datagram, whose fragments
/// overlapped or contradicted each other, counts only this many bytes: its fragments have been dropped.
const ENTRY: u64 = 256;
/// A waiting fragment counts at least this many bytes towards HIMEM: the size of the buffer that holds the fragment.
const BUFFER: u64 = 2048;
/// The maximum number of empty vectors that are kept for reuse.
const SPARE: usize = 64;

impl Build for IpReassembler {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let max_mtu_anno = args.max_mtu_anno.0;
        Ok(IpReassembler {
            args,
            max_mtu_anno,
            datagrams: BTreeMap::new(),
            order: BTreeMap::new(),
            next_order: 0,
            charged: 0,
            seen: Count::default(),
            good: Count::default(),
            failed: Count::default(),
            bad: Count::default(),
            reaped: 0,
            spare: Vec::new(),
        })
    }
}

#[handlers]
impl IpReassembler {
    /// The counts, and the fragments that wait.
    #[read]
    fn dump(&self) -> Table {
        let mut out = format!(
            "frags seen total:    {}\ngood reassemblies:   {}\nfailed reassemblies: {}\nbad fragments seen:  {}\n\
             cached chunk data:\n",
            self.seen.get(),
            self.good.get(),
            self.failed.get(),
            self.bad.get()
        );
        for (key, datagram) in &self.datagrams {
            let (src, dst) = (Ipv4Addr::from_bits(key.src), Ipv4Addr::from_bits(key.dst));
            out.push_str(&format!(" ({src}, 0, {dst}, 0) {}", key.id));
            for piece in datagram.pieces() {
                out.push_str(&format!(" ({},{})", piece.start, piece.end));
            }
            out.push('\n');
        }
        Table(out)
    }
}

impl Lifecycle for IpReassembler {
    fn held(&self) -> u64 {
        self.datagrams.values().map(|d| d.pieces().len() as u64).sum()
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        while let Some((_, key)) = self.order.pop_first() {
            for piece in self.remove(key).into_iter().flatten() {
                cx.drop(piece.packet, Reason::Stopped);
            }
        }
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        std::mem::swap(&mut self.datagrams, &mut old.datagrams);
        std::mem::swap(&mut self.order, &mut old.order);
        std::mem::swap(&mut self.charged, &mut old.charged);
        self.next_order = self.next_order.max(old.next_order);
        self.reaped = self.reaped.max(old.reaped);
        let first = self.order.first_key_value().and_then(|(_, key)| self.datagrams.get(key));
        if let Some(first) = first {
            cx.set_timer(0, first.due);
        }
        Ok(())
    }
}

impl InKernel for IpReassembler {
    /// Fragments go up.
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if code.is_at_user_level() {
            // The times of all packets end datagrams that wait.
            return Err("it sees the times of all packets".into());
        }
        let Some((at, _)) = code.network() else {
            code.drop(Reason::NoIpHeader as u16);
            return Ok(());
        };
        let up = code.label();
        code.need_at(at, 20, up);
        let place = code.load(at + 6, Size::Half);
        let fragment = (MORE_FRAGMENTS | OFFSET_MASK).to_be_bytes();
        code.branch(place, Test::Common, u32::from(u16::from_ne_bytes(fragment)), up);
        code.next(0);
        code.bind(up);
        code.up();
        Ok(())
    }
}

/// Returns how many bytes a waiting fragment counts towards HIMEM.
fn charge(p: &Packet) -> u64 {
    (p.len() as u64).max(BUFFER)
}

impl IpReassembler {
    /// Removes a datagram and returns its fragments. The caller has already removed the key from `order`.
    fn remove(&mut self, key: Key) -> Option<Vec<Piece>> {
        let pieces = self.datagrams.remove(&key)?.into_pieces();
        let freed = pieces.iter().map(|p| charge(&p.packet)).sum::<u64>();
        self.charged = self.charged.saturating_sub(freed.saturating_add(ENTRY));
        Some(pieces)
    }

    fn keep_list(&mut self, mut pieces: Vec<Piece>) {
        pieces.clear();
        if self.spare.len() < SPARE {
            self.spare.push(pieces);
        }
    }

    /// Removes an incomplete datagram. Its fragments leave unchanged on output 1, or are dropped for `reason`.
    fn give_up(&mut self, key: Key, reason: Reason, cx: &mut Cx<'_>) {
        let Some(mut pieces) = self.remove(key) else { return };
        // A suspect datagram has no fragments left. It was counted as failed when it became suspect.
        self.failed.add(u64::from(!pieces.is_empty()));
        for piece in pieces.drain(..) {
            cx.emit_or(1, piece.packet, reason);
        }
        self.keep_list(pieces);
    }

    /// Removes datagrams that have waited too long. Starts with the oldest, and stops when `is_late` returns false.
    fn reap(&mut self, is_late: impl Fn(&Datagram) -> bool, cx: &mut Cx<'_>) {
        while let Some((&order, &key)) = self.order.first_key_value()
            && self.datagrams.get(&key).is_none_or(&is_late)
        {
            self.order.remove(&order);
            self.give_up(key, Reason::ReassemblyTimeout, cx);
        }
    }

    /// Removes the oldest datagrams until a quarter of HIMEM is free.
    #[cold]
    fn make_room(&mut self, cx: &mut Cx<'_>) {
        let enough = u64::from(self.args.himem) / 4 * 3;
        while self.charged > enough
            && let Some((_, key)) = self.order.pop_first()
        {
            self.give_up(key, Reason::ReassemblyFull, cx);
        }
    }

    fn reject(&mut self, p: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        self.bad.add(1);
        cx.drop(p, Reason::BadFragment);
        None
    }

    /// Accepts a packet. Returns it if it is not a fragment. Returns the reassembled packet if the fragment was the
    /// last one missing.
    #[inline]
    fn take(&mut self, p: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        let stamp = p.timestamp();
        if stamp.saturating_sub(self.reaped) >= BETWEEN_REAPS && !self.order.is_empty() {
            self.reaped = stamp;
            self.reap(|d| d.stamp <= stamp.saturating_sub(PATIENCE), cx);
        }
        match p.network().and_then(Ipv4Header::from_prefix) {
            Some(h) if !h.is_fragment() => Some(p),
            Some(h) => {
                let key = Key { src: h.src.get(), dst: h.dst.get(), id: h.id.get(), protocol: h.protocol };
                self.add(key, p, stamp, cx)
            }
            None => {
                cx.drop(p, Reason::NoIpHeader);
                None
            }
        }
    }

    fn add(&mut self, key: Key, mut p: Packet, stamp: i64, cx: &mut Cx<'_>) -> Option<Packet> {
        self.seen.add(1);
        if p.has_offload()
            && let Err(reason) = offload::complete_checksum(&mut p)
        {
            self.bad.add(1);
            cx.drop(p, reason);
            return None;
        }
        let Some(fragment) = Fragment::of(&mut p) else { return self.reject(p, cx) };
        let due = cx.recent().saturating_add(PATIENCE);
        if self.order.is_empty() {
            cx.set_timer(0, due);
        }
        let datagram = self.datagrams.entry(key).or_insert_with(|| {
            self.charged += ENTRY;
            Datagram::new(self.spare.pop().unwrap_or_default())
        });
        let cost = charge(&p);
        let added = datagram.add(fragment, p);
        if matches!(added, Added::Held | Added::Complete) || datagram.order.is_none() {
            if let Some(order) = datagram.order.replace(self.next_order) {
                self.order.remove(&order);
            }
            self.order.insert(self.next_order, key);
            self.next_order = self.next_order.wrapping_add(1);
            // A fragment without a timestamp expires by the clock only.
            (datagram.stamp, datagram.due) = (if stamp == 0 { i64::MAX } else { stamp }, due);
        }
        match added {
            Added::Held => {
                self.charged = self.charged.saturating_add(cost);
                if self.charged > u64::from(self.args.himem) {
                    self.make_room(cx);
                }
                None
            }
            Added::Complete => {
                // Charge for the completing fragment too, because `remove` subtracts the charges of all fragments.
                self.charged = self.charged.saturating_add(cost);
                self.complete(key, cx)
            }
            Added::Repeated(p) => {
                cx.drop(p, Reason::BadFragment);
                None
            }
            Added::Suspect(p) => {
                for piece in datagram.suspect() {
                    self.charged = self.charged.saturating_sub(charge(&piece.packet));
                    cx.drop(piece.packet, Reason::BadFragment);
                }
                self.failed.add(1);
                self.reject(p, cx)
            }
            Added::Shunned(p) => self.reject(p, cx),
        }
    }

    /// Removes a complete datagram, and returns the packet made from it.
    fn complete(&mut self, key: Key, cx: &mut Cx<'_>) -> Option<Packet> {
        let order = self.datagrams.get(&key)?.order?;
        self.order.remove(&order);
        let mtu = self.datagrams.get(&key).map_or(0, |d| d.longest);
        let mut pieces = self.remove(key).filter(|p| !p.is_empty())?;
        let first = pieces.remove(0);
        let whole = datagram::assemble(first, &pieces);
        let reason = if whole.is_ok() { Reason::Consumed } else { Reason::BadFragment };
        for piece in pieces.drain(..) {
            cx.drop(piece.packet, reason);
        }
        self.keep_list(pieces);
        match whole {
            Ok(mut p) => {
                self.good.add(1);
                if let Some(at) = self.max_mtu_anno {
                    p.set_anno(at, mtu.to_ne_bytes());
                }
                Some(p)
            }
            Err((p, reason)) => {
                self.failed.add(1);
                cx.drop(p, reason);
                None
            }
        }
    }
}

impl Element for IpReassembler {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let whole =
            |p: &Packet| p.network().and_then(Ipv4Header::from_prefix).is_some_and(|h| !h.is_fragment());
        if self.order.is_empty() && batch.iter().all(whole) {
            return cx.forward(0, batch);
        }
        let mut all = std::mem::replace(batch, Batch::empty());
        for p in all.drain() {
            if let Some(p) = self.take(p, cx) {
                cx.emit(0, p);
            }
        }
        *batch = all;
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            match self.pull_one(0, cx) {
                Some(p) => into.push(p),
                None => break,
            }
        }
    }
    /// Pulls packets from the input until a whole packet can leave.
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        cx.pull_until(0, |p, cx| self.take(p, cx))
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let now = cx.recent();
        self.reap(|d| d.due <= now, cx);
        if let Some((_, key)) = self.order.first_key_value()
            && let Some(d) = self.datagrams.get(key)
        {
            cx.set_timer(0, d.due);
        }
    }
}
