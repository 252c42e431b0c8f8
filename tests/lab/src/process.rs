// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands with a time limit, stopped by their process id.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;
use std::io::Read;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time that a process has to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(100);

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Whether the exit code is 0.
    pub fn ok(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns the standard output of a command that must have succeeded.
    ///
    /// # Panics
    /// The command failed.
    #[track_caller]
    pub fn good(self) -> String {
        assert!(self.ok(), "exit {:?}\n{}{}", self.code, self.stdout, self.stderr);
        self.stdout
    }
}

/// The output of a process so far.
type Text = Arc<Mutex<Vec<u8>>>;

/// A running command. Dropping it kills the process.
pub struct Process {
    name: String,
    child: Child,
    stdout: Text,
    stderr: Text,
    readers: Vec<JoinHandle<()>>,
}

fn collect(mut from: impl Read + Send + 'static, to: &Text) -> JoinHandle<()> {
    let to = to.clone();
    thread::spawn(move || {
        let mut some = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut some) {
            to.lock().extend_from_slice(some.get(..n).unwrap_or_default());
        }
    })
}

fn text(of: &Text) -> String {
    String::from_utf8_lossy(&of.lock()).into_owned()
}

impl Process {
    /// Starts a command. Its input is a pipe, see [`Process::stdin`].
    ///
    /// # Panics
    /// The command cannot be started.
    pub fn start(mut command: Command) -> Process {
        let name = format!("{command:?}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (stdout, stderr) = (Text::default(), Text::default());
        let readers = [
            child.stdout.take().map(|from| collect(from, &stdout)),
            child.stderr.take().map(|from| collect(from, &stderr)),
        ];
        Process { name, child, stdout, stderr, readers: readers.into_iter().flatten().collect() }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes the process's standard input. Dropping it signals end of input.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// Standard output after its first `at` bytes.
    pub fn stdout_from(&self, at: usize) -> String {
        let all = self.stdout.lock();
        String::from_utf8_lossy(all.get(at..).unwrap_or_default()).into_owned()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until a text has appeared on either output.
    ///
    /// # Panics
    /// The process ends first, or the time limit is exceeded.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait().is_ok_and(|s| s.is_some());
            if self.stdout().contains(what) || self.stderr().contains(what) {
                return;
            }
            if ended || Instant::now() > deadline {
                panic!("{}: no '{what}' in\n{}{}", self.name, self.stdout(), self.stderr());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    fn output(&mut self, status: Option<ExitStatus>) -> Output {
        self.readers.drain(..).for_each(|r| drop(r.join()));
        Output { code: status.and_then(|s| s.code()), stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits until the process ends.
    ///
    /// # Panics
    /// The time limit is exceeded; the process is then killed.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Output {
        drop(self.stdin());
        match self.status(limit) {
            Some(status) => self.output(Some(status)),
            None => panic!("{}: still runs after {limit:?}\n{}{}", self.name, self.stdout(), self.stderr()),
        }
    }

    /// Sends SIGTERM and returns the result.
    ///
    /// # Panics
    /// The process does not end in time; it is then killed.
    #[track_caller]
    pub fn stop(mut self) -> Output {
        if let Ok(id) = i32::try_from(self.id()) {
            // The process may already have ended; the result shows that.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        match self.status(FAREWELL) {
            Some(status) => self.output(Some(status)),
            None => panic!("{}: does not end\n{}{}", self.name, self.stdout(), self.stderr()),
        }
    }

    /// Returns the number of voluntary context switches of all threads.
    pub fn sleeps(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let status = threads.filter_map(|t| std::fs::read_to_string(t.path().join("status")).ok());
        // The line is `voluntary_ctxt_switches:  12` (proc_pid_status(5)).
        let count = |text: String| {
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse::<u64>().ok()
        };
        status.filter_map(count).sum()
    }

    /// Returns the user and system CPU time used.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        // utime and stime, fields 14 and 15 of the line (proc_pid_stat(5)), in hundredths of a second.
        let ticks =
            |n: usize| after_name.split_whitespace().nth(n).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
