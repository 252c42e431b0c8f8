// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that all workers of one configuration share: the graph, the inboxes, the stop requests, and more.

use crate::barrier::Barrier;
use crate::build_state::BuildState;
use crate::compiled::Code;
use crate::driver_elements::DriverElement;
use crate::mail::{Inbox, Mail};
use crate::profile::Meters;
use crate::session::{DEFAULT, Session};
use castanet_element::class::Classes;
use castanet_element::{CallError, Clock, Info, Messages, Remote};
use castanet_graph::Graph;
use castanet_graph::placement::Placement;
use castanet_spec::{ClassSpec, Names, Origin};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// For each resource outside the router, identified by class and key, the elements that hold it, in the order of their
/// declaration. Usually this is a single element.
pub(crate) type Held = HashMap<(&'static str, String), Vec<u32>>;

/// A client's command about the next configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwapCommand {
    /// Replace the configuration by the one in the written text.
    Replace,
    /// Load a package of classes, which later configurations can use.
    LoadPackage,
    /// Return the changes that `Replace` would make.
    Plan,
}

/// The running router, as its configurations access it. Hot swaps replace the configuration but not the supervisor.
pub(crate) trait Supervisor: Remote {
    /// Calls `f` for a configuration. If the configuration has been replaced, calls `f` for the current one. `f` must
    /// not call the supervisor.
    fn reach(&self, shared: &Shared, f: &dyn Fn(&Shared));
    /// Starts a thread that reads the text of a configuration again and swaps to it. Returns false if the configuration
    /// has been replaced or the thread could not be started.
    fn reread(&self, shared: &Shared) -> bool;
    /// Whether the handlers that request hot swaps are enabled.
    fn allows_swaps(&self) -> bool;
    /// The names of the packages that are loaded.
    fn packages(&self) -> Vec<String>;
    /// The elements of the driver.
    fn driver_elements(&self) -> Vec<DriverElement>;
    /// Carries out a command that a worker requests. If it is a hot swap, the swap begins when the worker has ended its
    /// turn.
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
    /// The checked graph of the configuration.
    pub graph: Graph,
    /// The name, class and place of declaration of each element.
    pub info: Arc<[Info]>,
    /// The names that the configuration defines: addresses, ports, annotations, elements.
    pub names: Arc<Names>,
    /// Which workers reach which elements, and which worker runs each task.
    pub placement: Placement,
    /// The text of the configuration, before parsing.
    pub config: Arc<str>,
    /// The elements with a task, to which the run loop gives turns.
    pub tasks: Vec<usize>,
    /// The driver script: the element that decides on stop requests. None if there is none.
    pub driver: Option<u32>,
    /// The operating-system signals that elements watch, as pairs of element and signal number.
    pub signals: Vec<(u32, i32)>,
    /// The parameters for live reconfiguration. This field must be dropped before `classes`, because its destructors
    /// may need the code of the classes.
    pub(crate) build_state: BuildState,
    /// Whether the configuration is optimised as it loads.
    pub(crate) optimize: bool,
    /// Whether time is simulated.
    pub(crate) is_simulated: bool,
    /// The classes that the configuration may use.
    pub classes: Arc<dyn Classes>,
    /// The code that was compiled for the configuration.
    pub(crate) code: Option<Arc<dyn Code>>,
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) requests: AtomicU32,
    /// True when the workers must return: the router has ended, or another configuration is about to replace this one.
    pub(crate) halted: AtomicBool,
    pub(crate) ended: AtomicBool,
    /// Whether another configuration has replaced this one. It changes only while the supervisor holds its lock.
    pub(crate) retired: AtomicBool,
    pub(crate) barrier: Barrier,
    /// The resources outside the router that elements have open, and the elements that hold them.
    pub(crate) held: Held,
    /// What elements cost on each worker.
    pub(crate) meters: Meters,
    /// The part of the configuration that runs in the kernel.
    pub(crate) kernel: crate::kernel::KernelSlot,
    /// The compiler of paths. None if the router does not compile any.
    pub(crate) path_compiler: Option<Arc<crate::paths::PathCompiler>>,
    pub(crate) path_accounts: crate::paths::Accounts,
    /// The state of the running router that hot swaps do not replace.
    pub(crate) session: Arc<Session>,
    pub(crate) supervisor: Arc<dyn Supervisor>,
}

impl Shared {
    /// Returns how many rounds all run loops have made, in total. The number grows fast while a task polls, and stays
    /// the same while all workers sleep.
    pub fn rounds(&self) -> u64 {
        self.inboxes.iter().map(|i| i.rounds.load(Ordering::Relaxed)).sum()
    }
    /// The value of the handler `paths`.
    pub(crate) fn paths_table(&self) -> String {
        self.path_accounts.lock().iter().map(|a| a.line(&self.graph)).collect()
    }
    /// The worker that answers stop requests.
    pub fn driver_worker(&self) -> usize {
        self.driver.and_then(|d| self.workers_of(d).first().copied()).unwrap_or(0)
    }
    /// Whether the router must end.
    pub fn is_stopped(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    /// Ends this configuration, or the current one if this one has been replaced. The driver script does not get a stop
    /// request.
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
        self.wake_all();
    }
    /// Wakes the workers that sleep.
    pub(crate) fn wake_all(&self) {
        for i in &self.inboxes {
            i.waker.wake();
        }
    }
    /// Undoes `halt`, so that the workers run again. If the router has ended, they stay halted.
    pub(crate) fn go_on(&self) {
        self.barrier.open();
        self.halted.store(false, Ordering::SeqCst);
        if self.is_stopped() {
            self.halted.store(true, Ordering::SeqCst);
        }
    }
    /// Adds `times` requests to stop the router, and wakes the worker that answers them.
    pub(crate) fn stop_here(&self, times: u32) {
        let add = |n: u32| Some(n.saturating_add(times));
        let _ = self.requests.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        if let Some(i) = self.inboxes.get(self.driver_worker()) {
            i.waker.wake();
        }
    }
    /// Called under simulated time when no task is scheduled and no timer is set. If an idle router must stop, requests
    /// a stop, shows a message, and returns true. If the router must wait, returns false.
    pub(crate) fn stop_idle(&self) -> bool {
        // If an element watches signals, a script may be waiting for one, so do not stop.
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
    /// Returns the workers that answer handler calls to an element. These are the workers that have a replica of it. A
    /// locked element has only its home. An element that no task reaches is on worker 0.
    pub fn workers_of(&self, element: u32) -> &[usize] {
        match self.placement.owners_of(element as usize) {
            [] => &[0],
            some => some,
        }
    }
    /// Returns how messages name an element: name, class, and place of declaration.
    pub(crate) fn declared_at(&self, element: u32) -> String {
        let declaration = self.graph.declaration(element as usize);
        match self.info.get(element as usize).map(|i| &i.place).filter(|p| p.is_known()) {
            Some(place) => format!("{declaration} ({place})"),
            None => declaration,
        }
    }
    /// Returns the number of the element with this name, for handler calls.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }
    /// Delivers an operating-system signal to the elements that watch it. Returns false if no element watches it.
    pub(crate) fn signal(&self, signal: i32) -> bool {
        self.signal_to(self.signals.iter().filter(|w| w.1 == signal).map(|w| w.0), signal)
    }
    /// Delivers an operating-system signal to `elements`. Returns false if there are none. Each worker gets one message
    /// for all its elements, so that all of them receive the signal, even if the first one stops the router.
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
        // From here on, other threads may call the router at any time, so it must not stop when it is idle.
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
