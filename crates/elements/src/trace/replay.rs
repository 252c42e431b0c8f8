// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sources that replay files have in common: when packets are given, pushed or pulled, and when the source sleeps.

/// Implements `Element` for a class by its methods `next` and `finish`, which give what comes and note that nothing does, and by its
/// fields `args.active`, `finished`, `push` and `note`.
macro_rules! replay_element {
    ($class:ty) => {
        impl $class {
            fn sleep(&self, cx: &mut Cx<'_>) {
                if let Some(note) = self.note {
                    cx.clear_note(note);
                }
            }
            /// Goes on after a wait or a change.
            fn wake(&self, cx: &mut Cx<'_>) {
                if !self.can_run() {
                    return self.sleep(cx);
                }
                match self.note {
                    Some(note) if !self.push => cx.set_note(note),
                    _ => cx.schedule(),
                }
            }
            fn can_run(&self) -> bool {
                self.args.active && !self.finished
            }
        }

        impl Element for $class {
            fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
                if !self.push || !self.can_run() {
                    return Turn::Sleep;
                }
                for i in 0..cx.turns() {
                    match self.next(cx) {
                        Next::Packet(p) => cx.emit(0, p),
                        Next::Later(t) => {
                            cx.set_timer(0, t);
                            return Turn::Sleep;
                        }
                        Next::Pause => break,
                        // What was emitted in this turn goes on its way first.
                        Next::End if i > 0 => break,
                        Next::End => {
                            self.finish(cx);
                            return Turn::Sleep;
                        }
                    }
                }
                Turn::Again
            }
            fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
                if !self.can_run() {
                    return;
                }
                for i in 0..max {
                    match self.next(cx) {
                        Next::Packet(p) => into.push(p),
                        Next::Later(t) => {
                            self.sleep(cx);
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
            fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
                self.wake(cx);
            }
        }
    };
}
pub(super) use replay_element;
