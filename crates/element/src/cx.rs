// SPDX-License-Identifier: MIT OR Apache-2.0
//! The context that elements work with: outputs, time, notifiers, timers, descriptors, handlers of other
//! elements.

use crate::class::{Turn, Verdict};
use crate::handler::CallError;
use crate::notify::{Note, Signal};
use crate::router::{Info, Router};
use crate::run_loop::{Core, Entry, Outputs};
use crate::watch::{Interest, Watch};
use castanet_packet::{Batch, Packet};
use castanet_spec::{ArgCx, HandlerRef, Names, Reason};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How deep handler calls may be nested. Without this limit, elements that call each other could exhaust the
/// stack.
const NESTING: u32 = 64;

/// The maximum number of unusable packets that elements may pull, together, to answer one pull.
const TRIES: u32 = 256;

#[cold]
fn nested(handler: &str) -> CallError {
    CallError::Busy(format!("handler '{handler}': more than {NESTING} calls one within the other"))
}

/// The context of an element while it runs.
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
    /// The full name of this element.
    pub fn name(&self) -> &str {
        self.core.name(self.out.range.me)
    }
    /// The element as messages name it: `name :: Class`.
    pub fn declaration(&self) -> String {
        self.core.declaration(self.out.range.me)
    }
    /// The time in nanoseconds since 1970.
    #[inline]
    pub fn now(&mut self) -> i64 {
        self.core.clock.now()
    }
    /// Returns the time at which the run loop last read the clock, which costs nothing. For timeouts and the
    /// like, where a few milliseconds do not matter. Simulated time is exact.
    #[inline]
    pub fn recent(&mut self) -> i64 {
        if self.core.clock.is_simulated() { self.core.clock.peek() } else { self.core.recent }
    }
    /// Returns the time in nanoseconds since 1970. Under simulated time, this is the last reading, and time
    /// does not advance.
    #[inline]
    pub fn peek(&mut self) -> i64 {
        self.core.clock.peek()
    }
    /// Whether time is simulated.
    #[inline]
    pub fn is_simulated(&self) -> bool {
        self.core.clock.is_simulated()
    }
    /// Blocks the worker for `time` nanoseconds. Simulated time jumps ahead instead.
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
    /// The descriptions of all elements of the router, by number.
    pub fn elements(&self) -> &[Info] {
        &self.core.info
    }
    /// The description of this element.
    pub fn info(&self) -> Option<&Info> {
        self.core.info.get(self.out.range.me as usize)
    }
    /// Names that the configuration defines.
    pub fn names(&self) -> &Names {
        &self.core.names
    }
    /// Returns the maximum number of packets that a task may emit or pull in this turn.
    #[inline]
    pub fn limit(&self) -> usize {
        self.core.budget.limit
    }
    /// Returns how many turns the task may take in this call, at most [`Cx::limit`]. It is above 1 only if no
    /// other task could have a turn in between. This lets a class without a BURST move a batch.
    #[inline]
    pub fn turns(&self) -> usize {
        self.core.budget.turns
    }
    /// Reports how many turns the task took in this call: as many as the same work would take if
    /// [`Cx::turns`] were 1. Without a report, one turn is counted. Timers become due after the same number
    /// of turns, however many turns one call takes.
    #[inline]
    pub fn took_turns(&mut self, n: usize) {
        self.core.budget.taken = n;
    }
    /// Calls `f` with the context for parsing handler values.
    pub fn with_args<R>(&self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.out.range.me as usize).map_or("", |i| &i.scope);
        f(&ArgCx { scope, names: &self.core.names, origin: self.core.caller.origin })
    }

    /// Runs `f` with the rights of the configuration, even within a call of a client. For actions that the
    /// configuration itself specifies.
    pub fn as_configuration<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let caller = std::mem::replace(&mut self.core.caller.origin, self.core.home);
        let out = f(self);
        self.core.caller.origin = caller;
        out
    }

    /// Whether an output exists.
    #[inline(always)]
    pub fn has_output(&self, port: usize) -> bool {
        self.out.index(port).is_some()
    }
    /// Returns the verdict that sends a packet to a side output. If the output does not exist, the verdict
    /// drops the packet for `reason`.
    #[inline]
    pub fn out_or(&self, port: u16, reason: Reason) -> Verdict {
        if self.has_output(port as usize) { Verdict::Out(port) } else { Verdict::Drop(reason) }
    }
    /// Sends a packet to an output, or drops it as `no-port` if the output does not exist.
    #[inline(always)]
    pub fn emit(&mut self, port: usize, p: Packet) {
        self.emit_or(port, p, Reason::NoPort);
    }
    /// Sends a packet to an output, or drops it for `reason` if the output does not exist.
    #[inline(always)]
    pub fn emit_or(&mut self, port: usize, p: Packet, reason: Reason) {
        if port < self.out.open as usize {
            self.out.fill_slot(port, p);
            return;
        }
        self.emit_to_edge(port, p, reason);
    }
    /// Sends a packet to the edge of an output, because the slot for a single packet is not open.
    #[inline(never)]
    fn emit_to_edge(&mut self, port: usize, p: Packet, reason: Reason) {
        self.emit_beside(port, p, reason);
    }
    /// Like [`Cx::emit_or`], but always puts the packet on the edge of the output, never in the slot for a single
    /// packet. For an element that emits several packets.
    #[inline(always)]
    pub fn emit_beside(&mut self, port: usize, p: Packet, reason: Reason) {
        match self.out.edge(port) {
            Some(e) => e.batch.push(p),
            None => self.drop(p, reason),
        }
    }
    /// Sends all packets of a batch to an output. If no packets wait at the output, the batch is exchanged
    /// with the empty one there, so that no packet is moved.
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
    /// Drops a packet and counts it.
    #[inline]
    pub fn drop(&mut self, p: Packet, reason: Reason) {
        self.core.count_drops(self.out.range.me, reason, 1);
        drop(p);
    }
    /// Counts `n` drops of packets that never existed, for example because no buffer was free to make them.
    #[inline]
    pub fn count_drops(&mut self, reason: Reason, n: u64) {
        self.core.count_drops(self.out.range.me, reason, n);
    }
    /// Drops all packets of a batch and counts them.
    pub fn drop_all(&mut self, batch: &mut Batch, reason: Reason) {
        self.core.count_drops(self.out.range.me, reason, batch.len() as u64);
        batch.clear();
    }

    /// Counts packets that enter the router through this element. The class declares `books(enters)`.
    #[inline]
    pub fn entered(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Entered, n);
    }
    /// Counts packets that this element makes from others: copies, fragments, answers. The class declares
    /// `books(makes)`.
    #[inline]
    pub fn made(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Made, n);
    }
    /// Counts packets that leave the router through this element. The class declares `books(leaves)`.
    #[inline]
    pub fn left(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Left, n);
    }
    /// Counts packets that the kernel dropped before this element could read them. An element that shows this
    /// number while it runs calls this function only at cleanup, to put the number into the ledger before the
    /// element is gone. The class declares `books(enters)`.
    pub fn missed(&mut self, n: u64) {
        self.core.book(self.out.range.me, Entry::Missed, n);
    }
    /// Sends a copy of a packet to an output. The copy is dropped if no buffer is free. The class declares
    /// `books(makes)`.
    pub fn emit_copy(&mut self, port: usize, p: &mut Packet) {
        self.made(1);
        match p.share() {
            Some(copy) => self.emit(port, copy),
            None => self.core.count_drops(self.out.range.me, Reason::NoBuffer, 1),
        }
    }

    /// Puts a packet behind the packet that the action is processing. The action must return
    /// [`Verdict::Several`].
    pub fn behind(&mut self, p: Packet) {
        self.core.behind.push(p);
    }

    /// Puts a packet behind the packet that the action is processing, before the last `n` packets put there.
    pub fn behind_before(&mut self, n: usize, p: Packet) {
        let behind = self.core.behind.as_mut_vec();
        behind.insert(behind.len().saturating_sub(n), p);
    }

    /// Returns an empty batch. If possible, it is one that [`Cx::return_batch`] got, so that its memory is reused.
    #[inline]
    pub fn spare_batch(&mut self) -> Batch {
        self.core.spare.pop().unwrap_or_default()
    }
    /// Gives a batch back, so that [`Cx::spare_batch`] can return it again. Packets left in it are dropped as
    /// [`Reason::Discarded`].
    #[inline]
    pub fn return_batch(&mut self, mut batch: Batch) {
        if !batch.is_empty() {
            self.drop_all(&mut batch, Reason::Discarded);
        }
        self.core.spare.push(batch);
    }

    /// Runs an action over a batch. Packets that continue stay in the batch; the others leave it. Both keep
    /// their order.
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
    /// The rest of [`Cx::apply`], from the first packet that leaves the batch. The remaining packets are
    /// moved aside and come back one by one.
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
            let before = into.len();
            r.pull(self.core, self.out.range.me, input, max, into);
            self.core.budget.pulled |= into.len() > before;
        }
    }

    /// Pulls one packet through an input.
    #[inline]
    pub fn pull_one(&mut self, input: usize) -> Option<Packet> {
        let p = self.router.as_mut()?.pull_one(self.core, self.out.range.me, input);
        self.core.budget.pulled |= p.is_some();
        p
    }

    /// Runs `f`. Within `f`, [`Cx::try_again`] counts the pulled packets that could not be used. Elements
    /// that pull through each other share one count, so that their loops do not multiply.
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
    /// Whether an element that has pulled an unusable packet may pull another one. If it may not, it gives up
    /// and returns no packet. The notifiers upstream stay on, so the task that pulls gets another turn after
    /// the other tasks.
    #[inline]
    pub fn try_again(&mut self) -> bool {
        // The count stops at 1, because 0 means that nothing is counted.
        let more = self.core.tries > 1;
        self.core.tries -= u32::from(more);
        more
    }
    /// Pulls packets through an input until `take` returns one, a pull returns none, or too many packets were
    /// unusable.
    ///
    /// Every element that may have to pull several packets to return one uses this function. Without its
    /// limit, a source that never sends a usable packet could block the worker.
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
    /// Whether a notifier of this element is on already, so that [`Cx::set_note`] would change nothing.
    #[inline]
    pub fn is_set(&self, note: Note) -> bool {
        self.core.notes.seems_on(note)
    }
    /// Turns a notifier of this element off. Another worker may have added packets or freed space in the
    /// meantime, so the caller must check once more for packets or free space, and call [`Cx::set_note`] if
    /// there are any.
    #[inline]
    pub fn clear_note(&mut self, note: Note) {
        self.core.notes.clear(note);
    }
    /// Whether a signal is on.
    #[inline]
    pub fn is_on(&self, signal: &Signal) -> bool {
        signal.is_on(&self.core.notes)
    }
    /// Returns how many of `want` packets a source may send now. If `signal` reports no free space
    /// downstream, returns the next turn of the source as an error. A burst that has `begun` continues even
    /// if it overfills a queue. But if several workers share the queue, the source feeds no other queue, and no
    /// other source fills the queue, then the source never sends more than the queue takes.
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
    /// Sets timer `id` of this element to a time, replacing an earlier setting.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.out.range.me, id), at);
    }
    /// Cancels timer `id` of this element.
    pub fn clear_timer(&mut self, id: u16) {
        self.core.timers.cancel((self.out.range.me, id));
    }
    /// Registers a descriptor. Waiting starts with [`Cx::wait`].
    pub fn watch(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        self.core.watches.add(self.out.range.me, fd, interest)
    }
    /// Schedules this element's task once, as soon as the descriptor is ready.
    pub fn wait(&mut self, watch: Watch) {
        self.core.watches.wait(watch);
    }
    /// Stops watching a descriptor.
    pub fn unwatch(&mut self, watch: Watch) {
        self.core.watches.remove(watch);
    }
    /// Sends `times` stop requests to the driver.
    pub fn stop(&mut self, times: u32) {
        self.core.outside.stop(times);
    }
    /// Reports that the addresses of `device` have changed. If the configuration uses these addresses, the
    /// router reads it again. Returns whether that will happen.
    pub fn device_changed(&self, device: &str) -> bool {
        self.core.outside.device_changed(device)
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.core.outside.message(text);
    }
    /// Records that a handler call failed in a script that runs on its own.
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
            Some(_) if self.core.caller.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.caller.nesting += 1;
                let out = r.read(self.core, element, handler, parameters);
                self.core.caller.nesting -= 1;
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
            Some(_) if self.core.caller.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.caller.nesting += 1;
                let out = r.write(self.core, element, handler, value);
                self.core.caller.nesting -= 1;
                out
            }
            None => Err(CallError::Busy(format!("handler '{handler}' cannot be written from here"))),
        }
    }
    /// Returns whether a handler can be read, and whether it can be written.
    pub fn has_handler(&self, element: Option<u32>, handler: &str) -> (bool, bool) {
        self.router.as_ref().map_or((false, false), |r| r.has(self.core, element, handler))
    }
    /// Performs a write call that the configuration specifies, after this element has returned and before its
    /// packets continue. A failure is shown as a message.
    pub fn call(&mut self, call: &HandlerRef) {
        self.out.touch(1 << 63);
        self.out.close();
        self.core.deferred.push((self.out.range.me, call.clone()));
    }
}
