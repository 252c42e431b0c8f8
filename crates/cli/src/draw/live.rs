// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets per second on the connections of a running router.
//!
//! A router counts packets at elements: those that count, those where packets begin or end, and drops. The rates of
//! connections follow from these counts, because an element passes on what it gets and does not drop.

use crate::top::sample::{Row, Sample};
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_graph::Graph;
use castanet_spec::{LedgerRole, ValueKind};
use std::collections::HashMap;
use std::time::Duration;

/// Reads a router twice, and returns a row for each of its elements.
///
/// # Errors
/// When the router cannot be reached.
pub fn rows(router: &mut Client, interval: Duration) -> Result<Vec<Row>, ClientError> {
    let before = Sample::of(router, None)?;
    std::thread::sleep(interval);
    Ok(Sample::of(router, Some(&before))?.rows(Some(&before)))
}

/// The connections of an element, by their index: those into it and those out of it.
#[derive(Clone, Default)]
struct Ends {
    into: Vec<usize>,
    out_of: Vec<usize>,
}

/// Whether the class counts each packet that passes: it has a count, and drops none.
fn counts_all(graph: &Graph, e: usize) -> bool {
    graph.spec(e).is_some_and(|s| {
        s.drops.is_empty()
            && s.handler("count").is_some_and(|h| h.kind == ValueKind::Counter && h.unit == "packets")
    })
}

/// Whether elements of the class make no packets and end none, so that what comes in goes out or is dropped. A queue does
/// so as long as its length does not change.
fn passes_on(graph: &Graph, e: usize) -> bool {
    graph.spec(e).is_some_and(|s| (s.ledger_role - LedgerRole::HOLDS).is_empty())
}

/// Adds up the rates of connections. Returns the sum of those that are known, and the connections that are not.
fn sum(connections: &[usize], rates: &[Option<f64>]) -> (f64, Vec<usize>) {
    let rate = |c: &usize| rates.get(*c).copied().flatten();
    let unknown = connections.iter().copied().filter(|c| rate(c).is_none()).collect();
    (connections.iter().filter_map(rate).sum(), unknown)
}

/// Sets the only unknown rate of some connections, so that all of them have this sum. Returns whether there was one.
fn complete(connections: &[usize], total: f64, rates: &mut [Option<f64>]) -> bool {
    let (known, unknown) = sum(connections, rates);
    let [one] = unknown[..] else { return false };
    // Counts of several elements are not read at the same time, so a difference may be below 0.
    rates.get_mut(one).map(|r| *r = Some((total - known).max(0.0))).is_some()
}

/// Returns the packets per second on each connection, by its index in the flat configuration, as far as they follow from
/// what elements count.
pub fn rates(graph: &Graph, rows: &[Row]) -> Vec<Option<f64>> {
    let connections = &graph.flat.connections;
    let mut rates = vec![None; connections.len()];
    let mut ends = vec![Ends::default(); graph.len()];
    for (i, c) in connections.iter().enumerate() {
        if let Some(e) = ends.get_mut(c.from.element) {
            e.out_of.push(i);
        }
        if let Some(e) = ends.get_mut(c.to.element) {
            e.into.push(i);
        }
    }
    let of: HashMap<&str, &Row> = rows.iter().map(|r| (r.element.as_str(), r)).collect();
    let mut changed = true;
    // Each round but the last one sets a rate.
    while std::mem::take(&mut changed) {
        for (e, Ends { into, out_of }) in ends.iter().enumerate() {
            let Some(row) = of.get(graph.name(e)) else { continue };
            if let Some(rate) = row.packet_rate {
                match (into.is_empty(), out_of.is_empty()) {
                    (true, false) => changed |= complete(out_of, rate, &mut rates),
                    (false, true) => changed |= complete(into, rate + row.drop_rate, &mut rates),
                    (false, false) if counts_all(graph, e) => {
                        changed |= complete(into, rate, &mut rates);
                        changed |= complete(out_of, rate, &mut rates);
                    }
                    _ => {}
                }
            }
            if passes_on(graph, e) && !into.is_empty() {
                let ((came, unknown_in), (went, unknown_out)) = (sum(into, &rates), sum(out_of, &rates));
                if unknown_in.is_empty() {
                    changed |= complete(out_of, came - row.drop_rate, &mut rates);
                } else if unknown_out.is_empty() && !out_of.is_empty() {
                    changed |= complete(into, went + row.drop_rate, &mut rates);
                }
            }
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_lang::Unknown;

    fn graph(text: &str) -> Graph {
        let source = crate::load::Source::text("a.click", text, Vec::new());
        crate::load::load(&source, None, Unknown::Error).graph
    }

    fn row(element: &str, packet_rate: Option<f64>, drop_rate: f64) -> Row {
        Row { element: element.into(), packet_rate, drop_rate, ..Row::default() }
    }

    #[test]
    fn rates_follow_from_counts_and_drops() {
        let g = graph(
            "s :: InfiniteSource -> k :: CheckIPHeader -> c :: Classifier(0/45, -); c [0] -> n :: Counter -> q :: Queue
                -> u :: Unqueue -> d :: Discard; c [1] -> t :: Tee -> e :: Discard; t [1] -> f :: Discard;",
        );
        let rows = [
            row("s", Some(100.0), 0.0),
            row("k", None, 10.0),
            row("c", None, 0.0),
            row("n", Some(60.0), 0.0),
            row("q", None, 5.0),
            row("u", None, 0.0),
            row("t", None, 0.0),
            row("e", Some(30.0), 0.0),
        ];
        let all = rates(&g, &rows);
        let rate = |from: &str, to: &str| {
            let mut found = g.flat.connections.iter().zip(&all);
            found
                .find(|(c, _)| g.name(c.from.element) == from && g.name(c.to.element) == to)
                .and_then(|f| *f.1)
        };
        assert_eq!((rate("s", "k"), rate("k", "c")), (Some(100.0), Some(90.0)));
        assert_eq!((rate("c", "n"), rate("n", "q"), rate("q", "u")), (Some(60.0), Some(60.0), Some(55.0)));
        assert_eq!((rate("u", "d"), rate("c", "t")), (Some(55.0), Some(30.0)));
        // A tee makes packets, so nothing follows for its other output.
        assert_eq!((rate("t", "e"), rate("t", "f")), (Some(30.0), None));
        assert!(rates(&g, &[]).iter().all(Option::is_none));
    }

    #[test]
    fn counts_that_do_not_fit_give_no_negative_rates() {
        let g = graph("s :: InfiniteSource -> k :: CheckIPHeader -> Discard;");
        let all = rates(&g, &[row("s", Some(5.0), 0.0), row("k", None, 9.0)]);
        assert_eq!(all, [Some(5.0), Some(0.0)]);
    }
}
