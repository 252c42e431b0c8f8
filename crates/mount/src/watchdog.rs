// SPDX-License-Identifier: MIT OR Apache-2.0
//! A separate process that unmounts after the router was killed.

use crate::{kernel, place};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The message that the process prints once signals can no longer end it.
const READY: &str = "ready";
/// The byte that the router sends after it has unmounted by itself.
const DONE: u8 = b'.';

/// The router's handle on the watchdog process.
pub(crate) struct Watchdog {
    child: Child,
    /// The pipe to the process. It closes when the router ends, for whatever reason.
    line: ChildStdin,
}

impl Watchdog {
    /// Starts the process.
    pub(crate) fn start(mut command: Command, folder: &Path, source: &str) -> io::Result<Watchdog> {
        command.arg(folder).arg(source).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (line, said) = (child.stdin.take(), child.stdout.take());
        let mut first = String::new();
        if let Some(said) = said {
            BufReader::new(said).read_line(&mut first)?;
        }
        match line {
            Some(line) if first.trim_end() == READY => Ok(Watchdog { child, line }),
            _ => {
                // If the process has already ended, there is nothing to kill.
                let _ = child.kill();
                child.wait()?;
                Err(io::Error::other("it did not start"))
            }
        }
    }

    /// Makes the process unmount, and waits for it.
    pub(crate) fn unmount(mut self) {
        drop(self.line);
        // If the process cannot unmount, it reports that itself.
        let _ = self.child.wait();
    }

    /// Ends the process without unmounting.
    pub(crate) fn dismiss(mut self) {
        // If the process was killed, the write fails. In that case, nothing needs to be done.
        let _ = self.line.write_all(&[DONE]);
        drop(self.line);
        let _ = self.child.wait();
    }
}

/// Runs in a process of its own. Waits until the router has ended: the router holds the other end of standard input,
/// which closes at that time. Then unmounts the directory, if the router's mount is still the topmost one on it.
///
/// # Errors
/// A system call failed.
pub fn watch(folder: &Path, source: &str) -> io::Result<()> {
    // Signals that end the router (hang-up of a terminal, Ctrl-C, a service manager) may also reach this process, and
    // must not end it before the router. `setsid` gives it a session of its own, or fails if a shell has already made
    // it a group leader.
    let _ = rustix::process::setsid();
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    std::env::set_current_dir("/")?;
    println!("{READY}");
    io::stdout().flush()?;
    let mut heard = Vec::new();
    io::stdin().lock().read_to_end(&mut heard)?;
    if heard.contains(&DONE) || place::mounted(folder)?.is_none_or(|m| m.source != source) {
        return Ok(());
    }
    kernel::unmount(folder).map_err(io::Error::other)
}
