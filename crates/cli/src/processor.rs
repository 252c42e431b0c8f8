// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binds workers to processors.

use castanet_io::namespace::{pin, processors};
use castanet_lang::bytes::line;
use castanet_runtime::options::ThreadStart;
use std::io::Write as _;
use std::sync::Arc;

/// The processors of the workers, in order of the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    list: Vec<usize>,
    /// The option that named the processors, such as `--affinity 2`, for messages.
    option: String,
}

impl Processors {
    /// Processor `first` for worker 0, and the processors after it for the others.
    pub fn from(first: usize, workers: usize) -> Processors {
        let list = (0..workers).map(|w| first.saturating_add(w)).collect();
        Processors { list, option: format!("--affinity {first}") }
    }
    /// The processors of a list such as `2,3` or `0-3,8`.
    ///
    /// # Errors
    /// When the text is no such list, or names a processor twice.
    pub fn parse(text: &str) -> Result<Processors, String> {
        let wrong =
            || format!("--cpus {text}: expected numbers and ranges of processors, such as 2,3 or 0-3,8");
        let mut list = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let number = |t: &str| t.trim().parse::<u16>().map(usize::from).map_err(|_| wrong());
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err(wrong());
            }
            for cpu in from..=to {
                if list.contains(&cpu) {
                    return Err(format!("--cpus {text}: processor {cpu} is named twice"));
                }
                list.push(cpu);
            }
        }
        Ok(Processors { list, option: format!("--cpus {text}") })
    }
    /// The number of processors in the list.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Checks that the list has a processor for each worker, and that this process may run on these processors.
    ///
    /// # Errors
    /// When the list is too short, or names a processor on which this process may not run.
    pub fn check(&self, workers: usize) -> Result<(), String> {
        let Processors { list, option } = self;
        if workers > list.len() {
            return Err(format!("{option}: {workers} workers need {workers} processors"));
        }
        let all = processors();
        let missing = list.iter().take(workers).find(|cpu| !all.contains(cpu));
        missing.map_or(Ok(()), |cpu| {
            let list: Vec<String> = all.iter().map(usize::to_string).collect();
            let list = list.join(", ");
            Err(format!("{option}: there is no processor {cpu}; this process may run on {list}"))
        })
    }
    /// Binds each worker to its processor.
    pub fn binding(self) -> ThreadStart {
        Arc::new(move |worker| {
            let Some(&cpu) = self.list.get(worker as usize) else { return };
            if let Err(e) = pin(cpu) {
                // A failed write of this message is ignored, because the router runs without the binding too.
                let _ = std::io::stderr().lock().write_all(&line(&format!("worker {worker}: {e}")));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_are_not_there_are_refused() {
        let check = |first, workers| Processors::from(first, workers).check(workers);
        let all = processors();
        let (first, last) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
        assert_eq!(check(first, 1), Ok(()));
        let error = check(last, 2).err().unwrap_or_default();
        let want = format!("--affinity {last}: there is no processor {}; this process may run on ", last + 1);
        assert!(error.starts_with(&want), "{error}");
        assert!(check(usize::MAX, 2).is_err());
        let one = Processors::parse(&first.to_string());
        let error = one.and_then(|p| p.check(2)).err().unwrap_or_default();
        assert_eq!(error, format!("--cpus {first}: 2 workers need 2 processors"));
    }

    #[test]
    fn lists_have_numbers_and_ranges() {
        let list = |text: &str| Processors::parse(text).map(|p| p.list);
        assert_eq!(list("2,3"), Ok(vec![2, 3]));
        assert_eq!(list("8, 0-3"), Ok(vec![8, 0, 1, 2, 3]));
        for wrong in ["", "x", "1,", "3-1", "-1", "1-", "70000", "0-70000"] {
            let error = list(wrong).err().unwrap_or_default();
            assert!(error.contains("expected numbers and ranges"), "{wrong}: {error}");
        }
        assert_eq!(list("1,0-2").err().unwrap_or_default(), "--cpus 1,0-2: processor 1 is named twice");
    }

    #[test]
    fn each_worker_runs_on_its_processor() {
        let last = processors().last().copied().unwrap_or(0);
        let bound = std::thread::spawn(move || {
            Processors::from(last, 1).binding()(0);
            processors()
        });
        assert_eq!(bound.join().unwrap_or_default(), [last]);
    }
}
