// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet devirtualize`: compiles the code of a configuration to a shared library, and loads it.
//!
//! The library has the format of a package without classes, and exports the functions with which packets start. The
//! functions access the fields of castanet's own elements, so they work only in the castanet whose crates they were
//! compiled against. The name in the header of the library says this: it has a hash of the source of these crates, the
//! fingerprint of the configuration, and the processor features that the code needs.

pub use crate::compiler::BuildError;
use crate::compiler::{self, CONSTANT, CompilerOutput, compile, run, with_path};
use crate::header::{Header, Refusal, check, seal};
use crate::library::Library;
use crate::sdk::{Sdk, is_bitcode};
use castanet_devirtualized::{Exported, SOURCE, types};
use castanet_runtime::compiled::{Code, Entry};
use std::path::Path;
use std::sync::Arc;

/// The crate that the code is compiled against.
const CRATE: &str = "castanet_devirtualized";
/// The processor features that code is compiled for: `generic`, or a level of the x86-64 psABI.
pub const LEVELS: [&str; 3] = ["generic", "x86-64-v2", "x86-64-v3"];

/// Returns the highest of the [`LEVELS`] that this processor has.
pub fn level() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! has {
            ($($feature:tt)+) => { true $(&& std::arch::is_x86_feature_detected!($feature))+ };
        }
        let second = has!("cmpxchg16b" "popcnt" "sse3" "ssse3" "sse4.1" "sse4.2");
        let third = has!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe" "xsave");
        match (second, third) {
            (true, true) => "x86-64-v3",
            (true, false) => "x86-64-v2",
            (false, _) => "generic",
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    "generic"
}

/// The name in the header of a library.
fn name(fingerprint: u128, level: &str) -> String {
    format!("devirtualized/{SOURCE}/{fingerprint:032x}/{level}")
}

/// Finds the crates that code is compiled against.
///
/// # Errors
/// They are not there, or the compiler is not the one that castanet was built with.
pub fn prepare(sdk: Option<&Path>) -> Result<Sdk, BuildError> {
    compiler::prepare(CRATE, sdk)
}

/// Compiles the code of a configuration for this processor. Returns the bytes of the library.
///
/// # Errors
/// The compiler's output, or what is missing.
pub fn build(source: &str, fingerprint: u128, sdk: Option<&Path>) -> Result<Vec<u8>, BuildError> {
    let sdk = prepare(sdk)?;
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let level = level();
    let root = format!(
        "use castanet_devirtualized::castanet_element::package::{{Package, header, header_length}};\n\
         use castanet_devirtualized::{{Exported, SOURCE, same, types}};\n\
         mod code;\n\
         const NAME: &str = {name:?};\n\
         const _: () = assert!(same(SOURCE, {SOURCE:?}));\n\
         #[unsafe(no_mangle)]\n\
         pub static CASTANET_PACKAGE_HEADER: [u8; header_length(NAME)] = header(NAME);\n\
         #[unsafe(no_mangle)]\n\
         pub static CASTANET_PACKAGE: Package = Package::new(&[], true);\n\
         #[unsafe(no_mangle)]\n\
         pub static CASTANET_CODE: Exported = Exported {{ types: types(), sites: code::SITES, entries: code::ENTRIES }};\n",
        name = name(fingerprint, level),
    );
    let code = format!(
        "use castanet_devirtualized::{{castanet_element, castanet_elements, castanet_packet, castanet_runtime}};\n{source}"
    );
    for (file, text) in [("lib.rs", &root), ("code.rs", &code)] {
        let path = scratch.path().join(file);
        std::fs::write(&path, text).map_err(BuildError::file(path))?;
    }
    let mut failure = BuildError::Compile(String::new());
    for crates in sdk.all(CRATE) {
        match library(crates, scratch.path(), &sdk, level)? {
            // Cargo may have compiled the crates in several ways.
            Ok(bytes) => {
                let bytes = seal(bytes);
                match opened("the code", &bytes) {
                    Ok(_) => return Ok(bytes),
                    Err(refusal) => {
                        failure = BuildError::OtherCrates { folder: sdk.folder().to_path_buf(), refusal };
                    }
                }
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

/// Compiles the library against one set of crates.
fn library(
    crates: &Path,
    scratch: &Path,
    sdk: &Sdk,
    level: &str,
) -> Result<Result<Vec<u8>, CompilerOutput>, BuildError> {
    let release = Header::own().get("profile").starts_with("release");
    let written = scratch.join("code");
    let mut c = compile(scratch, scratch, sdk, release);
    c.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "castanet_code"]);
    c.arg("--extern").arg(with_path(CRATE, crates));
    c.args(["-C", "codegen-units=1", "-C", "strip=debuginfo"]);
    if level != LEVELS[0] {
        c.arg("-C").arg(format!("target-cpu={level}"));
    }
    if std::fs::read(crates).is_ok_and(|bytes| is_bitcode(&bytes)) {
        // The linker that comes with this target's compiler can optimise. It reads only the parts of the crates that the
        // code uses, and is twice as fast as the compiler, which reads all.
        let by_linker = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
        c.args(["-C", if by_linker { "linker-plugin-lto" } else { "lto=thin" }]);
    }
    c.arg("lib.rs").arg("-o").arg(&written);
    let output = run(c)?;
    if !output.status.success() {
        return Ok(Err(CompilerOutput(String::from_utf8_lossy(&output.stderr).into_owned())));
    }
    std::fs::read(&written).map_err(BuildError::file(&written)).map(Ok)
}

/// The code of a configuration, in a library that stays loaded: elements may keep references to its constants.
struct Loaded(&'static Exported);

impl Code for Loaded {
    fn sites(&self) -> &[u32] {
        self.0.sites
    }
    fn entries(&self) -> &[(u32, u32, Entry)] {
        self.0.entries
    }
}

/// Loads a library with code. Its types must be those of this program.
fn opened(from: &str, bytes: &[u8]) -> Result<Arc<Library>, Refusal> {
    let (library, _) = Library::open("devirtualized", from, bytes, |_| None)?;
    if library.has_types(types()) { Ok(library) } else { Err(Library::other_copies(from)) }
}

/// Loads the code of a configuration. `from` is the file that has it. Without a fingerprint, the code of any configuration
/// is loaded.
///
/// # Errors
/// The code was made by another castanet, for another configuration, or for another processor.
pub fn load(from: &str, bytes: &[u8], fingerprint: Option<u128>) -> Result<Arc<dyn Code>, Refusal> {
    let again = "make it again with 'castanet devirtualize'";
    let refuse = |what: &str| Refusal::new(format!("{from}: the compiled code is not used: {what}"), again);
    let (header, _) = check(from, bytes)?;
    let mut parts = header.get("name").split('/');
    let (Some("devirtualized"), Some(source), Some(print), Some(needs)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(refuse("it is a package of classes"));
    };
    if source != SOURCE {
        return Err(refuse("it was compiled for another castanet"));
    }
    if fingerprint.is_some_and(|f| print != format!("{f:032x}")) {
        return Err(refuse("it was compiled for another configuration"));
    }
    let rank = |level: &str| LEVELS.iter().position(|l| *l == level);
    if rank(needs).is_none_or(|r| Some(r) > rank(level())) {
        return Err(refuse(&format!("this processor does not have the features of {needs}")));
    }
    let library = opened(from, bytes)?;
    Ok(Arc::new(Loaded(library.code().ok_or_else(|| refuse("the library has none"))?)))
}
