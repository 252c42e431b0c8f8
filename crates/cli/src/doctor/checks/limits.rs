// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of the process: locked memory and open files.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::{Host, Limit};
use super::super::scope::Scope;
use super::Check;
use castanet_spec::HostUse;
use rustix::thread::CapabilitySet;

pub const CHECK: Check = Check { name: "limits", about: "limits of locked memory and of open files", look };

/// Bytes that the packet buffers of METHOD XDP may need.
const LOCKED: u64 = 64 << 20;
/// Open files of a router without devices and sockets: workers, timers, libraries, the process that opens devices.
const FILES: u64 = 64;
/// Open files of an element that opens a device, and of one that opens a socket, which may have several clients.
const DEVICE_FILES: u64 = 8;
const SOCKET_FILES: u64 = 64;

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    let (locked, may_lock) = host.kernel.limit(Limit::LockedMemory);
    let raises = CapabilitySet::SYS_RESOURCE | CapabilitySet::IPC_LOCK;
    // `castanet run` lifts the limit if it may.
    let raised = host.kernel.capabilities().intersects(raises) || may_lock.is_none();
    if let Some(locked) = locked.filter(|n| *n < LOCKED && !raised && scope.uses.iter().any(|u| u.xdp)) {
        out.push(Finding::by_hand(
            Severity::Error,
            format!("this process may lock {} KiB of memory (RLIMIT_MEMLOCK)", locked >> 10),
            format!(
                "the packet buffers of METHOD XDP need up to {} MiB, and the router does not start",
                LOCKED >> 20
            ),
            "as root, in the shell that starts the router: ulimit -l unlimited".into(),
            refusal::PROCESS,
        ));
    }
    let (files, most) = host.kernel.limit(Limit::Files);
    let needed = scope.users.iter().fold(FILES, |sum, u| {
        sum.saturating_add(if u.what == HostUse::Sockets { SOCKET_FILES } else { DEVICE_FILES })
    });
    if let Some(files) = files.filter(|n| *n < needed) {
        let rights = if most.is_some_and(|m| m < needed) { "as root, " } else { "" };
        out.push(Finding::by_hand(
            if scope.graph.is_some() { Severity::Warning } else { Severity::Note },
            format!("this process may open {files} files (RLIMIT_NOFILE), and {needed} may be needed"),
            "devices cannot be opened, or clients of sockets are refused",
            format!(
                "{rights}in the shell that starts the router: ulimit -n {}",
                needed.next_power_of_two().max(1024)
            ),
            refusal::PROCESS,
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn limits_that_are_too_low_are_told() {
        let memory = |current, capabilities| Fake {
            memory: (Some(current), Some(current)),
            capabilities,
            ..Fake::default()
        };
        let none = CapabilitySet::NET_RAW;
        let files = |n, most| Fake { files: (Some(n), Some(most)), ..Fake::default() };
        let (packet, xdp) =
            (Some("FromDevice(eth0) -> Discard"), Some("FromDevice(eth0, METHOD XDP) -> Discard"));
        table(
            &CHECK,
            vec![
                (memory(8 << 20, none), &[], packet, &[]),
                (
                    memory(8 << 20, none),
                    &[],
                    xdp,
                    &[(Severity::Error, "may lock 8192 KiB", "ulimit -l unlimited")],
                ),
                (memory(8 << 20, none | CapabilitySet::SYS_RESOURCE), &[], xdp, &[]),
                (memory(64 << 20, none), &[], xdp, &[]),
                (Fake { memory: (Some(8), None), capabilities: none, ..Fake::default() }, &[], xdp, &[]),
                (files(72, 72), &[], packet, &[]),
                (
                    files(71, 71),
                    &[],
                    packet,
                    &[(
                        Severity::Warning,
                        "may open 71 files (RLIMIT_NOFILE), and 72",
                        "as root, in the shell",
                    )],
                ),
                (
                    files(71, 4096),
                    &[],
                    packet,
                    &[(Severity::Warning, "71 files", "in the shell that starts the router: ulimit -n 1024")],
                ),
                (
                    files(127, 4096),
                    &[],
                    Some("Socket(TCP, 0.0.0.0, 8000) -> Discard"),
                    &[(Severity::Warning, "128", "ulimit")],
                ),
                (files(20, 20), &[], None, &[(Severity::Note, "20 files", "ulimit -n")]),
            ],
        );
    }
}
