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
    /// The time in nanoseconds that programs see ([`Code::time`](crate::Code::time)) when `now` is the time of the router. Only a
    /// table in a simulated kernel needs `now`.
    fn time(&self, now: i64) -> u64;
    /// The nanoseconds since a time that programs have noted. `now` is the time of the router.
    fn age(&self, noted: u64, now: i64) -> i64 {
        i64::try_from(self.time(now).saturating_sub(noted)).unwrap_or(i64::MAX)
    }
}
