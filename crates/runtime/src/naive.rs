// SPDX-License-Identifier: MIT OR Apache-2.0
//! The naive interpreter moves one packet at a time, recursively. It is kept simple, because tests use it as the
//! reference for the fast run loop.
//!
//! It has the same elements, the same graph, and the same order of tasks and timers as the run loop. Only the movement
//! of packets differs. An element gets one packet. Each packet that it emits is moved until it is stored, sent or
//! dropped, before the next one is moved. Normally, packets on output 0 move first. If the class declares `descending`,
//! packets on the last output move first. Packets that an action emits to side outputs always move before the packet
//! that the action passes on. Pulls request one packet at a time. There are no chains, no batches and no stacks of
//! waiting packets.

use crate::build_state::BuildState;
use crate::errors::{explain, failed};
use crate::initialise::Context;
use crate::ledger::Ledger;
use crate::prepare::{Prepared, prepare};
use crate::running::Running;
use crate::shared::Shared;
use crate::tasks::LONGEST_BURST;
use crate::worker::STACK;
use crate::{Classes, Options};
use castanet_element::run_loop::{self, Core, Internals as _, Router};
use castanet_element::{AnyElement, CallError, Cx, Drive, Instance, Turn};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Sources};
use castanet_spec::Reason;
use net::Net;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod net;

/// The number of task turns between two checks of timers. It is the same as in the run loop.
const TURNS: usize = 128;

/// A router that the naive interpreter runs, under simulated time and as a single worker.
pub struct Naive {
    net: Net,
    core: Core,
}

impl Naive {
    /// Builds and initialises a router from a graph whose checks have passed. Ignores the batch size and the number of
    /// workers in `options`. The clock must be simulated.
    ///
    /// # Errors
    /// Those of [`crate::build()`].
    pub fn new(
        graph: Graph,
        classes: Arc<dyn Classes>,
        sources: &Sources,
        options: Options,
    ) -> Result<Naive, Vec<Diagnostic>> {
        let (settings, printer, config) = Options { workers: 1, ..options }.split();
        let running = Running::new(printer, settings.clone());
        let Prepared { built, shared, clock, mut diagnostics, .. } =
            prepare(graph, classes, sources, running.parts(), settings, config)?;
        running.set_current(&shared);
        let notes = shared.build_state.notes.clone();
        let core = Core::new(shared.info.clone(), shared.names.clone(), notes, shared.clone(), clock);
        let net = Net::new(shared, built.workers.into_iter().flatten());
        let mut naive = Naive { net, core };
        naive.initialise(&mut diagnostics);
        if failed(&diagnostics) {
            return Err(diagnostics);
        }
        Ok(naive)
    }

    fn initialise(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let shared = self.net.shared.clone();
        let BuildState { notes, notes_of, gauges, .. } = &shared.build_state;
        let context = Context { graph: &shared.graph, notes: notes_of, gauges };
        let mut listeners: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        for e in 0..shared.graph.len() {
            let me = e as u32;
            let done = self.net.visit(&mut self.core, e, |element, cx| {
                run_loop::initialise(cx.core(), me, &context, false, |cx| element.initialise(cx))
            });
            let Some((done, scheduled, listens)) = done else { continue };
            for n in listens {
                listeners.entry(n).or_default().push((0, me));
            }
            if let Err(error) = done {
                diagnostics.extend(explain(&shared.graph, e, "initializing", error.into()));
            }
            if scheduled && shared.has_task(me) {
                if let Some(t) = shared.names.tickets(e) {
                    self.net.tickets.insert(me, t.max(1));
                }
                self.net.schedule(me);
            }
        }
        for (n, mut who) in listeners {
            who.dedup();
            notes.listen(n as usize, who);
        }
    }

    /// Runs tasks and timers. Returns true when nothing is left to do or the router is stopped. Returns false after
    /// `max_turns` calls of tasks and timers if there is still work to do.
    ///
    /// # Errors
    /// When the thread with a large stack cannot be started.
    pub fn run_until_idle(&mut self, max_turns: usize) -> std::io::Result<bool> {
        // Run on a thread with a large stack. Pushes recurse, with stack frames for each element on the path, and a
        // packet may go round a cycle 1000 times (`HOPS`).
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .stack_size(4 * STACK)
                .spawn_scoped(scope, || self.run(max_turns))?;
            Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn run(&mut self, max_turns: usize) -> bool {
        let shared = self.net.shared.clone();
        let mut left = max_turns;
        while !shared.is_stopped() {
            if shared.requests() > 0 {
                self.drive(&shared);
                continue;
            }
            if left == 0 {
                return false;
            }
            let busy = self.run_tasks(&shared, &mut left);
            let fired = self.run_timers(&mut left);
            if !busy && !fired && !self.core.has_scheduled() {
                match self.core.timers().next() {
                    Some((t, _)) => self.core.clock().jump(t),
                    None => return true,
                }
            }
        }
        true
    }

    /// Answers one request to stop.
    fn drive(&mut self, shared: &Shared) {
        shared.requests.fetch_sub(1, Ordering::SeqCst);
        let answer = match shared.driver {
            Some(d) => self.turn(d, |e, cx| e.drive(cx)).unwrap_or(Drive::Stop),
            None => Drive::Stop,
        };
        if answer == Drive::Stop {
            shared.end();
        }
    }

    /// Calls an element. Then moves each packet that it emits until it is stored, sent or dropped.
    fn turn<R>(&mut self, element: u32, f: impl FnOnce(&mut dyn AnyElement, &mut Cx<'_>) -> R) -> Option<R> {
        let e = element as usize;
        self.core.set_limit(1);
        let out = self.net.enter(&mut self.core, e, true, |instance, cx| match instance {
            Instance::Element(x) => Some(f(x.as_mut(), cx)),
            Instance::Action(_) => None,
        });
        self.net.send(&mut self.core, e);
        self.net.rounds = 0;
        out.flatten()
    }

    fn run_tasks(&mut self, shared: &Shared, left: &mut usize) -> bool {
        for turn in 0..TURNS {
            for e in self.core.take_scheduled() {
                self.net.schedule(e);
            }
            let Some(task) = self.net.tasks.turn() else { return turn > 0 };
            let mut moved = 0;
            self.core.begin_task(1, 1);
            loop {
                *left = left.saturating_sub(1);
                moved += 1;
                match self.turn(task, |e, cx| e.task(cx)).unwrap_or(Turn::Sleep) {
                    Turn::More if moved < LONGEST_BURST && !shared.is_stopped() && *left > 0 => {}
                    Turn::Again => {
                        if self.core.found_nothing() {
                            self.net.tasks.retry(task);
                        }
                        break;
                    }
                    Turn::More => break,
                    Turn::Sleep => {
                        if self.core.has_pulled() {
                            self.net.tasks.remove(task);
                        } else {
                            self.net.tasks.withdraw(task);
                        }
                        break;
                    }
                }
            }
            if shared.requests() > 0 || shared.is_stopped() || *left == 0 {
                return true;
            }
        }
        true
    }

    fn run_timers(&mut self, left: &mut usize) -> bool {
        if self.core.timers().is_empty() {
            return false;
        }
        let now = self.core.clock().now();
        let mut fired = false;
        while let Some((_, (e, id))) = self.core.timers().pop_due(now) {
            *left = left.saturating_sub(1);
            self.turn(e, |e, cx| e.timer(id, cx));
            fired = true;
        }
        fired
    }

    /// Reads a handler that an element's class declares.
    ///
    /// # Errors
    /// When there is no such handler, or it fails.
    pub fn read(&mut self, element: u32, handler: &str) -> Result<String, CallError> {
        self.net.read(&mut self.core, Some(element), handler, "")
    }

    /// The number of dropped packets, by element and reason.
    pub fn drops(&self) -> BTreeMap<(u32, Reason), u64> {
        self.core.all_drops().map(|(e, r, n)| ((e, r), n)).collect()
    }

    /// The ledger: where packets came from and what became of them.
    pub fn ledger(&self) -> Ledger {
        let core = std::iter::once(&self.core);
        Ledger::new(&self.net.shared, core, |_, e| self.net.held(e as usize), self.net.waiting())
    }

    /// Returns the number of the element with this name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.net.shared.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }

    /// Cleans up all elements, in order. Returns the declaration (`name :: Class`) of each element that failed, with
    /// the error.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        for e in 0..self.net.shared.graph.len() {
            if let Some(Err(error)) = self.net.visit(&mut self.core, e, |e, cx| e.cleanup(cx)) {
                errors.push((self.net.shared.graph.declaration(e), error.to_string()));
            }
        }
        errors
    }
}
