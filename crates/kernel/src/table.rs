// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables that programs look up.

/// A table of an element, which the element fills at user level.
pub trait Table: Send + Sync {
    /// Sets the value of a key. Returns false if the kernel refuses, for example because the table is full.
    fn set(&self, key: &[u8], value: &[u8]) -> bool;
    /// Removes a key.
    fn remove(&self, key: &[u8]);
}
