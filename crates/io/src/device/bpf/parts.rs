// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map by which the parts of a program call each other.
#![allow(unsafe_code)]

use super::{ElementAttributes, MAP_CREATE, MAP_UPDATE_ELEM, MapAttributes, Program, address, bpf};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_TYPE_PROG_ARRAY: u32 = 3;

/// The parts of a program by their numbers. The kernel removes all of them as soon as no process has the map open and no file keeps it
/// alive, even if programs still use it.
#[derive(Debug)]
pub struct PartMap(OwnedFd);

impl PartMap {
    /// Makes a map for this number of parts.
    pub fn new(entries: u32) -> Result<PartMap, Errno> {
        let kind = MAP_TYPE_PROG_ARRAY;
        let mut attributes = MapAttributes { kind, key_size: 4, value_size: 4, entries, flags: 0 };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new descriptor.
        Ok(PartMap(unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &mut attributes)?) }))
    }
    /// The descriptor of the map.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
    /// Sets a part. The map keeps it alive.
    pub fn set(&self, number: u32, part: &Program) -> Result<(), Errno> {
        let program = part.0.as_raw_fd();
        let (key, value) = (address(&number), address(&program));
        let mut attributes = ElementAttributes { map: self.0.as_raw_fd(), key, value, ..Default::default() };
        // SAFETY: the map was made for keys and values of four bytes. The command reads both, and they live during the
        // call.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
    }
}
