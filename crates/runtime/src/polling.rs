// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how long a worker polls: how long it runs tasks that find no packet.

use crate::mail::Inbox;
use crate::profile::monotonic;
use std::sync::atomic::Ordering;

/// The polling of one worker. Rounds of the run loop in which all tasks find packets cost one comparison, and turns of
/// tasks that find packets cost nothing.
#[derive(Default)]
pub(crate) struct Polling {
    /// The number of turns in this round.
    pub turns: usize,
    /// The number of turns in this round that found no packet.
    pub empty: usize,
    /// When the last round ended, if a turn of it found no packet. In nanoseconds.
    mark: Option<u64>,
}

impl Polling {
    /// Ends a round of the run loop. If turns found no packet, adds their share of the round to the time of the worker.
    #[inline]
    pub fn end_round(&mut self, inbox: Option<&Inbox>) {
        if self.empty > 0 {
            self.end_at(monotonic(), inbox);
        } else {
            self.mark = None;
        }
    }

    /// Ends a round in which turns found no packet. `now` is the time in nanoseconds. The first such round is not
    /// counted, because its beginning is not known.
    fn end_at(&mut self, now: u64, inbox: Option<&Inbox>) {
        if let (Some(since), Some(inbox)) = (self.mark, inbox) {
            let round = now.saturating_sub(since) as f64;
            let share = self.empty as f64 / self.turns.max(self.empty) as f64;
            // No other thread writes this counter, so a load and a store suffice.
            let before = inbox.polled.load(Ordering::Relaxed);
            inbox.polled.store(before.saturating_add((round * share) as u64), Ordering::Relaxed);
        }
        self.mark = Some(now);
        self.empty = 0;
    }

    /// Notes that the worker sleeps, so that the sleep does not count as part of the next round.
    pub fn sleep(&mut self) {
        self.mark = None;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sleep::Sleeper;

    #[test]
    fn the_share_of_empty_turns_is_polling() {
        let (inbox, _) = Inbox::new(Sleeper::new().unwrap().waker());
        let polled = || inbox.polled.load(Ordering::Relaxed);
        let mut p = Polling::default();
        let round = |p: &mut Polling, (turns, empty), now| {
            (p.turns, p.empty) = (turns, empty);
            p.end_at(now, Some(&inbox));
        };
        round(&mut p, (128, 128), 1000);
        assert_eq!(polled(), 0, "the beginning of the first round is not known");
        round(&mut p, (128, 128), 1500);
        assert_eq!(polled(), 500);
        round(&mut p, (128, 32), 2500);
        assert_eq!(polled(), 750, "a quarter of the turns");
        p.sleep();
        round(&mut p, (1, 1), 9000);
        assert_eq!(polled(), 750, "the sleep does not count");
        p.end_round(Some(&inbox));
        round(&mut p, (1, 1), 9500);
        assert_eq!(polled(), 750, "a round without empty turns came between");
        round(&mut p, (0, 1), 9600);
        assert_eq!(polled(), 850, "more empty turns than turns are all of them");
        round(&mut p, (1, 1), 5);
        assert_eq!(polled(), 850, "a clock that goes back does not panic");
    }
}
