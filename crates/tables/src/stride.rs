// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stride scheduling: turns in proportion to tickets.
//!
//! After Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource Management"
//! (1995). Each client has a pass. With each turn it grows by the client's stride, a constant divided by its
//! tickets. The client with the least pass is next.

use crate::heap::Heap;

/// The stride of a client with one ticket.
const ONE_TICKET: u64 = 1 << 32;
/// Passes larger than this are reduced.
const LARGE_PASS: u64 = 1 << 62;

#[inline]
fn stride(tickets: u32) -> u64 {
    ONE_TICKET / u64::from(tickets.max(1))
}

/// The order of clients with equal passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The client that entered first is next, so clients with equal tickets take turns in the order in which
    /// they were added.
    Oldest,
    /// The client that entered last is next.
    Newest,
}

/// A stride scheduler for any number of clients, which are identified by small numbers. A turn takes
/// logarithmic time.
#[derive(Clone, Debug)]
pub struct Stride {
    /// Keys are the pass and the tie-breaking order.
    heap: Heap<(u64, u64)>,
    strides: Vec<u64>,
    ties: Ties,
    entered: u64,
    /// The pass of the last turn. New clients start from here.
    now: u64,
}

impl Stride {
    /// Creates a scheduler without clients.
    pub fn new(ties: Ties) -> Self {
        Self { heap: Heap::default(), strides: Vec::new(), ties, entered: 0, now: 0 }
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
        match self.ties {
            Ties::Oldest => (pass, self.entered),
            Ties::Newest => (pass, u64::MAX - self.entered),
        }
    }

    /// Schedules a client; 0 tickets count as 1. The client starts one stride after the current pass, so it
    /// comes after clients that have already waited. A client that is already scheduled keeps its position and
    /// gets the new tickets.
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

    /// Changes the tickets of a scheduled client. Its remaining wait is scaled in proportion.
    pub fn set_tickets(&mut self, client: u32, tickets: u32) {
        let Some((pass, order)) = self.heap.key(client) else { return };
        let Some(old) = self.strides.get_mut(client as usize) else { return };
        let new = stride(tickets);
        let wait = u128::from(pass.saturating_sub(self.now)) * u128::from(new) / u128::from((*old).max(1));
        *old = new;
        // A wait is at most one stride, so the result is too.
        self.heap.set(client, (self.now + wait as u64, order));
    }

    /// The client with the next turn.
    #[inline]
    pub fn peek(&self) -> Option<u32> {
        self.heap.top().map(|(_, client)| client)
    }

    /// Takes the next turn. Its client stays scheduled, and its pass grows by its stride.
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

/// A stride scheduler for a few clients, 0, 1, 2..., which exposes their order. A client without work can be
/// skipped without using its turn. A turn takes time proportional to the number of clients.
#[derive(Clone, Debug)]
pub struct StrideList {
    /// The clients in the order of their turns.
    entries: Vec<Entry>,
    ties: Ties,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    pass: u64,
    tickets: u32,
    client: usize,
}

impl StrideList {
    /// Creates one client for each number of tickets; 0 tickets count as 1.
    pub fn new(tickets: &[u32], ties: Ties) -> Self {
        let mut list = Self { entries: Vec::with_capacity(tickets.len()), ties };
        for (client, &tickets) in tickets.iter().enumerate() {
            list.enter(Entry { pass: stride(tickets), tickets, client });
        }
        list
    }

    fn enter(&mut self, entry: Entry) {
        let at = self.entries.partition_point(|other| match self.ties {
            Ties::Oldest => other.pass <= entry.pass,
            Ties::Newest => other.pass < entry.pass,
        });
        self.entries.insert(at, entry);
    }

    /// Number of clients.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no clients.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The client at this position in the order; 0 is the next.
    #[inline]
    pub fn get(&self, place: usize) -> Option<usize> {
        self.entries.get(place).map(|entry| entry.client)
    }

    /// Takes the turn of the client at this position in the order.
    #[inline]
    pub fn turn_at(&mut self, place: usize) -> Option<usize> {
        if place >= self.entries.len() {
            return None;
        }
        let mut entry = self.entries.remove(place);
        // A skipped client keeps its pass, so the passes of the others can grow far beyond it.
        if entry.pass > LARGE_PASS {
            for other in &mut self.entries {
                other.pass = other.pass.saturating_sub(LARGE_PASS);
            }
            entry.pass -= LARGE_PASS;
        }
        entry.pass += stride(entry.tickets);
        self.enter(entry);
        Some(entry.client)
    }

    /// Takes the next turn.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        self.turn_at(0)
    }

    /// The tickets of a client.
    pub fn tickets(&self, client: usize) -> Option<u32> {
        self.entries.iter().find(|entry| entry.client == client).map(|entry| entry.tickets)
    }

    /// Changes the tickets of a client from its next turn on.
    pub fn set_tickets(&mut self, client: usize, tickets: u32) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.client == client) {
            entry.tickets = tickets;
        }
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
        let mut stride = Stride::new(Ties::Oldest);
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
    fn the_reference_sequence_of_weights_one_two_three() {
        // Inputs a, b and c; c has four packets.
        let mut list = StrideList::new(&[1, 2, 3], Ties::Newest);
        let mut left = [9, 9, 4];
        let mut text = String::new();
        for _ in 0..9 {
            let place = (0..3).find(|&place| left[list.get(place).unwrap()] > 0).unwrap();
            let client = list.turn_at(place).unwrap();
            left[client] -= 1;
            text.push(char::from(b'a' + client as u8));
        }
        assert_eq!(text, "cbccbacbb");
        assert_eq!(list.turn_at(3), None);
    }

    #[test]
    fn turns_follow_tickets() {
        for ties in [Ties::Oldest, Ties::Newest] {
            let tickets = [1, 2, 3, 10, 0, 1024, 960];
            let total: u32 = tickets.iter().map(|&t: &u32| t.max(1)).sum();
            let mut stride = Stride::new(ties);
            for (client, &tickets) in tickets.iter().enumerate() {
                stride.add(client as u32, tickets);
            }
            let mut list = StrideList::new(&tickets, ties);
            let mut counts = [0_u32; 7];
            for _ in 0..total * 10 {
                let client = stride.turn().unwrap();
                // The heap and the list are independent implementations of the same sequence.
                assert_eq!(list.turn(), Some(client as usize));
                counts[client as usize] += 1;
            }
            for (client, &tickets) in tickets.iter().enumerate() {
                assert!(counts[client].abs_diff(tickets.max(1) * 10) <= 1, "{counts:?}");
            }
        }
    }

    #[test]
    fn changed_tickets() {
        let mut stride = Stride::new(Ties::Oldest);
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
        let mut list = StrideList::new(&[1, 1], Ties::Oldest);
        list.set_tickets(1, 3);
        assert_eq!((list.tickets(1), list.tickets(2), list.len()), (Some(3), None, 2));
        assert!(!list.is_empty() && StrideList::new(&[], Ties::Oldest).is_empty());
        let counts = (0..400).filter(|_| list.turn() == Some(1)).count();
        assert!(counts.abs_diff(300) <= 1);
    }

    #[test]
    fn passes_do_not_overflow() {
        let mut stride = Stride::new(Ties::Oldest);
        let mut list = StrideList::new(&[1, 2], Ties::Oldest);
        stride.add(0, 1);
        stride.add(1, 2);
        stride.now = u64::MAX / 2 - ONE_TICKET;
        stride.heap.map_keys(|(pass, order)| (pass + (u64::MAX / 2 - ONE_TICKET), order));
        list.entries.iter_mut().for_each(|entry| entry.pass += u64::MAX / 2 - ONE_TICKET);
        let (mut one, mut two) = (0, 0);
        for _ in 0..3000 {
            one += stride.turn().unwrap();
            two += list.turn().unwrap();
        }
        assert_eq!((one, two), (2000, 2000));
        assert!(stride.now < LARGE_PASS && list.entries[0].pass < LARGE_PASS);
    }
}
