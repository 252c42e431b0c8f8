// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that owns a filter in the kernel. The owner shows whether a filter is in use or was left
//! behind by a killed process.

use std::os::unix::fs::MetadataExt;

/// A process. The start time distinguishes it from a later process with the same ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process ID.
    pub pid: u32,
    /// The lower 32 bits of the start time, in kernel ticks since boot.
    pub start: u32,
    /// The inode number of the PID namespace in which the ID is valid.
    pub namespace: u32,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The process runs.
    Alive,
    /// The process has ended.
    Ended,
    /// The process belongs to another PID namespace, so this process cannot see it.
    Unknown,
}

fn namespace() -> Option<u32> {
    // Inode numbers of namespaces are 32 bits wide.
    std::fs::metadata("/proc/self/ns/pid").ok().map(|m| m.ino() as u32)
}

/// The start time of a running process (proc_pid_stat(5): fields 3 and 22).
fn started(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 2, the program's name in parentheses, may contain any characters. So search for the last parenthesis.
    let mut fields = text.get(text.rfind(')')?..)?.split_whitespace().skip(1);
    let state = fields.next()?;
    let start: u64 = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start as u32)
}

impl Owner {
    /// Returns the process with this ID; `None` if it is not visible.
    pub fn of(pid: u32) -> Option<Owner> {
        Some(Owner { pid, start: started(pid)?, namespace: namespace()? })
    }
    /// Returns this process. If `/proc` is missing, the state of the returned owner is always unknown.
    pub fn this() -> Owner {
        let pid = std::process::id();
        Owner::of(pid).unwrap_or(Owner { pid, start: 0, namespace: 0 })
    }
    /// The state of the process.
    pub fn fate(&self) -> Fate {
        match namespace() {
            Some(here) if here == self.namespace => match started(self.pid) {
                Some(start) if start == self.start => Fate::Alive,
                _ => Fate::Ended,
            },
            _ => Fate::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_is_known_until_it_ends() {
        let me = Owner::this();
        assert_eq!((me.pid, me.fate()), (std::process::id(), Fate::Alive));
        // Simulate that the ID now belongs to another process.
        assert_eq!(Owner { start: me.start ^ 1, ..me }.fate(), Fate::Ended);
        assert_eq!(Owner { namespace: me.namespace ^ 1, ..me }.fate(), Fate::Unknown);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let owner = Owner::of(child.id()).unwrap();
        assert_eq!(owner.fate(), Fate::Alive);
        child.kill().unwrap();
        // Wait until the child has ended. It stays a zombie until `wait` is called below.
        while owner.fate() == Fate::Alive {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!((owner.fate(), Owner::of(owner.pid)), (Fate::Ended, None));
    }
}
