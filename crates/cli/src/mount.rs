// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet run --mount`: shows handlers as files. A second process unmounts the folder if the router is killed.

use crate::load::complain;
use castanet_element::Messages as _;
use castanet_mount::{Mount, Options};
use castanet_runtime::Router;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The hidden command of the second process. [`over`] starts the process, which then runs [`main`].
const UNMOUNTER: &str = "unmount-after-run";

/// `castanet unmount-after-run`.
#[derive(Args)]
pub struct Unmounter {
    /// The folder.
    folder: PathBuf,
    /// The mount source of the router's mount; only a mount with this source is unmounted.
    source: String,
}

/// Mounts the handlers of a router until the result is dropped.
pub fn over(folder: &Path, router: &Router) -> Result<Mount, String> {
    let running = router.running().clone();
    let (remote, printer) = (running.clone(), running);
    let say = move |text: &str| match printer.current() {
        Some(shared) => shared.message(text),
        None => complain(text),
    };
    let mut unmounter = Command::new("/proc/self/exe");
    unmounter.arg(UNMOUNTER).arg("--");
    let options = Options { folder, remote, report: Box::new(say), watchdog: Some(unmounter) };
    Mount::new(options).map_err(|e| format!("--mount: {e}"))
}

/// Waits until the router that started this process has ended, and unmounts.
pub fn main(args: &Unmounter) -> ExitCode {
    match castanet_mount::watch(&args.folder, &args.source) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&format!("{}: cannot be unmounted: {e}", args.folder.display()));
            ExitCode::FAILURE
        }
    }
}
