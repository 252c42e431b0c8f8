// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wrapper around an element while packets are observed. It notes where followed packets go, and shows taps the
//! packets that pass.

use crate::observe::Observers;
use crate::observe::tap::{Side, Tap};
use crate::observe::trace::{CHOOSING, Event, FOLLOWING, Site, Trace, Tracer};
use castanet_element::package::Wrap;
use castanet_element::run_loop::{Entry, Internals as _};
use castanet_element::{Action, Cx, Element, Turn, Verdict};
use castanet_packet::{Batch, Packet};
use castanet_spec::{ClassSpec, LedgerRole, Reason};
use std::sync::Arc;

/// The wrapper around one element.
pub(crate) struct Probe {
    observers: Arc<Observers>,
    spec: Option<&'static ClassSpec>,
    site: Site,
    /// Whether packets enter the router through the element, whether it makes packets, and whether it holds packets.
    enters: bool,
    makes: bool,
    holds: bool,
    /// The number of workers of the router.
    workers: usize,
    /// Whether a pull of this element may bring packets that are new to the router.
    pulls_new: bool,
    traces: Arc<[Arc<Trace>]>,
    taps: Vec<(Side, usize, Arc<Tap>)>,
    /// The numbers of packets that waited on the edges of the element before the call.
    lengths: Vec<usize>,
}

/// The counts of an element before a call.
struct Before {
    drops: Vec<(Reason, u64)>,
    entries: Vec<(Entry, u64)>,
    /// The result of [`Pulled::begin`].
    calls: usize,
}

/// The state of one call of the element, from which the fate of its packets is determined.
struct Call {
    input: Option<usize>,
    /// The mark of the packet that was pushed to the element. 0 if it is not followed, or if none was pushed.
    mark: u32,
    before: Option<Before>,
    /// Whether packets that the call emits are to be examined, because they may be new to the router.
    examines: bool,
    /// The followed packets that the element has passed on.
    found: Vec<u32>,
    /// Whether the element has made packets.
    made: bool,
}

/// The description of the element that a probe wraps.
pub(crate) struct Place {
    pub spec: Option<&'static ClassSpec>,
    /// The name of the element.
    pub element: Arc<str>,
    /// The number of workers of the router.
    pub workers: usize,
    /// Whether a pull of the element may bring packets that are new to the router.
    pub pulls_new: bool,
    pub traces: Arc<[Arc<Trace>]>,
    pub taps: Vec<(Side, usize, Arc<Tap>)>,
}

impl Probe {
    pub(crate) fn new(observers: Arc<Observers>, place: Place) -> Probe {
        let Place { spec, element, workers, pulls_new, traces, taps } = place;
        let site = Site { element, worker: 0 };
        let has = |role| spec.is_none_or(|s| s.ledger_role.contains(role));
        Probe {
            enters: has(LedgerRole::ENTERS),
            makes: has(LedgerRole::MAKES),
            holds: has(LedgerRole::HOLDS),
            observers,
            spec,
            site,
            workers,
            pulls_new,
            traces,
            taps,
            lengths: Vec::new(),
        }
    }
    fn tracer(&self) -> &Tracer {
        &self.observers.tracer
    }
    fn is_following(&self) -> bool {
        self.tracer().activity() & FOLLOWING != 0
    }
    /// Whether packets that a call emits may be new to the router.
    #[inline]
    fn emits_new(&self, input: Option<usize>) -> bool {
        self.enters || input.is_none() && self.makes
    }
    /// Whether packets that a call emits are to be examined, because they may be new to the router.
    fn examines(&self, input: Option<usize>) -> bool {
        self.emits_new(input)
            && self.tracer().activity() & CHOOSING != 0
            && self.observers.is_ready(self.workers)
    }
    /// Whether the packets of a call need not be looked at.
    #[inline]
    fn is_idle(&self, input: Option<usize>) -> bool {
        let relevant = if self.pulls_new || self.emits_new(input) { FOLLOWING | CHOOSING } else { FOLLOWING };
        self.taps.is_empty() && self.tracer().activity() & relevant == 0
    }
    fn now(cx: &mut Cx<'_>) -> i64 {
        cx.core().clock().peek()
    }

    /// Shows a packet to the taps of a port.
    fn show(&self, side: Side, port: usize, p: &Packet, now: i64) {
        for (_, _, tap) in self.taps.iter().filter(|t| (t.0, t.1) == (side, port)) {
            tap.see(p, self.site.worker, now);
        }
    }
    fn show_all(&self, side: Side, port: usize, batch: &Batch, cx: &mut Cx<'_>) {
        if !self.taps.is_empty() {
            let now = Probe::now(cx);
            batch.iter().for_each(|p| self.show(side, port, p, now));
        }
    }

    /// Called before a call of the element. `mark` is that of the packet that is pushed to it.
    fn begin(&mut self, input: Option<usize>, mark: u32, cx: &mut Cx<'_>) -> Call {
        // A locked element runs on several workers.
        self.site.worker = cx.core().worker();
        cx.outputs().lengths(&mut self.lengths);
        let me = cx.me();
        let before = (self.is_following() || self.pulls_new).then(|| Before {
            drops: cx.core().drops_of(me).collect(),
            entries: cx.core().entries_of(me).collect(),
            calls: self.tracer().pulled(self.site.worker).begin(),
        });
        Call { input, mark, before, examines: self.examines(input), found: Vec::new(), made: false }
    }

    /// Called after a call of the element. `returned` is an output, and the packets that the call has returned to its caller
    /// for this output: those that were pulled, or those that an action passes on.
    fn end(&mut self, mut call: Call, returned: Option<(usize, &mut [Packet])>, cx: &mut Cx<'_>) {
        let now = Probe::now(cx);
        let me = cx.me();
        let grew = |before: &Before, entry, cx: &mut Cx<'_>| {
            let was = before.entries.iter().find(|e| e.0 == entry).map_or(0, |e| e.1);
            cx.core().entries_of(me).find(|e| e.0 == entry).is_some_and(|e| e.1 > was)
        };
        call.made |= call.before.as_ref().is_some_and(|b| grew(b, Entry::Made, cx));
        let own = call
            .before
            .as_ref()
            .map(|b| self.tracer().pulled(self.site.worker).end(b.calls))
            .unwrap_or_default();
        if let Some((port, packets)) = returned {
            for p in packets {
                self.passed(&mut call, port, p, now);
                match (p.mark(), call.input) {
                    (0, _) => {}
                    (mark, None) => self.tracer().pulled(self.site.worker).add(mark),
                    (_, Some(_)) if port == 0 => {}
                    (mark, Some(_)) => self.tracer().pulled(self.site.worker).remove(mark),
                }
            }
        }
        let lengths = std::mem::take(&mut self.lengths);
        cx.outputs().emitted_since(&lengths, |port, p| {
            self.passed(&mut call, port, p, now);
            if p.mark() != 0 {
                self.tracer().pulled(self.site.worker).remove(p.mark());
            }
        });
        self.lengths = lengths;
        let Some(before) = &call.before else { return };
        // The packets that the element had and has no more: the one that was pushed to it, and those that it has pulled.
        let had = std::iter::once(call.mark).chain(own);
        let lost: Vec<u32> =
            had.filter(|m| *m != 0 && !call.found.contains(m) && self.tracer().knows(*m)).collect();
        if lost.is_empty() {
            return;
        }
        let was = |reason| before.drops.iter().find(|d| d.0 == reason).map_or(0, |d| d.1);
        let drops = cx.core().drops_of(me).map(|(reason, n)| (reason, n.saturating_sub(was(reason))));
        let mut drops: Vec<(Reason, u64)> = drops.filter(|d| d.1 > 0).collect();
        let left = grew(before, Entry::Left, cx);
        for mark in lost {
            let event = match drops.pop() {
                Some((reason, n)) => {
                    if n > 1 {
                        drops.push((reason, n - 1));
                    }
                    self.dropped(reason)
                }
                None if left => Event::Left,
                None if self.holds => Event::Held,
                None => Event::Gone,
            };
            self.tracer().pulled(self.site.worker).remove(mark);
            self.tracer().record(mark, &self.site, call.input, event, None, now);
        }
    }

    /// The event of a packet that the element has counted as dropped.
    fn dropped(&self, reason: Reason) -> Event {
        match self.spec.is_some_and(|s| s.ends.contains(&reason)) {
            true => Event::Ended(reason),
            false => Event::Dropped(reason),
        }
    }

    /// Called for each packet that the element has passed on by an output. Nearly all packets are not followed, and do not
    /// become so.
    #[inline]
    fn passed(&self, call: &mut Call, port: usize, p: &mut Packet, now: i64) {
        if p.mark() != 0 || call.made && call.mark != 0 {
            self.passed_followed(call, port, p, now);
        } else if call.examines
            && let Some(trace) = self.traces.iter().find(|t| t.wants(p))
        {
            self.tracer().choose(trace, p, &self.site, port, now);
        }
        if !self.taps.is_empty() {
            self.show(Side::Output, port, p, now);
        }
    }

    /// Called for a packet that the element has passed on, if it is followed or was made from a followed one.
    #[cold]
    fn passed_followed(&self, call: &mut Call, port: usize, p: &mut Packet, now: i64) {
        let mark = p.mark();
        if mark == 0 {
            self.tracer().add_part(call.mark, p, &self.site, call.input, port, now);
        } else if call.found.contains(&mark) {
            self.tracer().add_part(mark, p, &self.site, call.input, port, now);
        } else {
            call.found.push(mark);
            self.tracer().record(mark, &self.site, call.input, Event::Out(port), Some(p), now);
        }
    }

    /// Whether a batch has a packet that is followed.
    fn has_followed(&self, batch: &Batch) -> bool {
        self.is_following() && batch.iter().any(|p| p.mark() != 0)
    }

    /// Calls `f`, which runs the element without pushing a packet to it.
    fn around<R>(&mut self, cx: &mut Cx<'_>, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        if self.is_idle(None) {
            return f(cx);
        }
        let call = self.begin(None, 0, cx);
        let out = f(cx);
        self.end(call, None, cx);
        out
    }
}

impl Wrap for Probe {
    #[inline]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn action(&mut self, inner: &mut (impl Action + ?Sized), p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.is_idle(Some(0)) {
            return inner.action(p, cx);
        }
        let now = Probe::now(cx);
        self.show(Side::Input, 0, p, now);
        let mark = p.mark();
        let call = self.begin(Some(0), mark, cx);
        let verdict = inner.action(p, cx);
        match verdict {
            Verdict::Next => self.end(call, Some((0, std::slice::from_mut(p))), cx),
            Verdict::Several => {
                let mut call = Call { made: true, ..call };
                self.passed(&mut call, 0, p, now);
                // The packets behind this one follow it through output 0.
                let mut behind = std::mem::replace(cx.core().behind(), Batch::empty());
                behind.iter_mut().for_each(|p| self.passed(&mut call, 0, p, now));
                *cx.core().behind() = behind;
                self.end(call, None, cx);
            }
            Verdict::Out(port) if cx.has_output(usize::from(port)) => {
                self.end(call, Some((usize::from(port), std::slice::from_mut(p))), cx);
            }
            Verdict::Out(_) | Verdict::Drop(_) => {
                // The caller of the action drops the packet and counts it.
                let reason = if let Verdict::Drop(reason) = verdict { reason } else { Reason::NoPort };
                if mark != 0 {
                    self.tracer().pulled(self.site.worker).remove(mark);
                    self.tracer().record(mark, &self.site, Some(0), self.dropped(reason), None, now);
                }
                self.end(Call { mark: 0, ..call }, None, cx);
            }
        }
        verdict
    }

    fn action_batch(&mut self, inner: &mut (impl Action + ?Sized), batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.is_idle(Some(0)) {
            return inner.action_batch(batch, cx);
        }
        self.show_all(Side::Input, 0, batch, cx);
        if !self.has_followed(batch) {
            let call = self.begin(Some(0), 0, cx);
            inner.action_batch(batch, cx);
            return self.end(call, Some((0, batch.as_mut_vec())), cx);
        }
        // One by one, so that it is clear what became of each.
        let mut all = std::mem::replace(batch, cx.spare_batch());
        let mut one = cx.spare_batch();
        for p in all.drain() {
            let call = self.begin(Some(0), p.mark(), cx);
            one.push(p);
            inner.action_batch(&mut one, cx);
            self.end(call, Some((0, one.as_mut_vec())), cx);
            batch.append(&mut one);
        }
        cx.return_batch(one);
        cx.return_batch(all);
    }

    fn push(&mut self, inner: &mut (impl Element + ?Sized), port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.is_idle(Some(port)) {
            return inner.push(port, batch, cx);
        }
        self.show_all(Side::Input, port, batch, cx);
        if !self.has_followed(batch) {
            let call = self.begin(Some(port), 0, cx);
            inner.push(port, batch, cx);
            return self.end(call, None, cx);
        }
        let mut all = std::mem::replace(batch, cx.spare_batch());
        for p in all.drain() {
            let call = self.begin(Some(port), p.mark(), cx);
            batch.push(p);
            inner.push(port, batch, cx);
            // The run loop would drop what the element has left in the batch.
            cx.drop_all(batch, Reason::Discarded);
            self.end(call, None, cx);
        }
        cx.return_batch(all);
    }

    fn push_one(&mut self, inner: &mut (impl Element + ?Sized), port: usize, p: Packet, cx: &mut Cx<'_>) {
        if self.is_idle(Some(port)) {
            return inner.push_one(port, p, cx);
        }
        let now = Probe::now(cx);
        self.show(Side::Input, port, &p, now);
        let call = self.begin(Some(port), p.mark(), cx);
        inner.push_one(port, p, cx);
        self.end(call, None, cx);
    }

    fn pull(
        &mut self,
        inner: &mut (impl Element + ?Sized),
        port: usize,
        max: usize,
        into: &mut Batch,
        cx: &mut Cx<'_>,
    ) {
        if self.is_idle(None) {
            return inner.pull(port, max, into, cx);
        }
        let before = into.len();
        let call = self.begin(None, 0, cx);
        inner.pull(port, max, into, cx);
        let pulled = into.as_mut_vec().get_mut(before..).unwrap_or_default();
        self.end(call, Some((port, pulled)), cx);
    }

    fn pull_one(
        &mut self,
        inner: &mut (impl Element + ?Sized),
        port: usize,
        cx: &mut Cx<'_>,
    ) -> Option<Packet> {
        if self.is_idle(None) {
            return inner.pull_one(port, cx);
        }
        let call = self.begin(None, 0, cx);
        let mut p = inner.pull_one(port, cx);
        self.end(call, p.as_mut().map(|p| (port, std::slice::from_mut(p))), cx);
        p
    }

    fn task(&mut self, inner: &mut (impl Element + ?Sized), cx: &mut Cx<'_>) -> Turn {
        self.around(cx, |cx| inner.task(cx))
    }
    fn event<R>(&mut self, cx: &mut Cx<'_>, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        self.around(cx, f)
    }
}
