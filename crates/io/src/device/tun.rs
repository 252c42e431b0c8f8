// SPDX-License-Identifier: MIT OR Apache-2.0
//! TUN and TAP devices, whose other end is this program.

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

/// TUN_F_CSUM, TUN_F_TSO4 and TUN_F_TSO6: checksums and TCP segmentation.
const OFFLOAD_TCP: u32 = 7;
/// All offloads that the offload header can describe: those of `OFFLOAD_TCP`, TCP segments with CWR, and UDP
/// segments.
pub const OFFLOAD_ALL: u32 = OFFLOAD_TCP | 0x08 | 0x20 | 0x40;

/// Options for opening a TUN or TAP device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunOptions {
    /// The name of the device; for `None` the kernel chooses a name. `%d` is replaced by the first free
    /// number.
    pub name: Option<String>,
    /// True for a device that carries Ethernet frames (TAP), false for one that carries IP packets (TUN).
    pub tap: bool,
    /// The number of queues, each with its own descriptor; at least one.
    pub queues: usize,
    /// Whether the device continues to exist when the program ends.
    pub persistent: bool,
    /// The offloads that the host may leave to this program: TUN_F_CSUM (1), TUN_F_TSO4 (2), TUN_F_TSO6 (4)
    /// and others. Offloads that the kernel does not support are ignored.
    pub offload: u32,
}

/// A TUN or TAP device.
#[derive(Debug)]
pub struct Tun {
    name: String,
    queues: Vec<Arc<OwnedFd>>,
}

/// Returns the zero-terminated name of a request as text.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

/// Opens a queue of the device that the request names. If the device does not exist, it is created.
fn attach(shown: &str, request: &mut TunRequest) -> Result<OwnedFd, DeviceError> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let fd: OwnedFd = how.open(DEVICE).map_err(|e| without_driver(shown, &e))?.into();
    sys::tun_attach(fd.as_fd(), request).map_err(|e| match e {
        // A device of this name exists, but is of another kind or has a single queue.
        Errno::INVAL | Errno::EXIST => {
            let what = "it exists and is no TUN or TAP device of this kind with several queues".into();
            DeviceError::Invalid { name: shown.to_owned(), what }
        }
        e => DeviceError::from_errno(shown, "make the device", e),
    })?;
    Ok(fd)
}

impl Tun {
    /// Creates the device, or attaches to it if it exists and accepts more queues.
    ///
    /// # Errors
    /// When the kernel has no TUN driver or does not permit it, or another program uses the device.
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
            // Some older kernels do not support UDP segmentation, and others support no segmentation at all. So
            // try with fewer offloads after each refusal.
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

    /// The device with this name, of which another process has opened a queue.
    pub(crate) fn of(name: &str, queue: OwnedFd) -> Tun {
        Tun { name: name.to_owned(), queues: vec![Arc::new(queue)] }
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The descriptors of the device's queues. A descriptor is readable while packets wait in its queue.
    pub fn queues(&self) -> &[Arc<OwnedFd>] {
        &self.queues
    }
    /// Makes the kernel remove a persistent device when this program ends.
    ///
    /// # Errors
    /// When the kernel does not permit it.
    pub fn forget(&self) -> Result<(), DeviceError> {
        let set = |fd: &Arc<OwnedFd>| sys::tun_set(fd.as_fd(), TunOption::Persist, 0);
        let failed = |e| DeviceError::from_errno(&self.name, "make it go", e);
        self.queues.first().map_or(Ok(()), set).map_err(failed)
    }

    /// Reads one packet of the host from a queue, without blocking. Returns the packet's outstanding offloads and its
    /// length (at most the length of `into`), or `None` if there is no packet.
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

    /// Sends one packet to the host through a queue, without blocking.
    ///
    /// # Errors
    /// Why the host refused the packet.
    pub fn send(&self, queue: usize, packet: Outgoing<'_>) -> Result<(), Refusal> {
        let fd = self.queues.get(queue).ok_or(Refusal::Down)?;
        let parts = [IoSlice::new(packet.vnet.as_bytes()), IoSlice::new(packet.data)];
        rustix::io::writev(fd, &parts).map(drop).map_err(Refusal::new)
    }

    /// The interface index of the device.
    ///
    /// # Errors
    /// When the device has been removed.
    pub fn index(&self) -> Result<u32, DeviceError> {
        facts::index(&self.name)
    }
}

/// Converts an error of opening `/dev/net/tun` to a [`DeviceError`].
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
