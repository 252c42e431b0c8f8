// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gauges: how many packets an element with capability Storage holds. Other elements find the gauge by flow-based
//! router context.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of packets in an element with capability Storage. The owning element keeps it up to date;
/// others read it.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    /// Returns the number of packets.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    /// Sets the number of packets. Only for elements where a single worker changes the number.
    #[inline]
    pub fn set(&self, n: usize) {
        self.0.store(n, Ordering::Relaxed);
    }
    /// Adds `n` packets. For elements where several workers change the number.
    #[inline]
    pub fn add(&self, n: usize) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// Subtracts `n` packets. One worker may subtract a packet before another adds it. The number then wraps for a
    /// moment.
    #[inline]
    pub fn sub(&self, n: usize) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }
}
