// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings as text and as JSON.

use super::finding::{Finding, Mend, Severity};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The outcome of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was done.
    Found,
    /// It was mended, and is not found any more.
    Mended,
    /// It is not found any more, although nothing was done against it: another change mended it.
    Gone,
    /// It could not be mended, or is still found.
    Failed(String),
}

impl Outcome {
    /// Whether nothing is left to do.
    pub fn is_well(&self) -> bool {
        matches!(self, Outcome::Mended | Outcome::Gone)
    }
}

/// A finding with the name of its check, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub check: &'static str,
    pub finding: Finding,
    pub outcome: Outcome,
}

const PLAIN: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";

/// The word and the colour of a finding.
fn word(r: &Reported) -> (&'static str, &'static str) {
    match (&r.outcome, r.finding.severity) {
        (Outcome::Mended | Outcome::Gone, _) => ("mended", GREEN),
        (_, s @ Severity::Error) => (s.word(), "\x1b[1;31m"),
        (_, s @ Severity::Warning) => (s.word(), "\x1b[33m"),
        (_, s @ Severity::Note) => (s.word(), "\x1b[36m"),
    }
}

/// The findings as aligned text. `mending` says whether `--mend` was given. The caller removes the styles where they are
/// not wanted.
pub fn text(all: &[Reported], mending: bool) -> String {
    let mut out = String::new();
    let names = all.iter().map(|r| r.check.len()).max().unwrap_or(0);
    let indent = " ".repeat(7 + 2 + names + 2);
    for r in all {
        let (word, color) = word(r);
        let _ = writeln!(out, "{color}{word:<7}{PLAIN}  {:<names$}  {}", r.check, r.finding.what);
        let mut line = |title: &str, text: &str| {
            let _ = writeln!(out, "{indent}{DIM}{title:<5}{PLAIN} {text}");
        };
        line("why", &r.finding.why);
        match r.outcome {
            Outcome::Mended => line("did", &r.finding.help()),
            Outcome::Gone => line("did", "nothing: another change mended it"),
            _ => line("mend", &r.finding.help()),
        }
        match (&r.outcome, &r.finding.mend) {
            (Outcome::Failed(e), _) => line("but", &format!("--mend failed: {e}")),
            (Outcome::Found, Mend::ByHand { reason, .. }) if mending => {
                line("but", &format!("--mend does not do this: {reason}"));
            }
            _ => {}
        }
    }
    out
}

/// One line on all findings. `checks` is the number of checks.
pub fn summary(all: &[Reported], checks: usize, mending: bool) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let left: Vec<&Reported> = all.iter().filter(|r| !r.outcome.is_well()).collect();
    let mended = all.len() - left.len();
    if all.is_empty() {
        return format!("{}, nothing found\n", count(checks, "check"));
    }
    let by_severity = [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter_map(|s| {
        let n = left.iter().filter(|r| r.finding.severity == s).count();
        (n > 0).then(|| count(n, s.word()))
    });
    let mut parts: Vec<String> = by_severity.collect();
    if mended > 0 {
        parts.push(format!("{mended} mended"));
    }
    let mendable = left.iter().filter(|r| matches!(r.finding.mend, Mend::Change(_))).count();
    let hint = match mendable {
        0 => String::new(),
        _ if mending => String::new(),
        n if n == all.len() => "; --mend mends all".to_string(),
        n => format!("; --mend mends {n} of them"),
    };
    format!("{}: {}{hint}\n", count(all.len(), "finding"), parts.join(", "))
}

/// The findings as JSON, one object a line.
pub fn json(all: &[Reported]) -> String {
    all.iter().map(|r| format!("{}\n", value(r))).collect()
}

fn value(r: &Reported) -> Value {
    let f = &r.finding;
    let refused = match &f.mend {
        Mend::ByHand { reason, .. } => Some(*reason),
        Mend::Change(_) => None,
    };
    let failed = match &r.outcome {
        Outcome::Failed(e) => Some(e.as_str()),
        _ => None,
    };
    json!({
        "check": r.check, "severity": f.severity.word(), "what": f.what, "why": f.why, "mend": f.help(),
        "by_hand": refused, "mended": r.outcome.is_well(), "failed": failed,
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Change, refusal};
    use super::*;

    fn all() -> Vec<Reported> {
        let change = Change::Up { device: "eth0".into() };
        let down =
            Finding::mended_by(Severity::Warning, "eth0 is down".into(), "it receives nothing", change);
        let clock = Finding::by_hand(
            Severity::Note,
            "the clock is hpet".into(),
            "slow",
            "echo tsc".into(),
            refusal::MACHINE,
        );
        let of = |check, finding: &Finding, outcome| Reported { check, finding: finding.clone(), outcome };
        vec![
            of("devices", &down, Outcome::Found),
            of("devices", &down, Outcome::Mended),
            of("clock", &clock, Outcome::Found),
            of(
                "devices",
                &Finding { severity: Severity::Error, ..down.clone() },
                Outcome::Failed("not permitted".into()),
            ),
        ]
    }

    #[test]
    fn the_text_is_aligned() {
        let plain = anstream::adapter::strip_str(&text(&all(), true)).to_string();
        let want = "\
warning  devices  eth0 is down
                  why   it receives nothing
                  mend  ip link set eth0 up
mended   devices  eth0 is down
                  why   it receives nothing
                  did   ip link set eth0 up
note     clock    the clock is hpet
                  why   slow
                  mend  echo tsc
                  but   --mend does not do this: it concerns the whole machine, not only this network namespace
error    devices  eth0 is down
                  why   it receives nothing
                  mend  ip link set eth0 up
                  but   --mend failed: not permitted
";
        assert_eq!(plain, want);
        assert!(!text(&all()[..3], false).contains("does not do this"));
        assert!(text(&all(), true).contains("\x1b[32mmended"));
    }

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(&[], 16, false), "16 checks, nothing found\n");
        assert_eq!(summary(&all(), 16, true), "4 findings: 1 error, 1 warning, 1 note, 1 mended\n");
        assert_eq!(summary(&all()[..1], 16, false), "1 finding: 1 warning; --mend mends all\n");
        assert_eq!(
            summary(&[all()[0].clone(), all()[2].clone()], 1, false),
            "2 findings: 1 warning, 1 note; --mend mends 1 of them\n"
        );
    }

    #[test]
    fn json_says_the_same() {
        let text = json(&all());
        let values: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap_or_default()).collect();
        assert_eq!(values.len(), 4);
        assert_eq!(values[0]["mend"], "ip link set eth0 up");
        assert_eq!(
            (&values[1]["mended"], &values[2]["by_hand"]),
            (&Value::Bool(true), &json!(refusal::MACHINE))
        );
        assert_eq!(values[3]["failed"], "not permitted");
    }
}
