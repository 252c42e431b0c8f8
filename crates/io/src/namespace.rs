// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces: separate hosts on one machine, for tests and measurements.
//!
//! A process with several threads cannot create or enter a user namespace. So the caller starts helper
//! processes, which call these functions before they do anything else. One helper process creates a host and
//! keeps it in existence ([`hold`]). Other helper processes [`enter`] that host.
#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// The operation that failed, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}")]
pub struct NamespaceError {
    doing: String,
    source: io::Error,
}

fn failed<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> NamespaceError {
    move |e| NamespaceError { doing: doing.into(), source: e.into() }
}

/// The user namespace in which a new host is created. A host is a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A new user namespace. Any user, even without privileges, may create a host in it.
    OwnUsers,
    /// The caller's user namespace, if the caller may create network namespaces in it; otherwise a new user namespace.
    Callers,
    /// The user namespace of an existing host, which the process with this ID keeps open.
    SameAs(u32),
}

/// Makes the kernel kill this process when the parent process ends.
///
/// # Errors
/// When the kernel refuses.
pub fn end_with_parent() -> Result<(), NamespaceError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("parent death signal"))
}

fn leave(flags: UnshareFlags, doing: &str) -> Result<(), NamespaceError> {
    // SAFETY: only the flag FILES (a separate descriptor table) is unsafe, and it is never used here.
    unsafe { unshare_unsafe(flags) }.map_err(failed(doing))
}

fn make_network() -> Result<(), NamespaceError> {
    leave(UnshareFlags::NEWNET, "make a network namespace")
}

fn make_users() -> Result<(), NamespaceError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    leave(UnshareFlags::NEWUSER, "make a user namespace")?;
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(failed(path))
    };
    write("uid_map", format!("0 {user} 1"))?;
    write("setgroups", "deny".into())?;
    write("gid_map", format!("0 {group} 1"))
}

/// Enters the `user` or `net` namespace of a process, unless this process is already in that namespace.
fn join(pid: u32, name: &str, kind: LinkNameSpaceType) -> Result<(), NamespaceError> {
    let path = format!("/proc/{pid}/ns/{name}");
    let identity = |path: &str| fs::metadata(path).map(|m| (m.dev(), m.ino()));
    let theirs = identity(&path).map_err(failed(path.as_str()))?;
    if identity(&format!("/proc/self/ns/{name}")).is_ok_and(|ours| ours == theirs) {
        return Ok(());
    }
    let file = File::open(&path).map_err(failed(path.as_str()))?;
    move_into_link_name_space(file.as_fd(), Some(kind)).map_err(failed(format!("enter {path}")))
}

/// Moves this process into a new network namespace (a host) and prints `ready` on standard output. The namespace exists
/// until standard input or the parent process ends.
///
/// # Errors
/// When namespaces are not permitted.
pub fn hold(origin: Origin) -> Result<(), NamespaceError> {
    end_with_parent()?;
    match origin {
        Origin::SameAs(pid) => {
            join(pid, "user", LinkNameSpaceType::User)?;
            make_network()?;
        }
        Origin::Callers if make_network().is_ok() => {}
        Origin::Callers | Origin::OwnUsers => {
            make_users()?;
            make_network()?;
        }
    }
    println!("ready");
    io::stdin().lock().read_to_end(&mut Vec::new()).map(drop).map_err(failed("standard input"))
}

/// Enters the network namespace that process `pid` keeps open by [`hold`]. Processes that this process starts
/// afterwards run there too.
///
/// # Errors
/// When the kernel refuses.
pub fn enter(pid: u32) -> Result<(), NamespaceError> {
    join(pid, "user", LinkNameSpaceType::User)?;
    join(pid, "net", LinkNameSpaceType::Network)?;
    // Entering a user namespace clears the parent death signal.
    end_with_parent()
}

/// Mounts `/sys` for this process only, so that `/sys/class/net` shows the devices of the host that the process
/// has entered.
///
/// # Errors
/// When the kernel refuses.
pub fn own_sys() -> Result<(), NamespaceError> {
    leave(UnshareFlags::NEWNS, "make a mount namespace")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed("make mounts private"))?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None).map_err(failed("mount /sys"))
}

/// The processors that the calling thread may run on.
pub fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Restricts the calling thread, and threads and processes that it starts afterwards, to one processor.
///
/// # Errors
/// When the processor does not exist.
pub fn pin(cpu: usize) -> Result<(), NamespaceError> {
    let doing = format!("run on processor {cpu}");
    let mut set = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return Err(failed(doing)(Errno::INVAL));
    }
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(failed(doing))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        // No process has this ID: it is above the kernel's maximum (2^22).
        let error = enter(u32::MAX).unwrap_err();
        assert!(error.to_string().starts_with("/proc/4294967295/ns/user: "), "{error}");
        assert!(pin(CpuSet::MAX_CPU).unwrap_err().to_string().starts_with("run on processor 1024: "));
    }

    #[test]
    fn entering_where_one_is_changes_nothing() {
        join(std::process::id(), "user", LinkNameSpaceType::User).unwrap();
        join(std::process::id(), "net", LinkNameSpaceType::Network).unwrap();
    }

    #[test]
    fn there_is_a_processor_to_run_on() {
        let all = processors();
        assert!(!all.is_empty());
        std::thread::spawn(move || {
            let last = *all.last().unwrap();
            pin(last).unwrap();
            assert_eq!(processors(), [last]);
        })
        .join()
        .unwrap();
    }
}
