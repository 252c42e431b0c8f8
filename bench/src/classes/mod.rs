// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of each class: the time of a packet through an element of the class, without that of its source and sink.
//!
//! The element is that of the class's example in the manual. A source is put before each of its inputs and a sink behind
//! each of its outputs. The same sources with Nulls in place of the element take turns with it in one router, so that
//! the difference of two turns that follow each other is the cost of the element.
//!
//! Modules: [`setting`] (configurations), [`report`].

pub mod report;
pub mod setting;

use crate::aspl::measure::{Counted, Quartiles, count};
use crate::aspl::router::classes;
use crate::fig8::PACKETS;
use crate::path::{Defines, Mode};
use castanet_classes::Registry;
use castanet_element::spec::{ClassSpec, ClassSpecs as _};
use castanet_runtime::Options;
use castanet_runtime::Router;
use castanet_runtime::swap::Loaded;
use setting::{Contestants, Setting};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The number of rounds of the first run, whose duration determines how many rounds fit into the available time.
const TRIAL: u64 = 3;
/// A run that takes this many seconds longer than planned is stopped. Elements that delay packets take very long.
const PATIENCE: f64 = 2.0;

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names of the classes to measure; if empty, all.
    pub names: Vec<String>,
    /// The total duration in seconds, without that of counting instructions.
    pub seconds: f64,
    /// The batch sizes.
    pub batches: Vec<usize>,
    /// A capture file whose frames the sources send, in place of those of [`setting::frames`].
    pub capture: Option<PathBuf>,
    /// This program with the words after its name, which executes a [`Counted`] whose text is appended. `None`:
    /// instructions are not counted.
    pub counted: Option<(PathBuf, Vec<&'static str>)>,
}

/// The cost of a class at one batch size.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The batch size.
    pub batch: usize,
    /// Nanoseconds per packet more than a Null.
    pub ns: Quartiles,
    /// Nanoseconds per packet of the sources, the Nulls and the sinks.
    pub ends: Quartiles,
    /// The number of rounds.
    pub rounds: usize,
    /// Instructions per packet more than a Null, if counted.
    pub instructions: Option<f64>,
}

/// The results of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the class.
    pub class: &'static str,
    /// The element, as the configuration declares it.
    pub element: String,
    /// The costs, one for each batch size.
    pub costs: Vec<Cost>,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The classes that were measured.
    pub rows: Vec<Row>,
    /// The other classes that have inputs and outputs, each with the reason why it was not measured.
    pub others: Vec<Other>,
}

/// Builds the router of a setting, without messages.
fn build(text: &str, defines: &Defines, batch: usize) -> Result<Router, String> {
    let (loaded, _) = Loaded::from_text("classes", text.as_bytes(), defines, Arc::new(classes()))
        .map_err(|e| e.to_string())?;
    let options = Options { printer: Box::new(|_| ()), ..Mode::plain(batch).options() };
    loaded.build(options).map(|(router, _)| router).map_err(|e| e.to_string())
}

/// Runs a router, for at most `seconds`. Returns whether it came to its end.
fn ends(router: &mut Router, seconds: f64) -> Result<bool, String> {
    let shared = router.shared().clone();
    let (done, wait) = channel::<()>();
    let limit = Duration::from_secs_f64(seconds);
    let watch = std::thread::spawn(move || {
        let late = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            shared.end();
        }
        late
    });
    let run = router.run().map_err(|e| e.to_string());
    drop(done);
    let late = watch.join().unwrap_or(true);
    run.map(|()| !late)
}

/// Runs a setting. Returns the nanoseconds per packet of each round, with Nulls and with the element.
fn rounds(setting: &Setting, batch: usize, rounds: u64, seconds: f64) -> Result<Vec<(f64, f64)>, String> {
    let defines = setting.defines(batch, rounds);
    let mut router = build(&setting.text(Contestants::Both), &defines, batch)?;
    if !ends(&mut router, seconds)? {
        return Err("the packets take too long: it delays them, or keeps them".into());
    }
    let times = router.read(router.find(setting::ROUNDS), "times", "").map_err(|e| e.to_string())?;
    let packets = (setting.sources() as u64 * PACKETS) as f64;
    let row = |line: &str| {
        let mut words = line.split(' ').map(|w| w.parse::<f64>().map(|ns| ns / packets).ok());
        Some((words.next()??, words.next()??))
    };
    times.lines().map(row).collect::<Option<_>>().ok_or_else(|| "a round is missing".to_string())
}

/// Measures a setting for `seconds`.
fn measure(setting: &Setting, batch: usize, seconds: f64) -> Result<Cost, String> {
    let trial = rounds(setting, batch, TRIAL, PATIENCE)?;
    let packet = Quartiles::of(trial.iter().map(|(null, element)| null + element)).median;
    let round = packet.max(1.0) * (setting.sources() as u64 * PACKETS) as f64 * 1e-9;
    let n = (seconds / round).clamp(TRIAL as f64, 1e5) as u64;
    let all = rounds(setting, batch, n, 2.0 * seconds + PATIENCE)?;
    Ok(Cost {
        batch,
        ns: Quartiles::of(all.iter().map(|(null, element)| element - null)),
        ends: Quartiles::of(all.iter().map(|(null, _)| *null)),
        rounds: all.len(),
        instructions: None,
    })
}

/// Counts the instructions of a setting, with callgrind. `known` has the counts of configurations with Nulls.
fn instructions(
    setting: &Setting,
    batch: usize,
    (program, arguments): (&Path, &[&str]),
    known: &mut HashMap<String, f64>,
) -> Result<f64, String> {
    let packets = setting.sources() as u64 * PACKETS;
    let mut one = |contestants| {
        let mut text = String::new();
        for (name, value) in setting.defines(batch, 1).iter().filter(|d| d.0 != "ROUNDS") {
            text.push_str(&format!("define(${name} {value});\n"));
        }
        text.push_str("define($ROUNDS 1);\n");
        text.push_str(&setting.text(contestants));
        if let Some(n) = known.get(&text) {
            return Ok(*n);
        }
        let n = count(text.as_bytes(), Mode::plain(batch), packets, program, arguments)?;
        known.insert(text, n);
        Ok::<f64, String>(n)
    };
    Ok(one(Contestants::Element)? - one(Contestants::Null)?)
}

/// A class that cannot be measured, and the reason.
pub type Other = (&'static str, String);

/// Returns the settings of the classes that can be measured, and the others with the reason.
fn settings(wanted: &Settings) -> Result<(Vec<Setting>, Vec<Other>), String> {
    let registry = Registry::new();
    let mut specs: Vec<&'static ClassSpec> = registry.classes();
    specs.sort_by_key(|s| s.name);
    for name in &wanted.names {
        if registry.spec(name).is_none() {
            return Err(format!("no class named '{name}'"));
        }
    }
    let is_wanted = |s: &ClassSpec| {
        let named = |n: &String| n == s.name || s.aliases.contains(&n.as_str());
        wanted.names.is_empty() || wanted.names.iter().any(named)
    };
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for spec in specs.into_iter().filter(|s| is_wanted(s)) {
        match Setting::of(spec, wanted.capture.as_deref()) {
            Ok(Some(setting)) => all.push(setting),
            Ok(None) if wanted.names.is_empty() => {}
            Ok(None) => others.push((spec.name, "it has no inputs or no outputs".into())),
            Err(reason) => others.push((spec.name, reason)),
        }
    }
    Ok((all, others))
}

/// Runs all measurements.
///
/// # Errors
/// There is no class of a name, or callgrind fails. A class that cannot be measured is no error.
pub fn run_all(wanted: &Settings) -> Result<Results, String> {
    let (all, mut others) = settings(wanted)?;
    let seconds = wanted.seconds / (all.len() * wanted.batches.len()).max(1) as f64;
    let (mut rows, mut known) = (Vec::new(), HashMap::new());
    for setting in all {
        let costs: Result<Vec<Cost>, String> =
            wanted.batches.iter().map(|&batch| measure(&setting, batch, seconds)).collect();
        match costs {
            Ok(mut costs) => {
                if let Some((program, arguments)) = &wanted.counted {
                    for cost in &mut costs {
                        let n = instructions(&setting, cost.batch, (program, arguments), &mut known)?;
                        cost.instructions = Some(n);
                    }
                }
                rows.push(Row { class: setting.class, element: setting.element(), costs });
            }
            Err(reason) => others.push((setting.class, reason)),
        }
    }
    others.sort_by_key(|o| o.0);
    Ok(Results { rows, others })
}

/// Executes a run whose instructions are counted.
///
/// # Errors
/// The configuration does not run.
pub fn run_counted(run: &Counted) -> Result<(), String> {
    run.run(None)
}

#[cfg(test)]
mod tests;
