// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mounted directory with the handlers of a router.

use crate::handlers::Handlers;
use crate::watchdog::Watchdog;
use crate::{Report, kernel, place};
use castanet_element::remote::Remote;
use fuser::{Config, Session, SessionACL};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of threads that serve requests. A slow handler blocks one of them.
const THREADS: usize = 4;
/// The time to wait for the threads to end. If another process has a file open, the threads keep running until the
/// router's process ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why handlers could not be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The directory does not exist.
    #[error("{folder}: no such directory; create it first with mkdir")]
    Missing {
        /// The folder.
        folder: String,
    },
    /// The path is not a directory.
    #[error("{folder}: not a directory; handlers are mounted on an empty directory")]
    NoFolder {
        /// The path.
        folder: String,
    },
    /// The directory contains files, which the mount would hide.
    #[error("{folder}: the directory is not empty; handlers are mounted on an empty directory")]
    NotEmpty {
        /// The folder.
        folder: String,
    },
    /// Another router has mounted its handlers on the directory.
    #[error("{folder}: the handlers of another router are mounted here ({mounted})")]
    Taken {
        /// The folder.
        folder: String,
        /// The source of the other router's mount. It ends in the process ID of that router.
        mounted: String,
    },
    /// The directory has a mount whose program has ended.
    #[error(
        "{folder}: a program that has ended left a dead mount here; remove it with: fusermount3 -u {folder}"
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
        /// The cause.
        source: io::Error,
    },
    /// FUSE is missing in the kernel, or this user has no access to it.
    #[error("/dev/fuse: {0}; mounting needs the kernel's FUSE (modprobe fuse) and permission to use it")]
    Device(io::Error),
    /// This user may not mount, and no helper is installed.
    #[error(
        "{folder}: only root may mount, and `fusermount3`, which mounts for other users, is not installed (Debian: fuse3)"
    )]
    NoHelper {
        /// The folder.
        folder: String,
    },
    /// The kernel refused to mount.
    #[error("{folder}: {source}")]
    Refused {
        /// The folder.
        folder: String,
        /// The cause.
        source: io::Error,
    },
    /// The watchdog process could not be started.
    #[error("the process that unmounts after the router: {0}")]
    Watchdog(io::Error),
}

/// Options of a mount.
pub struct Options<'a> {
    /// The directory, which must be empty.
    pub folder: &'a Path,
    /// The router.
    pub remote: Arc<dyn Remote>,
    /// The function that shows messages.
    pub report: Report,
    /// The command that runs [`watch`](crate::watch). The directory and the name of the mount are appended as
    /// its last arguments. With `None`, a dead mount remains if the router is killed.
    pub watchdog: Option<Command>,
}

/// A mounted directory. Dropping it unmounts.
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
    /// The directory cannot be used, or this user may not mount.
    pub fn new(options: Options<'_>) -> Result<Mount, MountError> {
        let Options { folder, remote, report, watchdog } = options;
        let shown = folder.display().to_string();
        let folder = place::prepare(folder, &report)?;
        let source = format!("{}{}", place::SOURCE, std::process::id());
        let watchdog = watchdog.map(|command| Watchdog::start(command, &folder, &source)).transpose();
        let watchdog = watchdog.map_err(MountError::Watchdog)?;
        let refused = |source| MountError::Refused { folder: shown.clone(), source };
        // From here on, dropping `mount` unmounts.
        let mut mount = Mount { folder, source, watchdog, session: None };
        let device = kernel::mount(&mount.folder, &mount.source)?;
        let handlers = Handlers::new(remote, report, shown.clone());
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        let session = Session::from_fd(handlers, device, SessionACL::Owner, config).map_err(refused)?;
        let thread = std::thread::Builder::new().name("mount".into()).spawn(move || session.run());
        mount.session = Some(thread.map_err(refused)?);
        Ok(mount)
    }

    /// The full path of the mounted directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If another program has unmounted the handlers, or mounted something else on the directory, do not unmount.
        let ours = place::mounted(&self.folder).is_ok_and(|m| m.is_some_and(|m| m.source == *self.source));
        if !ours || kernel::unmount(&self.folder).is_ok() {
            if let Some(w) = self.watchdog.take() {
                w.dismiss();
            }
        } else if let Some(w) = self.watchdog.take() {
            // This process may have dropped the privilege to unmount. The watchdog process may still have it, so it
            // unmounts instead.
            w.unmount();
        }
        let Some(session) = self.session.take() else { return };
        let end = Instant::now() + FAREWELL;
        while !session.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        if session.is_finished() {
            // The mount is gone, so it does not matter how the session ended.
            let _ = session.join();
        }
    }
}
