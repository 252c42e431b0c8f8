// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the examples of classes, which may read files of the repository.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use parking_lot::Mutex;
use std::path::Path;

/// Runs `f` in a temporary folder, from which the repository's folder conf can be reached. Only one call runs
/// at a time.
pub fn in_own_folder<R>(f: impl FnOnce() -> R) -> R {
    static FOLDER: Mutex<()> = Mutex::new(());
    let _guard = FOLDER.lock();
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    std::os::unix::fs::symlink(root.join("conf"), folder.path().join("conf")).unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let out = f();
    std::env::set_current_dir(&root).unwrap();
    out
}
