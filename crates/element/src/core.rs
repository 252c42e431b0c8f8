// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the elements of one worker share, and what connects them.

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

/// What messages and tools say of an element.
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

/// The world outside one worker: other workers, the driver, whoever reads messages.
pub trait Messages: Send + Sync {
    /// Shows one message; it may have several lines and ends without a line end.
    fn message(&self, text: &str);
    /// Shows one message to those who listen to a named channel; by default nobody does.
    fn message_on(&self, _channel: &str, _text: &str) {}
    /// Records that a handler call of a script failed for which no caller gets the error.
    fn call_failed(&self) {}
    /// Asks the driver to stop, so many times.
    fn stop(&self, times: u32);
    /// Wakes the task of an element on another worker.
    fn wake(&self, worker: u32, element: u32);
    /// Has the configuration read again if it takes addresses from a device whose addresses have changed; whether it will be.
    fn device_changed(&self, _device: &str) -> bool {
        false
    }
    /// The router as threads outside its workers see it; none where elements stand alone.
    fn remote(&self) -> Option<Arc<dyn Remote>> {
        None
    }
}

/// Why a handler could not be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// `no 'x' read handler`, `no element named 'x'`: nothing to call.
    Missing(String),
    /// The element is running just now, further up.
    Busy(String),
    /// The handler said no.
    Failed(String),
    /// The handler said no: there is something already where the value would be added.
    Exists(String),
    /// The caller has not the right to call it.
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

/// For handlers that call others.
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

/// The other elements, as far as an element may reach them.
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
    /// Reads a handler; no element: a global one.
    fn read(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError>;
    /// Writes a handler; no element: a global one.
    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError>;
    /// Whether such a handler can be read and written.
    fn has(&self, core: &Core, element: Option<u32>, handler: &str) -> (bool, bool);
}

/// A connection, with the packets that wait to cross it.
#[derive(Debug)]
pub struct Edge {
    /// Packets that wait.
    pub batch: Batch,
    /// Where it leads: the number of a node of the run loop; `u32::MAX` for nowhere.
    pub node: u32,
    /// The input that it leads to; where it leads into a chain, the action to begin with.
    pub port: u32,
    /// The element it comes from.
    pub from: u32,
    /// Whether the run loop knows that packets wait.
    // INVARIANT: while packets move, an edge with packets is pending unless its element has just emitted them.
    pub pending: bool,
    /// Whether it closes a cycle, so that packets crossing it count a hop.
    pub back: bool,
}

/// What the ledger counts of an element besides drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// Packets that entered the router.
    Entered,
    /// Packets that were made of others: copies, fragments, answers.
    Made,
    /// Packets that left the router.
    Left,
    /// Packets that the system dropped before an element could read them. They never entered the router.
    Missed,
}

impl Entry {
    /// Every entry, in the order of its number.
    pub const ALL: [Entry; 4] = [Entry::Entered, Entry::Made, Entry::Left, Entry::Missed];

    /// What a class declares that makes such entries.
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
    /// Time.
    pub clock: Clock,
    /// All notifiers of the router.
    pub notes: Notes,
    /// All elements of the router.
    pub info: Arc<[Info]>,
    /// Names that the configuration defines.
    pub names: Arc<Names>,
    /// The world outside.
    pub outside: Arc<dyn Messages>,
    /// The number of this worker.
    pub worker: u32,
    /// Elements whose tasks are to be scheduled.
    pub wakes: Vec<u32>,
    /// When the run loop last looked at the clock; a few turns of tasks ago at most.
    pub recent: i64,
    /// Timers by element and number.
    pub timers: TimerQueue<(u32, u16)>,
    /// The most packets that the running task may emit or pull in one turn.
    pub limit: usize,
    /// How many turns the running task may take in one call.
    pub turns: usize,
    /// How many turns it took.
    pub taken: usize,
    /// Descriptors that elements wait for.
    pub watches: Watches,
    /// Where the configuration comes from.
    pub home: Origin,
    /// For whom elements act now: the configuration, or the caller of a handler.
    pub origin: Origin,
    /// Calls from the data path that wait until the calling element has returned.
    pub deferred: Vec<(u32, HandlerRef)>,
    /// Packets dropped, by element and reason.
    drops: Vec<u64>,
    /// Packets that began or ended with an element otherwise, by element and [`Entry`].
    entries: Vec<[u64; Entry::ALL.len()]>,
    /// Packets that follow the one on its way through an action.
    pub(crate) behind: Batch,
    pub(crate) scratch: Batch,
    pub(crate) spare: Vec<Batch>,
    /// How often elements may still pull in vain in the pull under way; 0 while none counts.
    pub(crate) tries: u32,
    /// How many handler calls are under way, one within the other.
    pub nesting: u32,
}

impl Default for Edge {
    /// An edge that leads nowhere yet. Most edges of a large router never hold a packet, so it has no room until one comes.
    fn default() -> Self {
        Edge { batch: Batch::empty(), node: 0, port: 0, from: 0, pending: false, back: false }
    }
}

impl Edge {
    /// Whether a packet may cross at once: nothing waits, and no round of a cycle is to be counted.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        !(self.pending | self.back)
    }
}

impl Core {
    /// For a router with these elements.
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
    /// Counts `n` packets that began or ended with an element.
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
    /// Packets that began or ended with an element, by entry, where there were any.
    pub fn entries_of(&self, element: u32) -> impl Iterator<Item = (Entry, u64)> + '_ {
        let row = self.entries.get(element as usize).into_iter().flatten().copied();
        Entry::ALL.into_iter().zip(row).filter(|r| r.1 > 0)
    }
    /// Packets that an element dropped, by reason, where there were any.
    pub fn drops_of(&self, element: u32) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let row = self.drops.iter().skip((element as usize).saturating_mul(Reason::COUNT));
        Reason::ALL.iter().copied().zip(row.copied()).filter(|r| r.1 > 0)
    }
    /// Packets that an element dropped for a reason.
    pub fn drops(&self, element: u32, reason: Reason) -> u64 {
        let i = (element as usize).saturating_mul(Reason::COUNT).saturating_add(reason as usize);
        self.drops.get(i).copied().unwrap_or(0)
    }
    /// Packets dropped, by element and reason, where there were any.
    pub fn all_drops(&self) -> impl Iterator<Item = (u32, Reason, u64)> + '_ {
        self.drops.iter().enumerate().filter(|d| *d.1 > 0).filter_map(|(i, &n)| {
            let reason = Reason::ALL.get(i % Reason::COUNT)?;
            Some((u32::try_from(i / Reason::COUNT).ok()?, *reason, n))
        })
    }
    /// The packets that an action put behind the one it had ([`Verdict::Several`](crate::Verdict::Several)).
    pub fn behind(&mut self) -> &mut Batch {
        &mut self.behind
    }
    /// Drops what an element that panicked has left half done, and tells how many packets that were.
    pub fn abandon(&mut self) -> usize {
        let n = self.behind.len() + self.scratch.len();
        self.behind.clear();
        self.scratch.clear();
        n
    }
    /// Turns a notifier on, and wakes who listens.
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
    /// What follows for a source whose signal says that there is no room. A notifier that is on in vain, as a puller that was late
    /// leaves it, is turned off, so that the source may sleep on it.
    #[cold]
    #[inline(never)]
    pub fn without_room(&mut self, signal: &Signal) -> Turn {
        for note in signal.notes() {
            if self.notes.is_full(note) {
                self.notes.clear(note);
                // Other sources may have seen the notifier off meanwhile, so they are woken.
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
