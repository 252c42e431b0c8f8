// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flag a port, which another element may set while packets pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The flags of an element's ports. Elements that name the element find them before they know how many ports it has.
#[derive(Debug, Default)]
pub struct PortFlags(OnceLock<Arc<[AtomicBool]>>);

impl PortFlags {
    /// The flags, none of them set at first. The element itself says how many there are.
    pub fn of(&self, ports: usize) -> Arc<[AtomicBool]> {
        self.0.get_or_init(|| (0..ports).map(|_| AtomicBool::new(false)).collect()).clone()
    }
    /// How many there are; none before the element is built.
    pub fn count(&self) -> Option<usize> {
        self.0.get().map(|all| all.len())
    }
    /// Whether the flag of a port is set.
    pub fn get(&self, port: usize) -> bool {
        self.0.get().and_then(|all| all.get(port)).is_some_and(|f| f.load(Ordering::Relaxed))
    }
    /// Sets or clears the flag of a port; nothing happens for a port that is not there.
    pub fn set(&self, port: usize, value: bool) {
        if let Some(flag) = self.0.get().and_then(|all| all.get(port)) {
            flag.store(value, Ordering::Relaxed);
        }
    }
}
