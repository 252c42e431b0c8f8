// SPDX-License-Identifier: MIT OR Apache-2.0
//! An AF_XDP socket on one queue of a device, with its four rings.
#![allow(unsafe_code)]

use super::registry::Registry;
use super::ring::{Consumer, Descriptor, Producer};
use super::sys::{self, Statistics};
use crate::device::error::{DeviceError, OPEN_SOCKET};
use crate::opener;
use castanet_packet::Region;
use castanet_packet::region::Holder;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The number of entries of each ring.
pub(super) const RING: u32 = 2048;

/// How often a queue that is in use is tried again, and the time between two tries.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// The half of a socket that receives frames.
#[derive(Debug)]
pub(super) struct ReceiveHalf {
    /// Received frames.
    pub rx: Consumer<Descriptor>,
    /// Buffers for the kernel to fill.
    pub fill: Producer<u64>,
    pub holder: Holder,
    /// The number of buffers that the kernel has.
    pub lent: u32,
}

/// The half of a socket that sends frames.
#[derive(Debug)]
pub(super) struct SendHalf {
    /// Frames to send.
    pub tx: Producer<Descriptor>,
    /// Buffers of frames that were sent.
    pub completion: Consumer<u64>,
    pub holder: Holder,
    /// The number of entries of `tx` whose buffers have not come back through `completion`.
    pub lent: u32,
    /// The number of packets that were copied.
    pub copied: u64,
    /// The addresses of pieces that the kernel has dropped and that are in `tx` once more. The kernel returns them twice.
    pub dropped: Vec<u64>,
}

/// A socket on one queue of a device. A receiver and a sender may use it at the same time, on different threads.
#[derive(Debug)]
pub(super) struct Port {
    name: String,
    index: u32,
    queue: u32,
    /// `None` only while the port is being dropped.
    fd: Option<Arc<OwnedFd>>,
    /// The number of the socket in the process that opens devices.
    number: Option<u32>,
    zero_copy: bool,
    /// Whether frames may lie in several buffers.
    several_buffers: bool,
    receive: Mutex<Option<ReceiveHalf>>,
    send: Mutex<Option<SendHalf>>,
}

/// The ports of this process. The kernel has one UMEM for each queue, so a receiver and a sender on a queue share a
/// port, even if one belongs to the old router of a hot swap and the other to the new one.
static PORTS: Registry<Port> = Registry::new();

/// The region that the devices of this process share, so that a packet goes from one to another without a copy.
static REGION: Mutex<Weak<Region>> = Mutex::new(Weak::new());

/// Returns the region of this process, or a new one if there is none or it has fewer than `buffers` buffers.
fn region(buffers: usize) -> std::io::Result<Arc<Region>> {
    let mut shared = REGION.lock();
    if let Some(region) = shared.upgrade().filter(|r| r.buffers() >= buffers) {
        return Ok(region);
    }
    let region = Arc::new(Region::new(buffers)?);
    *shared = Arc::downgrade(&region);
    Ok(region)
}

/// Opens the socket: in the process that opens devices, if there is one.
fn open_socket(name: &str) -> Result<(OwnedFd, Option<u32>), DeviceError> {
    if let Some(opener) = opener::client() {
        let (fd, number) = opener.xdp_socket(name)?;
        return Ok((fd, Some(number)));
    }
    Ok((open_own(name)?, None))
}

/// Opens the socket in this process.
pub(crate) fn open_own(name: &str) -> Result<OwnedFd, DeviceError> {
    sys::open().map_err(|e| match e {
        Errno::AFNOSUPPORT => {
            DeviceError::Unsupported { name: name.to_owned(), what: "AF_XDP sockets (Linux 5.4)".into() }
        }
        e => DeviceError::from_errno(name, OPEN_SOCKET, e),
    })
}

/// Binds a socket. The kernel releases the queue of a socket some time after the socket was closed, so a queue that is
/// in use is tried again for a while.
fn bind(fd: BorrowedFd<'_>, index: u32, queue: u32, flags: u16) -> Result<(), Errno> {
    for _ in 0..TRIES {
        match sys::bind(fd, index, queue, flags) {
            Err(Errno::BUSY) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    sys::bind(fd, index, queue, flags)
}

impl Port {
    /// Returns the port of this process for a queue of a device, or opens it. `buffers` is the number of buffers that
    /// the region must have if it is created.
    pub fn of(name: &str, index: u32, queue: u32, buffers: usize) -> Result<Arc<Port>, DeviceError> {
        PORTS.get(|p| (p.index, p.queue) == (index, queue), || Port::open(name, index, queue, buffers))
    }

    fn open(name: &str, index: u32, queue: u32, buffers: usize) -> Result<Port, DeviceError> {
        let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
        let no_memory = |e: std::io::Error| DeviceError::Invalid {
            name: name.to_owned(),
            what: format!("no memory for its packets: {e}"),
        };
        let region = region(buffers).map_err(no_memory)?;
        let (socket, number) = open_socket(name)?;
        let fd = socket.as_fd();
        // SAFETY: only buffers of holders are added to the fill ring, see `XdpReceiver::refill`.
        unsafe { sys::register(fd, &region) }.map_err(|e| match e {
            // The limit of locked memory, which counts for programs without CAP_IPC_LOCK.
            Errno::NOBUFS | Errno::NOMEM => DeviceError::Invalid {
                name: name.to_owned(),
                what: format!(
                    "the limit of locked memory is too low for {} MB of packets; before the start: ulimit -l unlimited",
                    region.size() >> 20
                ),
            },
            Errno::INVAL | Errno::NOPROTOOPT => DeviceError::Unsupported {
                name: name.to_owned(),
                what: "AF_XDP with buffers at any address (Linux 5.4)".into(),
            },
            e => failed("register memory for packets")(e),
        })?;
        let rings = [sys::RX_RING, sys::TX_RING, sys::FILL_RING, sys::COMPLETION_RING];
        for ring in rings {
            sys::make_ring(fd, ring, RING).map_err(failed("make its rings"))?;
        }
        let at = sys::offsets(fd).map_err(failed("find its rings"))?;
        let map = failed("map its rings");
        let receive = ReceiveHalf {
            rx: Consumer::map(fd, sys::RX_PAGE, &at.rx, RING).map_err(map)?,
            fill: Producer::map(fd, sys::FILL_PAGE, &at.fill, RING).map_err(map)?,
            holder: region.holder(),
            lent: 0,
        };
        let send = SendHalf {
            tx: Producer::map(fd, sys::TX_PAGE, &at.tx, RING).map_err(map)?,
            completion: Consumer::map(fd, sys::COMPLETION_PAGE, &at.completion, RING).map_err(map)?,
            holder: region.holder(),
            lent: 0,
            copied: 0,
            dropped: Vec::new(),
        };
        // Without copies the device needs buffers whose pages are contiguous, because a buffer may lie across pages.
        let copy = if region.make_contiguous() { 0 } else { sys::COPY };
        let several = sys::NEED_WAKEUP | sys::SEVERAL_BUFFERS;
        // Kernels before 6.6, and some drivers without copies, do not know frames in several buffers.
        let tries = [copy | several, sys::COPY | several, copy | sys::NEED_WAKEUP, sys::COPY];
        let mut bound = Err(Errno::INVAL);
        let mut flags = 0;
        for tried in tries {
            flags = tried;
            bound = bind(fd, index, queue, flags);
            if !matches!(bound, Err(Errno::INVAL | Errno::OPNOTSUPP)) {
                break;
            }
        }
        bound.map_err(|e| match e {
            Errno::INVAL | Errno::OPNOTSUPP => DeviceError::Unsupported {
                name: name.to_owned(),
                what: format!("AF_XDP on its queue {queue}"),
            },
            e => failed("bind an AF_XDP socket to it")(e),
        })?;
        let zero_copy = sys::is_zero_copy(fd);
        Ok(Port {
            name: name.to_owned(),
            index,
            queue,
            fd: Some(Arc::new(socket)),
            number,
            zero_copy,
            several_buffers: flags & sys::SEVERAL_BUFFERS != 0,
            receive: Mutex::new(Some(receive)),
            send: Mutex::new(Some(send)),
        })
    }

    /// Takes the receiving half. `None` if another receiver has it.
    pub fn take_receive_half(&self) -> Option<ReceiveHalf> {
        self.receive.lock().take()
    }
    pub fn put_receive_half(&self, half: ReceiveHalf) {
        *self.receive.lock() = Some(half);
    }
    /// Takes the sending half. `None` if another sender has it.
    pub fn take_send_half(&self) -> Option<SendHalf> {
        self.send.lock().take()
    }
    pub fn put_send_half(&self, half: SendHalf) {
        *self.send.lock() = Some(half);
    }

    /// The socket.
    ///
    /// # Errors
    /// Never, because only a port that is being dropped has no socket.
    pub fn fd(&self) -> Result<&Arc<OwnedFd>, Errno> {
        self.fd.as_ref().ok_or(Errno::BADF)
    }
    pub fn index(&self) -> u32 {
        self.index
    }
    pub fn queue(&self) -> u32 {
        self.queue
    }
    pub fn number(&self) -> Option<u32> {
        self.number
    }
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }
    pub fn takes_several_buffers(&self) -> bool {
        self.several_buffers
    }
    pub fn statistics(&self) -> Statistics {
        self.fd().map_or(Statistics::default(), |fd| sys::statistics(fd.as_fd()))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let (Some(number), Some(opener)) = (self.number, opener::client()) {
            // If the process that opens devices has ended, its descriptor is closed.
            let _ = opener.forget(&self.name, number);
        }
        let closed = self.fd.take().and_then(Arc::into_inner).map(drop).is_some();
        if !closed || self.zero_copy {
            // The device may still access the buffers. They stay with it until the region ends.
            return;
        }
        // SAFETY: the socket was closed, and this process had the only descriptors (the other process has just closed
        // its own). Closing an AF_XDP socket waits until no received frame is being copied, and frames to send were
        // copied when they were sent.
        unsafe {
            if let Some(half) = self.receive.get_mut() {
                half.holder.recall();
            }
            if let Some(half) = self.send.get_mut() {
                half.holder.recall();
            }
        }
    }
}
