// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuse: an element that limits how long the router of a fuzz target runs.

use castanet_element::prelude::*;
use castanet_element::run_loop::Internals as _;

/// The message that Fuse prints when it stops the router.
pub const BURNT: &str = "the fuse has ended the router";

/// Stops the router after a number of task runs. Its task is always scheduled, so the run loop never sleeps, and
/// simulated time would never reach the next timer. Therefore the task itself advances the time.
///
/// # Ports
/// None.
#[derive(Class)]
#[class(name = "Fuse", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, task)]
pub struct Fuse {
    args: Args,
    turns: u32,
}

/// Arguments of Fuse.
#[derive(Args)]
pub struct Args {
    /// The number of task runs.
    turns: u32,
}

impl Element for Fuse {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.turns += 1;
        // The run loop checks timers at this interval.
        if self.turns.is_multiple_of(128)
            && let Some(t) = cx.core().timers().next_time()
        {
            cx.core().clock().jump(t);
        }
        if self.turns < self.args.turns {
            return Turn::Again;
        }
        cx.message(BURNT);
        Turn::Sleep
    }
}
