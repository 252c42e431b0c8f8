// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP and Unix datagram sockets. The peer is either fixed or the sender of the last datagram.

use super::address::File;
use super::{Endpoint, Options, Pair, Received, Sent, SocketAddress, SocketError, again};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A socket for datagrams.
#[derive(Debug)]
pub struct Datagrams {
    _file: Option<File>,
    pair: Pair,
    /// Whether the peer is fixed.
    connected: bool,
    unix: bool,
    /// The current peer: the given one, or the sender of the last datagram.
    peer: Option<SocketAddrAny>,
    /// Datagrams from this address are refused: a multicast socket sets its own address here.
    pub(super) refused: Option<SocketAddrV4>,
}

impl Datagrams {
    pub(super) fn open(family: AddressFamily, options: &Options) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
        options.apply(&fd)?;
        Ok(fd)
    }
    pub(super) fn of(fd: OwnedFd, connected: bool, file: Option<File>) -> Result<Datagrams, Errno> {
        Ok(Datagrams { pair: Pair::new(fd)?, connected, unix: false, peer: None, refused: None, _file: file })
    }

    /// Receives datagrams at an address, and sends to the sender of the last datagram.
    ///
    /// # Errors
    /// When the kernel refuses the address.
    pub fn bind(address: &SocketAddress, options: &Options) -> Result<Datagrams, SocketError> {
        let what = || format!("open a socket for {address}");
        let fd = Datagrams::open(address.family(), options).map_err(SocketError::of(what))?;
        let file = address.bind(&fd, SocketType::DGRAM)?;
        let unix = address.family() == AddressFamily::UNIX;
        let socket = Datagrams::of(fd, false, Some(file)).map_err(SocketError::of(what))?;
        Ok(Datagrams { unix, ..socket })
    }

    /// Sends datagrams to an address, from a local address if one is given, and receives replies.
    ///
    /// # Errors
    /// When the kernel refuses one of the addresses.
    pub fn connect(
        address: &SocketAddress,
        local: Option<&SocketAddress>,
        options: &Options,
    ) -> Result<Datagrams, SocketError> {
        let what = || format!("connect to {address}");
        let fd = Datagrams::open(address.family(), options).map_err(SocketError::of(what))?;
        let file = local.map(|l| l.bind(&fd, SocketType::DGRAM)).transpose()?;
        rustix::net::connect(&fd, &address.to_kernel()?).map_err(SocketError::of(what))?;
        Datagrams::of(fd, true, file).map_err(SocketError::of(what))
    }

    /// The local address, with the port that the kernel chose.
    pub fn address(&self) -> Option<SocketAddrV4> {
        SocketAddrV4::try_from(rustix::net::getsockname(&self.pair.read).ok()?).ok()
    }

    /// Whether there is a peer.
    pub fn has_peer(&self) -> bool {
        self.connected || self.peer.is_some()
    }

    fn try_send(&self, data: &[u8]) -> Option<Result<usize, Errno>> {
        Some(match (&self.peer, self.connected) {
            (_, true) => again(|| rustix::net::send(&self.pair.write, data, SendFlags::NOSIGNAL)),
            (Some(to), _) => again(|| rustix::net::sendto(&self.pair.write, data, SendFlags::NOSIGNAL, to)),
            (None, _) => return None,
        })
    }
}

impl Endpoint for Datagrams {
    fn receive(&mut self, into: &mut [u8], allowed: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received {
        let got = again(|| rustix::net::recvfrom(&self.pair.read, &mut *into, RecvFlags::TRUNC));
        let (got, whole, from) = match got {
            Ok((got, whole, from)) => (got, whole, from),
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(e) => return Received::Trouble(e.into()),
        };
        let inet = from.clone().and_then(|a| SocketAddrV4::try_from(a).ok());
        if inet.is_some_and(|a| self.refused == Some(a) || !allowed(*a.ip())) {
            return Received::Refused;
        }
        // No datagram can be sent to an unnamed Unix socket, so it does not become the peer.
        if !self.connected && (inet.is_some() || from.as_ref().is_some_and(has_name)) {
            self.peer = from;
        }
        Received::Data(got, whole)
    }
    fn send(&mut self, data: &[u8]) -> Sent {
        let Some(mut done) = self.try_send(data) else { return Sent::NoPeer };
        if done == Err(Errno::CONNREFUSED) && !self.unix {
            // The error may belong to an earlier datagram (ip(7)), so try to send this datagram again.
            done = self.try_send(data).unwrap_or(done);
        }
        match done {
            Ok(n) => Sent::Bytes(n),
            // If the peer is not fixed, the descriptor of a Unix socket does not signal space at the other end.
            Err(Errno::AGAIN) if self.unix && !self.connected => Sent::Later,
            Err(Errno::AGAIN) => Sent::Full,
            Err(Errno::NOBUFS | Errno::NOMEM) => Sent::Later,
            Err(e) => Sent::Rejected(e.into()),
        }
    }
    fn readable(&self) -> Option<Arc<OwnedFd>> {
        Some(self.pair.read.clone())
    }
    fn writable(&self) -> Option<Arc<OwnedFd>> {
        Some(self.pair.write.clone())
    }
}

fn has_name(a: &SocketAddrAny) -> bool {
    rustix::net::SocketAddrUnix::try_from(a.clone()).is_ok_and(|u| !u.is_unnamed())
}
