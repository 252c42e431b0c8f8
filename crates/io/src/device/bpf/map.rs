// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps of compiled programs: counters, devices, and tables.
#![allow(unsafe_code)]

use super::{
    ElementAttributes, MAP_CREATE, MAP_DELETE_ELEM, MAP_LOOKUP_ELEM, MAP_UPDATE_ELEM, MapAttributes, bpf,
};
use castanet_kernel::TableKind;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_GET_NEXT_KEY: libc::c_int = 4;
/// Flag of a map: entries get memory when they are made, not when the map is.
const NO_PREALLOC: u32 = 1;
/// Flag of a map: processes can map its values.
const MMAPABLE: u32 = 1 << 10;

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// One value for each processor.
    Counters,
    /// Devices that frames leave by, by number: values are interface indices.
    Devices,
    /// A hash table.
    Hash,
    /// An array whose values this process can have in its memory ([`SharedWords`](super::SharedWords)).
    Shared,
}

impl MapKind {
    /// The number of the kind in bpf(2).
    pub(super) fn number(self) -> u32 {
        match self {
            MapKind::Counters => 6,
            MapKind::Devices => 14,
            MapKind::Hash => 1,
            MapKind::Shared => 2,
        }
    }
    /// The name of the kind, for messages between processes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MapKind::Counters => "counters",
            MapKind::Devices => "devices",
            MapKind::Hash => "hash",
            MapKind::Shared => "shared",
        }
    }
    /// The kind with a name.
    pub(crate) fn named(name: &str) -> Option<MapKind> {
        [MapKind::Counters, MapKind::Devices, MapKind::Hash, MapKind::Shared]
            .into_iter()
            .find(|k| k.name() == name)
    }
}

impl From<TableKind> for MapKind {
    fn from(kind: TableKind) -> MapKind {
        match kind {
            TableKind::Exact => MapKind::Hash,
            TableKind::Array | TableKind::Shared => MapKind::Shared,
        }
    }
}

/// The kind and the sizes of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// The kind.
    pub kind: MapKind,
    /// The length of keys in bytes.
    pub key: u32,
    /// The length of values in bytes; for [`MapKind::Counters`] a multiple of 8.
    pub value: u32,
    /// The largest number of entries.
    pub entries: u32,
}

/// The number of processors that the machine may have, for which such maps have values.
fn processors() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|n| n.parse::<usize>().ok());
    last.map_or(1, |n| n.saturating_add(1))
}

/// A map of programs.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    shape: MapShape,
    /// The number of values of one entry that bpf(2) reads and writes together.
    copies: usize,
}

impl Map {
    /// Makes a map without entries, or with zero values if it is an array.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn new(shape: MapShape) -> Result<Map, Errno> {
        let flags = match shape.kind {
            MapKind::Hash => NO_PREALLOC,
            MapKind::Shared => MMAPABLE,
            MapKind::Counters | MapKind::Devices => 0,
        };
        let mut attributes = MapAttributes {
            kind: shape.kind.number(),
            key_size: shape.key,
            value_size: shape.value,
            entries: shape.entries,
            flags,
        };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &mut attributes)?) };
        Ok(Map::of(fd, shape))
    }
    /// The map with this descriptor, which another process made in this shape.
    pub(crate) fn of(fd: OwnedFd, shape: MapShape) -> Map {
        let copies = if shape.kind == MapKind::Counters { processors() } else { 1 };
        Map { fd, shape, copies }
    }
    /// The kind and the sizes of the map.
    pub fn shape(&self) -> MapShape {
        self.shape
    }
    /// The descriptor of the map.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    /// The bytes that bpf(2) reads or writes for the values of an entry. Values of several processors are spaced by
    /// multiples of 8 bytes.
    fn space(&self) -> usize {
        (self.shape.value as usize).next_multiple_of(8).saturating_mul(self.copies)
    }
    /// # Safety
    /// `value` must be valid for what the command reads or writes: [`Map::space`] bytes, or nothing.
    unsafe fn call(&self, command: libc::c_int, key: &[u8], value: u64) -> Result<(), Errno> {
        if key.len() != self.shape.key as usize {
            return Err(Errno::INVAL);
        }
        let key = key.as_ptr().expose_provenance() as u64;
        let mut attributes = ElementAttributes { map: self.fd.as_raw_fd(), key, value, ..Default::default() };
        // SAFETY: the key has the length with which the map was made, and lives during the call. The caller guarantees
        // the value.
        unsafe { bpf(command, &mut attributes) }.map(drop)
    }
    /// The value of a key; the values of all processors one after the other. `None` if there is no such entry.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        let mut value = vec![0u8; self.space()];
        let place = value.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the value has as many bytes as the kernel writes: the shape is that of the map, and the number of
        // processors that the kernel reports does not change. It lives during the call.
        match unsafe { self.call(MAP_LOOKUP_ELEM, key, place) } {
            Ok(()) => Ok(Some(value)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }
    /// Sets the value of a key.
    ///
    /// # Errors
    /// The error of bpf(2); EINVAL if key or value has another length than those of the map.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        if value.len() != self.shape.value as usize || self.copies != 1 {
            return Err(Errno::INVAL);
        }
        let place = value.as_ptr().expose_provenance() as u64;
        // SAFETY: the command only reads the value, which has the length with which the map was made.
        unsafe { self.call(MAP_UPDATE_ELEM, key, place) }
    }
    /// Removes an entry, if it is there.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        // SAFETY: the command uses no value.
        match unsafe { self.call(MAP_DELETE_ELEM, key, 0) } {
            Err(Errno::NOENT) => Ok(()),
            done => done,
        }
    }
    /// One of the keys. None if the map is empty.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn first_key(&self) -> Result<Option<Vec<u8>>, Errno> {
        let mut key = vec![0u8; self.shape.key as usize];
        let value = key.as_mut_ptr().expose_provenance() as u64;
        // A null pointer as key asks for the first one.
        let mut attributes = ElementAttributes { map: self.fd.as_raw_fd(), value, ..Default::default() };
        // SAFETY: the command reads no key, and writes one with the length with which the map was made. It lives during the
        // call.
        match unsafe { bpf(MAP_GET_NEXT_KEY, &mut attributes) } {
            Ok(_) => Ok(Some(key)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }
    /// The sums over all processors of the numbers in entry 0 of a map of counters.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn sums(&self) -> Result<Vec<u64>, Errno> {
        let bytes = self.get(&0u32.to_ne_bytes())?.unwrap_or_default();
        let (numbers, _) = bytes.as_chunks::<8>();
        let count = self.shape.value as usize / 8;
        let mut sums = vec![0u64; count];
        for of_processor in numbers.chunks(count.max(1)) {
            for (sum, n) in sums.iter_mut().zip(of_processor) {
                *sum = sum.wrapping_add(u64::from_ne_bytes(*n));
            }
        }
        Ok(sums)
    }
}
