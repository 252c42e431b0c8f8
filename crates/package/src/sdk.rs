// SPDX-License-Identifier: MIT OR Apache-2.0
//! What packages are built with: the compiled crates of this very castanet, as files.
//!
//! Cargo leaves them in the `deps` folder beside the program. `castanet sdk` copies those that matter to where they stay, so
//! that packages can be built without the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The crates that `castanet-element` is made of, but for the standard library: what `castanet sdk` copies. A test compares
/// it with the lock file.
pub const CRATES: [&str; 30] = [
    "annotate_snippets",
    "anstyle",
    "castanet_derive",
    "castanet_element",
    "castanet_lang",
    "castanet_packet",
    "castanet_spec",
    "castanet_tables",
    "castanet_wire",
    "cfg_if",
    "countme",
    "crossbeam_utils",
    "getrandom",
    "hashbrown",
    "libc",
    "memchr",
    "memoffset",
    "proc_macro2",
    "quote",
    "rand_core",
    "rowan",
    "rustc_hash",
    "syn",
    "text_size",
    "thiserror",
    "thiserror_impl",
    "unicode_ident",
    "unicode_width",
    "zerocopy",
    "zerocopy_derive",
];

/// The crate that every package uses.
const ELEMENT: &str = "castanet_element";

/// A folder of compiled crates.
#[derive(Clone, Debug)]
pub struct Sdk {
    folder: PathBuf,
    /// By crate: its files, the newest first. There are several when cargo built it in several ways.
    files: BTreeMap<String, Vec<PathBuf>>,
}

/// The crate that a compiled file is of: `libNAME-HASH.rlib`, or `.so` for macros.
fn crate_of(path: &Path) -> Option<&str> {
    let extension = path.extension()?;
    let name = path.file_stem()?.to_str()?.strip_prefix("lib")?;
    (extension == "rlib" || extension == "so").then(|| name.rsplit_once('-').map_or(name, |n| n.0))
}

impl Sdk {
    /// The compiled crates of a folder, if castanet's are among them.
    pub fn open(folder: &Path) -> Option<Sdk> {
        // The compiler is run in another folder.
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

    /// The folders in which the crates of this castanet may be.
    pub fn places() -> Vec<PathBuf> {
        let exe = std::env::current_exe().unwrap_or_default();
        let beside = exe.parent().unwrap_or(Path::new("")).to_path_buf();
        vec![beside.join("deps"), crate::packages::installed().join("sdk"), beside]
    }

    /// The crates of this castanet: in the folder that is given, or that `CASTANET_SDK` names, or where they are installed.
    ///
    /// # Errors
    /// Where they are not, and what to do.
    pub fn find(given: Option<&Path>) -> Result<Sdk, String> {
        let named = std::env::var_os("CASTANET_SDK").filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(folder) = given.or(named.as_deref()) {
            return Sdk::open(folder).ok_or_else(|| {
                format!("{}: the compiled crates of castanet are not there", folder.display())
            });
        }
        let places = Sdk::places();
        places.iter().find_map(|p| Sdk::open(p)).ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            format!(
                "the compiled crates of this castanet are not there (looked in {}): keep them with 'castanet sdk' in the \
                 folder in which castanet was built, or name their folder with --sdk",
                places.join(", ")
            )
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// The files of `castanet-element`, the newest first.
    pub fn elements(&self) -> &[PathBuf] {
        self.files.get(ELEMENT).map_or(&[], Vec::as_slice)
    }
    /// The newest file of a crate, by its name in Rust.
    pub fn newest(&self, name: &str) -> Option<&Path> {
        self.files.get(name).and_then(|f| f.first()).map(PathBuf::as_path)
    }

    /// Copies what packages need to a folder, which is made; returns how many bytes that were.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn copy(&self, to: &Path) -> std::io::Result<u64> {
        std::fs::create_dir_all(to)?;
        let mut bytes = 0;
        for path in self.files.iter().filter(|f| CRATES.contains(&f.0.as_str())).flat_map(|f| f.1) {
            if let Some(name) = path.file_name() {
                // A crate that is in use keeps its old file.
                let part = to.join(format!(".{}.part", name.to_string_lossy()));
                bytes += std::fs::copy(path, &part)?;
                std::fs::rename(&part, to.join(name))?;
            }
        }
        Ok(bytes)
    }
}

/// Whether a compiled crate holds only what is optimised when a program is linked, and no machine code.
pub fn is_bitcode(rlib: &[u8]) -> bool {
    // An archive: a magic line; then members, each with a header of 60 bytes that ends with its size, padded to even.
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
