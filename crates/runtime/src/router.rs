// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router: its workers, run together, and looked at when they have stopped.

use crate::handlers::merge;
use crate::shared::Shared;
use crate::worker::Worker;
use castanet_element::{CallError, Router as _};
use castanet_spec::{Reason, Workers};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stack of a worker's thread: pulls recurse, one frame an element.
pub(crate) const STACK: usize = 256 << 20;

/// A router that was built. It is run at most once.
pub struct Router {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Vec<Worker>,
}

impl Router {
    /// What its workers have in common; it stays usable while the router runs.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs until the router is stopped; the first worker on a thread of its own like the others.
    ///
    /// # Errors
    /// When a thread cannot be started; the router has not run then.
    pub fn run(&mut self) -> std::io::Result<()> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for w in &mut self.workers {
                let name = format!("worker {}", w.core.worker);
                let started =
                    std::thread::Builder::new().name(name).stack_size(STACK).spawn_scoped(scope, || w.run());
                match started {
                    Ok(t) => threads.push(t),
                    Err(e) => {
                        self.shared.end();
                        return Err(e);
                    }
                }
            }
            for t in threads {
                if let Err(panic) = t.join() {
                    self.shared.end();
                    std::panic::resume_unwind(panic);
                }
            }
            Ok(())
        })
    }

    /// Cleans all elements up, in order, and returns what went wrong: declaration and reason.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        for e in 0..self.shared.graph.len() as u32 {
            for w in &mut self.workers {
                if let Some(Ok(Err(text))) = w.nodes.with(&mut w.core, e, |e, cx| e.cleanup(cx)) {
                    errors.push((self.shared.graph.declaration(e as usize), text));
                }
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
        self.shared.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }
}
