// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of the compiled crates of this castanet. Packages are built against these files.
//!
//! Cargo leaves them in the `deps` directory beside the program. `castanet sdk` copies the necessary ones to a
//! permanent location, so that packages can be built without the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// `castanet-element` and its dependencies, without the standard library. `castanet sdk` copies these crates. A
/// test compares the list with the lock file.
pub const CRATES: [&str; 43] = [
    "annotate_snippets",
    "anstyle",
    "bitflags",
    "castanet_derive",
    "castanet_diagnostic",
    "castanet_element",
    "castanet_kernel",
    "castanet_lang",
    "castanet_packet",
    "castanet_spec",
    "castanet_tables",
    "castanet_wire",
    "cfg_if",
    "countme",
    "crossbeam_utils",
    "errno",
    "getrandom",
    "hashbrown",
    "itoa",
    "libc",
    "linux_raw_sys",
    "lock_api",
    "memchr",
    "memoffset",
    "parking_lot",
    "parking_lot_core",
    "proc_macro2",
    "quote",
    "rand_core",
    "rowan",
    "rustc_hash",
    "rustix",
    "scopeguard",
    "smallvec",
    "strsim",
    "syn",
    "text_size",
    "thiserror",
    "thiserror_impl",
    "unicode_ident",
    "unicode_width",
    "zerocopy",
    "zerocopy_derive",
];

/// Why castanet's compiled crates were not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdkError {
    /// The compiled crates are not in the directory that was named.
    #[error("{}: it does not contain castanet's compiled crates", .0.display())]
    Named(PathBuf),
    /// The compiled crates are in none of the default locations.
    #[error(
        "the compiled crates of this castanet are not there (looked in {}): keep them with 'castanet sdk' in the \
         folder in which castanet was built, or name their folder with --sdk",
        .0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Nowhere(Vec<PathBuf>),
    /// The directory has the compiled crates for packages, but not those of the command line.
    #[error(
        "{}: it contains only the compiled crates for packages: copy all with 'castanet sdk --drivers' in the folder in which \
         castanet was built, or name that folder with --sdk",
        .0.display()
    )]
    PackagesOnly(PathBuf),
}

/// Which compiled crates to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those that packages need: [`CRATES`].
    Packages,
    /// All, which minimal drivers need.
    Drivers,
}

/// The crate that every package uses.
const ELEMENT: &str = "castanet_element";

/// A directory of compiled crates.
#[derive(Clone, Debug)]
pub struct Sdk {
    folder: PathBuf,
    /// The files of each crate, newest first. There are several if cargo built the crate in several ways.
    files: BTreeMap<String, Vec<PathBuf>>,
}

/// The name of the crate in a compiled file. The file is named `libNAME-HASH.rlib`, or `.so` for macros.
fn crate_of(path: &Path) -> Option<&str> {
    let extension = path.extension()?;
    let name = path.file_stem()?.to_str()?.strip_prefix("lib")?;
    (extension == "rlib" || extension == "so").then(|| name.rsplit_once('-').map_or(name, |n| n.0))
}

impl Sdk {
    /// Opens a directory of compiled crates, if it contains castanet's.
    pub fn open(folder: &Path) -> Option<Sdk> {
        // The path must be absolute, because the compiler runs in another directory.
        let folder = std::path::absolute(folder).ok()?;
        let mut files: BTreeMap<String, Vec<(SystemTime, PathBuf)>> = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).ok()?.flatten() {
            let path = entry.path();
            if let Some(name) = crate_of(&path) {
                let time = entry.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                files.entry(name.to_string()).or_default().push((time, path));
            }
        }
        let files: BTreeMap<_, Vec<PathBuf>> = files
            .into_iter()
            .map(|(name, mut all)| {
                all.sort_by(|a, b| b.cmp(a));
                (name, all.into_iter().map(|f| f.1).collect())
            })
            .collect();
        files.contains_key(ELEMENT).then_some(Sdk { folder, files })
    }

    /// The default locations of this castanet's compiled crates.
    pub fn places() -> Vec<PathBuf> {
        let exe = std::env::current_exe().unwrap_or_default();
        let beside = exe.parent().unwrap_or(Path::new("")).to_path_buf();
        vec![beside.join("deps"), crate::packages::installed().join("sdk"), beside]
    }

    /// Finds the compiled crates: in `given`, in the directory that `CASTANET_SDK` names, or in a default
    /// location.
    ///
    /// # Errors
    /// The error has the directories searched, and what to do.
    pub fn find(given: Option<&Path>) -> Result<Sdk, SdkError> {
        let named = std::env::var_os("CASTANET_SDK").filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(folder) = given.or(named.as_deref()) {
            return Sdk::open(folder).ok_or_else(|| SdkError::Named(folder.to_path_buf()));
        }
        let places = Sdk::places();
        places.iter().find_map(|p| Sdk::open(p)).ok_or(SdkError::Nowhere(places))
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// The files of `castanet-element`, newest first.
    pub fn elements(&self) -> &[PathBuf] {
        self.all(ELEMENT)
    }
    /// The files of a crate, by its Rust name, newest first.
    pub fn all(&self, name: &str) -> &[PathBuf] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }
    /// The newest file of a crate, by its Rust name.
    pub fn newest(&self, name: &str) -> Option<&Path> {
        self.files.get(name).and_then(|f| f.first()).map(PathBuf::as_path)
    }

    /// Creates a directory if it is missing, and copies the files that packages or drivers need into it. Returns the
    /// number of bytes copied.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn copy(&self, to: &Path, extent: Extent) -> std::io::Result<u64> {
        std::fs::create_dir_all(to)?;
        let mut bytes = 0;
        let wanted = |name: &str| extent == Extent::Drivers || CRATES.contains(&name);
        for path in self.files.iter().filter(|f| wanted(f.0)).flat_map(|f| f.1) {
            if let Some(name) = path.file_name() {
                // Renaming leaves the old file intact for processes that use it.
                let part = to.join(format!(".{}.part", name.to_string_lossy()));
                bytes += std::fs::copy(path, &part)?;
                std::fs::rename(&part, to.join(name))?;
            }
        }
        Ok(bytes)
    }
}

/// Whether a compiled crate contains only bitcode for link-time optimisation, and no machine code.
pub fn is_bitcode(rlib: &[u8]) -> bool {
    // An `ar` archive: a magic line, then members. Each member has a 60-byte header, with the member's
    // size at bytes 48 to 57, and is padded to an even size.
    let mut rest = rlib.strip_prefix(b"!<arch>\n").unwrap_or_default();
    while let Some((header, body)) = rest.split_at_checked(60) {
        let size = header.get(48..58).and_then(|s| std::str::from_utf8(s).ok()?.trim().parse::<usize>().ok());
        let Some(size) = size else { return false };
        let Some((member, more)) = body.split_at_checked(size) else { return false };
        if member.starts_with(b"BC\xc0\xde") {
            return true;
        }
        rest = more.get(size % 2..).unwrap_or_default();
    }
    false
}
