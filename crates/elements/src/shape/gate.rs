// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notifier of an element that holds packets up on a pull path.

use castanet_element::prelude::*;

/// The notifier that tasks downstream sleep on: on while there are packets upstream that may go now.
///
/// It stands in place of the notifiers upstream, which stay on while packets wait there that may not go yet. The element
/// listens to those, though it has no task: the turn that a notifier gives it is passed on to its pullers.
#[derive(Default)]
pub(super) struct Gate {
    note: Option<Note>,
    upstream: Signal,
    /// Whether it stays closed until the timer expires.
    waiting: bool,
}

impl Gate {
    /// Takes up the notifiers; open at first, so that the first pull finds out.
    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        cx.scheduled = false;
        self.upstream = cx.upstream(0);
        self.note = cx.note(Capability::EmptyNotifier);
        if let Some(note) = self.note {
            cx.set_note(note);
        }
    }

    /// Nothing may go before `at`; without a time, before [`Gate::open`].
    pub(super) fn close_until(&mut self, at: Option<i64>, cx: &mut Cx<'_>) {
        self.waiting = true;
        if let Some(note) = self.note {
            cx.clear_note(note);
        }
        if let Some(at) = at {
            cx.set_timer(0, at);
        }
    }

    /// A pull upstream gave less than it asked for.
    pub(super) fn found_empty(&mut self, cx: &mut Cx<'_>) {
        let Some(note) = self.note else { return };
        if !cx.is_on(&self.upstream) {
            cx.clear_note(note);
            // Another worker may have put something there in between; later than this, its notifier gives a turn.
            if cx.is_on(&self.upstream) {
                cx.set_note(note);
            }
        }
    }

    /// A notifier upstream went on.
    pub(super) fn woken(&mut self, cx: &mut Cx<'_>) {
        if !self.waiting
            && let Some(note) = self.note
        {
            cx.set_note(note);
        }
    }

    /// Time has passed.
    pub(super) fn open(&mut self, cx: &mut Cx<'_>) {
        self.waiting = false;
        self.woken(cx);
    }
}
