// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeated readings of a router, with the rates of its connections.

use super::graph::identity;
use super::problem::Problem;
use super::router::Session;
use crate::observe::flows::flows;
use crate::observe::{Handlers, Reading, devices};
use castanet_graph::Graph;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The largest number of counters that are read each time.
const COUNTERS: usize = 200;

/// The configuration that is observed.
struct Observed {
    /// Changes with each hot swap.
    version: u64,
    graph: Graph,
    identity: String,
    devices: Vec<String>,
    /// The elements of the class Counter, by their index in the graph.
    counters: Vec<usize>,
}

/// A router that is read repeatedly.
#[derive(Default)]
pub struct Watch {
    observed: Option<Observed>,
    before: Option<(Reading, BTreeMap<usize, u64>)>,
}

impl Observed {
    fn new(router: &mut Session, version: u64) -> Result<Observed, Problem> {
        let graph = router.graph()?;
        let devices = devices(&router.elements()?);
        let counters = (0..graph.len()).filter(|&e| graph.spec(e).is_some_and(|s| s.name == "Counter"));
        let counters = counters.take(COUNTERS).collect();
        Ok(Observed { version, identity: identity(&graph), graph, devices, counters })
    }
    /// Reads the counters of elements.
    fn count(&self, router: &mut Session) -> Result<BTreeMap<usize, u64>, Problem> {
        let mut out = BTreeMap::new();
        for &e in &self.counters {
            let text = router.try_read(&format!("{}.count", self.graph.name(e)))?;
            out.extend(text.and_then(|t| t.trim().parse().ok()).map(|n: u64| (e, n)));
        }
        Ok(out)
    }
}

impl Watch {
    /// Reads the router, and returns the reading as JSON (the schema `Reading`). Rates are those since the reading before.
    ///
    /// # Errors
    /// When the router cannot be reached.
    pub fn read(&mut self, router: &mut Session) -> Result<Value, Problem> {
        let version = router.configuration_version()?;
        let observed = match self.observed.take().filter(|o| o.version == version) {
            Some(o) => o,
            None => {
                self.before = None;
                Observed::new(router, version)?
            }
        };
        let reading = Reading::of(router, &observed.devices)?;
        let counts = observed.count(router)?;
        let before = self.before.as_ref();
        let seconds = before.map(|b| reading.seconds_since(&b.0)).filter(|s| *s > 0.0);
        let rates: Vec<Option<f64>> = match before.zip(seconds) {
            Some((before, seconds)) => {
                let passed = counts.iter().filter_map(|(e, n)| Some((*e, n.checked_sub(*before.1.get(e)?)?)));
                let all = flows(&observed.graph, &reading, &before.0, &passed.collect());
                let rate = |n: u64| (n as f64 / seconds * 10.0).round() / 10.0;
                all.into_iter().map(|n| n.map(rate)).collect()
            }
            None => vec![None; observed.graph.flat.connections.len()],
        };
        let mut out = reading.json(before.map(|b| &b.0));
        if let Some(out) = out.as_object_mut() {
            out.insert("identity".into(), json!(observed.identity));
            out.insert("seconds".into(), json!(seconds));
            out.insert("rates".into(), json!(rates));
        }
        self.before = Some((reading, counts));
        self.observed = Some(observed);
        Ok(out)
    }
}
