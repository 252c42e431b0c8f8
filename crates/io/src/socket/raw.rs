// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw IP: packets with their IPv4 headers (raw(7)).

use super::{Datagrams, Endpoint, Options, Pair, Received, Sent, SocketAddress, SocketError, again};
use crate::device::DeviceError;
use crate::opener;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A socket for IP packets of one protocol.
#[derive(Debug)]
pub struct RawIp {
    input: Option<Arc<OwnedFd>>,
    output: Option<Pair>,
    /// The TCP or UDP port: packets to other ports are not accepted. `None` accepts all packets.
    port: Option<u16>,
    /// Reserves a UDP port, so that other programs cannot bind it and the kernel does not send "port unreachable".
    _keeper: Option<Datagrams>,
}

/// Returns the number of an IP protocol as a byte. Numbers above 255, for which there are no raw sockets,
/// become 255.
fn number(protocol: Protocol) -> u8 {
    u8::try_from(protocol.as_raw().get()).unwrap_or(u8::MAX)
}

/// Opens a raw socket for an IP protocol. With protocol 0 or 255, the socket can only send.
pub(crate) fn open_raw_socket(protocol: u8) -> Result<OwnedFd, Errno> {
    let number = std::num::NonZeroU32::new(protocol.into()).map_or(ipproto::RAW, Protocol::from_raw);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(number))
}

impl RawIp {
    /// Receives packets of a protocol if `receive` is set, and sends packets of any protocol if `send` is
    /// set. If a port is given (TCP and UDP), only packets to that port are accepted.
    ///
    /// # Errors
    /// When the kernel refuses: raw sockets need CAP_NET_RAW.
    pub fn new(
        protocol: u8,
        port: Option<u16>,
        (receive, send): (bool, bool),
        options: &Options,
    ) -> Result<RawIp, SocketError> {
        let open = |protocol: Protocol| -> Result<OwnedFd, SocketError> {
            let what = || "open a raw socket".to_string();
            let fd = match opener::client() {
                Some(opener) => opener.raw(number(protocol)).map_err(|e| match e {
                    DeviceError::Refused { why, .. } => {
                        SocketError::of(|| format!("open a raw socket ({why})"))(Errno::PERM)
                    }
                    DeviceError::System { errno, .. } => SocketError::of(what)(errno),
                    _ => SocketError::of(what)(Errno::PERM),
                }),
                None => open_raw_socket(number(protocol)).map_err(SocketError::of(what)),
            }?;
            options.apply(&fd).map_err(SocketError::of(what))?;
            Ok(fd)
        };
        let wanted = std::num::NonZeroU32::new(protocol.into()).map_or(ipproto::RAW, Protocol::from_raw);
        let input = if receive { Some(Arc::new(open(wanted)?)) } else { None };
        let output = if send {
            let pair = Pair::new(open(ipproto::RAW)?);
            Some(pair.map_err(SocketError::of(|| "open a raw socket".into()))?)
        } else {
            None
        };
        let port = port.filter(|&p| p != 0 && matches!(protocol, TCP | UDP));
        let address = |p| SocketAddress::Inet(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, p));
        let keeper = match port {
            // This socket is never read, so its receive buffer has the minimum size. Once the buffer is full,
            // the kernel stores no more datagrams in it, so the socket takes no more memory.
            Some(p) if protocol == UDP => {
                Some(Datagrams::bind(&address(p), &Options { rcvbuf: Some(0), ..Options::default() })?)
            }
            _ => None,
        };
        Ok(RawIp { input, output, port, _keeper: keeper })
    }

    /// Whether a packet is to the accepted port; always true if all ports are accepted. Later fragments have
    /// no ports and are accepted.
    pub(super) fn is_wanted(&self, packet: &[u8]) -> bool {
        let Some(port) = self.port else { return true };
        let at = packet.first().map_or(0, |b| usize::from(b & 15) * 4 + 2);
        let offset = packet.get(6..8).map_or(0, |b| (u16::from(b[0]) << 8 | u16::from(b[1])) & 0x1fff);
        let to = packet.get(at..at + 2);
        offset != 0 || to.is_some_and(|to| to == port.to_be_bytes())
    }
}

impl Endpoint for RawIp {
    fn receive(&mut self, into: &mut [u8], _: &mut dyn FnMut(Ipv4Addr) -> bool) -> Received {
        let Some(fd) = &self.input else { return Received::Nothing };
        match again(|| rustix::net::recv(fd, &mut *into, RecvFlags::TRUNC)) {
            Ok((_, n)) => {
                let got = n.min(into.len());
                let wanted = into.get(..got).is_some_and(|p| self.is_wanted(p));
                if wanted { Received::Data(got, n) } else { Received::Refused }
            }
            Err(Errno::AGAIN) => Received::Nothing,
            Err(e) => Received::Trouble(e.into()),
        }
    }
    /// Sends a packet to the destination in its header. The kernel sets length and checksum of the header.
    fn send(&mut self, data: &[u8]) -> Sent {
        let Some(pair) = &self.output else { return Sent::NoPeer };
        let Some(&to) = data.get(16..).and_then(|d| d.first_chunk::<4>()) else {
            return Sent::Rejected(Errno::INVAL.into());
        };
        let to = SocketAddrV4::new(to.into(), 0);
        match again(|| rustix::net::sendto(&pair.write, data, SendFlags::NOSIGNAL, &to)) {
            Ok(n) => Sent::Bytes(n),
            Err(Errno::AGAIN) => Sent::Full,
            Err(Errno::NOBUFS | Errno::NOMEM) => Sent::Later,
            Err(e) => Sent::Rejected(e.into()),
        }
    }
    fn readable(&self) -> Option<Arc<OwnedFd>> {
        self.input.clone()
    }
    fn writable(&self) -> Option<Arc<OwnedFd>> {
        self.output.as_ref().map(|p| p.write.clone())
    }
}
