// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uses the models to predict the throughput with more workers.

use super::cases::Model;
use super::model::{Machine, Meeting, Usl};
use super::{Fit, Results, Row};

/// The numbers of cores for which throughput is predicted. Each core has one worker.
pub const CORES: [usize; 5] = [4, 8, 16, 32, 64];

/// The predicted throughput of a configuration, relative to one worker.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The name of the configuration.
    pub name: String,
    /// The measured throughput of two workers, relative to one worker.
    pub two: f64,
    /// The lowest and the highest predicted throughput for each of [`CORES`].
    pub cores: Vec<[f64; 2]>,
    /// The model, in words.
    pub model: &'static str,
}

fn ordered([a, b]: [f64; 2]) -> [f64; 2] {
    [a.min(b), a.max(b)]
}

fn predict(row: &Row, fit: Option<&Fit>, machine: Machine) -> Prediction {
    let two = 2.0 * row.left.median;
    let usl = |left: f64, n: usize| Usl::extremes(2.0 * left).map(|u| u.speedup(n, machine.factor(n)));
    let extra = row.extra.median.max(0.0);
    let one = |n: usize| {
        let factor = machine.factor(n);
        match row.model {
            // All loss is contention. The range is from the slowest to the fastest measured round.
            Model::Nothing => [row.left.min, row.left.max].map(|left| usl(left, n)[0]),
            // The lowest value assumes that all loss of the slowest round is coherence. The highest value assumes that
            // all loss of the fastest round is contention.
            Model::Shared => [usl(row.left.min, n)[1], usl(row.left.max, n)[0]],
            Model::Pairs => [row.left.min, row.left.max].map(|left| left * n as f64),
            Model::SerialBase | Model::SerialRest => {
                // The second worker adds the cost `extra` per packet. The lower end of the predicted range counts this
                // cost as serial work, the upper end as parallel work.
                let work = row.work();
                let extra = extra * factor;
                let outside = super::Work { outside: work.outside + extra, ..work };
                let whole = work.outside + work.under;
                let best = n as f64 * whole / outside.cost(Meeting::Never, 0.0, n);
                [work.speedup(Meeting::Never, extra, n), best]
            }
            Model::Lock => {
                let (meeting, handover) = fit.map_or((Meeting::Always, 0.0), |f| (f.meeting, f.handover));
                [row.work().speedup(meeting, handover * factor, n); 2]
            }
        }
    };
    let model = match row.model {
        Model::Nothing => "USL, contention only; range of the rounds",
        Model::Shared => "USL, all coherence to all contention; range of the rounds",
        Model::Pairs => "independent pairs of workers; range of the rounds",
        Model::SerialBase | Model::SerialRest => "limit of the one worker at the queue",
        Model::Lock => fit.map_or("lock", |f| match f.meeting {
            Meeting::Always => "lock, Amdahl",
            Meeting::Random => "lock, closed queue",
            Meeting::Never => "lock, turns",
        }),
    };
    Prediction {
        name: row.target.map_or(row.name.clone(), |t| format!("{}, {:.0} %", row.name, t * 100.0)),
        two,
        cores: CORES.map(|n| ordered(one(n))).into(),
        model,
    }
}

/// Returns a prediction for each configuration.
pub fn all(results: &Results) -> Vec<Prediction> {
    let fit = results.best();
    let shipped = results.shipped.iter().map(|(row, _)| row);
    let rows = results.kinds.iter().chain(&results.sweep).chain(shipped);
    rows.map(|row| predict(row, fit, results.machine)).collect()
}
