// SPDX-License-Identifier: MIT OR Apache-2.0
//! A candidate: a configuration that is ready to replace the running one.

use super::error::SwapError;
use super::loader::Loader;
use super::plan::{Moves, Plan};
use crate::assembly::Assembly;
use crate::pairs::Pairs;
use crate::session::Session;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// The channel to which the outcome of a swap is sent.
pub(crate) type Reply = SyncSender<Result<Done, SwapError>>;

/// The result of a successful swap.
#[derive(Clone, Debug)]
pub struct Done {
    /// The changes that the swap has made.
    pub plan: Plan,
    /// How long the swap has stopped the movement of packets.
    pub standstill: Duration,
    /// The warnings about the new configuration, as text. Empty if there are none.
    pub warnings: String,
}

/// A configuration that is ready to replace the running one.
pub(crate) struct Candidate {
    pub assembly: Assembly,
    pub pairs: Pairs,
    pub moves: Moves,
    pub plan: Plan,
    /// The warnings about this configuration, as text.
    pub warnings: String,
    pub loader: Arc<dyn Loader>,
    /// The time at which the workers were asked to leave their run loops for the swap.
    pub since: Instant,
    /// The channel to which the outcome is sent. If there is none, failures are printed.
    pub reply: Option<Reply>,
}

impl Candidate {
    /// Closes the files and devices that the candidate has opened. Errors are ignored, because the configuration has
    /// never run.
    pub fn discard(mut self) {
        self.assembly.cleanup();
    }
    /// Reports the outcome of a swap: sends it to `reply`, or prints it as a message if there is none.
    pub fn tell(reply: Option<Reply>, session: &Session, outcome: Result<Done, SwapError>) {
        match (reply, outcome) {
            // Sending fails if the thread that requested the swap has ended.
            (Some(reply), outcome) => drop(reply.send(outcome)),
            (None, Err(e)) => session.print(&format!("hot swap failed: {e}")),
            (None, Ok(_)) => {}
        }
    }
}
