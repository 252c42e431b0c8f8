// SPDX-License-Identifier: MIT OR Apache-2.0
//! The observable results of a run, to compare a configuration with a transformed one.

use crate::{simulated, try_router};
use castanet_runtime::Options;
use std::collections::BTreeMap;

/// The observable results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The records by place, source and path, each in order.
    pub records: BTreeMap<String, Vec<String>>,
    /// The counts, by element.
    pub counts: BTreeMap<String, String>,
    /// The dropped packets, by element and reason.
    pub drops: BTreeMap<(String, &'static str), u64>,
}

impl Seen {
    /// Runs a configuration with random elements under simulated time.
    pub fn of(text: &str, batch: usize) -> Seen {
        Seen::with(text, batch, |_| {})
    }
    /// Like [`Seen::of`], with options that `change` has changed.
    pub fn with(text: &str, batch: usize, change: impl FnOnce(&mut Options)) -> Seen {
        let (mut options, log) = simulated(batch);
        change(&mut options);
        let mut r = try_router(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        r.run().unwrap();
        r.ledger().check();
        let mut seen = Seen::default();
        for line in log.lines() {
            let end = line.match_indices(' ').nth(2).map_or(line.len(), |m| m.0);
            seen.records.entry(line[..end].to_string()).or_default().push(line[end..].to_string());
        }
        let elements = r.shared().graph.flat.elements.iter();
        let counting = elements.filter(|e| ["Counter", "Numbers", "Sink"].contains(&e.class.as_str()));
        let names: Vec<String> = counting.map(|e| e.name.clone()).collect();
        for name in names {
            let e = r.find(&name);
            let count = r.read(e, "count", "").unwrap();
            seen.counts.insert(name, count);
        }
        for ((e, reason), n) in r.drops() {
            seen.drops.insert((r.shared().graph.name(e as usize).to_string(), reason.name()), n);
        }
        seen
    }
}
