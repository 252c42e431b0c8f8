// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second process that opens devices for the router, so that the router itself can drop its privileges.
//!
//! The router sends text requests over a socket pair and gets file descriptors back. After [`install`], all
//! functions of this crate that open or configure devices send requests. Without [`install`], these functions do
//! the work themselves. The second process runs [`serve`].

mod request;
mod serve;

pub use serve::serve;

use crate::device::xdp::{LOAD, MapShape, PIN, XdpMode};
use crate::device::{DeviceError, GIVE_BACK, OPEN_SOCKET, Setup, Tun};
use castanet_kernel::Instruction;
use parking_lot::Mutex;
use request::{Reply, Request};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags, SocketType,
    recvmsg, send, socketpair,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// Largest length of requests and answers, in bytes.
const LONGEST: usize = 4096;

/// Creates a connection. Returns the end for the router, and the end for the process that calls [`serve`].
///
/// # Errors
/// When no descriptor is left.
pub fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The router's end of the connection to the process that opens devices.
pub(crate) struct Client(Mutex<OwnedFd>);

static CLIENT: OnceLock<Client> = OnceLock::new();

/// Makes the process at the other end of `fd` open all devices for this process from now on. Only the first
/// call has an effect.
pub fn install(fd: OwnedFd) {
    let _ = CLIENT.set(Client(Mutex::new(fd)));
}

/// The connection to the other process, if there is one.
pub(crate) fn client() -> Option<&'static Client> {
    CLIENT.get()
}

/// Reports to the other process that the first configuration is ready. From then on, that process checks each request
/// against its list of devices.
///
/// # Errors
/// When that process has ended.
pub fn seal() -> Result<(), DeviceError> {
    client().map_or(Ok(()), |c| c.ask("devices", "ask for them", &Request::Seal).map(drop))
}

impl Client {
    /// Sends a request. Returns the text and the descriptor of the answer.
    fn ask(
        &self,
        name: &str,
        doing: &'static str,
        request: &Request,
    ) -> Result<(String, Option<OwnedFd>), DeviceError> {
        let gone = |_| DeviceError::Refused {
            name: name.to_owned(),
            doing,
            why: "the process that opens devices for this router has ended; start the router again".into(),
        };
        let fd = self.0.lock();
        send(&*fd, request.text().as_bytes(), SendFlags::NOSIGNAL).map_err(gone)?;
        let mut bytes = [0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let n = loop {
            match recvmsg(&*fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Ok(m) if m.bytes > 0 => break m.bytes,
                Ok(_) => return Err(gone(Errno::PIPE)),
                Err(e) => return Err(gone(e)),
            }
        };
        let mut got = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                got = fds.into_iter().next();
            }
        }
        let text = String::from_utf8_lossy(bytes.get(..n).unwrap_or_default()).into_owned();
        Reply::parse(&text).result(name, doing).map(|text| (text, got))
    }

    fn ask_for_fd(
        &self,
        name: &str,
        doing: &'static str,
        request: &Request,
    ) -> Result<(String, OwnedFd), DeviceError> {
        let (text, fd) = self.ask(name, doing, request)?;
        let fd = fd.ok_or_else(|| DeviceError::from_errno(name, doing, Errno::MFILE))?;
        Ok((text, fd))
    }

    /// Requests an unbound packet socket.
    pub(crate) fn packet_socket(
        &self,
        name: &str,
        doing: &'static str,
        sends: bool,
    ) -> Result<OwnedFd, DeviceError> {
        let request = Request::Packet { device: name.to_owned(), sends };
        Ok(self.ask_for_fd(name, doing, &request)?.1)
    }
    /// Requests a queue of a TUN or TAP device. Returns the device's name and the queue.
    pub(crate) fn tun(&self, name: &str, tap: bool) -> Result<(String, OwnedFd), DeviceError> {
        let shown = if name.is_empty() { "a new device" } else { name };
        self.ask_for_fd(shown, "make the device", &Request::Tun { device: name.to_owned(), tap })
    }
    /// Configures a device.
    pub(crate) fn set_up(&self, name: &str, setup: &Setup) -> Result<(), DeviceError> {
        let request = Request::SetUp { device: name.to_owned(), setup: setup.clone() };
        self.ask(name, "set it up", &request).map(drop)
    }
    /// Removes the address and the default route in `setup` from a device.
    pub(crate) fn take_away(&self, name: &str, setup: &Setup) -> Result<(), DeviceError> {
        let request = Request::TakeAway { device: name.to_owned(), setup: setup.clone() };
        self.ask(name, "take its address away", &request).map(drop)
    }
    /// Hides the frames of a device from the host. The inner result is the descriptor of the filter (`Ok`), or the
    /// number of a filter that the other process owns (`Err`).
    pub(crate) fn raise(&self, name: &str) -> Result<Result<OwnedFd, u32>, DeviceError> {
        let doing = "filter for the host";
        let (text, fd) = self.ask(name, doing, &Request::Raise { device: name.to_owned() })?;
        let number = text.parse().map_err(|_| DeviceError::from_errno(name, doing, Errno::BADMSG));
        fd.map_or_else(|| number.map(Err), |fd| Ok(Ok(fd)))
    }
    /// Removes a filter that the process which opens devices owns.
    pub(crate) fn lower(&self, name: &str, number: u32) -> Result<(), DeviceError> {
        self.ask(name, "remove the filter for the host", &Request::Lower { number }).map(drop)
    }
    /// Requests an AF_XDP socket. Returns the socket and its number.
    pub(crate) fn xdp_socket(&self, name: &str) -> Result<(OwnedFd, u32), DeviceError> {
        let doing = OPEN_SOCKET;
        let (text, fd) = self.ask_for_fd(name, doing, &Request::XdpSocket { device: name.to_owned() })?;
        let number = text.parse().map_err(|_| DeviceError::from_errno(name, doing, Errno::BADMSG))?;
        Ok((fd, number))
    }
    /// Attaches the XDP program that passes the frames of a device to AF_XDP sockets. Returns the number of the
    /// attachment.
    pub(crate) fn attach(&self, name: &str, queues: u32) -> Result<(u32, XdpMode), DeviceError> {
        let doing = "attach an XDP program";
        let (text, _) = self.ask(name, doing, &Request::XdpAttach { device: name.to_owned(), queues })?;
        let (number, mode) = text.split_once(' ').unwrap_or_default();
        let mode = if mode == "generic" { XdpMode::Generic } else { XdpMode::Driver };
        let number = number.parse().map_err(|_| DeviceError::from_errno(name, doing, Errno::BADMSG))?;
        Ok((number, mode))
    }
    /// Makes the frames of a queue go to a socket; if `None`, to no socket any more. `attachment` and `socket` are numbers of this
    /// process's attachment and socket.
    pub(crate) fn start(
        &self,
        name: &str,
        attachment: u32,
        queue: u32,
        socket: Option<u32>,
    ) -> Result<(), DeviceError> {
        let request = Request::XdpStart { attachment, queue, socket };
        self.ask(name, "pass frames to an AF_XDP socket", &request).map(drop)
    }
    /// Requests a map for programs. Returns its number and its descriptor.
    pub(crate) fn map(&self, name: &str, shape: MapShape) -> Result<(u32, OwnedFd), DeviceError> {
        let (text, fd) = self.ask_for_fd(name, LOAD, &Request::XdpMap { device: name.to_owned(), shape })?;
        let number = text.parse().map_err(|_| DeviceError::from_errno(name, LOAD, Errno::BADMSG))?;
        Ok((number, fd))
    }
    /// Keeps a map of counters alive if the router dies.
    pub(crate) fn pin(&self, name: &str, map: u32, devices: u32) -> Result<(), DeviceError> {
        self.ask(name, PIN, &Request::XdpPin { map, devices }).map(drop)
    }
    /// Ends that programs are kept alive if the router dies.
    pub(crate) fn unpin(&self) -> Result<(), DeviceError> {
        self.ask("devices", PIN, &Request::XdpUnpin).map(drop)
    }
    /// Loads the parts of a program. Maps have their numbers; 0 is the map of the device's sockets, and the largest number that of the
    /// parts. The device of the attachment runs the program if `runs`.
    pub(crate) fn load(
        &self,
        name: &str,
        attachment: u32,
        parts: &[Vec<Instruction>],
        runs: bool,
    ) -> Result<(), DeviceError> {
        for (part, instructions) in (0..).zip(parts) {
            for some in instructions.chunks(LONGEST / 16 - 8) {
                let instructions = some.to_vec();
                self.ask(name, LOAD, &Request::XdpCode { attachment, part, instructions })?;
            }
        }
        self.ask(name, LOAD, &Request::XdpLoad { attachment, runs }).map(drop)
    }
    /// Makes the device of an attachment run the plain program again.
    pub(crate) fn plain(&self, name: &str, attachment: u32) -> Result<(), DeviceError> {
        self.ask(name, LOAD, &Request::XdpPlain { attachment }).map(drop)
    }
    /// Ends an attachment, or closes the other process's descriptor of an AF_XDP socket.
    pub(crate) fn forget(&self, name: &str, number: u32) -> Result<(), DeviceError> {
        self.ask(name, "detach an XDP program", &Request::XdpForget { number }).map(drop)
    }
    /// Requests a TAP device whose frames the host gets as if `name` had received them. Returns its number and the device.
    pub(crate) fn host_port(&self, name: &str) -> Result<(u32, Tun), DeviceError> {
        let request = Request::HostPort { device: name.to_owned() };
        let (text, fd) = self.ask_for_fd(name, GIVE_BACK, &request)?;
        let found = text.split_once(' ').and_then(|(n, tap)| Some((n.parse().ok()?, tap)));
        let (number, tap) = found.ok_or_else(|| DeviceError::from_errno(name, GIVE_BACK, Errno::BADMSG))?;
        Ok((number, Tun::of(tap, fd)))
    }
    /// Requests a raw socket for an IP protocol.
    pub(crate) fn raw(&self, protocol: u8) -> Result<OwnedFd, DeviceError> {
        Ok(self.ask_for_fd("IP", "open a raw socket", &Request::Raw { protocol })?.1)
    }
}

#[cfg(test)]
mod tests;
