// SPDX-License-Identifier: MIT OR Apache-2.0
//! What elements work with: outputs to emit to, time, notifiers, timers, descriptors, handlers of others.

use crate::class::{Turn, Verdict};
use crate::core::{CallError, Core, Edge, Entry, Router};
use crate::notify::{Note, Signal};
use crate::watch::{Interest, Watch};
use castanet_packet::{Batch, Packet};
use castanet_spec::{ArgCx, HandlerRef, Reason};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The most handler calls one within the other: elements that call each other must not use up the stack.
const NESTING: u32 = 64;

/// The most packets that elements take in vain in one pull.
const TRIES: u32 = 256;

#[cold]
fn nested(handler: &str) -> CallError {
    CallError::Busy(format!("handler '{handler}': more than {NESTING} calls one within the other"))
}

/// Which element runs, and which edges are its own.
#[derive(Clone, Copy, Debug, Default)]
// It is copied for each element that a packet meets: in one piece.
#[repr(C, align(16))]
pub struct Place {
    /// The number of the element.
    pub me: u32,
    /// Where its edges start, and how many they are.
    pub base: u32,
    /// How many edges it has: one for each output, without output 0 of an action, which is the chain's business.
    pub count: u32,
    /// How many edges of its node come before its own. A chain has some of its own; an element that stands alone has all.
    // INVARIANT: zero for elements, above zero for actions.
    pub skip: u32,
}

/// What an element has at hand while it runs.
pub struct Cx<'a> {
    edges: &'a mut [Edge],
    core: &'a mut Core,
    router: Option<&'a mut dyn Router>,
    place: Place,
    slot_edge: u32,
    /// Edges of the node that something was emitted to, as bits; the last bit stands for all above it.
    touched: u64,
    // INVARIANT: empty when something is touched, and when `open` is not zero.
    slot: Option<Packet>,
    /// The next emission may stay in `slot` if it is to one of so many outputs, so that no batch is needed: all those of an
    /// element when one packet is on its way and nothing was emitted or called yet, otherwise none.
    open: u32,
}

impl<'a> Cx<'a> {
    /// For element `me`, whose output `first` is the first of `edges`: 0, or 1 for an action.
    #[inline(always)]
    pub fn new(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        me: u32,
        first: u32,
    ) -> Cx<'a> {
        let place = Place { me, base: 0, count: edges.len() as u32, skip: first };
        Cx::over(edges, core, router, place, false)
    }
    /// For elements that have some of these edges each; [`Cx::enter`] says which. With `single` one packet is on its way.
    #[inline(always)]
    pub fn over(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        place: Place,
        single: bool,
    ) -> Cx<'a> {
        let open = if single { place.count } else { 0 };
        Cx { edges, core, router, place, slot_edge: 0, touched: 0, slot: None, open }
    }
    /// Goes on to an action. Emissions cannot stay in the slot: it is free only for elements that stand alone.
    #[inline(always)]
    pub fn enter(&mut self, place: Place) {
        self.place = place;
    }
    /// Goes on to an element with one packet, so that the slot is free.
    #[inline(always)]
    pub fn enter_single(&mut self, place: Place) {
        self.place = place;
        self.open = place.count;
    }
    /// Edges of the node that something was emitted to, as bits; bit 63 stands for all from 63 on, and for calls that wait
    /// to be carried out.
    #[inline(always)]
    pub fn touched(&self) -> u64 {
        self.touched
    }
    /// The same, and none from now on.
    #[inline(always)]
    pub fn take_touched(&mut self) -> u64 {
        std::mem::take(&mut self.touched)
    }
    /// Adds to what was emitted to.
    #[inline(always)]
    pub fn touch(&mut self, touched: u64) {
        self.touched |= touched;
    }
    /// The one packet that was emitted while one was on its way, and its place among all edges; none when there were more or
    /// fewer, or when calls are to be carried out first. Nothing is touched then.
    #[inline(always)]
    pub fn take_slot(&mut self) -> Option<(usize, Packet)> {
        self.slot.take().map(|p| (self.slot_edge as usize, p))
    }
    /// An edge, by its place among all.
    #[inline(always)]
    pub fn edge_at(&mut self, i: usize) -> Option<&mut Edge> {
        self.edges.get_mut(i)
    }
    /// Puts a batch on an edge, by its place among all.
    pub fn park(&mut self, i: usize, batch: &mut Batch) {
        self.touched |= self.bit(i);
        if let Some(e) = self.edges.get_mut(i) {
            e.batch.append(batch);
        }
    }
    /// Puts a packet and those that were put behind it on an edge, by its place among all.
    #[cold]
    pub fn park_one(&mut self, i: usize, p: Packet) {
        self.touched |= self.bit(i);
        match self.edges.get_mut(i) {
            Some(e) => {
                e.batch.push(p);
                e.batch.append(&mut self.core.behind);
            }
            // An action of a class that does not declare copies has no such edge.
            None => {
                let mut rest = std::mem::replace(&mut self.core.behind, Batch::empty());
                self.drop(p, Reason::Discarded);
                self.drop_all(&mut rest, Reason::Discarded);
            }
        }
    }
    /// The place of an output among all edges.
    #[inline(always)]
    fn index(&self, port: usize) -> Option<usize> {
        let Place { base, count, skip, .. } = self.place;
        let i = port.wrapping_sub(usize::from(skip != 0));
        (i < count as usize).then_some(base as usize + i)
    }
    /// The bit of an edge.
    #[inline(always)]
    fn bit(&self, i: usize) -> u64 {
        let node = self.place.base.wrapping_sub(self.place.skip);
        1 << i.wrapping_sub(node as usize).min(63)
    }
    /// The edge of an output, to put something on.
    #[inline(always)]
    fn edge(&mut self, port: usize) -> Option<&mut Edge> {
        let i = self.index(port)?;
        self.open = 0;
        if self.slot.is_some() {
            self.unslot();
        }
        self.touched |= self.bit(i);
        self.edges.get_mut(i)
    }
    /// A second emission, or a call: the first emission goes to its edge after all.
    #[cold]
    #[inline(never)]
    fn unslot(&mut self) {
        if let Some((i, p)) = self.take_slot() {
            self.touched |= self.bit(i);
            if let Some(e) = self.edges.get_mut(i) {
                e.batch.push(p);
            }
        }
    }

    /// The number of this element.
    pub fn me(&self) -> u32 {
        self.place.me
    }
    /// Its full name.
    pub fn name(&self) -> &str {
        self.core.name(self.place.me)
    }
    /// How messages name it: `name :: Class`.
    pub fn declaration(&self) -> String {
        self.core
            .info
            .get(self.place.me as usize)
            .map_or(String::new(), |i| format!("{} :: {}", i.name, i.class))
    }
    /// The time in nanoseconds since 1970.
    #[inline]
    pub fn now(&mut self) -> i64 {
        self.core.clock.now()
    }
    /// The time when the run loop last looked at the clock, which costs nothing to ask: for timeouts and the like, where some
    /// milliseconds do not matter. Simulated time is exact.
    #[inline]
    pub fn recent(&mut self) -> i64 {
        if self.core.clock.is_simulated() { self.core.clock.peek() } else { self.core.recent }
    }
    /// The most packets that a task may emit or pull in this turn.
    #[inline]
    pub fn limit(&self) -> usize {
        self.core.limit
    }
    /// How many turns the task may take in this call. Above 1 only where no other task could have its turn between them, so
    /// that a class without a BURST can move a batch. Never above [`Cx::limit`].
    #[inline]
    pub fn turns(&self) -> usize {
        self.core.turns
    }
    /// What the worker's elements share.
    pub fn core(&mut self) -> &mut Core {
        self.core
    }
    /// What handler values are read against.
    pub fn with_args<R>(&self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.place.me as usize).map_or("", |i| &i.scope);
        f(&ArgCx { scope, names: &self.core.names, origin: self.core.origin })
    }

    /// Runs `f` with the rights of the configuration, also within a call of a client: for what the configuration itself says.
    pub fn as_configuration<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let caller = std::mem::replace(&mut self.core.origin, self.core.home);
        let out = f(self);
        self.core.origin = caller;
        out
    }

    /// Whether an output exists.
    #[inline(always)]
    pub fn has_output(&self, port: usize) -> bool {
        self.index(port).is_some()
    }
    /// The verdict that sends a packet to a side output if it exists, and drops it otherwise.
    #[inline]
    pub fn out_or(&self, port: u16, reason: Reason) -> Verdict {
        if self.has_output(port as usize) { Verdict::Out(port) } else { Verdict::Drop(reason) }
    }
    /// Sends a packet to an output; dropped as `no-port` if that does not exist.
    #[inline(always)]
    pub fn emit(&mut self, port: usize, p: Packet) {
        self.emit_or(port, p, Reason::NoPort);
    }
    /// Sends a packet to an output if that exists, and drops it for a reason otherwise.
    #[inline(always)]
    pub fn emit_or(&mut self, port: usize, p: Packet, reason: Reason) {
        if port < self.open as usize {
            self.open = 0;
            // An element that stands alone has all edges of its node, output 0 first.
            self.slot_edge = self.place.base.wrapping_add(port as u32);
            // The slot is empty; that there is nothing to drop cannot be seen from here.
            std::mem::forget(self.slot.replace(p));
            return;
        }
        self.emit_to_edge(port, p, reason);
    }
    /// Sends a packet to an output where it cannot stay in the slot.
    #[inline(never)]
    fn emit_to_edge(&mut self, port: usize, p: Packet, reason: Reason) {
        self.emit_beside(port, p, reason);
    }
    /// Like [`Cx::emit_or`], for one of several packets.
    #[inline(always)]
    pub fn emit_beside(&mut self, port: usize, p: Packet, reason: Reason) {
        match self.edge(port) {
            Some(e) => e.batch.push(p),
            None => self.drop(p, reason),
        }
    }
    /// Sends all packets of a batch to an output, by exchange when nothing waits there.
    #[inline(always)]
    pub fn forward(&mut self, port: usize, batch: &mut Batch) {
        if self.open > 0 && batch.len() == 1 {
            if let Some(p) = batch.pop() {
                self.emit(port, p);
            }
            return;
        }
        match self.edge(port) {
            Some(e) => e.batch.append(batch),
            None => self.drop_all(batch, Reason::NoPort),
        }
    }
    /// Drops a packet, counted.
    #[inline]
    pub fn drop(&mut self, p: Packet, reason: Reason) {
        self.core.count_drops(self.place.me, reason, 1);
        drop(p);
    }
    /// Drops all packets of a batch, counted.
    pub fn drop_all(&mut self, batch: &mut Batch, reason: Reason) {
        self.core.count_drops(self.place.me, reason, batch.len() as u64);
        batch.clear();
    }

    /// Counts packets that enter the router by this element. The class declares `books(enters)`.
    #[inline]
    pub fn entered(&mut self, n: u64) {
        self.core.book(self.place.me, Entry::Entered, n);
    }
    /// Counts packets that this element makes of others: copies, fragments, answers. The class declares `books(makes)`.
    #[inline]
    pub fn made(&mut self, n: u64) {
        self.core.book(self.place.me, Entry::Made, n);
    }
    /// Counts packets that leave the router by this element. The class declares `books(leaves)`.
    #[inline]
    pub fn left(&mut self, n: u64) {
        self.core.book(self.place.me, Entry::Left, n);
    }
    /// Sends a copy of a packet to an output; dropped when no buffer is free. The class declares `books(makes)`.
    pub fn emit_copy(&mut self, port: usize, p: &mut Packet) {
        self.made(1);
        match p.share() {
            Some(copy) => self.emit(port, copy),
            None => self.core.count_drops(self.place.me, Reason::NoBuffer, 1),
        }
    }

    /// Puts a packet behind the one that an action has; its verdict must be [`Verdict::Several`].
    pub fn behind(&mut self, p: Packet) {
        self.core.behind.push(p);
    }

    /// An empty batch that others used before.
    #[inline]
    pub fn spare_batch(&mut self) -> Batch {
        self.core.spare.pop().unwrap_or_default()
    }
    /// Gives a batch back; packets that are left in it are dropped as discarded.
    #[inline]
    pub fn return_batch(&mut self, mut batch: Batch) {
        if !batch.is_empty() {
            self.drop_all(&mut batch, Reason::Discarded);
        }
        self.core.spare.push(batch);
    }

    /// Runs an action over a batch: packets that go on stay, in order; the others leave, in order.
    #[inline(always)]
    pub fn apply(&mut self, batch: &mut Batch, mut f: impl FnMut(&mut Packet, &mut Cx<'_>) -> Verdict) {
        let mut left = None;
        for (i, p) in batch.iter_mut().enumerate() {
            let v = f(p, self);
            if !matches!(v, Verdict::Next) {
                left = Some((i, v));
                break;
            }
        }
        if let Some((i, v)) = left {
            self.apply_rest(batch, i, v, f);
        }
    }
    /// From the first packet that leaves on: the rest is moved aside and comes back packet by packet.
    #[inline(never)]
    pub(crate) fn apply_rest(
        &mut self,
        batch: &mut Batch,
        from: usize,
        first: Verdict,
        mut f: impl FnMut(&mut Packet, &mut Cx<'_>) -> Verdict,
    ) {
        let mut rest = std::mem::replace(&mut self.core.scratch, Batch::empty());
        rest.extend(batch.as_mut_vec().drain(from..));
        let mut known = Some(first);
        for mut p in rest.drain() {
            let v = known.take().unwrap_or_else(|| f(&mut p, self));
            match v {
                Verdict::Next => batch.push(p),
                Verdict::Out(port) => self.emit(port as usize, p),
                Verdict::Drop(reason) => self.drop(p, reason),
                Verdict::Several => {
                    batch.push(p);
                    batch.extend(self.core.behind.drain());
                }
            }
        }
        self.core.scratch = rest;
    }

    /// Pulls at most `max` packets through an input.
    pub fn pull(&mut self, input: usize, max: usize, into: &mut Batch) {
        if let Some(r) = &mut self.router {
            r.pull(self.core, self.place.me, input, max, into);
        }
    }

    /// Pulls one packet through an input.
    #[inline]
    pub fn pull_one(&mut self, input: usize) -> Option<Packet> {
        self.router.as_mut()?.pull_one(self.core, self.place.me, input)
    }

    /// Runs `f`, in which [`Cx::try_again`] counts pulls in vain. Elements that pull through each other share one count, so that
    /// their loops do not multiply.
    #[inline]
    pub fn with_tries<R>(&mut self, f: impl FnOnce(&mut Cx<'a>) -> R) -> R {
        let outermost = self.core.tries == 0;
        if outermost {
            self.core.tries = TRIES;
        }
        let out = f(self);
        if outermost {
            self.core.tries = 0;
        }
        out
    }
    /// Whether an element that pulled a packet it cannot pass on may pull another one. It gives up otherwise, as if there were
    /// nothing: the notifiers upstream stay on, so that its puller has another turn, after those of other tasks.
    #[inline]
    pub fn try_again(&mut self) -> bool {
        // The last one stays: 0 means that nothing is counted.
        let more = self.core.tries > 1;
        self.core.tries -= u32::from(more);
        more
    }
    /// Pulls packets through an input until `take` gives one, nothing is upstream, or there were too many in vain.
    ///
    /// Every element whose pull may have to take more than one packet for each that it gives uses this: a source that never
    /// satisfies it must not hold up the worker.
    #[inline]
    pub fn pull_until(
        &mut self,
        input: usize,
        mut take: impl FnMut(Packet, &mut Cx<'a>) -> Option<Packet>,
    ) -> Option<Packet> {
        self.with_tries(|cx| {
            loop {
                let p = cx.pull_one(input)?;
                let taken = take(p, cx);
                if taken.is_some() || !cx.try_again() {
                    return taken;
                }
            }
        })
    }

    /// Turns a notifier of this element on.
    #[inline]
    pub fn set_note(&mut self, note: Note) {
        self.core.set_note(note);
    }
    /// Whether turning a notifier of this element on would change nothing.
    #[inline]
    pub fn is_set(&self, note: Note) -> bool {
        self.core.notes.seems_on(note)
    }
    /// Turns a notifier of this element off; look again afterwards.
    #[inline]
    pub fn clear_note(&mut self, note: Note) {
        self.core.notes.clear(note);
    }
    /// Whether a signal is on.
    #[inline]
    pub fn is_on(&self, signal: &Signal) -> bool {
        signal.is_on(&self.core.notes)
    }
    /// How many of `want` packets a source sends now whose `signal` says whether there is room downstream; without room the
    /// turn that follows. A burst that has `begun` goes on though it fills a queue. But a source that alone fills one queue of
    /// several workers never sends more than that takes.
    #[inline]
    pub fn room(&self, signal: &Signal, want: usize, begun: bool) -> Result<usize, Turn> {
        match signal.room(&self.core.notes, want, begun) {
            0 if want > 0 => Err(if self.is_on(signal) { Turn::Again } else { Turn::Sleep }),
            room => Ok(room),
        }
    }
    /// Schedules this element's task.
    pub fn schedule(&mut self) {
        self.core.wakes.push(self.place.me);
    }
    /// Sets timer `id` of this element to a time; it replaces an earlier setting.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.place.me, id), at);
    }
    /// Takes timer `id` of this element back.
    pub fn clear_timer(&mut self, id: u16) {
        self.core.timers.cancel((self.place.me, id));
    }
    /// Watches a descriptor; nothing happens until [`Cx::wait`].
    pub fn watch(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        self.core.watches.add(self.place.me, fd, interest)
    }
    /// Has this element's task scheduled, once, as soon as the descriptor is ready.
    pub fn wait(&mut self, watch: Watch) {
        self.core.watches.wait(watch);
    }
    /// Watches a descriptor no longer.
    pub fn unwatch(&mut self, watch: Watch) {
        self.core.watches.remove(watch);
    }
    /// Asks the driver to stop.
    pub fn stop(&mut self, times: u32) {
        self.core.outside.stop(times);
    }
    /// Has the router read its configuration again if that takes addresses from a device whose addresses have changed; whether
    /// it will.
    pub fn device_changed(&self, device: &str) -> bool {
        self.core.outside.device_changed(device)
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.core.outside.message(text);
    }
    /// Shows a message on a named channel only.
    pub fn message_on(&self, channel: &str, text: &str) {
        self.core.outside.message_on(channel, text);
    }

    /// Reads a handler of another element, or a global one.
    pub fn read_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        match &mut self.router {
            Some(_) if self.core.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.nesting += 1;
                let out = r.read(self.core, element, handler, parameters);
                self.core.nesting -= 1;
                out
            }
            None => Err(CallError::Busy(format!("handler '{handler}' cannot be read from here"))),
        }
    }
    /// Writes a handler of another element, or a global one.
    pub fn write_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        match &mut self.router {
            Some(_) if self.core.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.nesting += 1;
                let out = r.write(self.core, element, handler, value);
                self.core.nesting -= 1;
                out
            }
            None => Err(CallError::Busy(format!("handler '{handler}' cannot be written from here"))),
        }
    }
    /// Whether such a handler can be read and written.
    pub fn has_handler(&self, element: Option<u32>, handler: &str) -> (bool, bool) {
        self.router.as_ref().map_or((false, false), |r| r.has(self.core, element, handler))
    }
    /// Carries out a write call of the configuration. From the data path it is carried out when this element has
    /// returned and before its packets go on; what fails is shown as a message.
    pub fn call(&mut self, call: &HandlerRef) {
        self.touched |= 1 << 63;
        self.open = 0;
        if self.slot.is_some() {
            self.unslot();
        }
        self.core.deferred.push((self.place.me, call.clone()));
    }
}
