// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handler calls to elements with replicas: which replicas get a call, and how their values are combined.

use crate::handlers::without_parameters;
use crate::ledger;
use crate::shared::Shared;
use castanet_element::{CallError, Missing};
use castanet_spec::{ClassSpec, Merge, Workers};

impl Shared {
    /// Reads a handler of an element and combines the values of its replicas. `read` reads the handler on one worker.
    ///
    /// # Errors
    /// The first error of `read`, or an error if no worker has the element.
    pub(crate) fn read_replicas<E: From<CallError>>(
        &self,
        element: u32,
        handler: &str,
        parameters: &str,
        mut read: impl FnMut(usize) -> Result<String, E>,
    ) -> Result<String, E> {
        if let Some(value) = self.unasked(element, handler) {
            without_parameters(&self.handler_name(Some(element), handler), parameters)?;
            return Ok(value);
        }
        match self.readers_of(element, handler) {
            [] => Err(CallError::from(Missing::Read(self.handler_name(Some(element), handler))).into()),
            &[worker] => read(worker),
            workers => {
                let values = workers.iter().map(|&w| read(w)).collect::<Result<_, E>>()?;
                Ok(merge(self, element, handler, values))
            }
        }
    }

    /// Writes a handler of an element on all replicas that need the value. `write` writes the handler on one worker.
    ///
    /// # Errors
    /// The first error of `write`. Replicas that were written before the error keep the new value.
    pub(crate) fn write_replicas<E>(
        &self,
        element: u32,
        handler: &str,
        write: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let replicas = self.written_replicas(element, handler);
        self.workers_of(element).iter().copied().take(replicas).try_for_each(write)
    }

    /// Returns the workers whose values are combined in a read of a handler. Normally, these are all workers with a
    /// replica. If the replicas share their state, one worker is enough, because all replicas give the same value. The
    /// value of `drop_reasons` needs all workers that run the element, because each worker counts its own drops.
    fn readers_of(&self, element: u32, handler: &str) -> &[usize] {
        let owners = self.workers_of(element);
        if self.counts_drops(element, handler) {
            return match self.placement.workers_of(element as usize) {
                [] => owners,
                all => all,
            };
        }
        match self.spec(element).map(|s| s.workers) {
            Some(Workers::Share) => owners.get(..1).unwrap_or(owners),
            _ => owners,
        }
    }
    /// Returns the maximum number of replicas that a write to a handler must reach. If the replicas share their state,
    /// one is enough. `config` is an exception, because each replica has a configuration string of its own.
    fn written_replicas(&self, element: u32, handler: &str) -> usize {
        let share = self.spec(element).is_some_and(|s| s.workers == Workers::Share);
        if share && handler != "config" { 1 } else { usize::MAX }
    }
    /// Returns the value of a handler if any thread can compute it. None if only a worker can compute it.
    fn unasked(&self, element: u32, handler: &str) -> Option<String> {
        match self.declared(element, handler) {
            Some(_) => None,
            None => self.standard(element, handler),
        }
    }
}

/// Combines the values that the replicas of an element have returned for a handler.
fn merge(shared: &Shared, element: u32, handler: &str, values: Vec<String>) -> String {
    if shared.counts_drops(element, handler) {
        return ledger::merge_reasons(&values);
    }
    merge_values(shared.spec(element), handler, values)
}

/// Adds up tables line by line. Each line has a number, a tab and a text. Returns none if the texts differ between the
/// tables.
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

/// Combines the values that replicas have returned for a handler, as the handler's declaration says. For arguments and
/// handlers without a declaration, returns the first value, because all replicas have the same.
fn merge_values(spec: Option<&ClassSpec>, handler: &str, values: Vec<String>) -> String {
    let declared = spec.and_then(|s| s.handler(handler));
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
