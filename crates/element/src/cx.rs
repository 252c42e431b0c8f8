// SPDX-License-Identifier: MIT OR Apache-2.0
//! The context that elements work with. This file holds its methods for time, notifiers, timers, descriptors and
//! messages. The files in `cx/` hold those for outputs, inputs, and handlers of other elements.

mod calls;
mod emit;
mod pull;

use crate::class::Turn;
use crate::notify::{Note, Signal};
use crate::router::{Info, Router};
use crate::run_loop::{Core, Outputs};
use crate::watch::{Interest, Watch};
use castanet_spec::{ArgCx, Names};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The context of an element while it runs.
pub struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) router: Option<&'a mut dyn Router>,
    pub(crate) out: Outputs<'a>,
}

impl Cx<'_> {
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
    /// Returns the time at which the run loop last read the clock, in nanoseconds since 1970. This costs nothing, but
    /// the time may be a few milliseconds old. Simulated time is exact.
    #[inline]
    pub fn recent(&mut self) -> i64 {
        if self.core.clock.is_simulated() { self.core.clock.peek() } else { self.core.recent }
    }
    /// Returns the time in nanoseconds since 1970, without advancing simulated time.
    #[inline]
    pub fn peek(&mut self) -> i64 {
        self.core.clock.peek()
    }
    /// Whether time is simulated.
    #[inline]
    pub fn is_simulated(&self) -> bool {
        self.core.clock.is_simulated()
    }
    /// Blocks the worker for `time` nanoseconds. Under simulated time, moves the clock forward by `time` and does not
    /// block.
    pub fn block(&mut self, time: i64) {
        let clock = &mut self.core.clock;
        let end = clock.peek().saturating_add(time);
        clock.jump(end);
        if !clock.is_simulated() {
            std::thread::sleep(clock.until(end));
        }
    }
    /// When timer `id` of this element expires, in nanoseconds since 1970. None if the timer is not set.
    pub fn timer(&self, id: u16) -> Option<i64> {
        self.core.timers.time((self.out.range.me, id))
    }
    /// The descriptions of all elements of the router, in the order of their numbers.
    pub fn elements(&self) -> &[Info] {
        &self.core.info
    }
    /// The description of this element.
    pub fn info(&self) -> Option<&Info> {
        self.core.info.get(self.out.range.me as usize)
    }
    /// The names that the configuration defines: addresses, ports, annotations, elements.
    pub fn names(&self) -> &Names {
        &self.core.names
    }
    /// Returns the maximum number of packets that a task may emit or pull in this turn.
    #[inline]
    pub fn limit(&self) -> usize {
        self.core.budget.limit
    }
    /// Returns the number of turns that this call of the task may stand for, at most [`Cx::limit`]. It is above 1 only
    /// if the router has no other task that could run between these turns. A class without an argument BURST moves one
    /// packet a turn, so it can move a whole batch in such a call.
    #[inline]
    pub fn turns(&self) -> usize {
        self.core.budget.turns
    }
    /// Returns the number of plain turns ([`Element::plain_turns`](crate::Element::plain_turns)) that this call of the
    /// task stands for, at most [`Cx::limit`]. The task must send the packets of all these turns, as one batch.
    #[inline]
    pub fn quantum(&self) -> usize {
        self.core.budget.quantum
    }
    /// Returns the maximum number of packets that a queue may record as its length, for its high-water mark. A push may
    /// stand for several turns, between which a task has pulled packets.
    #[inline]
    pub fn peak(&self) -> usize {
        self.core.budget.peak
    }
    /// Reports the number of turns that this call of the task stands for. This is the number of calls that the same
    /// work would take if each call were one turn. Without a report, the run loop counts one turn. The run loop checks
    /// timers after a fixed number of turns, so all turns must be counted.
    #[inline]
    pub fn took_turns(&mut self, n: usize) {
        self.core.budget.taken = n;
    }
    /// Calls `f` with the context for parsing handler values.
    pub fn with_args<R>(&self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.out.range.me as usize).map_or("", Info::scope);
        f(&ArgCx { scope, names: &self.core.names, origin: self.core.caller.origin })
    }

    /// Runs `f` with the rights of the configuration, even if a client's handler call is in progress. Use this only for
    /// actions that the configuration itself specifies.
    pub fn as_configuration<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let caller = std::mem::replace(&mut self.core.caller.origin, self.core.home);
        let out = f(self);
        self.core.caller.origin = caller;
        out
    }

    /// Turns a notifier of this element on.
    #[inline]
    pub fn set_note(&mut self, note: Note) {
        self.core.set_note(note);
    }
    /// Whether a notifier of this element is on already. If it is, [`Cx::set_note`] would change nothing.
    #[inline]
    pub fn is_set(&self, note: Note) -> bool {
        self.core.notes.seems_on(note)
    }
    /// Turns a notifier of this element off. Another worker may have added packets or freed space in the meantime. So
    /// the caller must check once more afterwards, and call [`Cx::set_note`] if there are packets or free space.
    #[inline]
    pub fn clear_note(&mut self, note: Note) {
        self.core.notes.clear(note);
    }
    /// Whether a signal is on.
    #[inline]
    pub fn is_on(&self, signal: &Signal) -> bool {
        signal.is_on(&self.core.notes)
    }
    /// Returns how many of `want` packets a source may send now. If `signal` reports no free space downstream, returns
    /// an error: the [`Turn`] that the source's task must return. Exception: in the middle of a burst (`begun`), the
    /// source may continue although the signal is off, and may then overfill a queue. The source never overfills a
    /// queue shared by several workers if this queue is the only one that the source fills, and no other source fills
    /// this queue.
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
    /// Sets timer `id` of this element to expire at time `at`, in nanoseconds since 1970. This replaces an earlier
    /// setting.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.out.range.me, id), at);
    }
    /// Cancels timer `id` of this element.
    pub fn clear_timer(&mut self, id: u16) {
        self.core.timers.cancel((self.out.range.me, id));
    }
    /// Registers a descriptor, without waiting for it. Call [`Cx::wait`] to wait.
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
    /// Reports that the addresses of `device` have changed. Returns true if the configuration uses these addresses. In
    /// that case, the router reads the configuration again.
    pub fn device_changed(&self, device: &str) -> bool {
        self.core.outside.device_changed(device)
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.core.outside.message(text);
    }
    /// Records that a handler call failed in a script that the router itself started, so no caller receives the error.
    pub fn call_failed(&self) {
        self.core.outside.call_failed();
    }
    /// Shows a message only to the listeners of a named channel.
    pub fn message_on(&self, channel: &str, text: &str) {
        self.core.outside.message_on(channel, text);
    }
}
