// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stride scheduling of ports: each port gets turns in proportion to its tickets. A port without a packet loses its
//! turn.

use castanet_element::prelude::*;

/// The stride of a port with one ticket.
const ONE_TICKET: u64 = 1 << 32;
/// When the pass of a port exceeds this value, all passes are reduced.
const LARGE_PASS: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientPass {
    pass: u64,
    client: usize,
}

/// Stride scheduling of the ports of an element, after Waldspurger and Weihl (1995). Each port is a client in the
/// sense of that paper: it has a pass, and a stride, which is a constant divided by its tickets. The port with the
/// least pass is next, and its pass then grows by its stride. Of several ports with the same pass, the one that
/// reached it last goes first.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// The ports, in the order of their next turns.
    order: Vec<ClientPass>,
    tickets: Vec<u32>,
}

impl Shares {
    /// Makes shares for ports with these tickets. At first, the pass of each port equals its stride.
    fn new(tickets: Vec<u32>) -> Shares {
        let mut shares = Shares { order: Vec::with_capacity(tickets.len()), tickets };
        for client in 0..shares.tickets.len() {
            shares.enter(ClientPass { pass: shares.stride(client), client });
        }
        shares
    }

    /// Checks the tickets of a configuration string: one number, at least 1, for each port.
    pub fn parse(tickets: &[u32], ports: usize, what: &str) -> Result<Shares, ConfigError> {
        if tickets.len() != ports {
            let (n, s) = (tickets.len(), if ports == 1 { "" } else { "s" });
            return Err(format!("TICKETS: {ports} number{s} wanted, one for each {what}, not {n}").into());
        }
        if tickets.contains(&0) {
            return Err("TICKETS: must be at least 1".into());
        }
        Ok(Shares::new(tickets.to_vec()))
    }

    #[inline]
    fn stride(&self, client: usize) -> u64 {
        ONE_TICKET / u64::from(self.tickets.get(client).copied().unwrap_or(1).max(1))
    }
    #[inline]
    fn enter(&mut self, place: ClientPass) {
        let at = self.order.partition_point(|other| other.pass < place.pass);
        self.order.insert(at, place);
    }

    /// Returns the number of the port at index `place` of `order`. The port at index 0 has the next turn.
    #[inline]
    pub fn get(&self, place: usize) -> Option<usize> {
        self.order.get(place).map(|p| p.client)
    }

    /// Gives a turn to the port at index `place` of `order`. The ports before it had no packet, so they lose the turns
    /// that were due before this turn. A port without packets therefore cannot save up turns.
    #[inline]
    pub fn turn_at(&mut self, place: usize) {
        let Some(now) = self.order.get(place).map(|p| p.pass) else { return };
        // Go backwards, from `place` to 0: a port that gets its new pass moves towards the end of the order, so the
        // ports before it keep their positions.
        for i in (0..=place).rev() {
            let mut p = self.order.remove(i);
            let stride = self.stride(p.client);
            let turns = if p.pass == now { 1 } else { (now - p.pass) / stride + 1 };
            p.pass += turns * stride;
            self.enter(p);
        }
        // Now all passes are at least `now`, so the subtraction cannot wrap.
        if now > LARGE_PASS {
            self.order.iter_mut().for_each(|p| p.pass -= now);
        }
    }

    /// Takes over the order of `old` if the tickets are equal (hot swap).
    pub fn go_on_from(&mut self, old: &Shares) {
        if self.tickets == old.tickets {
            self.order.clone_from(&old.order);
        }
    }

    /// Returns the tickets of all ports as arguments: `7, 2`.
    pub fn shown(&self) -> String {
        self.tickets.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    }
    /// Returns the number of ports.
    pub fn clients(&self) -> usize {
        self.tickets.len()
    }
    /// Returns the tickets of a port; 0 if there is no such port.
    pub fn tickets(&self, client: usize) -> u32 {
        self.tickets.get(client).copied().unwrap_or(0)
    }
    /// Sets the tickets of a port. They take effect at its next turn.
    pub fn set_tickets(&mut self, client: usize, tickets: u32) -> Result<(), HandlerError> {
        if tickets == 0 {
            return Err("tickets must be at least 1".into());
        }
        if let Some(t) = self.tickets.get_mut(client) {
            *t = tickets;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_testkit::StrideList;

    fn turn(shares: &mut Shares, has: impl Fn(usize) -> bool) -> Option<usize> {
        let place = (0..).map_while(|p| shares.get(p)).position(&has)?;
        let client = shares.get(place);
        shares.turn_at(place);
        client
    }

    #[test]
    fn with_packets_everywhere_it_is_a_stride_list() {
        for tickets in [&[1, 2, 3][..], &[7], &[5, 5, 5], &[1, 1000, 65_536, 3, 999], &[u32::MAX, 1]] {
            let mut shares = Shares::new(tickets.to_vec());
            let mut list = StrideList::new(tickets);
            for _ in 0..5000 {
                assert_eq!(turn(&mut shares, |_| true), list.turn(), "{tickets:?}");
            }
        }
    }

    #[test]
    fn shares_are_exact_in_every_round() {
        let tickets = vec![1, 2, 3, 10, 4];
        let mut shares = Shares::new(tickets.clone());
        for _ in 0..1000 {
            let mut round = vec![0; 5];
            (0..20).for_each(|_| round[turn(&mut shares, |_| true).unwrap()] += 1);
            assert_eq!(round, tickets);
        }
    }

    #[test]
    fn who_has_nothing_loses_its_turns_as_if_it_had_them() {
        let mut random = Random::new(3, "shares");
        for clients in 1..7usize {
            let tickets: Vec<u32> = (0..clients).map(|_| 1 + random.below(40) as u32).collect();
            let mut shares = Shares::new(tickets.clone());
            for _ in 0..3000 {
                let has = random.next_u32();
                let has = |client: usize| has >> client & 1 == 1;
                let mut want = shares.order.clone();
                let Some(first) = want.iter().position(|p| has(p.client)) else {
                    assert_eq!(turn(&mut shares, has), None);
                    assert_eq!(shares.order, want);
                    continue;
                };
                // The model gives turns one by one, even to ports that have no packet.
                let now = want[first].pass;
                for p in &mut want[..=first] {
                    while p.pass <= now {
                        p.pass += ONE_TICKET / u64::from(tickets[p.client]);
                    }
                }
                assert_eq!(turn(&mut shares, has), Some(want[first].client));
                assert!(shares.order.is_sorted_by_key(|p| p.pass));
                let by_client = |mut list: Vec<ClientPass>| {
                    list.sort_by_key(|p| p.client);
                    list
                };
                assert_eq!(by_client(shares.order.clone()), by_client(want));
            }
        }
        let mut shares = Shares::new(vec![1000, 1]);
        (0..5000).for_each(|_| assert_eq!(turn(&mut shares, |c| c == 1), Some(1)));
        let ones = (0..1001).filter(|_| turn(&mut shares, |_| true) == Some(1)).count();
        assert_eq!(ones, 1, "no turns were saved up");
    }

    #[test]
    fn passes_do_not_overflow() {
        let mut shares = Shares::new(vec![1, 2]);
        shares.order.iter_mut().for_each(|p| p.pass += LARGE_PASS - ONE_TICKET);
        let got = (0..3000).filter(|_| turn(&mut shares, |_| true) == Some(1)).count();
        assert_eq!(got, 2000);
        assert!(shares.order.iter().all(|p| p.pass < LARGE_PASS));
    }
}
