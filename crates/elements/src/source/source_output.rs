// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a source, push or pull.

use crate::sched::own_note::OwnNote;
use castanet_element::prelude::*;

/// The output of a source. If it is push, the task of the source sends the packets. If it is pull, a notifier wakes
/// the tasks downstream that pull from the source.
pub(super) struct SourceOutput {
    /// Whether the output is push.
    pub(super) pushes: bool,
    /// The notifier of a pull output. If the output is push, the notifier stays off.
    note: OwnNote,
}

impl SourceOutput {
    pub(super) fn new(cx: &BuildCx<'_>) -> SourceOutput {
        SourceOutput { pushes: cx.is_push_output(0), note: OwnNote::default() }
    }
    /// Schedules the task if the output is push. If it is pull and the source is active, turns the notifier on.
    pub(super) fn initialise(&mut self, active: bool, cx: &mut InitCx<'_>) {
        cx.scheduled = self.pushes;
        self.note.initialise(active && !self.pushes, cx);
    }
    /// If the output is push, schedules the task. If the output is pull and the source is active, wakes the tasks
    /// downstream that pull.
    pub(super) fn wake(&self, active: bool, cx: &mut Cx<'_>) {
        if self.pushes {
            cx.schedule();
        } else {
            self.note.look(active, cx);
        }
    }
    /// Turns the notifier off, because there is nothing to pull.
    pub(super) fn sleep(&self, cx: &mut Cx<'_>) {
        if let Some(note) = self.note.note() {
            cx.clear_note(note);
        }
    }
}
