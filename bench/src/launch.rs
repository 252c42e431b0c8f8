// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts made of network namespaces, and processes on them.

use crate::process::Process;
use castanet_control::Client;
use castanet_control::client::Address;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Timeout, longer than any start needs even on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Starts processes on hosts. Each process runs this program and performs one part of the measurement.
pub struct Launcher {
    /// The castanet command.
    pub program: PathBuf,
    /// The subcommand, as words, with which this program performs a part of the measurement. The arguments of the part
    /// are appended.
    pub part: Vec<String>,
}

impl Launcher {
    /// Starts a subprocess that performs a part of the measurement.
    ///
    /// # Errors
    /// The subprocess cannot be started.
    pub fn part(&self, name: &str, words: &[&str]) -> Result<Process, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.part).args(words).env("LC_ALL", "C");
        Process::start(name, command)
    }

    /// Creates a host. `beside` is the ID of the process that holds another host. If it is given, the new host is in
    /// that host's user namespace.
    ///
    /// # Errors
    /// The kernel does not permit it.
    pub fn host(&self, beside: Option<u32>) -> Result<Process, String> {
        let beside = beside.map(|pid| pid.to_string());
        let words: Vec<&str> = ["hold"].into_iter().chain(beside.as_deref()).collect();
        let process = self.part("a host for the measurement cannot be made", &words)?;
        process.line(PATIENCE)?;
        // Disables IPv6, reverse-path filtering and forwarding, so that the host sends no packets of its own.
        let quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ -e $f ] && echo 1 > $f; done; \
                     for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done; echo 0 > /proc/sys/net/ipv4/ip_forward";
        self.shell(&process, quiet)?;
        Ok(process)
    }

    /// Runs a shell script on a host.
    ///
    /// # Errors
    /// The script fails.
    pub fn shell(&self, host: &Process, script: &str) -> Result<(), String> {
        let pid = host.id().to_string();
        self.part("sh", &["enter", &pid, "sh", "-c", script])?.wait(PATIENCE)
    }

    /// Runs commands of `ip` (iproute2) on a host, one per line.
    ///
    /// # Errors
    /// The program fails.
    pub fn ip(&self, host: &Process, lines: &[String]) -> Result<(), String> {
        let pid = host.id().to_string();
        let mut process = self.part("ip", &["enter", &pid, "ip", "-batch", "-"])?;
        let told = lines.iter().try_for_each(|line| process.tell(line));
        // If the process has ended, its own error is more useful than the broken pipe.
        process.wait(PATIENCE).and(told)
    }

    /// Runs a configuration on a host, bound to a CPU if one is given.
    ///
    /// # Errors
    /// The subprocess cannot be started.
    pub fn castanet(
        &self,
        host: &Process,
        processor: Option<usize>,
        words: &[&str],
    ) -> Result<Process, String> {
        let (pid, program) = (host.id().to_string(), self.program.to_string_lossy());
        let processor = processor.map(|p| p.to_string());
        let start = match &processor {
            Some(processor) => vec!["pinned", &pid, processor, &program],
            None => vec!["enter", &pid, &program],
        };
        let all: Vec<&str> =
            start.into_iter().chain(["run", "--quiet"]).chain(words.iter().copied()).collect();
        self.part("castanet run", &all)
    }
}

/// Connects to the control socket of a router that is starting.
///
/// # Errors
/// The router has ended, or does not answer.
pub fn connect(process: &mut Process, socket: &Path) -> Result<Client, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let why = match Client::connect(&Address::Unix(socket.to_path_buf()), PATIENCE) {
            Ok(client) => return Ok(client),
            Err(e) => e.to_string(),
        };
        if process.has_ended() {
            let complaints = process.complaints();
            return Err(if complaints.is_empty() { why } else { complaints });
        }
        if Instant::now() > deadline {
            return Err(why);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
