// SPDX-License-Identifier: MIT OR Apache-2.0
//! What elements work with: outputs to emit to, time, notifiers, timers, descriptors, handlers of others.

use crate::class::{Turn, Verdict};
use crate::core::{CallError, Core, Entry, Info, Router};
use crate::notify::{Note, Signal};
use crate::outputs::Outputs;
use crate::watch::{Interest, Watch};
use castanet_packet::{Batch, Packet};
use castanet_spec::{ArgCx, HandlerRef, Names, Reason};
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

/// What an element has at hand while it runs.
pub struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) router: Option<&'a mut dyn Router>,
    pub(crate) out: Outputs<'a>,
}

impl<'a> Cx<'a> {
    /// The number of this element.
    pub fn me(&self) -> u32 {
        self.out.range.me
    }
    /// Its full name.
    pub fn name(&self) -> &str {
        self.core.name(self.out.range.me)
    }
    /// How messages name it: `name :: Class`.
    pub fn declaration(&self) -> String {
        self.core.declaration(self.out.range.me)
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
    /// The time of the last reading under simulated time, which does not advance by it; otherwise the time.
    #[inline]
    pub fn peek(&mut self) -> i64 {
        self.core.clock.peek()
    }
    /// Whether time is simulated.
    #[inline]
    pub fn is_simulated(&self) -> bool {
        self.core.clock.is_simulated()
    }
    /// Stops the worker for so many nanoseconds; simulated time jumps ahead instead.
    pub fn block(&mut self, time: i64) {
        let clock = &mut self.core.clock;
        let end = clock.peek().saturating_add(time);
        clock.jump(end);
        if !clock.is_simulated() {
            std::thread::sleep(clock.until(end));
        }
    }
    /// When timer `id` of this element expires; none if it is not set.
    pub fn timer(&self, id: u16) -> Option<i64> {
        self.core.timers.time((self.out.range.me, id))
    }
    /// All elements of the router, by number.
    pub fn elements(&self) -> &[Info] {
        &self.core.info
    }
    /// This element.
    pub fn info(&self) -> Option<&Info> {
        self.core.info.get(self.out.range.me as usize)
    }
    /// Names that the configuration defines.
    pub fn names(&self) -> &Names {
        &self.core.names
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
    /// Tells how many turns the task took in this call, one unless this is called: as many as it would have taken with
    /// [`Cx::turns`] 1. Timers are due after the same turns, however many a call takes.
    #[inline]
    pub fn took_turns(&mut self, n: usize) {
        self.core.taken = n;
    }
    /// What handler values are read against.
    pub fn with_args<R>(&self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.out.range.me as usize).map_or("", |i| &i.scope);
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
        self.out.index(port).is_some()
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
        if port < self.out.open as usize {
            self.out.fill_slot(port, p);
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
        match self.out.edge(port) {
            Some(e) => e.batch.push(p),
            None => self.drop(p, reason),
        }
    }
    /// Sends all packets of a batch to an output, by exchange when nothing waits there.
    #[inline(always)]
    pub fn forward(&mut self, port: usize, batch: &mut Batch) {
        if self.out.open > 0 && batch.len() == 1 {
            if let Some(p) = batch.pop() {
                self.emit(port, p);
            }
            return;
        }
        match self.out.edge(port) {
            Some(e) => e.batch.append(batch),
            None => self.drop_all(batch, Reason::NoPort),
        }
    }
    /// Drops a packet, counted.
    #[inline]
    pub fn drop(&mut self, p: Packet, reason: Reason) {
        self.core.count_drops(self.out.range.me, reason, 1);
        drop(p);
    }
    /// Counts packets as dropped that the element has not, because they never came to be.
    #[inline]
    pub fn count_drops(&mut self, reason: Reason, n: u64) {
        self.core.count_drops(self.out.range.me, reason, n);
    }
    /// Drops all packets of a batch, counted.
    pub fn drop_all(&mut self, batch: &mut Batch, reason: Reason) {
        self.core.count_drops(self.out.range.me, reason, batch.len() as u64);
        batch.clear();
    }

    /// Counts packets that enter the router by this element. The class declares `books(enters)`.
    #[inline]
    pub fn entered(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Entered, n);
    }
    /// Counts packets that this element makes of others: copies, fragments, answers. The class declares `books(makes)`.
    #[inline]
    pub fn made(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Made, n);
    }
    /// Counts packets that leave the router by this element. The class declares `books(leaves)`.
    #[inline]
    pub fn left(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Left, n);
    }
    /// Counts packets that the system dropped before this element could read them. An element that shows them while it runs counts
    /// them when it is cleaned up, so that the ledger has them when it is gone. The class declares `books(enters)`.
    pub fn missed(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Missed, n);
    }
    /// Sends a copy of a packet to an output; dropped when no buffer is free. The class declares `books(makes)`.
    pub fn emit_copy(&mut self, port: usize, p: &mut Packet) {
        self.made(1);
        match p.share() {
            Some(copy) => self.emit(port, copy),
            None => self.core.count_drops(self.out.range.me, Reason::NoBuffer, 1),
        }
    }

    /// Puts a packet behind the one that an action has; its verdict must be [`Verdict::Several`].
    pub fn behind(&mut self, p: Packet) {
        self.core.behind.push(p);
    }

    /// Puts a packet behind the one that an action has, before the last `n` that were put there.
    pub fn behind_before(&mut self, n: usize, p: Packet) {
        let behind = self.core.behind.as_mut_vec();
        behind.insert(behind.len().saturating_sub(n), p);
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
            r.pull(self.core, self.out.range.me, input, max, into);
        }
    }

    /// Pulls one packet through an input.
    #[inline]
    pub fn pull_one(&mut self, input: usize) -> Option<Packet> {
        self.router.as_mut()?.pull_one(self.core, self.out.range.me, input)
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
    pub fn room(&mut self, signal: &Signal, want: usize, begun: bool) -> Result<usize, Turn> {
        match signal.room(&self.core.notes, want, begun) {
            0 if want > 0 => Err(self.core.without_room(signal)),
            room => Ok(room),
        }
    }
    /// Schedules this element's task.
    pub fn schedule(&mut self) {
        self.core.wakes.push(self.out.range.me);
    }
    /// Sets timer `id` of this element to a time; it replaces an earlier setting.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.out.range.me, id), at);
    }
    /// Takes timer `id` of this element back.
    pub fn clear_timer(&mut self, id: u16) {
        self.core.timers.cancel((self.out.range.me, id));
    }
    /// Watches a descriptor; nothing happens until [`Cx::wait`].
    pub fn watch(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        self.core.watches.add(self.out.range.me, fd, interest)
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
    /// Counts a handler call that failed in a script which runs by itself.
    pub fn call_failed(&self) {
        self.core.outside.call_failed();
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
        self.out.touch(1 << 63);
        self.out.close();
        self.core.deferred.push((self.out.range.me, call.clone()));
    }
}
