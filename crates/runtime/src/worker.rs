// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run loop of one worker: stop requests, mail, tasks, timers, sleep.

use crate::lock::TIMER;
use crate::mail::Mail;
use crate::nodes::Nodes;
use crate::polling::Polling;
use crate::shared::Shared;
use crate::sleep::Sleeper;
use crate::tasks::LONGEST_BURST;
use castanet_element::run_loop::Core;
use castanet_element::{Drive, Turn};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// The number of task turns between two checks of timers and of mail (messages from other threads).
const TURNS: usize = 128;
/// The maximum number of timers that run before tasks and mail are served. Without this limit, a timer that sets itself
/// again for the current time would block the worker.
const TIMERS: usize = 4096;

/// The stack size of a worker's thread, in bytes. Pulls recurse, with a stack frame for each element on the path.
pub(crate) const STACK: usize = 256 << 20;

/// A worker: its elements and its run loop.
pub struct Worker {
    pub(crate) nodes: Nodes,
    pub(crate) core: Core,
    pub(crate) sleeper: Sleeper,
    /// The maximum number of packets that an element may move in one run of a timer.
    pub(crate) batch: usize,
    pub(crate) polling: Polling,
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
        Worker { nodes, core, sleeper, batch, polling: Polling::default() }
    }

    /// Runs until the router has ended, or until all workers wait at the barrier for a hot swap.
    pub(crate) fn run_loop(&mut self) {
        // If an element has panicked, the run loop is called again. First finish the work that the panic interrupted.
        self.nodes.settle(&mut self.core);
        self.nodes.drain(&mut self.core);
        self.nodes.end_quanta(&mut self.core);
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
            if !self.nodes.observes(shared.session.observers.generation()) {
                self.nodes.observe(&mut self.core);
            }
            let sampled =
                shared.session.profiling.load(Ordering::Relaxed) && self.nodes.begin_sample(me as u32);
            let more = self.run_tasks(&shared);
            let fired = self.run_timers();
            self.polling.end_round(shared.inboxes.get(me));
            if sampled {
                self.nodes.end_sample();
            }
            if more || fired || self.core.has_scheduled() {
                // `sleep` checks the descriptors itself. A busy worker does not sleep, so it must check them here.
                if self.core.watches().any() {
                    self.look();
                }
            } else {
                self.sleep(&shared, me, drives);
            }
        }
        self.nodes.end_observing(&mut self.core);
        // At the barrier, this worker still answers mail, because another worker may be waiting for an answer.
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
        // Answer only the mail that is there now. Mail that arrives in the meantime waits until tasks have had their
        // turns.
        for _ in 0..self.nodes.inbox.len() {
            let Some(m) = self.nodes.inbox.pop_front() else { return };
            self.nodes.answer(&mut self.core, m);
            self.nodes.drain(&mut self.core);
        }
        self.nodes.remind(&self.core);
    }

    /// Gives turns to the scheduled tasks. Returns false when no task is scheduled any more.
    #[inline(never)]
    fn run_tasks(&mut self, shared: &Shared) -> bool {
        let mut left = TURNS;
        let mut quanta = true;
        while left > 0 {
            self.schedule();
            let taken = if quanta { self.run_quanta(shared, left) } else { 0 };
            quanta = taken > 0;
            if quanta {
                left = left.saturating_sub(taken);
            } else {
                let Some(task) = self.nodes.tasks.turn() else {
                    self.polling.turns = TURNS - left;
                    return false;
                };
                left -= self.run_turn(shared, task, left);
            }
            if shared.requests.load(Ordering::Relaxed) > 0 || shared.halted.load(Ordering::Relaxed) {
                break;
            }
        }
        self.polling.turns = TURNS - left;
        true
    }

    /// Adds the tasks that have been woken to the scheduled tasks.
    #[inline(always)]
    fn schedule(&mut self) {
        if self.core.has_scheduled() {
            for e in self.core.take_scheduled() {
                self.nodes.tasks.add(e);
            }
        }
    }

    /// Gives each scheduled task several turns at once, if nobody can tell this from turns one after the other. `left` is
    /// the number of turns that may be taken. Returns the number of turns taken: 0 if the tasks must take turns.
    fn run_quanta(&mut self, shared: &Shared, left: usize) -> usize {
        let Some((turns, mut taken)) = self.nodes.run_quanta(&mut self.core, left) else { return 0 };
        while self.nodes.has_turns_left(turns) {
            self.schedule();
            let Some(task) = self.nodes.tasks.turn() else { break };
            if !self.nodes.take_turn_of(&mut self.core, task, turns) {
                self.run_turn(shared, task, 1);
            }
            taken += 1;
        }
        self.nodes.end_quanta(&mut self.core);
        taken
    }

    /// Gives a turn to a task. `left` is the number of turns that may be taken. Returns the number of turns taken: it is
    /// above 1 if the router has only this task.
    #[inline(always)]
    fn run_turn(&mut self, shared: &Shared, task: u32, left: usize) -> usize {
        let limit = shared.build_state.limits.get(task as usize);
        let limit = limit.map_or(1, |l| l.load(Ordering::Relaxed) as usize);
        // If the router has only one task, nothing runs between two of its turns. So one call of the task may stand
        // for several turns, and moves the packets of all these turns as one batch.
        let turns = if shared.tasks.len() == 1 { limit.min(left) } else { 1 };
        self.core.begin_task(limit, turns);
        // Split a burst into calls of at most `limit` packets. A stop request does not end the burst.
        let mut moved = 0;
        loop {
            let turn = self.nodes.run_task(&mut self.core, task);
            if turn == Turn::Again {
                // The task is polling: it stays scheduled because a notifier is on, but it has found no packet.
                if self.core.found_nothing() {
                    self.nodes.tasks.found_nothing(task);
                    self.polling.empty += 1;
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
        self.core.turns_taken().clamp(1, left)
    }

    /// Runs the timers that have expired. Returns false if there were none.
    fn run_timers(&mut self) -> bool {
        if self.core.timers().is_empty() {
            return false;
        }
        // Read the clock again. If the element saw a time before the expiry of its timer, it would set the same timer
        // again.
        let now = self.core.read_clock();
        for fired in 0..TIMERS {
            let Some((_, (e, id))) = self.core.timers().pop_due(now) else { return fired > 0 };
            self.core.set_limit(self.batch);
            if id == TIMER {
                self.nodes.run_timers_of(&mut self.core, e, now);
            } else {
                self.nodes.run(&mut self.core, e, |e, cx| e.timer(id, cx));
            }
            self.nodes.move_resumed(&mut self.core, e);
        }
        true
    }

    /// Schedules the tasks of elements whose descriptors are ready.
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
        self.polling.sleep();
        self.core.with_watches(|watches, schedule| self.sleeper.sleep(watches, time, stay, schedule));
    }
}
