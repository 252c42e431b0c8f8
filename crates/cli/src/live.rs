// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status line on a terminal while something takes long.

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
    /// Starts drawing the elapsed time between two texts. If no thread can be started, there is no line; the work itself
    /// is not affected.
    pub fn start(what: &'static str, hint: &'static str) -> Line {
        let (stop, stopped) = channel::<()>();
        let start = Instant::now();
        let thread = std::thread::Builder::new().name("live".into()).spawn(move || {
            // Short runs need no line.
            let mut wait = Duration::from_millis(700);
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let s = start.elapsed().as_secs();
                draw(&format!("\r\x1b[K{what} {}:{:02}{hint}", s / 60, s % 60));
                wait = Duration::from_secs(1);
            }
            if start.elapsed() > Duration::from_millis(700) {
                draw("\r\x1b[K");
            }
        });
        Line { stop: Some(stop), thread: thread.ok() }
    }
}

/// Writes to the terminal in one call, so that no message of another thread comes in between.
fn draw(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}
