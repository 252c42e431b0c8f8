// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets that never block: what cannot be done now is said to be so, and by which descriptor it will be told.
//!
//! - [`Listener`] and [`Stream`]: TCP and Unix streams.
//! - [`Datagrams`]: UDP and Unix datagrams, to one peer or to whoever spoke last.
//! - [`Multicast`]: UDP to and from a group.
//! - [`RawIp`]: IP packets of one protocol.
//!
//! Data cross an [`Endpoint`] in pieces that the caller chooses; nothing is kept here, so nothing can be lost here.

mod datagram;
mod multicast;
mod place;
mod raw;
mod stream;
#[cfg(test)]
mod tests;

pub use datagram::Datagrams;
pub use multicast::Multicast;
pub use place::Place;
pub use raw::RawIp;
pub(crate) use raw::open_raw_socket;
pub use stream::{Accepted, Listener, Stream};

use rustix::io::Errno;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use thiserror::Error;

/// Why a socket could not be opened.
#[derive(Debug, Error)]
#[error("cannot {what}: {}{}", words(source), mend(*source))]
pub struct SocketError {
    /// What was tried: `bind to 10.0.0.1:53`.
    what: String,
    /// What the system said.
    source: Errno,
}

impl SocketError {
    /// Makes an error of what the system said about something that was tried.
    fn of(what: impl FnOnce() -> String) -> impl FnOnce(Errno) -> SocketError {
        move |source| SocketError { what: what(), source }
    }
    /// What the system said.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// The system's words without Rust's ` (os error N)`.
fn words(source: &Errno) -> String {
    let text = io::Error::from(*source).to_string();
    text.split_once(" (os error ").map_or(text.clone(), |t| t.0.to_string())
}

/// How to mend what the system complains of.
fn mend(source: Errno) -> &'static str {
    match source {
        Errno::ACCESS | Errno::PERM => {
            " (it needs root, or CAP_NET_BIND_SERVICE for low ports, CAP_NET_RAW for raw IP)"
        }
        Errno::ADDRINUSE => " (another program or element has it; 'ss -lnp' shows which)",
        Errno::ADDRNOTAVAIL => " (no interface of this host has that address)",
        Errno::CONNREFUSED => " (nobody listens there)",
        Errno::NODEV => " (no interface for multicast; give SOURCEIP)",
        _ => "",
    }
}

/// Sizes of the system's buffers and the like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Bytes that the system keeps until they are received; none for its default.
    pub rcvbuf: Option<usize>,
    /// Bytes that the system keeps until they are sent; none for its default.
    pub sndbuf: Option<usize>,
    /// Whether TCP sends small pieces at once (no Nagle algorithm).
    pub nodelay: bool,
}

impl Options {
    fn apply(&self, fd: &OwnedFd) -> Result<(), Errno> {
        if let Some(n) = self.rcvbuf {
            rustix::net::sockopt::set_socket_recv_buffer_size(fd, n)?;
        }
        if let Some(n) = self.sndbuf {
            rustix::net::sockopt::set_socket_send_buffer_size(fd, n)?;
        }
        Ok(())
    }
}

/// What came of one try to receive.
#[derive(Debug)]
pub enum Received {
    /// So many bytes are in the buffer, of so many that the datagram had.
    Data(usize, usize),
    /// A datagram from somebody who is not allowed.
    Refused,
    /// Nothing now: the descriptor tells when.
    Nothing,
    /// The system tells of an earlier failure; there may be data all the same.
    Trouble(io::Error),
    /// The other end has gone, in order or not.
    Closed(Option<io::Error>),
}

/// What came of one try to send.
#[derive(Debug)]
pub enum Sent {
    /// So many bytes went: the whole datagram, or a part of a stream's data.
    Bytes(usize),
    /// The system has no room: the descriptor tells when.
    Full,
    /// The system has no room, and no descriptor tells when it has.
    Later,
    /// There is nobody to send to yet.
    NoPeer,
    /// This piece cannot be sent; the next may.
    Rejected(io::Error),
    /// The other end has gone.
    Closed(io::Error),
}

/// What packets are received from and sent to.
pub trait Endpoint {
    /// Receives one piece. `allowed` is asked whether datagrams from an address are taken.
    fn receive(&mut self, into: &mut [u8], allowed: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received;
    /// Sends one piece, or a part of it on a stream.
    fn send(&mut self, data: &[u8]) -> Sent;
    /// The descriptor that becomes readable when there is something to receive.
    fn readable(&self) -> Option<Arc<OwnedFd>>;
    /// The descriptor that becomes writable when there is room; another one than [`Endpoint::readable`] gives.
    fn writable(&self) -> Option<Arc<OwnedFd>>;
}

/// A descriptor and a second one for the same socket, so that one can be waited for to read and the other to write.
#[derive(Clone, Debug)]
struct Pair {
    read: Arc<OwnedFd>,
    write: Arc<OwnedFd>,
}

impl Pair {
    fn new(fd: OwnedFd) -> Result<Pair, Errno> {
        let write = rustix::io::fcntl_dupfd_cloexec(&fd, 0)?;
        Ok(Pair { read: Arc::new(fd), write: Arc::new(write) })
    }
}

/// Tries again what a signal interrupted.
fn again<T>(mut f: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match f() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
