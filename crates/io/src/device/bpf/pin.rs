// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the BPF file system, which keep maps and links alive without a process.
#![allow(unsafe_code)]

use super::{Map, MapKind, MapShape, address, bpf};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;

#[repr(C)]
#[derive(Default)]
struct FileAttributes {
    path: u64,
    object: i32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct InfoAttributes {
    object: i32,
    size: u32,
    info: u64,
}

/// The start of struct bpf_link_info and of struct bpf_map_info, as words.
type Info = [u32; 8];

fn path(of: &Path) -> Result<CString, Errno> {
    CString::new(of.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// Makes a file that keeps a map or a link alive. Removing the file ends that.
pub fn pin(object: BorrowedFd<'_>, file: &Path) -> Result<(), Errno> {
    let file = path(file)?;
    let mut attributes =
        FileAttributes { path: address(file.as_bytes_with_nul()), object: object.as_raw_fd(), flags: 0 };
    // SAFETY: the path is a zero-terminated text that lives during the call, which only reads it.
    unsafe { bpf(OBJ_PIN, &mut attributes) }.map(drop)
}

/// Opens the map or the link that a file keeps alive.
pub fn pinned(file: &Path) -> Result<OwnedFd, Errno> {
    let file = path(file)?;
    let mut attributes = FileAttributes { path: address(file.as_bytes_with_nul()), ..Default::default() };
    // SAFETY: as in `pin`. The result is a new descriptor.
    unsafe { bpf(OBJ_GET, &mut attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

fn info(object: BorrowedFd<'_>) -> Result<Info, Errno> {
    let mut info = Info::default();
    let mut attributes = InfoAttributes {
        object: object.as_raw_fd(),
        size: size_of::<Info>() as u32,
        info: info.as_mut_ptr().expose_provenance() as u64,
    };
    // SAFETY: the command writes at most `size` bytes to `info`, which lives during the call.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attributes) }.map(|_| info)
}

/// The identifier of a map or a link.
pub fn id_of(object: BorrowedFd<'_>) -> Result<u32, Errno> {
    let [_, id, ..] = info(object)?;
    Ok(id)
}

/// The interface index of the device that a link attaches an XDP program to; 0 if the device is gone.
pub fn device_of(link: BorrowedFd<'_>) -> Result<u32, Errno> {
    /// The type of links of XDP programs.
    const XDP: u32 = 6;
    let [kind, _, _, _, device, ..] = info(link)?;
    if kind == XDP { Ok(device) } else { Err(Errno::INVAL) }
}

/// Opens the map of counters that a file keeps alive.
pub fn counters(file: &Path) -> Result<Map, Errno> {
    let fd = pinned(file)?;
    let [kind, _, key, value, entries, ..] = info(std::os::fd::AsFd::as_fd(&fd))?;
    let shape = MapShape { kind: MapKind::Counters, key, value, entries };
    if kind == MapKind::Counters.number() && key == 4 { Ok(Map::of(fd, shape)) } else { Err(Errno::INVAL) }
}
