// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gauges: how full a storage is, for elements that find it by flow-based router context.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of packets in an element of capability Storage. The element that owns it keeps it right; others read it.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    /// How many packets there are.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    /// Says how many there are, where one worker alone changes the number.
    #[inline]
    pub fn set(&self, n: usize) {
        self.0.store(n, Ordering::Relaxed);
    }
    /// Says that `n` came, where several workers change the number.
    #[inline]
    pub fn add(&self, n: usize) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// Says that `n` went. Who takes a packet may say so before who brought it: the number wraps for that moment.
    #[inline]
    pub fn sub(&self, n: usize) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }
}
