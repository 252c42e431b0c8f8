// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that takes long, on other threads and with bounds.

use crate::api::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time that a request may wait for its answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The threads for work: one for calls to the router, one for new configurations.
pub const THREADS: usize = 2;

/// Runs work on other threads.
#[derive(Clone)]
pub struct Work {
    /// One call to the router at a time, so that clients cannot make it answer any number of calls at once.
    calls: Arc<Semaphore>,
    /// One new configuration at a time. It can take as long as its text allows, and calls need not wait for it.
    texts: Arc<Semaphore>,
}

impl Work {
    pub fn new() -> Work {
        Work { calls: Arc::new(Semaphore::new(1)), texts: Arc::new(Semaphore::new(1)) }
    }
    /// Runs work that calls the router.
    ///
    /// # Errors
    /// Those of the work, and when the router takes too long.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        run(&self.calls, work).await
    }
    /// Runs work on a new configuration.
    ///
    /// # Errors
    /// As for [`Work::read`].
    pub async fn text<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        run(&self.texts, work).await
    }
}

async fn run<T: Send + 'static>(
    turn: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = async {
        let turn = turn.clone().acquire_owned().await.map_err(|e| Problem::gone(e.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            let out = work();
            // The next work begins when this one has ended, even if its client has gone.
            drop(turn);
            out
        });
        done.await.map_err(|_| Problem::new(500, "the request failed"))?
    };
    timeout(PATIENCE, done)
        .await
        .map_err(|_| Problem::gone("no answer in time; a change that was begun may still take effect"))?
}
