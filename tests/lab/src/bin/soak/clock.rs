// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that the routers see. The machine's clock cannot be set from a user namespace, and other programs need it.
//! So a small library is loaded before the C library. It reads an offset from a file, and adds it to the time of day.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A clock that routers see: the time of day plus an offset.
pub struct FalseClock {
    file: File,
    /// The path of the file that contains the offset.
    pub path: PathBuf,
    /// The path of the library that adds the offset.
    pub library: PathBuf,
}

impl FalseClock {
    /// Creates the file in a folder, with an offset of 0. `None` if the library was not built.
    pub fn new(folder: &Path) -> Option<FalseClock> {
        let command = std::env::current_exe().ok()?;
        let library = command.parent()?.join("libcastanet_lab_clock.so");
        let path = folder.join("clock");
        let file = File::create(&path).ok()?;
        let clock = FalseClock { file, path, library };
        clock.set(0);
        clock.library.exists().then_some(clock)
    }

    /// Sets the offset in seconds.
    pub fn set(&self, seconds: i64) {
        if let Err(e) = self.file.write_all_at(&seconds.to_ne_bytes(), 0) {
            eprintln!("{}: {e}", self.path.display());
        }
    }
}
