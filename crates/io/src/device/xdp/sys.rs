// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants, structures and system calls of AF_XDP (linux/if_xdp.h).
#![allow(unsafe_code)]

use crate::device::sys;
use castanet_packet::{Region, region};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const SOL_XDP: libc::c_int = 283;
const MMAP_OFFSETS: libc::c_int = 1;
pub const RX_RING: libc::c_int = 2;
pub const TX_RING: libc::c_int = 3;
const UMEM_REG: libc::c_int = 4;
pub const FILL_RING: libc::c_int = 5;
pub const COMPLETION_RING: libc::c_int = 6;
const STATISTICS: libc::c_int = 7;
const OPTIONS: libc::c_int = 8;

/// Offsets for mmap(2), which select the ring.
pub const RX_PAGE: u64 = 0;
pub const TX_PAGE: u64 = 0x8000_0000;
pub const FILL_PAGE: u64 = 0x1_0000_0000;
pub const COMPLETION_PAGE: u64 = 0x1_8000_0000;

/// In the flags of a ring: the kernel waits for a system call.
pub const RING_NEEDS_WAKEUP: u32 = 1;
/// Flag of the UMEM: buffers may be at any address.
const UNALIGNED: u32 = 1;
/// Bit of the answer to OPTIONS: the device accesses the UMEM itself, without copies.
const ZERO_COPY: u32 = 1;

/// Flags of bind(2).
pub const COPY: u16 = 1 << 1;
pub const NEED_WAKEUP: u16 = 1 << 3;
pub const SEVERAL_BUFFERS: u16 = 1 << 4;

/// The bytes before the frame in a buffer that the kernel fills, besides those of [`HEADROOM`].
const KERNEL_HEADROOM: u32 = 256;
/// The bytes that are added to the kernel's headroom. They align the network header to four bytes, and put the first 62
/// bytes of the frame into one cache line.
const HEADROOM: u32 = 30;
/// The headroom of received frames in bytes.
pub const FRAME_HEADROOM: u32 = KERNEL_HEADROOM + HEADROOM;

/// Where the parts of a ring are in its mapping (struct xdp_ring_offset).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Offsets {
    pub producer: u64,
    pub consumer: u64,
    pub entries: u64,
    pub flags: u64,
}

/// The offsets of all rings (struct xdp_mmap_offsets).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct AllOffsets {
    pub rx: Offsets,
    pub tx: Offsets,
    pub fill: Offsets,
    pub completion: Offsets,
}

/// struct xdp_umem_reg
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct UmemRegistration {
    address: u64,
    len: u64,
    chunk_size: u32,
    headroom: u32,
    flags: u32,
    metadata: u32,
}

/// The counters of a socket (struct xdp_statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Statistics {
    /// Received frames that were dropped because no buffer was there, or they did not fit.
    pub rx_dropped: u64,
    /// Buffers with invalid addresses.
    pub rx_invalid: u64,
    /// Frames to send with invalid addresses or lengths.
    pub tx_invalid: u64,
    /// Received frames that were dropped because the ring was full.
    pub rx_full: u64,
    /// The number of times that no buffer was there.
    pub fill_empty: u64,
    /// The number of times that no frame to send was there.
    pub tx_empty: u64,
}

/// struct sockaddr_xdp
#[repr(C)]
struct Address {
    family: u16,
    flags: u16,
    device: u32,
    queue: u32,
    shared: u32,
}

/// Opens an AF_XDP socket.
pub fn open() -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the arguments are numbers.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if fd < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    // SAFETY: a new descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the memory of a region the UMEM of a socket.
///
/// # Safety
/// The kernel writes to each buffer that the program adds to the fill ring of the socket. The program must add only
/// buffers that a [`castanet_packet::region::Holder`] has.
pub unsafe fn register(fd: BorrowedFd<'_>, region: &Region) -> Result<(), Errno> {
    let registration = UmemRegistration {
        address: region.address().as_ptr().expose_provenance() as u64,
        len: region.size() as u64,
        chunk_size: region::BUFFER as u32,
        headroom: HEADROOM,
        flags: UNALIGNED,
        metadata: 0,
    };
    sys::set_option(fd, SOL_XDP, UMEM_REG, &registration)
}

/// Makes a ring of a socket. `size` is a power of two.
pub fn make_ring(fd: BorrowedFd<'_>, ring: libc::c_int, size: u32) -> Result<(), Errno> {
    sys::set_option(fd, SOL_XDP, ring, &size)
}

/// The offsets of the rings.
pub fn offsets(fd: BorrowedFd<'_>) -> Result<AllOffsets, Errno> {
    sys::get_option(fd, SOL_XDP, MMAP_OFFSETS)
}

/// Binds a socket to a queue of a device.
pub fn bind(fd: BorrowedFd<'_>, device: u32, queue: u32, flags: u16) -> Result<(), Errno> {
    let address = Address { family: libc::AF_XDP as u16, flags, device, queue, shared: 0 };
    let len = size_of::<Address>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole sockaddr_xdp that lives during the call, and the length is its size.
    let r = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) };
    if r < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}

/// Whether the device accesses the UMEM itself, without copies.
pub fn is_zero_copy(fd: BorrowedFd<'_>) -> bool {
    sys::get_option::<u32>(fd, SOL_XDP, OPTIONS).is_ok_and(|o| o & ZERO_COPY != 0)
}

/// The counters of a socket.
pub fn statistics(fd: BorrowedFd<'_>) -> Statistics {
    sys::get_option(fd, SOL_XDP, STATISTICS).unwrap_or_default()
}

/// Makes the socket poll its device in each system call for it, as long as `budget` frames are there (Linux 5.11).
pub fn poll_busily(fd: BorrowedFd<'_>, budget: u32) -> Result<(), Errno> {
    const SO_BUSY_POLL: libc::c_int = 46;
    const SO_PREFER_BUSY_POLL: libc::c_int = 69;
    const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
    /// How long a system call polls, in microseconds.
    const TIME: u32 = 20;
    sys::set_option(fd, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1u32)?;
    sys::set_option(fd, libc::SOL_SOCKET, SO_BUSY_POLL, &TIME)?;
    sys::set_option(fd, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget)
}
