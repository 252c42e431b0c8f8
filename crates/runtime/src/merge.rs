// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the values of a handler from several replicas of an element into one value.

use crate::ledger;
use crate::shared::Shared;
use castanet_spec::{ClassSpec, Merge};

/// Combines the values that the replicas of an element gave for one of its handlers.
pub(crate) fn merge(shared: &Shared, element: u32, handler: &str, values: Vec<String>) -> String {
    if shared.counts_drops(element, handler) {
        return ledger::merge_reasons(&values);
    }
    merge_values(shared.spec(element), handler, values)
}

/// Adds tables line by line. Each line is a number, a tab and a text. Returns none if the texts are not the
/// same in all tables.
fn add_lines(values: &[String]) -> Option<String> {
    let mut sums: Vec<(u64, &str)> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let lines = value.lines().map(|line| {
            let (n, text) = line.split_once('\t')?;
            Some((n.parse().ok()?, text))
        });
        let lines: Vec<(u64, &str)> = lines.collect::<Option<_>>()?;
        if i == 0 {
            sums = lines;
            continue;
        }
        if lines.len() != sums.len() {
            return None;
        }
        for (sum, (n, text)) in sums.iter_mut().zip(lines) {
            if sum.1 != text {
                return None;
            }
            sum.0 = sum.0.wrapping_add(n);
        }
    }
    Some(sums.into_iter().map(|(n, text)| format!("{n}\t{text}\n")).collect())
}

/// Combines the values of a handler from several replicas, as its declaration says. Arguments and undeclared
/// handlers have the same value on all replicas.
fn merge_values(spec: Option<&ClassSpec>, handler: &str, values: Vec<String>) -> String {
    let declared = spec.and_then(|s| s.handlers.iter().find(|h| h.name == handler));
    fn numbers<T: std::str::FromStr>(values: &[String]) -> Option<Vec<T>> {
        values.iter().map(|v| v.trim().parse().ok()).collect()
    }
    let first = || values.first().cloned().unwrap_or_default();
    match declared.map_or(Merge::First, |h| h.merge) {
        _ if values.len() < 2 => first(),
        Merge::First => first(),
        Merge::Sum => match (numbers::<u64>(&values), numbers::<f64>(&values)) {
            (Some(whole), _) => whole.iter().fold(0u64, |a, b| a.wrapping_add(*b)).to_string(),
            (None, Some(real)) => real.iter().sum::<f64>().to_string(),
            (None, None) => add_lines(&values).unwrap_or_else(first),
        },
        Merge::Max => match numbers::<f64>(&values) {
            Some(real) => {
                let largest = values.iter().zip(&real).max_by(|a, b| a.1.total_cmp(b.1));
                largest.map_or_else(first, |l| l.0.clone())
            }
            None => first(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::add_lines;

    #[test]
    fn tables_with_the_same_texts_are_added_line_by_line() {
        let add = |values: &[&str]| add_lines(&values.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (values, sum) in [
            (&["1\tbad length\n2\tbad checksum\n", "10\tbad length\n0\tbad checksum\n"][..], Some((11, 2))),
            (&["1\tbad length\n2\tbad checksum\n"; 3], Some((3, 6))),
            (&["1\tbad length\n", "1\tbad checksum\n"], None),
            (&["1\tbad length\n2\tbad checksum\n", "1\tbad length\n"], None),
            (&["1\tbad length\n", "many\tbad length\n"], None),
            (&["10.0.0.1 eth0\n", "10.0.0.1 eth0\n"], None),
        ] {
            let text = |(a, b)| format!("{a}\tbad length\n{b}\tbad checksum\n");
            assert_eq!(add(values), sum.map(text), "{values:?}");
        }
    }
}
