// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers. Each server has one thread for all its clients.

mod peer;
mod run;

use crate::address::{Listening, SocketFile};
use crate::chatter::Waker;
use crate::session::Rules;
use crate::{Limits, ListenAddress, ListenError};
use castanet_element::Remote;
use parking_lot::Mutex;
use run::Loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a server may take to send its last replies when the router ends.
const PATIENCE: Duration = Duration::from_millis(500);

/// The service of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Clients call handlers.
    Control(Rules),
    /// Clients receive messages.
    Chatter {
        /// The channel of the messages.
        channel: String,
        /// Whether to send the greeting.
        greeting: bool,
        /// Whether the server also prints the messages, by the function `report` of its settings. Ignored for the
        /// default channel, whose messages go to standard error anyway.
        aloud: bool,
    },
}

/// A function that prints one line of a server's messages, such as that a client has connected.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// The settings of a server.
#[derive(Clone)]
pub struct Settings {
    /// What clients can do: call handlers, or receive messages.
    pub service: Service,
    /// The limits for clients.
    pub limits: Limits,
    /// The name of the server in the lines that the server passes to `report`.
    pub name: String,
    /// Whether to report each connection.
    pub verbose: bool,
    /// Prints the messages of the server.
    pub report: Report,
}

impl Settings {
    /// Settings of a control server that prints nothing.
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

/// State that a server and its thread share.
struct Common {
    waker: Arc<Waker>,
    stop: AtomicBool,
    changed: AtomicBool,
    settings: Mutex<Settings>,
    clients: AtomicUsize,
    lost: AtomicU64,
    /// The number of epoll calls of the thread.
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
    /// Listens, and serves clients on a new thread.
    ///
    /// # Errors
    /// When the address is in use, or no descriptor or thread is left.
    pub fn start(
        place: &ListenAddress,
        settings: Settings,
        remote: Arc<dyn Remote>,
    ) -> Result<Server, ListenError> {
        let failed = |e: std::io::Error| ListenError::System(place.to_string(), e);
        let Listening { fd, connected, port, file } = place.listen()?;
        let common = Arc::new(Common {
            waker: Arc::new(Waker::new().map_err(failed)?),
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

    /// Changes the settings, for current clients too.
    pub fn set(&self, settings: Settings) {
        *self.common.settings.lock() = settings;
        self.common.changed.store(true, Ordering::SeqCst);
        self.common.waker.wake();
    }
    /// The TCP port on which the server listens; `None` for other sockets.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
    /// The number of connected clients.
    pub fn clients(&self) -> usize {
        self.common.clients.load(Ordering::Relaxed)
    }
    /// The number of messages that clients lost because they read too slowly, counted per client.
    pub fn lost(&self) -> u64 {
        self.common.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.file = None;
        self.common.stop.store(true, Ordering::SeqCst);
        self.common.waker.wake();
        // If the router has ended, wait until the client that stopped it has its reply. In a hot swap this
        // runs within a client's call, so waiting for the server would be a deadlock.
        if self.remote.has_ended() {
            let _ = self.ended.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests;
