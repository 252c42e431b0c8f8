// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps of a program.

use std::collections::BTreeMap;

use super::fault::Refusal;

/// Flag of an update: the key may exist or not (`BPF_ANY`).
pub const ANY: u64 = 0;
/// Flag of an update: the key must not exist (`BPF_NOEXIST`).
pub const NO_EXIST: u64 = 1;
/// Flag of an update: the key must exist (`BPF_EXIST`).
pub const EXIST: u64 = 2;

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Values with an index of 32 bits. All exist from the start, and are 0.
    Array,
    /// An array with values for each processor. The interpreter has one.
    PerCpuArray,
    /// Values with a key of any size.
    Hash,
    /// Values with a prefix as key; the longest that matches is found.
    Trie,
    /// Devices with an index of 32 bits, for redirection. The values are the interfaces (32 bits).
    Devices,
    /// Sockets with an index of 32 bits, for redirection. The values are the descriptors (32 bits).
    Sockets,
    /// Programs with an index of 32 bits, for tail calls. The values are indices in the machine's programs (32 bits).
    Programs,
}

/// A map. Numbers in keys and values are in little-endian order, as on x86.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    kind: MapKind,
    key_size: usize,
    value_size: usize,
    capacity: u32,
    /// Values of an array, one after the other.
    array: Vec<u8>,
    /// Entries of the other kinds. INVARIANT: the keys of a trie are 0 after the prefix, so that equal prefixes have
    /// equal keys.
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Map {
    /// Makes an array.
    pub fn array(capacity: u32, value_size: usize) -> Map {
        let mut map = Map::empty(MapKind::Array, capacity, 4, value_size);
        map.array.resize(value_size.saturating_mul(capacity as usize), 0);
        map
    }
    /// Makes an array with values for each processor.
    pub fn per_cpu_array(capacity: u32, value_size: usize) -> Map {
        Map { kind: MapKind::PerCpuArray, ..Map::array(capacity, value_size) }
    }
    /// Makes a hash table.
    pub fn hash(capacity: u32, key_size: usize, value_size: usize) -> Map {
        Map::empty(MapKind::Hash, capacity, key_size, value_size)
    }
    /// Makes a trie. Its keys are the length of the prefix in bits (32 bits, little-endian) and `data_size` bytes.
    pub fn trie(capacity: u32, data_size: usize, value_size: usize) -> Map {
        Map::empty(MapKind::Trie, capacity, data_size.saturating_add(4), value_size)
    }
    /// Makes a map of devices.
    pub fn devices(capacity: u32) -> Map {
        Map::empty(MapKind::Devices, capacity, 4, 4)
    }
    /// Makes a map of sockets.
    pub fn sockets(capacity: u32) -> Map {
        Map::empty(MapKind::Sockets, capacity, 4, 4)
    }
    /// Makes a map of programs.
    pub fn programs(capacity: u32) -> Map {
        Map::empty(MapKind::Programs, capacity, 4, 4)
    }
    fn empty(kind: MapKind, capacity: u32, key_size: usize, value_size: usize) -> Map {
        Map { kind, key_size, value_size, capacity, array: Vec::new(), entries: BTreeMap::new() }
    }

    /// The kind of the map.
    pub fn kind(&self) -> MapKind {
        self.kind
    }
    /// The size of a key in bytes.
    pub fn key_size(&self) -> usize {
        self.key_size
    }
    /// The size of a value in bytes.
    pub fn value_size(&self) -> usize {
        self.value_size
    }
    /// The number of entries that the map has room for.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
    /// All keys, in ascending order of their bytes; those of an array in ascending order of the index.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        if self.is_array() {
            (0..self.capacity).map(|index| index.to_le_bytes().to_vec()).collect()
        } else {
            self.entries.keys().cloned().collect()
        }
    }

    /// The value of a key. In a trie, the prefix has to be equal; see [`Map::find`] for the longest that matches.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        if self.is_array() {
            let at = self.position(key)?;
            return self.array.get(at..)?.get(..self.value_size);
        }
        self.entries.get(&self.canonical(key)?).map(Vec::as_slice)
    }
    /// The value of a key, to change it in place.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut [u8]> {
        if self.is_array() {
            let at = self.position(key)?;
            return self.array.get_mut(at..)?.get_mut(..self.value_size);
        }
        let key = self.canonical(key)?;
        self.entries.get_mut(&key).map(Vec::as_mut_slice)
    }
    /// The key of the entry that a lookup by a program finds: in a trie the longest prefix that matches, else `key`.
    pub fn find(&self, key: &[u8]) -> Option<Vec<u8>> {
        if self.kind != MapKind::Trie {
            return self.get(key).map(|_| key.to_vec());
        }
        let (length, data) = self.prefix(key)?;
        (0..=length).rev().map(|shorter| masked(shorter, data)).find(|key| self.entries.contains_key(key))
    }

    /// Sets the value of a key, which may exist or not.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.update(key, value, ANY)
    }
    /// Sets the value of a key, with the flags [`ANY`], [`NO_EXIST`] or [`EXIST`].
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Refusal> {
        if flags > EXIST || key.len() != self.key_size || value.len() != self.value_size {
            return Err(Refusal::Invalid);
        }
        if self.is_array() {
            let place = self.get_mut(key).ok_or(Refusal::TooBig)?;
            if flags == NO_EXIST {
                return Err(Refusal::Exists);
            }
            place.copy_from_slice(value);
            return Ok(());
        }
        let key = self.canonical(key).ok_or(Refusal::Invalid)?;
        if self.is_closed() && index(&key).is_none_or(|index| index >= self.capacity) {
            return Err(Refusal::TooBig);
        }
        match self.entries.contains_key(&key) {
            true if flags == NO_EXIST => return Err(Refusal::Exists),
            false if flags == EXIST => return Err(Refusal::Missing),
            false if self.entries.len() >= self.capacity as usize => {
                return Err(if self.kind == MapKind::Trie { Refusal::NoSpace } else { Refusal::TooBig });
            }
            _ => self.entries.insert(key, value.to_vec()),
        };
        Ok(())
    }
    /// Removes a key. Those of an array cannot be removed.
    pub fn remove(&mut self, key: &[u8]) -> Result<(), Refusal> {
        let key = self.canonical(key).filter(|_| !self.is_array()).ok_or(Refusal::Invalid)?;
        self.entries.remove(&key).map(|_| ()).ok_or(Refusal::Missing)
    }

    /// Tells whether the values are in an array, which programs change in place and never remove.
    pub(super) fn is_array(&self) -> bool {
        matches!(self.kind, MapKind::Array | MapKind::PerCpuArray)
    }
    /// Tells whether the map only serves redirection.
    pub(super) fn is_redirect(&self) -> bool {
        matches!(self.kind, MapKind::Devices | MapKind::Sockets)
    }
    /// Tells whether programs cannot look up the values.
    pub(super) fn is_closed(&self) -> bool {
        self.is_redirect() || self.kind == MapKind::Programs
    }
    /// The key as it is stored. Returns nothing if it cannot be a key of this map.
    pub(super) fn canonical(&self, key: &[u8]) -> Option<Vec<u8>> {
        if self.kind == MapKind::Trie {
            self.prefix(key).map(|(length, data)| masked(length, data))
        } else {
            (key.len() == self.key_size).then(|| key.to_vec())
        }
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        let index = index(key).filter(|&index| index < self.capacity)?;
        (index as usize).checked_mul(self.value_size)
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (length, data) = key.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        (key.len() == self.key_size && length as usize <= data.len() * 8).then_some((length, data))
    }
}

fn index(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_le_bytes)
}

/// The key of a prefix of `data`: the bits after it are 0.
fn masked(length: u32, data: &[u8]) -> Vec<u8> {
    let mut key = length.to_le_bytes().to_vec();
    key.extend((0u32..).zip(data).map(|(index, byte)| {
        let bits = length.saturating_sub(index.saturating_mul(8)).min(8);
        byte & !(0xff_u32 >> bits) as u8
    }));
    key
}
