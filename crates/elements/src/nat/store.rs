// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of flows, in which packets of both directions are looked up. The number of flows is bounded: in
//! a full table, the flow that would time out first is evicted to make room.

mod ageing;
pub mod copies;
mod list;
mod make;
mod moving;
mod places;

use super::flow::{Flow, RewriterKind, Timeouts, bit, class};
use super::handle::UNBOUNDED;
use super::pattern::Cursor;
use super::seq::Shift;
use super::spec::Spec;
use super::tuple::Tuple;
use castanet_element::kernel::Table;
use castanet_element::prelude::*;
use castanet_tables::flow::{self, FlowIndex};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// The maximum number of flows if no capacity is given. It bounds their memory to 400 MB.
const CEILING: usize = 1 << 22;

/// A heap entry of a flow: the time of the flow's last packet when the entry was made, and the index and
/// generation of the flow.
type Due = Reverse<(i64, u32, u32)>;

/// The flows of one rewriter in one timeout class. A packet updates the time only in its flow, so heap entries
/// become outdated. Before the top entry is used, outdated entries at the top are updated and move down.
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
    /// Number of existing flows that this input made.
    pub flows: usize,
}

/// One rewriter's part of the store.
pub struct Space {
    kind: RewriterKind,
    /// The name and class of the rewriter element.
    label: String,
    classes: [Class; class::COUNT],
    /// The inputs of the rewriter.
    pub inputs: Vec<Input>,
    /// Number of flows that the last hot swap left in this store, because the new store could not take them.
    left: usize,
    /// Number of keys that the rewriter's flows have in the table, at most two for each flow.
    pub entries: usize,
    /// The table of the kernel with copies of flows, if the kernel also rewrites packets.
    copies: Option<Arc<dyn Table>>,
}

/// The flows of one rewriter, or of several that share a capacity.
pub struct Store {
    /// The flows. The index of a flow is called its place.
    flows: Vec<Flow>,
    free: Vec<u32>,
    index: FlowIndex,
    seed: [u64; 2],
    secret: Secret,
    spaces: Vec<Space>,
    /// The maximum number of flows.
    pub capacity: u32,
    /// The shifts of sequence numbers, by the index of the flow. Only a few flows have shifts.
    shifts: HashMap<u32, [Shift; 2]>,
    /// The number of flows that have been removed so far.
    removals: u64,
    /// Searches that found no free port. The array is a set-associative cache, indexed by the hash of the
    /// [`Wish`]. The next packet with the same wish continues the search. A search that tried all ports is not
    /// repeated until a flow is removed. A full set discards its oldest search. The next packet with the wish of
    /// that search starts a new search. So the cost of a packet is bounded in all cases.
    searches: Box<[[Option<Search>; 4]; SEARCHES]>,
    /// The number of ports that searches have tried so far.
    pub probes: u64,
}

/// The number of sets in the cache of searches, a power of two.
const SEARCHES: usize = 64;

/// A search that found no free port.
#[derive(Clone, Copy)]
struct Search {
    wish: Wish,
    cursor: Cursor,
    /// The value of `Store::removals` at the time of the search.
    removals: u64,
}

/// What a search looks for: a free port of this pattern, for a flow with these parts of the key. Other parts of the
/// key do not influence which ports are free.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wish {
    pattern: usize,
    key: (u16, u8, Tuple),
}

/// The description of a new flow.
pub struct New {
    /// The number of the rewriter in the store.
    pub space: u16,
    /// The number of the rewriter's input whose specification applies.
    pub input: u16,
    /// IP protocol.
    pub proto: u8,
    /// The tuple of the packet that makes the flow, by which this packet was looked up.
    pub from: Tuple,
    /// The timeout class that the flow starts in.
    pub class: u8,
    /// The value of the reply annotation.
    pub anno: u8,
    /// The current time, in nanoseconds.
    pub now: i64,
}

/// The result for a packet of an unknown flow.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// A flow was made, with this index.
    Flow(u32),
    /// No flow was made. The packet leaves by this output, unchanged.
    Pass(u16),
    /// No flow was made; the packet is dropped.
    Drop(Reason),
}

impl Store {
    /// Makes an empty store.
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
    /// Adds a rewriter and returns its number. Its inputs drop everything at first.
    pub fn join(
        &mut self,
        kind: RewriterKind,
        timeouts: Timeouts,
        inputs: usize,
        label: &str,
    ) -> Option<u16> {
        let n = u16::try_from(self.spaces.len()).ok()?;
        let input = || Input { spec: Spec::Drop, flows: 0 };
        let of = |(timeout, guarantee): (i64, i64)| Class { timeout, guarantee, ..Class::default() };
        self.spaces.push(Space {
            kind,
            label: label.to_string(),
            classes: timeouts.0.map(of),
            inputs: (0..inputs).map(|_| input()).collect(),
            left: 0,
            entries: 0,
            copies: None,
        });
        Some(n)
    }
    /// Returns a rewriter's part of the store.
    pub fn space(&self, space: u16) -> Option<&Space> {
        self.spaces.get(usize::from(space))
    }
    /// Returns an input of a rewriter.
    pub fn input(&mut self, space: u16, input: usize) -> Option<&mut Input> {
        self.spaces.get_mut(usize::from(space))?.inputs.get_mut(input)
    }
    /// Sets the specification of an input.
    pub fn set_spec(&mut self, space: u16, input: usize, spec: Spec) {
        // Searches identify a pattern by its memory address, and a new pattern may get the address of a freed
        // one.
        self.forget_searches();
        if let Some(input) = self.input(space, input) {
            input.spec = spec;
        }
    }
    /// Discards the state of all searches for free ports, so that they start anew.
    fn forget_searches(&mut self) {
        self.searches.fill([None; 4]);
    }
    /// The number of flows of all rewriters.
    pub fn count(&self) -> usize {
        self.flows.len().saturating_sub(self.free.len())
    }
    fn limit(&self) -> usize {
        if self.capacity == UNBOUNDED { CEILING } else { self.capacity as usize }
    }
    /// Returns the tag (hash) of a key.
    #[inline(always)]
    pub fn tag(&self, space: u16, proto: u8, t: Tuple) -> u32 {
        let rest = u64::from(t.ports) | u64::from(proto) << 32 | u64::from(space) << 40;
        flow::hash([t.addrs, rest], self.seed)
    }
    /// The number of cache lines that the lookup of an unknown key reads.
    pub fn reach(&self, tag: u32) -> usize {
        self.index.reach(tag)
    }
    /// Whether an entry of the table belongs to a key.
    #[inline(always)]
    pub fn is(&self, value: u32, space: u16, proto: u8, t: Tuple) -> bool {
        let reply = value & 1 == 1;
        self.flows.get((value >> 1) as usize).is_some_and(|f| {
            f.tuples[usize::from(reply)] == t && f.space == space && f.proto == proto && f.has(reply)
        })
    }
    /// Guesses the table entry that belongs to a tag. [`Store::is`] checks whether the guess is right.
    #[inline(always)]
    pub fn guess(&self, tag: u32) -> Option<u32> {
        self.index.guess(tag)
    }
    /// Finds the table entry of a key: twice the index of the flow, plus 1 for replies. If the flow has expired, it is
    /// removed and not returned.
    #[inline]
    pub fn find(&mut self, tag: u32, space: u16, proto: u8, t: Tuple, now: i64) -> Option<u32> {
        let value = self.index.find(tag, |v| self.is(v, space, proto, t))?;
        if self.is_expired(value >> 1, now) {
            self.remove(value >> 1);
            return None;
        }
        Some(value)
    }
    /// As [`Store::find`], but computes the tag.
    pub fn look_up(&mut self, space: u16, proto: u8, t: Tuple, now: i64) -> Option<u32> {
        self.find(self.tag(space, proto, t), space, proto, t, now)
    }
    #[inline(always)]
    fn class_of(&self, f: &Flow) -> Option<&Class> {
        self.spaces.get(usize::from(f.space))?.classes.get(usize::from(f.class))
    }
    /// Whether a flow has expired: both its timeout and its guarantee are over.
    #[inline]
    pub fn is_expired(&self, place: u32, now: i64) -> bool {
        let Some(f) = self.flow(place) else { return true };
        self.is_over(f, f.last, now) && (f.copied == 0 || self.is_over(f, self.last_use(f, now), now))
    }
    /// Whether the timeout and the guarantee of a flow are over if it had its last packet at the time `last`.
    #[inline(always)]
    fn is_over(&self, f: &Flow, last: i64, now: i64) -> bool {
        now.saturating_sub(last) >= self.lifetime(f)
    }
    /// How long a flow lives without packets, in nanoseconds.
    #[inline(always)]
    fn lifetime(&self, f: &Flow) -> i64 {
        // A flow whose class is not known has expired.
        self.class_of(f).map_or(i64::MIN, |c| c.timeout.max(c.guarantee))
    }
    /// Returns the flow with an index.
    #[inline(always)]
    pub fn flow(&self, place: u32) -> Option<&Flow> {
        self.flows.get(place as usize)
    }
    /// Returns the flow with an index, mutably.
    #[inline(always)]
    pub fn flow_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.flows.get_mut(place as usize)
    }

    /// Sets the capacity. Surplus flows are evicted immediately, except those whose guarantee is not over.
    pub fn set_capacity(&mut self, capacity: u32, now: i64) {
        self.capacity = capacity;
        while self.count() > self.limit() && self.evict(now, i64::MAX) {}
    }

    /// Returns how the sequence numbers of a flow are shifted, for forward packets and for replies.
    pub fn shifts(&self, place: u32) -> Option<&[Shift; 2]> {
        self.shifts.get(&place)
    }
    /// As [`Store::shifts`], but mutable, because a packet may cause old shifts to be discarded.
    pub fn shifts_mut(&mut self, place: u32) -> Option<&mut [Shift; 2]> {
        self.shifts.get_mut(&place)
    }
    /// Returns the shifts of one direction of a flow, so that the caller can add a shift. Marks the flow as shifted.
    pub fn shift(&mut self, place: u32, reply: bool) -> Option<&mut Shift> {
        self.end_copy(place, false);
        self.end_copy(place, true);
        let f = self.flows.get_mut(place as usize)?;
        f.bits |= bit::SHIFTED;
        self.shifts.entry(place).or_default().get_mut(usize::from(reply))
    }
}
