// SPDX-License-Identifier: MIT OR Apache-2.0
//! The castanet command that the tests run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The castanet command: the file named by the variable `CASTANET`, or the command built with the profile of
/// the running test. (Cargo exposes a binary's path only to tests of the same package.)
///
/// # Panics
/// The command cannot be built.
pub fn castanet() -> PathBuf {
    if let Some(path) = std::env::var_os("CASTANET") {
        return path.into();
    }
    // target/PROFILE/deps/TEST-HASH
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("this test has no file: {e}"));
    let profile =
        test.ancestors().nth(2).unwrap_or_else(|| panic!("{} is in no target folder", test.display()));
    let target = profile.parent().unwrap_or(profile);
    // The same selection of packages and features as in `cargo test --workspace`, so that nothing is built twice: the test
    // `commands` is one of those before which cargo builds the command.
    let mut build = Command::new(env!("CARGO"));
    build.args(["test", "--quiet", "--workspace", "--no-run", "--test", "commands", "--target-dir"]);
    build.arg(target).current_dir(root());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().is_ok_and(|status| status.success());
    assert!(built, "the castanet command does not build");
    profile.join("castanet")
}
