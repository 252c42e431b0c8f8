// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures and sends frames on a link.

use crate::process::Process;
use std::collections::VecDeque;
use std::io::Write as _;
use std::process::{ChildStdin, Command};
use std::time::{Duration, Instant};

/// Timeout, longer than a frame needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(100);

/// A link counts as quiet after the helper has answered this many `sync` requests without a new frame.
const CALM: usize = 10;

/// A received frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Time of arrival, in seconds since 1970.
    pub time: f64,
    /// Whether the transport checksum was left to the hardware.
    pub partial: bool,
    /// The bytes of the frame.
    pub bytes: Vec<u8>,
}

/// A device of a host, to send frames and capture those that arrive.
pub struct Wire {
    process: Process,
    input: ChildStdin,
    /// The number of bytes of the helper's output that have been read.
    read: usize,
    waiting: VecDeque<Frame>,
    /// The number of `sync` requests to the helper, and the number it has answered.
    syncs: (usize, usize),
}

fn parsed(line: &str) -> Option<Frame> {
    let mut words = line.split(' ');
    let time = words.next()?.parse().ok()?;
    let partial = words.next()? == "1";
    let hex = words.next().unwrap_or_default();
    let bytes = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok());
    Some(Frame { time, partial, bytes: bytes.collect::<Option<_>>()? })
}

impl Wire {
    /// Starts the helper command that captures and sends frames.
    pub(crate) fn new(command: Command) -> Wire {
        let mut process = Process::start(command);
        process.wait_for("ready\n", PATIENCE);
        let input = process.stdin().unwrap_or_else(|| panic!("the input is taken"));
        Wire { process, input, read: "ready\n".len(), waiting: VecDeque::new(), syncs: (0, 0) }
    }

    /// Sends a frame.
    ///
    /// # Panics
    /// The device does not accept the frame.
    pub fn send(&mut self, frame: &[u8]) {
        self.send_all(&[frame.to_vec()]);
    }

    /// Sends frames back to back.
    ///
    /// # Panics
    /// The device does not accept the frames.
    pub fn send_all(&mut self, frames: &[Vec<u8>]) {
        let mut lines = String::new();
        for frame in frames {
            frame.iter().for_each(|b| lines.push_str(&format!("{b:02x}")));
            lines.push('\n');
        }
        self.input.write_all(lines.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{}", self.process.stderr()));
        assert_eq!(self.process.stderr(), "");
    }

    /// Queues the frames that have arrived since the last call.
    fn take(&mut self) {
        let text = self.process.stdout_from(self.read);
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole;
        for line in text.get(..whole).unwrap_or_default().lines() {
            if line == "synced" {
                self.syncs.1 += 1;
                continue;
            }
            self.waiting.push_back(parsed(line).unwrap_or_else(|| panic!("not a frame: {line}")));
        }
    }

    /// Waits for a frame for which `wanted` returns a value. Other frames are discarded.
    pub fn find<T>(&mut self, limit: Duration, mut wanted: impl FnMut(&Frame) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit;
        loop {
            self.take();
            while let Some(frame) = self.waiting.pop_front() {
                if let Some(found) = wanted(&frame) {
                    return Some(found);
                }
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for a frame for which `wanted` returns a value.
    ///
    /// # Panics
    /// No such frame arrives in time.
    #[track_caller]
    pub fn expect<T>(&mut self, what: &str, wanted: impl FnMut(&Frame) -> Option<T>) -> T {
        let found = self.find(PATIENCE, wanted);
        assert_eq!(self.process.stderr(), "");
        found.unwrap_or_else(|| panic!("no {what} came; what came:\n{}", self.process.stdout()))
    }

    /// Waits until the helper has printed all frames that have arrived.
    fn sync(&mut self) {
        self.input.write_all(b"sync\n").unwrap_or_else(|e| panic!("{e}\n{}", self.process.stderr()));
        self.syncs.0 += 1;
        let deadline = Instant::now() + PATIENCE;
        while self.syncs.1 < self.syncs.0 {
            assert!(Instant::now() < deadline, "the wire does not answer: {}", self.process.stderr());
            self.take();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns all frames not yet read, and those that arrive during the time `quiet`. After this time, also collects
    /// the frames that arrive until the link is quiet, that is, until the helper has answered ten requests without a
    /// new frame in between. On a busy machine, these requests take longer. If `quiet` is zero, only waits until the
    /// frames that this wire has sent have left, and returns all frames that have arrived.
    pub fn rest(&mut self, quiet: Duration) -> Vec<Frame> {
        let mut all = Vec::new();
        self.find(quiet, |frame| {
            all.push(frame.clone());
            None::<()>
        });
        let rounds = if quiet.is_zero() { 1 } else { CALM };
        // The number of iterations is limited, because a link on which frames are sent all the time never gets quiet.
        for _ in 0..CALM {
            let before = all.len();
            for _ in 0..rounds {
                self.sync();
                all.extend(self.waiting.drain(..));
            }
            if quiet.is_zero() || all.len() == before {
                break;
            }
        }
        all
    }
}
