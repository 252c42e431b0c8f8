// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts made of network namespaces, and what runs on them.

use crate::process::Process;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Longer than anything takes to start, however slow the machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Starts processes on hosts, by a program that does parts in processes of its own.
pub struct Launcher {
    /// The castanet command.
    pub program: PathBuf,
    /// Its words before those of a part.
    pub part: Vec<String>,
}

impl Launcher {
    /// A process that does a part.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn part(&self, name: &str, words: &[&str]) -> Result<Process, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.part).args(words).env("LC_ALL", "C");
        Process::start(name, command)
    }

    /// A host, beside that of another process.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub fn host(&self, beside: Option<u32>) -> Result<Process, String> {
        let beside = beside.map(|pid| pid.to_string());
        let words: Vec<&str> = ["hold"].into_iter().chain(beside.as_deref()).collect();
        let process = self.part("a host for the measurement cannot be made", &words)?;
        process.line(PATIENCE)?;
        // It answers nothing that nobody asked.
        let quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ -e $f ] && echo 1 > $f; done; \
                     for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done; echo 0 > /proc/sys/net/ipv4/ip_forward";
        self.shell(&process, quiet)?;
        Ok(process)
    }

    /// Runs a shell script on a host.
    ///
    /// # Errors
    /// When it fails.
    pub fn shell(&self, host: &Process, script: &str) -> Result<(), String> {
        let pid = host.id().to_string();
        self.part("sh", &["enter", &pid, "sh", "-c", script])?.wait(PATIENCE)
    }

    /// Runs `ip` (iproute2) on a host, once for each line.
    ///
    /// # Errors
    /// When it fails.
    pub fn ip(&self, host: &Process, lines: &[String]) -> Result<(), String> {
        let pid = host.id().to_string();
        let mut process = self.part("ip", &["enter", &pid, "ip", "-batch", "-"])?;
        let told = lines.iter().try_for_each(|line| process.tell(line));
        // Why it ended, if it did, it tells better than a broken pipe.
        process.wait(PATIENCE).and(told).map_err(|e| {
            if e.contains("No such file") { format!("{e}; the program ip is part of iproute2") } else { e }
        })
    }

    /// Runs a configuration on a host, on one processor if that is told.
    ///
    /// # Errors
    /// When it cannot be started.
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
