// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles signals: those that end the router, those that elements watch, and SIGHUP, which rereads the configuration.

use castanet_runtime::{Running, Shared};
use signal_hook::consts::{FORBIDDEN, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The action of SIGHUP.
pub type Hangup = Box<dyn Fn() + Send + Sync>;

/// Registers further signals to catch.
pub struct Handle(signal_hook::iterator::Handle);

impl Handle {
    /// Also catches the signals that elements of a router watch.
    pub fn catch(&self, shared: &Shared) {
        for signal in watched(shared) {
            // If a signal cannot be caught, this is not an error. The element never receives such a signal.
            let _ = self.0.add_signal(signal);
        }
    }
}

/// Whether SIGINT and SIGTERM end the process at once.
static AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Makes SIGINT and SIGTERM end the process at once, until [`watch`] passes them to a router. A process that
/// a shell starts in the background ignores SIGINT. Without this function, such a process could not be
/// interrupted while it waits for a pipe to be opened.
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

/// Passes signals to the current router. The first and second SIGINT or SIGTERM request a stop, and the third
/// ends the router. The fourth ends the process: a worker that is blocked in a system call, for example on a pipe,
/// may not see that the router has ended. Signals that elements watch go to these elements. SIGHUP calls `hangup`,
/// unless an element watches it.
///
/// With `patient`, requests to stop are counted as in Click: a SIGINT or SIGTERM ends the router only if two
/// earlier requests are still unanswered.
pub fn watch(running: &Arc<Running>, hangup: Option<Hangup>, patient: bool) -> std::io::Result<Handle> {
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
            // During a hot swap this may be the old router. It passes requests to stop on to the new one.
            let Some(shared) = running.current() else { continue };
            match signal {
                _ if taken => {}
                SIGHUP => again(hangup.clone()),
                SIGINT | SIGTERM => {
                    asked = if patient { shared.requests() + 1 } else { asked + 1 };
                    if asked > 2 {
                        shared.end();
                        set_at_once(true);
                    } else {
                        castanet_element::Messages::stop(shared.as_ref(), 1)
                    }
                }
                // An element of an earlier configuration watched this signal; now no element does.
                _ => {}
            }
        }
    })?;
    Ok(handle)
}

/// Runs `hangup` on a separate thread. `hangup` may take long, and this thread must handle stop signals meanwhile.
fn again(hangup: Option<Arc<dyn Fn() + Send + Sync>>) {
    if let Some(f) = hangup {
        // If no thread can be started, the file is not reread, and no message appears.
        let _ = std::thread::Builder::new().name("hangup".into()).spawn(move || f());
    }
}
