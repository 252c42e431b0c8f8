// SPDX-License-Identifier: MIT OR Apache-2.0
//! The XDP program that passes the frames of a device to AF_XDP sockets.
#![allow(unsafe_code)]

use super::pins::{self, DEFAULT_FOLDER, PinnedLink};
use super::registry::Registry;
use crate::device::bpf::{Operation, PartMap, Program, SocketMap, XdpMode};
use crate::device::error::{ATTACHES, DeviceError, wanted};
use crate::device::{facts, xdp_program};
use crate::opener;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What the program's attachment is called in errors.
pub(crate) const ATTACH: &str = "attach an XDP program";

/// The number of programs of a device of which the parts are kept: the one that runs, and the one before, because a frame may be between two
/// of its parts.
const KEPT: usize = 2;

/// Returns the plain program: a frame goes to the socket for its queue, or to the host if there is none.
pub(super) fn plain(map: i32) -> [Operation; 6] {
    const LOAD32: u8 = 0x61;
    const WIDE: u8 = 0x18;
    const SET: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// Marks a 64-bit immediate as the descriptor of a map.
    const MAP: u8 = 1;
    /// The offset of the number of the queue in the context (struct xdp_md).
    const QUEUE: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    // The arguments of the call are in registers 1 to 3: the map, the number of the queue, and the result if the map has
    // no socket for it.
    [
        Operation::new(LOAD32, 2, 1, QUEUE, 0),
        Operation::new(WIDE, 1, MAP, 0, map),
        Operation::new(0, 0, 0, 0, 0),
        Operation::new(SET, 3, 0, 0, XDP_PASS),
        Operation::new(CALL, 0, 0, 0, REDIRECT_MAP),
        Operation::new(EXIT, 0, 0, 0, 0),
    ]
}

/// An attached program, and the map of its sockets. The kernel detaches the program when this is dropped, or when the
/// process ends, whatever the way.
#[derive(Debug)]
pub(crate) struct Attachment {
    map: SocketMap,
    link: OwnedFd,
    pub mode: XdpMode,
    /// The file that keeps the attachment alive if this process dies.
    pin: Option<PinnedLink>,
    /// The maps of parts of the program that runs and of the one before, which may still process a frame.
    parts: Mutex<VecDeque<Option<PartMap>>>,
}

impl Attachment {
    /// Attaches the program to a device: in its driver if that can run XDP programs, otherwise in generic mode. If a router that
    /// has died has left its attachment, that one goes on with its program until this one replaces it.
    pub fn new(name: &str, index: u32, queues: u32) -> Result<Attachment, DeviceError> {
        let failed = |e| match e {
            Errno::PERM | Errno::ACCESS => DeviceError::NotPermitted {
                name: name.to_owned(),
                doing: ATTACH,
                capability: wanted(&ATTACHES),
            },
            Errno::BUSY | Errno::EXIST => DeviceError::Invalid {
                name: name.to_owned(),
                what: format!(
                    "another XDP program is attached already{}; end the program that attached it, or try: {}",
                    match xdp_program(name) {
                        Ok(Some(id)) => format!(" (ID {id})"),
                        _ => String::new(),
                    },
                    match pins::has_left(name) {
                        true =>
                            format!("castanet uninstall (a router that has died left it in {DEFAULT_FOLDER})"),
                        false => format!("ip link set {name} xdp off (in generic mode: xdpgeneric off)"),
                    }
                ),
            },
            Errno::NOSYS => {
                DeviceError::Unsupported { name: name.to_owned(), what: "XDP links (Linux 5.9)".into() }
            }
            e => DeviceError::from_errno(name, ATTACH, e),
        };
        let map = SocketMap::new(queues).map_err(failed)?;
        if let Some((pin, link)) = PinnedLink::left(name, index) {
            let mode = facts::link_info(name)?.xdp.unwrap_or(XdpMode::Driver);
            return Ok(Attachment { map, link, mode, parts: Mutex::default(), pin: Some(pin) });
        }
        let program = Program::load_for_fragments(&plain(map.number())).map_err(failed)?;
        let attached = |map, link: OwnedFd, mode| {
            let pin = PinnedLink::new(name, link.as_fd()).map_err(failed)?;
            Ok(Attachment { map, link, mode, parts: Mutex::default(), pin })
        };
        match program.attach_as_xdp(index, XdpMode::Driver) {
            Ok(link) => return attached(map, link, XdpMode::Driver),
            // The driver cannot run XDP programs, or not now: for example, the MTU is too large for it.
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::RANGE | Errno::NOSPC | Errno::NOMEM) => {}
            Err(e) => return Err(failed(e)),
        }
        let link = program.attach_as_xdp(index, XdpMode::Generic).map_err(failed)?;
        attached(map, link, XdpMode::Generic)
    }
    /// Makes the device run a program, which may call other parts, instead of the one before.
    pub fn run(&self, program: &Program, parts: Option<PartMap>) -> Result<(), Errno> {
        if let Some(pin) = &self.pin {
            pin.prepare(parts.as_ref().map(PartMap::fd))?;
        }
        program.replace(self.link.as_fd())?;
        if let Some(pin) = &self.pin {
            pin.runs();
        }
        let mut kept = self.parts.lock();
        kept.push_back(parts);
        while kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(())
    }
    /// The map of the sockets.
    pub fn sockets(&self) -> BorrowedFd<'_> {
        self.map.fd()
    }
    /// Makes the frames of a queue go to a socket; if `None`, to no socket any more.
    pub fn set(&self, queue: u32, socket: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        match socket {
            Some(socket) => self.map.set(queue, socket),
            None => self.map.remove(queue),
        }
    }
}

/// The attachment of this process to a device.
#[derive(Debug)]
pub(super) struct Steering {
    name: String,
    index: u32,
    mode: XdpMode,
    means: Means,
}

#[derive(Debug)]
enum Means {
    Own(Attachment),
    /// The process that opens devices has the attachment, under this number.
    Kept(u32),
}

/// The attachments of this process. A device has only one, and all sockets on the device share it, those of an old and
/// a new router in a hot swap too.
static STEERINGS: Registry<Steering> = Registry::new();

impl Steering {
    /// Attaches the program to a device, or returns the existing attachment of this process.
    pub fn of(name: &str, index: u32, queues: u32) -> Result<Arc<Steering>, DeviceError> {
        STEERINGS.get(|s| s.index == index, || Steering::new(name, index, queues))
    }
    fn new(name: &str, index: u32, queues: u32) -> Result<Steering, DeviceError> {
        let (mode, means) = match opener::client() {
            Some(opener) => {
                let (number, mode) = opener.attach(name, queues)?;
                (mode, Means::Kept(number))
            }
            None => {
                let attachment = Attachment::new(name, index, queues)?;
                (attachment.mode, Means::Own(attachment))
            }
        };
        Ok(Steering { name: name.to_owned(), index, mode, means })
    }
    /// The attachment of this process to the device with this interface index, if there is one.
    pub fn existing(index: u32) -> Option<Arc<Steering>> {
        STEERINGS.find(|s| s.index == index)
    }
    /// The attachment, or its number in the process that opens devices.
    pub fn attachment(&self) -> Result<&Attachment, u32> {
        match &self.means {
            Means::Own(attachment) => Ok(attachment),
            Means::Kept(number) => Err(*number),
        }
    }
    /// Where the program runs.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }
    /// Makes the frames of a queue go to a socket. `number` is the number of the socket in the process that opens
    /// devices.
    pub fn start(&self, queue: u32, socket: BorrowedFd<'_>, number: Option<u32>) -> Result<(), DeviceError> {
        match (&self.means, opener::client(), number) {
            (Means::Own(attachment), ..) => attachment
                .set(queue, Some(socket))
                .map_err(|e| DeviceError::from_errno(&self.name, "pass frames to an AF_XDP socket", e)),
            (Means::Kept(attachment), Some(opener), Some(number)) => {
                opener.start(&self.name, *attachment, queue, Some(number))
            }
            // A socket that this process opened itself, before it had the other process.
            (Means::Kept(_), ..) => Err(DeviceError::from_errno(&self.name, ATTACH, Errno::BADF)),
        }
    }
    /// Makes the frames of a queue go to no socket any more. Some may still be on their way ([`wait_for_programs`]).
    pub fn stop(&self, queue: u32) -> Result<(), DeviceError> {
        let failed = |e| DeviceError::from_errno(&self.name, "pass no more frames to an AF_XDP socket", e);
        match (&self.means, opener::client()) {
            (Means::Own(attachment), _) => attachment.set(queue, None).map_err(failed),
            (Means::Kept(attachment), Some(opener)) => opener.start(&self.name, *attachment, queue, None),
            (Means::Kept(_), None) => Err(failed(Errno::BADF)),
        }
    }
}

/// Waits until all programs have finished the frames that they process. After programs were replaced, this makes their counts
/// final. Returns at once if the kernel cannot tell.
pub fn wait_for_programs() {
    // This command of membarrier(2) waits for a grace period of RCU, and devices run programs in read-side sections.
    const GLOBAL: libc::c_int = 1;
    // SAFETY: the call has no pointers, and changes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
}

/// Where the program of this process runs for a device; `None` if it has none.
///
/// # Errors
/// When the device is missing.
pub(crate) fn mode_of(device: &str) -> Result<Option<XdpMode>, DeviceError> {
    Ok(Steering::existing(facts::index(device)?).map(|s| s.mode()))
}

impl Drop for Steering {
    fn drop(&mut self) {
        if let Means::Kept(number) = self.means {
            // If the process that opens devices has ended, the program is already detached.
            let _ = opener::client().map(|o| o.forget(&self.name, number));
        }
    }
}
