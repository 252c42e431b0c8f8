// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet bench diffserv`, `priority` and `red`: the measurements are close to the ideal, are reproducible,
//! and match the pages in docs/. `CASTANET_BLESS=1` redraws the pictures.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Runs `castanet bench` with these words. Returns its output.
fn bench(words: &[&str]) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let mut c = Command::new(BUILT.get_or_init(castanet));
    let out = c.arg("bench").args(words).current_dir(root()).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{words:?}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A line of a table of measurements.
struct Row {
    panel: String,
    series: String,
    load: f64,
    x: f64,
    y: f64,
    ideal: f64,
}

/// Draws a picture as described on its page, compares it with the stored one, and returns the measurements.
fn drawn(name: &str, pages: &[&str]) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let [svg, csv] = ["svg", "csv"].map(|e| folder.path().join(e));
    bench(&[name, "--svg", svg.to_str().unwrap(), "--csv", csv.to_str().unwrap()]);
    let (picture, kept) = (fs::read(&svg).unwrap(), format!("docs/{name}-curves.svg"));
    if std::env::var_os("CASTANET_BLESS").is_some() {
        fs::write(root().join(&kept), &picture).unwrap();
    }
    let command = format!("castanet bench {name} --svg {name}-curves.svg");
    let same = fs::read(root().join(&kept)).is_ok_and(|k| k == picture);
    assert!(same, "{kept} is out of date: {command}");
    for page in pages {
        let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
        assert!(text.contains(&format!("({name}-curves.svg)")) && text.contains(&command), "{page}");
    }
    rows(&fs::read_to_string(&csv).unwrap())
}

fn rows(csv: &str) -> Vec<Row> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("panel,series,load,x,y,ideal"));
    let row = |line: &str| {
        let [panel, series, numbers @ ..] = &line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let [load, x, y, ideal] = numbers.iter().map(|n| n.parse().unwrap()).collect::<Vec<f64>>()[..] else {
            panic!("{line}")
        };
        Row { panel: panel.to_string(), series: series.to_string(), load, x, y, ideal }
    };
    lines.map(row).collect()
}

/// Reproduces SOSP 1999, Figure 18.
#[test]
fn four_streams_over_the_whole_range_of_rates() {
    let rows = drawn("diffserv", &["diffserv.md"]);
    assert_eq!(rows.len(), 4 * 20);
    for r in &rows {
        assert!(
            (r.y - r.ideal).abs() <= r.ideal / 100.0 + 2.0,
            "{} at {}: {} not {}",
            r.series,
            r.x,
            r.y,
            r.ideal
        );
    }
    // The ideal curve must have the properties that the paper describes.
    let at = |series: &str, low: f64, high: f64| {
        let of: Vec<f64> =
            rows.iter().filter(|r| r.series == series && (low..high).contains(&r.x)).map(|r| r.y).collect();
        assert!(!of.is_empty());
        of
    };
    assert!(
        at("A", 7_500.0, 1e6).iter().all(|y| *y == 0.0) && at("A", 0.0, 7_500.0).iter().all(|y| *y > 0.0)
    );
    assert!(at("B", 10_500.0, 1e6).iter().all(|y| (y - 10_000.0).abs() < 100.0));
    assert!(
        at("C", 12_500.0, 1e6).iter().all(|y| *y == 0.0) && at("C", 0.0, 12_500.0).iter().all(|y| *y > 0.0)
    );
    let (below, above) = (at("D", 10_500.0, 12_500.0), at("D", 12_500.0, 15_000.0));
    assert!(above[0] > 1.8 * below[below.len() - 1], "{below:?} {above:?}");
}

/// Reproduces TOCS 2000, Figure 20 and section 6.5.
#[test]
fn strict_priority_late_and_early() {
    let rows = drawn("priority", &["priority-late.md", "priority-early.md"]);
    assert_eq!(rows.len(), 2 * 3 * 14);
    for r in &rows {
        let name = format!("{}, {}", r.panel, r.series);
        // Just above the saturation point, the buffers of the link and the controllers fill for a while.
        assert!(
            (r.y - r.ideal).abs() <= r.ideal / 100.0 + 300.0,
            "{name} at {}: {} not {}",
            r.x,
            r.y,
            r.ideal
        );
    }
    let last = |panel: &str, series: &str| {
        rows.iter().rfind(|r| r.panel == panel && r.series == series).map(|r| r.y / 1000.0).unwrap().round()
    };
    let all = ["classified late", "classified early"].map(|p| ["high", "medium", "low"].map(|s| last(p, s)));
    assert_eq!(all, [[30.0, 100.0, 14.0], [30.0, 114.0, 0.0]]);
}

/// Reproduces Floyd and Jacobson 1993 with RED in each position of TOCS 2000, Figures 5 and 11.
#[test]
fn red_drops_by_its_formula_in_each_placement() {
    let rows = drawn("red", &["red.md"]);
    assert_eq!(rows.len(), 6 * 12);
    for r in &rows {
        let name = format!("{}, {}", r.panel, r.series);
        assert!((r.y - r.ideal).abs() <= 0.03, "{name} at {}: {} not {}", r.x, r.y, r.ideal);
        if !r.panel.starts_with("weighted") {
            assert!((r.y - r.load).abs() < 0.01, "{name}: what is too much, {}, is dropped: {}", r.load, r.y);
        }
    }
    let (least, most) = rows.iter().fold((f64::MAX, 0.0f64), |(a, b), r| (a.min(r.x), b.max(r.x)));
    assert!(least < 20.0 && most > 140.0, "from {least} to {most}");
}

#[test]
fn the_same_whenever_they_are_asked_and_at_every_batch_size() {
    for name in ["diffserv", "priority", "red"] {
        let to = if name == "red" { "0.3" } else { "15000" };
        let json = |more: &[&str]| bench(&[&[name, "--json", "--points", "2", "--to", to], more].concat());
        let first = json(&[]);
        assert!(
            first.starts_with("{") && first.contains("\"how\": \"simulated time, batch 32, seed 1\""),
            "{first}"
        );
        assert_eq!(json(&[]), first);
        for batch in ["1", "256"] {
            assert_eq!(
                json(&["--batch", batch]).replace(&format!("batch {batch},"), "batch 32,"),
                first,
                "{name}"
            );
        }
        let other = json(&["--seed", "2"]);
        assert_eq!(
            other.replace("seed 2", "seed 1") == first,
            name != "red",
            "only RED draws random numbers"
        );
    }
}

#[test]
fn help_teaches_them() {
    let help = bench(&["--help"]);
    for name in ["diffserv", "priority", "red"] {
        assert!(help.contains(&format!("  {name} ")), "{help}");
        let own = bench(&[name, "--help"]);
        assert!(own.contains("Examples:") && own.contains(&format!("conf/{name}")), "{own}");
    }
}
