// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router: its workers, run together, and looked at when they have stopped.

use crate::handlers::merge;
use crate::shared::Shared;
use crate::swap;
use crate::worker::Worker;
use castanet_element::{CallError, Router as _};
use castanet_spec::{Reason, Workers};
use std::collections::BTreeMap;
use std::sync::Arc;
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

/// Packets dropped, by the name of the element and the reason.
pub(crate) type Drops = BTreeMap<(String, Reason), u64>;

/// A router that was built. It is run at most once.
pub struct Router {
    // The workers go first: what elements are made of may live in what is shared.
    pub(crate) workers: Vec<Worker>,
    pub(crate) shared: Arc<Shared>,
    /// What elements dropped that a hot swap took away.
    former_drops: Drops,
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
        Router { workers: Vec::new(), shared, former_drops: BTreeMap::new() }
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
            let late = cleaner.finish();
            self.count_former(late);
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

    /// Counts as its own what another router dropped in whose place it steps.
    pub(crate) fn inherit_drops(&mut self, old: &mut Router) {
        self.former_drops.append(&mut old.former_drops);
        for ((e, reason), n) in old.drops() {
            let mine = old.shared.twin(e, &self.shared);
            let worker = mine.and_then(|m| self.shared.workers_of(m).first().copied());
            match (mine, worker.and_then(|w| self.workers.get_mut(w))) {
                (Some(m), Some(w)) => w.core.count_drops(m, reason, n),
                _ => {
                    let name = old.shared.graph.name(e as usize).to_string();
                    *self.former_drops.entry((name, reason)).or_insert(0) += n;
                }
            }
        }
    }

    /// Counts what routers dropped that gave way, while they were cleaned up.
    fn count_former(&mut self, late: Drops) {
        for (key, n) in late {
            let mine = self.find(&key.0);
            let worker = mine.and_then(|m| self.shared.workers_of(m).first().copied());
            match (mine, worker.and_then(|w| self.workers.get_mut(w))) {
                (Some(m), Some(w)) => w.core.count_drops(m, key.1, n),
                _ => *self.former_drops.entry(key).or_insert(0) += n,
            }
        }
    }

    /// Packets that elements dropped which a hot swap took away, by name and reason.
    pub fn former_drops(&self) -> &BTreeMap<(String, Reason), u64> {
        &self.former_drops
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
        Ok(merge(self.shared.spec(e), handler, values))
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
