// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notifier of a pull element whose answer is not that of all notifiers upstream.

use castanet_element::prelude::*;

/// A notifier of an element's own: tasks that pull ask this one in place of those upstream. The element listens to those upstream,
/// so it gets a turn when one of them goes on, with a task or without.
#[derive(Default)]
pub(crate) struct OwnNote(Option<Note>);

impl OwnNote {
    /// Takes up the notifier.
    pub fn initialise(&mut self, on: bool, cx: &mut InitCx<'_>) {
        self.0 = cx.note(Capability::EmptyNotifier);
        // Elements upstream may not know yet whether they have packets; a first pull finds out.
        if let Some(note) = self.0.filter(|_| on) {
            cx.set_note(note);
        }
    }
    /// The notifier; none before it is taken up.
    pub fn note(&self) -> Option<Note> {
        self.0
    }
    /// Turns it on if there may be something.
    pub fn look(&self, on: bool, cx: &mut Cx<'_>) {
        if let Some(note) = self.0.filter(|_| on) {
            cx.set_note(note);
        }
    }
    /// Turns it off after a pull in vain, unless a second look finds something.
    #[cold]
    pub fn found_empty(&self, on: impl FnOnce(&Cx<'_>) -> bool, cx: &mut Cx<'_>) {
        if let Some(note) = self.0 {
            cx.clear_note(note);
            let on = on(cx);
            self.look(on, cx);
        }
    }
}
