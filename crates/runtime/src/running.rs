// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running router as those see it who stand outside its workers, whatever configuration it has at the moment.

use crate::build::Settings;
use crate::ledger::Former;
use crate::merge::merge;
use crate::shared::{Mail, Printer, Shared};
use crate::swap::{Desk, Loader, STOPPED, Style};
use castanet_element::CallError;
use castanet_element::remote::{Listener, Remote};
use castanet_spec::{Origin, Workers};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// How often who waits for a worker looks whether that one still runs.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long who asks a worker stays awake.
const AWAKE: Duration = Duration::from_micros(150);

/// The channel of messages that name none.
pub(crate) const DEFAULT: &str = "default";

/// What diagnostics call a configuration that came by a handler.
pub(crate) const BY_HANDLER: &str = "config";

/// What stays when the configuration is swapped: who hears messages, and the way to the router of the moment.
pub struct Running {
    printer: Printer,
    listeners: Mutex<Vec<(String, Weak<dyn Listener>)>>,
    /// Whether there are listeners: messages may be many.
    heard: AtomicBool,
    current: RwLock<Weak<Shared>>,
    swaps: AtomicU64,
    pub(crate) settings: Settings,
    pub(crate) loader: OnceLock<Arc<dyn Loader>>,
    /// Whether handlers may swap.
    pub(crate) open: AtomicBool,
    pub(crate) desk: Desk,
    /// Whether the router is to stop when nothing can happen any more (simulated time only).
    stops_when_idle: AtomicBool,
    /// Whether the message about that has been printed.
    idle_reported: AtomicBool,
    /// Panics of elements.
    pub(crate) panics: AtomicU64,
    /// Handler calls of scripts that failed.
    pub(crate) failed_calls: AtomicU64,
    /// What the ledger says of elements that hot swaps took away.
    pub(crate) former: Former,
    /// Itself.
    me: Weak<Running>,
}

/// Why a worker gave no answer.
enum Silent {
    /// The router has stopped.
    Stopped,
    /// Its configuration was swapped before the worker came to the question.
    Swapped,
}

impl Running {
    /// For a router whose messages go to `printer`.
    pub(crate) fn new(printer: Printer, settings: Settings) -> Arc<Running> {
        Arc::new_cyclic(|me| Running {
            printer,
            listeners: Mutex::default(),
            heard: AtomicBool::new(false),
            current: RwLock::new(Weak::new()),
            swaps: AtomicU64::new(0),
            settings,
            loader: OnceLock::new(),
            open: AtomicBool::new(false),
            desk: Desk::new(),
            stops_when_idle: AtomicBool::new(false),
            idle_reported: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            failed_calls: AtomicU64::new(0),
            former: Former::default(),
            me: me.clone(),
        })
    }
    pub(crate) fn strong(&self) -> Option<Arc<Running>> {
        self.me.upgrade()
    }
    /// The router of the moment; none once it is gone.
    pub fn current(&self) -> Option<Arc<Shared>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
    /// Handler calls that failed in scripts which run by themselves.
    pub fn failed_calls(&self) -> u64 {
        self.failed_calls.load(Ordering::Relaxed)
    }
    /// Under simulated time: stops the router when no task is scheduled and no timer is set, because time cannot advance then.
    /// For programs that have no other access to the router by which something might happen.
    pub fn stop_when_idle(&self) {
        self.stops_when_idle.store(true, Ordering::Relaxed);
    }
    /// An element has passed the router to threads outside, which may call it at any time.
    pub(crate) fn reached_from_outside(&self) {
        self.stops_when_idle.store(false, Ordering::Relaxed);
    }
    /// Requests a stop, with a message. False if an idle router is to wait instead.
    pub(crate) fn stop_idle(&self, shared: &Shared) -> bool {
        // A script may wait for a signal.
        if !self.stops_when_idle.load(Ordering::Relaxed) || !shared.signals.is_empty() {
            return false;
        }
        if !self.idle_reported.swap(true, Ordering::Relaxed) {
            self.say(
                DEFAULT,
                "simulated time cannot advance: no task is scheduled and no timer is set; stopping",
            );
        }
        shared.stop_here(1);
        true
    }
    /// How often elements have panicked.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
    /// The first router.
    pub(crate) fn set_current(&self, shared: &Arc<Shared>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(shared);
    }
    /// Puts a router in the place of another one. `forward` passes on what that one was asked and has not done; nothing is asked
    /// of either meanwhile, so that no request is lost.
    pub(crate) fn succeed(&self, old: &Shared, new: &Arc<Shared>, forward: impl FnOnce()) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        old.retired.store(true, Ordering::SeqCst);
        forward();
        if old.is_stopped() {
            new.end_here();
        }
        self.swaps.fetch_add(1, Ordering::SeqCst);
        *current = Arc::downgrade(new);
    }
    /// Calls `f` with a router, or with the router of the moment if that has taken its place. `f` must not come back here.
    pub(crate) fn reach(&self, shared: &Shared, f: impl FnOnce(&Shared)) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if !shared.retired.load(Ordering::SeqCst) {
            f(shared);
        } else if let Some(heir) = current.upgrade() {
            f(&heir);
        }
    }
    /// Sends a signal of the operating system to the elements that watch it; false if none does.
    pub fn signal(&self, signal: i32) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(shared) = current.upgrade() else { return false };
        let watchers = shared.signals.iter().filter(|w| w.1 == signal);
        watchers.map(|&(e, _)| shared.signal(e, signal)).count() > 0
    }
    /// Forgets listeners that exist no longer.
    pub(crate) fn forget_the_gone(&self) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|l| l.1.strong_count() > 0);
    }
    /// Shows a message to those who hear a channel.
    pub(crate) fn say(&self, channel: &str, text: &str) {
        if channel == DEFAULT {
            (self.printer)(text);
        }
        if self.heard.load(Ordering::Relaxed) {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Calls the router of the moment, and the next one if it was swapped meanwhile.
    fn call<T>(
        &self,
        element: Option<&str>,
        f: impl Fn(&Arc<Shared>, Option<u32>) -> Result<Result<T, CallError>, Silent>,
    ) -> Result<T, CallError> {
        loop {
            let gone = || CallError::Missing(STOPPED.into());
            let shared = self.current().ok_or_else(gone)?;
            let e = match element {
                None => None,
                Some(name) => {
                    let none = || CallError::Missing(format!("no element named '{name}'"));
                    Some(shared.find(name).ok_or_else(none)?)
                }
            };
            match f(&shared, e) {
                Ok(answer) => return answer,
                Err(Silent::Stopped) => return Err(gone()),
                // Its workers are gone before the next router has its place: that takes a moment.
                Err(Silent::Swapped) => std::thread::yield_now(),
            }
        }
    }
}

/// Asks a worker and waits for its answer.
fn ask<T>(
    shared: &Shared,
    worker: usize,
    mail: impl FnOnce(SyncSender<Result<T, CallError>>) -> Mail,
) -> Result<Result<T, CallError>, Silent> {
    let (tx, rx) = sync_channel(1);
    let Some(inbox) = shared.inboxes.get(worker) else { return Err(Silent::Stopped) };
    inbox.send(mail(tx));
    // A worker that packets keep busy answers after some turns of tasks. To wake who sleeps would cost it more than the answer.
    let soon = Instant::now() + AWAKE;
    while Instant::now() < soon {
        match rx.try_recv() {
            Ok(answer) => return Ok(answer),
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    loop {
        match rx.recv_timeout(PATIENCE) {
            Ok(answer) => return Ok(answer),
            Err(_) if shared.is_stopped() => return Err(Silent::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Silent::Swapped),
        }
    }
}

impl Remote for Running {
    fn elements(&self) -> Vec<String> {
        let Some(shared) = self.current() else { return Vec::new() };
        (0..shared.graph.len()).map(|e| shared.graph.name(e).to_string()).collect()
    }

    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError> {
        self.call(element, |shared, e| {
            let read = |worker| {
                let (handler, parameters) = (handler.to_string(), parameters.to_string());
                let from = Origin::Anonymous;
                ask(shared, worker, |reply| Mail::Read { from, element: e, handler, parameters, reply })
            };
            let Some(element) = e else {
                return match shared.global(handler) {
                    Some(value) => Ok(Ok(value)),
                    None => read(0),
                };
            };
            if let Some(value) = shared.unasked(element, handler) {
                return Ok(Ok(value));
            }
            let mut values = Vec::new();
            for &w in shared.workers_of(element) {
                match read(w)? {
                    Ok(v) => values.push(v),
                    error => return Ok(error),
                }
                if shared.spec(element).is_some_and(|s| s.workers == Workers::Share)
                    && !shared.counts_drops(element, handler)
                {
                    break;
                }
            }
            Ok(Ok(merge(shared, element, handler, values)))
        })
    }

    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        let swap = |text: &str| self.swap(from, BY_HANDLER, text).map(drop);
        // No worker is kept from its packets meanwhile. Under simulated time the worker alone knows what time it is, and swaps.
        if element.is_none()
            && (handler != "hotconfig" || !self.settings.clock.is_simulated())
            && let Some(done) = self.write_swap(from, handler, value, Style::Snippets, swap)
        {
            return done;
        }
        self.call(element, |shared, e| {
            let write = |worker| {
                let (handler, value) = (handler.to_string(), value.to_string());
                ask(shared, worker, |reply| Mail::Write { from, element: e, handler, value, reply })
            };
            let Some(element) = e else { return write(0) };
            for &w in shared.workers_of(element) {
                if let error @ Err(_) = write(w)? {
                    return Ok(error);
                }
                if shared.spec(element).is_some_and(|s| s.workers == Workers::Share) {
                    break;
                }
            }
            Ok(Ok(()))
        })
        .map(|()| String::new())
    }

    fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.current().is_none_or(|s| s.is_stopped())
    }

    fn listen(&self, channel: &str, listener: Weak<dyn Listener>) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push((channel.to_string(), listener));
        self.heard.store(true, Ordering::SeqCst);
    }
}
