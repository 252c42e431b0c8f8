// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives tasks several turns at once.
//!
//! In many configurations each turn of a task moves one packet, and the tasks take turns. If nobody can tell the order of
//! these turns, each task gets several of them at once instead, a quantum, whose packets move as one batch. Each packet
//! gets the number of its turn. At inputs that several tasks reach (meetings), packets wait until all tasks have had
//! their quanta, and then go on in the order of their turns. [`castanet_graph::quanta`] finds the tasks and the meetings.
//!
//! The tasks without inputs come first. Then it is known in which turns packets arrive at the queues, and so whether the
//! tasks that pull from these queues would find a packet in each of their turns. From the first turn on that would find a
//! queue empty, or wake a task, or fill a queue, all turns are taken one after the other: the packets that wait are
//! pushed in the turns that have sent them.

use crate::meeting::Meeting;
use crate::node::{Body, NONE, Node};
use crate::nodes::Nodes;
use crate::quanta::{NO, Position, Quanta, Task};
use crate::unwind::blamed;
use castanet_element::run_loop::{Core, Internals as _};
use castanet_element::{Cx, Level};
use castanet_graph::quanta::Meets;
use std::sync::atomic::Ordering;

/// The maximum number of turns of a task in a quantum.
const MOST: usize = 32;
/// The minimum number of turns of a task in a quantum. Fewer turns cost less one after the other.
const FEWEST: usize = 4;
impl Nodes {
    /// Gives each scheduled task a quantum, if nobody can tell this from turns one after the other. `left` is the number
    /// of turns that may be taken. Returns the number of turns of each task and the number of the first turn that must be
    /// taken by itself. None if there are no quanta.
    pub(crate) fn run_quanta(&mut self, core: &mut Core, left: usize) -> Option<(usize, usize)> {
        let turns = self.plan(core, left)?;
        let step = self.quanta.order.len();
        let end = step * turns;
        self.quanta.count += 1;
        self.lead(true);
        for first in 0..step {
            let task = self.quanta.order.get(first)?.task;
            if task.queue == NONE {
                self.run_turns(core, task, turns, (first, step));
            }
        }
        self.release(core, Meets::Sources, end);
        let until = self.foresee(turns, step);
        self.release(core, Meets::Queue, until);
        for first in 0..step {
            let position = self.quanta.order.get_mut(first)?;
            // The number of this task's turns before turn `until`.
            let taken = until.saturating_sub(first).div_ceil(step);
            let task = position.task;
            position.next = if task.queue == NONE { first + taken * step } else { end };
            if task.queue != NONE && taken > 0 {
                self.run_turns(core, task, taken, (first, step));
            }
        }
        self.release(core, Meets::Pullers, until);
        self.lead(false);
        self.tasks.skip(until % step);
        self.quanta.begun = until < end;
        Some((turns, until))
    }

    /// Decides how many turns each scheduled task gets at once, and records the order of the tasks. None if the turns must
    /// be taken one after the other.
    fn plan(&mut self, core: &mut Core, left: usize) -> Option<usize> {
        let Nodes { tasks, quanta, nodes, shared, .. } = self;
        let (now, later) = tasks.rounds().filter(|_| !quanta.tasks.is_empty())?;
        let mut turns = left.checked_div(now.len() + later.len())?.min(MOST);
        let (mut sources, mut stored) = (0usize, usize::MAX);
        quanta.order.clear();
        quanta.positions.fill(NO);
        for (&e, position) in now.iter().chain(later).zip(0..) {
            let number = *quanta.numbers.get(e as usize)? as usize;
            let &task = quanta.tasks.get(number)?;
            let limit = shared.build_state.limits.get(e as usize)?.load(Ordering::Relaxed);
            let node = nodes.get(task.node as usize)?;
            let plain = match &node.body {
                Body::Element(x) | Body::Reaching(x, _) => {
                    x.plain_turns(&Cx::over(&mut [], core, None, node.edges(), false))
                }
                _ => 0,
            };
            turns = turns.min(limit as usize).min(plain);
            if turns < FEWEST {
                return None;
            }
            match level(nodes, task.queue) {
                Some(level) => stored = stored.min(level.packets),
                None if task.queue == NONE => sources += 1,
                None => return None,
            }
            *quanta.positions.get_mut(number)? = position;
            quanta.order.push(Position { task, next: 0 });
        }
        for place in quanta.places.iter().filter(|p| p.meets == Meets::Queue) {
            let Level { packets, capacity } = level(nodes, place.node)?;
            if capacity.saturating_sub(packets) <= sources * turns {
                return None;
            }
        }
        if sources == 0 {
            turns = turns.min(stored);
        }
        (turns >= FEWEST).then_some(turns)
    }

    /// Makes the edges of all meetings lead to the nodes at which packets wait, or back to their own nodes.
    fn lead(&mut self, wait: bool) {
        let Nodes { quanta, edges, .. } = self;
        quanta.begun = wait;
        for place in &quanta.places {
            let node = if wait { place.waiting } else { place.node };
            for &x in &place.edges {
                if let Some(edge) = edges.get_mut(x as usize) {
                    edge.node = node;
                }
            }
        }
    }

    /// Calls a task for several plain turns. The packets get the numbers of the turns: the first turn has number `first`,
    /// and the numbers increase by `step`.
    fn run_turns(&mut self, core: &mut Core, task: Task, turns: usize, (first, step): (usize, usize)) {
        core.begin_quantum(turns);
        let n = task.node as usize;
        let Nodes { nodes, edges, .. } = self;
        let Some(node) = nodes.get_mut(n) else { return };
        let (base, place) = (node.base as usize, node.edges());
        let touched = match &mut node.body {
            Body::Element(e) => {
                let mut cx = Cx::over(edges, core, None, place, false);
                blamed(&mut cx, |cx| e.task(cx));
                cx.outputs().touched()
            }
            _ => self.reach(core, n, false, |e, cx| e.task(cx)).map_or(0, |r| r.touched),
        };
        if let Some(edge) = self.edges.get_mut(base) {
            // Turn numbers are below the number of turns between two checks of timers, which is 128.
            let (mut turn, step) = (first as u8, step as u8);
            for p in edge.batch.iter_mut() {
                p.set_turn(turn);
                turn = turn.wrapping_add(step);
            }
        }
        // The packets of a single turn move as a batch, too: only batches wait at meetings.
        core.begin_quantum(turns.max(2));
        self.go_on(core, n, touched);
        self.drain(core);
    }

    /// Lets the packets of all turns before turn `end` go on that wait at meetings of one kind.
    fn release(&mut self, core: &mut Core, meets: Meets, end: usize) {
        // In a cycle, packets may come back to a meeting that they have left.
        while self.release_once(core, meets, end) && meets != Meets::Queue {}
    }
    /// Does the same as [`Nodes::release`], but visits each meeting only once. Returns whether there were packets.
    fn release_once(&mut self, core: &mut Core, meets: Meets, end: usize) -> bool {
        let mut found = false;
        let places = &self.quanta.places;
        let first = places.partition_point(|p| p.meets < meets);
        let end_of_kind = places.partition_point(|p| p.meets <= meets);
        for i in first..end_of_kind {
            let Nodes { quanta, nodes, edges, .. } = self;
            let Some(place) = quanta.places.get(i) else { continue };
            let Some(Body::Meeting(meeting)) = nodes.get_mut(place.waiting as usize).map(|n| &mut n.body)
            else {
                continue;
            };
            if meeting.batch.is_empty() {
                continue;
            }
            let Some(&x) = place.edges.first() else { continue };
            let Some(edge) = edges.get_mut(x as usize) else { continue };
            meeting.take_before(end, &mut edge.batch);
            if edge.batch.is_empty() {
                continue;
            }
            found = true;
            let leads_to = std::mem::replace(&mut edge.node, place.node);
            core.set_peak(if meets == Meets::Queue { place.peak } else { usize::MAX });
            self.follow(core, x as usize);
            self.drain(core);
            core.set_peak(usize::MAX);
            if let Some(edge) = self.edges.get_mut(x as usize) {
                edge.node = leads_to;
            }
        }
        found
    }

    /// Returns the number of the first turn that must be taken by itself: it finds a queue empty, wakes a task, or may
    /// fill a queue. Returns the number of all turns if there is none. Records the maximum number of packets in each
    /// queue before this turn.
    fn foresee(&mut self, turns: usize, step: usize) -> usize {
        let Nodes { quanta: Quanta { places, order, positions, .. }, nodes, .. } = self;
        let mut until = step * turns;
        // A queue that no source reaches has no meeting, but may run empty.
        for (position, i) in order.iter().zip(0..) {
            let queue = position.task.queue;
            if let Some(level) = level(nodes, queue).filter(|_| places.iter().all(|p| p.node != queue)) {
                until = until.min(level.packets.saturating_mul(step).saturating_add(i));
            }
        }
        loop {
            let before = until;
            for place in places.iter_mut().filter(|p| p.meets == Meets::Queue) {
                let Some(level) = level(nodes, place.node) else { return 0 };
                let Some(Body::Meeting(meeting)) = nodes.get(place.waiting as usize).map(|n| &n.body) else {
                    return 0;
                };
                let position = positions.get(usize::from(place.puller)).copied().unwrap_or(NO);
                let rounds = (position != NO).then_some((usize::from(position), step));
                (until, place.peak) = foresee_queue(level, meeting, rounds, until);
            }
            // The packets in a queue have been counted up to a later turn than the one at which another queue stops all.
            if until == before {
                return until;
            }
        }
    }

    /// Returns whether packets of quanta still wait for their turns.
    pub(crate) fn has_turns_left(&self, turns: usize) -> bool {
        let end = turns * self.quanta.order.len();
        self.quanta.order.iter().any(|p| p.next < end)
    }
    /// Takes the turn of a task whose packet already waits at a meeting: lets the packet go on. Returns false if the task
    /// has no such packet.
    pub(crate) fn take_turn_of(&mut self, core: &mut Core, element: u32, turns: usize) -> bool {
        let step = self.quanta.order.len();
        let number = self.quanta.numbers.get(element as usize).copied().unwrap_or(NO);
        let position = self.quanta.positions.get(usize::from(number)).copied().unwrap_or(NO);
        let Some(position) = self.quanta.order.get_mut(usize::from(position)) else { return false };
        if position.next >= turns * step {
            return false;
        }
        let turn = position.next;
        position.next += step;
        core.begin_quantum(MOST);
        self.release_all(core, turn + 1);
        true
    }
    /// Lets the packets of all turns before turn `end` go on.
    pub(crate) fn release_all(&mut self, core: &mut Core, end: usize) {
        for place in &mut self.quanta.places {
            place.peak = usize::MAX;
        }
        for meets in [Meets::Sources, Meets::Queue, Meets::Pullers] {
            self.release(core, meets, end);
        }
    }
    /// Ends quanta: lets all packets go on that still wait. After a panic, quanta may have been interrupted.
    pub(crate) fn end_quanta(&mut self, core: &mut Core) {
        if self.quanta.begun {
            self.lead(false);
            core.begin_quantum(MOST);
            self.release_all(core, usize::MAX);
        }
    }
}

/// Returns how full the queue of a node is. None if the node is no queue.
fn level(nodes: &[Node], node: u32) -> Option<Level> {
    match &nodes.get(node as usize)?.body {
        Body::Element(e) => e.level(),
        _ => None,
    }
}

/// Looks at the turns before turn `until` in which packets arrive at a queue, and those in which a task pulls from it:
/// turn `rounds.0` and every `rounds.1` turns after it. Returns the number of the first turn that must be taken by
/// itself, or `until`, and the maximum number of packets in the queue before that turn.
fn foresee_queue(
    level: Level,
    meeting: &Meeting,
    rounds: Option<(usize, usize)>,
    mut until: usize,
) -> (usize, usize) {
    let mut arrivals = meeting.batch.iter().map(|p| usize::from(p.turn()));
    let mut arrival = arrivals.next().unwrap_or(usize::MAX);
    let (mut turn, step) = match rounds {
        Some(rounds) if level.packets + meeting.batch.len() < level.capacity => rounds,
        // The task sleeps, or the queue may become full.
        _ => return (until.min(arrival), 0),
    };
    let (mut packets, mut peak) = (level.packets, 0);
    loop {
        let next = turn.min(until);
        while arrival < next {
            packets += 1;
            peak = peak.max(packets);
            arrival = arrivals.next().unwrap_or(usize::MAX);
        }
        if turn >= until {
            return (until, peak);
        }
        if packets == 0 {
            until = turn;
            return (until, peak);
        }
        packets -= 1;
        turn += step;
    }
}
