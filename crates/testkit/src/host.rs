// SPDX-License-Identifier: MIT OR Apache-2.0
//! Further network namespaces for a test, which act as other hosts.

use crate::namespace::run;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long [`Host::ping`] waits for the last replies.
const PATIENCE: Duration = Duration::from_secs(60);

/// A further network namespace. It ends when this value is dropped.
pub struct Host(Child);

impl Host {
    /// Creates a namespace without devices.
    pub fn new() -> Host {
        let child =
            Command::new("unshare").args(["-n", "sleep", "1000"]).stdout(Stdio::null()).spawn().unwrap();
        let host = Host(child);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        while std::fs::read_link(host.file()).map_or(true, |l| l == own) {
            std::thread::sleep(Duration::from_millis(1));
        }
        host
    }
    /// The process ID for `ip link set DEVICE netns`.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
    /// Runs a command line in the namespace.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        run(&format!("nsenter --net={} -- {line}", self.file()))
    }
    /// Sends echo requests with ping(8) and these arguments, and waits for all replies. Returns what ping prints.
    ///
    /// The kernel of the host counts the replies. After the first one, ping waits for the others only for two round trips or
    /// its interval (`-i`), whichever is longer, so it reports late replies as lost.
    ///
    /// # Panics
    /// A reply is missing after a minute, or ping has seen duplicates.
    #[track_caller]
    pub fn ping(&self, requests: u64, arguments: &str) -> String {
        self.try_ping(requests, arguments).unwrap_or_else(|e| panic!("{e}"))
    }
    /// Like [`Host::ping`], but returns an error if a reply is missing or there are duplicates.
    #[track_caller]
    pub fn try_ping(&self, requests: u64, arguments: &str) -> Result<String, String> {
        self.ping_within(PATIENCE, requests, arguments)
    }
    /// Like [`Host::try_ping`], but waits this long for the last replies.
    #[track_caller]
    pub fn ping_within(&self, patience: Duration, requests: u64, arguments: &str) -> Result<String, String> {
        let before = self.echo_replies();
        let wait = patience.as_secs_f64();
        // ping fails if all replies are missing.
        let out = self.run(&format!("ping -q -c {requests} -W {wait} {arguments} 2>&1 || true"));
        let replies = || self.echo_replies() - before;
        let end = Instant::now() + patience;
        while replies() < requests && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        match replies() {
            // Late replies to an earlier ping are counted, too.
            n if n >= requests && !out.contains("duplicates") => Ok(out),
            n => Err(format!("ping {arguments}: {n} of {requests} echo replies have arrived\n{out}")),
        }
    }
    /// The number of echo replies that the kernel of the host has received.
    pub fn echo_replies(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/net/snmp", self.id())).unwrap();
        let mut lines = text.lines().filter(|l| l.starts_with("Icmp: ")).map(|l| l.split(' '));
        let (names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
        let column = names.into_iter().position(|n| n == "InEchoReps").unwrap();
        values.nth(column).unwrap().parse().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
