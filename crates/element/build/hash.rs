// SPDX-License-Identifier: MIT OR Apache-2.0
// The hash of source files, for the build scripts that include this file.

/// A 128-bit FNV-1a hash. No hasher of the standard library promises the same result in later versions.
struct Hash(u128);

impl Hash {
    fn new() -> Hash {
        Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
    fn add(&mut self, bytes: &[u8]) {
        for b in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

/// Appends the paths of all Rust files in `folder` and its subfolders to `into`, in a fixed order.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Adds the source of crates to a hash. `here` is the folder of the crate that is built.
///
/// In the repository, the folders of the crates are next to the folder of this crate, so their source is hashed. Outside
/// the repository, this adds nothing, and other builds are told apart only by their version and type ids.
fn add_sources(hash: &mut Hash, here: &Path, crates: &[&str]) {
    for name in crates {
        let folder = here.join("..").join(name);
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut all = Vec::new();
        files(&folder.join("src"), &mut all);
        for path in all {
            hash.add(path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy().as_bytes());
            hash.add(&fs::read(&path).unwrap_or_default());
        }
    }
}
