// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP and Unix streams: listeners and connections.

use super::address::File;
use super::{Endpoint, Options, Pair, Received, Sent, SocketAddress, SocketError, again};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketFlags, SocketType, sockopt,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn open(address: &SocketAddress, options: &Options) -> Result<OwnedFd, SocketError> {
    let what = || format!("open a socket for {address}");
    let fd = rustix::net::socket_with(address.family(), SocketType::STREAM, FLAGS, None)
        .map_err(SocketError::of(what))?;
    options.apply(&fd).map_err(SocketError::of(what))?;
    Ok(fd)
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    _file: File,
    fd: Arc<OwnedFd>,
    options: Options,
    inet: bool,
}

/// The result of accepting a connection.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, and the address of the client if it has one.
    Stream(Stream, Option<SocketAddrV4>),
    /// A client that is not allowed was disconnected.
    Refused(Option<SocketAddrV4>),
    /// No client is waiting.
    Nothing,
    /// The kernel could not accept the connection, for example because it has no descriptor or memory left.
    Failed(io::Error),
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// When the kernel refuses the address.
    pub fn new(address: &SocketAddress, options: &Options) -> Result<Listener, SocketError> {
        let fd = open(address, options)?;
        let inet = address.family() == AddressFamily::INET;
        if inet {
            // Allow the port to be bound again right after a router with connections has stopped.
            sockopt::set_socket_reuseaddr(&fd, true)
                .map_err(SocketError::of(|| format!("bind to {address}")))?;
        }
        let file = address.bind(&fd, SocketType::STREAM)?;
        rustix::net::listen(&fd, 16).map_err(SocketError::of(|| format!("listen at {address}")))?;
        Ok(Listener { fd: Arc::new(fd), options: *options, inet, _file: file })
    }

    /// The local address, with the port that the kernel chose.
    pub fn address(&self) -> Option<SocketAddrV4> {
        SocketAddrV4::try_from(rustix::net::getsockname(&self.fd).ok()?).ok()
    }

    /// The descriptor that becomes readable when a client is waiting.
    pub fn readable(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }

    /// Accepts a connection, if a client is waiting and `allowed` admits its address.
    pub fn accept(&mut self, mut allowed: impl FnMut(Ipv4Addr) -> bool) -> Accepted {
        let (fd, from) = match again(|| rustix::net::acceptfrom_with(&self.fd, FLAGS)) {
            Ok(got) => got,
            // No client is waiting, or the client has closed the connection before it was accepted (accept(2)).
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::PROTO) => return Accepted::Nothing,
            Err(e) => return Accepted::Failed(e.into()),
        };
        let from = from.and_then(|a: SocketAddrAny| SocketAddrV4::try_from(a).ok());
        if from.is_some_and(|a| !allowed(*a.ip())) {
            return Accepted::Refused(from);
        }
        match self.set_up(fd) {
            Ok(stream) => Accepted::Stream(stream, from),
            Err(e) => Accepted::Failed(e.into()),
        }
    }

    fn set_up(&self, fd: OwnedFd) -> Result<Stream, Errno> {
        self.options.apply(&fd)?;
        if self.inet {
            sockopt::set_tcp_nodelay(&fd, self.options.nodelay)?;
        }
        Ok(Stream { pair: Pair::new(fd)?, _file: None })
    }
}

/// One connection.
#[derive(Debug)]
pub struct Stream {
    _file: Option<File>,
    pair: Pair,
}

impl Stream {
    /// Starts to connect to an address, from a local address if one is given. [`Stream::finish`] waits for
    /// the connection.
    ///
    /// # Errors
    /// When the kernel returns an error immediately.
    pub fn connect(
        address: &SocketAddress,
        local: Option<&SocketAddress>,
        options: &Options,
    ) -> Result<Stream, SocketError> {
        let fd = open(address, options)?;
        let what = || format!("connect to {address}");
        if address.family() == AddressFamily::INET {
            sockopt::set_tcp_nodelay(&fd, options.nodelay).map_err(SocketError::of(what))?;
        }
        let file = local.map(|l| l.bind(&fd, SocketType::STREAM)).transpose()?;
        match rustix::net::connect(&fd, &address.to_kernel()?) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(e) => return Err(SocketError::of(what)(e)),
        }
        Ok(Stream { pair: Pair::new(fd).map_err(SocketError::of(what))?, _file: file })
    }

    /// Waits for at most `wait`, and returns whether the connection is established.
    ///
    /// # Errors
    /// When connecting failed.
    pub fn finish(&self, wait: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.pair.write, PollFlags::OUT)];
        let time = Timespec {
            tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        if again(|| poll(&mut fds, Some(&time)))? == 0 {
            return Ok(false);
        }
        sockopt::socket_error(&self.pair.read)??;
        Ok(true)
    }

    /// Whether the other end has closed. Data that wait to be read stay in the socket.
    pub fn is_over(&self) -> bool {
        match again(|| rustix::net::recv(&self.pair.read, &mut [0_u8; 1], RecvFlags::PEEK)) {
            Ok((_, n)) => n == 0,
            Err(e) => e != Errno::AGAIN,
        }
    }

    /// Whether data wait to be read.
    pub fn has_data(&self) -> bool {
        let got = again(|| rustix::net::recv(&self.pair.read, &mut [0_u8; 1], RecvFlags::PEEK));
        got.is_ok_and(|(_, n)| n > 0)
    }

    /// Shuts down the sending side.
    pub fn end(&self) {
        // An error means that the other end has closed already.
        let _ = rustix::net::shutdown(&self.pair.read, Shutdown::Write);
    }
}

impl Endpoint for Stream {
    fn receive(&mut self, into: &mut [u8], _: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received {
        match again(|| rustix::net::recv(&self.pair.read, &mut *into, RecvFlags::empty())) {
            Ok((_, 0)) => Received::Closed(None),
            Ok((_, n)) => Received::Data(n, n),
            Err(Errno::AGAIN) => Received::Nothing,
            Err(e) => Received::Closed(Some(e.into())),
        }
    }
    fn send(&mut self, data: &[u8]) -> Sent {
        match again(|| rustix::net::send(&self.pair.write, data, SendFlags::NOSIGNAL)) {
            Ok(n) => Sent::Bytes(n),
            Err(Errno::AGAIN) => Sent::Full,
            Err(Errno::NOBUFS | Errno::NOMEM) => Sent::Later,
            Err(e) => Sent::Closed(e.into()),
        }
    }
    fn readable(&self) -> Option<Arc<OwnedFd>> {
        Some(self.pair.read.clone())
    }
    fn writable(&self) -> Option<Arc<OwnedFd>> {
        Some(self.pair.write.clone())
    }
}
