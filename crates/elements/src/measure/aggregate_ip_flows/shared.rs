// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the workers of an AggregateIPFlows share: flows, fragments, and the TRACEINFO file.

use super::flows::{Arrival, Flow, Key, MOST_FLOWS, Seen, Table, Timeouts};
use super::fragments::Fragments;
use super::trace_info::TraceInfo;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

/// The number of tables if there are several workers. Workers rarely need the same table at the same time.
const TABLES: usize = 64;

/// The state of an element.
///
/// A lock of a table or of the fragments may be held while `info` is locked. No other two locks are held together.
pub struct Shared {
    timeouts: Timeouts,
    /// The interval at which ended flows are removed, in nanoseconds.
    interval: i64,
    /// The flows, divided among tables by a hash of their keys.
    tables: Vec<CachePadded<Mutex<Table>>>,
    hash: RandomState,
    /// The number of the latest flow.
    last: AtomicU32,
    fragments: Option<Mutex<Fragments>>,
    /// The number of fragments that wait for their first fragment.
    waiting: AtomicUsize,
    /// The time at which ended flows are to be removed next, in nanoseconds.
    next_reap: AtomicI64,
    info: Mutex<Option<TraceInfo>>,
}

impl Shared {
    /// Creates an empty state for a number of workers.
    pub fn new(
        timeouts: Timeouts,
        interval: i64,
        fragments: Option<Fragments>,
        info: Option<TraceInfo>,
        workers: usize,
    ) -> Shared {
        let tables = if workers > 1 { TABLES } else { 1 };
        let table = || CachePadded::new(Mutex::new(Table::new(MOST_FLOWS / tables)));
        Shared {
            timeouts,
            interval: interval.max(1_000_000_000),
            tables: std::iter::repeat_with(table).take(tables).collect(),
            hash: RandomState::new(),
            last: AtomicU32::new(0),
            fragments: fragments.map(Mutex::new),
            waiting: AtomicUsize::new(0),
            next_reap: AtomicI64::new(i64::MIN),
            info: Mutex::new(info),
        }
    }

    /// Returns the table of a flow; none only if there are no tables.
    #[inline]
    fn table(&self, key: &Key) -> Option<&Mutex<Table>> {
        let table = match self.tables.len() {
            1 => self.tables.first(),
            n => self.tables.get(self.hash.hash_one(key) as usize % n),
        };
        table.map(|t| &**t)
    }

    /// Returns the number of a new flow: 1, 2, ... After the largest number comes 1 again.
    fn number(&self) -> u32 {
        loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if number > 0 {
                return number;
            }
        }
    }

    /// Returns the flow of a packet, if the flow is stored and has not ended.
    pub fn find(&self, key: Key, up: bool, now: i64) -> Option<Seen> {
        self.table(&key)?.lock().find(key, up, now, &self.timeouts)
    }
    /// Counts a packet in its flow, and creates the flow if necessary.
    pub fn packet(&self, packet: Arrival) -> Option<Seen> {
        let mut table = self.table(&packet.key)?.lock();
        Some(table.packet(packet, &self.timeouts, || self.number(), |flow| self.write(flow)))
    }
    /// Returns the number of flows that are stored.
    pub fn flows(&self) -> usize {
        self.tables.iter().map(|t| t.lock().len()).sum()
    }

    /// Removes ended flows if it is time to.
    #[inline]
    pub fn reap_if_due(&self, now: i64) {
        let due = self.next_reap.load(Ordering::Relaxed);
        if now >= due {
            self.reap(now, due);
        }
    }
    /// Removes ended flows, unless another worker is removing them. If `due` is `i64::MIN`, only sets the time of the
    /// first removal.
    #[cold]
    fn reap(&self, now: i64, due: i64) {
        let next = now.saturating_add(self.interval);
        let mine = self.next_reap.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() || due == i64::MIN {
            return;
        }
        let mut over = Vec::new();
        self.tables.iter().for_each(|t| t.lock().reap(now, &self.timeouts, &mut over));
        self.write_sorted(over);
    }
    /// Ends all flows. Numbers begin again with 1.
    pub fn forget_all(&self) {
        let mut all = Vec::new();
        self.tables.iter().for_each(|t| all.extend(t.lock().drain()));
        self.last.store(0, Ordering::Relaxed);
        self.write_sorted(all);
    }

    /// Writes ended flows to the TRACEINFO file, in the order of their numbers.
    fn write_sorted(&self, mut flows: Vec<Flow>) {
        flows.sort_unstable_by_key(|f| f.aggregate);
        flows.iter().for_each(|flow| self.write(flow));
    }
    /// Writes an ended flow to the TRACEINFO file, if there is one.
    fn write(&self, flow: &Flow) {
        if let Some(info) = &mut *self.info.lock() {
            info.flow(flow);
        }
    }
    /// Calls `f` with the TRACEINFO file, which may be absent.
    pub fn with_info<R>(&self, f: impl FnOnce(&mut Option<TraceInfo>) -> R) -> R {
        f(&mut self.info.lock())
    }

    /// Whether fragments belong to flows.
    pub fn has_fragments(&self) -> bool {
        self.fragments.is_some()
    }
    /// Calls `f` with the fragments. Returns none if fragments do not belong to flows.
    pub fn with_fragments<R>(&self, f: impl FnOnce(&mut Fragments) -> R) -> Option<R> {
        let mut fragments = self.fragments.as_ref()?.lock();
        let result = f(&mut fragments);
        self.waiting.store(fragments.held(), Ordering::Relaxed);
        Some(result)
    }
    /// Returns the number of fragments that wait for their first fragment.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes over the flows and fragments of another element (hot swap). May be called several times.
    pub fn take_from(&self, old: &Shared) {
        if std::ptr::eq(self, old) {
            return;
        }
        for from in &old.tables {
            let flows: Vec<Flow> = from.lock().drain().collect();
            for flow in flows {
                if let Some(table) = self.table(&flow.key) {
                    table.lock().insert(flow, |gone| self.write(gone));
                }
            }
        }
        let fragments = old.with_fragments(|f| {
            let mut all = Fragments::new(0);
            all.take_from(f);
            all
        });
        if let Some(mut fragments) = fragments {
            self.with_fragments(|mine| mine.take_from(&mut fragments));
        }
        self.last.store(old.last.load(Ordering::Relaxed), Ordering::Relaxed);
        self.next_reap.store(old.next_reap.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
