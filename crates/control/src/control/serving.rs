// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of ControlSocket and ChatterSocket: addresses, retries, and handover in a hot swap.

use crate::server::{Report, Service, Settings};
use crate::{Limits, ListenAddress, Server};
use castanet_classify::names;
use castanet_element::Remote;
use castanet_element::prelude::*;
use castanet_element::spec::bytes;
use castanet_wire::ipv4::protocol::TCP;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Nanoseconds between attempts to listen.
const PAUSE: i64 = 1_000_000_000;

/// The kind of address on which a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// A TCP port.
    Tcp,
    /// A Unix socket.
    Unix,
    /// A descriptor that the process was started with.
    Socket,
}

impl ArgValue for ListenerKind {
    const TYPE: &'static str = "TCP, UNIX or SOCKET";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<ListenerKind, ValueError> {
        match text.to_ascii_uppercase().as_str() {
            "TCP" => Ok(ListenerKind::Tcp),
            "UNIX" => Ok(ListenerKind::Unix),
            "SOCKET" => Ok(ListenerKind::Socket),
            _ => Err(ValueError::not_one_of(text, &["TCP", "UNIX", "SOCKET"])),
        }
    }
}

/// Parses the address in the arguments: a port, `7777+` for the first free port from 7777 on, a file, or a
/// descriptor.
pub(super) fn place(
    kind: ListenerKind,
    text: &str,
    anywhere: bool,
    cx: &BuildCx<'_>,
) -> Result<ListenAddress, ConfigError> {
    // Errors use the declared name of the argument, PORT, even if the value is a file name or a descriptor.
    let wrong = |meaning, e: ValueError| cx.wrong_value("PORT", e.under(meaning));
    Ok(match kind {
        ListenerKind::Tcp => {
            let (number, following) = match text.strip_suffix('+') {
                Some(n) => (n, true),
                None => (text, false),
            };
            let named = || cx.names.port(cx.scope, number, TCP).or_else(|| names::port_number(number));
            let port = u16::parse(number, &cx.arg_cx()).or_else(|e| named().ok_or(e));
            let port = port.map_err(|e| wrong("PORT", e))?;
            let address = if anywhere { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
            ListenAddress::Tcp { address: IpAddr::V4(address), port, following }
        }
        ListenerKind::Unix => {
            let name = Filename::of_file(text, &cx.arg_cx()).map_err(|e| wrong("FILENAME", e))?;
            ListenAddress::Unix(name.0.into())
        }
        ListenerKind::Socket => {
            let number = i32::parse(text, &cx.arg_cx()).map_err(|e| wrong("FD", e))?;
            ListenAddress::Descriptor(number)
        }
    })
}

/// The server of an element, and what the element needs to start the server or to try again to listen.
pub(super) struct Serving {
    place: ListenAddress,
    pub(super) settings: Settings,
    server: Option<Server>,
    remote: Option<Arc<dyn Remote>>,
    retries: u32,
    left: u32,
    warnings: bool,
    /// Why the last attempt to listen failed.
    failure: Option<ElementError>,
}

impl Serving {
    /// Prepares a server for an address, without listening yet. While the address is in use, the element tries to
    /// listen up to `retries` more times. If `warnings` is true, each failed attempt is reported.
    pub(super) fn new(
        place: ListenAddress,
        service: Service,
        retries: u32,
        warnings: bool,
        cx: &BuildCx<'_>,
    ) -> Serving {
        let report: Report = Arc::new(|text: &str| {
            // The error is ignored: if standard error is closed, there is no other place for a report.
            let _ = std::io::stderr().lock().write_all(&bytes::line(text));
        });
        let name = format!("{} :: {}", cx.name, cx.written_class);
        let settings = Settings { service, limits: Limits::default(), name, verbose: false, report };
        Serving {
            place,
            settings,
            server: None,
            remote: None,
            retries,
            left: retries,
            warnings,
            failure: None,
        }
    }

    /// The key of the address. In a hot swap, a new element with the same key takes over the server.
    pub(super) fn key(&self) -> String {
        self.place.key()
    }
    /// The server; `None` while the element does not listen.
    pub(super) fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }
    /// The file of a Unix socket; empty for other addresses.
    pub(super) fn file(&self) -> String {
        match &self.place {
            ListenAddress::Unix(path) => path.display().to_string(),
            _ => String::new(),
        }
    }

    fn start(&mut self) -> Result<(), ElementError> {
        // An element without a router, as in unit tests, does not listen.
        let Some(remote) = &self.remote else { return Ok(()) };
        let server = Server::start(&self.place, self.settings.clone(), remote.clone());
        self.server = Some(server.map_err(ElementError::refused)?);
        Ok(())
    }

    /// Listens for clients of a router.
    #[cfg(test)]
    pub(super) fn listen_for(&mut self, remote: Arc<dyn Remote>) -> Result<(), ElementError> {
        self.remote = Some(remote);
        self.start()
    }

    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.remote = cx.remote();
        if cx.inherits() {
            return Ok(());
        }
        match self.start() {
            Err(e) if self.retries > 0 => {
                self.failure = Some(e);
                let now = cx.now();
                cx.set_timer(0, now.saturating_add(PAUSE));
                Ok(())
            }
            done => done,
        }
    }

    /// Tries to listen again. If the last attempt fails, the router stops.
    pub(super) fn retry(&mut self, cx: &mut Cx<'_>) {
        if self.server.is_some() {
            return;
        }
        if let (Some(e), true) = (self.failure.take(), self.warnings) {
            cx.message(&format!("{}: {e}; trying again", cx.declaration()));
        }
        let Err(e) = self.start() else { return };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            cx.message(&format!("{}: {e}; giving up", cx.declaration()));
            cx.stop(1);
        } else {
            self.failure = Some(e);
            let now = cx.now();
            cx.set_timer(0, now.saturating_add(PAUSE));
        }
    }

    /// Takes over the server of another element, including its clients.
    pub(super) fn take_over(&mut self, old: &mut Serving, cx: &mut Cx<'_>) {
        if let Some(s) = old.server.take() {
            s.set(self.settings.clone());
            self.server = Some(s);
        } else if self.server.is_none() {
            // The old element was still trying to listen, so the new one tries immediately.
            self.left = self.retries.max(1);
            let now = cx.now();
            cx.set_timer(0, now);
        }
    }

    /// Ends the server.
    pub(super) fn end(&mut self) {
        self.server = None;
    }
}
