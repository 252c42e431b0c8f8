// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of all rewriters: a fast path for packets of known flows, and input specifications for all
//! others.

mod engine;
mod handlers;
pub(super) mod kernel;

pub use handlers::FlowText;

use super::flow::{RewriterKind, Timeouts, after_datagram, after_segment, bit, class};
use super::handle::{Capacity, Handle, Link};
use super::header::{self, Family, Key};
use super::registry::Registry;
use super::seq;
use super::spec::SpecText;
use super::store::{Made, New, Store};
use crate::device::offload::finish;
use castanet_element::prelude::*;
use castanet_element::spec::Args;
use castanet_wire::ipv4::protocol;
use std::sync::Arc;

/// The timer of the sweep that removes expired flows.
const REAP: u16 = 0;
/// The maximum number of packets that are looked up together.
const AHEAD: usize = 64;

/// The settings of a rewriter.
pub struct Settings {
    /// The kind of the rewriter.
    pub kind: RewriterKind,
    /// How long flows live.
    pub timeouts: Timeouts,
    /// The maximum number of flows, or the other rewriter whose capacity this rewriter shares.
    pub capacity: Capacity,
    /// The time in nanoseconds between sweeps that remove expired flows. With 0 there are no sweeps: expired
    /// flows are removed only by lookups and when new flows are made.
    pub reap: i64,
    /// Whether the destination annotation is set to the new destination.
    pub dst_anno: bool,
    /// The offset of the annotation REPLY_ANNO, which all replies of a flow copy from the packet that made the flow.
    /// None if no annotation is copied.
    pub reply_anno: Option<usize>,
}

/// The lookup of a packet: its key, the key's tag (hash), and the table entry that was guessed from the tag.
#[derive(Clone, Copy)]
struct Ahead {
    key: Key,
    tag: u32,
    guess: Option<u32>,
}

/// The arguments of a class of rewriters.
pub trait RewriterArgs: Args {
    /// How the rewriter makes the key of a flow from a packet, and how it rewrites the packet.
    type Family: Family;
    /// Whether one handler, `table`, lists all flows. IPRewriter has one handler for TCP and one for UDP.
    const ONE_TABLE: bool = true;
    /// The settings of the rewriter.
    fn settings(&self) -> Settings;
    /// For each input, the rule for packets of unknown flows.
    fn specs(&self) -> &[SpecText];
}

/// The engine of a rewriter whose class has the arguments `A`.
#[derive(Counts)]
pub struct Rewriter<A> {
    args: A,
    /// Packets of unknown flows that were dropped, because no flow could be made or the input drops them.
    #[count(name = "mapping_failures", unit = "packets")]
    failures: SharedCount,
    handle: Arc<Handle>,
    registry: Arc<Registry>,
    scope: String,
    specs: Vec<SpecText>,
    outputs: usize,
    kind: RewriterKind,
    link: Option<Link>,
    /// Whether the kernel has copies of flows.
    copies: bool,
    reap: i64,
    dst_anno: bool,
    reply_anno: Option<usize>,
    /// Whether the timer of the sweep is set. The sweep removes expired flows.
    timed: bool,
    ahead: Vec<Option<Ahead>>,
    /// The segments of a super-packet, while they are rewritten.
    segments: Batch,
}

/// What happens to a packet: it leaves by an output, or it is dropped.
enum Fate {
    Out(u16),
    Drop(Reason),
}

impl<A: RewriterArgs> Rewriter<A> {
    fn check(&self, spec: &super::spec::Spec) -> Result<(), ValueError> {
        let bad = self.kind == RewriterKind::Addr && spec.patterns().iter().any(|p| p.sets_destination());
        if bad { Err("a pattern of addresses alone cannot set the destination".into()) } else { Ok(()) }
    }

    fn many(
        &mut self,
        port: usize,
        batch: &mut Batch,
        now: i64,
        space: u16,
        store: &mut Store,
        cx: &mut Cx<'_>,
    ) {
        let mut ahead = std::mem::take(&mut self.ahead);
        let mut rest = batch.drain();
        loop {
            // Three passes prepare the lookups. They have no branches that depend on memory, so cache misses
            // overlap.
            let some = rest.as_slice();
            let some = some.get(..AHEAD).unwrap_or(some);
            if some.is_empty() {
                break;
            }
            ahead.clear();
            ahead.extend(some.iter().map(|p| self.look(p, space, store)));
            for a in ahead.iter_mut().flatten() {
                a.guess = store.guess(a.tag);
            }
            for a in ahead.iter_mut().flatten() {
                a.guess = a.guess.filter(|v| store.is(*v, space, a.key.proto, a.key.tuple));
            }
            for a in &ahead {
                let Some(p) = rest.next() else { break };
                self.one(p, *a, port, now, space, store, cx);
            }
        }
        drop(rest);
        self.ahead = ahead;
    }

    #[inline(always)]
    fn look(&self, p: &Packet, space: u16, store: &Store) -> Option<Ahead> {
        let key = A::Family::key(p.network()?)?;
        // If forward packets and replies have different keys, the key of forward packets is looked up first.
        let key = Key { tuple: A::Family::forward_key(key), ..key };
        let proto = self.kind.table(key.proto);
        Some(Ahead { key: Key { proto, ..key }, tag: store.tag(space, proto, key.tuple), guess: None })
    }
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    fn one(
        &mut self,
        mut p: Packet,
        ahead: Option<Ahead>,
        port: usize,
        now: i64,
        space: u16,
        store: &mut Store,
        cx: &mut Cx<'_>,
    ) {
        let fate = match ahead {
            Some(a) => {
                // An earlier packet of the batch may have removed the guessed entry.
                let known = a.guess.filter(|v| {
                    store.is(*v, space, a.key.proto, a.key.tuple) && !store.is_expired(v >> 1, now)
                });
                let known = known.or_else(|| self.find(&p, &a, space, store, now));
                match known {
                    Some(v) if p.has_offload() && is_shifted(v, store) => {
                        return self.complete(p, v, now, store, cx);
                    }
                    Some(v) => self.apply(&mut p, v, now, store),
                    None => self.miss(&mut p, &a, port, now, space, store, cx),
                }
            }
            None => self.foreign(&p, port, space, store),
        };
        end(p, fate, cx);
    }

    /// Completes the offloads of a packet, and rewrites the resulting segments one by one. Used where
    /// sequence numbers are shifted, because the segments of one super-packet may be shifted by different
    /// amounts.
    #[cold]
    #[inline(never)]
    fn complete(&mut self, p: Packet, value: u32, now: i64, store: &mut Store, cx: &mut Cx<'_>) {
        let mut segments = std::mem::replace(&mut self.segments, Batch::empty());
        match finish(p, &mut segments) {
            Ok(()) => cx.made((segments.len() as u64).saturating_sub(1)),
            Err(reason) => {
                cx.count_drops(reason, 1);
            }
        }
        for mut p in segments.drain() {
            let fate = self.apply(&mut p, value, now, store);
            end(p, fate, cx);
        }
        self.segments = segments;
    }

    #[inline]
    fn find(&self, p: &Packet, a: &Ahead, space: u16, store: &mut Store, now: i64) -> Option<u32> {
        let found = store.find(a.tag, space, a.key.proto, a.key.tuple, now);
        found.or_else(|| {
            let reply = A::Family::reply_key(A::Family::key(p.network()?)?)?;
            store.look_up(space, a.key.proto, reply, now)
        })
    }

    /// Rewrites a packet of a known flow.
    #[inline(always)]
    fn apply(&self, p: &mut Packet, value: u32, now: i64, store: &mut Store) -> Fate {
        let (place, reply) = (value >> 1, value & 1 == 1);
        let Some(f) = store.flow_mut(place) else { return Fate::Drop(Reason::NoMapping) };
        let (ip, mut transport) = match reply {
            false => (f.ip_change, f.transport_change),
            true => (!f.ip_change, !f.transport_change),
        };
        let (to, out, anno) = (f.rewritten(reply), f.outs[usize::from(reply)], f.anno);
        let partial = p.has_offload() && header::is_partial(p);
        if partial {
            transport = 0;
        }
        let Some(net) = p.network_mut() else { return Fate::Drop(Reason::NoIpHeader) };
        let Some(key) = A::Family::key(net) else { return Fate::Drop(Reason::NotRewritable) };
        if !A::Family::fits(net, key, reply) {
            return Fate::Drop(Reason::NoMapping);
        }
        let to = A::Family::become_of(key, to, reply);
        header::rewrite::<A::Family>(net, key, key.proto, to, reply, ip, transport);
        if partial {
            header::mend_partial(net, key, key.proto, ip);
        }
        let (mut bits, mut kept) = (f.bits, f.class);
        if kept >= class::TCP_NEW {
            if let Some((flags, payload)) = header::segment(net, key.header) {
                (bits, kept) = after_segment(bits, reply, flags, payload);
            }
        } else if self.kind.is_by_ports() {
            (bits, kept) = after_datagram(bits, kept, reply);
        }
        let class = f.class;
        f.last = now;
        f.bits = bits;
        if kept != class {
            store.reclass(place, kept);
        }
        if self.copies {
            store.update_copies(place, reply, kept != class, now);
        }
        if bits & bit::SHIFTED != 0 {
            shift(net, key.header, store, place, reply);
        }
        if self.dst_anno {
            p.set_dst_ip(to.dst());
        }
        if let Some(at) = self.reply_anno
            && reply
        {
            p.set_anno_u8(at, anno);
        }
        Fate::Out(out)
    }

    /// Applies the specification of the input to a packet of an unknown flow.
    #[allow(clippy::too_many_arguments)]
    #[inline(never)]
    fn miss(
        &mut self,
        p: &mut Packet,
        a: &Ahead,
        port: usize,
        now: i64,
        space: u16,
        store: &mut Store,
        cx: &mut Cx<'_>,
    ) -> Fate {
        if !p.network().is_some_and(|net| A::Family::fits(net, a.key, false)) {
            return match self.foreign(p, port, space, store) {
                Fate::Drop(_) => Fate::Drop(Reason::NoMapping),
                out => out,
            };
        }
        let new = New {
            space,
            input: u16::try_from(port).unwrap_or(u16::MAX),
            proto: a.key.proto,
            from: a.key.tuple,
            class: if a.key.proto == protocol::TCP { class::TCP_NEW } else { class::PLAIN },
            anno: self.reply_anno.map_or(0, |at| p.anno_u8(at)),
            now,
        };
        match store.make(&new) {
            Made::Flow(place) => {
                if !self.timed {
                    Self::set_timer(&mut self.timed, self.reap, now, cx);
                }
                self.apply(p, place << 1, now, store)
            }
            Made::Pass(out) => Fate::Out(out),
            Made::Drop(reason) => {
                // A super-packet counts as many failures as it has segments.
                self.failures.add(if p.has_offload() { p.segments().0 } else { 1 });
                Fate::Drop(reason)
            }
        }
    }

    /// Passes or drops a packet that this class of rewriters does not rewrite, such as a packet of another
    /// protocol or a later fragment.
    #[cold]
    fn foreign(&self, p: &Packet, port: usize, space: u16, store: &mut Store) -> Fate {
        if p.network().is_none() {
            return Fate::Drop(Reason::NoIpHeader);
        }
        match store.input(space, port).map(|i| &i.spec) {
            Some(super::spec::Spec::Pass(out)) => Fate::Out(*out),
            _ => Fate::Drop(Reason::NotRewritable),
        }
    }

    /// Sets the timer of the next sweep, unless sweeps are off.
    fn set_timer(timed: &mut bool, reap: i64, now: i64, cx: &mut Cx<'_>) {
        if reap > 0 {
            *timed = true;
            cx.set_timer(REAP, now.saturating_add(reap));
        }
    }
}

impl<A: RewriterArgs> Element for Rewriter<A> {
    /// Rewrites the packets of a batch.
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        // The link is taken out of `self` for the duration of the batch, so that the locked store does not
        // borrow `self`.
        let Some(link) = self.link.take() else { return cx.drop_all(batch, Reason::NoMapping) };
        let now = cx.recent();
        let mut store = link.store();
        if batch.len() < 3 {
            for p in batch.drain() {
                let ahead = self.look(&p, link.space, &store);
                self.one(p, ahead, port, now, link.space, &mut store, cx);
            }
        } else {
            self.many(port, batch, now, link.space, &mut store, cx);
        }
        drop(store);
        self.link = Some(link);
    }
    /// Removes all expired flows of this rewriter, when the timer of the sweep expires.
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.timed = false;
        let Some(link) = self.handle.linked() else { return };
        let now = cx.now();
        let mut store = link.store();
        store.clean(link.space, now, usize::MAX);
        if !store.places(link.space).is_empty() {
            Self::set_timer(&mut self.timed, self.reap, now, cx);
        }
    }
}

#[inline(always)]
fn end(p: Packet, fate: Fate, cx: &mut Cx<'_>) {
    match fate {
        Fate::Out(n) => cx.emit(usize::from(n), p),
        Fate::Drop(reason) => cx.drop(p, reason),
    }
}

/// Whether the flow's sequence numbers are shifted.
#[cold]
fn is_shifted(value: u32, store: &Store) -> bool {
    store.flow(value >> 1).is_some_and(|f| f.bits & bit::SHIFTED != 0)
}

/// Shifts the sequence numbers of a segment.
#[cold]
fn shift(net: &mut [u8], header: u8, store: &mut Store, place: u32, reply: bool) {
    if let Some([forward, back]) = store.shifts_mut(place)
        && let Some(segment) = net.get_mut(usize::from(header)..)
    {
        let (own, other) = if reply { (back, forward) } else { (forward, back) };
        seq::apply(segment, own, other);
    }
}
