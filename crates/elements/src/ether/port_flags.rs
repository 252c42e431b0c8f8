// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flag a port, which another element may set while packets pass.

use castanet_element::Note;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The flags of an element's ports. Elements that name the element find them before they know how many ports it has.
#[derive(Debug, Default)]
pub struct PortFlags {
    flags: OnceLock<Arc<[AtomicBool]>>,
    /// The notifier of the element, for pullers that sleep because of the flags.
    note: OnceLock<Note>,
}

impl PortFlags {
    /// The flags, none of them set at first. The element itself says how many there are.
    pub fn of(&self, ports: usize) -> Arc<[AtomicBool]> {
        self.flags.get_or_init(|| (0..ports).map(|_| AtomicBool::new(false)).collect()).clone()
    }
    /// How many there are; none before the element is built.
    pub fn count(&self) -> Option<usize> {
        self.flags.get().map(|all| all.len())
    }
    /// Whether the flag of a port is set.
    pub fn get(&self, port: usize) -> bool {
        self.flags.get().and_then(|all| all.get(port)).is_some_and(|f| f.load(Ordering::Relaxed))
    }
    /// Sets or clears the flag of a port, and returns whether it was set before; nothing happens for a port that is not there.
    pub fn set(&self, port: usize, value: bool) -> bool {
        let flag = self.flags.get().and_then(|all| all.get(port));
        // Sequentially consistent, as notifiers are: a puller that turns one off looks at the flag afterwards.
        flag.is_some_and(|flag| flag.swap(value, Ordering::SeqCst))
    }
    /// Says which notifier pullers of the element sleep on.
    pub fn note(&self, note: Option<Note>) {
        if let Some(note) = note {
            // The replicas of an element have one notifier.
            let _ = self.note.set(note);
        }
    }
    /// The notifier that is to be set after a flag was cleared.
    pub fn to_wake(&self) -> Option<Note> {
        self.note.get().copied()
    }
}
