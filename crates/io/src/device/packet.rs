// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet sockets that receive the frames of a device.

use super::error::{DeviceError, OPEN_SOCKET};
use super::facts;
use super::filter::Instruction;
use super::frame::{Behind, Bytes, Frame, FrameKind};
use super::ring::{Layout, ReceiveRing, Slot};
use super::sys;
use super::vnet::VnetHeader;
use crate::{LinkType, opener};
use libc::SOL_PACKET;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Options of a [`PacketSocket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// Whether to receive frames to other hosts.
    pub promiscuous: bool,
    /// Whether to receive frames that this host sends.
    pub outgoing: bool,
    /// Receive only frames of this Ethernet type; 0 means all.
    pub protocol: u16,
    /// Receive only frames for which this program returns a number other than 0.
    pub filter: Option<Vec<Instruction>>,
    /// Number of slots of the receive ring, each for one frame.
    pub slots: usize,
    /// Number of the group of sockets that share the frames of the device; `None` if this socket gets all frames.
    /// Each socket of a group gets the frames of some flows (PACKET_FANOUT of packet(7)).
    pub fanout: Option<u16>,
}

impl Default for PacketOptions {
    fn default() -> Self {
        PacketOptions {
            promiscuous: false,
            outgoing: false,
            protocol: 0,
            filter: None,
            slots: 4096,
            fanout: None,
        }
    }
}

/// Opens an unbound packet socket with offload headers and a large buffer for one direction.
pub(crate) fn open_socket(name: &str, sends: bool) -> Result<OwnedFd, DeviceError> {
    if let Some(opener) = opener::client() {
        return opener.packet_socket(name, OPEN_SOCKET, sends);
    }
    let failed = |e| DeviceError::from_errno(name, OPEN_SOCKET, e);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(failed)?;
    // Set this before the ring is created, because the kernel refuses to change the headers of a socket with
    // a ring.
    sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_VNET_HDR, &1u32).map_err(failed)?;
    if sends {
        set_buffer(&fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER);
    } else {
        set_buffer(&fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER);
    }
    Ok(fd)
}

/// Sets the size of a socket buffer, beyond the limit for unprivileged programs if permitted.
fn set_buffer(fd: &OwnedFd, force: libc::c_int, plain: libc::c_int, bytes: u32) {
    // A smaller buffer works too, so a refusal is not an error.
    if sys::set_option(fd.as_fd(), libc::SOL_SOCKET, force, &bytes).is_err() {
        let _ = sys::set_option(fd.as_fd(), libc::SOL_SOCKET, plain, &bytes);
    }
}

/// Length of the longest packet for which slots are sized, in bytes. Longer packets, such as super-packets,
/// go through the receive queue.
const LONGEST_SLOT: usize = 16_384;
/// Size of the receive queue for super-packets, in bytes: enough for some dozens of them.
const RECEIVE_BUFFER: u32 = 8 << 20;
/// Size of the queue of frames that the device has not sent yet, in bytes.
const SEND_BUFFER: u32 = 4 << 20;
const ETH_P_ALL: u16 = 3;
const PACKET_MR_PROMISC: u16 = 1;

/// A socket that receives the frames of one device.
///
/// Frames arrive in a ring of slots that are as long as the device's MTU requires. Each frame is visible as
/// soon as it arrives, and is read without a system call. (Rings of version 3 delay frames until a block is
/// full or a timer of a millisecond or more expires.) A super-packet that is longer than a slot is read from
/// the socket's receive queue by a system call, directly to its destination. The order of frames is kept.
#[derive(Debug)]
pub struct PacketSocket {
    // Declared before the socket, so that the ring is unmapped first.
    ring: ReceiveRing,
    fd: Arc<OwnedFd>,
    name: String,
    index: u32,
    link: LinkType,
    drops: u64,
    layout: Layout,
    /// The error that the kernel returned when a frame was read. The kernel will not report it again. `None` if there
    /// was no error.
    error: Option<Errno>,
}

impl PacketSocket {
    /// Opens the device with this name.
    ///
    /// # Errors
    /// When the device is missing, or the kernel does not permit it. A device that is down can be opened.
    pub fn open(name: &str, options: &PacketOptions) -> Result<PacketSocket, DeviceError> {
        let info = facts::link_info(name)?;
        let fd = open_socket(name, false)?;
        let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
        let set = |option, value: u32| sys::set_option(fd.as_fd(), SOL_PACKET, option, &value);
        let header = if info.link.is_ethernet() { 22 } else { 64 };
        let layout = Layout::new((info.mtu as usize).min(LONGEST_SLOT) + header, options.slots);
        set(libc::PACKET_VERSION, 1).map_err(failed("choose the version of its ring"))?;
        // Make the kernel put frames that are longer than a slot into the receive queue, in full length.
        set(libc::PACKET_COPY_THRESH, 1).map_err(failed("receive super-packets"))?;
        sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_RX_RING, &layout.request())
            .map_err(failed("make its ring"))?;
        let ring = ReceiveRing::map(fd.as_fd(), layout).map_err(failed("map its ring"))?;
        match (&options.filter, options.fanout) {
            // Drop all frames until the socket has joined its group. Before that, it would also receive the frames
            // that belong to the other sockets of the group.
            (_, Some(_)) => sys::attach_filter(fd.as_fd(), &[Instruction::NOTHING]),
            (Some(program), None) => sys::attach_filter(fd.as_fd(), program),
            (None, None) => Ok(()),
        }
        .map_err(failed("attach the filter"))?;
        if !options.outgoing {
            // Kernels before 4.20 do not have this option, and always deliver outgoing frames.
            let _ = set(libc::PACKET_IGNORE_OUTGOING, 1);
        }
        if options.promiscuous {
            // The membership ends when the socket is closed.
            set_membership(&fd, libc::PACKET_ADD_MEMBERSHIP, info.index)
                .map_err(failed("make it promiscuous"))?;
        }
        let protocol = if options.protocol == 0 { ETH_P_ALL } else { options.protocol };
        // Bind last, because the socket must not receive frames earlier. An unbound socket would also receive frames of
        // other devices. A socket without its filter would also receive frames that the filter drops.
        match sys::bind_packet(fd.as_fd(), info.index, protocol) {
            // NETDOWN: the device is down, but the socket is bound. The kernel has cleared the error by returning it.
            // If the socket is to join a fanout group, NETDOWN stays an error: a socket cannot join a group while its
            // device is down.
            Ok(()) => {}
            Err(Errno::NETDOWN) if options.fanout.is_none() => {}
            Err(e) => return Err(failed("bind to it")(e)),
        }
        if let Some(number) = options.fanout {
            join(&fd, number, options.filter.as_deref())
                .map_err(failed("share its frames with other sockets"))?;
        }
        Ok(PacketSocket {
            ring,
            fd: Arc::new(fd),
            name: name.to_owned(),
            index: info.index,
            link: info.link,
            drops: 0,
            layout,
            error: None,
        })
    }

    /// Switches promiscuous mode from the current state `before` to the state `now`.
    ///
    /// # Errors
    /// When the kernel does not permit it.
    pub fn set_promiscuous(&self, before: bool, now: bool) -> Result<(), DeviceError> {
        change_membership(&self.fd, self.index, before, now)
            .map_err(|e| DeviceError::from_errno(&self.name, "make it promiscuous, or not", e))
    }
    /// Switches on or off the reception of frames that the host itself sends.
    pub fn set_outgoing(&self, outgoing: bool) {
        let ignore = u32::from(!outgoing);
        // Kernels before 4.20 do not have this option, and always deliver outgoing frames.
        let _ = sys::set_option(self.fd.as_fd(), SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ignore);
    }

    /// The descriptor. It is readable while frames or an error are pending.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// The type of the link header.
    pub fn link(&self) -> LinkType {
        self.link
    }
    /// The number of slots of the ring.
    pub fn slots(&self) -> usize {
        self.layout.slots()
    }

    /// Calls `each` for up to `max` received frames, without blocking. Returns the number of frames.
    pub fn receive(&mut self, max: usize, mut each: impl FnMut(&Frame<'_>)) -> usize {
        for n in 0..max {
            let Some(slot) = self.ring.current() else { return n };
            self.ring.fetch_ahead();
            let vnet = VnetHeader::read_from_bytes(slot.before(VnetHeader::LEN)).unwrap_or(VnetHeader::NONE);
            if slot.status() & libc::TP_STATUS_COPY == 0 {
                each(&frame(&slot, Bytes::Here(slot.data()), vnet));
            } else {
                std::hint::cold_path();
                // The slot holds only the beginning of the frame. The whole frame is read from the receive
                // queue, directly to its destination.
                let behind = Behind::new(&self.fd, slot.wire_len());
                each(&frame(&slot, Bytes::Behind(&behind), vnet));
                behind.discard();
                self.error = behind.error().or(self.error);
            }
            self.ring.release();
        }
        max
    }

    /// Whether [`PacketSocket::receive`] has met an error of the socket. The descriptor does not become readable for
    /// this error, so [`PacketSocket::check`] must be called.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the pending error of the socket. Each error is returned once. Call this function when the
    /// descriptor is readable and there is no frame, or when [`PacketSocket::has_error`] returns true.
    ///
    /// # Errors
    /// [`DeviceError::Down`] when the device has gone down or vanished.
    pub fn check(&mut self) -> Result<(), DeviceError> {
        if let Some(errno) = self.error.take() {
            return Err(DeviceError::from_errno(&self.name, "receive from it", errno));
        }
        match sys::get_option::<u32>(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => Ok(()),
            Ok(e) => {
                let errno = Errno::from_raw_os_error(i32::try_from(e).unwrap_or(i32::MAX));
                Err(DeviceError::from_errno(&self.name, "receive from it", errno))
            }
            Err(e) => Err(DeviceError::from_errno(&self.name, "receive from it", e)),
        }
    }

    /// The number of frames that the kernel dropped because the ring was full, since the socket was opened.
    pub fn drops(&mut self) -> u64 {
        // struct tpacket_stats: packets and drops since the last call.
        if let Ok([_, drops]) =
            sys::get_option::<[u32; 2]>(self.fd.as_fd(), SOL_PACKET, libc::PACKET_STATISTICS)
        {
            self.drops = self.drops.saturating_add(u64::from(drops));
        }
        self.drops
    }
}

/// Joins a group of sockets that share the frames of a device, and then begins to receive.
fn join(fd: &OwnedFd, number: u16, filter: Option<&[Instruction]>) -> Result<(), Errno> {
    // The lower half is the number of the group. The upper half says how frames are distributed: by a hash of
    // addresses and ports. Both directions of a flow have the same hash.
    let group = u32::from(number) | libc::PACKET_FANOUT_HASH << 16;
    sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_FANOUT, &group)?;
    match filter {
        Some(program) => sys::attach_filter(fd.as_fd(), program),
        None => sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0u32),
    }
}

/// Switches promiscuous mode of a device for a socket from the state `before` to the state `now`.
fn change_membership(fd: &OwnedFd, index: u32, before: bool, now: bool) -> Result<(), Errno> {
    match (before, now) {
        (false, true) => set_membership(fd, libc::PACKET_ADD_MEMBERSHIP, index),
        (true, false) => set_membership(fd, libc::PACKET_DROP_MEMBERSHIP, index),
        _ => Ok(()),
    }
}

/// Switches promiscuous mode of a device on or off for a socket.
fn set_membership(fd: &OwnedFd, option: i32, index: u32) -> Result<(), Errno> {
    // struct packet_mreq: index, type, length of the address, address.
    let mut request = [0u8; 16];
    request[..4].copy_from_slice(&index.to_ne_bytes());
    request[4..6].copy_from_slice(&PACKET_MR_PROMISC.to_ne_bytes());
    sys::set_option(fd.as_fd(), SOL_PACKET, option, &request)
}

/// A socket that receives nothing. It gets an error when its device goes down or vanishes, of which AF_XDP sockets tell
/// nothing, and it can make the device promiscuous.
#[derive(Debug)]
pub(super) struct Witness {
    fd: Arc<OwnedFd>,
    index: u32,
    promiscuous: bool,
}

impl Witness {
    /// Opens a socket on a device.
    pub fn open(name: &str, index: u32) -> Result<Witness, DeviceError> {
        /// An Ethernet type that no frame has, because smaller numbers are lengths. Only sockets that are bound to a
        /// type get errors of their device.
        const NO_TYPE: u16 = 0x0600 - 1;
        let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
        let fd = open_socket(name, true)?;
        sys::attach_filter(fd.as_fd(), &[Instruction::NOTHING]).map_err(failed("attach the filter"))?;
        match sys::bind_packet(fd.as_fd(), index, NO_TYPE) {
            Ok(()) | Err(Errno::NETDOWN) => Ok(Witness { fd: Arc::new(fd), index, promiscuous: false }),
            Err(e) => Err(failed("bind to it")(e)),
        }
    }
    /// The descriptor. It is readable while an error is pending.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// Makes the device promiscuous, or ends that.
    pub fn set_promiscuous(&mut self, promiscuous: bool) -> Result<(), Errno> {
        change_membership(&self.fd, self.index, self.promiscuous, promiscuous)?;
        self.promiscuous = promiscuous;
        Ok(())
    }
}

#[inline(always)]
fn frame<'a>(slot: &Slot<'_>, data: Bytes<'a>, vnet: VnetHeader) -> Frame<'a> {
    let tag = (slot.status() & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let (control, protocol) = slot.vlan();
        let known = slot.status() & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let [a, b] = if known { protocol } else { 0x8100 }.to_be_bytes();
        let [c, d] = control.to_be_bytes();
        [a, b, c, d]
    });
    let kind = FrameKind::from_number(slot.kind());
    Frame::new(data, slot.wire_len(), tag, slot.time_ns(), kind, vnet)
}
