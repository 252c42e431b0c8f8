// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet mkmindriver`: links an executable with only some of castanet's classes.
//!
//! A generated program names the classes as constants and calls the driver's command line in `castanet-cli`. It is
//! compiled against the compiled crates of this castanet, like a package. Nothing in it refers to the list of all classes,
//! so the linker (or link-time optimisation, in release builds) leaves out the code of the other classes.

pub use crate::compiler::BuildError;
use crate::compiler::{self, CONSTANT, CompilerOutput, compile, run, with_path, write};
use crate::header::Header;
use crate::sdk::{Sdk, is_bitcode};
use castanet_element::package::BUILT;
use object::{Object, ObjectSegment};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The crate of castanet's command line, which has the driver's.
const COMMAND: &str = "castanet_cli";

/// Options of a minimal driver.
#[derive(Clone, Debug)]
pub struct Options {
    /// The executable to write.
    pub output: PathBuf,
    /// The names of the classes.
    pub classes: Vec<&'static str>,
    /// Whether symbols and debug information are left out.
    pub strip: bool,
    /// The directory of castanet's compiled crates; `None` for the default locations.
    pub sdk: Option<PathBuf>,
}

/// The size of an executable, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The size of the file.
    pub file: u64,
    /// The size of what is loaded: code and data, without symbols and debug information. A file without these is a few
    /// kilobytes larger.
    pub loaded: u64,
}

impl Size {
    /// Returns the size of an executable; `None` if the bytes are not an executable of a known format.
    pub fn of(executable: &[u8]) -> Option<Size> {
        let elf = object::File::parse(executable).ok()?;
        let end = |(at, length): (u64, u64)| at.saturating_add(length);
        let loaded = elf.segments().map(|s| end(s.file_range())).max()?;
        Some(Size { file: executable.len() as u64, loaded })
    }
    /// Reads an executable and returns its size; `None` if this is not possible.
    pub fn of_file(path: &Path) -> Option<Size> {
        Size::of(&std::fs::read(path).ok()?)
    }
}

/// Returns the source of a driver's root crate. It does not compile against the crates of another castanet.
fn source(classes: &[&str]) -> String {
    let mut out =
        String::from("use castanet_cli::{BUILT, ClassDef, class};\nconst CLASSES: &[ClassDef] = &[\n");
    for name in classes {
        let _ = writeln!(out, "    class({name:?}),");
    }
    let _ = write!(
        out,
        "];\n\
         const SAME: bool = {{\n\
         \x20   let (a, b) = (BUILT.as_bytes(), {BUILT:?}.as_bytes());\n\
         \x20   let mut i = 0;\n\
         \x20   while i < a.len() && i < b.len() && a[i] == b[i] {{\n\
         \x20       i += 1;\n\
         \x20   }}\n\
         \x20   i == a.len() && i == b.len()\n\
         }};\n\
         const _: () = assert!(SAME);\n\
         fn main() -> std::process::ExitCode {{\n\
         \x20   castanet_cli::driver(CLASSES)\n\
         }}\n"
    );
    out
}

/// Finds the compiled crates for drivers.
///
/// # Errors
/// They are not there, or the compiler is not the one that castanet was built with.
pub fn prepare(sdk: Option<&Path>) -> Result<Sdk, BuildError> {
    compiler::prepare(COMMAND, sdk)
}

/// Builds a minimal driver. Returns its size.
///
/// # Errors
/// The compiler's output, or what is missing.
pub fn build(options: &Options) -> Result<Size, BuildError> {
    let sdk = prepare(options.sdk.as_deref())?;
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let main = scratch.path().join("main.rs");
    std::fs::write(&main, source(&options.classes)).map_err(BuildError::file(&main))?;
    let mut failure = BuildError::Compile(String::new());
    for command in sdk.all(COMMAND) {
        match link(command, scratch.path(), &sdk, options.strip)? {
            Ok(bytes) => {
                let wrong = || BuildError::Compile("the compiler wrote no executable".into());
                let size = Size::of(&bytes).ok_or_else(wrong)?;
                write(&options.output, &bytes, 0o755).map_err(BuildError::file(&options.output))?;
                return Ok(size);
            }
            Err(output) if output.0.contains(CONSTANT) => {
                failure = BuildError::OtherCommand(sdk.folder().to_path_buf());
            }
            Err(output) if output.is_mixed() => failure = BuildError::Compile(output.0),
            Err(output) => return Err(BuildError::Compile(output.0)),
        }
    }
    Err(failure)
}

/// Compiles the root crate against one compiled command line, and links the executable. Returns its bytes.
fn link(
    command: &Path,
    scratch: &Path,
    sdk: &Sdk,
    strip: bool,
) -> Result<Result<Vec<u8>, CompilerOutput>, BuildError> {
    let release = Header::own().get("profile").starts_with("release");
    let written = scratch.join("driver");
    let mut c = compile(scratch, scratch, sdk, release);
    c.args(["--edition", "2024", "--crate-type", "bin", "--crate-name", "castanet_driver"]);
    c.arg("--extern").arg(with_path(COMMAND, command));
    if strip {
        c.args(["-C", "strip=symbols"]);
    }
    if std::fs::read(command).is_ok_and(|bytes| is_bitcode(&bytes)) {
        c.args(["-C", "lto=thin"]);
    }
    c.arg("main.rs").arg("-o").arg(&written);
    let output = run(c)?;
    if !output.status.success() {
        return Ok(Err(CompilerOutput(String::from_utf8_lossy(&output.stderr).into_owned())));
    }
    std::fs::read(&written).map_err(BuildError::file(&written)).map(Ok)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_size_is_that_of_the_file_and_of_what_is_loaded() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let size = Size::of(&bytes).unwrap();
        assert_eq!(Some(size), Size::of_file(&path));
        assert_eq!(size.file, bytes.len() as u64);
        assert!(size.loaded > 100_000 && size.loaded < size.file, "{size:?}");
        assert_eq!(Size::of(b"#!/bin/sh\n"), None);
        assert_eq!(Size::of_file(Path::new("/nonexistent")), None);
    }
}
