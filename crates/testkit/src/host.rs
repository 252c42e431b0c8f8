// SPDX-License-Identifier: MIT OR Apache-2.0
//! Further network namespaces for a test, which act as other hosts.

use crate::namespace::run;
use std::process::{Child, Command, Stdio};

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
            std::thread::sleep(std::time::Duration::from_millis(1));
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
    pub fn run(&self, line: &str) -> String {
        run(&format!("nsenter --net={} -- {line}", self.file()))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
