// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust compiler, as builds of packages and of minimal drivers use it.

use crate::header::{Header, Refusal};
use crate::sdk::{Sdk, SdkError};
use castanet_element::package::FLAGS;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Why a package was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// There is no directory for the compiler's output.
    #[error("cannot create a temporary directory: {0}")]
    Scratch(io::Error),
    /// The manifest of the crate is invalid, or requires something that packages cannot have.
    #[error("{}: {what}", path.display())]
    Manifest {
        /// The path of the manifest.
        path: PathBuf,
        /// What is invalid or not allowed.
        what: String,
    },
    /// The compiler cannot be run.
    #[error(
        "{program}: {source}: the compiler that castanet was built with is needed, {}; 'rustup toolchain install {}' installs it",
        Header::own().get("compiler"), own_version()
    )]
    NoCompiler {
        /// The name of the compiler's program.
        program: String,
        /// The error.
        source: io::Error,
    },
    /// The compiler is not the one that castanet was built with.
    #[error(
        "the compiler here is {here}; this castanet was built with {own}: the same one is needed. 'rustup toolchain install \
         {version}' and RUSTUP_TOOLCHAIN={version}, or build castanet again with the compiler here",
        own = Header::own().get("compiler"), version = own_version()
    )]
    OtherCompiler {
        /// The version, commit and host of the compiler that was found.
        here: String,
    },
    /// Castanet's compiled crates were not found.
    #[error(transparent)]
    Sdk(#[from] SdkError),
    /// The compiled crates that were found belong to another build than the `castanet` that runs.
    #[error(
        "castanet's compiled crates in {} are not those of this castanet: build castanet again, or name their folder with --sdk\n\
         {refusal}", folder.display()
    )]
    OtherCrates {
        /// The directory of the compiled crates.
        folder: PathBuf,
        /// Why a package built against these crates cannot be loaded.
        refusal: Refusal,
    },
    /// The compiled crates of the command line that were found belong to another build than the `castanet` that runs.
    #[error(
        "castanet's compiled crates in {} are not those of this castanet: build castanet again, or name their folder with --sdk",
        .0.display()
    )]
    OtherCommand(PathBuf),
    /// The crate does not compile. The text is the compiler's output.
    #[error("{0}")]
    Compile(String),
}

impl BuildError {
    /// Returns a function that makes a [`BuildError::File`] with this path from an I/O error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> BuildError {
        move |source| BuildError::File { path: path.into(), source }
    }
}

/// The version of the compiler that castanet was built with.
fn own_version() -> String {
    Header::own().get("compiler").split(' ').nth(1).unwrap_or("").to_string()
}

/// The command that runs the compiler, without arguments: the program in `RUSTC`, or `rustc`.
pub fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Runs the compiler.
pub fn run(mut command: Command) -> Result<Output, BuildError> {
    command.output().map_err(|source| BuildError::NoCompiler {
        program: command.get_program().display().to_string(),
        source,
    })
}

/// Checks that the compiler is the one that castanet was built with.
pub fn right_compiler(folder: &Path) -> Result<(), BuildError> {
    let mut command = rustc();
    command.arg("-vV").current_dir(folder);
    let output = run(command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("").trim();
    let here =
        format!("{}, commit {}, on {}", text.lines().next().unwrap_or(""), of("commit-hash:"), of("host:"));
    if here == Header::own().get("compiler") { Ok(()) } else { Err(BuildError::OtherCompiler { here }) }
}

/// Returns a command that compiles for the target and with the flags with which castanet was compiled. It runs in
/// `folder`. Dependencies are found in `sdk` and `scratch`. The compiler prints file names relative to these folders.
pub fn compile(folder: &Path, scratch: &Path, sdk: &Sdk, release: bool) -> Command {
    let mut c = rustc();
    c.args(["--cap-lints", "warn"]).args(FLAGS.split_whitespace());
    c.arg(remapped(folder)).arg(remapped(scratch));
    c.arg("-C").arg(format!("panic={}", Header::own().get("panic")));
    c.arg("--target").arg(Header::own().get("target"));
    match release {
        true => c.args(["-C", "opt-level=3"]),
        false => {
            c.args(["-C", "opt-level=0", "-C", "debug-assertions=on", "-C", "debuginfo=line-tables-only"])
        }
    };
    for dependencies in [sdk.folder(), scratch] {
        let mut word = OsString::from("dependency=");
        word.push(dependencies);
        c.arg("-L").arg(word);
    }
    c.current_dir(folder);
    c
}

/// The compiler's error codes for compiled crates that do not fit together. The directory may contain several compiled
/// `castanet-element` crates. After such an error, the build tries the next one.
const MIXED: [&str; 5] = ["E0460", "E0462", "E0463", "E0464", "E0514"];

/// The compiler's messages about a crate that does not compile.
pub struct CompilerOutput(pub String);

impl CompilerOutput {
    /// Whether the compiled crates do not fit together, so that others may.
    pub fn is_mixed(&self) -> bool {
        MIXED.iter().any(|code| self.0.contains(code))
    }
}

fn remapped(folder: &Path) -> OsString {
    let mut word = OsString::from("--remap-path-prefix=");
    word.push(folder);
    word.push("=.");
    word
}

/// Returns the value of `--extern` for a crate at a path.
pub fn with_path(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(path);
    word
}

/// Writes a file atomically, so that a process which loads or runs it finds either the old or the new version.
/// `mode` is the file's access mode.
pub fn write(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut part = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut part, bytes)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    part.as_file().set_permissions(mode)?;
    part.persist(file)?;
    Ok(())
}

/// The compiler's error code for a constant that cannot be evaluated. Generated crates have such constants, so that they do
/// not compile against the crates of another castanet.
pub const CONSTANT: &str = "E0080";

/// Finds the compiled crates, which must include `name`. Only `castanet sdk --drivers` copies it.
///
/// # Errors
/// They are not there, or the compiler is not the one that castanet was built with.
pub fn prepare(name: &str, sdk: Option<&Path>) -> Result<Sdk, BuildError> {
    right_compiler(Path::new("."))?;
    let sdk = Sdk::find(sdk)?;
    if sdk.all(name).is_empty() {
        return Err(SdkError::PackagesOnly(sdk.folder().to_path_buf()).into());
    }
    Ok(sdk)
}
