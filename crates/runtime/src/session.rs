// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a running router that hot swaps do not replace: listeners to messages, numbers of failures, and the
//! ledger accounts of elements that swaps removed.

use crate::ledger::Former;
use crate::observe::Observers;
use crate::options::{OnPanic, Printer};
use castanet_element::remote::Listener;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The channel of messages without a channel name.
pub(crate) const DEFAULT: &str = "default";

/// The state of a running router that hot swaps do not replace.
pub(crate) struct Session {
    printer: Printer,
    listeners: Mutex<Vec<(String, Weak<dyn Listener>)>>,
    /// Whether there has ever been a listener. If there has been none, a message needs no lock. This matters because
    /// elements may send many messages.
    heard: AtomicBool,
    /// Whether the router stops when no task is scheduled and no timer is set. Only under simulated time.
    stops_when_idle: AtomicBool,
    /// Whether the router has already shown the message that it stops because nothing is left to do.
    idle_reported: AtomicBool,
    /// How the router continues after an element has panicked.
    pub on_panic: OnPanic,
    /// The number of panics of elements so far.
    pub panics: AtomicU64,
    /// The number of failed handler calls in scripts that the router itself started.
    pub failed_calls: AtomicU64,
    /// Whether workers measure what elements cost ([`crate::profile`]).
    pub profiling: AtomicBool,
    /// The packets that clients observe.
    pub observers: Arc<Observers>,
    /// The ledger accounts of elements that hot swaps removed.
    pub former: Former,
}

impl Session {
    pub fn new(printer: Printer, on_panic: OnPanic) -> Session {
        Session {
            printer,
            listeners: Mutex::default(),
            heard: AtomicBool::new(false),
            stops_when_idle: AtomicBool::new(false),
            idle_reported: AtomicBool::new(false),
            on_panic,
            panics: AtomicU64::new(0),
            failed_calls: AtomicU64::new(0),
            profiling: AtomicBool::new(false),
            observers: Arc::default(),
            former: Former::default(),
        }
    }
    /// Prints a message on the default channel.
    pub fn print(&self, text: &str) {
        self.message(DEFAULT, text);
    }
    /// Sends a message to the listeners of a channel. Messages of the default channel are also printed.
    pub fn message(&self, channel: &str, text: &str) {
        if channel == DEFAULT {
            (self.printer)(text);
        }
        if self.heard.load(Ordering::Relaxed) {
            let mut listeners = self.listeners.lock();
            listeners.retain(|(c, l)| match l.upgrade() {
                Some(l) => {
                    if c == channel {
                        l.hear(text);
                    }
                    true
                }
                None => false,
            });
        }
    }
    /// Adds a listener to a channel.
    pub fn listen(&self, channel: &str, listener: Weak<dyn Listener>) {
        self.listeners.lock().push((channel.to_string(), listener));
        self.heard.store(true, Ordering::SeqCst);
    }
    /// Removes the listeners that have been dropped.
    pub fn remove_dead_listeners(&self) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|l| l.1.strong_count() > 0);
    }
    /// Sets whether the router stops when no task is scheduled and no timer is set.
    pub fn set_stops_when_idle(&self, stops: bool) {
        self.stops_when_idle.store(stops, Ordering::Relaxed);
    }
    /// Whether the router stops when no task is scheduled and no timer is set. If this returns true, the caller must
    /// stop the router. The first call that returns true shows a message about the reason.
    pub fn stops_when_idle(&self) -> bool {
        if !self.stops_when_idle.load(Ordering::Relaxed) {
            return false;
        }
        if !self.idle_reported.swap(true, Ordering::Relaxed) {
            self.print("simulated time cannot advance: no task is scheduled and no timer is set; stopping");
        }
        true
    }
}
