// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `castanet run` may do: it opens devices by a process beside it, and gives its own privileges up before packets move.

use crate::load::complain;
use castanet_io::{opener, privilege};
use clap::Args;
use nix::unistd::{Uid, User};
use rustix::thread::CapabilitySet;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The command by which the router starts the process that [`serve`] is.
const OPENER: &str = "open-for-run";

/// Options of privileges.
#[derive(Args, Debug, Default)]
pub struct Privileges {
    /// Become this user once the first configuration has opened what it needs.
    #[arg(long, value_name = "NAME", conflicts_with = "keep_privileges")]
    pub user: Option<String>,
    /// Devices that configurations may use which come later, besides those of the first one; default: all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "keep_privileges")]
    pub devices: Option<Vec<String>>,
    /// Give no privileges up, for element classes of packages that need some.
    #[arg(long)]
    pub keep_privileges: bool,
}

/// `castanet open-for-run`.
#[derive(Args)]
pub struct Opener {
    /// The devices that may be asked for later.
    #[arg(long, value_delimiter = ',')]
    devices: Option<Vec<String>>,
    /// The number of the router's process.
    router: u32,
}

/// The user to become.
fn user(name: &str) -> Result<User, String> {
    let found = match name.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    found.map_err(|e| format!("--user {name}: {e}"))?.ok_or_else(|| format!("--user {name}: no such user"))
}

/// What is still to be given up.
#[must_use]
pub struct Held {
    user: Option<User>,
    keep: bool,
}

impl Privileges {
    /// Starts the process that opens devices, if this one could open any itself. To be called before the configuration is built.
    ///
    /// # Errors
    /// When there is no such user, or the process cannot be started.
    pub fn start(&self) -> Result<Held, String> {
        let user = self.user.as_deref().map(user).transpose()?;
        if self.keep_privileges {
            return Ok(Held { user: None, keep: true });
        }
        let failed = |e: std::io::Error| format!("privileges: {}", crate::load::reason(&e));
        if !privilege::effective().map_err(failed)?.intersects(privilege::DEVICES) {
            return Ok(Held { user, keep: false });
        }
        let (ours, theirs) = opener::pair().map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(OPENER);
        if let Some(devices) = &self.devices {
            command.arg(format!("--devices={}", devices.join(",")));
        }
        command.arg("--").arg(std::process::id().to_string());
        // Interrupts of a terminal go to the router, which ends this process by ending.
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(failed)?;
        opener::install(ours);
        Ok(Held { user, keep: false })
    }
}

/// Gives up, on every thread, all capabilities but these.
fn keep_only(keep: CapabilitySet) -> Result<(), String> {
    privilege::keep_only(keep).map_err(|e| {
        format!(
            "privileges cannot be given up: {}; --keep-privileges runs all the same",
            crate::load::reason(&e)
        )
    })
}

impl Held {
    /// Gives privileges up, on every thread. To be called when the configuration, the control sockets and the mount are open.
    ///
    /// A router of root keeps CAP_DAC_OVERRIDE, by which it writes its files wherever they are: root owns the files of the
    /// system with or without it. Every router keeps CAP_NET_BIND_SERVICE, for sockets of later configurations.
    ///
    /// # Errors
    /// When a thread keeps more than it should.
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
        // All threads change together: these are calls of the C library.
        keep_only(CapabilitySet::SETUID | CapabilitySet::SETGID)?;
        let failed = |e: nix::Error| format!("--user {}: {}", user.name, e.desc());
        let name = CString::new(user.name.as_str()).map_err(|e| format!("--user: {e}"))?;
        nix::unistd::initgroups(&name, user.gid).map_err(failed)?;
        nix::unistd::setresgid(user.gid, user.gid, user.gid).map_err(failed)?;
        nix::unistd::setresuid(user.uid, user.uid, user.uid).map_err(failed)?;
        keep_only(CapabilitySet::empty())?;
        let became = (nix::unistd::geteuid(), nix::unistd::getegid());
        if became != (user.uid, user.gid) {
            return Err(format!("--user {}: the system did not change the user", user.name));
        }
        Ok(())
    }
}

/// Opens devices for the router that started this process and has the other end of its standard input.
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
    // What ends the router from outside comes here too. This process ends after the router, so that it can clean up.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // CAP_BPF is for filters that end with the router.
    privilege::keep_only(privilege::DEVICES | CapabilitySet::BPF)?;
    let line: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(null)?;
    opener::serve(&line, args.devices.clone(), args.router)
}
