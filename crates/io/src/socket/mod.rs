// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-blocking sockets. If an operation cannot proceed, its result reports this, and a descriptor signals when to
//! retry.
//!
//! - [`Listener`] and [`Stream`]: TCP and Unix streams.
//! - [`Datagrams`]: UDP and Unix datagrams.
//! - [`Multicast`]: UDP to and from a group.
//! - [`RawIp`]: IP packets of one protocol.
//!
//! An [`Endpoint`] sends or receives one piece of data per call: a datagram, or a part of a stream. It has no buffer of
//! its own, so it loses no data.

mod address;
mod datagram;
mod multicast;
mod raw;
mod stream;
#[cfg(test)]
mod tests;

pub use address::SocketAddress;
pub use datagram::Datagrams;
pub use multicast::Multicast;
pub use raw::RawIp;
pub(crate) use raw::open_raw_socket;
pub use stream::{Accepted, Listener, Stream};

use crate::error::system_text;
use rustix::io::Errno;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use thiserror::Error;

/// Why a socket could not be opened.
#[derive(Debug, Error)]
#[error("cannot {what}: {}{}", system_text(&io::Error::from(*errno)), mend(*errno))]
pub struct SocketError {
    /// The operation that failed, for example `bind to 10.0.0.1:53`.
    what: String,
    /// The error of the kernel.
    errno: Errno,
    /// The kernel's error, as the cause of this error. Callers add their own advice to every error whose cause is a
    /// kernel error. So the cause is `None` if the text of this error already has advice.
    source: Option<io::Error>,
}

impl SocketError {
    /// Returns a function that makes a `SocketError` for operation `what` from an error of the kernel.
    fn of(what: impl FnOnce() -> String) -> impl FnOnce(Errno) -> SocketError {
        move |errno| {
            let source = mend(errno).is_empty().then(|| errno.into());
            SocketError { what: what(), errno, source }
        }
    }
    /// The kind of the kernel's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.errno.kind()
    }
}

/// Wraps this error in an [`io::Error`] of the same kind.
impl From<SocketError> for io::Error {
    fn from(e: SocketError) -> Self {
        io::Error::new(e.kind(), e)
    }
}

/// Advice for an error of the kernel, to append to its text; empty if there is none.
fn mend(source: Errno) -> &'static str {
    match source {
        Errno::ACCESS | Errno::PERM => {
            " (it needs root, or CAP_NET_BIND_SERVICE for low ports, CAP_NET_RAW for raw IP)"
        }
        Errno::ADDRINUSE => " (another program or element has it; 'ss -lnp' shows which)",
        Errno::ADDRNOTAVAIL => " (no interface of this host has that address)",
        Errno::CONNREFUSED => " (no program listens there)",
        Errno::NODEV => " (no interface for multicast; give SOURCEIP)",
        _ => "",
    }
}

/// Options of sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Size of the kernel's receive buffer, in bytes; `None` for the default.
    pub rcvbuf: Option<usize>,
    /// Size of the kernel's send buffer, in bytes; `None` for the default.
    pub sndbuf: Option<usize>,
    /// Whether TCP sends small pieces without delay (TCP_NODELAY).
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

/// The result of receiving.
#[derive(Debug)]
pub enum Received {
    /// Data: the number of bytes in the buffer, and the length of the whole datagram. Both are equal for a stream.
    Data(usize, usize),
    /// A datagram from an address that is not allowed.
    Refused,
    /// No data are waiting. The descriptor becomes readable when data arrive.
    Nothing,
    /// An error of an earlier operation. Data may be waiting nevertheless.
    Trouble(io::Error),
    /// The other end has closed the connection, normally or with an error.
    Closed(Option<io::Error>),
}

/// The result of sending.
#[derive(Debug)]
pub enum Sent {
    /// The number of bytes sent: the whole datagram, or a part of a stream's data.
    Bytes(usize),
    /// The send buffer is full. The descriptor becomes writable when there is space.
    Full,
    /// The send buffer is full, and no descriptor signals when there is space: retry after a while.
    Later,
    /// There is no peer yet.
    NoPeer,
    /// This piece of data cannot be sent, but later pieces may be accepted.
    Rejected(io::Error),
    /// The other end has closed the connection.
    Closed(io::Error),
}

/// A socket that packets are received from and sent to.
pub trait Endpoint {
    /// Receives one datagram, or a part of a stream. `allowed` decides whether datagrams from an address are
    /// accepted.
    fn receive(&mut self, into: &mut [u8], allowed: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received;
    /// Sends one datagram, or as many bytes of a stream as possible.
    fn send(&mut self, data: &[u8]) -> Sent;
    /// The descriptor that becomes readable when there is something to receive; `None` if the socket only sends.
    fn readable(&self) -> Option<Arc<OwnedFd>>;
    /// The descriptor that becomes writable when there is space. It differs from the
    /// descriptor of [`Endpoint::readable`], so that epoll can watch both. `None` if the socket only receives.
    fn writable(&self) -> Option<Arc<OwnedFd>>;
}

/// A descriptor and its duplicate, so that epoll can watch one for reading and the other for writing.
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

/// Retries a call that a signal interrupted.
fn again<T>(mut f: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match f() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
