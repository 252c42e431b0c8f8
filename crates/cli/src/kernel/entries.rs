// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of elements, and the slots that keep packets in order, in maps of the kernel.

use castanet_element::kernel::Table;
use castanet_element::kernel::order;
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{
    MapKind, MapShape, ProgramMap, SharedWords, exact_program_time, program_time,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A table. An ordered one has slots, and a shared one words.
pub(super) struct Entries(pub Arc<ProgramMap>, pub Option<Arc<Slots>>, pub Option<SharedWords>);

impl Entries {
    fn at(&self, index: usize) -> Option<&AtomicU64> {
        self.2.as_ref()?.words().get(index)
    }
}

/// The slots of ordered tables.
pub(super) struct Slots {
    pub map: ProgramMap,
    pub words: SharedWords,
    given: Mutex<order::Slots>,
}

impl Slots {
    pub fn new(device: &str) -> Result<Slots, DeviceError> {
        let shape = MapShape { kind: MapKind::Shared, key: 4, value: order::TABLE, entries: 1 };
        let map = ProgramMap::new(device, shape)?;
        let words = map.words(device)?;
        Ok(Slots { map, words, given: Mutex::default() })
    }
    fn take(&self) -> u32 {
        self.given.lock().take(&mut Words(&self.words))
    }
}

/// The table of slots in memory that programs share.
pub(super) struct Words<'a>(pub &'a SharedWords);

impl Words<'_> {
    /// A number in an entry.
    fn word(&self, index: u32, at: i32) -> Option<&AtomicU64> {
        let byte = index.checked_mul(order::ENTRY)?.checked_add_signed(at)?;
        self.0.words().get(byte as usize / 8)
    }
}

impl order::Counters for Words<'_> {
    fn raise(&mut self, index: u32) -> u64 {
        self.word(index, order::at::SENT).map_or(0, |sent| sent.fetch_add(1, Ordering::SeqCst))
    }
    fn done(&self, index: u32) -> u64 {
        self.word(index, order::at::DONE).map_or(0, |done| done.load(Ordering::Relaxed))
    }
    fn set_done(&mut self, index: u32, number: u64) {
        if let Some(done) = self.word(index, order::at::DONE) {
            done.store(number, Ordering::SeqCst);
        }
    }
}

impl Table for Entries {
    fn set(&self, key: &[u8], value: &[u8]) -> bool {
        match &self.1 {
            None => self.0.map().set(key, value).is_ok(),
            Some(slots) => self.0.map().set(key, &order::closed(value, slots.take())).is_ok(),
        }
    }
    fn remove(&self, key: &[u8]) {
        // An entry that is already gone is as good.
        let _ = self.0.map().remove(key);
    }
    fn clear(&self) {
        while let Ok(Some(key)) = self.0.map().first_key() {
            if self.0.map().remove(&key).is_err() {
                return;
            }
        }
    }
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.map().get(key).ok().flatten()
    }
    fn word(&self, index: usize) -> Option<u64> {
        Some(self.at(index)?.load(Ordering::Acquire))
    }
    fn set_word(&self, index: usize, n: u64) -> bool {
        self.at(index).inspect(|word| word.store(n, Ordering::Release)).is_some()
    }
    fn add_to_word(&self, index: usize, n: u64) -> Option<u64> {
        Some(self.at(index)?.fetch_add(n, Ordering::AcqRel))
    }
    fn time(&self, _: i64) -> u64 {
        program_time()
    }
    fn exact_time(&self, _: i64) -> u64 {
        exact_program_time()
    }
}
