// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduled tasks. While all tasks have the same number of tickets, they take turns in rotation. When the numbers
//! differ, stride scheduling decides.

use castanet_tables::Stride;
use std::collections::HashMap;

/// The number of tickets that a task has by default.
pub const TICKETS: u32 = 1024;
/// The maximum number of packets of a burst that are moved without interruption. After them, other tasks, timers and
/// stop requests are served before the burst continues.
pub const LONGEST_BURST: usize = 16_384;

/// The scheduled tasks of one worker. A task is identified by its element.
pub struct Tasks {
    /// The run queue while all tasks have the same number of tickets. The order is that of stride scheduling.
    rotation: Vec<u32>,
    /// The index in `rotation` of the task that has the next turn.
    next: usize,
    /// The stride scheduler, which replaces `rotation` once the numbers of tickets differ.
    stride: Option<Stride>,
    tickets: HashMap<u32, u32>,
    scheduled: Vec<bool>,
}

impl Tasks {
    /// Creates the run queue of a worker. `elements` is the number of elements of the router.
    pub fn new(elements: usize) -> Tasks {
        Tasks {
            rotation: Vec::new(),
            next: 0,
            stride: None,
            tickets: HashMap::new(),
            scheduled: vec![false; elements],
        }
    }
    /// Returns the number of tickets of an element's task.
    pub fn tickets(&self, element: u32) -> u32 {
        self.tickets.get(&element).copied().unwrap_or(TICKETS)
    }
    /// Whether an element's task is scheduled.
    pub fn contains(&self, element: u32) -> bool {
        self.scheduled.get(element as usize).copied().unwrap_or(false)
    }
    /// Sets the number of tickets of an element's task.
    pub fn set_tickets(&mut self, element: u32, tickets: u32) {
        let tickets = tickets.max(1);
        self.tickets.insert(element, tickets);
        match &mut self.stride {
            Some(s) => s.set_tickets(element, tickets),
            None if tickets != TICKETS => {
                let mut stride = Stride::new();
                self.rotation.rotate_left(self.next);
                self.next = 0;
                for e in self.rotation.drain(..) {
                    stride.add(e, self.tickets.get(&e).copied().unwrap_or(TICKETS));
                }
                self.stride = Some(stride);
            }
            None => {}
        }
    }
    /// Schedules an element's task, with its turn after those of all other tasks. Does nothing if the task is scheduled
    /// already.
    pub fn add(&mut self, element: u32) {
        let Some(s) = self.scheduled.get_mut(element as usize) else { return };
        if std::mem::replace(s, true) {
            return;
        }
        let tickets = self.tickets(element);
        match &mut self.stride {
            Some(s) => s.add(element, tickets),
            None => {
                self.rotation.insert(self.next, element);
                self.next += 1;
                if self.next == self.rotation.len() {
                    self.next = 0;
                }
            }
        }
    }
    /// Returns the element whose task has the next turn. The task stays scheduled. If it needs no further turn, call
    /// [`Tasks::remove`].
    #[inline]
    pub fn turn(&mut self) -> Option<u32> {
        // With stride scheduling, the rotation is empty.
        let Some(&e) = self.rotation.get(self.next) else { return self.stride.as_mut()?.turn() };
        self.next += 1;
        if self.next == self.rotation.len() {
            self.next = 0;
        }
        Some(e)
    }
    /// Returns the tasks in the order of their turns, from the next turn on: the tasks until the end of the rotation,
    /// and those from its beginning on. None while the numbers of tickets differ.
    pub fn rounds(&self) -> Option<(&[u32], &[u32])> {
        let (before, from) = self.rotation.split_at_checked(self.next)?;
        self.stride.is_none().then_some((from, before))
    }
    /// Skips turns of the rotation.
    pub fn skip(&mut self, turns: usize) {
        if let Some(next) = (self.next + turns).checked_rem(self.rotation.len()) {
            self.next = next;
        }
    }
    /// Unschedules a task that has just had a turn and found nothing to do.
    pub fn withdraw(&mut self, element: u32) {
        if let Some(s) = &mut self.stride {
            s.withdraw(element);
        }
        self.remove(element);
    }
    /// Records that a task has found nothing to do in the turn that it has just had. The task stays scheduled.
    #[inline]
    pub fn found_nothing(&mut self, element: u32) {
        if let Some(s) = &mut self.stride {
            s.retry(element);
        }
    }
    /// Unschedules an element's task. This is fast if the task has had the last turn.
    pub fn remove(&mut self, element: u32) {
        if let Some(s) = self.scheduled.get_mut(element as usize) {
            *s = false;
        }
        match &mut self.stride {
            Some(s) => {
                s.remove(element);
            }
            None => {
                // A task that goes to sleep has usually just had its turn, so check the position before `next` first.
                let last = self.next.checked_sub(1).unwrap_or(self.rotation.len().wrapping_sub(1));
                let at = match self.rotation.get(last) {
                    Some(&e) if e == element => Some(last),
                    _ => self.rotation.iter().position(|&e| e == element),
                };
                let Some(at) = at else { return };
                self.rotation.remove(at);
                if at < self.next {
                    self.next -= 1;
                }
                if self.next == self.rotation.len() {
                    self.next = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_and_stride_agree_on_equal_tickets() {
        let mut a = Tasks::new(5);
        let mut b = Tasks::new(6);
        b.set_tickets(5, 7);
        for t in [&mut a, &mut b] {
            for e in [3, 1, 4, 1] {
                t.add(e);
            }
        }
        let turns = |t: &mut Tasks| (0..9).filter_map(|_| t.turn()).collect::<Vec<_>>();
        assert_eq!(turns(&mut a), [3, 1, 4, 3, 1, 4, 3, 1, 4]);
        assert_eq!(turns(&mut b), [3, 1, 4, 3, 1, 4, 3, 1, 4]);
        for t in [&mut a, &mut b] {
            t.remove(4);
            assert!(!t.contains(4) && t.contains(3));
            t.add(4);
        }
        assert_eq!(turns(&mut a), turns(&mut b));
    }

    #[test]
    fn a_rotation_is_a_queue() {
        let mut t = Tasks::new(8);
        let mut model = std::collections::VecDeque::new();
        let mut random = castanet_element::Random::new(3, "tasks");
        for _ in 0..3000 {
            let e = random.below(8) as u32;
            match random.below(5) {
                0 if !t.contains(e) => {
                    t.add(e);
                    model.push_back(e);
                }
                1 => {
                    t.remove(e);
                    model.retain(|&m| m != e);
                }
                2 => {
                    let turn = t.turn();
                    assert_eq!(turn, model.pop_front());
                    turn.inspect(|&e| t.remove(e));
                }
                _ => {
                    let turn = model.pop_front();
                    turn.inspect(|&e| model.push_back(e));
                    assert_eq!(t.turn(), turn);
                }
            }
        }
    }

    #[test]
    fn shares_follow_tickets() {
        let mut t = Tasks::new(2);
        t.add(0);
        t.add(1);
        t.set_tickets(1, 3 * TICKETS);
        let ones = (0..4000).filter(|_| t.turn() == Some(1)).count();
        assert!((2995..=3005).contains(&ones), "{ones}");
        assert_eq!((t.tickets(0), t.tickets(1)), (1024, 3072));
    }

    #[test]
    fn elements_that_do_not_exist_are_ignored() {
        let mut t = Tasks::new(1);
        t.add(9);
        t.remove(9);
        assert_eq!(t.turn(), None);
    }
}
