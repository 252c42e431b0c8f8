// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run loop of one worker: requests to stop, mail, tasks, timers, sleep.

use crate::lock::TIMER;
use crate::mail::Mail;
use crate::nodes::Nodes;
use crate::shared::Shared;
use crate::sleep::Sleeper;
use crate::tasks::LONGEST_BURST;
use castanet_element::run_loop::Core;
use castanet_element::{Drive, Turn};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// The number of task turns between two checks of timers and mail.
const TURNS: usize = 128;
/// The maximum number of timers that run before tasks and mail get their turn. Without this limit, a timer that is
/// always set again for the current time would block everything else.
const TIMERS: usize = 4096;

/// The stack size of a worker's thread, in bytes. Pulls recurse, with one frame for each element.
pub(crate) const STACK: usize = 256 << 20;

/// One worker: its elements and its run loop.
pub struct Worker {
    pub(crate) nodes: Nodes,
    pub(crate) core: Core,
    pub(crate) sleeper: Sleeper,
    /// The maximum number of packets that a timer may move at once.
    pub(crate) batch: usize,
}

impl Worker {
    pub(crate) fn new(
        mut nodes: Nodes,
        core: Core,
        sleeper: Sleeper,
        mail: Receiver<Mail>,
        batch: usize,
    ) -> Worker {
        nodes.mail = Some(mail);
        Worker { nodes, core, sleeper, batch }
    }

    /// Runs until the router has ended, or until all workers wait at the barrier for a hot swap.
    pub(crate) fn run_loop(&mut self) {
        // Finish work that was under way when an element panicked.
        self.nodes.settle(&mut self.core);
        self.nodes.drain(&mut self.core);
        let shared = self.nodes.shared.clone();
        let me = self.core.worker() as usize;
        let drives = shared.driver_worker() == me;
        while !shared.halted.load(Ordering::Relaxed) {
            if let Some(inbox) = shared.inboxes.get(me) {
                // No other thread writes this counter, so a load and a store suffice.
                let rounds = inbox.rounds.load(Ordering::Relaxed);
                inbox.rounds.store(rounds.wrapping_add(1), Ordering::Relaxed);
            }
            if drives && shared.requests.load(Ordering::Relaxed) > 0 {
                self.drive(&shared);
                continue;
            }
            if !self.core.clock().is_simulated() {
                self.core.read_clock();
            }
            self.take_mail(&shared, me);
            let more = self.run_tasks(&shared);
            let fired = self.run_timers();
            if more || fired || self.core.has_scheduled() {
                // `sleep` always checks descriptors. A busy worker must check them here.
                if self.core.watches().any() {
                    self.look();
                }
            } else {
                self.sleep(&shared, me, drives);
            }
        }
        // At the barrier this worker still answers mail, because another worker may be waiting for an answer.
        shared.barrier.wait(&shared.inboxes, me, || shared.is_stopped(), || self.take_mail(&shared, me));
    }

    /// Answers one request to stop.
    fn drive(&mut self, shared: &Shared) {
        shared.requests.fetch_sub(1, Ordering::SeqCst);
        self.core.set_limit(1);
        let answer = match shared.driver {
            Some(d) => self.nodes.run(&mut self.core, d, |e, cx| e.drive(cx)).unwrap_or(Drive::Stop),
            None => Drive::Stop,
        };
        if answer == Drive::Stop {
            shared.end();
        }
    }

    fn take_mail(&mut self, shared: &Shared, me: usize) {
        let Some(inbox) = shared.inboxes.get(me) else { return };
        if !inbox.full.load(Ordering::Relaxed) || !inbox.full.swap(false, Ordering::SeqCst) {
            return;
        }
        self.nodes.collect_mail();
        self.core.set_limit(1);
        // Mail that arrives meanwhile waits until tasks have had their turns.
        for _ in 0..self.nodes.inbox.len() {
            let Some(m) = self.nodes.inbox.pop_front() else { return };
            self.nodes.answer(&mut self.core, m);
            self.nodes.drain(&mut self.core);
        }
        self.nodes.remind(&self.core);
    }

    /// Gives turns to scheduled tasks. Returns false when no task is scheduled any more.
    #[inline(never)]
    fn run_tasks(&mut self, shared: &Shared) -> bool {
        let mut left = TURNS;
        while left > 0 {
            for e in self.core.take_scheduled() {
                self.nodes.tasks.add(e);
            }
            let Some(task) = self.nodes.tasks.turn() else { return false };
            let limit = shared.build_state.limits.get(task as usize);
            let limit = limit.map_or(1, |l| l.load(Ordering::Relaxed) as usize);
            // If the router has only one task, nothing runs between its turns. So one call of the task may take
            // several turns, and moves their packets as one batch.
            let turns = if shared.tasks.len() == 1 { limit.min(left) } else { 1 };
            self.core.begin_task(limit, turns);
            // A burst is cut into pieces of at most `limit` packets. A request to stop does not end the
            // burst.
            let mut moved = 0;
            loop {
                let turn = self.nodes.run_task(&mut self.core, task);
                if turn == Turn::Again {
                    // The task polls: it stays scheduled because a notifier is on, but it found no packet.
                    if self.core.found_nothing() {
                        self.nodes.tasks.found_nothing(task);
                    }
                    break;
                }
                if turn == Turn::Sleep {
                    if self.core.has_pulled() {
                        self.nodes.tasks.remove(task);
                    } else {
                        self.nodes.tasks.withdraw(task);
                    }
                    break;
                }
                moved += self.core.limit();
                if moved >= LONGEST_BURST || shared.halted.load(Ordering::Relaxed) {
                    break;
                }
                self.take_mail(shared, self.core.worker() as usize);
                self.core.set_limit(limit.min(LONGEST_BURST - moved));
            }
            left -= self.core.turns_taken().clamp(1, left);
            if shared.requests.load(Ordering::Relaxed) > 0 || shared.halted.load(Ordering::Relaxed) {
                return true;
            }
        }
        true
    }

    /// Calls elements whose timers have expired. Returns false if no timer had expired.
    fn run_timers(&mut self) -> bool {
        if self.core.timers().is_empty() {
            return false;
        }
        // Read the clock again: if the recent time were still before the expiry of a timer, the element would
        // set the same timer again.
        let now = self.core.read_clock();
        for fired in 0..TIMERS {
            let Some((_, (e, id))) = self.core.timers().pop_due(now) else { return fired > 0 };
            self.core.set_limit(self.batch);
            if id == TIMER {
                self.nodes.run_timers_of(&mut self.core, e, now);
            } else {
                self.nodes.run(&mut self.core, e, |e, cx| e.timer(id, cx));
            }
        }
        true
    }

    /// Schedules the tasks whose descriptors are ready.
    fn look(&mut self) {
        self.core.with_watches(|watches, schedule| self.sleeper.look(watches, schedule));
    }

    /// Sleeps until the next timer, until a descriptor is ready, or until another thread wakes this worker.
    fn sleep(&mut self, shared: &Shared, me: usize, drives: bool) {
        let stay = || {
            shared.inboxes.get(me).is_some_and(|i| i.full.load(Ordering::SeqCst))
                || shared.halted.load(Ordering::SeqCst)
                || drives && shared.requests.load(Ordering::SeqCst) > 0
        };
        let time = match self.core.timers().next() {
            Some((t, _)) if self.core.clock().is_simulated() => {
                if self.core.watches().any() {
                    self.look();
                }
                if !self.core.has_scheduled() && !stay() {
                    self.core.clock().jump(t);
                }
                return;
            }
            Some((t, _)) => Some(self.core.clock().until(t)),
            None if self.core.clock().is_simulated()
                && !self.core.watches().any()
                && !stay()
                && shared.stop_idle() =>
            {
                return;
            }
            None => None,
        };
        self.core.with_watches(|watches, schedule| self.sleeper.sleep(watches, time, stay, schedule));
    }
}
