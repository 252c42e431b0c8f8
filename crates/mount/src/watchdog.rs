// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process beside the router that unmounts when the router was killed.

use crate::{kernel, place};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the process says when nothing but the end of the router can end it.
const READY: &str = "ready";
/// What it hears when the router has unmounted by itself.
const DONE: u8 = b'.';

/// The process, as the router has it.
pub(crate) struct Watchdog {
    child: Child,
    /// It ends when this process does, however that happens.
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
                // It may have ended already, which is what is wrong.
                let _ = child.kill();
                child.wait()?;
                Err(io::Error::other("it did not start"))
            }
        }
    }

    /// Has the process unmount, and waits for it.
    pub(crate) fn unmount(mut self) {
        drop(self.line);
        // A process that cannot unmount says so itself.
        let _ = self.child.wait();
    }

    /// Ends the process: there is nothing left to unmount.
    pub(crate) fn dismiss(mut self) {
        // If somebody killed it there is nobody to hear this, and nothing to be done.
        let _ = self.line.write_all(&[DONE]);
        drop(self.line);
        let _ = self.child.wait();
    }
}

/// Waits, as a process of its own, until the router that has its standard input is gone; then unmounts the folder if it is
/// still what that router mounted.
///
/// # Errors
/// When the system refuses.
pub fn watch(folder: &Path, source: &str) -> io::Result<()> {
    // What ends the router from outside (a terminal that closes, Ctrl-C, a service manager) comes here too, and must not
    // end this process first. It leads a group already when it was started by a shell.
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
