// SPDX-License-Identifier: MIT OR Apache-2.0
//! Safe wrappers of system calls that no library wraps.
#![allow(unsafe_code)]

use super::filter::Instruction;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Converts the result of a system call. After an error the result is -1, and `errno` holds the error.
pub(super) fn check(result: libc::c_int) -> Result<libc::c_int, Errno> {
    if result < 0 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    } else {
        Ok(result)
    }
}

fn length<T>() -> libc::socklen_t {
    // Options are a few bytes long.
    size_of::<T>() as libc::socklen_t
}

/// Sets a socket option.
pub fn set_option<T: IntoBytes + Immutable>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    // SAFETY: the pointer is to size_of::<T>() initialised bytes that live during the call, which only reads
    // them. A value of a type `T: IntoBytes` contains no pointers. (The value of SO_ATTACH_FILTER contains one, so
    // this option has a function of its own.)
    let r = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length::<T>())
    };
    check(r).map(drop)
}

/// Reads a socket option. Bytes that the kernel does not set are zero.
pub fn get_option<T: FromBytes + IntoBytes>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> Result<T, Errno> {
    let mut value = T::new_zeroed();
    let mut len = length::<T>();
    // SAFETY: the call writes at most `len` bytes, the size of T, and any bytes are a valid T.
    let r = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, std::ptr::from_mut(&mut value).cast(), &mut len)
    };
    check(r).map(|_| value)
}

/// Attaches a filter to a socket. Frames for which the filter returns 0 are not delivered.
pub fn attach_filter(fd: BorrowedFd<'_>, program: &[Instruction]) -> Result<(), Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let mut code: Vec<libc::sock_filter> =
        program.iter().map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    let fprog = libc::sock_fprog { len, filter: code.as_mut_ptr() };
    // SAFETY: the option is a sock_fprog whose pointer is to `len` instructions. The sock_fprog and the
    // instructions live during the call, which copies and checks them.
    let r = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&fprog).cast(),
            length::<libc::sock_fprog>(),
        )
    };
    check(r).map(drop)
}

/// Binds a packet socket to a device and a protocol. The socket receives frames from then on.
pub fn bind_packet(fd: BorrowedFd<'_>, index: u32, protocol: u16) -> Result<(), Errno> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: i32::try_from(index).map_err(|_| Errno::NODEV)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the pointer is to a whole sockaddr_ll that lives during the call, and the length is its size.
    let r = unsafe {
        libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), length::<libc::sockaddr_ll>())
    };
    check(r).map(drop)
}

/// The argument of TUNSETIFF: name, flags, and padding to the size of an ifreq.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct TunRequest {
    /// The name, zero-terminated. The kernel overwrites it with the actual name.
    pub name: [u8; libc::IFNAMSIZ],
    /// Flags: IFF_TUN, IFF_TAP and others.
    pub flags: u16,
    /// Padding.
    pub rest: [u8; 22],
}

// The kernel writes a whole ifreq, so it would write beyond the end of a shorter request.
const _: () = assert!(size_of::<TunRequest>() >= size_of::<libc::ifreq>());

/// Attaches a queue to a device. `fd` is a descriptor of `/dev/net/tun`, and becomes the queue. If the device
/// does not exist, it is created.
pub fn tun_attach(fd: BorrowedFd<'_>, request: &mut TunRequest) -> Result<(), Errno> {
    // SAFETY: TUNSETIFF reads and writes an ifreq, which is not longer than the request (asserted above). It
    // uses only the name and the flags.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, std::ptr::from_mut(request)) };
    check(r).map(drop)
}

/// The options of TUN and TAP devices that have a numeric value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunOption {
    /// The offloads that the reader of the queue supports, as TUN_F_ bits.
    Offload,
    /// Whether the device continues to exist when no process has it open.
    Persist,
}

/// Sets an option of the device that a queue belongs to.
pub fn tun_set(fd: BorrowedFd<'_>, option: TunOption, value: u32) -> Result<(), Errno> {
    let request = match option {
        TunOption::Offload => libc::TUNSETOFFLOAD,
        TunOption::Persist => libc::TUNSETPERSIST,
    };
    // SAFETY: the argument of both requests is a number, not a pointer.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, libc::c_ulong::from(value)) };
    check(r).map(drop)
}

/// Returns an ioctl request (struct ifreq) that names this device.
pub(super) fn about(name: &str) -> libc::ifreq {
    // SAFETY: all bytes zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

/// The MTU of the device with this name, in bytes. `fd` may be any socket.
pub fn mtu(fd: BorrowedFd<'_>, name: &str) -> Result<u32, Errno> {
    let mut request = about(name);
    // SAFETY: the argument is an ifreq with a name that ends with a zero byte. The kernel writes a number to
    // the ifreq.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, std::ptr::from_mut(&mut request)) };
    check(r)?;
    // SAFETY: the kernel wrote the number. All members of the union are plain bytes, so reading is valid in any case.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(|_| Errno::RANGE)
}

/// Whether a device can send: it is up, and has a carrier. Does not wait while the state of a device changes.
pub fn is_running(fd: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    let mut request = about(name);
    // SAFETY: as in `mtu`. The kernel writes the flags to the ifreq.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFFLAGS as _, std::ptr::from_mut(&mut request)) };
    check(r)?;
    // SAFETY: the kernel wrote the flags. All members of the union are plain bytes, so reading is valid in any case.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_RUNNING != 0)
}

/// Opens a socket for requests about devices.
pub fn any_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn options_of_a_socket() {
        let s = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        set_option(s.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, &5u32).unwrap();
        assert_eq!(get_option::<u32>(s.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY), Ok(5));
        // Bytes beyond the size of the option stay zero.
        assert_eq!(get_option::<[u32; 3]>(s.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY), Ok([5, 0, 0]));
        assert_eq!(set_option(s.as_fd(), libc::SOL_SOCKET, 9999, &5u32), Err(Errno::NOPROTOOPT));
    }

    #[test]
    fn bad_filters_are_refused() {
        let s = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let ret = Instruction { code: 6, jt: 0, jf: 0, k: 0 };
        assert_eq!(attach_filter(s.as_fd(), &[]), Err(Errno::INVAL));
        assert_eq!(attach_filter(s.as_fd(), &[Instruction { code: 0xffff, ..ret }]), Err(Errno::INVAL));
        assert_eq!(attach_filter(s.as_fd(), &vec![ret; 70_000]), Err(Errno::INVAL));
        attach_filter(s.as_fd(), &[ret]).unwrap();
        let to = s.local_addr().unwrap();
        s.send_to(b"dropped by the filter", to).unwrap();
        s.set_nonblocking(true).unwrap();
        assert!(s.recv(&mut [0; 64]).is_err(), "a filter that gives 0 delivers nothing");
    }
}
