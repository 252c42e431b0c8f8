// SPDX-License-Identifier: MIT OR Apache-2.0
//! All workers of one configuration, before and after they run.

use crate::accounts::{self, held_by};
use crate::global_handlers::GlobalRead;
use crate::handlers::without_parameters;
use crate::ledger::{Account, Ledger};
use crate::pairs::Pairs;
use crate::shared::Shared;
use crate::worker::Worker;
use castanet_element::run_loop::Router as _;
use castanet_element::{CallError, Missing};
use castanet_spec::Reason;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All workers of one configuration, with their elements linked. An assembly runs at most once.
pub(crate) struct Assembly {
    // The workers must be dropped first, because `shared` may keep the code of their elements loaded.
    pub workers: Vec<Worker>,
    pub shared: Arc<Shared>,
}

impl Drop for Assembly {
    fn drop(&mut self) {
        // Elements may own message listeners, to which the session has weak references. To drop such a reference, the
        // code of the element's class is needed. So drop the references before this code can be unloaded.
        self.workers.clear();
        self.shared.session.remove_dead_listeners();
    }
}

impl Assembly {
    pub fn new(shared: Arc<Shared>) -> Assembly {
        Assembly { workers: Vec::new(), shared }
    }

    /// Adds the ledger counts of `other` to the ledger of this router, and resets those of `other` to 0. `other` must
    /// not run again. `pairs` gives, for an element of `other`, the element of this router that gets its counts.
    /// [`Assembly::settle_ledger`] later counts the packets that are still in `other`.
    pub fn inherit_ledger(&mut self, other: &mut Assembly, pairs: &Pairs) {
        for e in 0..other.shared.graph.len() as u32 {
            let cores = other.workers.iter().map(|w| &w.core);
            let twin = pairs.new_of(e);
            let worker = twin.and_then(|m| self.shared.workers_of(m).first().copied());
            if let (Some(m), Some(w)) = (twin, worker.and_then(|w| self.workers.get_mut(w))) {
                for core in cores {
                    core.entries_of(e).for_each(|(entry, n)| w.core.count_entry(m, entry, n));
                    core.drops_of(e).for_each(|(reason, n)| w.core.count_drops(m, reason, n));
                }
                continue;
            }
            let account = Account::of(&other.shared, e, cores, |_, _| 0);
            self.shared.session.former.add(account.end(0));
        }
        other.workers.iter_mut().for_each(|w| w.core.clear_ledger());
    }

    /// Closes the ledger of a router that has been cleaned up and does not run again. Adds the router's counts since
    /// [`Assembly::inherit_ledger`] to the session, and counts the packets that are still in the router as dropped.
    pub fn settle_ledger(&self) {
        for e in 0..self.shared.graph.len() as u32 {
            let waiting: u64 = self.workers.iter().map(|w| w.nodes.waiting_of(e)).sum();
            let lost = waiting + held_by(&self.shared, e, |w, e| self.held(w, e));
            let account = Account::of(&self.shared, e, self.workers.iter().map(|w| &w.core), |_, _| 0);
            self.shared.session.former.add(account.end(lost));
        }
    }

    fn held(&self, worker: usize, element: u32) -> u64 {
        self.workers.get(worker).map_or(0, |w| w.nodes.held(element))
    }

    /// Returns the ledger: where packets came from and what became of them. The ledger includes elements that hot swaps
    /// removed.
    pub fn ledger(&self) -> Ledger {
        let cores = self.workers.iter().map(|w| &w.core);
        let mut ledger = Ledger::new(&self.shared, cores, |w, e| self.held(w, e), self.waiting());
        ledger.accounts.extend(self.shared.session.former.accounts());
        ledger
    }

    /// Cleans up all elements, in order. Returns the declaration (`name :: Class`) of each element that failed, with
    /// the error.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        self.cleanup_of(|_| true)
    }

    /// Cleans up the elements for which `which` returns true. The result is that of [`Assembly::cleanup`].
    pub fn cleanup_of(&mut self, which: impl Fn(u32) -> bool) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        for e in (0..self.shared.graph.len() as u32).filter(|&e| which(e)) {
            for w in &mut self.workers {
                let text = match w.nodes.with(&mut w.core, e, |e, cx| e.cleanup(cx)) {
                    Some(Ok(Err(e))) => e.to_string(),
                    Some(Err(panicked)) => panicked.to_string(),
                    Some(Ok(Ok(()))) | None => continue,
                };
                errors.push((self.shared.graph.declaration(e as usize), text));
            }
        }
        errors
    }

    /// The number of dropped packets, by element and reason, over all workers.
    pub fn drops(&self) -> BTreeMap<(u32, Reason), u64> {
        let mut out = BTreeMap::new();
        for (e, r, n) in self.workers.iter().flat_map(|w| w.core.all_drops()) {
            *out.entry((e, r)).or_insert(0) += n;
        }
        out
    }

    /// Returns the number of packets that wait on edges. It is 0 when no task is in the middle of a turn.
    pub fn waiting(&self) -> usize {
        self.workers.iter().map(|w| w.nodes.waiting()).sum()
    }

    /// Reads a handler while the router does not run.
    ///
    /// # Errors
    /// When there is no such handler, or it fails.
    pub fn read(
        &mut self,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        let Some(e) = element else {
            if let Some(GlobalRead::Drops) = self.shared.global_read(handler) {
                without_parameters(handler, parameters)?;
                let drops = self.workers.iter().flat_map(|w| w.core.all_drops());
                return Ok(accounts::table(&self.shared, drops.collect()));
            }
            match self.shared.global_read(handler) {
                Some(GlobalRead::Ledger) => {
                    return without_parameters(handler, parameters).map(|()| self.ledger().table());
                }
                Some(GlobalRead::Queues) => {
                    without_parameters(handler, parameters)?;
                    let shared = self.shared.clone();
                    return Ok(accounts::queues(&shared, |e, h| self.read(Some(e), h, "").ok()));
                }
                _ => {}
            }
            let Some(w) = self.workers.first_mut() else { return Ok(String::new()) };
            return w.nodes.read(&mut w.core, None, handler, parameters);
        };
        let Assembly { workers, shared } = self;
        shared.read_replicas(e, handler, parameters, |w| match workers.get_mut(w) {
            Some(w) => w.nodes.read_here(&mut w.core, e, handler, parameters),
            None => Err(Missing::Read(shared.handler_name(element, handler)).into()),
        })
    }

    /// Writes a handler while the router does not run.
    ///
    /// # Errors
    /// When there is no such handler, or it fails.
    pub fn write(&mut self, element: Option<u32>, handler: &str, value: &str) -> Result<(), CallError> {
        let Some(e) = element else {
            let Some(w) = self.workers.first_mut() else { return Ok(()) };
            return w.nodes.write(&mut w.core, None, handler, value);
        };
        let Assembly { workers, shared } = self;
        shared.write_replicas(e, handler, |w| match workers.get_mut(w) {
            Some(w) => w.nodes.write_here(&mut w.core, e, handler, value),
            None => Err(Missing::Write(shared.handler_name(element, handler)).into()),
        })
    }
}
