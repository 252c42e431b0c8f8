// SPDX-License-Identifier: MIT OR Apache-2.0
//! The curves of the papers between real hosts: what `castanet bench ... --hosts` measures at some loads, at rates that any machine
//! keeps up with. Clocks and other programs make it rough; plateaus and orders show all the same.

use crate::net::castanet;
use castanet_lab::{Lab, Process};
use std::process::Command;
use std::time::Duration;

/// Longer than any of these measurements takes, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a measurement that other programs disturbed is made again.
const TRIES: usize = 4;

/// What was sent, and what became of it, by panel and series.
struct Curves(Vec<(String, String, f64, f64)>);

impl Curves {
    /// Measures with nobody else on the machine who is ours; none where there can be no hosts.
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

    /// Measures until what is asked of the curves holds, a few times at most: a meter looks back for some hundredths of a second only,
    /// and where other programs have the processors for longer than that there is nothing to be seen.
    fn show(words: &str, holds: impl Fn(&Curves) -> Result<(), String>) {
        let mut why = String::new();
        for _ in 0..TRIES {
            let Some(curves) = Curves::measured(words) else { return };
            match holds(&curves) {
                Ok(()) => return,
                Err(e) => why += &format!("{e}\n"),
            }
        }
        panic!("{words}:\n{why}");
    }

    /// What was measured of a series whose panel ends so, at all loads.
    fn of(&self, panel: &str, name: &str) -> Vec<f64> {
        self.0.iter().filter(|p| p.0.ends_with(panel) && p.1 == name).map(|p| p.3).collect()
    }

    /// At what rates it was measured.
    fn sent(&self, panel: &str, name: &str) -> Vec<f64> {
        self.0.iter().filter(|p| p.0.ends_with(panel) && p.1 == name).map(|p| p.2).collect()
    }
}

/// What is wrong, if something is, with what was seen.
fn all(seen: &str, wanted: &[(bool, &str)]) -> Result<(), String> {
    match wanted.iter().find(|w| !w.0) {
        Some((_, what)) => Err(format!("not so: {what}\n{seen}")),
        None => Ok(()),
    }
}

/// SOSP 1999, Figure 18: at 2,000, 6,000, 10,000, 14,000 and 18,000 packets a second of each stream.
#[test]
fn streams_are_dropped_shaped_and_reclassified() {
    Curves::show("diffserv --points 5 --to 20000 --scale 0.05 --seconds 12", |curves| {
        let [a, b, c, d] = ["A", "B", "C", "D"].map(|name| curves.of("", name));
        let sent = curves.sent("", "A");
        let near = |y: f64, want: f64| (y - want).abs() <= 0.35 * want;
        all(
            &format!("sent {sent:?}\nA {a:?}\nB {b:?}\nC {c:?}\nD {d:?}"),
            &[
                ([&a, &b, &c, &d].iter().all(|all| near(all[0], sent[0])), "all leaves at low rates"),
                (a[3..].iter().all(|y| *y < 5_000.0), "A is dropped above 7,500"),
                (b[3..].iter().all(|y| near(*y, 10_000.0) && *y < 10_600.0), "B is shaped to 10,000"),
                (c[4] < 6_000.0, "C is reclassified above 12,500"),
                (d[4] > 1.5 * sent[4], "D has what was C too"),
            ],
        )
    });
}

/// TOCS 2000, Figure 20 and section 6.5: at 20,000, 60,000 and 100,000 packets a second of each class, and at 140,000.
#[test]
fn priorities_hold_late_and_early() {
    Curves::show("priority --points 4 --to 160000 --scale 0.02 --seconds 20", |curves| {
        for panel in ["late", "early"] {
            let [high, medium, low] = ["high", "medium", "low"].map(|name| curves.of(panel, name));
            let sent = curves.sent(panel, "high");
            let near = |y: f64, want: f64| (y - want).abs() <= 0.35 * want;
            all(
                &format!("{panel}: sent {sent:?}\nhigh {high:?}\nmedium {medium:?}\nlow {low:?}"),
                &[
                    (
                        [&high, &medium, &low].iter().all(|all| near(all[0], sent[0])),
                        "all leaves at low rates",
                    ),
                    // What the shaper saves up for a burst comes on top.
                    (high[1..].iter().all(|y| near(*y, 30_000.0) && *y < 33_500.0), "high keeps its 30,000"),
                    (
                        (1..4).all(|i| medium[i] > high[i] && medium[i] >= 0.9 * low[i]),
                        "medium goes before low",
                    ),
                    (low[3] < 0.6 * low[1], "medium takes from low"),
                    ((0..4).all(|i| high[i] + medium[i] + low[i] < 155_000.0), "the link carries 144,000"),
                ],
            )?;
        }
        let [late, early] = ["late", "early"].map(|panel| curves.of(panel, "low")[3]);
        all(
            &format!("late {late}, early {early}"),
            &[(early < 5_000.0 && late > early, "low gets more late than early")],
        )
    });
}

/// Floyd and Jacobson 1993: queues settle where what is too much is dropped, in each placement.
#[test]
fn red_drops_what_is_too_much_in_each_placement() {
    Curves::show("red --points 2 --to 0.8 --seconds 10", |curves| {
        for name in ["one", "several", "front"] {
            let shares = curves.of("placements", name);
            let right = (0.05..0.35).contains(&shares[0]) && (0.45..0.72).contains(&shares[1]);
            all(&format!("{name}: {shares:?}"), &[(right, "what is too much is dropped: 0.2 and 0.6")])?;
        }
        let w = ["high", "medium", "low"].map(|name| curves.of("one queue", name));
        let ordered = (0..2).all(|i| w[0][i] < w[1][i] && w[1][i] < w[2][i]);
        all(&format!("{w:?}"), &[(ordered, "high loses least and low most")])
    });
}
