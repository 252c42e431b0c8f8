// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder with the handlers of a router, as long as it is mounted.

use crate::handlers::Handlers;
use crate::watchdog::Watchdog;
use crate::{Say, kernel, place};
use castanet_element::remote::Remote;
use fuser::{Config, Session, SessionACL};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many questions are answered at a time: a handler that takes long holds up one of so many.
const THREADS: usize = 4;
/// How long the end of the threads is waited for. Who still has a file open keeps them, until this process ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why handlers could not be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// Nothing is there.
    #[error("{folder}: there is no such folder; make it first: mkdir")]
    Missing {
        /// The folder.
        folder: String,
    },
    /// Something else is there.
    #[error("{folder}: this is no folder; handlers are mounted on an empty one")]
    NoFolder {
        /// What was to be the folder.
        folder: String,
    },
    /// There are files, which a mount would hide.
    #[error("{folder}: the folder is not empty; handlers are mounted on an empty one")]
    NotEmpty {
        /// The folder.
        folder: String,
    },
    /// Another router has mounted there.
    #[error("{folder}: the handlers of another router are mounted here ({mounted})")]
    Taken {
        /// The folder.
        folder: String,
        /// What is mounted: it ends in the process id of that router.
        mounted: String,
    },
    /// A mount of another program, which has ended, is there.
    #[error(
        "{folder}: a program that has ended left a dead mount here; take it away: fusermount3 -u {folder}"
    )]
    Dead {
        /// The folder.
        folder: String,
    },
    /// The folder cannot be used.
    #[error("{folder}: {source}")]
    Unusable {
        /// The folder.
        folder: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel's FUSE is missing or not for this user.
    #[error("/dev/fuse: {0}; mounting needs the kernel's FUSE (modprobe fuse) and permission to use it")]
    Device(io::Error),
    /// This user may not mount, and has nobody who may.
    #[error(
        "{folder}: only root may mount, and `fusermount3`, which does it for others, is not installed (Debian: fuse3)"
    )]
    NoHelper {
        /// The folder.
        folder: String,
    },
    /// The system refused.
    #[error("{folder}: {source}")]
    Refused {
        /// The folder.
        folder: String,
        /// Why.
        source: io::Error,
    },
    /// The process that cleans up after a killed router does not run.
    #[error("the process that unmounts after the router: {0}")]
    Watchdog(io::Error),
}

/// What to mount, and how.
pub struct Options<'a> {
    /// The folder, which is empty.
    pub folder: &'a Path,
    /// The router.
    pub remote: Arc<dyn Remote>,
    /// Where messages go.
    pub say: Say,
    /// The command that calls [`watch`](crate::watch) with its two last arguments, the folder and the name of the mount; none:
    /// a mount outlives a router that was killed, as a dead one.
    pub watchdog: Option<Command>,
}

/// A mounted folder; it is empty again when this is dropped.
pub struct Mount {
    folder: PathBuf,
    source: String,
    watchdog: Option<Watchdog>,
    session: Option<JoinHandle<io::Result<()>>>,
}

impl Mount {
    /// Mounts the handlers of a router.
    ///
    /// # Errors
    /// When the folder cannot be used, or this user may not mount.
    pub fn new(options: Options<'_>) -> Result<Mount, MountError> {
        let Options { folder, remote, say, watchdog } = options;
        let shown = folder.display().to_string();
        let folder = place::prepare(folder, &say)?;
        let source = format!("{}{}", place::SOURCE, std::process::id());
        let watchdog = watchdog.map(|command| Watchdog::start(command, &folder, &source)).transpose();
        let watchdog = watchdog.map_err(MountError::Watchdog)?;
        let refused = |source| MountError::Refused { folder: shown.clone(), source };
        // From here on whoever drops this unmounts.
        let mut mount = Mount { folder, source, watchdog, session: None };
        let device = kernel::mount(&mount.folder, &mount.source)?;
        let handlers = Handlers::new(remote, say, shown.clone());
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        let session = Session::from_fd(handlers, device, SessionACL::Owner, config).map_err(refused)?;
        let thread = std::thread::Builder::new().name("mount".into()).spawn(move || session.run());
        mount.session = Some(thread.map_err(refused)?);
        Ok(mount)
    }

    /// The full path of the mounted folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Another program may have unmounted it, and mounted something else.
        let ours = place::mounted(&self.folder).is_ok_and(|m| m.is_some_and(|m| m.source == *self.source));
        if !ours || kernel::unmount(&self.folder).is_ok() {
            if let Some(w) = self.watchdog.take() {
                w.dismiss();
            }
        } else if let Some(w) = self.watchdog.take() {
            // This process may have given up the privilege to unmount since.
            w.unmount();
        }
        let Some(session) = self.session.take() else { return };
        let end = Instant::now() + FAREWELL;
        while !session.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        if session.is_finished() {
            // What it says of its end concerns nobody any more.
            let _ = session.join();
        }
    }
}
