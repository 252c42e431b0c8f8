// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the curves of each figure over devices: the configurations run in real time, with devices in place of
//! their sources and sinks.
//!
//! Sender, router and receiver are network namespaces connected by veth: one link for each input stream and for
//! each output. The sender and the receiver also run Castanet.

use super::definition::{File, Seen};
use super::{Definition, Results, Sample, Settings, loads, world::World};
use std::path::PathBuf;

/// Options for measurements between real hosts.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The subcommand, as words, with which this program starts itself as a subprocess. The subprocess's own arguments
    /// are appended.
    pub part: Vec<String>,
    /// The total duration of all measurements in seconds.
    pub seconds: f64,
    /// The factor for all rates. `None` selects the largest factor up to 1 that this machine can handle. For the figure
    /// `red`, `None` selects the factor at which one run lasts as long as `seconds` allows.
    pub scale: Option<f64>,
}

/// The factors for all rates that are tried if none is given, largest first.
const SCALES: [f64; 6] = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02];
/// The time in seconds that a point of a curve takes in addition to its measurement.
const AROUND: f64 = 1.3;
/// How long one point of a curve is measured, in seconds. `LEAST` is the shortest useful time. `ENOUGH` always
/// suffices.
const LEAST: f64 = 0.1;
const ENOUGH: f64 = 1.0;

/// The number of points of a curve that can be measured in `seconds`.
pub fn fitting(what: &Definition, seconds: f64) -> usize {
    let each = (AROUND + ENOUGH) * what.files.len() as f64;
    ((seconds / each) as usize).clamp(2, what.points)
}

/// The variables that a configuration defines on lines of their own, with their values.
pub fn variables(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter_map(|l| l.trim().strip_prefix("define(")?.strip_suffix(");"));
    lines.flat_map(|l| l.split(',')).filter_map(|d| d.trim().strip_prefix('$')?.split_once(' ')).collect()
}

/// Arguments that set a configuration's variables, with rates multiplied by a factor.
fn scaled(file: &File, load: f64, scale: f64) -> Vec<String> {
    let value = |name: &str, value: &str| match value.parse::<f64>() {
        _ if name == file.variable => (file.value)(load) * scale,
        Ok(rate) => rate * scale,
        Err(_) => 0.0,
    };
    let all = variables(file.text).into_iter().map(|(name, text)| (name, value(name, text)));
    all.map(|(name, value)| format!("{name}={}", value.round().max(1.0))).collect()
}

/// Arguments for a configuration that samples its queues over simulated minutes. They shorten its run: rates are
/// multiplied by `speed`, times are divided by it, and the number of samples is divided by [`FEWER`].
fn hurried(file: &File, load: f64, speed: f64) -> Vec<String> {
    let value = |name: &str, text: &str| {
        let time = text.strip_suffix('s').and_then(|n| n.parse::<f64>().ok());
        match (name, time, text.parse::<f64>()) {
            (name, ..) if name == file.variable => format!("{:.0}", (file.value)(load) * speed),
            (_, Some(seconds), _) => format!("{:.6}s", seconds / speed),
            ("LOOKS", _, Ok(looks)) => format!("{:.0}", looks / FEWER),
            (_, _, Ok(rate)) => format!("{:.0}", rate * speed),
            _ => text.to_string(),
        }
    };
    variables(file.text).into_iter().map(|(name, text)| format!("{name}={}", value(name, text))).collect()
}

const FEWER: f64 = 5.0;

/// The length of a run at the original speed, in simulated seconds. The run takes the reduced number of samples that
/// [`hurried`] sets.
fn simulated_seconds(text: &str) -> f64 {
    let get = |name: &str| {
        let found = variables(text).into_iter().find(|v| v.0 == name);
        found.and_then(|v| v.1.trim_end_matches('s').parse::<f64>().ok()).unwrap_or(0.0)
    };
    get("SETTLE") + get("LOOK") * get("LOOKS") / FEWER
}

/// Whether the samples are close to the ideal. If they are, the machine can handle the rates.
fn keeps_up(file: &File, samples: &[Sample]) -> bool {
    file.series.iter().zip(samples).all(|(s, p)| (p.y - (s.ideal)(p.x)).abs() <= 0.1 * (s.ideal)(p.x) + 200.0)
        && samples.iter().all(|p| (p.x - p.load).abs() <= 0.05 * p.load)
}

struct Measurement<'a> {
    program: &'a PathBuf,
    hosts: &'a Hosts,
    settings: &'a Settings,
    notes: Vec<String>,
}

impl Measurement<'_> {
    fn world(&self, file: &'static File) -> Result<World, String> {
        World::new(self.program, &self.hosts.part, file)
    }

    /// Measures arrivals at the receiver while the sender sends at one rate after another. All rates are multiplied by
    /// one factor, so that the machine can keep up. Also returns this factor.
    fn arrivals(
        &mut self,
        file: &'static File,
        codes: &[u8],
        seconds: f64,
    ) -> Result<(Vec<Vec<Sample>>, f64), String> {
        let time = (seconds / self.settings.points.max(1) as f64 - AROUND).clamp(LEAST, 10.0);
        let mut world = self.world(file)?;
        let mut scale = self.hosts.scale.unwrap_or(1.0);
        for (i, tried) in SCALES.into_iter().enumerate() {
            if self.hosts.scale.is_none() {
                scale = tried;
            }
            world.route(&scaled(file, 0.0, scale), codes)?;
            let top = loads(self.settings.points, self.settings.to).last().unwrap_or(self.settings.to);
            if self.hosts.scale.is_some() || keeps_up(file, &world.trial(top, scale, time.min(0.5))?) {
                break;
            }
            if i + 1 == SCALES.len() {
                self.notes.push("this machine does not keep up even with a fiftieth of the rates".into());
            }
        }
        let trials = loads(self.settings.points, self.settings.to).map(|load| world.trial(load, scale, time));
        Ok((trials.collect::<Result<_, _>>()?, scale))
    }

    /// Runs the configuration once for each load, and collects the samples that it prints. Also returns the factor by
    /// which the runs were sped up.
    fn printed(&mut self, file: &'static File, seconds: f64) -> Result<(Vec<Vec<Sample>>, f64), String> {
        let time = (seconds / self.settings.points.max(1) as f64 - AROUND).max(0.5);
        let speed = self.hosts.scale.unwrap_or(simulated_seconds(file.text) / time);
        let mut world = self.world(file)?;
        let one = |load: f64| {
            let limit = simulated_seconds(file.text) / speed;
            let text = world.watch(&hurried(file, load, speed), file.series.len(), limit)?;
            (file.read)(load, &text).ok_or_else(|| format!("{}: it prints '{text}'", file.name))
        };
        let all = loads(self.settings.points, self.settings.to).map(one).collect::<Result<_, _>>()?;
        Ok((all, speed))
    }
}

/// Runs all measurements between real hosts.
///
/// # Errors
/// The machine lacks a required feature or permission.
pub fn on_hosts(what: &'static Definition, settings: &Settings, hosts: &Hosts) -> Result<Results, String> {
    let least = (AROUND + LEAST) * settings.points as f64 * what.files.len() as f64;
    if hosts.seconds < least {
        return Err(format!("{} points take at least {:.0} seconds", settings.points, least.ceil()));
    }
    let mut m = Measurement { program: &settings.program, hosts, settings, notes: Vec::new() };
    let seconds = hosts.seconds / what.files.len().max(1) as f64;
    let mut series = Vec::new();
    let mut how = Vec::new();
    for file in what.files {
        let (trials, scale) = match file.seen {
            Seen::Arrivals(codes) => m.arrivals(file, codes, seconds)?,
            Seen::Printed => m.printed(file, seconds)?,
        };
        for (i, _) in file.series.iter().enumerate() {
            series.push(trials.iter().filter_map(|t| t.get(i).copied()).collect());
        }
        let said = format!("rates times {scale:.3}");
        let said = said.trim_end_matches('0').trim_end_matches('.');
        // If the factor was chosen by comparing measurements with the ideal, the figure says so.
        let chosen = match (&file.seen, hosts.scale) {
            (Seen::Arrivals(_), None) => ", the most at which this machine keeps near the ideal",
            _ => "",
        };
        let said = format!("{said}{chosen}");
        if !how.contains(&said) {
            how.push(said);
        }
    }
    let how = format!("between hosts, by the clock, {}", how.join(" and "));
    Ok(Results { what, how, series, notes: m.notes })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::curves::named;

    #[test]
    fn variables_are_found_and_scaled() {
        let file = |name| &named(name).unwrap().files[0];
        let text = "define($A 1, $B 2s);\n  x -> y;\ndefine($C d);";
        assert_eq!(variables(text), [("A", "1"), ("B", "2s"), ("C", "d")]);
        assert_eq!(
            scaled(file("diffserv"), 5000.0, 0.1),
            ["RATE=500", "LINK=10000", "A=750", "B=1000", "C=1250"]
        );
        let mut words = hurried(file("red"), 0.25, 10.0);
        assert_eq!(words.remove(0), "EACH=440");
        assert_eq!(words, ["LINK=1000", "SETTLE=6.000000s", "LOOK=0.020000s", "LOOKS=300"]);
        assert_eq!(simulated_seconds(file("red").text), 120.0);
    }

    #[test]
    fn points_take_their_time() {
        let what = named("priority").unwrap();
        assert_eq!([0.0, 30.0, 1e9].map(|s| fitting(what, s)), [2, 6, 14]);
        let settings =
            Settings { program: "/no/such/program".into(), points: 100, to: 1e5, batch: 1, seed: 1 };
        let hosts = Hosts { part: Vec::new(), seconds: 30.0, scale: None };
        assert_eq!(on_hosts(what, &settings, &hosts).unwrap_err(), "100 points take at least 280 seconds");
    }

    #[test]
    fn who_keeps_up_is_near_the_ideal() {
        let file = &named("diffserv").unwrap().files[0];
        let samples = |part: f64, x: f64| -> Vec<Sample> {
            file.series.iter().map(|s| Sample { load: 20_000.0, x, y: part * (s.ideal)(x) }).collect()
        };
        assert!(keeps_up(file, &samples(1.0, 20_000.0)) && keeps_up(file, &samples(0.95, 20_100.0)));
        assert!(!keeps_up(file, &samples(0.8, 20_000.0)), "too little arrives");
        assert!(!keeps_up(file, &samples(1.0, 18_000.0)), "too little was sent");
    }
}
