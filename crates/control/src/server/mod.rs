// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers: one thread each, whatever the number of clients.

mod peer;
mod run;

use crate::chatter::Bell;
use crate::place::{Listening, SocketFile};
use crate::session::Rules;
use crate::{Limits, Place, PlaceError};
use castanet_element::Remote;
use run::Loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a server that ends with its router is given to send the last replies.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a server does for its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Calls handlers for them.
    Control(Rules),
    /// Shows them messages.
    Chatter {
        /// The channel whose messages they hear.
        channel: String,
        /// Whether they are greeted.
        greeting: bool,
        /// Whether the messages of a channel that is not the default one are shown by `report` too.
        aloud: bool,
    },
}

/// Where a server says what happens, a line at a time.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// How a server behaves.
#[derive(Clone)]
pub struct Settings {
    /// What it does.
    pub service: Service,
    /// What clients may ask of it.
    pub limits: Limits,
    /// What it is called in reports.
    pub name: String,
    /// Whether clients that come and go are reported.
    pub verbose: bool,
    /// Who is told.
    pub report: Report,
}

impl Settings {
    /// A control server that reports nothing.
    pub fn control(rules: Rules) -> Settings {
        Settings {
            service: Service::Control(rules),
            limits: Limits::default(),
            name: String::new(),
            verbose: false,
            report: Arc::new(|_| {}),
        }
    }
}

/// What a server and its thread have in common.
struct Common {
    bell: Arc<Bell>,
    stop: AtomicBool,
    changed: AtomicBool,
    settings: Mutex<Settings>,
    clients: AtomicUsize,
    lost: AtomicU64,
    /// How often the thread has looked at its descriptors.
    rounds: AtomicU64,
}

/// A server. It ends when dropped.
pub struct Server {
    common: Arc<Common>,
    remote: Arc<dyn Remote>,
    port: Option<u16>,
    file: Option<SocketFile>,
    ended: Receiver<()>,
}

impl Server {
    /// Listens, and talks to clients on a thread of its own.
    ///
    /// # Errors
    /// When the place is taken, or the system has no descriptor or thread left.
    pub fn start(place: &Place, settings: Settings, remote: Arc<dyn Remote>) -> Result<Server, PlaceError> {
        let failed = |e: std::io::Error| PlaceError::System(place.to_string(), e);
        let Listening { fd, connected, port, file } = place.listen()?;
        let common = Arc::new(Common {
            bell: Arc::new(Bell::new().map_err(failed)?),
            stop: AtomicBool::new(false),
            changed: AtomicBool::new(false),
            settings: Mutex::new(settings),
            clients: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
        });
        let mut serving = Loop::new(common.clone(), fd, connected, remote.clone()).map_err(failed)?;
        let (end, ended) = channel::<()>();
        let thread = std::thread::Builder::new().name("control".into());
        let started = thread.spawn(move || {
            serving.run();
            drop(end);
        });
        started.map_err(failed)?;
        Ok(Server { common, remote, port, file, ended })
    }

    /// Changes how it behaves, also towards clients that are there.
    pub fn set(&self, settings: Settings) {
        *self.common.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        self.common.changed.store(true, Ordering::SeqCst);
        self.common.bell.ring();
    }
    /// The TCP port that it listens on.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
    /// Clients that are there.
    pub fn clients(&self) -> usize {
        self.common.clients.load(Ordering::Relaxed)
    }
    /// Messages that clients lost because they did not take them: counted once for each client.
    pub fn lost(&self) -> u64 {
        self.common.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.file = None;
        self.common.stop.store(true, Ordering::SeqCst);
        self.common.bell.ring();
        // When the router has ended no call waits for it, and whoever stopped it wants to hear that it did. In a hot swap the
        // call that led here may be a client's, so nobody waits.
        if self.remote.has_ended() {
            let _ = self.ended.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests;
