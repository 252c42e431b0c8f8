// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handle by which threads that are not workers access a running router. It stays valid across hot swaps.

use crate::driver_elements::DriverElement;
use crate::options::{Printer, Settings};
use crate::session::Session;
use crate::shared::{Shared, Supervisor, SwapCommand};
use crate::swap::loader::{Loader, Style};
use crate::swap::slot::Slot;
use castanet_element::{CallError, Clock};
use castanet_spec::Origin;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A running router, across all its configurations.
pub struct Running {
    pub(crate) session: Arc<Session>,
    current: RwLock<Weak<Shared>>,
    swaps: AtomicU64,
    pub(crate) settings: Settings,
    pub(crate) loader: OnceLock<Arc<dyn Loader>>,
    /// Whether the handlers that request hot swaps are enabled.
    pub(crate) open: AtomicBool,
    pub(crate) slot: Slot,
    pub(crate) driver_elements: OnceLock<Vec<DriverElement>>,
    /// A weak reference to this router itself, from which `Running::strong` makes an `Arc`.
    me: Weak<Running>,
}

impl Running {
    /// Creates the state of a router. `printer` receives its messages.
    pub(crate) fn new(printer: Printer, settings: Settings) -> Arc<Running> {
        Arc::new_cyclic(|me| Running {
            session: Arc::new(Session::new(printer, settings.on_panic)),
            current: RwLock::new(Weak::new()),
            swaps: AtomicU64::new(0),
            settings,
            loader: OnceLock::new(),
            open: AtomicBool::new(false),
            slot: Slot::new(),
            driver_elements: OnceLock::new(),
            me: me.clone(),
        })
    }
    /// Returns the session, and this router as the [`Supervisor`] of its configurations.
    pub(crate) fn parts(self: &Arc<Running>) -> (Arc<Session>, Arc<dyn Supervisor>) {
        (self.session.clone(), self.clone())
    }
    pub(crate) fn strong(&self) -> Option<Arc<Running>> {
        self.me.upgrade()
    }
    /// Returns the current configuration. None if it has been freed.
    pub fn current(&self) -> Option<Arc<Shared>> {
        self.current.read().upgrade()
    }
    /// The number of failed handler calls in scripts that the router itself started. No caller receives their errors.
    pub fn failed_calls(&self) -> u64 {
        self.session.failed_calls.load(Ordering::Relaxed)
    }
    /// Makes the router stop under simulated time when no task is scheduled and no timer is set. In that state, time
    /// cannot advance. Only for programs in which no other thread calls the router.
    pub fn stop_when_idle(&self) {
        self.session.set_stops_when_idle(true);
    }
    /// Sets the elements of the driver. Only the first call has an effect.
    pub fn set_driver_elements(&self, elements: Vec<DriverElement>) {
        // A second call would be a bug in the caller. The elements of the first call stay.
        let _ = self.driver_elements.set(elements);
    }
    /// Returns the element with this name that the driver (the program that runs the router) has added. None if an
    /// element of the configuration has the same name.
    pub(crate) fn driver_element(&self, name: &str) -> Option<&DriverElement> {
        let found = self.driver_elements.get()?.iter().find(|e| e.name == name)?;
        self.current().is_some_and(|s| s.find(name).is_none()).then_some(found)
    }
    /// The number of panics of elements so far.
    pub fn panics(&self) -> u64 {
        self.session.panics.load(Ordering::Relaxed)
    }
    /// Begins a profile: workers measure what elements cost. The global handler `profile` has the result.
    pub fn begin_profile(&self) {
        self.session.profiling.store(true, Ordering::Relaxed);
    }
    /// Sets the configuration with which the router starts.
    pub(crate) fn set_current(&self, shared: &Arc<Shared>) {
        *self.current.write() = Arc::downgrade(shared);
    }
    /// Makes `new` the current configuration. `forward` passes on the requests that `old` has not carried out. The
    /// write lock blocks new requests meanwhile, so that no request is lost.
    pub(crate) fn succeed(&self, old: &Shared, new: &Arc<Shared>, forward: impl FnOnce()) {
        let mut current = self.current.write();
        old.retired.store(true, Ordering::SeqCst);
        forward();
        if old.is_stopped() {
            new.end_here();
        }
        self.swaps.fetch_add(1, Ordering::SeqCst);
        *current = Arc::downgrade(new);
    }
    /// Delivers an operating-system signal to the elements that watch it. Returns false if no element watches it.
    pub fn signal(&self, signal: i32) -> bool {
        let current = self.current.read();
        let Some(shared) = current.upgrade() else { return false };
        shared.signal(signal)
    }
    /// The number of hot swaps so far.
    pub(crate) fn swapped(&self) -> u64 {
        self.swaps.load(Ordering::SeqCst)
    }
}

impl Supervisor for Running {
    fn reach(&self, shared: &Shared, f: &dyn Fn(&Shared)) {
        let current = self.current.read();
        if !shared.retired.load(Ordering::SeqCst) {
            f(shared);
        } else if let Some(successor) = current.upgrade() {
            f(&successor);
        }
    }
    fn reread(&self, shared: &Shared) -> bool {
        self.reread_config(shared)
    }
    fn allows_swaps(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
    fn packages(&self) -> Vec<String> {
        self.loader.get().map(|l| l.packages()).unwrap_or_default()
    }
    fn driver_elements(&self) -> Vec<DriverElement> {
        self.driver_elements.get().cloned().unwrap_or_default()
    }
    fn command_soon(
        &self,
        from: Origin,
        command: SwapCommand,
        value: &str,
        clock: Clock,
    ) -> Result<(), CallError> {
        let swap = |text: &str| self.swap_soon(from, text, clock).map(|()| String::new());
        self.command(from, command, value, Style::Lines, swap).map(drop)
    }
}
