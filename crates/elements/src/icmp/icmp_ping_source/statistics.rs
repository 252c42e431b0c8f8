// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records when requests were sent, and how long their replies took.

use castanet_element::prelude::*;
use castanet_spec::ValueKind;

/// The sending times of requests, and the round trip times, all in nanoseconds.
#[derive(Counts, Debug, Default)]
pub(super) struct Statistics {
    /// For each sequence number, the time in nanoseconds at which its request was sent, plus 1. 0 if no request with
    /// this number waits for a reply. At most 65536 entries.
    waiting: Vec<i64>,
    /// Replies received.
    #[count(unit = "packets", hidden)]
    received: Count,
    shortest: u64,
    longest: u64,
    sum: u128,
    sum_of_squares: u128,
}

impl Statistics {
    /// Records that the request with a sequence number was sent at time `now`.
    pub(super) fn sent(&mut self, sequence: u16, now: i64) {
        let i = usize::from(sequence);
        if i >= self.waiting.len() {
            self.waiting.resize(i + 1, 0);
        }
        if let Some(w) = self.waiting.get_mut(i) {
            *w = now.saturating_add(1);
        }
    }

    /// Takes over the times of the old element (hot swap). The number of replies is a count, and the router moves all
    /// counts itself.
    pub(super) fn take(&mut self, old: &mut Statistics) {
        std::mem::swap(self, old);
        std::mem::swap(&mut self.received, &mut old.received);
    }

    /// Records that a reply arrived at time `now`. Returns its round trip time in nanoseconds, or none if no request
    /// waits for it.
    pub(super) fn received(&mut self, sequence: u16, now: i64) -> Option<u64> {
        let sent = self.waiting.get_mut(usize::from(sequence)).filter(|w| **w != 0)?;
        // If the clock was set back, the round trip time is 0.
        let trip = u64::try_from(now.saturating_sub(*sent - 1)).unwrap_or(0);
        *sent = 0;
        self.shortest = if self.received.get() == 0 { trip } else { self.shortest.min(trip) };
        self.longest = self.longest.max(trip);
        self.received.add(1);
        self.sum = self.sum.saturating_add(trip.into());
        self.sum_of_squares =
            self.sum_of_squares.saturating_add(u128::from(trip).saturating_mul(trip.into()));
        Some(trip)
    }

    /// Returns the shortest round trip time, in nanoseconds.
    pub(super) fn min(&self) -> u64 {
        self.shortest
    }
    /// Returns the longest round trip time, in nanoseconds.
    pub(super) fn max(&self) -> u64 {
        self.longest
    }
    /// Returns the mean round trip time, in nanoseconds.
    pub(super) fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.received.get().max(1))).unwrap_or(u64::MAX)
    }

    /// Returns a summary in the format that ping prints at the end of a run.
    pub(super) fn summary(&self, sent: u64) -> String {
        let received = self.received.get();
        let Some(lost) = sent.saturating_sub(received).saturating_mul(100).checked_div(sent) else {
            return format!("{sent} packets transmitted, {received} received\n");
        };
        let first = format!("{sent} packets transmitted, {received} received, {lost}% packet loss\n");
        if received == 0 {
            return first;
        }
        let mean = self.sum as f64 / received as f64;
        let deviation = (self.sum_of_squares as f64 / received as f64 - mean * mean).max(0.0).sqrt();
        let ms = |ns: f64| ns / 1e6;
        let (min, max) = (ms(self.shortest as f64), ms(self.longest as f64));
        let (avg, mdev) = (ms(mean), ms(deviation));
        format!("{first}rtt min/avg/max/mdev = {min:.3}/{avg:.3}/{max:.3}/{mdev:.3}\n")
    }
}

/// A round trip time in nanoseconds, which handlers show with a suitable unit.
pub(super) struct RoundTrip(pub u64);

impl Show for RoundTrip {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        let us = self.0 / 1000;
        match us {
            0 if self.0 == 0 => "0s".into(),
            0..1000 => format!("{us}us"),
            1000..1_000_000 => format!("{}.{:03}ms", us / 1000, us % 1000),
            _ => format!("{}.{:06}s", us / 1_000_000, us % 1_000_000),
        }
    }
}
