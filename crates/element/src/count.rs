// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters that handlers show.

use castanet_spec::{Show, ValueKind};

/// A number of packets, bytes, events; wraps at 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// Adds `n`.
    #[inline(always)]
    pub fn add(&mut self, n: u64) {
        self.0 = self.0.wrapping_add(n);
    }
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
    /// Adds what another one counted, which starts again.
    pub fn take(&mut self, from: &mut Count) {
        self.add(std::mem::take(from).0);
    }
    /// Starts again.
    pub fn reset(&mut self) {
        self.0 = 0;
    }
}

impl Show for Count {
    const KIND: ValueKind = ValueKind::Counter;
    fn show(&self) -> String {
        self.0.to_string()
    }
}
