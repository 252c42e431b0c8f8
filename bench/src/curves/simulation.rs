// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs all points of a figure in simulated time. The same seed gives identical output.

use super::definition::File;
use super::{Definition, Results, Sample, Settings, loads};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs a configuration once.
fn run(settings: &Settings, file: &File, load: f64) -> Result<Vec<Sample>, String> {
    let mut command = Command::new(&settings.program);
    command.args(["run", "-q", "--simtime", "--batch", &settings.batch.to_string()]);
    command.args(["--seed", &settings.seed.to_string(), "-e", file.text]);
    command.arg(format!("{}={}", file.variable, (file.value)(load)));
    for handler in file.handlers {
        command.args(["-h", handler]);
    }
    let out =
        command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", settings.program.display()))?;
    if !out.status.success() {
        return Err(format!("{}: {}", file.name, String::from_utf8_lossy(&out.stderr)));
    }
    let printed = String::from_utf8_lossy(&out.stdout);
    (file.read)(load, &printed).ok_or_else(|| format!("{}: it prints '{printed}'", file.name))
}

/// Runs all measurements in simulated time, on all CPUs.
///
/// # Errors
/// The `castanet` command cannot be run.
pub fn simulated(what: &'static Definition, settings: &Settings) -> Result<Results, String> {
    let loads: Vec<f64> = loads(settings.points, settings.to).collect();
    let jobs: Vec<(&File, f64)> =
        what.files.iter().flat_map(|f| loads.iter().map(move |l| (f, *l))).collect();
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, Result<Vec<Sample>, String>)> = Vec::new();
    thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                // Take jobs from the end: these have the highest loads and take longest, so they should start first.
                let taken = next.fetch_add(1, Ordering::Relaxed);
                let Some(i) = jobs.len().checked_sub(taken + 1) else { return mine };
                if let Some((file, load)) = jobs.get(i) {
                    mine.push((i, run(settings, file, *load)));
                }
            }
        };
        let n = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        let workers: Vec<_> = (0..n).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(mine) => done.extend(mine),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    done.sort_by_key(|(i, _)| *i);
    let mut series = vec![Vec::new(); what.series().count()];
    let mut place = 0;
    let mut done = done.into_iter();
    for file in what.files {
        for (_, samples) in done.by_ref().take(loads.len()) {
            for (all, sample) in series.iter_mut().skip(place).zip(samples?) {
                all.push(sample);
            }
        }
        place += file.series.len();
    }
    let how = format!("simulated time, batch {}, seed {}", settings.batch, settings.seed);
    Ok(Results { what, how, series, notes: Vec::new() })
}
