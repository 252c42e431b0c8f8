// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of a measurement, with line-based communication. A process is killed when its [`Process`] is dropped.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A running process. Dropping it kills the process.
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    complaints: Arc<Mutex<String>>,
}

impl Process {
    /// Starts a command; messages refer to it by `name`.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(name: &str, mut command: Command) -> Result<Process, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        let (send, lines) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                lines.map_while(|line| send.send(line).ok()).for_each(drop);
            });
        }
        let complaints = Arc::<Mutex<String>>::default();
        if let Some(mut err) = child.stderr.take() {
            let complaints = complaints.clone();
            thread::spawn(move || {
                let mut some = [0; 1024];
                while let Ok(n @ 1..) = err.read(&mut some) {
                    let text = String::from_utf8_lossy(some.get(..n).unwrap_or_default()).into_owned();
                    complaints.lock().push_str(&text);
                }
            });
        }
        let input = child.stdin.take();
        Ok(Process { name: name.into(), child, input, lines, complaints })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the process has written to standard error so far.
    pub fn complaints(&self) -> String {
        self.complaints.lock().trim_end().to_string()
    }

    fn error(&self, what: &str) -> String {
        let complaints = self.complaints();
        if complaints.is_empty() {
            format!("{}: {what}", self.name)
        } else {
            format!("{}: {complaints}", self.name)
        }
    }

    /// Writes a line to the process.
    ///
    /// # Errors
    /// The process has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = self.input.as_mut().map(|input| writeln!(input, "{line}").and_then(|()| input.flush()));
        if let Some(Ok(())) = told { Ok(()) } else { Err(self.error("it has ended")) }
    }

    /// Waits for the next line of the process's output.
    ///
    /// # Errors
    /// The process ends, or no line appears in time.
    pub fn line(&self, limit: Duration) -> Result<String, String> {
        self.lines.recv_timeout(limit).map_err(|e| match e {
            RecvTimeoutError::Timeout => self.error("it does not answer"),
            RecvTimeoutError::Disconnected => {
                // Standard error may arrive shortly after standard output has ended.
                thread::sleep(Duration::from_millis(20));
                self.error("it has ended")
            }
        })
    }

    /// Waits for the process to end successfully.
    ///
    /// # Errors
    /// The process fails, or does not end in time.
    pub fn wait(mut self, limit: Duration) -> Result<(), String> {
        drop(self.input.take());
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => {
                    thread::sleep(Duration::from_millis(20));
                    return Err(self.error("it failed"));
                }
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                Ok(None) => return Err(self.error("it does not end")),
                Err(e) => return Err(format!("{}: {e}", self.name)),
            }
        }
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(text: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        Process::start("shell", command).unwrap()
    }

    #[test]
    fn speaks_by_lines() {
        let mut p = shell("while read a; do echo got $a; done; exit 0");
        for word in ["one", "two"] {
            p.tell(word).unwrap();
            assert_eq!(p.line(SOON).unwrap(), format!("got {word}"));
        }
        assert!(!p.has_ended());
        p.wait(SOON).unwrap();
    }

    #[test]
    fn what_goes_wrong_is_told() {
        assert_eq!(shell("echo no room >&2; exit 3").wait(SOON).unwrap_err(), "shell: no room");
        assert_eq!(shell("exit 3").wait(SOON).unwrap_err(), "shell: it failed");
        assert_eq!(shell("exit 0").line(SOON).unwrap_err(), "shell: it has ended");
        assert_eq!(
            shell("exec sleep 60").line(Duration::from_millis(1)).unwrap_err(),
            "shell: it does not answer"
        );
        assert_eq!(shell("exec sleep 60").wait(Duration::ZERO).unwrap_err(), "shell: it does not end");
        assert!(Process::start("nothing", Command::new("/no/such/program")).is_err());
    }
}
