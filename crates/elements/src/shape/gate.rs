// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notifier of an element that delays packets on a pull path.

use castanet_element::prelude::*;

/// The notifier for pulling tasks. It is on while there are packets upstream that may pass now.
///
/// It replaces the notifiers upstream, because those stay on while packets wait upstream, even if the packets may not
/// pass yet. The element subscribes to the notifiers upstream, although it has no task. When one of them turns on, the
/// element turns on this notifier.
#[derive(Default)]
pub(super) struct Gate {
    note: Option<Note>,
    upstream: Signal,
    /// Whether the gate is closed: the notifier stays off, even if a notifier upstream turns on.
    waiting: bool,
}

impl Gate {
    /// Requests the notifiers. The gate is open at first, because only a pull shows whether packets may pass.
    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        cx.scheduled = false;
        self.upstream = cx.upstream(0);
        self.note = cx.note(Capability::EmptyNotifier);
        if let Some(note) = self.note {
            cx.set_note(note);
        }
    }

    /// Closes the gate until [`Gate::open`] is called. Sets the timer to `at`, unless that is `None`.
    pub(super) fn close_until(&mut self, at: Option<i64>, cx: &mut Cx<'_>) {
        self.waiting = true;
        if let Some(note) = self.note {
            cx.clear_note(note);
        }
        if let Some(at) = at {
            cx.set_timer(0, at);
        }
    }

    /// Turns the notifier off if all notifiers upstream are off. Called when a pull from upstream gave fewer packets
    /// than requested.
    pub(super) fn found_empty(&mut self, cx: &mut Cx<'_>) {
        let Some(note) = self.note else { return };
        if !cx.is_on(&self.upstream) {
            cx.clear_note(note);
            // Another worker may have queued a packet upstream just before the notifier was turned off, so look again.
            // If a packet is queued later, a notifier upstream wakes this element.
            if cx.is_on(&self.upstream) {
                cx.set_note(note);
            }
        }
    }

    /// Turns the notifier on, unless the gate is closed. Called when a notifier upstream has turned on.
    pub(super) fn woken(&mut self, cx: &mut Cx<'_>) {
        if !self.waiting
            && let Some(note) = self.note
        {
            cx.set_note(note);
        }
    }

    /// Opens the gate, and turns the notifier on.
    pub(super) fn open(&mut self, cx: &mut Cx<'_>) {
        self.waiting = false;
        self.woken(cx);
    }
}
