// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals: those that end the router, those that elements watch, and the one that has the configuration read again.

use castanet_runtime::{Running, Shared};
use signal_hook::consts::{FORBIDDEN, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

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

fn watched(shared: &Shared) -> impl Iterator<Item = i32> {
    shared.signals.iter().map(|s| s.1).filter(|s| !FORBIDDEN.contains(s))
}

/// Lets signals reach the router of the moment: interrupt and terminate ask it to stop, a third time of asking ends it; signals
/// that elements watch go to them; without one that watches it, hangup does what `hangup` says.
pub fn watch(running: &Arc<Running>, hangup: Option<Hangup>) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup.is_some().then_some(SIGHUP)))?;
    let handle = Handle(signals.handle());
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
                        shared.end()
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
