// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that `castanet bench ... --hosts` measures every series of the papers' curves between real hosts.

use crate::net::castanet;
use castanet_lab::{Lab, Process};
use std::process::Command;
use std::time::Duration;

/// Timeout, longer than any of these measurements needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measured points: panel, series, x (the load or the queue length) and y (the measured value).
struct Curves(Vec<(String, String, f64, f64)>);

impl Curves {
    /// Runs a measurement while no other lab runs; `None` if labs cannot run here.
    fn measured(words: &str) -> Option<Curves> {
        let _alone = Lab::alone().inspect_err(|why| println!("SKIP: {why}")).ok()?;
        let mut command = Command::new(castanet());
        command.arg("bench").args(words.split_whitespace()).args(["--hosts", "--json"]);
        let said = Process::start(command).wait(PATIENCE).good();
        let json: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        let name = words.split_whitespace().next().unwrap_or_default();
        let mut all = Vec::new();
        for series in
            json.pointer(&format!("/{name}/series")).and_then(|s| s.as_array()).into_iter().flatten()
        {
            let text =
                |field: &str| series.get(field).and_then(|t| t.as_str()).unwrap_or_default().to_string();
            for point in series.get("points").and_then(|p| p.as_array()).into_iter().flatten() {
                let number =
                    |field: &str| point.get(field).and_then(serde_json::Value::as_f64).unwrap_or(-1.0);
                all.push((text("panel"), text("name"), number("x"), number("y")));
            }
        }
        assert!(!all.is_empty(), "{said}");
        Some(Curves(all))
    }
}
/// Measures at low rates. Every series must have its points, and packets must arrive. The rates depend on the
/// machine and its load and are not checked. The behaviour of the configurations at each rate is tested in
/// simulated time.
fn measured(words: &str, series: usize) {
    let Some(Curves(points)) = Curves::measured(words) else { return };
    let mut names: Vec<_> = points.iter().map(|p| (&p.0, &p.1)).collect();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), points.len()), (series, 2 * series), "{words}: {names:?}");
    assert!(points.iter().all(|p| p.2 >= 0.0 && p.3 >= 0.0), "{words}: {points:?}");
    assert!(points.iter().map(|p| p.3).sum::<f64>() > 0.0, "{words}: {points:?}");
}

#[test]
fn streams_are_measured_between_hosts() {
    measured("diffserv --points 2 --to 20000 --scale 0.05 --seconds 4", 4);
}

#[test]
fn priorities_are_measured_between_hosts() {
    measured("priority --points 2 --to 160000 --scale 0.02 --seconds 8", 6);
}

#[test]
fn red_is_measured_between_hosts() {
    measured("red --points 2 --to 0.8 --seconds 6", 6);
}
