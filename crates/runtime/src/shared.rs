// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that all workers of one configuration share: the graph, the inboxes, requests to stop.

use crate::barrier::Barrier;
use crate::build_state::BuildState;
use crate::driver_elements::DriverElement;
use crate::mail::{Inbox, Mail};
use crate::session::{DEFAULT, Session};
use castanet_element::class::Classes;
use castanet_element::{CallError, Clock, Info, Messages, Remote};
use castanet_graph::Graph;
use castanet_graph::placement::Placement;
use castanet_spec::{ClassSpec, Names, Origin};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// For each resource outside the router, given by class and key: the elements that hold it, in order of
/// declaration. Usually there is only one.
pub(crate) type Held = HashMap<(&'static str, String), Vec<u32>>;

/// The commands of clients that concern the next configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwapCommand {
    /// Replaces the configuration by the written one.
    Replace,
    /// Loads a package of classes.
    LoadPackage,
    /// Returns what `Replace` would change.
    Plan,
}

/// The running router, as its configurations see it. It stays the same when swaps replace the configuration.
pub(crate) trait Supervisor: Remote {
    /// Calls `f` for a configuration, or for its successor if it has been replaced. `f` must not call the supervisor.
    fn reach(&self, shared: &Shared, f: &dyn Fn(&Shared));
    /// Starts a thread that rereads a configuration, unless it has been replaced. Returns whether the thread
    /// was started.
    fn reread(&self, shared: &Shared) -> bool;
    /// Whether the handlers that request hot swaps are enabled.
    fn allows_swaps(&self) -> bool;
    /// The names of the packages that are loaded.
    fn packages(&self) -> Vec<String>;
    /// The elements of the driver.
    fn driver_elements(&self) -> Vec<DriverElement>;
    /// Carries out a command that a worker requests. A swap begins when the worker has ended its turn.
    fn command_soon(
        &self,
        from: Origin,
        command: SwapCommand,
        value: &str,
        clock: Clock,
    ) -> Result<(), CallError>;
}

/// The data that all workers of one configuration share.
pub struct Shared {
    /// The configuration.
    pub graph: Graph,
    /// The name, class, configuration string and place of declaration of each element.
    pub info: Arc<[Info]>,
    /// Names that the configuration defines.
    pub names: Arc<Names>,
    /// Which worker reaches which elements.
    pub placement: Placement,
    /// The text that the configuration was read from.
    pub config: String,
    /// The elements to which the run loop gives turns.
    pub tasks: Vec<usize>,
    /// The element that decides on requests to stop (a driver script).
    pub driver: Option<u32>,
    /// Signals of the operating system that elements watch: element and signal.
    pub signals: Vec<(u32, i32)>,
    /// The data for live reconfiguration. It is declared before `classes`, because dropping it may need their
    /// code.
    pub(crate) build_state: BuildState,
    /// The classes that the configuration may use.
    pub classes: Arc<dyn Classes>,
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) requests: AtomicU32,
    /// Whether the workers are to return: the router has ended, or another configuration is about to replace
    /// this one.
    pub(crate) halted: AtomicBool,
    pub(crate) ended: AtomicBool,
    /// Whether another configuration has replaced this one. Changes only while the supervisor holds its lock.
    pub(crate) retired: AtomicBool,
    pub(crate) barrier: Barrier,
    /// Resources outside the router that elements have open, and the elements that hold them.
    pub(crate) held: Held,
    /// The state that hot swaps keep.
    pub(crate) session: Arc<Session>,
    pub(crate) supervisor: Arc<dyn Supervisor>,
}

impl Shared {
    /// Returns the number of rounds of all run loops. It grows fast while a task polls, and stands still
    /// while all workers sleep.
    pub fn rounds(&self) -> u64 {
        self.inboxes.iter().map(|i| i.rounds.load(Ordering::Relaxed)).sum()
    }
    /// The worker that answers requests to stop.
    pub fn driver_worker(&self) -> usize {
        self.driver.and_then(|d| self.workers_of(d).first().copied()).unwrap_or(0)
    }
    /// Whether the router is to end.
    pub fn is_stopped(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    /// Ends this configuration or its successor, whatever the driver script does.
    pub fn end(&self) {
        self.supervisor.reach(self, &Shared::end_here);
    }
    pub(crate) fn end_here(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.halt();
    }
    /// Makes each worker return as soon as it is between two batches.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
        for i in &self.inboxes {
            i.waker.wake();
        }
    }
    /// Undoes `halt`: the workers run again, unless the router has ended.
    pub(crate) fn go_on(&self) {
        self.barrier.open();
        self.halted.store(false, Ordering::SeqCst);
        if self.is_stopped() {
            self.halted.store(true, Ordering::SeqCst);
        }
    }
    /// Sends `times` requests to stop to the driver.
    pub(crate) fn stop_here(&self, times: u32) {
        let add = |n: u32| Some(n.saturating_add(times));
        let _ = self.requests.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        if let Some(i) = self.inboxes.get(self.driver_worker()) {
            i.waker.wake();
        }
    }
    /// Called under simulated time when nothing can happen any more. If the router need not wait, requests a stop, with
    /// a message, and returns true. Otherwise returns false.
    pub(crate) fn stop_idle(&self) -> bool {
        // If signals are watched, a script may be waiting for one.
        let stops = self.signals.is_empty() && self.session.stops_when_idle();
        if stops {
            self.stop_here(1);
        }
        stops
    }
    /// The class of an element.
    pub fn spec(&self, element: u32) -> Option<&'static ClassSpec> {
        self.graph.spec(element as usize)
    }
    /// Returns the workers that answer the handlers of an element: those that have a replica, or the home of
    /// a locked element. The first worker has the elements that no task reaches.
    pub fn workers_of(&self, element: u32) -> &[usize] {
        match self.placement.owners_of(element as usize) {
            [] => &[0],
            some => some,
        }
    }
    /// Returns the name of an element for messages: name, class, and place of declaration.
    pub(crate) fn declared_at(&self, element: u32) -> String {
        let declaration = self.graph.declaration(element as usize);
        match self.info.get(element as usize).map_or("", |i| i.place.as_str()) {
            "" => declaration,
            place => format!("{declaration} ({place})"),
        }
    }
    /// Returns the number that handler calls use for the element with this name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }
    /// Sends a signal of the operating system to the elements that watch it. Returns false if no element watches
    /// it.
    pub(crate) fn signal(&self, signal: i32) -> bool {
        self.signal_to(self.signals.iter().filter(|w| w.1 == signal).map(|w| w.0), signal)
    }
    /// Sends a signal of the operating system to elements. Returns false if `elements` is empty. Each worker gets
    /// one message for all its elements, so that all of them receive the signal even if the first one stops the
    /// router.
    pub(crate) fn signal_to(&self, elements: impl Iterator<Item = u32>, signal: i32) -> bool {
        let mut watchers: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for element in elements {
            let worker = self.workers_of(element).first().copied().unwrap_or(0);
            watchers.entry(worker).or_default().push(element);
        }
        let any = !watchers.is_empty();
        for (worker, elements) in watchers {
            if let Some(inbox) = self.inboxes.get(worker) {
                inbox.send(Mail::Signal(elements, signal));
            }
        }
        any
    }
}

impl Messages for Shared {
    fn message(&self, text: &str) {
        self.message_on(DEFAULT, text);
    }
    fn message_on(&self, channel: &str, text: &str) {
        self.session.message(channel, text);
    }
    fn call_failed(&self) {
        self.session.failed_calls.fetch_add(1, Ordering::Relaxed);
    }
    fn remote(&self) -> Option<Arc<dyn Remote>> {
        // From here on, threads other than workers may call the router at any time.
        self.session.set_stops_when_idle(false);
        Some(self.supervisor.clone())
    }
    fn stop(&self, times: u32) {
        self.supervisor.reach(self, &|shared| shared.stop_here(times));
    }
    fn wake(&self, worker: u32, element: u32) {
        if let Some(i) = self.inboxes.get(worker as usize) {
            i.send(Mail::Wake(element));
        }
    }
    fn device_changed(&self, device: &str) -> bool {
        self.names.uses_device(device) && self.supervisor.reread(self)
    }
}
