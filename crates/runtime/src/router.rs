// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router, from building until after it has stopped.

use crate::assemble::assemble;
use crate::assembly::Assembly;
use crate::kernel::KernelDriver;
use crate::ledger::Ledger;
use crate::options::{Options, ThreadStart};
use crate::prepare::prepare;
use crate::running::Running;
use crate::shared::Shared;
use crate::swap::cleaner::Cleaner;
use crate::swap::commit::commit;
use crate::worker::{STACK, Worker};
use castanet_element::CallError;
use castanet_element::class::Classes;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Sources};
use castanet_spec::Reason;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// A router that was built. It can run only once.
pub struct Router {
    /// All workers of the current configuration.
    pub(crate) assembly: Assembly,
    running: Arc<Running>,
}

/// Builds a router from a graph whose checks have passed, and initialises it. The second return value holds the
/// warnings.
///
/// # Errors
/// Everything that prevents the router from running. If a phase has errors, the later phases do not run, so their
/// errors are missing.
pub fn build(
    graph: Graph,
    classes: Arc<dyn Classes>,
    sources: &Sources,
    options: Options,
) -> Result<(Router, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (settings, printer, config) = options.split();
    let running = Running::new(printer, settings.clone());
    let prepared = prepare(graph, classes, sources, running.parts(), settings, config)?;
    let (assembly, diagnostics) = assemble(prepared, |_| HashSet::new())?;
    running.set_current(&assembly.shared);
    Ok((Router { assembly, running }, diagnostics))
}

/// The thread of a worker. After a hot swap, the same thread runs a worker of the new configuration, because the packet
/// pools belong to the thread.
struct Thread<'scope> {
    work: Sender<Worker>,
    done: Receiver<Worker>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Thread<'scope> {
    fn start(
        scope: &'scope Scope<'scope, '_>,
        number: u32,
        on_start: Option<ThreadStart>,
    ) -> std::io::Result<Thread<'scope>> {
        let ((work, todo), (ready, done)) = (channel::<Worker>(), channel());
        let run = move || {
            if let Some(on_start) = on_start {
                on_start(number);
            }
            for mut worker in todo {
                worker.run();
                if ready.send(worker).is_err() {
                    break;
                }
            }
        };
        let name = format!("worker {number}");
        let thread = std::thread::Builder::new().name(name).stack_size(STACK).spawn_scoped(scope, run)?;
        Ok(Thread { work, done, thread })
    }
}

impl Router {
    /// Returns the data that all workers share. It can be used while the router runs.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.assembly.shared
    }

    /// Returns the handle by which other threads access the running router. It stays valid across hot swaps.
    pub fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// Runs until the router is stopped, with a thread for each worker. After hot swaps, `self` holds the last
    /// configuration.
    ///
    /// # Errors
    /// When a thread cannot be started. In that case, the router has not run.
    pub fn run(&mut self) -> std::io::Result<()> {
        let running = self.running.clone();
        let result = std::thread::scope(|scope| {
            let (mut threads, mut cleaner) = (Vec::new(), Cleaner::new(scope));
            for w in &self.assembly.workers {
                match Thread::start(scope, w.core.worker(), running.settings.on_start.clone()) {
                    Ok(t) => threads.push(t),
                    Err(e) => {
                        self.assembly.shared.end();
                        return Err(e);
                    }
                }
            }
            loop {
                self.round(&mut threads);
                // The slot for hot swaps is closed below, so threads that wait for a swap get an error.
                if self.assembly.shared.is_stopped() {
                    break;
                }
                let Some(candidate) = running.slot.take() else { break };
                commit(&mut self.assembly, *candidate, &running, &mut cleaner);
                running.slot.release();
            }
            cleaner.finish();
            // Join the threads, because the end of the scope does not wait until they have released their packet pools.
            for Thread { work, done, thread } in threads {
                drop((work, done));
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            Ok(())
        });
        running.slot.close();
        for w in &mut self.assembly.workers {
            w.nodes.end_kernel(&mut w.core);
        }
        // In debug builds, check the ledger, so that every test notices a class that counts wrongly. After a panic, the
        // check is not possible, because the packets of the element that panicked cannot be counted.
        if cfg!(debug_assertions) && result.is_ok() && running.panics() == 0 {
            self.ledger().check();
        }
        result
    }

    /// Runs all workers on their threads until they return.
    fn round(&mut self, threads: &mut Vec<Thread<'_>>) {
        for (thread, worker) in threads.iter().zip(self.assembly.workers.drain(..)) {
            // Sending fails only if the thread has ended. The code below notices that.
            let _ = thread.work.send(worker);
        }
        for i in 0..threads.len() {
            match threads.get(i).map(|t| t.done.recv()) {
                Some(Ok(worker)) => self.assembly.workers.push(worker),
                _ => {
                    self.assembly.shared.end();
                    if let Err(panic) = threads.swap_remove(i).thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }

    /// Loads the part of the router that can run in the kernel. Its packets that need the rest of the router come up. The
    /// router must have one worker.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub fn start_in_kernel(&mut self, driver: Arc<dyn KernelDriver>) -> Result<(), String> {
        match self.assembly.workers.as_mut_slice() {
            [w] => w.nodes.start_kernel(&mut w.core, driver),
            _ => Err("the driver xdp needs a router with one worker".into()),
        }
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
        self.assembly.read(element, handler, parameters)
    }

    /// Writes a handler while the router does not run.
    ///
    /// # Errors
    /// When there is no such handler, or it fails.
    pub fn write(&mut self, element: Option<u32>, handler: &str, value: &str) -> Result<(), CallError> {
        self.assembly.write(element, handler, value)
    }

    /// Returns the ledger: where packets came from and what became of them. The ledger includes elements that hot swaps
    /// removed.
    pub fn ledger(&self) -> Ledger {
        self.assembly.ledger()
    }

    /// Cleans up all elements, in order. Returns the declaration (`name :: Class`) of each element that failed, with
    /// the error.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        self.assembly.cleanup()
    }

    /// The number of dropped packets, by element and reason, over all workers.
    pub fn drops(&self) -> BTreeMap<(u32, Reason), u64> {
        self.assembly.drops()
    }

    /// Returns how often the scheduled tasks have got several turns at once.
    pub fn quanta(&self) -> u64 {
        self.assembly.workers.iter().map(|w| w.nodes.quanta.count).sum()
    }

    /// Returns the number of packets that wait on edges. It is 0 when no task is in the middle of a turn.
    pub fn waiting(&self) -> usize {
        self.assembly.waiting()
    }

    /// Returns the number of the element with this name, for handler calls.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.assembly.shared.find(name)
    }
}
