// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of "Programming language optimizations for modular router configurations" (ASPLOS 2002, section 8), and those of
//! "The Click Modular Router" (TOCS 2000) on the cost of elements and of modularity (sections 6.3 and 6.4).
//!
//! A configuration is made by [`Pass`]es of the tools, which the program supplies: each is a function from a configuration, or an
//! archive, to another one. A configuration for which a pass is missing is left out.
//!
//! Modules, bottom up: [`base`] (configurations before any pass), [`collect`] (keeps frames), [`router`] (runs configurations),
//! [`measure`](mod@measure) (time and instructions), [`figures`] (what is compared, and the papers' values), [`devices`] (routers
//! between devices), [`report`] and [`svg`].

pub mod base;
pub mod collect;
pub mod devices;
pub mod figures;
pub mod measure;
mod plot;
pub mod report;
pub mod router;

pub use base::{Base, Ends};
pub use figures::{Figure, Line};
pub use plot::svg;
pub use router::{Loader, classes};

use crate::path::Mode;
use base::ELEMENTS;
use figures::{BASE, Costs, ENDS, ENDS_LOADED, LOADED, MODULARITY, MONOLITH, ROWS, Row, SIMPLE, prefix_name};
use measure::Subject;
use std::path::PathBuf;

/// The patterns that put eight elements which do nothing on the path of a router with combination elements.
pub const NO_OP_PATTERNS: &str = include_str!("no-ops.click");

/// A pass of a tool.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name, as in [`figures::Row`].
    pub name: &'static str,
    /// Returns the configuration, or archive, that the pass makes of another one. [`Base`] is what all passes began with.
    pub apply: fn(&[u8], &Base) -> Result<Vec<u8>, String>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// ASPLOS Figures 8 and 9.
    Passes,
    /// TOCS Tables I and II.
    Elements,
    /// TOCS section 6.4.
    Modularity,
    /// ASPLOS Figures 8, 10 and 11 between devices.
    Devices,
}

/// All parts, in the order of the report, with their names.
pub const PARTS: [(&str, Part); 4] = [
    ("passes", Part::Passes),
    ("elements", Part::Elements),
    ("modularity", Part::Modularity),
    ("devices", Part::Devices),
];

/// Options of the measurement.
pub struct Settings<'a> {
    /// The parts to measure.
    pub parts: Vec<Part>,
    /// The total duration in seconds, without that of counting instructions.
    pub seconds: f64,
    /// The batch sizes.
    pub batches: Vec<usize>,
    /// This program, to count instructions: the words after its name are in `counted`.
    pub program: PathBuf,
    /// The subcommand that executes a [`measure::Counted`], whose text is appended. `None`: instructions are not counted.
    pub counted: Option<Vec<&'static str>>,
    /// The passes.
    pub passes: &'a [Pass],
    /// Loads compiled code.
    pub code: Option<&'a Loader>,
    /// Options of the measurement between devices.
    pub devices: devices::Settings,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The lines of tables, in the order of the report.
    pub lines: Vec<Line>,
    /// The results between devices.
    pub devices: Option<devices::Results>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Applies the passes of a configuration. `None` if one of them is missing.
///
/// # Errors
/// A pass fails.
pub fn made(row: &Row, base: &Base, passes: &[Pass]) -> Option<Result<Vec<u8>, String>> {
    let find = |name: &&str| passes.iter().find(|p| p.name == *name);
    let passes: Vec<&Pass> = row.passes.iter().map(find).collect::<Option<_>>()?;
    Some(passes.into_iter().try_fold(base.text.clone().into_bytes(), |configuration, pass| {
        (pass.apply)(&configuration, base).map_err(|e| format!("{}, pass {}: {e}", row.name, pass.name))
    }))
}

/// Makes the configurations of rows, each sequence of passes once. Rows of which a pass is missing are left out.
fn all_made(rows: &[Row], base: &Base, passes: &[Pass]) -> Result<Vec<(Row, Vec<u8>)>, String> {
    let mut all: Vec<(Row, Vec<u8>)> = Vec::new();
    for row in rows {
        let known = all.iter().find(|(other, _)| other.passes == row.passes).map(|(_, c)| Ok(c.clone()));
        if let Some(configuration) = known.or_else(|| made(row, base, passes)) {
            all.push((*row, configuration?));
        }
    }
    Ok(all)
}

/// Checks that the configurations send the same frames as [`BASE`], and drop as many packets.
///
/// # Errors
/// A configuration behaves otherwise, or does not run.
pub fn check(rows: &[Row], batch: usize, passes: &[Pass], code: Option<&Loader>) -> Result<(), String> {
    let base = base::router(Ends::Kept, batch)?;
    let want = router::sent(base.text.as_bytes(), Mode::plain(batch), code)?;
    if want.frames.iter().any(Vec::is_empty) {
        return Err("the router sends nothing on one of its interfaces".into());
    }
    let changed: Vec<Row> =
        rows.iter().copied().filter(|row| row.optimize || !row.passes.is_empty()).collect();
    for (row, configuration) in all_made(&changed, &base, passes)? {
        let got = router::sent(&configuration, Mode { batch, optimize: row.optimize }, code)
            .map_err(|e| format!("{}: {e}", row.name))?;
        if got != want {
            return Err(format!("{} does not send the same frames as {BASE}", row.name));
        }
    }
    Ok(())
}

/// Returns the subjects of some parts at a batch size, with their names. Each name is there once.
fn subjects(settings: &Settings<'_>, batch: usize) -> Result<Vec<(String, Subject)>, String> {
    let mut all: Vec<(String, Subject)> = Vec::new();
    let mut add = |name: &str, configuration: Vec<u8>, optimize| {
        if all.iter().all(|s| s.0 != name) {
            all.push((name.to_string(), Subject::Configuration(configuration, optimize)));
        }
    };
    let base = base::router(Ends::Memory, batch)?;
    let is_wanted = |part| settings.parts.contains(&part);
    let ends = base::simple(batch, false)?.into_bytes();
    add(ENDS, ends.clone(), false);
    add(BASE, base.text.clone().into_bytes(), false);
    let mut rows = Vec::new();
    if is_wanted(Part::Passes) {
        rows.extend(ROWS.into_iter().chain(LOADED));
    }
    if is_wanted(Part::Modularity) {
        rows.extend(MODULARITY);
    }
    for (row, configuration) in all_made(&rows, &base, settings.passes)? {
        add(row.name, configuration, row.optimize);
    }
    if is_wanted(Part::Elements) {
        for n in 1..=ELEMENTS.len() {
            add(&prefix_name(n), base::prefix(n, batch)?.into_bytes(), false);
        }
    }
    if is_wanted(Part::Passes) {
        add(ENDS_LOADED, ends, true);
        add(SIMPLE, base::simple(batch, true)?.into_bytes(), false);
        all.push((MONOLITH.to_string(), Subject::Monolith));
    }
    Ok(all)
}

/// Measures at one batch size, from memory to memory.
fn measure(settings: &Settings<'_>, batch: usize, seconds: f64) -> Result<Vec<Line>, String> {
    let (names, subjects): (Vec<String>, Vec<Subject>) = subjects(settings, batch)?.into_iter().unzip();
    let mut costs = measure::times(&subjects, batch, seconds, settings.code)?;
    if let Some(counted) = &settings.counted {
        let counts = measure::instructions(&subjects, batch, &settings.program, counted)?;
        costs.iter_mut().zip(counts).for_each(|(cost, n)| cost.instructions = Some(n));
    }
    let costs: Costs = names.into_iter().zip(costs).collect();
    let mut lines = Vec::new();
    for (part, of) in [
        (Part::Passes, figures::figure9 as fn(&Costs) -> Vec<Line>),
        (Part::Elements, figures::tables),
        (Part::Modularity, figures::modularity),
    ] {
        if settings.parts.contains(&part) {
            lines.extend(of(&costs));
        }
    }
    lines.iter_mut().for_each(|line| line.batch = batch);
    Ok(lines)
}

/// Checks the configurations, and runs all measurements.
///
/// # Errors
/// A configuration does not run or sends other frames than the router without passes, or the machine lacks what the measurement
/// between devices needs.
pub fn run_all(settings: &Settings<'_>) -> Result<Results, String> {
    let mut results = Results::default();
    let in_memory = settings.parts.iter().any(|p| *p != Part::Devices);
    let devices = settings.parts.contains(&Part::Devices);
    if in_memory {
        let rows: Vec<Row> = ROWS.into_iter().chain(LOADED).chain(MODULARITY).collect();
        check(&rows, settings.batches.first().copied().unwrap_or(32), settings.passes, settings.code)?;
        // Half of the time is for the devices, if they are measured too.
        let shares = settings.batches.len().max(1) * (1 + usize::from(devices));
        for &batch in &settings.batches {
            results.lines.extend(measure(settings, batch, settings.seconds / shares as f64)?);
        }
    }
    if devices {
        let seconds = settings.seconds / (1.0 + f64::from(u8::from(in_memory)));
        let (lines, measured) = devices::run(settings, seconds)?;
        results.lines.extend(lines);
        results.notes.extend(measured.notes.iter().cloned());
        results.devices = Some(measured);
    }
    results.lines.sort_by_key(|line| (line.figure, line.batch));
    Ok(results)
}

#[cfg(test)]
mod tests;
