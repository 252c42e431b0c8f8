// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receiving the frames of a device.

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

/// How frames are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// Whether frames to other hosts are received.
    pub promiscuous: bool,
    /// Whether frames are received that this host sends.
    pub outgoing: bool,
    /// Only frames of this Ethernet type; 0: all.
    pub protocol: u16,
    /// Only frames for which this program gives a number other than 0.
    pub filter: Option<Vec<Instruction>>,
    /// How many frames wait at most until they are read.
    pub slots: usize,
}

impl Default for PacketOptions {
    fn default() -> Self {
        PacketOptions { promiscuous: false, outgoing: false, protocol: 0, filter: None, slots: 4096 }
    }
}

/// Opens a packet socket that is bound to nothing yet, with headers that tell of offloads and a large buffer for one direction.
pub(crate) fn open_socket(name: &str, sends: bool) -> Result<OwnedFd, DeviceError> {
    if let Some(opener) = opener::client() {
        return opener.packet_socket(name, OPEN_SOCKET, sends);
    }
    let failed = |e| DeviceError::from_errno(name, OPEN_SOCKET, e);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(failed)?;
    // Before the ring: the system refuses to change what stands before frames when there is one.
    sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_VNET_HDR, &1u32).map_err(failed)?;
    if sends {
        set_buffer(&fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER);
    } else {
        set_buffer(&fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER);
    }
    Ok(fd)
}

/// Sets the size of a socket buffer, beyond the limit for unprivileged programs if that is allowed.
fn set_buffer(fd: &OwnedFd, force: libc::c_int, plain: libc::c_int, bytes: u32) {
    // A smaller buffer works too, so a refusal is no error.
    if sys::set_option(fd.as_fd(), libc::SOL_SOCKET, force, &bytes).is_err() {
        let _ = sys::set_option(fd.as_fd(), libc::SOL_SOCKET, plain, &bytes);
    }
}

/// The longest packets that slots are made for: longer ones come beside the ring, as super-packets do.
const LONGEST_SLOT: usize = 16_384;
/// Bytes for super-packets that wait to be read: some dozens.
const RECEIVE_BUFFER: u32 = 8 << 20;
/// Bytes of frames that the device has not sent yet.
const SEND_BUFFER: u32 = 4 << 20;
const ETH_P_ALL: u16 = 3;
const PACKET_MR_PROMISC: u16 = 1;

/// A socket that receives the frames of one device.
///
/// Frames come through a ring of slots that hold what the device's MTU allows; each is there as soon as it has come, and is
/// read without a system call. (Rings of version 3 hold frames back until a block is full or a timer of a millisecond or
/// more ends.) A super-packet that is longer than a slot comes behind the ring by a read of its own, in order with the others, when
/// and to where it is copied.
#[derive(Debug)]
pub struct PacketSocket {
    // The ring goes before the socket.
    ring: ReceiveRing,
    fd: Arc<OwnedFd>,
    name: String,
    index: u32,
    link: LinkType,
    drops: u64,
    layout: Layout,
}

impl PacketSocket {
    /// Opens the device of that name.
    ///
    /// # Errors
    /// When it is missing, or the system does not permit it. A device that is down can be opened.
    pub fn open(name: &str, options: &PacketOptions) -> Result<PacketSocket, DeviceError> {
        let info = facts::link_info(name)?;
        let fd = open_socket(name, false)?;
        let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
        let set = |option, value: u32| sys::set_option(fd.as_fd(), SOL_PACKET, option, &value);
        let header = if info.link.is_ethernet() { 22 } else { 64 };
        let layout = Layout::new((info.mtu as usize).min(LONGEST_SLOT) + header, options.slots);
        set(libc::PACKET_VERSION, 1).map_err(failed("choose the version of its ring"))?;
        // A frame that is longer than a slot is delivered whole beside the ring.
        set(libc::PACKET_COPY_THRESH, 1).map_err(failed("receive super-packets"))?;
        sys::set_option(fd.as_fd(), SOL_PACKET, libc::PACKET_RX_RING, &layout.request())
            .map_err(failed("make its ring"))?;
        let ring = ReceiveRing::map(fd.as_fd(), layout).map_err(failed("map its ring"))?;
        if let Some(program) = &options.filter {
            sys::attach_filter(fd.as_fd(), program).map_err(failed("attach the filter"))?;
        }
        if !options.outgoing {
            // Systems before 4.20 do not know it; what they deliver is left out when it is read.
            let _ = set(libc::PACKET_IGNORE_OUTGOING, 1);
        }
        if options.promiscuous {
            // It ends with the socket.
            set_membership(&fd, libc::PACKET_ADD_MEMBERSHIP, info.index)
                .map_err(failed("make it promiscuous"))?;
        }
        let protocol = if options.protocol == 0 { ETH_P_ALL } else { options.protocol };
        // From here on frames come; those from before would be of other devices, or not filtered.
        match sys::bind_packet(fd.as_fd(), info.index, protocol) {
            // Told when it happens while the device is down, and cleared by being told: the socket is bound.
            Ok(()) | Err(Errno::NETDOWN) => {}
            Err(e) => return Err(failed("bind to it")(e)),
        }
        Ok(PacketSocket {
            ring,
            fd: Arc::new(fd),
            name: name.to_owned(),
            index: info.index,
            link: info.link,
            drops: 0,
            layout,
        })
    }

    /// Receives frames to other hosts from now on, or no more. `before` is what was said last.
    ///
    /// # Errors
    /// When the system does not permit it.
    pub fn set_promiscuous(&self, before: bool, now: bool) -> Result<(), DeviceError> {
        let option = match (before, now) {
            (false, true) => libc::PACKET_ADD_MEMBERSHIP,
            (true, false) => libc::PACKET_DROP_MEMBERSHIP,
            _ => return Ok(()),
        };
        set_membership(&self.fd, option, self.index)
            .map_err(|e| DeviceError::from_errno(&self.name, "make it promiscuous, or not", e))
    }
    /// Receives frames that the host sends from now on, or no more.
    pub fn set_outgoing(&self, outgoing: bool) {
        let ignore = u32::from(!outgoing);
        // Systems before 4.20 do not know it; what they deliver is left out when it is read.
        let _ = sys::set_option(self.fd.as_fd(), SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ignore);
    }

    /// The descriptor, which is readable while frames wait or there is an error to be told.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its number when it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// What its frames begin with.
    pub fn link(&self) -> LinkType {
        self.link
    }
    /// How many frames the ring holds.
    pub fn slots(&self) -> usize {
        self.layout.slots()
    }

    /// Hands over frames that have come, at most `max`, without waiting. How many there were.
    pub fn receive(&mut self, max: usize, mut each: impl FnMut(&Frame<'_>)) -> usize {
        for n in 0..max {
            let Some(slot) = self.ring.current() else { return n };
            self.ring.fetch_ahead();
            let vnet = VnetHeader::read_from_bytes(slot.before(VnetHeader::LEN)).unwrap_or(VnetHeader::NONE);
            if slot.status() & libc::TP_STATUS_COPY == 0 {
                each(&frame(&slot, Bytes::Here(slot.data()), vnet));
            } else {
                std::hint::cold_path();
                // What the slot holds is cut; it is copied once, to where it goes from here.
                let behind = Behind::new(&self.fd, slot.wire_len());
                each(&frame(&slot, Bytes::Behind(&behind), vnet));
                behind.discard();
            }
            self.ring.release();
        }
        max
    }

    /// What is wrong with the device, if the socket was told: each error is told once. To be asked when the descriptor is
    /// readable and no frame is there.
    ///
    /// # Errors
    /// [`DeviceError::Down`] when it has gone down or vanished.
    pub fn check(&self) -> Result<(), DeviceError> {
        match sys::get_option::<u32>(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => Ok(()),
            Ok(e) => {
                let errno = Errno::from_raw_os_error(i32::try_from(e).unwrap_or(i32::MAX));
                Err(DeviceError::from_errno(&self.name, "receive from it", errno))
            }
            Err(e) => Err(DeviceError::from_errno(&self.name, "receive from it", e)),
        }
    }

    /// How many frames the system dropped because the ring was full, since the socket was opened.
    pub fn drops(&mut self) -> u64 {
        // struct tpacket_stats: packets and drops since it was last asked.
        if let Ok([_, drops]) =
            sys::get_option::<[u32; 2]>(self.fd.as_fd(), SOL_PACKET, libc::PACKET_STATISTICS)
        {
            self.drops = self.drops.saturating_add(u64::from(drops));
        }
        self.drops
    }
}

/// Makes a device promiscuous for a socket, or ends that.
fn set_membership(fd: &OwnedFd, option: i32, index: u32) -> Result<(), Errno> {
    // struct packet_mreq: index, type, length of the address, address.
    let mut request = [0u8; 16];
    request[..4].copy_from_slice(&index.to_ne_bytes());
    request[4..6].copy_from_slice(&PACKET_MR_PROMISC.to_ne_bytes());
    sys::set_option(fd.as_fd(), SOL_PACKET, option, &request)
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
