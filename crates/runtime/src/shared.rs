// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all workers of a router have in common: the graph, the mail between workers, requests to stop.

use crate::build::Classes;
use crate::meeting::Meeting;
use crate::running::{DEFAULT, Running};
use crate::sleep::Waker;
use castanet_element::{CallError, Info, Messages, Remote};
use castanet_graph::Graph;
use castanet_graph::placement::Placement;
use castanet_spec::{ClassSpec, Names, Origin, Reason};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

/// Packets dropped, by element and reason.
pub type Dropped = Vec<(u32, Reason, u64)>;

/// What one worker asks of another.
pub enum Mail {
    /// Schedule the task of an element.
    Wake(u32),
    /// Read a handler of an element's replica, or a global one.
    Read {
        /// For whom.
        from: Origin,
        /// The element.
        element: Option<u32>,
        /// The handler.
        handler: String,
        /// Its parameters.
        parameters: String,
        /// Where the answer goes.
        reply: SyncSender<Result<String, CallError>>,
    },
    /// Write a handler of an element's replica, or a global one.
    Write {
        /// For whom.
        from: Origin,
        /// The element.
        element: Option<u32>,
        /// The handler.
        handler: String,
        /// The value.
        value: String,
        /// Where the answer goes.
        reply: SyncSender<Result<(), CallError>>,
    },
    /// Tell what elements dropped on this worker.
    Drops {
        /// Where the answer goes.
        reply: SyncSender<Result<Dropped, CallError>>,
    },
    /// A signal that an element watches has arrived.
    Signal(u32, i32),
}

/// The way to one worker.
pub struct Inbox {
    pub(crate) sender: Mutex<Sender<Mail>>,
    pub(crate) waker: Arc<Waker>,
    /// Whether there is mail; looked at once a turn, so it must be cheap.
    pub(crate) full: AtomicBool,
    /// How often the worker has gone round its run loop; only the worker writes it.
    pub(crate) rounds: AtomicU64,
}

impl Inbox {
    /// Sends mail and wakes the worker.
    pub fn send(&self, mail: Mail) {
        // A worker that is gone needs no mail.
        let _ = self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(mail);
        self.full.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}

/// Where messages of elements go.
pub type Printer = Box<dyn Fn(&str) + Send + Sync>;

/// By class and key the elements that hold it, in order: mostly one.
pub(crate) type Held = HashMap<(&'static str, String), Vec<u32>>;

/// What all workers of a router have in common.
pub struct Shared {
    /// The configuration.
    pub graph: Graph,
    /// All elements.
    pub info: Arc<[Info]>,
    /// Names that the configuration defines.
    pub names: Arc<Names>,
    /// Which worker reaches what.
    pub placement: Placement,
    /// The text that the configuration was read from.
    pub config: String,
    /// The elements whose tasks run.
    pub tasks: Vec<usize>,
    /// The element that drives the stop of the router.
    pub driver: Option<u32>,
    /// Signals of the operating system that elements watch: element and signal.
    pub signals: Vec<(u32, i32)>,
    /// Known classes.
    pub classes: Arc<dyn Classes>,
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) requests: AtomicU32,
    /// Whether the workers are to return: the router has ended, or another configuration is about to take its place.
    pub(crate) halted: AtomicBool,
    pub(crate) ended: AtomicBool,
    /// Whether another router has taken its place. Changes only while [`Running`] has its lock.
    pub(crate) retired: AtomicBool,
    pub(crate) meeting: Meeting,
    /// What elements have open outside that a router holds once.
    pub(crate) held: Held,
    /// What stays when this router gives way to another.
    pub running: Arc<Running>,
}

impl Shared {
    /// How often the workers have gone round their run loops: many times while a task polls, not at all while all sleep.
    pub fn rounds(&self) -> u64 {
        self.inboxes.iter().map(|i| i.rounds.load(Ordering::Relaxed)).sum()
    }
    /// The worker that answers requests to stop.
    pub fn driver_worker(&self) -> usize {
        let d = self.driver.and_then(|d| self.placement.workers_of(d as usize).first().copied());
        d.unwrap_or(0)
    }
    /// Whether the router has been told to end.
    pub fn is_stopped(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    /// Ends the router, or the one that has taken its place, whatever its driver script says.
    pub fn end(&self) {
        self.running.reach(self, Shared::end_here);
    }
    pub(crate) fn end_here(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.halt();
    }
    /// Has the workers return as soon as each is between two batches.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
        for i in &self.inboxes {
            i.waker.wake();
        }
    }
    /// The workers are to go on after all, unless the router has ended.
    pub(crate) fn go_on(&self) {
        self.meeting.open();
        self.halted.store(false, Ordering::SeqCst);
        if self.is_stopped() {
            self.halted.store(true, Ordering::SeqCst);
        }
    }
    /// Asks the driver to stop, so many times.
    pub(crate) fn stop_here(&self, times: u32) {
        let add = |n: u32| Some(n.saturating_add(times));
        let _ = self.requests.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        if let Some(i) = self.inboxes.get(self.driver_worker()) {
            i.waker.wake();
        }
    }
    /// The class of an element.
    pub fn spec(&self, element: u32) -> Option<&'static ClassSpec> {
        self.graph.spec(element as usize)
    }
    /// How messages name an element: name, class, and where it is declared.
    pub(crate) fn declared_at(&self, element: u32) -> String {
        let declaration = self.graph.declaration(element as usize);
        match self.info.get(element as usize).map_or("", |i| i.place.as_str()) {
            "" => declaration,
            place => format!("{declaration} ({place})"),
        }
    }
    /// The element of that name, as handler calls number it.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }
    /// The element of another router that has the name and the class of one of this one's.
    pub(crate) fn twin(&self, element: u32, other: &Shared) -> Option<u32> {
        let twin = other.find(self.graph.name(element as usize))?;
        (self.spec(element)?.name == other.spec(twin)?.name).then_some(twin)
    }
    /// Sends an element a signal of the operating system.
    pub(crate) fn signal(&self, element: u32, signal: i32) {
        let workers = self.placement.workers_of(element as usize);
        if let Some(inbox) = workers.first().and_then(|&w| self.inboxes.get(w)) {
            inbox.send(Mail::Signal(element, signal));
        }
    }
}

impl Messages for Shared {
    fn message(&self, text: &str) {
        self.message_on(DEFAULT, text);
    }
    fn message_on(&self, channel: &str, text: &str) {
        self.running.say(channel, text);
    }
    fn call_failed(&self) {
        self.running.failed_calls.fetch_add(1, Ordering::Relaxed);
    }
    fn remote(&self) -> Option<Arc<dyn Remote>> {
        self.running.reached_from_outside();
        Some(self.running.clone())
    }
    fn stop(&self, times: u32) {
        self.running.reach(self, |shared| shared.stop_here(times));
    }
    fn wake(&self, worker: u32, element: u32) {
        if let Some(i) = self.inboxes.get(worker as usize) {
            i.send(Mail::Wake(element));
        }
    }
    fn device_changed(&self, device: &str) -> bool {
        self.names.uses_device(device) && self.running.read_again(self)
    }
}
