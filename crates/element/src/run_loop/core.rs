// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the elements of one worker share.

use super::accounts::Entry;
use crate::class::Turn;
use crate::clock::Clock;
use crate::notify::{Note, Notes, Signal};
use crate::place::Place;
use crate::router::{Info, Messages};
use crate::watch::Watches;
use castanet_kernel::order::Ticket;
use castanet_packet::{Batch, Packet};
use castanet_spec::{HandlerRef, Names, Origin, Reason};
use castanet_tables::timer_queue::TimerQueue;
use std::sync::Arc;

/// The state that all elements of one worker share. Run loops use its methods. Elements use it only through
/// [`Cx`](crate::Cx).
pub struct Core {
    pub(crate) clock: Clock,
    /// The time at which the run loop last read the clock, in nanoseconds since 1970. It is at most a few turns old.
    pub(crate) recent: i64,
    /// The timers that elements have set, by number of the element and number of the timer.
    pub(crate) timers: TimerQueue<(u32, u16)>,
    pub(crate) notes: Notes,
    pub(crate) info: Arc<[Info]>,
    pub(crate) names: Arc<Names>,
    /// The connection to other workers, to the driver, and to the listeners that receive messages.
    pub(crate) outside: Arc<dyn Messages>,
    worker: u32,
    /// The elements whose tasks the run loop must schedule, in the order of their wake-ups.
    pub(crate) wakes: Vec<u32>,
    /// The descriptors that elements watch.
    pub(crate) watches: Watches,
    pub(crate) budget: Budget,
    /// The origin of the configuration. Outside of handler calls, elements have the rights of this origin.
    pub(crate) home: Origin,
    pub(crate) caller: Caller,
    /// Handler calls that an element requested with [`Cx::call`](crate::Cx::call), each with the number of the element.
    /// They run when the element has returned.
    pub(crate) deferred: Vec<(u32, HandlerRef)>,
    /// The number of dropped packets, by element and reason.
    pub(super) drops: Vec<u64>,
    /// The counts of the ledger, by element and [`Entry`]: packets that entered, were made or left, and packets that
    /// the kernel dropped before the element could read them.
    pub(super) entries: Vec<[u64; Entry::ALL.len()]>,
    /// Packets that the running action has put behind its packet ([`Cx::behind`](crate::Cx::behind)).
    pub(crate) behind: Batch,
    /// Packets that continue at inputs of elements to which no edge leads from the running element
    /// ([`Cx::resume`](crate::Cx::resume)): the element, the input, the packet.
    pub(crate) resumed: Vec<(u32, u32, Packet)>,
    /// The tickets of packets that have come up ([`Cx::note_ticket`](crate::Cx::note_ticket)).
    pub(crate) tickets: Vec<Ticket>,
    /// Whether the programs in the kernel must be made again ([`Cx::renew_kernel`](crate::Cx::renew_kernel)).
    pub(crate) stale: bool,
    pub(crate) scratch: Batch,
    pub(crate) spare: Vec<Batch>,
    /// How many unusable packets elements may still pull to answer the current pull. 0 outside of
    /// [`Cx::with_tries`](crate::Cx::with_tries), where there is no limit.
    pub(crate) tries: u32,
}

/// The limits of one call of a task, and what the call has done. One call may do the work of several turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The maximum number of packets that the task may emit or pull in one turn.
    pub limit: usize,
    /// The maximum number of turns whose packets this call of the task may move at once.
    pub turns: usize,
    /// The number of turns that the run loop counts for this call of the task.
    pub taken: usize,
    /// What the pulls in this call found, as flags: [`Budget::NOTHING`], [`Budget::PACKETS`] or both. 0 if there was no
    /// pull.
    pub pulls: u8,
    /// The number of plain turns that this call of the task stands for.
    pub quantum: usize,
    /// The maximum number of packets that the queue which is pushed to may record as its length. It is lower than the
    /// length after the push if the push stands for several turns, between which a task has pulled packets.
    pub peak: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { limit: 1, turns: 1, taken: 1, pulls: 0, quantum: 1, peak: usize::MAX }
    }
}

impl Budget {
    /// Flag of `pulls`: at least one pull found no packet.
    pub const NOTHING: u8 = 1;
    /// Flag of `pulls`: at least one pull found packets.
    pub const PACKETS: u8 = 2;

    /// Records whether a pull found a packet.
    #[inline(always)]
    pub fn pulled(&mut self, found: bool) {
        self.pulls |= Budget::NOTHING << u8::from(found);
    }
}

/// The rights with which elements run, and the nesting depth of handler calls.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The origin whose rights elements have now. During a handler call this is the origin of the caller. At other
    /// times it is the origin of the configuration.
    pub(crate) origin: Origin,
    /// How many handler calls are in progress, one inside the other.
    pub(crate) nesting: u32,
}

impl Core {
    /// Makes the state that the elements of one worker share, for the elements in `info`.
    pub fn new(
        info: Arc<[Info]>,
        names: Arc<Names>,
        notes: Notes,
        outside: Arc<dyn Messages>,
        clock: Clock,
    ) -> Core {
        let home = names.origin();
        Core {
            home,
            caller: Caller { origin: home, nesting: 0 },
            recent: 0,
            clock,
            notes,
            drops: vec![0; info.len().saturating_mul(Reason::COUNT)],
            entries: vec![[0; Entry::ALL.len()]; info.len()],
            info,
            names,
            outside,
            worker: 0,
            wakes: Vec::new(),
            timers: TimerQueue::new(),
            budget: Budget::default(),
            watches: Watches::default(),
            deferred: Vec::new(),
            behind: Batch::empty(),
            resumed: Vec::new(),
            tickets: Vec::new(),
            stale: false,
            scratch: Batch::new(),
            spare: Vec::new(),
            tries: 0,
        }
    }
    /// Sets the number of the worker, which is 0 by default.
    pub fn on_worker(mut self, worker: u32) -> Core {
        self.worker = worker;
        self
    }
    /// Whether elements have called [`Cx::resume`](crate::Cx::resume).
    #[inline]
    pub fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }
    /// Whether elements have called [`Cx::note_ticket`](crate::Cx::note_ticket).
    #[inline]
    pub fn has_tickets(&self) -> bool {
        !self.tickets.is_empty()
    }
    /// Takes the tickets of packets that have come up.
    pub fn take_tickets(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.tickets)
    }
    /// Whether the programs in the kernel must be made again. Asked once for each request.
    #[inline]
    pub fn take_stale(&mut self) -> bool {
        // The run loop asks after each turn, and writes only if there is a request.
        self.stale && std::mem::take(&mut self.stale)
    }
    /// Takes the packets that continue at other elements, each with the element and its input.
    pub fn take_resumed(&mut self) -> Vec<(u32, u32, Packet)> {
        std::mem::take(&mut self.resumed)
    }
    /// The number of the worker.
    #[inline]
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// The clock of this worker.
    #[inline]
    pub fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }
    /// Reads the clock, stores the time as the recent time (`recent`), and returns it.
    #[inline]
    pub fn read_clock(&mut self) -> i64 {
        self.recent = self.clock.now();
        self.recent
    }
    /// The time at which the run loop last read the clock, in nanoseconds since 1970.
    #[inline]
    pub fn recent(&self) -> i64 {
        self.recent
    }
    /// Sets the recent time to `time`, unless it is later already.
    #[inline]
    pub fn advance_recent(&mut self, time: i64) {
        self.recent = self.recent.max(time);
    }
    /// Takes over the clock and the recent time (`recent`) from `old`, the state of a router that this one replaces.
    pub fn continue_clock(&mut self, old: &Core) {
        self.clock = old.clock.clone();
        self.recent = old.recent;
    }
    /// All notifiers of the router.
    #[inline]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
    /// The timers that elements have set, by number of the element and number of the timer.
    #[inline]
    pub fn timers(&mut self) -> &mut TimerQueue<(u32, u16)> {
        &mut self.timers
    }
    /// The descriptors that elements watch.
    #[inline]
    pub fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }
    /// Exchanges the timers and descriptors of this worker with those of a locked element (`timers`, `watches`). Called
    /// before and after the element runs.
    #[inline]
    pub fn exchange(&mut self, timers: &mut TimerQueue<(u32, u16)>, watches: &mut Watches) {
        std::mem::swap(&mut self.timers, timers);
        std::mem::swap(&mut self.watches, watches);
    }

    /// Schedules the task of an element.
    #[inline]
    pub fn schedule(&mut self, element: u32) {
        self.wakes.push(element);
    }
    /// Whether the run loop must schedule any tasks.
    #[inline]
    pub fn has_scheduled(&self) -> bool {
        !self.wakes.is_empty()
    }
    /// Whether the run loop must schedule the task of an element.
    pub fn is_scheduled(&self, element: u32) -> bool {
        self.wakes.contains(&element)
    }
    /// Withdraws the requests to schedule the task of an element. Returns whether there were any.
    pub fn unschedule(&mut self, element: u32) -> bool {
        let before = self.wakes.len();
        self.wakes.retain(|&e| e != element);
        self.wakes.len() < before
    }
    /// Takes the elements whose tasks must be scheduled, in the order of their wake-ups.
    #[inline]
    pub fn take_scheduled(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.wakes.drain(..)
    }
    /// Calls `f` with the descriptors that elements watch, and with a function that schedules the task of an element.
    #[inline]
    pub fn with_watches<R>(&mut self, f: impl FnOnce(&mut Watches, &mut dyn FnMut(u32)) -> R) -> R {
        let Core { watches, wakes, .. } = self;
        f(watches, &mut |e| wakes.push(e))
    }

    /// Begins a call of a task. The call may do the work of up to `turns` turns, each of at most `limit` packets.
    #[inline]
    pub fn begin_task(&mut self, limit: usize, turns: usize) {
        self.budget = Budget { limit, turns, ..Budget::default() };
    }
    /// Begins a call of a task that stands for `turns` plain turns.
    pub fn begin_quantum(&mut self, turns: usize) {
        self.budget = Budget { limit: turns, quantum: turns, ..Budget::default() };
    }
    /// Sets the maximum number of packets that the queue which is pushed to next may record as its length.
    #[inline]
    pub fn set_peak(&mut self, peak: usize) {
        self.budget.peak = peak;
    }
    /// The maximum number of packets that the running element may emit or pull in one turn.
    #[inline(always)]
    pub fn limit(&self) -> usize {
        self.budget.limit
    }
    /// Sets the maximum number of packets that the running element may emit or pull in one turn.
    #[inline]
    pub fn set_limit(&mut self, limit: usize) {
        self.budget.limit = limit;
    }
    /// The number of turns that the run loop counts for the last call of the task.
    #[inline]
    pub fn turns_taken(&self) -> usize {
        self.budget.taken
    }
    /// Whether an element has pulled a packet since [`Core::begin_task`].
    #[inline]
    pub fn has_pulled(&self) -> bool {
        self.budget.pulls & Budget::PACKETS != 0
    }
    /// Whether there was a pull since [`Core::begin_task`], and no pull found a packet.
    #[inline]
    pub fn found_nothing(&self) -> bool {
        self.budget.pulls == Budget::NOTHING
    }

    /// The origin whose rights elements have now.
    #[inline]
    pub fn origin(&self) -> Origin {
        self.caller.origin
    }
    /// Runs `f` with the rights of `origin`.
    pub fn with_origin<R>(&mut self, origin: Origin, f: impl FnOnce(&mut Core) -> R) -> R {
        let before = std::mem::replace(&mut self.caller.origin, origin);
        let out = f(self);
        self.caller.origin = before;
        out
    }
    /// The rights with which elements run now, and the nesting depth of handler calls.
    pub fn caller(&self) -> Caller {
        self.caller
    }
    /// Restores the rights and the nesting depth after a panic. `caller` is what [`Core::caller`] returned before the
    /// panic. None means the rights of the configuration, and no nesting.
    pub fn restore_caller(&mut self, caller: Option<Caller>) {
        self.caller = caller.unwrap_or(Caller { origin: self.home, nesting: 0 });
    }
    /// Whether there are handler calls that wait for the return of the element that requested them.
    #[inline(always)]
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }
    /// Takes the waiting handler calls, each with the number of the element that requested it.
    pub fn take_deferred(&mut self) -> Vec<(u32, HandlerRef)> {
        std::mem::take(&mut self.deferred)
    }
    /// Keeps a handler call that element `from` requests, until the element has returned.
    pub fn defer(&mut self, from: u32, call: HandlerRef) {
        self.deferred.push((from, call));
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.outside.message(text);
    }

    /// The packets that the running action has put behind its packet ([`Verdict::Several`](crate::Verdict::Several)).
    pub fn behind(&mut self) -> &mut Batch {
        &mut self.behind
    }
    /// Drops the packets that an element had not passed on when it panicked. Returns their number.
    pub fn abandon(&mut self) -> usize {
        let n = self.behind.len() + self.scratch.len();
        self.behind.clear();
        self.scratch.clear();
        n
    }
    /// Turns a notifier on, and wakes its listeners if it was off.
    #[inline]
    pub fn set_note(&mut self, note: Note) {
        if !self.notes.seems_on(note) {
            self.wake_listeners(note);
        }
    }
    #[inline(never)]
    fn wake_listeners(&mut self, note: Note) {
        let Core { notes, wakes, outside, worker, .. } = self;
        notes.set(note, |w, e| if w == *worker { wakes.push(e) } else { outside.wake(w, e) });
    }
    /// Called when the signal of a source reports no free space. Returns what the source's task does next. A notifier
    /// may be on although its queue is full: a puller may turn it on late, after sources have filled the queue again.
    /// This function turns such notifiers off, so that the source can sleep.
    #[cold]
    #[inline(never)]
    pub fn without_room(&mut self, signal: &Signal) -> Turn {
        for note in signal.notes() {
            if self.notes.is_full(note) {
                self.notes.clear(note);
                // If the queue has got free space in the meantime, turn the notifier on again. Other sources may have
                // seen it off and gone to sleep, and this wakes them.
                if !self.notes.is_full(note) {
                    self.set_note(note);
                }
            }
        }
        if signal.is_on(&self.notes) { Turn::Again } else { Turn::Sleep }
    }
    /// The name of an element.
    pub fn name(&self, element: u32) -> &str {
        self.info.get(element as usize).map_or("", |i| &i.name)
    }
    /// Where an element is declared.
    pub fn place(&self, element: u32) -> Place {
        self.info.get(element as usize).map(|i| i.place.clone()).unwrap_or_default()
    }
    /// How messages name an element: `name :: Class`.
    pub fn declaration(&self, element: u32) -> String {
        self.info.get(element as usize).map_or(String::new(), |i| format!("{} :: {}", i.name, i.class))
    }
}
