// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks: real time, simulated time, and real time that is sped up or slowed down.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of time in nanoseconds since 1970.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Real time of this machine. It never runs backwards within a router.
    Real {
        /// When the machine's monotonic clock was at 0, in nanoseconds since 1970.
        epoch: i64,
    },
    /// Simulated time. It advances by `tick` with each reading, and jumps to the next timer when no task is ready.
    Simulated {
        /// The current time, in nanoseconds since 1970.
        now: i64,
        /// How far each reading advances the time, in nanoseconds.
        tick: i64,
    },
    /// Real time that is sped up or slowed down by a factor, from `start` on.
    Warped {
        /// When the factor was set.
        start: Instant,
        /// The router time at `start`, in nanoseconds since 1970.
        epoch: i64,
        /// Router seconds per real second.
        factor: f64,
    },
}

fn epoch() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

fn since(start: Instant) -> i64 {
    i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// The time of the machine's monotonic clock, in nanoseconds. Faster than [`Instant::elapsed`], which converts the time
/// several times.
#[inline]
fn monotonic() -> i64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}

impl Clock {
    /// The machine's time.
    pub fn real() -> Clock {
        Clock::Real { epoch: epoch().saturating_sub(monotonic()) }
    }
    /// Simulated time that starts at `start` nanoseconds since 1970 and advances by 1 ns with each reading.
    pub fn simulated(start: i64) -> Clock {
        Clock::ticking(start, 1)
    }
    /// Simulated time that advances by `tick` nanoseconds with each reading.
    pub fn ticking(start: i64, tick: u32) -> Clock {
        Clock::Simulated { now: start, tick: tick.into() }
    }
    /// Lets `factor` router seconds pass per real second from now on.
    pub fn warp(&mut self, factor: f64) {
        let epoch = self.now();
        *self = Clock::Warped { start: Instant::now(), epoch, factor };
    }
    /// Returns the time in nanoseconds since 1970. Each call advances simulated time by one tick.
    #[inline]
    pub fn now(&mut self) -> i64 {
        match self {
            Clock::Real { epoch } => epoch.saturating_add(monotonic()),
            Clock::Simulated { now, tick } => {
                *now = now.saturating_add(*tick);
                *now
            }
            Clock::Warped { start, epoch, factor } => {
                epoch.saturating_add((since(*start) as f64 * *factor) as i64)
            }
        }
    }
    /// Returns the time in nanoseconds since 1970, without advancing simulated time.
    #[inline]
    pub fn peek(&mut self) -> i64 {
        match self {
            Clock::Simulated { now, .. } => *now,
            _ => self.now(),
        }
    }
    /// Whether the time is simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Clock::Simulated { .. })
    }
    /// Sets simulated time to `t`, unless the simulated time is already later.
    pub fn jump(&mut self, t: i64) {
        if let Clock::Simulated { now, .. } = self {
            *now = t.max(*now);
        }
    }
    /// Returns how long the machine has to wait, in real time, until router time `t`.
    pub fn until(&mut self, t: i64) -> std::time::Duration {
        let ns = t.saturating_sub(self.now()).max(0);
        match self {
            Clock::Warped { factor, .. } if *factor > 0.0 => {
                std::time::Duration::from_secs_f64((ns as f64 / 1e9 / *factor).min(3600.0))
            }
            _ => std::time::Duration::from_nanos(ns.unsigned_abs()),
        }
    }
    /// The value of the `timewarp` handler.
    pub fn describe(&self) -> String {
        match self {
            Clock::Real { .. } => "1".into(),
            Clock::Simulated { .. } => "simulation".into(),
            Clock::Warped { factor, .. } => factor.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_counts_readings_and_jumps_ahead_only() {
        let mut c = Clock::simulated(1_000);
        assert_eq!((c.now(), c.now()), (1_001, 1_002));
        c.jump(5_000);
        c.jump(2_000);
        assert_eq!(c.now(), 5_001);
        assert_eq!((c.peek(), c.peek()), (5_001, 5_001));
        assert_eq!(c.until(5_010).as_nanos(), 8);
        assert_eq!(c.describe(), "simulation");
        let mut c = Clock::ticking(1_000, 50);
        assert_eq!((c.now(), c.peek(), c.now()), (1_050, 1_050, 1_100));
        let mut c = Clock::ticking(1_000, 0);
        assert_eq!((c.now(), c.now()), (1_000, 1_000));
    }

    #[test]
    fn real_and_warped_time_go_forward() {
        let mut c = Clock::real();
        let a = c.now();
        assert!(a > 1_600_000_000_000_000_000 && c.now() >= a);
        c.warp(1000.0);
        let a = c.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(c.now() - a >= 2_000_000_000);
        assert!(c.until(i64::MAX).as_secs() <= 3600);
    }
}
