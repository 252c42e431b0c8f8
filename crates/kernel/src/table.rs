// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables that programs look up.

/// A table of an element, which the element fills at user level.
pub trait Table: Send + Sync {
    /// Sets the value of a key. Returns false if the kernel refuses, for example because the table is full.
    fn set(&self, key: &[u8], value: &[u8]) -> bool;
    /// Removes a key.
    fn remove(&self, key: &[u8]);
    /// Removes all keys.
    fn clear(&self);
    /// The value of a key. None if the table has no such key.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>>;
    /// A word of a shared table ([`TableKind::Shared`](crate::TableKind::Shared)). None if the table has no such word.
    #[allow(unused_variables)]
    fn word(&self, index: usize) -> Option<u64> {
        None
    }
    /// Sets a word of a shared table in one step. Returns false if the table has no such word.
    #[allow(unused_variables)]
    fn set_word(&self, index: usize, n: u64) -> bool {
        false
    }
    /// Adds to a word of a shared table in one step, with overflow. Returns the number before. None if the table has no such word.
    #[allow(unused_variables)]
    fn add_to_word(&self, index: usize, n: u64) -> Option<u64> {
        None
    }
    /// The time in nanoseconds that programs see ([`Code::time`](crate::Code::time)) when `now` is the time of the router. Only a
    /// table in a simulated kernel needs `now`.
    fn time(&self, now: i64) -> u64;
    /// The time in nanoseconds that [`Code::exact_time`](crate::Code::exact_time) returns when `now` is the time of the router.
    fn exact_time(&self, now: i64) -> u64 {
        self.time(now)
    }
    /// The nanoseconds since a time that programs have noted. `now` is the time of the router.
    fn age(&self, noted: u64, now: i64) -> i64 {
        i64::try_from(self.time(now).saturating_sub(noted)).unwrap_or(i64::MAX)
    }
}
