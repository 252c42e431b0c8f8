// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes routers of configurations: adds the element that measures, and the Ethernet addresses of the neighbours.

use super::base::{self, Ends};
use super::collect::Collect;
use crate::fig8::PACKETS;
use crate::path::{self, GATEWAYS, Mode};
use crate::rounds::Rounds;
use castanet_classes::Registry;
use castanet_element::element;
use castanet_element::spec::Reason;
use castanet_lang::archive;
use castanet_runtime::compiled::LoadCode;
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The member of an archive that is the text of the configuration.
const CONFIG: &str = "config";

/// Loads the compiled code in the archives of configurations.
pub type Loader = Arc<dyn LoadCode>;

/// The classes of the router and of the benchmark.
pub fn classes() -> Registry {
    let mut registry = Registry::new();
    registry.add(element::<Rounds>());
    registry.add(element::<Collect>());
    registry
}

/// Adds statements to a configuration, which may be an archive.
///
/// # Errors
/// The archive is damaged.
pub fn with_text(configuration: &[u8], more: &str) -> Result<Vec<u8>, String> {
    if !archive::is_archive(configuration) {
        return Ok([configuration, more.as_bytes()].concat());
    }
    let mut members = archive::read(configuration).map_err(|e| e.to_string())?;
    let config = members.iter_mut().find(|m| m.0 == CONFIG).ok_or("the archive has no configuration")?;
    config.1.extend(more.as_bytes());
    archive::write(&members).map_err(|e| e.to_string())
}

/// Builds a router of a configuration or archive, and tells its ARPQueriers the addresses of their neighbours.
///
/// # Errors
/// The configuration has errors.
pub fn build(
    configuration: &[u8],
    defines: &path::Defines,
    mode: Mode,
    code: Option<&Loader>,
) -> Result<Router, String> {
    let loaded = Loaded::from_text("aspl", configuration, defines, Arc::new(classes()));
    let options = Options { code: code.cloned(), ..mode.options() };
    let built = loaded.and_then(|(loaded, _)| loaded.build(options));
    let (mut router, _) = built.map_err(|e| e.to_string())?;
    for (i, gateways) in GATEWAYS.into_iter().enumerate() {
        let querier = router.find(&format!("arp{i}"));
        let handlers = querier.and_then(|_| router.read(querier, "handlers", "").ok()).unwrap_or_default();
        if handlers.lines().any(|line| line.split_whitespace().next() == Some("insert")) {
            gateways.into_iter().try_for_each(|g| path::insert(&mut router, i, g))?;
        }
    }
    Ok(router)
}

/// The statements that measure both sources for `$ROUNDS` rounds.
pub const MEASURED: &str = "define($ROUNDS 1);\nrounds :: Rounds(source0+source1, ROUNDS $ROUNDS);\n";

/// Runs a configuration with [`MEASURED`] for a number of rounds. Returns the nanoseconds per packet in each.
///
/// # Errors
/// The configuration does not run.
pub fn run(configuration: &[u8], mode: Mode, rounds: u64, code: Option<&Loader>) -> Result<Vec<f64>, String> {
    let defines = vec![("ROUNDS".to_string(), rounds.to_string())];
    let mut router = build(configuration, &defines, mode, code)?;
    router.run().map_err(|e| e.to_string())?;
    let times = router.read(router.find("rounds"), "times", "").map_err(|e| e.to_string())?;
    let round = |line: &str| line.trim().parse::<f64>().ok().map(|ns| ns / (2 * PACKETS) as f64);
    times.lines().map(round).collect::<Option<_>>().ok_or_else(|| "a round is missing".to_string())
}

/// The packets that a configuration sends and drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The frames that each interface sends, in hexadecimal.
    pub frames: [Vec<String>; 2],
    /// The number of packets dropped before, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// Runs a configuration of [`Ends::Kept`] after passes, and returns what it sends.
///
/// # Errors
/// The configuration does not run, or packets are still in a queue.
pub fn sent(configuration: &[u8], mode: Mode, code: Option<&Loader>) -> Result<Sent, String> {
    // The last source keeps the router running until the queues are empty.
    let text = "after :: MemSource(LIMIT 5000, BURST 1, STOP true) -> Discard;\nrounds :: Rounds(source0+source1 after);\n";
    let mut router = build(&with_text(configuration, text)?, &Vec::new(), mode, code)?;
    router.run().map_err(|e| e.to_string())?;
    let base = base::router(Ends::Kept, mode.batch)?;
    let mut frames = [Vec::new(), Vec::new()];
    for (i, (interface, frames)) in base.interfaces.iter().zip(&mut frames).enumerate() {
        let length =
            router.read(router.find(&format!("queue{i}")), "length", "").map_err(|e| e.to_string())?;
        if length.trim() != "0" {
            return Err(format!("queue{i} still holds {length} packets"));
        }
        let kept = router.read(router.find(&interface.sends), "frames", "").map_err(|e| e.to_string())?;
        frames.extend(kept.lines().map(str::to_string));
    }
    let mut drops = BTreeMap::new();
    for ((_, reason), n) in router.drops() {
        if !matches!(reason, Reason::Consumed | Reason::Discarded) {
            *drops.entry(reason.to_string()).or_default() += n;
        }
    }
    Ok(Sent { frames, drops })
}
