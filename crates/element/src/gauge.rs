// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gauges: how many packets an element with capability Storage holds, and how many it can hold. Other elements find the gauge by
//! flow-based router context.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of packets in an element with capability Storage, and its capacity. The owning element keeps them up to date;
/// others read them.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<Level>);

#[derive(Debug, Default)]
struct Level {
    packets: AtomicUsize,
    capacity: AtomicUsize,
}

impl Gauge {
    /// Returns the number of packets.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.packets.load(Ordering::Relaxed)
    }
    /// Returns the capacity in packets: 0 until the element has set it.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity.load(Ordering::Relaxed)
    }
    /// Sets the capacity.
    pub fn set_capacity(&self, n: usize) {
        self.0.capacity.store(n, Ordering::Relaxed);
    }
    /// Sets the number of packets. Only for elements where a single worker changes the number.
    #[inline]
    pub fn set(&self, n: usize) {
        self.0.packets.store(n, Ordering::Relaxed);
    }
    /// Adds `n` packets. For elements where several workers change the number.
    #[inline]
    pub fn add(&self, n: usize) {
        self.0.packets.fetch_add(n, Ordering::Relaxed);
    }
    /// Subtracts `n` packets. One worker may subtract a packet before another adds it. The number then wraps for a
    /// moment.
    #[inline]
    pub fn sub(&self, n: usize) {
        self.0.packets.fetch_sub(n, Ordering::Relaxed);
    }
}
