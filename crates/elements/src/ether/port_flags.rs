// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flag for each port of an element. Another element may set the flags while packets pass.

use castanet_element::Note;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The flags of an element's ports. Other elements may get access to them before the number of ports is known.
#[derive(Debug, Default)]
pub struct PortFlags {
    flags: OnceLock<Arc<[AtomicBool]>>,
    /// The notifier of the element. Tasks that pull through a closed port wait for this notifier.
    note: OnceLock<Note>,
}

impl PortFlags {
    /// Returns the flags, one per port. The first call must come from the element itself, because it fixes the number
    /// of ports. All flags are clear at first.
    pub fn of(&self, ports: usize) -> Arc<[AtomicBool]> {
        self.flags.get_or_init(|| (0..ports).map(|_| AtomicBool::new(false)).collect()).clone()
    }
    /// Returns the number of flags. `None` until the element has been built.
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
        // Sequentially consistent, as accesses to notifiers are: a pulling task first clears the notifier and then
        // reads the flag.
        flag.is_some_and(|flag| flag.swap(value, Ordering::SeqCst))
    }
    /// Sets the notifier for tasks that pull from the element.
    pub fn note(&self, note: Option<Note>) {
        if let Some(note) = note {
            // The replicas of an element share one notifier, so a replica may have set it already.
            let _ = self.note.set(note);
        }
    }
    /// Returns the notifier that must be set after a flag has been cleared, so that waiting tasks wake up.
    pub fn to_wake(&self) -> Option<Note> {
        self.note.get().copied()
    }
}
