// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Castanet's routers with each other: the same router with more interfaces, or with another task.

use super::{Contender, Program, Results, Subject};
use crate::fig8::Spread;
use serde_json::{Value, json};
use std::fmt::Write;

/// The comparison of a router with another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// The router's name.
    pub name: String,
    /// The name of the router that it is compared with.
    pub base: String,
    /// If both are programs: the nanoseconds of a run that it takes more than the other, and the ratio of the two. Each round
    /// gives one difference and one ratio, because what disturbs the machine disturbs both programs of a round.
    pub run: Option<[Spread; 2]>,
}

/// The differences and ratios of the times of two programs, round by round.
fn paired(own: &[f64], base: &[f64]) -> Option<[Spread; 2]> {
    let rounds = || own.iter().zip(base).filter(|(_, base)| **base > 0.0);
    rounds().next()?;
    Some([
        Spread::of(rounds().map(|(own, base)| own - base)),
        Spread::of(rounds().map(|(own, base)| own / base)),
    ])
}

/// Compares each router that has a base with it, for each kind of traffic. `subjects` have the places of their routers in `contenders`.
/// `times` returns the time of a run in each round, for the program of the subject with this name.
pub fn all<'a>(
    contenders: &[Contender],
    subjects: &[(usize, Subject)],
    times: impl Fn(&str) -> Option<&'a [f64]>,
) -> Vec<Compared> {
    let compared = |(place, own): &(usize, Subject)| {
        let base = contenders.get(*place)?.base.as_ref()?;
        let (_, base) = subjects.iter().find(|(_, s)| s.router == *base && s.traffic == own.traffic)?;
        let run = times(&own.name).zip(times(&base.name)).and_then(|(own, base)| paired(own, base));
        Some(Compared { name: own.name.clone(), base: base.name.clone(), run })
    };
    subjects.iter().filter_map(compared).collect()
}

/// The ratios of peak and loss-free rate of two routers.
fn rates(r: &Results, c: &Compared) -> [Option<f64>; 2] {
    let of = |name: &str| r.names().position(|n| n == name).and_then(|who| r.capacities.get(who));
    let Some((own, base)) = of(&c.name).zip(of(&c.base)) else { return [None; 2] };
    let free = own.loss_free.zip(base.loss_free).map(|(own, base)| own / base.max(1.0));
    [Some(own.peak / base.peak.max(1.0)), free]
}

/// The numbers of instructions that a program executes for a packet and that its base executes.
fn executed(r: &Results, c: &Compared) -> Option<[u64; 2]> {
    let of = |name: &str| r.programs.iter().find(|p: &&Program| p.name == name).and_then(|p| p.length);
    Some([of(&c.name)?.executed, of(&c.base)?.executed])
}

/// The ratio of two counts.
fn ratio([own, base]: [u64; 2]) -> f64 {
    own as f64 / base.max(1) as f64
}

/// The table of comparisons; empty if there are none.
pub fn table(r: &Results) -> String {
    let mut out = String::new();
    if r.compared.is_empty() {
        return out;
    }
    let width = |of: fn(&Compared) -> &str| r.compared.iter().map(|c| of(c).len()).fold(8, usize::max);
    let (name, base) = (width(|c| &c.name), width(|c| &c.base));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:>name$}  {:>base$}  {:>5}  {:>9}  {:>24}  {:>21}  {:>9}  {:>5}",
        "compared", "with", "peak", "loss-free", "ns more a run", "ratio", "executed", "ratio"
    );
    for c in &r.compared {
        let [peak, free] = rates(r, c).map(|n| n.map_or("-".into(), |n| format!("{n:.2}")));
        let spread = |s: Spread, n: usize| format!("{:.n$} ({:.n$} to {:.n$})", s.median, s.min, s.max);
        let [more, times] =
            c.run.map_or(["-".into(), "-".into()], |[more, times]| [spread(more, 1), spread(times, 2)]);
        let executed = executed(r, c);
        let [steps, of] = executed.map_or(["-".into(), "-".into()], |all| {
            [format!("{:+}", i128::from(all[0]) - i128::from(all[1])), format!("{:.2}", ratio(all))]
        });
        let _ = writeln!(
            out,
            "{:>name$}  {:>base$}  {peak:>5}  {free:>9}  {more:>24}  {times:>21}  {steps:>9}  {of:>5}",
            c.name, c.base
        );
    }
    out.push_str(
        "\npeak, loss-free: ratios of rates; ns more a run and ratio: of programs, paired round by round; executed: instructions \
         more for one packet\n",
    );
    out
}

/// The comparisons as JSON.
pub fn json(r: &Results) -> Value {
    let spread = |s: Spread| json!({ "median": s.median, "min": s.min, "max": s.max });
    let all = r.compared.iter().map(|c| {
        let (rates, executed) = (rates(r, c), executed(r, c));
        json!({
            "router": c.name,
            "base": c.base,
            "peak_ratio": rates[0],
            "loss_free_ratio": rates[1],
            "run_ns_more": c.run.map(|s| spread(s[0])),
            "run_ratio": c.run.map(|s| spread(s[1])),
            "executed": executed.map(|n| n[0]),
            "executed_ratio": executed.map(ratio),
        })
    });
    Value::Array(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_paired() {
        // The second round is twice as slow for both: the ratio stays.
        let [more, times] = paired(&[30.0, 60.0, 33.0], &[20.0, 40.0, 22.0]).unwrap_or_default();
        assert_eq!((more.min, more.median, more.max), (10.0, 11.0, 20.0));
        assert_eq!((times.min, times.median, times.max), (1.5, 1.5, 1.5));
        for (own, base) in [(&[][..], &[1.0][..]), (&[1.0], &[]), (&[1.0], &[0.0])] {
            assert_eq!(paired(own, base), None);
        }
    }
}
