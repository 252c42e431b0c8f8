// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status line on a terminal while a router runs.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A line on standard error, redrawn every second and erased when dropped.
pub struct Line {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    /// Starts drawing. If no thread can be started, there is no line; the run itself is not affected.
    pub fn start() -> Line {
        let (stop, stopped) = channel::<()>();
        let start = Instant::now();
        let thread = std::thread::Builder::new().name("live".into()).spawn(move || {
            // Short runs need no line.
            let mut wait = Duration::from_millis(700);
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let s = start.elapsed().as_secs();
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "\r\x1b[Krunning {}:{:02}, Ctrl-C stops", s / 60, s % 60)
                    .and_then(|()| err.flush());
                wait = Duration::from_secs(1);
            }
            if start.elapsed() > Duration::from_millis(700) {
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
            }
        });
        Line { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}
