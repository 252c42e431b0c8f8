// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: packets that are followed through the router, and what each element did with them.

use crate::observe::log::Log;
use castanet_graph::filter::Filter;
use castanet_packet::Packet;
use castanet_spec::Reason;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Instant;

/// The maximum number of packets that one trace follows.
pub(crate) const PACKETS: u32 = 1000;
/// The maximum number of lines about one packet, with the packets that elements make from it.
const LINES: u32 = 2000;
/// The maximum number of bytes of a packet that a line shows.
const SNAP: usize = 2048;
/// Marks have 24 bits.
const MARKS: u32 = 1 << 24;

/// The place of an event: an element on a worker.
#[derive(Clone)]
pub(crate) struct Site {
    pub element: Arc<str>,
    pub worker: u32,
}

/// An event in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The packet entered the router, and left the element by this output.
    Entered(usize),
    /// An element made the packet from another one.
    Made(usize),
    /// The element passed the packet on by this output.
    Out(usize),
    /// The element holds the packet.
    Held,
    /// The packet left the router.
    Left,
    /// The element ended the packet as intended.
    Ended(Reason),
    /// The packet was dropped.
    Dropped(Reason),
    /// The element did not pass the packet on, and counted neither a drop nor an end.
    Gone,
    /// The trace ends here, because there are too many lines about this packet.
    Cut,
}

impl Event {
    fn is_end(self) -> bool {
        !matches!(self, Event::Entered(_) | Event::Made(_) | Event::Out(_) | Event::Held)
    }
    /// The word and the detail in a line.
    fn words(self) -> (&'static str, String) {
        match self {
            Event::Entered(port) => ("entered", port.to_string()),
            Event::Made(port) => ("made", port.to_string()),
            Event::Out(port) => ("out", port.to_string()),
            Event::Held => ("held", "-".into()),
            Event::Left => ("left", "-".into()),
            Event::Ended(reason) => ("ended", reason.to_string()),
            Event::Dropped(reason) => ("dropped", reason.to_string()),
            Event::Gone => ("gone", "-".into()),
            Event::Cut => ("cut", "-".into()),
        }
    }
}

/// A request of a client to follow packets.
pub(crate) struct Trace {
    /// The name that the client gave to the trace.
    pub id: String,
    filter: Filter,
    /// The number of packets to be chosen.
    wanted: u32,
    chosen: AtomicU32,
    log: Mutex<Log>,
}

/// A packet that is followed.
struct Followed {
    trace: Arc<Trace>,
    /// The number of the packet in its trace, from 1 on.
    number: u32,
    /// 0 for the packet that was chosen, 1 and above for those that elements made from it.
    part: u32,
    family: Arc<Family>,
}

/// The state that a packet shares with those that elements made from it.
#[derive(Default)]
struct Family {
    parts: AtomicU32,
    lines: AtomicU32,
}

/// The followed packets that the running elements of a worker have pulled and not yet passed on, by their marks: a list
/// for each running call.
#[derive(Default)]
pub(crate) struct Pulled(Vec<Vec<u32>>);

impl Pulled {
    /// Begins a call. Returns the number of calls that run already.
    pub(crate) fn begin(&mut self) -> usize {
        self.0.push(Vec::new());
        self.0.len() - 1
    }
    /// Ends a call, and returns what it has pulled and not passed on. `calls` is what `begin` has returned.
    pub(crate) fn end(&mut self, calls: usize) -> Vec<u32> {
        self.0.drain(calls.min(self.0.len())..).flatten().collect()
    }
    /// Adds a packet to what the running call has pulled.
    pub(crate) fn add(&mut self, mark: u32) {
        if let Some(top) = self.0.last_mut() {
            top.push(mark);
        }
    }
    pub(crate) fn remove(&mut self, mark: u32) {
        self.0.iter_mut().for_each(|call| call.retain(|m| *m != mark));
    }
}

#[derive(Default)]
struct State {
    /// The last mark that was given.
    mark: u32,
    traces: Vec<Arc<Trace>>,
    packets: HashMap<u32, Followed>,
}

/// All traces of a router.
#[derive(Default)]
pub(crate) struct Tracer {
    state: Mutex<State>,
    /// By worker.
    pulled: Mutex<HashMap<u32, Pulled>>,
    /// [`FOLLOWING`], [`CHOOSING`], or both.
    activity: AtomicU8,
}

/// Flag of [`Tracer::activity`]: packets are followed now. Without it, no packet has a mark that means anything.
pub(crate) const FOLLOWING: u8 = 1;
/// Flag of [`Tracer::activity`]: packets that enter the router are chosen to be followed.
pub(crate) const CHOOSING: u8 = 2;

impl Trace {
    pub(crate) fn new(id: &str, wanted: u32, filter: Filter) -> Trace {
        Trace { id: id.to_string(), filter, wanted, chosen: AtomicU32::new(0), log: Mutex::new(Log::new()) }
    }
    fn is_choosing(&self) -> bool {
        self.chosen.load(Ordering::Relaxed) < self.wanted
    }
    /// Whether the trace wants to follow a packet.
    #[inline]
    pub(crate) fn wants(&self, p: &Packet) -> bool {
        self.is_choosing() && self.filter.matches(p.data(), p.network())
    }
}

impl State {
    fn new_mark(&mut self) -> u32 {
        loop {
            self.mark = (self.mark + 1) % MARKS;
            if self.mark != 0 && !self.packets.contains_key(&self.mark) {
                return self.mark;
            }
        }
    }
}

impl Tracer {
    /// The activity of the traces, as flags.
    #[inline(always)]
    pub(crate) fn activity(&self) -> u8 {
        self.activity.load(Ordering::Relaxed)
    }
    fn update(&self, state: &State) {
        let following = if state.packets.is_empty() { 0 } else { FOLLOWING };
        let choosing = if state.traces.iter().any(|t| t.is_choosing()) { CHOOSING } else { 0 };
        self.activity.store(following | choosing, Ordering::Relaxed);
    }

    /// Begins a trace.
    pub(crate) fn begin(&self, trace: Trace) {
        let mut state = self.state.lock();
        state.traces.push(Arc::new(trace));
        self.update(&state);
    }
    /// Ends a trace, with all that it has recorded.
    pub(crate) fn end(&self, id: &str) {
        let mut state = self.state.lock();
        self.forget(&mut state, id);
        self.update(&state);
    }
    fn forget(&self, state: &mut State, id: &str) {
        state.traces.retain(|t| t.id != id);
        state.packets.retain(|_, f| f.trace.id != id);
    }
    /// Ends the traces whose clients are considered disconnected at the time `now`. Returns whether there were any.
    pub(crate) fn expire(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let expired = |t: &&Arc<Trace>| t.log.lock().is_abandoned(now);
        let dead: Vec<String> = state.traces.iter().filter(expired).map(|t| t.id.clone()).collect();
        dead.iter().for_each(|id| self.forget(&mut state, id));
        self.update(&state);
        !dead.is_empty()
    }
    /// The number of traces.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().traces.len()
    }
    /// Returns the log of a trace from a line on. None if there is no such trace.
    pub(crate) fn read(
        &self,
        id: &str,
        from: &str,
    ) -> Option<Result<String, castanet_element::HandlerError>> {
        let state = self.state.lock();
        let trace = state.traces.iter().find(|t| t.id == id)?;
        let live = state.packets.values().filter(|f| f.trace.id == id).count();
        let chosen = trace.chosen.load(Ordering::Relaxed);
        let words = format!("{chosen}\t{}\t{live}", trace.wanted);
        let text = trace.log.lock().read(from, &words);
        self.update(&state);
        Some(text)
    }

    /// All traces.
    pub(crate) fn traces(&self) -> Vec<Arc<Trace>> {
        self.state.lock().traces.clone()
    }
    /// Marks a packet that has just entered the router and that `trace` wants.
    pub(crate) fn choose(&self, trace: &Arc<Trace>, p: &mut Packet, site: &Site, port: usize, now: i64) {
        let mut state = self.state.lock();
        // Another worker may have chosen the last packet, or the trace may have ended.
        if !trace.is_choosing() || !state.traces.iter().any(|t| Arc::ptr_eq(t, trace)) {
            return;
        }
        let trace = trace.clone();
        let number = trace.chosen.fetch_add(1, Ordering::Relaxed) + 1;
        let mark = state.new_mark();
        p.set_mark(mark);
        let followed = Followed { trace, number, part: 0, family: Arc::default() };
        followed.record(site, None, Event::Entered(port), Some(p), now);
        state.packets.insert(mark, followed);
        self.update(&state);
    }

    /// Follows a packet that an element has made from the packet with the mark `from`, or a copy of that packet.
    pub(crate) fn add_part(
        &self,
        from: u32,
        p: &mut Packet,
        site: &Site,
        input: Option<usize>,
        port: usize,
        now: i64,
    ) {
        let mut state = self.state.lock();
        p.set_mark(0);
        let Some(parent) = state.packets.get(&from) else { return };
        let part = parent.family.parts.fetch_add(1, Ordering::Relaxed) + 1;
        let followed = Followed {
            trace: parent.trace.clone(),
            number: parent.number,
            part,
            family: parent.family.clone(),
        };
        if followed.record(site, input, Event::Made(port), Some(p), now) {
            let mark = state.new_mark();
            p.set_mark(mark);
            state.packets.insert(mark, followed);
        }
        self.update(&state);
    }

    /// Records an event of the packet with this mark. `p` is the packet, if it still exists. Does nothing if no packet
    /// with this mark is followed.
    pub(crate) fn record(
        &self,
        mark: u32,
        site: &Site,
        input: Option<usize>,
        event: Event,
        p: Option<&Packet>,
        now: i64,
    ) {
        let mut state = self.state.lock();
        let Some(followed) = state.packets.get(&mark) else { return };
        if !followed.record(site, input, event, p, now) || event.is_end() {
            state.packets.remove(&mark);
            self.update(&state);
        }
    }
    /// The followed packets that the running elements of a worker have pulled.
    pub(crate) fn pulled(&self, worker: u32) -> MappedMutexGuard<'_, Pulled> {
        MutexGuard::map(self.pulled.lock(), |all| all.entry(worker).or_default())
    }
    /// Whether a packet with this mark is followed.
    pub(crate) fn knows(&self, mark: u32) -> bool {
        self.state.lock().packets.contains_key(&mark)
    }
}

impl Followed {
    /// Records an event. Returns false if the packet has too many lines: it is not followed any further.
    fn record(&self, site: &Site, input: Option<usize>, event: Event, p: Option<&Packet>, now: i64) -> bool {
        let lines = self.family.lines.fetch_add(1, Ordering::Relaxed);
        if lines > LINES {
            return false;
        }
        let event = if lines == LINES { Event::Cut } else { event };
        let (word, detail) = event.words();
        let input = input.map_or("-".to_string(), |i| i.to_string());
        let mut line = format!(
            "{}\t{}\t{now}\t{}\t{}\t{input}\t{word}\t{detail}",
            self.number, self.part, site.worker, site.element
        );
        if let Some(p) = p.filter(|_| event != Event::Cut) {
            let network = p.network_offset().map_or("-".to_string(), |n| n.to_string());
            let _ = write!(line, "\t{}\t{network}\t{}\t", p.headroom(), p.len());
            write_hex(&mut line, trimmed(&p.annotations()));
            line.push('\t');
            write_hex(&mut line, p.data().get(..SNAP).unwrap_or(p.data()));
        }
        self.trace.log.lock().push(line);
        event != Event::Cut
    }
}

/// Bytes without the zeros at their end.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    bytes.get(..end).unwrap_or_default()
}

/// Appends bytes in hexadecimal, or - for none.
pub(crate) fn write_hex(line: &mut String, bytes: &[u8]) {
    if bytes.is_empty() {
        line.push('-');
    }
    for b in bytes {
        let _ = write!(line, "{b:02x}");
    }
}
