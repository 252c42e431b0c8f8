// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs at tracepoints of the kernel.
#![allow(unsafe_code)]

use super::{Operation, Program, address, bpf};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
/// Programs at tracepoints read the kernel's memory, which it permits only to programs under these licences.
const LICENSE: &CStr = c"Dual MIT/GPL";

#[repr(C)]
#[derive(Default)]
struct OpenAttributes {
    name: u64,
    program: i32,
    pad: u32,
}

/// Runs a program whenever the kernel passes a tracepoint, while the returned descriptor is open. The program's context are the
/// arguments of the tracepoint, as words of 8 bytes.
pub fn at_tracepoint(name: &CStr, operations: &[Operation]) -> Result<OwnedFd, Errno> {
    let program = Program::load_with(PROG_TYPE_RAW_TRACEPOINT, 0, operations, (0, &mut []), LICENSE)?;
    let mut attributes =
        OpenAttributes { name: address(name.to_bytes_with_nul()), program: program.0.as_raw_fd(), pad: 0 };
    // SAFETY: the name is a zero-terminated text that lives during the call, which only reads it. The result is a new descriptor.
    unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}
