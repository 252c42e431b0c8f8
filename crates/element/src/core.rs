// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the elements of one worker share, and the interfaces and edges that connect them.

use crate::class::Turn;
use crate::clock::Clock;
use crate::handler::HandlerError;
use crate::notify::{Note, Notes, Signal};
use crate::remote::Remote;
use crate::watch::Watches;
use castanet_packet::{Batch, Packet};
use castanet_spec::{Books, HandlerRef, Names, Origin, Reason};
use castanet_tables::timer_queue::TimerQueue;
use std::sync::Arc;

/// The description of an element for messages and tools.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// Full name.
    pub name: String,
    /// The name of its class as the configuration writes it.
    pub class: String,
    /// Its configuration string.
    pub config: String,
    /// `FILE:LINE` of its declaration; empty if unknown.
    pub place: String,
    /// The scope prefix of its name.
    pub scope: String,
}

/// The connection from one worker to other workers, the driver, and readers of messages.
pub trait Messages: Send + Sync {
    /// Shows one message; it may have several lines and ends without a line end.
    fn message(&self, text: &str);
    /// Shows one message to the listeners of a named channel. By default, a channel has no listeners.
    fn message_on(&self, _channel: &str, _text: &str) {}
    /// Records that a handler call of a script failed. For errors that no caller receives.
    fn call_failed(&self) {}
    /// Sends `times` stop requests to the driver.
    fn stop(&self, times: u32);
    /// Wakes the task of an element on another worker.
    fn wake(&self, worker: u32, element: u32);
    /// Reports that the addresses of `_device` have changed. If the configuration uses these addresses, it is
    /// read again. Returns whether that will happen.
    fn device_changed(&self, _device: &str) -> bool {
        false
    }
    /// Returns the router for threads outside its workers; none where elements stand alone.
    fn remote(&self) -> Option<Arc<dyn Remote>> {
        None
    }
}

/// Why a handler could not be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// There is nothing to call: `no 'x' read handler`, `no element named 'x'`.
    Missing(String),
    /// The element is running already, further up the call stack.
    Busy(String),
    /// The handler refused the call.
    Failed(String),
    /// The handler refused the call, because something already exists where the value would be added.
    Exists(String),
    /// The caller has no right to call the handler.
    Denied(String),
}

impl From<HandlerError> for CallError {
    fn from(e: HandlerError) -> Self {
        match e {
            HandlerError::Exists(text) => CallError::Exists(text),
            HandlerError::Value(text) | HandlerError::Failed(text) => CallError::Failed(text),
        }
    }
}

/// For handlers that call other handlers.
impl From<CallError> for HandlerError {
    fn from(e: CallError) -> Self {
        match e {
            CallError::Exists(text) => HandlerError::Exists(text),
            e => HandlerError::Failed(e.to_string()),
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::Missing(t)
            | CallError::Busy(t)
            | CallError::Failed(t)
            | CallError::Exists(t)
            | CallError::Denied(t) => f.write_str(t),
        }
    }
}

/// Access to the other elements, as far as an element may reach them.
pub trait Router {
    /// Pulls at most `max` packets through an input of `me`.
    fn pull(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch);
    /// Pulls one packet through an input of `me`.
    fn pull_one(&mut self, core: &mut Core, me: u32, input: usize) -> Option<Packet> {
        let mut batch = core.spare.pop().unwrap_or_default();
        self.pull(core, me, input, 1, &mut batch);
        let p = batch.pop();
        core.spare.push(batch);
        p
    }
    /// Reads a handler of an element, or a global handler if `element` is none.
    fn read(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError>;
    /// Writes a handler of an element, or a global handler if `element` is none.
    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError>;
    /// Returns whether a handler can be read, and whether it can be written.
    fn has(&self, core: &Core, element: Option<u32>, handler: &str) -> (bool, bool);
}

/// A connection, with the packets that wait on it.
#[derive(Debug)]
pub struct Edge {
    /// Packets that wait.
    pub batch: Batch,
    /// The node of the run loop that the edge leads to, by number; `u32::MAX` if it leads nowhere.
    pub node: u32,
    /// The input that the edge leads to. If the edge leads into a chain: the number of the action to begin with.
    pub port: u32,
    /// The element that the edge comes from.
    pub from: u32,
    /// Whether the run loop has noted that packets wait on this edge.
    // INVARIANT: while packets move, an edge with packets is pending unless its element has just emitted them.
    pub pending: bool,
    /// Whether the edge closes a cycle, so that packets crossing it count a hop.
    pub back: bool,
}

/// A kind of packet count, besides drops, that the ledger keeps for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// Packets that entered the router.
    Entered,
    /// Packets that were made from others: copies, fragments, answers.
    Made,
    /// Packets that left the router.
    Left,
    /// Packets that the kernel dropped before an element could read them. They never entered the router.
    Missed,
}

impl Entry {
    /// Every entry, in the order of its number.
    pub const ALL: [Entry; 4] = [Entry::Entered, Entry::Made, Entry::Left, Entry::Missed];

    /// Returns the flag that a class must declare to make entries of this kind.
    pub const fn books(self) -> Books {
        match self {
            Entry::Entered | Entry::Missed => Books::ENTERS,
            Entry::Made => Books::MAKES,
            Entry::Left => Books::LEAVES,
        }
    }
}

/// What all elements of one worker share.
pub struct Core {
    /// The clock of this worker.
    pub clock: Clock,
    /// All notifiers of the router.
    pub notes: Notes,
    /// The descriptions of all elements of the router.
    pub info: Arc<[Info]>,
    /// Names that the configuration defines.
    pub names: Arc<Names>,
    /// The connection to other workers, the driver, and readers of messages.
    pub outside: Arc<dyn Messages>,
    /// The number of this worker.
    pub worker: u32,
    /// Elements whose tasks are to be scheduled.
    pub wakes: Vec<u32>,
    /// The time at which the run loop last read the clock, at most a few turns ago.
    pub recent: i64,
    /// Timers by element and number.
    pub timers: TimerQueue<(u32, u16)>,
    /// The most packets that the running task may emit or pull in one turn.
    pub limit: usize,
    /// How many turns the running task may take in one call.
    pub turns: usize,
    /// How many turns the running task took in this call.
    pub taken: usize,
    /// Whether an element has pulled a packet since the run loop last cleared this flag.
    pub pulled: bool,
    /// Descriptors that elements wait for.
    pub watches: Watches,
    /// The origin of the configuration.
    pub home: Origin,
    /// The origin whose rights elements have now: during a handler call, that of the caller; at other times, that
    /// of the configuration.
    pub origin: Origin,
    /// Handler calls from the data path that wait until the calling element has returned.
    pub deferred: Vec<(u32, HandlerRef)>,
    /// Packets dropped, by element and reason.
    drops: Vec<u64>,
    /// Packets that entered, were made, left or were missed, by element and [`Entry`].
    entries: Vec<[u64; Entry::ALL.len()]>,
    /// Packets that an action has put behind the packet that it is processing.
    pub(crate) behind: Batch,
    pub(crate) scratch: Batch,
    pub(crate) spare: Vec<Batch>,
    /// How many unusable packets elements may still pull during the current pull; 0 outside of
    /// [`Cx::with_tries`](crate::Cx::with_tries), where unusable packets are not counted.
    pub(crate) tries: u32,
    /// The nesting depth of the handler calls in progress.
    pub nesting: u32,
}

impl Default for Edge {
    /// An edge that leads nowhere yet. Most edges of a large router never hold a packet, so the batch has no
    /// memory until a packet comes.
    fn default() -> Self {
        Edge { batch: Batch::empty(), node: 0, port: 0, from: 0, pending: false, back: false }
    }
}

impl Edge {
    /// Whether a packet may cross at once: no packets wait, and no hop has to be counted.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        !(self.pending | self.back)
    }
}

impl Core {
    /// Makes the common state of a worker, for a router with these elements.
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
            origin: home,
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
            limit: 1,
            turns: 1,
            taken: 1,
            pulled: false,
            watches: Watches::default(),
            deferred: Vec::new(),
            behind: Batch::empty(),
            scratch: Batch::new(),
            spare: Vec::new(),
            tries: 0,
            nesting: 0,
        }
    }
    /// Counts `n` packets that an element dropped.
    #[inline]
    pub fn count_drops(&mut self, element: u32, reason: Reason, n: u64) {
        let i = (element as usize).wrapping_mul(Reason::COUNT).wrapping_add(reason as usize);
        if let Some(d) = self.drops.get_mut(i) {
            *d = d.wrapping_add(n);
        }
    }
    /// Adds `n` packets to a ledger entry of an element.
    #[inline]
    pub fn book(&mut self, element: u32, entry: Entry, n: u64) {
        if let Some(e) = self.entries.get_mut(element as usize).and_then(|e| e.get_mut(entry as usize)) {
            *e = e.wrapping_add(n);
        }
    }
    /// Sets all counts of the ledger to 0: another router has taken them over.
    pub fn clear_ledger(&mut self) {
        self.drops.fill(0);
        self.entries.fill(Default::default());
    }
    /// Returns the ledger entries of an element that are above 0.
    pub fn entries_of(&self, element: u32) -> impl Iterator<Item = (Entry, u64)> + '_ {
        let row = self.entries.get(element as usize).into_iter().flatten().copied();
        Entry::ALL.into_iter().zip(row).filter(|r| r.1 > 0)
    }
    /// Returns how many packets an element dropped for each reason, if any.
    pub fn drops_of(&self, element: u32) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let row = self.drops.iter().skip((element as usize).saturating_mul(Reason::COUNT));
        Reason::ALL.iter().copied().zip(row.copied()).filter(|r| r.1 > 0)
    }
    /// Packets that an element dropped for a reason.
    pub fn drops(&self, element: u32, reason: Reason) -> u64 {
        let i = (element as usize).saturating_mul(Reason::COUNT).saturating_add(reason as usize);
        self.drops.get(i).copied().unwrap_or(0)
    }
    /// Returns how many packets each element dropped for each reason, if any.
    pub fn all_drops(&self) -> impl Iterator<Item = (u32, Reason, u64)> + '_ {
        self.drops.iter().enumerate().filter(|d| *d.1 > 0).filter_map(|(i, &n)| {
            let reason = Reason::ALL.get(i % Reason::COUNT)?;
            Some((u32::try_from(i / Reason::COUNT).ok()?, *reason, n))
        })
    }
    /// The packets that an action has put behind the packet that it processed
    /// ([`Verdict::Several`](crate::Verdict::Several)).
    pub fn behind(&mut self) -> &mut Batch {
        &mut self.behind
    }
    /// Drops the packets that an element left unfinished when it panicked, and returns how many there were.
    pub fn abandon(&mut self) -> usize {
        let n = self.behind.len() + self.scratch.len();
        self.behind.clear();
        self.scratch.clear();
        n
    }
    /// Turns a notifier on and wakes its listeners.
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
    /// Returns the next turn of a source whose signal reports no free space. A notifier may be on although
    /// its queue is full: a puller may turn it on only after sources have filled the queue again. Such a
    /// notifier is turned off, so that the source can sleep on it.
    #[cold]
    #[inline(never)]
    pub fn without_room(&mut self, signal: &Signal) -> Turn {
        for note in signal.notes() {
            if self.notes.is_full(note) {
                self.notes.clear(note);
                // The queue has free space again. Other sources may have seen the notifier off and gone to
                // sleep, so they are woken.
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
    /// Where an element is declared: `FILE:LINE`, or empty.
    pub fn place(&self, element: u32) -> &str {
        self.info.get(element as usize).map_or("", |i| &i.place)
    }
    /// How messages name an element: `name :: Class`.
    pub fn declaration(&self, element: u32) -> String {
        self.info.get(element as usize).map_or(String::new(), |i| format!("{} :: {}", i.name, i.class))
    }
}
