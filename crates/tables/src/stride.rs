// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stride scheduling: turns in proportion to tickets.
//!
//! After Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource Management" (1995). The
//! scheduler gives turns to tasks, which the code calls clients. Each task has a pass. With each turn, the pass grows
//! by the task's stride, which is a constant divided by the task's number of tickets. The task with the least pass is
//! next.

use crate::heap::Heap;

/// The stride of a task with one ticket.
const ONE_TICKET: u64 = 1 << 32;
/// When the current pass exceeds this limit, the current pass is subtracted from the passes of all tasks, so that
/// passes do not overflow.
const LARGE_PASS: u64 = 1 << 62;

#[inline]
fn stride(tickets: u32) -> u64 {
    ONE_TICKET / u64::from(tickets.max(1))
}

/// The limit of a task's service (the sum of its strides over its turns), as a multiple of the longest stride. When a
/// service exceeds the limit, the services of all tasks are halved. Without the limit, a task that has slept for long
/// would be preferred for too long.
const MOST_SERVICE: u64 = 64;

/// A stride scheduler for any number of tasks, which are identified by small numbers. A turn takes logarithmic time.
/// Tasks with equal numbers of tickets take turns in the order in which they were added.
///
/// If tasks have different numbers of tickets, three rules keep the shares right, even if tasks sleep and wake
/// together:
/// - A turn in which a task found nothing to do does not count ([`Stride::withdraw`]).
/// - When the task is scheduled again, it keeps its pass, or gets the current pass if that is higher.
/// - Among tasks with equal passes, the one with the fewest turns per ticket is next. If they tie in this number too,
///   the one that entered the queue first is next.
#[derive(Clone, Debug, Default)]
pub struct Stride {
    /// The scheduled tasks. A key consists of the task's pass, the task's `service` (0 while all tickets are equal),
    /// and the number of the task's entry into the queue.
    heap: Heap<(u64, u64, u64)>,
    clients: Vec<Client>,
    entered: u64,
    /// The current pass: the pass of the last called task at the start of its turn. If that turn is cancelled, `now` is
    /// set back to `before`. A new task gets a pass one stride above the current pass.
    now: u64,
    /// The value of `now` before the last turn.
    before: u64,
    /// Whether tasks have different numbers of tickets.
    mixed: bool,
    /// The longest stride that a task has had.
    longest: u64,
}

/// The data of a task, scheduled or not.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// The task's stride; 0 if no task has this number.
    stride: u64,
    /// The sum of the task's strides, one for each turn. A turn that `retry` or `withdraw` cancelled is not included.
    /// Turns are added only while tasks have different numbers of tickets.
    service: u64,
    /// The task's pass when it was withdrawn ([`Stride::withdraw`]); none unless it has been withdrawn since it was
    /// last added.
    left_at: Option<u64>,
    /// True if the last call of [`Stride::retry`] for the task cancelled a turn, so that the turn does not count. In
    /// that case, the next call cancels none.
    retries: bool,
}

impl Stride {
    /// Creates a scheduler without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of scheduled tasks.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no task is scheduled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a task is scheduled.
    #[inline]
    pub fn contains(&self, client: u32) -> bool {
        self.heap.key(client).is_some()
    }

    /// Returns the key of a task that enters the queue now with this `pass`.
    #[inline]
    fn enter(&mut self, client: u32, pass: u64) -> (u64, u64, u64) {
        self.entered += 1;
        let service = self.clients.get(client as usize).map_or(0, |c| c.service);
        (pass, service, self.entered)
    }

    /// Sets the stride of a task.
    fn set_stride(&mut self, client: u32, new: u64) {
        let index = client as usize;
        if self.clients.len() <= index {
            self.clients.resize(index + 1, Client::default());
        }
        self.mixed |= self.clients.iter().any(|c| c.stride != 0 && c.stride != new);
        self.longest = self.longest.max(new);
        self.clients[index].stride = new;
    }

    /// Schedules a task; 0 tickets count as 1. If the task is already scheduled, this function only sets its tickets.
    ///
    /// The pass of the task is one stride above the current pass, so the task comes after waiting tasks with the same
    /// number of tickets. Exception: if tasks have different numbers of tickets, a withdrawn task
    /// ([`Stride::withdraw`]) returns with its old pass or the current pass, whichever is higher.
    pub fn add(&mut self, client: u32, tickets: u32) {
        if self.contains(client) {
            return self.set_tickets(client, tickets);
        }
        let new = stride(tickets);
        self.set_stride(client, new);
        let left_at = self.clients[client as usize].left_at.take().filter(|_| self.mixed);
        let pass = left_at.map_or(self.now + new, |pass| pass.clamp(self.now, self.now + new));
        let key = self.enter(client, pass);
        self.heap.set(client, key);
    }

    /// Unschedules a task. Returns false if it was not scheduled.
    pub fn remove(&mut self, client: u32) -> bool {
        self.heap.remove(client).is_some()
    }

    /// Unschedules a task that found nothing to do in its last turn. That turn does not count.
    pub fn withdraw(&mut self, client: u32) {
        if let Some((pass, ..)) = self.heap.remove(client)
            && let Some(c) = self.clients.get_mut(client as usize)
        {
            self.now = self.before;
            c.service = c.service.saturating_sub(c.stride);
            c.left_at = Some(pass.saturating_sub(c.stride));
        }
    }

    /// Called when a task found nothing to do in its last turn but stays scheduled. Every second such turn is not
    /// charged to the task, so the task can try again immediately. The other turns are charged, so a task that finds
    /// nothing for long gives way to other tasks. Does nothing while all tasks have equal numbers of tickets.
    pub fn retry(&mut self, client: u32) {
        if !self.mixed {
            return;
        }
        let Some((pass, ..)) = self.heap.key(client) else { return };
        let Some(c) = self.clients.get_mut(client as usize) else { return };
        c.retries = !c.retries;
        if c.retries {
            self.now = self.before;
            c.service = c.service.saturating_sub(c.stride);
            let key = (pass.saturating_sub(c.stride), c.service, self.entered);
            self.heap.set(client, key);
        }
    }

    /// Changes the tickets of a scheduled task. The task's remaining wait (its pass minus the current pass) is
    /// multiplied by its new stride and divided by its old stride.
    pub fn set_tickets(&mut self, client: u32, tickets: u32) {
        let Some((pass, service, order)) = self.heap.key(client) else { return };
        let Some(old) = self.clients.get(client as usize).map(|c| c.stride) else { return };
        let new = stride(tickets);
        let wait = u128::from(pass.saturating_sub(self.now)) * u128::from(new) / u128::from(old.max(1));
        self.set_stride(client, new);
        // The wait is at most one old stride, so the scaled wait is at most one new stride.
        self.heap.set(client, (self.now + wait as u64, service, order));
    }

    /// The task with the next turn.
    #[inline]
    pub fn peek(&self) -> Option<u32> {
        self.heap.top().map(|(_, client)| client)
    }

    /// Takes the next turn and returns its task. The task stays scheduled, and its pass grows by its
    /// stride.
    #[inline]
    pub fn turn(&mut self) -> Option<u32> {
        let ((pass, ..), client) = self.heap.top()?;
        self.before = std::mem::replace(&mut self.now, pass);
        let c = self.clients.get_mut(client as usize)?;
        if self.mixed {
            c.service += c.stride;
        }
        let (stride, service) = (c.stride, c.service);
        let key = self.enter(client, pass + stride);
        self.heap.lower_top(key);
        if pass > LARGE_PASS {
            self.heap.map_keys(|(other, service, order)| (other - pass, service, order));
            for c in &mut self.clients {
                c.left_at = c.left_at.map(|other| other.saturating_sub(pass));
            }
            (self.now, self.before) = (0, 0);
        }
        if service > MOST_SERVICE.saturating_mul(self.longest) {
            self.halve_services();
        }
        Some(client)
    }

    #[cold]
    fn halve_services(&mut self) {
        for (client, c) in self.clients.iter_mut().enumerate() {
            c.service /= 2;
            let client = client as u32;
            if let Some((pass, _, order)) = self.heap.key(client) {
                self.heap.set(client, (pass, c.service, order));
            }
        }
    }

    /// Unschedules all tasks.
    pub fn clear(&mut self) {
        self.heap.clear();
        (self.now, self.before) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn turns(stride: &mut Stride, count: usize) -> Vec<u32> {
        std::iter::from_fn(|| stride.turn()).take(count).collect()
    }

    #[test]
    fn equal_tickets_take_turns_in_order() {
        let mut stride = Stride::new();
        assert_eq!((stride.turn(), stride.peek()), (None, None));
        for client in [3, 0, 7] {
            stride.add(client, 1024);
        }
        assert_eq!(turns(&mut stride, 7), [3, 0, 7, 3, 0, 7, 3]);
        // A task that leaves and returns immediately comes after the others.
        assert!(stride.remove(3) && !stride.remove(3));
        stride.add(3, 1024);
        assert_eq!(turns(&mut stride, 4), [0, 7, 3, 0]);
        // A new task comes after the others, too.
        stride.add(9, 1024);
        assert_eq!(turns(&mut stride, 5), [7, 3, 0, 9, 7]);
        stride.clear();
        assert!(stride.is_empty() && !stride.contains(7));
    }

    #[test]
    fn turns_follow_tickets() {
        let tickets = [1, 2, 3, 10, 0, 1024, 960];
        let total: u32 = tickets.iter().map(|&t: &u32| t.max(1)).sum();
        let mut scheduler = Stride::new();
        // For each task, its pass and the order of its entry.
        let mut list: Vec<(u64, u64)> = Vec::new();
        for (client, &tickets) in tickets.iter().enumerate() {
            scheduler.add(client as u32, tickets);
            list.push((stride(tickets), client as u64));
        }
        let mut counts = [0_u32; 7];
        for turn in 0..u64::from(total * 10) {
            let client = scheduler.turn().unwrap() as usize;
            assert_eq!(list.iter().min(), Some(&list[client]));
            list[client] = (list[client].0 + stride(tickets[client]), 7 + turn);
            counts[client] += 1;
        }
        for (client, &tickets) in tickets.iter().enumerate() {
            assert!(counts[client].abs_diff(tickets.max(1) * 10) <= 1, "{counts:?}");
        }
    }

    #[test]
    fn changed_tickets() {
        let mut stride = Stride::new();
        stride.add(0, 1);
        stride.add(1, 1);
        stride.set_tickets(1, 3);
        stride.set_tickets(5, 3);
        let counts = turns(&mut stride, 400).iter().filter(|&&client| client == 1).count();
        assert_eq!(counts, 300);
        stride.add(0, 3);
        assert_eq!(stride.len(), 2);
        let counts = turns(&mut stride, 400).iter().filter(|&&client| client == 1).count();
        assert!(counts.abs_diff(200) <= 1);
    }

    #[test]
    fn passes_do_not_overflow() {
        let mut stride = Stride::new();
        stride.add(0, 1);
        stride.add(1, 2);
        stride.now = u64::MAX / 2 - ONE_TICKET;
        stride.heap.map_keys(|(pass, service, order)| (pass + (u64::MAX / 2 - ONE_TICKET), service, order));
        assert_eq!(turns(&mut stride, 3000).iter().sum::<u32>(), 2000);
        assert!(stride.now < LARGE_PASS);
        assert!(stride.clients.iter().all(|c| c.service <= (MOST_SERVICE + 1) * ONE_TICKET));
    }

    /// Task 0 adds one packet to a queue in each of its turns. The other tasks take packets from the queue: all of
    /// them wake when a packet comes, and a task that finds none sleeps. Returns the number of packets that each took.
    fn consumed(tickets: &[u32], turns: usize) -> Vec<usize> {
        let mut stride = Stride::new();
        for (client, &t) in tickets.iter().enumerate() {
            stride.add(client as u32, t);
        }
        let (mut queue, mut taken) = (0, vec![0; tickets.len()]);
        for _ in 0..turns {
            let client = stride.turn().unwrap();
            match (client, queue) {
                (0, _) => {
                    queue += 1;
                    for (c, &t) in tickets
                        .iter()
                        .enumerate()
                        .skip(1)
                        .filter(|&(c, _)| !stride.contains(c as u32))
                        .collect::<Vec<_>>()
                    {
                        stride.add(c as u32, t);
                    }
                }
                (_, 0) => stride.withdraw(client),
                _ => {
                    queue -= 1;
                    taken[client as usize] += 1;
                }
            }
        }
        taken.split_off(1)
    }

    #[test]
    fn consumers_of_a_queue_that_is_nearly_empty_share_by_tickets() {
        for (tickets, shares) in [
            (&[1024, 1024, 4096][..], &[1, 4][..]),
            (&[1024, 4096, 1024], &[4, 1]),
            (&[1, 3, 1, 2], &[3, 1, 2]),
            (&[1000, 10, 7], &[10, 7]),
            (&[3, 1024, 4096], &[1, 4]),
            (&[1024, 2048, 2048, 4096], &[1, 1, 2]),
        ] {
            let taken = consumed(tickets, 60_000);
            let (all, sum) = (taken.iter().sum::<usize>(), shares.iter().sum::<usize>());
            assert!(all > 900, "{tickets:?}: {taken:?}");
            for (&got, &share) in taken.iter().zip(shares) {
                let want = all * share / sum;
                assert!(got.abs_diff(want) <= want / 10 + 70, "{tickets:?}: {taken:?}");
            }
        }
    }

    /// Lets tasks take packets that come from outside in `bursts` bursts; burst `i` has `burst(i)` packets. All tasks
    /// wake when a burst comes. Tasks that find no packet try again, `polls()` times in total, and then sleep. Returns
    /// the number of packets that each task took.
    fn woken(
        tickets: &[u32],
        bursts: usize,
        burst: impl Fn(usize) -> usize,
        mut polls: impl FnMut() -> usize,
    ) -> Vec<usize> {
        let mut stride = Stride::new();
        let mut taken = vec![0; tickets.len()];
        for i in 0..bursts {
            for (client, &t) in tickets.iter().enumerate() {
                stride.add(client as u32, t);
            }
            let (mut queue, mut left) = (burst(i), polls());
            while let Some(client) = stride.turn() {
                if queue > 0 {
                    queue -= 1;
                    taken[client as usize] += 1;
                } else if left > 0 {
                    left -= 1;
                    stride.retry(client);
                } else {
                    stride.withdraw(client);
                }
            }
        }
        taken
    }

    #[test]
    fn bursts_from_outside_are_shared_by_tickets() {
        for tickets in [&[256, 1024][..], &[1024, 256], &[1, 2, 3], &[7, 1000, 30]] {
            for burst in [|_| 1, |_| 2, |_| 3, |_| 4, |_| 17, |i| i % 5] {
                let mut number = 1_u32;
                let several = || {
                    number = number.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                    (number >> 24) as usize % 6
                };
                for (taken, tolerance) in
                    [(woken(tickets, 30_000, burst, || 0), 100), (woken(tickets, 30_000, burst, several), 10)]
                {
                    let (all, sum) = (taken.iter().sum::<usize>(), tickets.iter().sum::<u32>() as usize);
                    for (&got, &own) in taken.iter().zip(tickets) {
                        let want = all * own as usize / sum;
                        assert!(got.abs_diff(want) <= want / tolerance + 3, "{tickets:?}: {taken:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_sleep_gives_no_lasting_advantage() {
        let mut stride = Stride::new();
        for (client, tickets) in [(0, 1), (1, 2), (2, 2)] {
            stride.add(client, tickets);
        }
        while stride.turn() != Some(2) {}
        stride.withdraw(2);
        turns(&mut stride, 30_000);
        stride.add(2, 2);
        let counts = turns(&mut stride, 500).iter().filter(|&&client| client == 2).count();
        assert!(counts.abs_diff(200) <= 1, "{counts}");
    }
}
