// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router: its workers, run together, and looked at when they have stopped.

use crate::handlers::DROP_REASONS;
use crate::ledger::{self, Account, Ledger, held_by};
use crate::merge::merge;
use crate::shared::Shared;
use crate::swap;
use crate::worker::Worker;
use castanet_element::{CallError, Router as _};
use castanet_spec::{Reason, Workers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Stack of a worker's thread: pulls recurse, one frame an element.
pub(crate) const STACK: usize = 256 << 20;

/// A thread that runs a worker, and the one of the next router after it: pools of packets belong to threads.
struct Hand<'scope> {
    work: Sender<Worker>,
    done: Receiver<Worker>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Hand<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, number: u32) -> std::io::Result<Hand<'scope>> {
        let ((work, todo), (ready, done)) = (channel::<Worker>(), channel());
        let run = move || {
            for mut worker in todo {
                worker.run();
                if ready.send(worker).is_err() {
                    break;
                }
            }
        };
        let name = format!("worker {number}");
        let thread = std::thread::Builder::new().name(name).stack_size(STACK).spawn_scoped(scope, run)?;
        Ok(Hand { work, done, thread })
    }
}

/// A router that was built. It is run at most once.
pub struct Router {
    // The workers go first: what elements are made of may live in what is shared.
    pub(crate) workers: Vec<Worker>,
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Router {
    fn drop(&mut self) {
        // Listeners end with their elements, and must be forgotten before the classes may be gone.
        self.workers.clear();
        self.shared.running.forget_the_gone();
    }
}

impl Router {
    pub(crate) fn new(shared: Arc<Shared>) -> Router {
        Router { workers: Vec::new(), shared }
    }

    /// What its workers have in common; it stays usable while the router runs.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs until the router is stopped, each worker on a thread of its own. After hot swaps this is the router that ran last.
    ///
    /// # Errors
    /// When a thread cannot be started; the router has not run then.
    pub fn run(&mut self) -> std::io::Result<()> {
        let running = self.shared.running.clone();
        let result = std::thread::scope(|scope| {
            let (mut crew, mut cleaner) = (Vec::new(), swap::Cleaner::new(scope));
            for w in &self.workers {
                match Hand::start(scope, w.core.worker) {
                    Ok(h) => crew.push(h),
                    Err(e) => {
                        self.shared.end();
                        return Err(e);
                    }
                }
            }
            loop {
                self.round(&mut crew);
                // Who wants to swap when the router has stopped is told so when the desk closes.
                if self.shared.is_stopped() {
                    break;
                }
                let Some(candidate) = running.desk.candidate() else { break };
                swap::commit(self, *candidate, &running, &mut cleaner);
                running.desk.free();
            }
            cleaner.finish();
            // A scope does not wait for what threads do at their very end, such as giving up their pools.
            for Hand { work, done, thread } in crew {
                drop((work, done));
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            Ok(())
        });
        running.desk.close();
        // A class that does not count what it should is found by any test that runs it.
        // Packets that an element had when it panicked are beyond counting.
        if cfg!(debug_assertions) && result.is_ok() && running.panics.load(Ordering::Relaxed) == 0 {
            self.ledger().check();
        }
        result
    }

    /// Has the crew run the workers until these return.
    fn round(&mut self, crew: &mut Vec<Hand<'_>>) {
        for (hand, worker) in crew.iter().zip(self.workers.drain(..)) {
            // It takes work as long as it lives, and its end is seen below.
            let _ = hand.work.send(worker);
        }
        for i in 0..crew.len() {
            match crew.get(i).map(|h| h.done.recv()) {
                Some(Ok(worker)) => self.workers.push(worker),
                _ => {
                    self.shared.end();
                    if let Err(panic) = crew.swap_remove(i).thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }

    /// Moves to its ledger what another router has counted, which does not run again. Packets that the other one still has are
    /// booked by [`Router::settle_ledger`].
    pub(crate) fn inherit_ledger(&mut self, other: &mut Router) {
        for e in 0..other.shared.graph.len() as u32 {
            let cores = other.workers.iter().map(|w| &w.core);
            let twin = other.shared.twin(e, &self.shared);
            let worker = twin.and_then(|m| self.shared.workers_of(m).first().copied());
            if let (Some(m), Some(w)) = (twin, worker.and_then(|w| self.workers.get_mut(w))) {
                for core in cores {
                    core.entries_of(e).for_each(|(entry, n)| w.core.book(m, entry, n));
                    core.drops_of(e).for_each(|(reason, n)| w.core.count_drops(m, reason, n));
                }
                continue;
            }
            let account = Account::of(&other.shared, e, cores, |_, _| 0);
            self.shared.running.former.add(account.end(0));
        }
        other.workers.iter_mut().for_each(|w| w.core.clear_ledger());
    }

    /// Books what a router counted after another one took its place, while it was cleaned up, and the packets that it still has:
    /// they end with it.
    pub(crate) fn settle_ledger(&self) {
        for e in 0..self.shared.graph.len() as u32 {
            let waiting: u64 = self.workers.iter().map(|w| w.nodes.waiting_of(e)).sum();
            let lost = waiting + held_by(&self.shared, e, |w, e| self.held(w, e));
            let account = Account::of(&self.shared, e, self.workers.iter().map(|w| &w.core), |_, _| 0);
            self.shared.running.former.add(account.end(lost));
        }
    }

    fn held(&self, worker: usize, element: u32) -> u64 {
        self.workers.get(worker).map_or(0, |w| w.nodes.held(element))
    }

    /// The ledger: where packets came from and what became of them, also at elements that a hot swap took away.
    pub fn ledger(&self) -> Ledger {
        let cores = self.workers.iter().map(|w| &w.core);
        let mut ledger = Ledger::new(&self.shared, cores, |w, e| self.held(w, e), self.waiting());
        ledger.accounts.extend(self.shared.running.former.accounts());
        ledger
    }

    /// Cleans all elements up, in order, and returns what went wrong: declaration and reason.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        self.cleanup_of(|_| true)
    }

    /// Cleans some elements up.
    pub(crate) fn cleanup_of(&mut self, which: impl Fn(u32) -> bool) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        for e in (0..self.shared.graph.len() as u32).filter(|&e| which(e)) {
            for w in &mut self.workers {
                let text = match w.nodes.with(&mut w.core, e, |e, cx| e.cleanup(cx)) {
                    Some(Ok(Err(text))) => text,
                    Some(Err(panicked)) => panicked.to_string(),
                    Some(Ok(Ok(()))) | None => continue,
                };
                errors.push((self.shared.graph.declaration(e as usize), text));
            }
        }
        errors
    }

    /// Reads a handler while the router does not run.
    ///
    /// # Errors
    /// When there is no such handler, or it says no.
    pub fn read(
        &mut self,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        let Some(e) = element else {
            if handler == DROP_REASONS {
                let drops = self.workers.iter().flat_map(|w| w.core.all_drops());
                return Ok(ledger::table(&self.shared, drops.collect()));
            }
            let Some(w) = self.workers.first_mut() else { return Ok(String::new()) };
            return w.nodes.read(&mut w.core, None, handler, parameters);
        };
        let mut values = Vec::new();
        for w in self.workers.iter_mut().filter(|w| w.nodes.node_of(e).is_some()) {
            values.push(w.nodes.read_here(&mut w.core, e, handler, parameters)?);
        }
        if values.is_empty() {
            return Err(CallError::Missing(format!(
                "no '{}' read handler",
                self.shared.handler_name(element, handler)
            )));
        }
        Ok(merge(&self.shared, e, handler, values))
    }

    /// Writes a handler while the router does not run.
    ///
    /// # Errors
    /// When there is no such handler, or it says no.
    pub fn write(&mut self, element: Option<u32>, handler: &str, value: &str) -> Result<(), CallError> {
        let Some(e) = element else {
            let Some(w) = self.workers.first_mut() else { return Ok(()) };
            return w.nodes.write(&mut w.core, None, handler, value);
        };
        let share = self.shared.spec(e).is_some_and(|s| s.workers == Workers::Share);
        for w in self.workers.iter_mut().filter(|w| w.nodes.node_of(e).is_some()) {
            w.nodes.write_here(&mut w.core, e, handler, value)?;
            if share {
                break;
            }
        }
        Ok(())
    }

    /// Packets dropped, by element and reason, over all workers.
    pub fn drops(&self) -> BTreeMap<(u32, Reason), u64> {
        let mut out = BTreeMap::new();
        for (e, r, n) in self.workers.iter().flat_map(|w| w.core.all_drops()) {
            *out.entry((e, r)).or_insert(0) += n;
        }
        out
    }

    /// Packets that wait between elements; none when every task has returned.
    pub fn waiting(&self) -> usize {
        self.workers.iter().map(|w| w.nodes.waiting()).sum()
    }

    /// The element of that name, as handler calls number it.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.shared.find(name)
    }
}
