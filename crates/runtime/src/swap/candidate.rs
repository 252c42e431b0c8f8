// SPDX-License-Identifier: MIT OR Apache-2.0
//! A configuration that is ready to replace the one that runs.

use super::error::SwapError;
use super::loader::Loader;
use super::plan::{Moves, Plan};
use crate::assembly::Assembly;
use crate::pairs::Pairs;
use crate::session::Session;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Where the outcome of a swap is sent.
pub(crate) type Reply = SyncSender<Result<Done, SwapError>>;

/// The result of a successful swap.
#[derive(Clone, Debug)]
pub struct Done {
    /// The changes.
    pub plan: Plan,
    /// How long no packet moved.
    pub standstill: Duration,
    /// The warnings about the new configuration; empty if there are none.
    pub warnings: String,
}

/// A configuration that waits to replace the one that runs.
pub(crate) struct Candidate {
    pub assembly: Assembly,
    pub pairs: Pairs,
    pub moves: Moves,
    pub plan: Plan,
    /// The warnings about the configuration.
    pub warnings: String,
    pub loader: Arc<dyn Loader>,
    /// The time when the workers were requested to return.
    pub since: Instant,
    /// Where to send the outcome. If there is none, failures are printed.
    pub reply: Option<Reply>,
}

impl Candidate {
    /// Closes what the candidate has opened. Errors are dropped, because the configuration never ran.
    pub fn discard(mut self) {
        self.assembly.cleanup();
    }
    /// Reports the outcome.
    pub fn tell(reply: Option<Reply>, session: &Session, outcome: Result<Done, SwapError>) {
        match (reply, outcome) {
            // The requesting thread may have ended.
            (Some(reply), outcome) => drop(reply.send(outcome)),
            (None, Err(e)) => session.print(&format!("hot swap failed: {e}")),
            (None, Ok(_)) => {}
        }
    }
}
