// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stride scheduling: turns in proportion to tickets.
//!
//! After Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource Management"
//! (1995). Each client has a pass. With each turn, the pass grows by the client's stride, which is a constant
//! divided by the client's tickets. The client with the least pass is next.

use crate::heap::Heap;

/// The stride of a client with one ticket.
const ONE_TICKET: u64 = 1 << 32;
/// When the pass of a turn exceeds this limit, that pass is subtracted from the passes of all clients, so that
/// passes do not overflow.
const LARGE_PASS: u64 = 1 << 62;

#[inline]
fn stride(tickets: u32) -> u64 {
    ONE_TICKET / u64::from(tickets.max(1))
}

/// A stride scheduler for any number of clients, which are identified by small numbers. A turn takes
/// logarithmic time. If clients have equal passes, the client that entered first is next. So clients with
/// equal tickets take turns in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Stride {
    /// Keys are the pass and the order of entry.
    heap: Heap<(u64, u64)>,
    strides: Vec<u64>,
    entered: u64,
    /// The pass of the last turn. A new client starts one stride after it.
    now: u64,
}

impl Stride {
    /// Creates a scheduler without clients.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of clients.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there are no clients.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a client is scheduled.
    #[inline]
    pub fn contains(&self, client: u32) -> bool {
        self.heap.key(client).is_some()
    }

    /// The key of a client that enters the queue with this `pass`.
    #[inline]
    fn enter(&mut self, pass: u64) -> (u64, u64) {
        self.entered += 1;
        (pass, self.entered)
    }

    /// Schedules a client; 0 tickets count as 1. The client starts one stride after the current pass, so it
    /// comes after clients with the same number of tickets that are waiting already. If the client is already
    /// scheduled, this is [`Self::set_tickets`].
    pub fn add(&mut self, client: u32, tickets: u32) {
        if self.contains(client) {
            return self.set_tickets(client, tickets);
        }
        let index = client as usize;
        if self.strides.len() <= index {
            self.strides.resize(index + 1, ONE_TICKET);
        }
        self.strides[index] = stride(tickets);
        let key = self.enter(self.now + stride(tickets));
        self.heap.set(client, key);
    }

    /// Unschedules a client. Returns false if it was not scheduled.
    pub fn remove(&mut self, client: u32) -> bool {
        self.heap.remove(client).is_some()
    }

    /// Changes the tickets of a scheduled client. Its remaining wait is scaled by the ratio of new to
    /// old stride.
    pub fn set_tickets(&mut self, client: u32, tickets: u32) {
        let Some((pass, order)) = self.heap.key(client) else { return };
        let Some(old) = self.strides.get_mut(client as usize) else { return };
        let new = stride(tickets);
        let wait = u128::from(pass.saturating_sub(self.now)) * u128::from(new) / u128::from((*old).max(1));
        *old = new;
        // The wait is at most one old stride, so the scaled wait is at most one new stride.
        self.heap.set(client, (self.now + wait as u64, order));
    }

    /// The client with the next turn.
    #[inline]
    pub fn peek(&self) -> Option<u32> {
        self.heap.top().map(|(_, client)| client)
    }

    /// Takes the next turn and returns its client. The client stays scheduled, and its pass grows by its
    /// stride.
    #[inline]
    pub fn turn(&mut self) -> Option<u32> {
        let ((pass, _), client) = self.heap.top()?;
        self.now = pass;
        let key = self.enter(pass + self.strides[client as usize]);
        self.heap.lower_top(key);
        if pass > LARGE_PASS {
            self.heap.map_keys(|(other, order)| (other - pass, order));
            self.now = 0;
        }
        Some(client)
    }

    /// Unschedules all clients.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.now = 0;
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
        // A client that leaves and returns immediately comes after the others.
        assert!(stride.remove(3) && !stride.remove(3));
        stride.add(3, 1024);
        assert_eq!(turns(&mut stride, 4), [0, 7, 3, 0]);
        // So does a new client.
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
        // For each client, its pass and the order of its entry.
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
        stride.heap.map_keys(|(pass, order)| (pass + (u64::MAX / 2 - ONE_TICKET), order));
        assert_eq!(turns(&mut stride, 3000).iter().sum::<u32>(), 2000);
        assert!(stride.now < LARGE_PASS);
    }
}
