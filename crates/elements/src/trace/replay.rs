// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of sources that replay files. It decides when packets are pushed or given to pulls, and when the
//! source sleeps.

use castanet_element::prelude::*;
use castanet_spec::ValueKind;

/// The size of a file in bytes, which handlers show as `-` if it is unknown.
pub(super) struct FileSize(pub(super) Option<u64>);

impl Show for FileSize {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.map_or("-".into(), |n| n.to_string())
    }
}

/// The next step of a source.
pub(super) enum Next {
    Packet(Packet),
    /// The next packet is due at this time, in nanoseconds.
    Later(i64),
    /// Many records were skipped, so other tasks get their turns first.
    Pause,
    End,
}

/// The state of a source that replays a file.
pub(super) struct Replay {
    /// Whether the end was reached.
    pub(super) finished: bool,
    pub(super) push: bool,
    note: Option<Note>,
}

impl Replay {
    pub(super) fn new(cx: &BuildCx<'_>) -> Replay {
        Replay { finished: false, push: cx.is_push_output(0), note: None }
    }
    pub(super) fn initialise(&mut self, active: bool, cx: &mut InitCx<'_>) {
        self.note = cx.note(Capability::EmptyNotifier);
        cx.scheduled = self.push && active;
        if let Some(note) = self.note.filter(|_| active) {
            cx.set_note(note);
        }
    }
    pub(super) fn sleep(&self, cx: &mut Cx<'_>) {
        if let Some(note) = self.note {
            cx.clear_note(note);
        }
    }
    /// Records that the end was reached, and turns the notifier off. Returns true the first time.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>) -> bool {
        self.sleep(cx);
        !std::mem::replace(&mut self.finished, true)
    }
}

/// A source that replays a file.
pub(super) trait Source {
    fn replay(&self) -> &Replay;
    fn is_active(&self) -> bool;
    /// Returns the next packet, or the reason why none can be emitted now.
    fn next(&mut self, cx: &mut Cx<'_>) -> Next;
    /// Called when the end is reached.
    fn finish(&mut self, cx: &mut Cx<'_>);

    fn can_run(&self) -> bool {
        self.is_active() && !self.replay().finished
    }
    /// Called when a wait is over or a setting has changed. If the source can run, wakes the task that sends, or the
    /// task downstream that pulls.
    fn wake(&self, cx: &mut Cx<'_>) {
        let replay = self.replay();
        if !self.can_run() {
            return replay.sleep(cx);
        }
        match replay.note {
            Some(note) if !replay.push => cx.set_note(note),
            _ => cx.schedule(),
        }
    }
    /// Runs one turn of the task.
    fn turn(&mut self, cx: &mut Cx<'_>) -> Turn {
        if !self.replay().push || !self.can_run() {
            return Turn::Sleep;
        }
        for i in 0..cx.turns() {
            let next = self.next(cx);
            // Packets that were emitted in this call must be pushed on before the end is handled.
            if i > 0 && matches!(next, Next::End) {
                break;
            }
            cx.took_turns(i + 1);
            match next {
                Next::Packet(p) => cx.emit(0, p),
                Next::Later(t) => {
                    cx.set_timer(0, t);
                    return Turn::Sleep;
                }
                Next::Pause => break,
                Next::End => {
                    self.finish(cx);
                    return Turn::Sleep;
                }
            }
        }
        Turn::Again
    }
    /// Puts at most `max` packets into `into`.
    fn pull_into(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if !self.can_run() {
            return;
        }
        for i in 0..max {
            match self.next(cx) {
                Next::Packet(p) => into.push(p),
                Next::Later(t) => {
                    self.replay().sleep(cx);
                    cx.set_timer(0, t);
                    break;
                }
                Next::Pause => break,
                Next::End if i > 0 => break,
                Next::End => {
                    self.finish(cx);
                    break;
                }
            }
        }
    }
}
