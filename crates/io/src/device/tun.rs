// SPDX-License-Identifier: MIT OR Apache-2.0
//! TUN and TAP: devices of which this program is the other end.

use super::error::DeviceError;
use super::facts;
use super::send::{Outgoing, Refusal};
use super::sys::{self, TunOption, TunRequest};
use super::vnet::VnetHeader;
use crate::opener;
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use zerocopy::IntoBytes;

const DEVICE: &str = "/dev/net/tun";
const IFF_TUN: u16 = 0x0001;
const IFF_TAP: u16 = 0x0002;
const IFF_MULTI_QUEUE: u16 = 0x0100;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;

/// TUN_F_CSUM, TUN_F_TSO4 and TUN_F_TSO6: checksums and segments of TCP.
const OFFLOAD_TCP: u32 = 7;
/// The same with CWR set, and segments of UDP: all that packets can say is left to be done.
pub const OFFLOAD_ALL: u32 = OFFLOAD_TCP | 0x08 | 0x20 | 0x40;

/// What kind of device is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunOptions {
    /// Its name; none: the system chooses one. A `%d` becomes the first number that is free.
    pub name: Option<String>,
    /// Whether it carries Ethernet frames (TAP) or IP packets (TUN).
    pub tap: bool,
    /// How many queues it has, each with its own descriptor; at least one.
    pub queues: usize,
    /// Whether it stays when the program ends.
    pub persistent: bool,
    /// Which work the host may leave to this program: TUN_F_CSUM (1), TUN_F_TSO4 (2), TUN_F_TSO6 (4)... What the system does
    /// not know is left out.
    pub offload: u32,
}

/// A TUN or TAP device.
#[derive(Debug)]
pub struct Tun {
    name: String,
    queues: Vec<Arc<OwnedFd>>,
}

/// The name in a request.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

/// Opens a queue of the device that a request names, which is made if it is missing.
fn attach(shown: &str, request: &mut TunRequest) -> Result<OwnedFd, DeviceError> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let fd: OwnedFd = how.open(DEVICE).map_err(|e| without_driver(shown, &e))?.into();
    sys::tun_attach(fd.as_fd(), request).map_err(|e| match e {
        // The name is that of a device of another kind, or of one with a single queue.
        Errno::INVAL | Errno::EXIST => {
            let what = "it exists and is no TUN or TAP device of this kind with several queues".into();
            DeviceError::Invalid { name: shown.to_owned(), what }
        }
        e => DeviceError::from_errno(shown, "make the device", e),
    })?;
    Ok(fd)
}

impl Tun {
    /// Makes the device, or attaches to it if it exists and has room for more queues.
    ///
    /// # Errors
    /// When the system has no TUN driver, does not permit it, or another program has the device.
    pub fn open(options: &TunOptions) -> Result<Tun, DeviceError> {
        let wanted = options.name.clone().unwrap_or_default();
        let shown = if wanted.is_empty() { "a new device" } else { &wanted };
        let failed = |doing| move |e| DeviceError::from_errno(shown, doing, e);
        let kind = if options.tap { IFF_TAP } else { IFF_TUN };
        let mut request =
            TunRequest { flags: kind | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE, ..Default::default() };
        if wanted.len() >= request.name.len()
            || wanted.bytes().any(|b| b == 0 || b == b'/' || b.is_ascii_whitespace())
        {
            let what = format!("'{wanted}' is no name for a device");
            return Err(DeviceError::Invalid { name: wanted, what });
        }
        request.name.iter_mut().zip(wanted.bytes()).for_each(|(to, from)| *to = from);
        let mut queues = Vec::new();
        for _ in 0..options.queues.max(1) {
            let fd = if let Some(opener) = opener::client() {
                let (name, fd) = opener.tun(&text(&request.name), options.tap)?;
                request.name = [0; libc::IFNAMSIZ];
                request.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
                fd
            } else {
                attach(shown, &mut request)?
            };
            // Older systems know nothing of UDP segments, or of segments at all.
            let mut offers = [options.offload, options.offload & OFFLOAD_TCP, 0].into_iter();
            while let Some(offload) = offers.next() {
                match sys::tun_set(fd.as_fd(), TunOption::Offload, offload) {
                    Ok(()) => break,
                    Err(Errno::INVAL) if offers.len() > 0 => {}
                    Err(e) => return Err(failed("set its offloads")(e)),
                }
            }
            queues.push(Arc::new(fd));
        }
        if let Some(fd) = queues.first().filter(|_| options.persistent) {
            sys::tun_set(fd.as_fd(), TunOption::Persist, 1).map_err(failed("make it persistent"))?;
        }
        Ok(Tun { name: text(&request.name), queues })
    }

    /// The name that it has.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The descriptors of its queues: readable while packets wait.
    pub fn queues(&self) -> &[Arc<OwnedFd>] {
        &self.queues
    }
    /// Lets a persistent device go when this program ends.
    ///
    /// # Errors
    /// When the system does not permit it.
    pub fn forget(&self) -> Result<(), DeviceError> {
        let set = |fd: &Arc<OwnedFd>| sys::tun_set(fd.as_fd(), TunOption::Persist, 0);
        let failed = |e| DeviceError::from_errno(&self.name, "make it go", e);
        self.queues.first().map_or(Ok(()), set).map_err(failed)
    }

    /// Reads one packet that the host sent from a queue, without waiting: what is left to be done about it, and its length,
    /// which is that of `into` when it was longer. None when there is no packet.
    ///
    /// # Errors
    /// [`DeviceError::Down`] when the device has vanished.
    pub fn receive(&self, queue: usize, into: &mut [u8]) -> Result<Option<(VnetHeader, usize)>, DeviceError> {
        let Some(fd) = self.queues.get(queue) else { return Ok(None) };
        let mut vnet = VnetHeader::NONE;
        let parts = &mut [IoSliceMut::new(vnet.as_mut_bytes()), IoSliceMut::new(into)];
        match rustix::io::readv(fd, parts) {
            Ok(n) => Ok(n.checked_sub(VnetHeader::LEN).map(|n| (vnet, n))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(Errno::BADFD | Errno::IO) => Err(DeviceError::Down { name: self.name.clone() }),
            Err(e) => Err(DeviceError::from_errno(&self.name, "read from it", e)),
        }
    }

    /// Gives one packet to the host by a queue, without waiting.
    ///
    /// # Errors
    /// Why the host did not take it.
    pub fn send(&self, queue: usize, packet: Outgoing<'_>) -> Result<(), Refusal> {
        let fd = self.queues.get(queue).ok_or(Refusal::Down)?;
        let parts = [IoSlice::new(packet.vnet.as_bytes()), IoSlice::new(packet.data)];
        rustix::io::writev(fd, &parts).map(drop).map_err(Refusal::new)
    }

    /// Its number, by which others find it.
    ///
    /// # Errors
    /// When it has vanished.
    pub fn index(&self) -> Result<u32, DeviceError> {
        facts::index(&self.name)
    }
}

/// Why `/dev/net/tun` could not be opened.
fn without_driver(name: &str, error: &std::io::Error) -> DeviceError {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => DeviceError::Unsupported {
            name: name.to_owned(),
            what: format!("TUN and TAP devices: {DEVICE} is missing (modprobe tun)"),
        },
        Some(e) => DeviceError::from_errno(name, "open /dev/net/tun", e),
        None => DeviceError::from_errno(name, "open /dev/net/tun", Errno::IO),
    }
}
