// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that opens devices for the router.

use super::LONGEST;
use super::request::{Reply, Request};
use crate::device::owner::Owner;
use crate::device::xdp::{self, Attachment, LOAD, Map, PARTS, PIN, Used, XdpMode, map_error};
use crate::device::{
    DeviceError, OPEN_SOCKET, Shield, Tun, TunOptions, index, open_host_port, open_socket, set_up, take_away,
};
use crate::socket::open_raw_socket;
use castanet_kernel::Instruction;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use std::collections::{HashMap, HashSet};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The maximum number of queues of a device.
const MOST_QUEUES: u32 = 4096;

/// The maximum number of parts of a program.
const MOST_PARTS: usize = 4096;

/// The maximum number of instructions of a program.
const MOST_INSTRUCTIONS: usize = 1_000_000;

/// The descriptor that an answer passes to the router.
enum Given {
    Nothing,
    Fd(OwnedFd),
    Shared(Arc<OwnedFd>),
}

/// The state of the process that opens devices.
struct Opener {
    /// The devices that later configurations may use, besides those of the first configuration. `None` means
    /// all.
    devices: Option<HashSet<String>>,
    /// The devices of the first configuration.
    first: HashSet<String>,
    first_raw: bool,
    sealed: bool,
    owner: Owner,
    /// Filters that the kernel does not remove by itself. This process removes them when the router ends.
    shields: HashMap<u32, Shield>,
    /// XDP programs. The kernel detaches them when this process ends, which is when the router ends.
    attachments: HashMap<u32, Attachment>,
    /// The parts of the next programs of attachments.
    code: HashMap<u32, Vec<Vec<Instruction>>>,
    /// Maps of programs. Programs that use them keep them alive.
    maps: HashMap<u32, Map>,
    /// Programs at TAP devices, which redirect their frames to the host.
    redirects: HashMap<u32, OwnedFd>,
    /// AF_XDP sockets of the router, of which this process needs a descriptor to pass frames to them.
    sockets: HashMap<u32, OwnedFd>,
    last: u32,
}

/// Opens devices for the process at the other end of a connection, until that process ends. Requests may be hostile.
///
/// `devices` are the devices that later configurations may use, besides those of the first configuration;
/// `None` means all. `router` is the process ID of the router.
///
/// # Errors
/// When the connection fails.
pub fn serve(fd: &OwnedFd, devices: Option<Vec<String>>, router: u32) -> std::io::Result<()> {
    let mut opener = Opener {
        devices: devices.map(|d| d.into_iter().collect()),
        first: HashSet::new(),
        first_raw: false,
        sealed: false,
        owner: Owner::of(router).unwrap_or_else(Owner::this),
        shields: HashMap::new(),
        attachments: HashMap::new(),
        code: HashMap::new(),
        maps: HashMap::new(),
        redirects: HashMap::new(),
        sockets: HashMap::new(),
        last: 0,
    };
    let served = opener.serve(fd);
    // A router that ends in order has ended its attachments before. Those of one that dies end with this process, unless they are pinned.
    std::mem::forget(std::mem::take(&mut opener.attachments));
    served
}

fn answer(fd: &OwnedFd, reply: &Reply, given: &Given) -> Result<(), Errno> {
    let mut text = reply.text();
    text.truncate(text.floor_char_boundary(LONGEST));
    let borrowed = match given {
        Given::Nothing => None,
        Given::Fd(fd) => Some([fd.as_fd()]),
        Given::Shared(fd) => Some([fd.as_fd()]),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(fds) = &borrowed {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(fd, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL).map(drop)
}

impl Opener {
    /// Answers requests until the process at the other end of the connection ends.
    fn serve(&mut self, fd: &OwnedFd) -> std::io::Result<()> {
        let mut bytes = [0; LONGEST];
        loop {
            let n = match recv(fd, &mut bytes[..], RecvFlags::empty()) {
                Ok((0, _)) => return Ok(()),
                Ok((n, _)) => n,
                Err(Errno::INTR) => continue,
                // The router was killed before it read all answers.
                Err(Errno::CONNRESET) => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            let text = std::str::from_utf8(bytes.get(..n).unwrap_or_default()).unwrap_or_default();
            let (reply, given) = match Request::parse(text) {
                Some(request) => self.answer(&request),
                None => (Reply::Refused("unknown request".into()), Given::Nothing),
            };
            match answer(fd, &reply, &given) {
                Ok(()) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Returns why a request is refused, or `None` if it is allowed.
    fn objection(&mut self, request: &Request) -> Option<String> {
        if matches!(request, Request::Raw { .. }) {
            self.first_raw |= !self.sealed;
            let fine = self.devices.is_none() || self.first_raw;
            return (!fine).then(|| {
                "--devices is given, and the first configuration of the router has no raw sockets".into()
            });
        }
        let device = request.device()?;
        if !self.sealed {
            self.first.insert(device.to_owned());
            return None;
        }
        let allowed = self.devices.as_ref().is_none_or(|d| d.contains(device)) || self.first.contains(device);
        (!allowed).then(|| {
            "it is not among the --devices of the router, and the first configuration did not use it".into()
        })
    }

    /// A new number for something that this process keeps.
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    fn answer(&mut self, request: &Request) -> (Reply, Given) {
        if let Some(why) = self.objection(request) {
            return (Reply::Refused(why), Given::Nothing);
        }
        match self.act(request) {
            Ok((text, given)) => (Reply::Done(text), given),
            Err(e) => (Reply::of(Err(e)), Given::Nothing),
        }
    }

    fn act(&mut self, request: &Request) -> Result<(String, Given), DeviceError> {
        let nothing = |()| (String::new(), Given::Nothing);
        match request {
            Request::Packet { device, sends } => {
                open_socket(device, *sends).map(|fd| (String::new(), Given::Fd(fd)))
            }
            Request::Tun { device, tap } => {
                let name = Some(device.clone()).filter(|d| !d.is_empty());
                let tun = Tun::open(&TunOptions { name, tap: *tap, queues: 1, ..TunOptions::default() })?;
                // The kernel may have chosen another name than the requested one. Allow that name too.
                if self.first.contains(device) {
                    self.first.insert(tun.name().to_owned());
                }
                if let Some(devices) = &mut self.devices {
                    devices.insert(tun.name().to_owned());
                }
                let fd = tun.queues().first().cloned().map_or(Given::Nothing, Given::Shared);
                Ok((tun.name().to_owned(), fd))
            }
            Request::SetUp { device, setup } => set_up(device, setup).map(nothing),
            Request::TakeAway { device, setup } => take_away(device, setup).map(nothing),
            Request::Raise { device } => {
                let shield = Shield::raise_for(device, &self.owner)?;
                match shield.into_link() {
                    Ok(fd) => Ok((String::new(), Given::Fd(fd))),
                    Err(shield) => {
                        let number = self.number();
                        self.shields.insert(number, shield);
                        Ok((number.to_string(), Given::Nothing))
                    }
                }
            }
            Request::Lower { number } => {
                self.shields.remove(number);
                Ok(nothing(()))
            }
            Request::XdpSocket { device } => {
                let failed = |e| DeviceError::from_errno(device, OPEN_SOCKET, e);
                let fd = xdp::open_socket(device)?;
                let copy = rustix::io::fcntl_dupfd_cloexec(&fd, 0).map_err(failed)?;
                let number = self.number();
                self.sockets.insert(number, copy);
                Ok((number.to_string(), Given::Fd(fd)))
            }
            Request::XdpAttach { device, queues } => {
                let queues = (*queues).min(MOST_QUEUES);
                let attachment = Attachment::new(device, index(device)?, queues)?;
                let mode = if attachment.mode == XdpMode::Generic { "generic" } else { "driver" };
                let number = self.number();
                self.attachments.insert(number, attachment);
                Ok((format!("{number} {mode}"), Given::Nothing))
            }
            Request::XdpStart { attachment, queue, socket } => {
                let socket = socket.map(|n| self.sockets.get(&n).ok_or(Errno::BADF)).transpose();
                let found = self.attachments.get(attachment).ok_or(Errno::BADF);
                let done = found.and_then(|a| a.set(*queue, socket?.map(AsFd::as_fd)));
                done.map(nothing).map_err(|e| DeviceError::from_errno("devices", "pass frames", e))
            }
            Request::XdpPin { map, devices } => {
                let done = self.maps.get(map).ok_or(Errno::BADF);
                let done = done.and_then(|m| xdp::pin_counts(m.fd(), *devices));
                done.map(nothing).map_err(|e| DeviceError::from_errno("devices", PIN, e))
            }
            Request::XdpUnpin => {
                xdp::end_for_router();
                Ok(nothing(()))
            }
            Request::XdpForget { number } => {
                self.attachments.remove(number);
                self.sockets.remove(number);
                self.code.remove(number);
                self.maps.remove(number);
                self.redirects.remove(number);
                Ok(nothing(()))
            }
            Request::XdpMap { device, shape } => {
                let map = Map::new(*shape).map_err(|e| map_error(device, *shape, e))?;
                let copy = map.fd().try_clone_to_owned();
                let copy = copy.map_err(|_| DeviceError::from_errno(device, LOAD, Errno::MFILE))?;
                let number = self.number();
                self.maps.insert(number, map);
                Ok((number.to_string(), Given::Fd(copy)))
            }
            Request::XdpCode { attachment, part, instructions } => {
                let failed = |e| Err(DeviceError::from_errno("devices", LOAD, e));
                if !self.attachments.contains_key(attachment) {
                    return failed(Errno::BADF);
                }
                let mut parts = self.code.remove(attachment).unwrap_or_default();
                if parts.iter().map(Vec::len).sum::<usize>() + instructions.len() > MOST_INSTRUCTIONS {
                    return failed(Errno::TOOBIG);
                }
                if parts.len() == *part as usize && parts.len() < MOST_PARTS {
                    parts.push(Vec::new());
                }
                let is_last = parts.len() == *part as usize + 1;
                match parts.last_mut().filter(|_| is_last) {
                    Some(code) => code.extend(instructions),
                    None => return failed(Errno::INVAL),
                }
                self.code.insert(*attachment, parts);
                Ok(nothing(()))
            }
            Request::XdpLoad { attachment, runs } => {
                let missing = || DeviceError::from_errno("devices", LOAD, Errno::BADF);
                let code = self.code.remove(attachment).ok_or_else(missing)?;
                let found = self.attachments.get(attachment).ok_or_else(missing)?;
                let map = |number: usize| match u32::try_from(number).ok()? {
                    0 => Some(Used::Sockets),
                    PARTS => Some(Used::Parts),
                    n => self.maps.get(&n).map(|m| Used::Fd(m.fd())),
                };
                found.replace("devices", &code, *runs, map).map(nothing)
            }
            Request::XdpPlain { attachment } => {
                let missing = || DeviceError::from_errno("devices", LOAD, Errno::BADF);
                let found = self.attachments.get(attachment).ok_or_else(missing)?;
                found.replace_by_plain("devices").map(nothing)
            }
            Request::HostPort { device } => {
                let (tun, link) = open_host_port(device)?;
                let number = self.number();
                self.redirects.insert(number, link);
                let fd = tun.queues().first().cloned().map_or(Given::Nothing, Given::Shared);
                Ok((format!("{number} {}", tun.name()), fd))
            }
            Request::Raw { protocol } => open_raw_socket(*protocol)
                .map(|fd| (String::new(), Given::Fd(fd)))
                .map_err(|e| DeviceError::from_errno("IP", "open a raw socket", e)),
            Request::Seal => {
                self.sealed = true;
                Ok(nothing(()))
            }
        }
    }
}
