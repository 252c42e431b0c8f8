// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that a trace or a tap records, until its client has read them.

use castanet_element::HandlerError;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The maximum number of bytes in a log. Lines beyond that are lost.
const BYTES: usize = 16 << 20;
/// How long a client may read nothing before it is considered disconnected.
const LEASE: Duration = Duration::from_secs(30);

/// The lines that a trace or tap records. Each has a number, from 0 on.
pub(crate) struct Log {
    lines: VecDeque<String>,
    /// The number of the first line in `lines`.
    first: u64,
    bytes: usize,
    /// The number of lines that were lost.
    lost: u64,
    /// When the client has read last.
    read: Instant,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { lines: VecDeque::new(), first: 0, bytes: 0, lost: 0, read: Instant::now() }
    }
    pub(crate) fn push(&mut self, line: String) {
        if self.bytes.saturating_add(line.len()) > BYTES {
            self.lost += 1;
            return;
        }
        self.bytes += line.len();
        self.lines.push_back(line);
    }
    /// Whether the client has read nothing for so long that it is considered disconnected.
    pub(crate) fn is_abandoned(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.read) > LEASE
    }
    /// Returns the lines from number `from` on, and forgets those before. The first line of the text has the number of
    /// the first line that follows, the number of lost lines, and `state`.
    pub(crate) fn read(&mut self, from: &str, state: &str) -> Result<String, HandlerError> {
        let from: u64 =
            from.parse().map_err(|_| HandlerError::from(format!("'{from}' is not the number of a line")))?;
        while self.first < from
            && let Some(line) = self.lines.pop_front()
        {
            self.bytes -= line.len();
            self.first += 1;
        }
        self.read = Instant::now();
        let mut out = format!("{}\t{}\t{state}\n", self.first, self.lost);
        for line in &self.lines {
            out.push_str(line);
            out.push('\n');
        }
        Ok(out)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_until_they_are_read() {
        let mut log = Log::new();
        ["a", "b", "c"].into_iter().for_each(|l| log.push(l.to_string()));
        assert_eq!(log.read("0", "on").unwrap(), "0\t0\ton\na\nb\nc\n");
        assert_eq!(log.read("0", "on").unwrap(), "0\t0\ton\na\nb\nc\n", "the client may ask again");
        assert_eq!(log.read("2", "on").unwrap(), "2\t0\ton\nc\n");
        assert_eq!(log.read("9", "over").unwrap(), "3\t0\tover\n");
        assert!(log.read("x", "on").is_err());
        assert_eq!(log.bytes, 0);
    }

    #[test]
    fn a_log_that_nobody_reads_is_bounded() {
        let mut log = Log::new();
        let line = "x".repeat(BYTES / 4);
        (0..7).for_each(|_| log.push(line.clone()));
        assert!(log.read("4", "on").unwrap() == "4\t3\ton\n");
        let read = log.read;
        assert!(!log.is_abandoned(read) && !log.is_abandoned(read + LEASE));
        assert!(log.is_abandoned(read + LEASE + Duration::from_secs(1)));
    }
}
