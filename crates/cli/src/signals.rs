// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals: those that end the router, those that elements watch, and the one that has the configuration read again.

use castanet_runtime::{Running, Shared};
use signal_hook::consts::{FORBIDDEN, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What to do when the terminal hangs up.
pub type Hangup = Box<dyn Fn() + Send + Sync>;

/// Catches signals.
pub struct Handle(signal_hook::iterator::Handle);

impl Handle {
    /// Catches the signals that elements of a router watch as well.
    pub fn catch(&self, shared: &Shared) {
        for signal in watched(shared) {
            // What cannot be caught is left out rather than refused: the element simply never hears of it.
            let _ = self.0.add_signal(signal);
        }
    }
}

/// Whether interrupt and terminate end the process at once.
static AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Has interrupt and terminate end the process at once until [`watch`] lets them reach a router. A process that a shell starts in
/// the background ignores interrupts, so one that waits for a pipe to be opened could not be interrupted without this.
///
/// # Errors
/// When signals cannot be caught.
pub fn end_at_once() -> std::io::Result<()> {
    let at_once = AT_ONCE.get_or_init(|| Arc::new(AtomicBool::new(true)));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, at_once.clone())?;
    }
    Ok(())
}

fn set_at_once(on: bool) {
    if let Some(at_once) = AT_ONCE.get() {
        at_once.store(on, Ordering::SeqCst);
    }
}

fn watched(shared: &Shared) -> impl Iterator<Item = i32> {
    shared.signals.iter().map(|s| s.1).filter(|s| !FORBIDDEN.contains(s))
}

/// Lets signals reach the router of the moment. Interrupt and terminate ask it to stop, a third time of asking ends it, and a
/// fourth ends the process, because a worker may wait in a system call, for a pipe say, and never see that the router has ended.
/// Signals that elements watch go to them; without one that watches it, hangup does what `hangup` says.
pub fn watch(running: &Arc<Running>, hangup: Option<Hangup>) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup.is_some().then_some(SIGHUP)))?;
    let handle = Handle(signals.handle());
    set_at_once(false);
    if let Some(shared) = running.current() {
        handle.catch(&shared);
    }
    let (running, hangup) = (running.clone(), hangup.map(Arc::from));
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut asked = 0;
        for signal in signals.forever() {
            let taken = running.signal(signal);
            // A router that gives way just now passes requests on to the next one.
            let Some(shared) = running.current() else { continue };
            match signal {
                _ if taken => {}
                SIGHUP => again(hangup.clone()),
                SIGINT | SIGTERM => {
                    asked += 1;
                    if asked > 2 {
                        shared.end();
                        set_at_once(true);
                    } else {
                        castanet_element::Messages::stop(shared.as_ref(), 1)
                    }
                }
                // An element watched it, before the configuration was swapped.
                _ => {}
            }
        }
    })?;
    Ok(handle)
}

/// It may take long, and meanwhile somebody may want to stop.
fn again(hangup: Option<Arc<dyn Fn() + Send + Sync>>) {
    if let Some(f) = hangup {
        // Without a thread nothing is read again; who asked will see that nothing was told.
        let _ = std::thread::Builder::new().name("hangup".into()).spawn(move || f());
    }
}
