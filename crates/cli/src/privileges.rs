// SPDX-License-Identifier: MIT OR Apache-2.0
//! Privileges of `castanet run`: a second process opens devices, and the router drops its own privileges
//! before packets move.

use crate::load::complain;
use castanet_io::device::xdp::pin_for_router;
use castanet_io::{opener, privilege};
use clap::Args;
use nix::unistd::{Uid, User};
use rustix::thread::CapabilitySet;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The hidden subcommand with which the router starts a second process to open devices. This process runs [`serve`].
const OPENER: &str = "open-for-run";

/// Options of privileges.
#[derive(Args, Debug, Default)]
pub struct Privileges {
    /// Become this user after the first configuration has opened its devices and files.
    #[arg(long, value_name = "NAME", conflicts_with = "keep_privileges")]
    pub user: Option<String>,
    /// Devices that later configurations may use, besides those of the first one; default: all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "keep_privileges")]
    pub devices: Option<Vec<String>>,
    /// Drop no privileges, for classes of packages that need them.
    #[arg(long)]
    pub keep_privileges: bool,
}

/// `castanet open-for-run`.
#[derive(Args)]
pub struct Opener {
    /// The devices that later requests may open.
    #[arg(long, value_delimiter = ',')]
    devices: Option<Vec<String>>,
    /// The folder in which the programs of the router are pinned.
    #[arg(long)]
    pin: Option<PathBuf>,
    /// The process ID of the router.
    router: u32,
}

/// Finds the user to become, by name or number.
fn user(name: &str) -> Result<User, String> {
    let found = match name.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    found.map_err(|e| format!("--user {name}: {e}"))?.ok_or_else(|| format!("--user {name}: no such user"))
}

/// The settings for dropping privileges. [`Held::give_up`] applies them.
#[must_use]
pub struct Held {
    user: Option<User>,
    keep: bool,
}

impl Privileges {
    /// Starts the process that opens devices, if this process has the privileges to open any. Call it before
    /// the configuration is built. Programs are pinned in the folder `pin`.
    ///
    /// # Errors
    /// When the user does not exist, or the process cannot be started.
    pub fn start(&self, pin: Option<&Path>) -> Result<Held, String> {
        let user = self.user.as_deref().map(user).transpose()?;
        if self.keep_privileges {
            return Ok(Held { user: None, keep: true });
        }
        let failed = |e: std::io::Error| format!("privileges: {}", crate::load::reason(&e));
        if !privilege::effective().map_err(failed)?.intersects(privilege::DEVICES) {
            return Ok(Held { user, keep: false });
        }
        privilege::allow_locked_memory();
        let (ours, theirs) = opener::pair().map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(OPENER);
        if let Some(devices) = &self.devices {
            command.arg(format!("--devices={}", devices.join(",")));
        }
        if let Some(folder) = pin {
            command.arg("--pin").arg(folder);
        }
        command.arg("--").arg(std::process::id().to_string());
        // The process that opens devices gets its own process group, so that Ctrl-C reaches the router only. It ends by
        // itself after the router has ended.
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(failed)?;
        opener::install(ours);
        Ok(Held { user, keep: false })
    }
}

/// Drops all capabilities except `keep`, on every thread.
fn keep_only(keep: CapabilitySet) -> Result<(), String> {
    privilege::keep_only(keep).map_err(|e| {
        format!(
            "privileges cannot be dropped: {}; --keep-privileges runs without dropping them",
            crate::load::reason(&e)
        )
    })
}

impl Held {
    /// Drops privileges on every thread. Call it when the configuration, the control sockets and the mount are open.
    ///
    /// With `--user`, the router becomes that user and keeps no capabilities. Otherwise it keeps
    /// CAP_NET_BIND_SERVICE, for sockets of later configurations. If it runs as root, it also keeps
    /// CAP_DAC_OVERRIDE, so that it can write its files in all folders. Dropping that capability would not
    /// protect the files of the system, because root owns them. With `--keep-privileges` nothing is dropped.
    ///
    /// # Errors
    /// When a thread keeps more privileges than these, or the user cannot be changed.
    pub fn give_up(self) -> Result<(), String> {
        if self.keep {
            return Ok(());
        }
        opener::seal().map_err(|e| e.to_string())?;
        let bind = CapabilitySet::NET_BIND_SERVICE;
        let Some(user) = self.user else {
            let root = rustix::process::geteuid().is_root();
            return keep_only(if root { bind | CapabilitySet::DAC_OVERRIDE } else { bind });
        };
        // `initgroups`, `setresgid` and `setresuid` of the C library change the groups and the user of all threads.
        keep_only(CapabilitySet::SETUID | CapabilitySet::SETGID)?;
        let failed = |e: nix::Error| format!("--user {}: {}", user.name, e.desc());
        let name = CString::new(user.name.as_str()).map_err(|e| format!("--user: {e}"))?;
        nix::unistd::initgroups(&name, user.gid).map_err(failed)?;
        nix::unistd::setresgid(user.gid, user.gid, user.gid).map_err(failed)?;
        nix::unistd::setresuid(user.uid, user.uid, user.uid).map_err(failed)?;
        keep_only(CapabilitySet::empty())?;
        let became = (nix::unistd::geteuid(), nix::unistd::getegid());
        if became != (user.uid, user.gid) {
            return Err(format!("--user {}: the kernel did not change the user", user.name));
        }
        Ok(())
    }
}

/// Opens devices for the router that started this process. Requests arrive on standard input, a socket whose
/// other end the router holds.
pub fn serve(args: &Opener) -> ExitCode {
    match serve_until_end(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&format!("{OPENER}: {}", crate::load::reason(&e)));
            ExitCode::FAILURE
        }
    }
}

fn serve_until_end(args: &Opener) -> std::io::Result<()> {
    // Signals that end the router may reach this process too. This process ignores them, so that it can clean
    // up after the router has ended.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // CAP_BPF is for TCX links: filters that the kernel removes when the router ends. CAP_PERFMON is for compiled XDP programs,
    // which compute addresses in a frame.
    privilege::keep_only(privilege::DEVICES | CapabilitySet::BPF | CapabilitySet::PERFMON)?;
    let line: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(null)?;
    if let Some(folder) = &args.pin {
        pin_for_router(folder);
    }
    opener::serve(&line, args.devices.clone(), args.router)
}
