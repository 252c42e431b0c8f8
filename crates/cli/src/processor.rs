// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binding of workers to processors.

use castanet_io::namespace::{pin, processors};
use castanet_runtime::options::ThreadStart;
use std::io::Write as _;
use std::sync::Arc;

/// Checks that each of the workers can be bound to its processor, as in [`binding`].
///
/// # Errors
/// When this process may not run on one of these processors.
pub fn check(first: usize, workers: usize) -> Result<(), String> {
    let all = processors();
    let missing = (0..workers).map(|w| first.saturating_add(w)).find(|cpu| !all.contains(cpu));
    missing.map_or(Ok(()), |cpu| {
        let list: Vec<String> = all.iter().map(usize::to_string).collect();
        let list = list.join(", ");
        Err(format!("--affinity {first}: there is no processor {cpu}; this process may run on {list}"))
    })
}

/// Binds worker 0 to processor `first`, and the others to the processors after it.
pub fn binding(first: usize) -> ThreadStart {
    Arc::new(move |worker| {
        if let Err(e) = pin(first.saturating_add(worker as usize)) {
            // The router runs all the same; a closed standard error is no reason to stop it.
            let _ = writeln!(std::io::stderr().lock(), "worker {worker}: {e}");
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_are_not_there_are_refused() {
        let all = processors();
        let (first, last) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
        assert_eq!(check(first, 1), Ok(()));
        let error = check(last, 2).err().unwrap_or_default();
        let want = format!("--affinity {last}: there is no processor {}; this process may run on ", last + 1);
        assert!(error.starts_with(&want), "{error}");
        assert!(check(usize::MAX, 2).is_err());
    }

    #[test]
    fn each_worker_runs_on_its_processor() {
        let last = processors().last().copied().unwrap_or(0);
        let bound = std::thread::spawn(move || {
            binding(last)(0);
            processors()
        });
        assert_eq!(bound.join().unwrap_or_default(), [last]);
    }
}
