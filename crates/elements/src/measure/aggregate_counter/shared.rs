// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the workers of an AggregateCounter share.
//!
//! While each packet only adds to the count of its aggregate, each worker counts in a table of its own. All workers
//! count in the main table when the decision about a packet may depend on all packets before it. This is so when there
//! is a limit, when the element is frozen or inactive, when it has a second input, or when the tables are nearly full.

use super::counts::{Counts, MOST};
use super::limits::Limits;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Workers count in their own tables only while each table has room for this many further aggregates.
const ROOM: usize = 1024;

/// The counts, and what decides whether a packet is counted.
pub struct State {
    /// The main table. It has all counts when the state is accessed with [`Shared::main`].
    pub counts: Counts,
    /// Whether no new aggregates are counted.
    pub frozen: bool,
    /// Whether packets are counted.
    pub active: bool,
    /// A text that is written after the first line of each file of counts.
    pub banner: String,
    /// Limits on the number of aggregates.
    pub aggregates: Limits,
    /// Limits on the total count.
    pub total: Limits,
    /// Whether more than [`MOST`] aggregates have come. The message about this is printed only the first time.
    pub full: bool,
    /// Whether the element has a second input.
    pub two_inputs: bool,
}

impl State {
    /// Whether the decision about a packet does not depend on the packets before it.
    fn decides_apart(&self) -> bool {
        self.active && !self.frozen && !self.two_inputs && self.aggregates.is_empty() && self.total.is_empty()
    }
}

/// The state of an element on several workers.
///
/// Locks are taken in this order: the state, then the tables of workers.
pub struct Shared {
    state: Mutex<State>,
    /// The tables of the workers; none if there is one worker.
    tables: Vec<CachePadded<Mutex<Counts>>>,
    /// Whether workers count in their own tables. It becomes false before the counts in these tables are moved to the
    /// main table. Therefore, a worker that finds true while it holds the lock of its own table may count in that
    /// table.
    apart: AtomicBool,
    /// How many aggregates each worker's own table may have.
    room: AtomicUsize,
}

impl Shared {
    /// Creates the state for a number of workers.
    pub fn new(state: State, workers: usize) -> Shared {
        let tables = if workers > 1 { workers } else { 0 };
        let shared = Shared {
            state: Mutex::new(state),
            tables: (0..tables).map(|_| CachePadded::default()).collect(),
            apart: AtomicBool::new(false),
            room: AtomicUsize::new(0),
        };
        shared.part(&shared.state.lock());
        shared
    }

    /// Locks the table of a worker. Returns none if the worker has to count in the main table.
    pub fn own(&self, worker: usize) -> Option<MutexGuard<'_, Counts>> {
        let table = self.tables.get(worker)?.lock();
        self.apart.load(Ordering::Acquire).then_some(table)
    }
    /// Returns how many aggregates a worker's own table may have.
    pub fn room(&self) -> usize {
        self.room.load(Ordering::Relaxed)
    }

    /// Calls `f` with the state, after all counts have been moved to the main table.
    pub fn main<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        // The flag changes only while the state is locked. All workers read it, so it is written only if it changes.
        if self.apart.load(Ordering::Relaxed) {
            self.apart.store(false, Ordering::Release);
            for table in &self.tables {
                state.counts.take_from(&mut table.lock());
            }
        }
        let result = f(&mut state);
        self.part(&state);
        result
    }

    /// Lets the workers count in their own tables, if that is possible.
    fn part(&self, state: &State) {
        if self.tables.is_empty() || !state.decides_apart() {
            return;
        }
        let room = MOST.saturating_sub(state.counts.len()) / self.tables.len();
        self.room.store(room, Ordering::Relaxed);
        self.apart.store(room >= ROOM, Ordering::Release);
    }
}
