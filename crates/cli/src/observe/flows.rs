// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how many packets pass each connection.
//!
//! Routers do not count packets on connections. But the ledger of an element balances: packets in + entered + made =
//! packets out + left + dropped + held. So if all connections of an element but one are known, the last one is known too.
//! Sources, sinks and counters give the first ones. A connection whose packets do not follow from this stays unknown.

use super::{Account, Reading};
use castanet_graph::Graph;
use std::collections::BTreeMap;

/// The connections of one element: their index in the flat configuration, and whether packets come in by them.
type Ends = Vec<Vec<(usize, bool)>>;

/// The balance of an element in a reading: packets that appear in it less packets that vanish in it.
fn gain(account: &Account) -> i128 {
    let sum = |all: &[u64]| all.iter().map(|&n| i128::from(n)).sum::<i128>();
    sum(&[account.entered, account.made]) - sum(&[account.left, account.dropped, account.held])
}

/// Returns the gain of each element of a graph between two readings.
fn gains(graph: &Graph, now: &Reading, before: &Reading) -> Vec<i128> {
    let mut out = vec![0; graph.len()];
    for (reading, sign) in [(now, 1), (before, -1)] {
        for account in &reading.accounts {
            if let Some(g) = graph.find(&account.element).and_then(|e| out.get_mut(e)) {
                *g += sign * gain(account);
            }
        }
    }
    out
}

/// The connections that are known so far, and those that follow from them.
struct Solver<'a> {
    graph: &'a Graph,
    ends: Ends,
    gains: Vec<i128>,
    known: Vec<Option<i128>>,
}

impl Solver<'_> {
    /// Finds all connections that follow from what is known of these elements.
    fn follow(&mut self, mut waiting: Vec<usize>) {
        while let Some(e) = waiting.pop() {
            let Some(ends) = self.ends.get(e) else { continue };
            let mut unknown = ends.iter().filter(|(c, _)| self.known[*c].is_none());
            let (Some(&(c, inward)), None) = (unknown.next(), unknown.next()) else { continue };
            // Packets out less packets in, of the known connections.
            let signed = |&(c, inward): &(usize, bool)| {
                let n = self.known[c].unwrap_or(0);
                if inward { -n } else { n }
            };
            let excess: i128 = ends.iter().map(signed).sum();
            let rest = excess - self.gains[e];
            // Counts of several workers are not read at the same time, so a small number may come out negative.
            self.known[c] = Some(if inward { rest } else { -rest }.max(0));
            waiting.extend(self.elements_of(c));
        }
    }
    fn elements_of(&self, c: usize) -> [usize; 2] {
        self.graph.flat.connections.get(c).map_or([usize::MAX; 2], |c| [c.from.element, c.to.element])
    }
}

/// Returns the packets that passed each connection of a graph between two readings, by the connection's index in the flat
/// configuration. `None` if it does not follow from the readings. `counters` are the packets that passed elements with
/// one input and one output, from their handlers.
pub fn flows(
    graph: &Graph,
    now: &Reading,
    before: &Reading,
    counters: &BTreeMap<usize, u64>,
) -> Vec<Option<u64>> {
    let mut ends: Ends = vec![Vec::new(); graph.len()];
    for (i, c) in graph.flat.connections.iter().enumerate() {
        for (e, inward) in [(c.from.element, false), (c.to.element, true)] {
            if let Some(ends) = ends.get_mut(e) {
                ends.push((i, inward));
            }
        }
    }
    let known = vec![None; graph.flat.connections.len()];
    let mut solver = Solver { graph, ends, gains: gains(graph, now, before), known };
    solver.follow((0..graph.len()).collect());
    // Counters are read after the ledger, so they are used only for connections that do not follow from the ledger.
    for (&e, &n) in counters {
        for inward in [true, false] {
            let ends = solver.ends.get(e).into_iter().flatten();
            let own: Vec<usize> = ends.filter(|end| end.1 == inward).map(|end| end.0).collect();
            if let [c] = own[..]
                && solver.known[c].is_none()
            {
                solver.known[c] = Some(i128::from(n));
                solver.follow(solver.elements_of(c).to_vec());
            }
        }
    }
    solver.known.into_iter().map(|n| n.and_then(|n| u64::try_from(n).ok())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::reading;
    use super::*;
    use crate::load::{Source, load};
    use castanet_lang::Unknown;
    use std::time::Instant;

    fn graph(text: &str) -> Graph {
        load(&Source::text("x", text, Vec::new()), Some(""), Unknown::Error).graph
    }
    fn ledger(text: &str) -> Reading {
        reading(Instant::now(), 0, ["", text, "", ""])
    }
    /// Returns the packets of each connection, by the names of its ends.
    fn solved(graph: &Graph, ledger_now: &str, counters: &[(&str, u64)]) -> Vec<(String, Option<u64>)> {
        let counters = counters.iter().map(|(name, n)| (graph.find(name).unwrap(), *n)).collect();
        let all = flows(graph, &ledger(ledger_now), &ledger(""), &counters);
        let name = |c: &castanet_lang::Connection| {
            format!("{}>{}", graph.name(c.from.element), graph.name(c.to.element))
        };
        graph.flat.connections.iter().map(name).zip(all).collect()
    }

    #[test]
    fn connections_follow_from_the_ledger() {
        let g = graph("i :: InfiniteSource -> q :: SimpleQueue(5) -> u :: Unqueue -> d :: Discard;");
        let text =
            "i\tInfiniteSource\t12\t0\t0\t0\t0\nq\tSimpleQueue\t0\t0\t0\t7\t2\nd\tDiscard\t0\t0\t3\t0\t0\n";
        let want = [("i>q", Some(12)), ("q>u", Some(3)), ("u>d", Some(3))];
        let got = solved(&g, text, &[]);
        assert_eq!(got, want.map(|(n, v)| (n.to_string(), v)));
    }

    #[test]
    fn what_does_not_follow_is_unknown_unless_a_counter_knows_it() {
        // Both ways of the diamond may have carried the packets.
        let g = graph(
            "i :: InfiniteSource -> s :: Switch -> a :: Counter -> d :: Discard; s [1] -> b :: Counter -> d;",
        );
        let text = "i\tInfiniteSource\t10\t0\t0\t0\t0\nd\tDiscard\t0\t0\t10\t0\t0\n";
        let unknown = solved(&g, text, &[]);
        let known = |all: &[(String, Option<u64>)]| all.iter().filter_map(|f| f.1).collect::<Vec<_>>();
        assert_eq!(known(&unknown), [10]);
        let counted = solved(&g, text, &[("a", 4)]);
        for (name, n) in &counted {
            let want = match name.as_str() {
                "i>s" => 10,
                "s>a" | "a>d" => 4,
                _ => 6,
            };
            assert_eq!(*n, Some(want), "{name}");
        }
    }

    #[test]
    fn what_is_known_is_right() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut known, mut unknown) = (0, 0);
        for _ in 0..200 {
            // Elements of an unknown class may have any connections, cycles and loops among them.
            let n = 3 + random(10);
            let ends: Vec<(u64, u64)> = (0..n + random(n)).map(|_| (random(n), random(n))).collect();
            let port = |i: usize, to: bool| {
                ends.get(..i).map_or(0, |e| {
                    e.iter().filter(|x| if to { x.1 == ends[i].1 } else { x.0 == ends[i].0 }).count()
                })
            };
            let line = |(i, (a, b)): (usize, &(u64, u64))| {
                format!("e{a} [{}] -> [{}] e{b};", port(i, false), port(i, true))
            };
            let declared: String = (0..n).map(|e| format!("e{e} :: X;")).collect();
            let text = declared + &ends.iter().enumerate().map(line).collect::<String>();
            let g = load(&Source::text("x", &text, Vec::new()), Some(""), Unknown::Opaque).graph;
            assert_eq!(g.flat.connections.len(), ends.len(), "{text}");
            let packets: Vec<u64> = ends.iter().map(|_| random(1000)).collect();
            let mut accounts = String::new();
            for e in 0..n {
                let sum = |out: bool| -> i64 {
                    let all = g.flat.connections.iter().zip(&packets);
                    let here = all.filter(|(c, _)| {
                        g.name(if out { c.from.element } else { c.to.element }) == format!("e{e}")
                    });
                    here.map(|(_, n)| *n as i64).sum()
                };
                let gain = sum(true) - sum(false);
                let (entered, held) = (gain.max(0) + 3, (-gain).max(0) + 3);
                accounts += &format!("e{e}\tX\t{entered}\t0\t0\t0\t{held}\n");
            }
            for (got, want) in
                flows(&g, &ledger(&accounts), &ledger(""), &BTreeMap::new()).iter().zip(&packets)
            {
                if let Some(n) = got {
                    assert_eq!(n, want, "{text}");
                    known += 1;
                } else {
                    unknown += 1;
                }
            }
        }
        assert!(known > 200 && unknown > 200, "{known} {unknown}");
    }
}
