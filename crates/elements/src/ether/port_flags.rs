// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flag for each port of an element, which another element may set while packets pass.

use castanet_element::Note;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The flags of an element's ports. Other elements can hold them before the number of ports is known.
#[derive(Debug, Default)]
pub struct PortFlags {
    flags: OnceLock<Arc<[AtomicBool]>>,
    /// The notifier of the element. Pulling tasks wait for this notifier while the flags close their ports.
    note: OnceLock<Note>,
}

impl PortFlags {
    /// Returns the flags, which are clear at first. The element itself makes the first call, with its number
    /// of ports.
    pub fn of(&self, ports: usize) -> Arc<[AtomicBool]> {
        self.flags.get_or_init(|| (0..ports).map(|_| AtomicBool::new(false)).collect()).clone()
    }
    /// Returns the number of flags; `None` before the element is built.
    pub fn count(&self) -> Option<usize> {
        self.flags.get().map(|all| all.len())
    }
    /// Whether the flag of a port is set.
    pub fn get(&self, port: usize) -> bool {
        self.flags.get().and_then(|all| all.get(port)).is_some_and(|f| f.load(Ordering::Relaxed))
    }
    /// Sets or clears the flag of a port, and returns whether it was set before. A port that does not exist
    /// is ignored.
    pub fn set(&self, port: usize, value: bool) -> bool {
        let flag = self.flags.get().and_then(|all| all.get(port));
        // The flag is sequentially consistent, as notifiers are, because a puller reads the flag after it has
        // cleared a notifier.
        flag.is_some_and(|flag| flag.swap(value, Ordering::SeqCst))
    }
    /// Sets the notifier that pullers of the element sleep on.
    pub fn note(&self, note: Option<Note>) {
        if let Some(note) = note {
            // The replicas of an element share one notifier, so another replica may have set it already.
            let _ = self.note.set(note);
        }
    }
    /// Returns the notifier that is to be set after a flag was cleared.
    pub fn to_wake(&self) -> Option<Note> {
        self.note.get().copied()
    }
}
