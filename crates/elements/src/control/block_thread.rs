// SPDX-License-Identifier: MIT OR Apache-2.0
//! BlockThread: blocks a worker for a while, for tests.

use castanet_element::prelude::*;

/// Blocks a worker for a while, to test how other workers and delayed timers behave.
///
/// The handler `block` blocks the worker that owns the element. Under simulated time, it advances the clock instead.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// b :: BlockThread;
/// InfiniteSource(LIMIT 5) -> Discard;
/// DriverManager(write b.block 0.01, stop);
/// ```
#[derive(Class)]
#[class(name = "BlockThread", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, handlers)]
pub struct BlockThread {}

/// The longest time that a worker is blocked, in nanoseconds: a minute.
const LONGEST: i64 = 60_000_000_000;

impl Element for BlockThread {}

#[handlers]
impl BlockThread {
    /// Blocks the worker for the given number of seconds, at most 60.
    #[write(private, files)]
    fn block(&mut self, time: Nanos, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        if !(0..=LONGEST).contains(&time.0) {
            return Err("the time is 0 to 60 seconds".into());
        }
        cx.block(time.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn simulated_time_goes_on() {
        let mut kit = Kit::<BlockThread>::with_ports("", 0, 0).unwrap();
        let before = kit.with(|_, cx| cx.peek());
        kit.write("block", "1.5").unwrap();
        assert_eq!(kit.with(|_, cx| cx.peek()) - before, 1_500_000_000);
        for bad in ["60.1", "-1", "x", ""] {
            assert!(kit.write("block", bad).is_err(), "{bad}");
        }
    }
}
