// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multicast: UDP to and from a group.

use super::{Datagrams, Endpoint, Options, Received, Sent, SocketAddress, SocketError};
use rustix::net::{AddressFamily, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A multicast group that datagrams are sent to and received from.
#[derive(Debug)]
pub struct Multicast {
    input: Option<Datagrams>,
    output: Option<Datagrams>,
}

impl Multicast {
    /// Opens a socket that receives datagrams to `group` if `receive` is set, and a socket that sends to `group` if
    /// `send` is set. `source` holds the address of the interface and the source port. With `loopback` this host also
    /// receives its own datagrams. If `source` has an address, the receiving socket refuses the datagrams of the
    /// sending socket.
    ///
    /// # Errors
    /// When the kernel refuses the group or the source.
    pub fn new(
        group: SocketAddrV4,
        source: SocketAddrV4,
        (receive, send): (bool, bool),
        loopback: bool,
        options: &Options,
    ) -> Result<Multicast, SocketError> {
        let mut input = receive.then(|| Multicast::input(group, source, options)).transpose()?;
        let output = send.then(|| Multicast::output(group, source, loopback, options)).transpose()?;
        if let (Some(input), Some(output), false) = (&mut input, &output, source.ip().is_unspecified()) {
            input.refused = output.address();
        }
        Ok(Multicast { input, output })
    }

    fn input(group: SocketAddrV4, source: SocketAddrV4, options: &Options) -> Result<Datagrams, SocketError> {
        let fail = || SocketError::of(|| format!("join the group {group}"));
        let fd = Datagrams::open(AddressFamily::INET, options).map_err(fail())?;
        // Allow other programs on this host to bind the same group and port.
        sockopt::set_socket_reuseaddr(&fd, true).map_err(fail())?;
        // Bind to the address of the group. Otherwise the socket could receive datagrams to other groups that use
        // the same port.
        let file = SocketAddress::Inet(group).bind(&fd, rustix::net::SocketType::DGRAM)?;
        sockopt::set_ip_add_membership(&fd, group.ip(), source.ip()).map_err(fail())?;
        Datagrams::of(fd, false, Some(file)).map_err(fail())
    }

    fn output(
        group: SocketAddrV4,
        source: SocketAddrV4,
        loopback: bool,
        options: &Options,
    ) -> Result<Datagrams, SocketError> {
        let fail = || SocketError::of(|| format!("send to the group {group}"));
        let fd = Datagrams::open(AddressFamily::INET, options).map_err(fail())?;
        sockopt::set_ip_multicast_loop(&fd, loopback).map_err(fail())?;
        if !source.ip().is_unspecified() {
            sockopt::set_ip_multicast_if(&fd, source.ip()).map_err(fail())?;
        }
        sockopt::set_socket_reuseaddr(&fd, true).map_err(fail())?;
        let file = SocketAddress::Inet(source).bind(&fd, rustix::net::SocketType::DGRAM)?;
        rustix::net::connect(&fd, &group).map_err(fail())?;
        Datagrams::of(fd, true, Some(file)).map_err(fail())
    }
}

impl Endpoint for Multicast {
    fn receive(&mut self, into: &mut [u8], allowed: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received {
        self.input.as_mut().map_or(Received::Nothing, |s| s.receive(into, allowed))
    }
    fn send(&mut self, data: &[u8]) -> Sent {
        self.output.as_mut().map_or(Sent::NoPeer, |s| s.send(data))
    }
    fn readable(&self) -> Option<Arc<OwnedFd>> {
        self.input.as_ref()?.readable()
    }
    fn writable(&self) -> Option<Arc<OwnedFd>> {
        self.output.as_ref()?.writable()
    }
}
