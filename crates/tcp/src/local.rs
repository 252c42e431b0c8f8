// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local sockets of relayed connections, and a way to learn which of them are ready.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, shutdown, socket_with,
};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The most sockets that one call of [`Poller::ready`] reports.
const MOST: usize = 256;

/// Where a local socket connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A TCP port.
    Tcp(SocketAddrV4),
    /// A Unix socket.
    Unix(String),
}

/// Tells which sockets are ready, by the numbers of their connections. Each change is told once (edge-triggered), so
/// users of a socket read and write until it has nothing more, or until their own end is full.
#[derive(Debug)]
pub struct Poller(Arc<OwnedFd>);

impl Poller {
    /// A poller without sockets.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller(Arc::new(epoll::create(CreateFlags::CLOEXEC)?)))
    }
    /// A descriptor that is readable while a socket is ready.
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.0
    }
    fn add(&self, socket: &OwnedFd, number: u32) -> Result<(), Errno> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&*self.0, socket, EventData::new_u64(number.into()), flags)
    }
    /// Takes the numbers of connections whose sockets are ready. There may be more if there are many.
    pub fn ready(&self) -> Vec<u32> {
        let mut events = Vec::with_capacity(MOST);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error would be an interruption: the descriptor stays readable.
        let _ = epoll::wait(&*self.0, spare_capacity(&mut events), Some(&at_once));
        events.iter().filter_map(|e| u32::try_from(e.data.u64()).ok()).collect()
    }
}

/// The result of reading or writing a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other end has no more data.
    End,
    /// The connection has failed.
    Failed,
}

/// A local socket.
#[derive(Debug)]
pub struct Local {
    socket: OwnedFd,
    shut: bool,
}

impl Local {
    /// Begins to connect to a place. The poller tells when the socket is ready, by this number.
    pub fn connect(to: &Place, poller: &Poller, number: u32) -> io::Result<Local> {
        let family = match to {
            Place::Tcp(_) => AddressFamily::INET,
            Place::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = match to {
            Place::Tcp(to) => connect(&socket, to),
            Place::Unix(path) => connect(&socket, &SocketAddrUnix::new(path.as_str())?),
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(e) => return Err(e.into()),
        }
        poller.add(&socket, number)?;
        Ok(Local { socket, shut: false })
    }
    /// Reads into a buffer.
    pub fn read(&self, into: &mut [u8]) -> Moved {
        match recv(&self.socket, into, RecvFlags::DONTWAIT).map(|(_, n)| n) {
            Ok(0) => Moved::End,
            other => moved(other),
        }
    }
    /// Writes the first bytes of `data`.
    pub fn write(&self, data: &[u8]) -> Moved {
        moved(send(&self.socket, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
    }
    /// Tells the other end that there is no more data.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.shut, true) {
            // The socket may have failed. Reading from it tells so.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }
}

fn moved(result: Result<usize, Errno>) -> Moved {
    match result {
        Ok(n) => Moved::Bytes(n),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Nothing,
        Err(_) => Moved::Failed,
    }
}
