// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuse: an element that bounds how long a router of a fuzz target runs.

use castanet_element::prelude::*;

/// What it prints when it has burnt down; whoever prints it ends the router.
pub const BURNT: &str = "the fuse has burnt down";

/// Ends the router after so many turns. It never sleeps, so the run loop never does; it lets simulated time jump instead.
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
    /// Turns.
    turns: u32,
}

impl Element for Fuse {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.turns += 1;
        // As often as the run loop looks at timers.
        if self.turns.is_multiple_of(128)
            && let Some(t) = cx.core().timers.next_time()
        {
            cx.core().clock.jump(t);
        }
        if self.turns < self.args.turns {
            return Turn::Again;
        }
        cx.message(BURNT);
        Turn::Sleep
    }
}
