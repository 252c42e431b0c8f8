// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor and real time of this process, for `click --time`.

use std::time::{Duration, Instant};

/// The unit of process times in /proc: 1/100 s on all current architectures (`USER_HZ`).
const TICKS: u64 = 100;

/// A point in time, with the processor time used until then.
pub struct Times {
    user: Duration,
    system: Duration,
    at: Instant,
}

/// The user, system and real time between two points in time.
#[derive(Debug, PartialEq, Eq)]
pub struct Took {
    user: Duration,
    system: Duration,
    real: Duration,
}

/// Parses user and system time from the text of `/proc/self/stat`. The program name, in parentheses, may
/// contain any characters.
fn parse(stat: &str) -> Option<(Duration, Duration)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
    };
    Some((next()?, next()?))
}

impl Times {
    /// Returns the current time. Without `/proc` the processor times are 0.
    pub fn now() -> Times {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user, system) = parse(&stat).unwrap_or_default();
        Times { user, system, at: Instant::now() }
    }
    /// Returns the span from this point in time to a later one.
    pub fn until(&self, end: &Times) -> Took {
        Took {
            user: end.user.saturating_sub(self.user),
            system: end.system.saturating_sub(self.system),
            real: end.at.saturating_duration_since(self.at),
        }
    }
}

impl Took {
    /// Formats user, system and real time as in `0.010u 0.000s 0:01.50`.
    pub fn text(&self) -> String {
        let part = |d: Duration| format!("{}.{:03}", d.as_secs(), d.subsec_millis());
        let (seconds, hundredths) = (self.real.as_secs(), self.real.subsec_millis() / 10);
        let real = format!("{}:{:02}.{hundredths:02}", seconds / 60, seconds % 60);
        format!("{}u {}s {real}", part(self.user), part(self.system))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0";
        let (user, system) = (Duration::from_millis(1230), Duration::from_millis(450));
        assert_eq!(parse(stat), Some((user, system)));
        for bad in ["", "7 (a", "7 (a) S 1 2", "7 (a) S 1 2 3 4 5 6 7 8 9 10 x y"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let took = Took { user, system, real: Duration::from_millis(61_059) };
        assert_eq!(took.text(), "1.230u 0.450s 1:01.05");
        let now = Times::now();
        assert!(now.until(&now).text().ends_with("s 0:00.00"));
    }
}
