// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where flows are kept: found by either direction, bounded, the least useful one making room.

mod ageing;
mod list;
mod make;
mod moving;

use super::flow::{Flow, Kind, Timeouts, bit, class};
use super::handle::UNBOUNDED;
use super::pattern::Cursor;
use super::seq::Shift;
use super::spec::{Outs, Spec};
use super::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_tables::flow::{self, FlowIndex};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The most flows where no capacity is given: bounded memory all the same, 400 MB at most.
const CEILING: usize = 1 << 22;

/// A flow in the order of ageing: its last packet then, its place, its generation.
type Due = Reverse<(i64, u32, u32)>;

/// Flows of one rewriter with equal timeouts. The heap lags behind: a packet only notes its time in the flow, and
/// an entry that comes to the top is moved to its place then. So the order at the top is exact.
#[derive(Default)]
struct Class {
    timeout: i64,
    guarantee: i64,
    heap: BinaryHeap<Due>,
    flows: usize,
}

/// An input of a rewriter.
pub struct Input {
    /// The rule for packets of unknown flows.
    pub spec: Spec,
    /// Flows that came from it.
    pub flows: usize,
    /// Packets that should have made a flow and could not.
    pub failures: u64,
}

/// One rewriter's part of the store.
pub struct Space {
    kind: Kind,
    /// Its element's name and class.
    label: String,
    classes: [Class; class::COUNT],
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// Flows that were left here when another router took the others over.
    left: usize,
    /// Directions that are looked for.
    pub entries: usize,
}

/// The flows of one rewriter, or of those with a common capacity.
pub struct Store {
    flows: Vec<Flow>,
    free: Vec<u32>,
    index: FlowIndex,
    seed: [u64; 2],
    secret: Secret,
    spaces: Vec<Space>,
    /// The most flows.
    pub capacity: u32,
    /// Sequence numbers of the few flows where they are shifted.
    shifts: HashMap<u32, [Shift; 2]>,
    /// Counts flows that went.
    removals: u64,
    /// Searches for a free port that found none, each in a set that its wish determines: the next packet goes on with it, and
    /// one that tried everything is not repeated before a flow is gone. Where a set is full the oldest search is lost and
    /// starts anew; what a packet costs is bounded either way.
    searches: Box<[[Option<Search>; 4]; SEARCHES]>,
    /// Counts how many ports were tried.
    pub probes: u64,
}

/// Sets of searches, a power of two.
const SEARCHES: usize = 64;

/// A search that found no free port.
#[derive(Clone, Copy)]
struct Search {
    wish: Wish,
    cursor: Cursor,
    /// How many flows had gone until then.
    removals: u64,
}

/// A question to a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wish {
    pattern: usize,
    key: (u16, u8, Tuple),
}

/// A new flow.
pub struct New {
    /// The rewriter.
    pub space: u16,
    /// Its input.
    pub input: u16,
    /// IP protocol.
    pub proto: u8,
    /// The tuple of the packet.
    pub from: Tuple,
    /// The class that it starts in.
    pub class: u8,
    /// The reply annotation.
    pub anno: u8,
    /// The time.
    pub now: i64,
}

/// The result for a packet of an unknown flow.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// A flow: its place.
    Flow(u32),
    /// Nothing; it leaves by an output unchanged.
    Pass(u16),
    /// Nothing; it is dropped.
    Drop(Reason),
}

impl Store {
    /// An empty store.
    pub fn new(capacity: u32, mut secret: Secret) -> Store {
        let seed = [secret.next_u64(), secret.next_u64()];
        let room = if capacity == UNBOUNDED { 1024 } else { capacity as usize };
        Store {
            flows: Vec::new(),
            free: Vec::new(),
            index: FlowIndex::with_capacity(room.saturating_mul(2)),
            seed,
            secret,
            spaces: Vec::new(),
            capacity,
            shifts: HashMap::new(),
            removals: 0,
            searches: Box::new([[None; 4]; SEARCHES]),
            probes: 0,
        }
    }
    /// Adds a rewriter, whose inputs drop everything at first.
    pub fn join(&mut self, kind: Kind, timeouts: Timeouts, inputs: usize, label: &str) -> Option<u16> {
        let n = u16::try_from(self.spaces.len()).ok()?;
        let input = || Input { spec: Spec::Drop, flows: 0, failures: 0 };
        let of = |(timeout, guarantee): (i64, i64)| Class { timeout, guarantee, ..Class::default() };
        self.spaces.push(Space {
            kind,
            label: label.to_string(),
            classes: timeouts.0.map(of),
            inputs: (0..inputs).map(|_| input()).collect(),
            left: 0,
            entries: 0,
        });
        Some(n)
    }
    /// A rewriter.
    pub fn space(&self, space: u16) -> Option<&Space> {
        self.spaces.get(usize::from(space))
    }
    /// An input of a rewriter.
    pub fn input(&mut self, space: u16, input: usize) -> Option<&mut Input> {
        self.spaces.get_mut(usize::from(space))?.inputs.get_mut(input)
    }
    /// Says what an input does with packets of unknown flows from now on.
    pub fn set_spec(&mut self, space: u16, input: usize, spec: Spec) {
        // Patterns are known by their places there, and another may come to lie in the place of one that goes.
        self.forget_searches();
        if let Some(input) = self.input(space, input) {
            input.spec = spec;
        }
    }
    /// Starts all searches for free ports anew.
    fn forget_searches(&mut self) {
        self.searches.fill([None; 4]);
    }
    /// How many flows there are, of all rewriters.
    pub fn count(&self) -> usize {
        self.flows.len().saturating_sub(self.free.len())
    }
    fn limit(&self) -> usize {
        if self.capacity == UNBOUNDED { CEILING } else { self.capacity as usize }
    }
    /// The tag of a key.
    #[inline(always)]
    pub fn tag(&self, space: u16, proto: u8, t: Tuple) -> u32 {
        let rest = u64::from(t.ports) | u64::from(proto) << 32 | u64::from(space) << 40;
        flow::hash([t.addrs, rest], self.seed)
    }
    /// How many cache lines a search for an unknown key reads.
    pub fn reach(&self, tag: u32) -> usize {
        self.index.reach(tag)
    }
    /// Whether an entry is that of a key.
    #[inline(always)]
    pub fn is(&self, value: u32, space: u16, proto: u8, t: Tuple) -> bool {
        let reply = value & 1 == 1;
        self.flows.get((value >> 1) as usize).is_some_and(|f| {
            f.tuples[usize::from(reply)] == t && f.space == space && f.proto == proto && f.has(reply)
        })
    }
    /// A guess which entry has a tag.
    #[inline(always)]
    pub fn guess(&self, tag: u32) -> Option<u32> {
        self.index.guess(tag)
    }
    /// The entry of a key: twice the flow's place, and 1 for a reply. A flow that is too old is not found.
    #[inline]
    pub fn find(&mut self, tag: u32, space: u16, proto: u8, t: Tuple, now: i64) -> Option<u32> {
        let value = self.index.find(tag, |v| self.is(v, space, proto, t))?;
        if self.is_expired(value >> 1, now) {
            self.remove(value >> 1);
            return None;
        }
        Some(value)
    }
    /// The same without a tag at hand.
    pub fn look_up(&mut self, space: u16, proto: u8, t: Tuple, now: i64) -> Option<u32> {
        self.find(self.tag(space, proto, t), space, proto, t, now)
    }
    #[inline(always)]
    fn class_of(&self, f: &Flow) -> Option<&Class> {
        self.spaces.get(usize::from(f.space))?.classes.get(usize::from(f.class))
    }
    /// Whether a flow is too old.
    #[inline]
    pub fn is_expired(&self, place: u32, now: i64) -> bool {
        let Some(f) = self.flow(place) else { return true };
        self.class_of(f).is_none_or(|c| now.saturating_sub(f.last) >= c.timeout.max(c.guarantee))
    }
    /// A flow.
    #[inline(always)]
    pub fn flow(&self, place: u32) -> Option<&Flow> {
        self.flows.get(place as usize)
    }
    /// A flow, to note something.
    #[inline(always)]
    pub fn flow_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.flows.get_mut(place as usize)
    }

    /// Enters a flow whose packets become `to`. It makes room if it must and can.
    pub fn insert(&mut self, new: &New, to: Tuple, outs: Outs) -> Result<u32, Reason> {
        let takes_part = self.expiry_of_newcomer(new);
        while self.count() >= self.limit() {
            if !self.evict(new.now, takes_part) {
                return Err(Reason::TableFull);
            }
        }
        let Some(kind) = self.space(new.space).map(|s| s.kind) else { return Err(Reason::NoMapping) };
        let reply = to.reversed();
        let (from_tag, reply_tag) =
            (self.tag(new.space, new.proto, new.from), self.tag(new.space, new.proto, reply));
        // Two flows that are answered alike: the later one gets the answers.
        if let Some(v) = self.index.find(reply_tag, |v| self.is(v, new.space, new.proto, reply)) {
            self.detach(v, reply_tag);
        }
        let change = new.from.change(to);
        let mut f = Flow {
            tuples: [new.from, reply],
            last: new.now,
            ip_change: change.addrs,
            transport_change: kind.transport_change(change),
            generation: 0,
            outs,
            space: new.space,
            input: new.input,
            proto: new.proto,
            class: new.class,
            // Where both directions look the same, all packets but the first count as replies.
            bits: if new.from == reply { bit::REPLY } else { bit::ALIVE },
            anno: new.anno,
        };
        let place = match self.free.pop() {
            Some(p) => p,
            None => {
                let p = u32::try_from(self.flows.len()).ok().filter(|p| *p < u32::MAX >> 1);
                let p = p.ok_or(Reason::TableFull)?;
                self.flows.push(Flow { bits: 0, ..f.clone() });
                p
            }
        };
        let entries = f.bits.count_ones() as usize;
        let Some(old) = self.flows.get_mut(place as usize) else { return Err(Reason::TableFull) };
        f.generation = old.generation;
        let (now, generation, forward) = (f.last, f.generation, f.has(false));
        *old = f;
        if forward {
            self.index.insert(from_tag, place << 1);
        }
        self.index.insert(reply_tag, place << 1 | 1);
        if let Some(s) = self.spaces.get_mut(usize::from(new.space)) {
            s.entries += entries;
            if let Some(i) = s.inputs.get_mut(usize::from(new.input)) {
                i.flows += 1;
            }
            if let Some(c) = s.classes.get_mut(usize::from(new.class)) {
                c.flows += 1;
                c.heap.push(Reverse((now, place, generation)));
            }
        }
        self.trim(new.space, new.class);
        Ok(place)
    }

    /// Takes one direction of a flow out of the table; a flow without any goes.
    fn detach(&mut self, value: u32, tag: u32) {
        let (place, reply) = (value >> 1, value & 1 == 1);
        self.index.remove(tag, value);
        let Some(f) = self.flows.get_mut(place as usize) else { return };
        f.bits &= !(bit::FORWARD << u8::from(reply));
        let (space, alive) = (usize::from(f.space), f.bits & bit::ALIVE != 0);
        if let Some(s) = self.spaces.get_mut(space) {
            s.entries = s.entries.saturating_sub(1);
        }
        if !alive {
            self.release(place);
        }
    }

    /// Forgets a flow.
    pub fn remove(&mut self, place: u32) {
        let Some(f) = self.flow(place) else { return };
        let (space, proto, tuples) = (f.space, f.proto, f.tuples);
        let present = [f.has(false), f.has(true)];
        for (i, t) in tuples.into_iter().enumerate() {
            if present[i] {
                self.detach(place << 1 | i as u32, self.tag(space, proto, t));
            }
        }
    }

    /// Gives the place of a flow back that is not found any more.
    fn release(&mut self, place: u32) {
        let Some(f) = self.flows.get_mut(place as usize) else { return };
        f.generation = f.generation.wrapping_add(1);
        let (space, input, class, shifted) = (f.space, f.input, f.class, f.bits & bit::SHIFTED != 0);
        f.bits = 0;
        if let Some(s) = self.spaces.get_mut(usize::from(space)) {
            if let Some(i) = s.inputs.get_mut(usize::from(input)) {
                i.flows = i.flows.saturating_sub(1);
            }
            if let Some(c) = s.classes.get_mut(usize::from(class)) {
                c.flows = c.flows.saturating_sub(1);
            }
        }
        if shifted {
            self.shifts.remove(&place);
        }
        self.free.push(place);
        self.removals = self.removals.wrapping_add(1);
    }

    /// Forgets all flows of a rewriter.
    pub fn clear(&mut self, space: u16) {
        for place in self.places(space) {
            self.remove(place);
        }
        if self.count() == 0 {
            self.index.clear();
        }
    }
    /// The places of all flows of a rewriter.
    pub fn places(&self, space: u16) -> Vec<u32> {
        let all = (0u32..).zip(&self.flows);
        all.filter(|(_, f)| f.space == space && f.bits & bit::ALIVE != 0).map(|(p, _)| p).collect()
    }
    /// Forgets all flows that came from an input of a rewriter.
    pub fn clear_input(&mut self, space: u16, input: u16) {
        for place in self.places(space) {
            if self.flow(place).is_some_and(|f| f.input == input) {
                self.remove(place);
            }
        }
    }
    /// Sets the capacity; as many flows go at once as may.
    pub fn set_capacity(&mut self, capacity: u32, now: i64) {
        self.capacity = capacity;
        while self.count() > self.limit() && self.evict(now, i64::MAX) {}
    }

    /// How the sequence numbers of a flow are shifted, forward and back.
    pub fn shifts(&self, place: u32) -> Option<&[Shift; 2]> {
        self.shifts.get(&place)
    }
    /// The same, for one of the flow's packets, which may be far behind old shifts.
    pub fn shifts_mut(&mut self, place: u32) -> Option<&mut [Shift; 2]> {
        self.shifts.get_mut(&place)
    }
    /// The same, to be changed; the flow is marked.
    pub fn shift(&mut self, place: u32, reply: bool) -> Option<&mut Shift> {
        let f = self.flows.get_mut(place as usize)?;
        f.bits |= bit::SHIFTED;
        self.shifts.entry(place).or_default().get_mut(usize::from(reply))
    }
}
