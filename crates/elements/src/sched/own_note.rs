// SPDX-License-Identifier: MIT OR Apache-2.0
//! An element's own notifier, for pull elements. Its state may differ from that of the notifiers upstream.

use castanet_element::prelude::*;

/// An element's own notifier. Pulling tasks sleep on it in place of the notifiers upstream. The element subscribes to
/// the notifiers upstream, so it is scheduled when one of them turns on, even if its class has no task.
#[derive(Default)]
pub(crate) struct OwnNote(Option<Note>);

impl OwnNote {
    /// Requests the notifier, and turns it on if `on`.
    pub fn initialise(&mut self, on: bool, cx: &mut InitCx<'_>) {
        self.0 = cx.note(Capability::EmptyNotifier);
        // It is not certain yet whether elements upstream have packets, so the notifier is on at first. The first pull
        // shows whether there are packets.
        if let Some(note) = self.0.filter(|_| on) {
            cx.set_note(note);
        }
    }
    /// Returns the notifier; none before `initialise`.
    pub fn note(&self) -> Option<Note> {
        self.0
    }
    /// Turns the notifier on if `on`, that is, if there may be packets.
    pub fn look(&self, on: bool, cx: &mut Cx<'_>) {
        if let Some(note) = self.0.filter(|_| on) {
            cx.set_note(note);
        }
    }
    /// Turns the notifier off after a pull that found nothing. Afterwards calls `on`, and turns the notifier on again
    /// if the result is true: packets may have arrived in the meantime.
    #[cold]
    pub fn found_empty(&self, on: impl FnOnce(&Cx<'_>) -> bool, cx: &mut Cx<'_>) {
        if let Some(note) = self.0 {
            cx.clear_note(note);
            let on = on(cx);
            self.look(on, cx);
        }
    }
}
