// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for an address and a port that are free for a new flow.

use super::{Order, Pattern};
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;
use std::sync::atomic::Ordering;

/// The maximum number of combinations of address and port that are tried for one packet. If 1 in 100 of
/// 64,512 ports is free, 9 of 10 searches succeed within this limit. The next packet continues an
/// unsuccessful search.
pub const MOST_TRIES: u64 = 256;

/// The position from which the next packet continues a search. Combinations of address and port are numbered
/// from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next combination to try.
    at: u64,
    /// The step from one try to the next.
    stride: u64,
    /// How many combinations are left to try; 0 means that all were tried and are taken.
    left: u64,
}

/// Returns a random stride. Steps of this length, modulo `count`, reach every number below `count`. Steps of 1
/// would often find no free port for a long time, because taken ports tend to form long runs.
fn stride(count: u64, secret: &mut Secret) -> u64 {
    let most = count.saturating_sub(1).max(1);
    let mut stride = secret.below(most) + 1;
    let shares_no_factor = |mut a: u64, mut b: u64| {
        while let Some(rest) = a.checked_rem(b) {
            (a, b) = (b, rest);
        }
        a == 1
    };
    // Ends at stride 1 at the latest, because 1 shares no factor with any count.
    while !shares_no_factor(count, stride) {
        stride = stride % most + 1;
    }
    stride
}

impl Cursor {
    /// Returns a cursor at the same position, but with all combinations left to try. Used when a combination may
    /// have become free.
    pub fn renewed(self) -> Cursor {
        Cursor { left: u64::MAX, ..self }
    }
    /// Whether all combinations were tried.
    pub fn is_exhausted(self) -> bool {
        self.left == 0
    }
}

/// The combinations of address and port that a pattern offers for one packet, numbered from 0.
struct Choices {
    /// The first source address.
    first: u32,
    /// The first and the last source port.
    low: u16,
    high: u16,
    dst: u32,
    dport: u16,
    /// The number of source ports.
    ports: u64,
    /// The number of combinations.
    count: u64,
}

impl Choices {
    /// Returns combination `n`.
    fn at(&self, n: u64) -> Tuple {
        // The casts lose nothing: the quotient is below the number of addresses, the remainder below the
        // number of ports.
        let (a, p) = ((n / self.ports) as u32, (n % self.ports) as u16);
        Tuple::new(self.first.wrapping_add(a), self.low.wrapping_add(p), self.dst, self.dport)
    }
    /// Returns the number of the combination that has source port `port` and the same address as combination `n`. None
    /// if the pattern offers only one port, or does not offer `port`.
    fn with_port(&self, port: u16, n: u64) -> Option<u64> {
        let offered = self.ports > 1 && (self.low..=self.high).contains(&port);
        offered.then(|| n - n % self.ports + u64::from(port - self.low))
    }
}

impl Pattern {
    /// Returns the parts of a tuple that determine which ports are free. A source address or source port that the
    /// pattern replaces does not matter, and is 0 in the result.
    pub fn decisive(&self, t: Tuple) -> Tuple {
        let src = if self.addrs.is_some() { 0 } else { t.src() };
        let sport = if self.ports.is_some() { 0 } else { t.sport() };
        Tuple::new(src, sport, t.dst(), t.dport())
    }

    /// Chooses the tuple to which packets of a new flow are rewritten. If no free tuple was found, returns
    /// `None`, and `cursor` says where the next packet continues the search. `with_ports` is false for
    /// rewriters that use no ports.
    pub fn choose(
        &self,
        t: Tuple,
        with_ports: bool,
        secret: &mut Secret,
        cursor: &mut Option<Cursor>,
        mut free: impl FnMut(Tuple) -> bool,
    ) -> Option<Tuple> {
        let choices = self.choices(t, with_ports);
        if choices.count == 1 {
            // There is only one choice. If another flow to the same destination already uses it, replies from that
            // destination will belong to the new flow.
            return Some(choices.at(0));
        }
        if cursor.is_some_and(Cursor::is_exhausted) {
            return None;
        }
        let start = match self.order {
            Order::Sequential => self.next.load(Ordering::Relaxed) % choices.count,
            Order::Random => secret.below(choices.count),
            Order::Keep => {
                let any = secret.below(choices.count);
                // First try to keep the packet's source port, with a random address of the pattern.
                match choices.with_port(t.sport(), any) {
                    Some(own) if free(choices.at(own)) => return Some(choices.at(own)),
                    _ => any,
                }
            }
        };
        self.search(&choices, start, secret, cursor, free)
    }

    /// Returns the combinations of address and port that the pattern offers for a packet.
    fn choices(&self, t: Tuple, with_ports: bool) -> Choices {
        let (first, last) = self.addrs.unwrap_or((t.src(), t.src()));
        let (low, high) = self.ports.filter(|_| with_ports).unwrap_or((t.sport(), t.sport()));
        let ports = u64::from(high.saturating_sub(low)) + 1;
        Choices {
            first,
            low,
            high,
            dst: self.daddr.unwrap_or(t.dst()),
            dport: self.dport.filter(|_| with_ports).unwrap_or(t.dport()),
            ports,
            count: (u64::from(last.saturating_sub(first)) + 1).saturating_mul(ports),
        }
    }

    /// Tries combinations from the cursor on, or from `start` if there is no cursor, until one is free.
    fn search(
        &self,
        choices: &Choices,
        start: u64,
        secret: &mut Secret,
        cursor: &mut Option<Cursor>,
        mut free: impl FnMut(Tuple) -> bool,
    ) -> Option<Tuple> {
        let count = choices.count;
        let (mut v, left) = cursor.map_or((start, count), |c| (c.at % count, c.left.min(count)));
        let mut way = cursor.map(|c| c.stride);
        let tries = left.min(MOST_TRIES);
        for _ in 0..tries {
            let free = free(choices.at(v));
            if free && cursor.is_none() {
                if self.order == Order::Sequential {
                    self.next.store(v + 1, Ordering::Relaxed);
                }
                return Some(choices.at(v));
            }
            let stride = *way.get_or_insert_with(|| match self.order {
                Order::Sequential => 1,
                Order::Random | Order::Keep => stride(count, secret),
            });
            // No overflow: `v` and `stride` are below `count`, which is at most 2^48.
            let next = (v + stride) % count;
            if free {
                if self.order == Order::Sequential {
                    self.next.store(next, Ordering::Relaxed);
                }
                // All combinations that were tried before this one are taken. So the search for the next flow starts
                // after this one.
                *cursor = Some(Cursor { at: next, stride, left: count });
                return Some(choices.at(v));
            }
            v = next;
        }
        *cursor = Some(Cursor { at: v, stride: way.unwrap_or(1), left: left - tries });
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::nat::pattern::words;
    use castanet_element::Seed;
    use std::collections::HashSet;

    fn secret() -> Secret {
        Secret::of(Seed::Fixed(1), "p")
    }

    fn pattern(t: &str) -> Result<Pattern, ValueError> {
        let names = Names::new();
        Pattern::parse(&words(t), &ArgCx { scope: "", names: &names, origin: Origin::Operator })
    }

    #[test]
    fn ranges_are_used_up_and_not_beyond() {
        let mut secret = secret();
        for t in [
            "9.9.9.9 1024-1026 - -",
            "9.9.9.9 1024-1026# - -",
            "9.9.9.9 1024-1026? - -",
            "9.9.9.1-9.9.9.3 7 - -",
            "9.9.9.0/30 1-2 - -",
        ] {
            let (p, mut taken) = (pattern(t).unwrap(), HashSet::new());
            let flow = Tuple::new(1, 1025, 2, 80);
            while let Some(to) = p.choose(flow, true, &mut secret, &mut None, |t| !taken.contains(&t)) {
                assert!(taken.insert(to), "{t}");
                assert_eq!((to.dst(), to.dport()), (2, 80));
            }
            assert_eq!(taken.len(), if t.contains('/') { 4 } else { 3 }, "{t}");
        }
    }

    #[test]
    fn own_port_first_and_sequence_goes_on() {
        let mut secret = secret();
        let p = pattern("9.9.9.9 1024-2000 - -").unwrap();
        let mut get = |p: &Pattern, port| {
            p.choose(Tuple::new(1, port, 2, 80), true, &mut secret, &mut None, |_| true).unwrap().sport()
        };
        assert_eq!((get(&p, 1024), get(&p, 2000)), (1024, 2000));
        assert!((1024..=2000).contains(&get(&p, 2001)));
        let p = pattern("9.9.9.9 1024-1026# - -").unwrap();
        assert_eq!([0; 5].map(|_| get(&p, 1026)), [1024, 1025, 1026, 1024, 1025]);
    }

    #[test]
    fn a_search_is_bounded_and_goes_on_with_the_next_packet() {
        let mut secret = secret();
        for t in ["9.9.9.9 1024-2023 - -", "9.9.9.9 1024-2023# - -", "9.9.9.9 1024-2023? - -"] {
            let (p, flow) = (pattern(t).unwrap(), Tuple::new(1, 7, 2, 80));
            let (mut cursor, mut tried) = (None, Vec::new());
            for packet in 1..=6_u64 {
                let none = p.choose(flow, true, &mut secret, &mut cursor, |to| {
                    tried.push(to.sport());
                    false
                });
                assert_eq!((none, tried.len() as u64), (None, (packet * MOST_TRIES).min(1000)), "{t}");
                assert_eq!(cursor.unwrap().is_exhausted(), packet >= 4, "{t}");
            }
            // Each combination was tried exactly once.
            tried.sort_unstable();
            assert_eq!(tried, (1024..2024).collect::<Vec<_>>(), "{t}");
            // A port that becomes free after a full search is found within four packets. The next search starts after
            // this port.
            cursor = cursor.map(Cursor::renewed);
            let mut find = |free: u16, cursor: &mut Option<Cursor>| {
                let mut one = || p.choose(flow, true, &mut secret, cursor, |to| to.sport() == free);
                (0..4).find_map(|_| one()).map(Tuple::sport)
            };
            assert_eq!(find(1500, &mut cursor), Some(1500), "{t}");
            let stride = cursor.unwrap().stride;
            assert_eq!(cursor, Some(Cursor { at: (476 + stride) % 1000, stride, left: 1000 }), "{t}");
            assert_eq!(stride == 1, t.contains('#'), "{t}");
            assert_eq!(find(1499, &mut cursor), Some(1499), "{t}");
        }
    }

    #[test]
    fn strides_reach_every_place() {
        let mut secret = secret();
        for count in (2..60).chain([64_512, 65_536, 3 << 40, 6 * 64_512]) {
            for _ in 0..20 {
                let stride = stride(count, &mut secret);
                assert!((1..count).contains(&stride));
                assert!(
                    (2..100_000).filter(|n| count % n == 0).all(|n| !stride.is_multiple_of(n)),
                    "{count} {stride}"
                );
            }
        }
        let strides: HashSet<_> = (0..20).map(|_| stride(64_512, &mut secret)).collect();
        assert!(strides.len() > 15, "{strides:?}");
    }

    #[test]
    fn ports_in_a_row_do_not_end_a_search() {
        let (p, mut secret) = (pattern("9.9.9.9 1024-65535 - -").unwrap(), secret());
        let taken = 2000..2000 + 2 * MOST_TRIES as u16;
        for port in taken.clone() {
            let flow = Tuple::new(1, port, 2, 80);
            let to = p.choose(flow, true, &mut secret, &mut None, |to| !taken.contains(&to.sport()));
            assert!(to.is_some(), "{port}");
        }
    }

    #[test]
    fn widest_range_ends() {
        let mut secret = secret();
        let p = pattern("0.0.0.0-255.255.255.255 0-65535 - -").unwrap();
        let mut tries = 0u64;
        for _ in 0..3 {
            let none = p.choose(Tuple::default(), true, &mut secret, &mut None, |_| {
                tries += 1;
                false
            });
            assert_eq!(none, None);
        }
        // Each search first tries the packet's own port, on a random address.
        assert_eq!(tries, 3 * (MOST_TRIES + 1));
        assert!(p.choose(Tuple::default(), false, &mut secret, &mut None, |_| true).is_some());
    }
}
