// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table at the end. Each row has the name of a check, the measured values and the result.

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Shown,
    Missed,
    Skipped,
}

/// The table of checks that is printed at the end.
#[derive(Default)]
pub struct Table(Vec<(String, String, Verdict)>);

impl Table {
    /// Adds a row.
    pub fn row(&mut self, what: impl Into<String>, figure: impl Into<String>, ok: bool) {
        let verdict = if ok { Verdict::Shown } else { Verdict::Missed };
        self.0.push((what.into(), figure.into(), verdict));
    }

    /// Adds a row for a check that cannot be made in this run, with the reason.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.0.push((what.into(), why.into(), Verdict::Skipped));
    }

    /// Prints the table. Returns true if no check has the result `MISS`.
    pub fn print(&self) -> bool {
        let width = |of: fn(&(String, String, Verdict)) -> &String| {
            self.0.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        let (what, figure) = (width(|r| &r.0), width(|r| &r.1));
        for (a, b, verdict) in &self.0 {
            let verdict = match verdict {
                Verdict::Shown => "ok",
                Verdict::Missed => "MISS",
                Verdict::Skipped => "SKIP",
            };
            println!("{a:what$}  {b:figure$}  {verdict}");
        }
        self.0.iter().all(|row| row.2 != Verdict::Missed)
    }
}
