// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of building packages, and of the errors for crates that cannot be built.

use super::common;
use castanet_package::build::{Built, Options, build};
use castanet_package::header::Header;
use castanet_package::sdk::{CRATES, Extent, Sdk, is_bitcode};
use castanet_package::{Packages, header};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tally")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            _ = std::fs::copy(entry.path(), to).unwrap()
        }
    }
}

fn built(folder: &Path, release: bool, sdk: Option<&Path>) -> Result<Built, String> {
    let output = Some(folder.join("out.castanet"));
    let options = Options { folder: folder.into(), output, release, sdk: sdk.map(Path::to_path_buf) };
    build(&options).map_err(|e| e.to_string())
}

/// Copies the example, changes a file, and returns the error of building it.
fn error(file: &str, from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    let path = folder.path().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    built(folder.path(), false, None).err().unwrap_or_else(|| panic!("{file} was built"))
}

#[test]
fn a_copied_crate_with_crates_that_were_kept() {
    let _alone = common::alone();
    common::tally();
    let sdk = tempfile::tempdir().unwrap();
    let bytes = Sdk::find(None).unwrap().copy(&sdk.path().join("kept/here"), Extent::Packages).unwrap();
    assert!(bytes > 1 << 20, "{bytes}");
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    let one = built(folder.path(), false, Some(&sdk.path().join("kept/here"))).unwrap();
    assert_eq!(one.classes, ["CheckSize", "TallySwitch"]);
    assert_eq!(one.warnings, "");
    let first = std::fs::read(&one.file).unwrap();
    assert_eq!(first.len(), one.bytes);
    let (h, _) = header::check("x", &first).unwrap();
    assert_eq!(h.get("name"), "tally");
    assert_eq!(h.get("api"), Header::own().get("api"));
    let two = built(folder.path(), true, None).unwrap();
    assert!(std::fs::read(&two.file).unwrap() != first);
}

#[test]
fn crates_that_cannot_be_built_give_a_reason() {
    let _alone = common::alone();
    for (file, from, to, why) in [
        ("Cargo.toml", "[package]", "[packag]", "not a package"),
        ("Cargo.toml", "[package]", "[package", "Cargo.toml: TOML parse error"),
        ("Cargo.toml", "name = \"castanet-tally\"", "name = \"x\\\"; evil\"", "is not a crate name"),
        ("Cargo.toml", "[lints]", "build = \"make.rs\"\n[lints]", "has a build script"),
        ("build.rs", "", "fn main() {}", "has a build script"),
        ("src/lib.rs", "element::<tally_switch::TallySwitch>()", "element::<u8>()", "trait bound `u8: "),
        ("src/lib.rs", "castanet_element::package!", "castanet_element::packag!", "cannot find `packag`"),
        (
            "src/lib.rs",
            "pub mod check_size;",
            "pub mod check_size; use castanet_runtime::Router;",
            "not among castanet's compiled crates, so the classes cannot use them: ",
        ),
    ] {
        let said = error(file, from, to);
        assert!(said.contains(why), "{file}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let said = built(folder.path(), false, None).unwrap_err();
    assert!(said.contains("Cargo.toml: No such file"), "{said}");
    let said = built(&example(), false, Some(folder.path())).unwrap_err();
    assert!(said.ends_with("it does not contain castanet's compiled crates"), "{said}");
}

/// Types of two versions of a crate must not be confused, because their fields may differ.
#[test]
fn another_version_has_other_types() {
    let _alone = common::alone();
    common::tally();
    let packages = Packages::new(None);
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    let one =
        packages.load_file(&built(folder.path(), false, None).unwrap().file.display().to_string()).unwrap();
    let first = hashes(&one);
    let path = folder.path().join("src/check_size.rs");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("Packets outside the limits.", "Packets of other lengths.")).unwrap();
    let two =
        packages.load_file(&built(folder.path(), false, None).unwrap().file.display().to_string()).unwrap();
    let again = packages.load_file(&folder.path().join("out.castanet").display().to_string()).unwrap();
    assert!(std::sync::Arc::ptr_eq(&two, &again), "one content is loaded once");
    assert_eq!(packages.alive().len(), 2, "the old one is there as long as it is used");
    let doc = |l: &castanet_package::Library| {
        let mut all = l.get("CheckSize").unwrap().spec.all_handlers();
        all.find(|h| h.name == "rejected").unwrap().doc.trim()
    };
    assert_eq!((doc(&one), doc(&two)), ("Packets outside the limits.", "Packets of other lengths."));
    assert!(first.len() > 4 && first.is_disjoint(&hashes(&two)), "{first:?}");
}

/// The hashes at the end of the crate's function names. They include the identity of the crate, and thus of its
/// types.
fn hashes(library: &castanet_package::Library) -> BTreeSet<String> {
    let bytes = std::fs::read(library.file()).unwrap();
    let ours = |n: &&[u8]| {
        n.starts_with(b"_ZN") && n.ends_with(b"E") && n.windows(14).any(|w| w == b"castanet_tally")
    };
    let names = bytes.split(|b| *b == 0).filter(ours);
    names.map(|n| String::from_utf8(n[n.len() - 17..].to_vec()).unwrap()).collect()
}

/// `castanet sdk` copies only crates on which castanet-element depends according to the lock file. (That the
/// copied crates are sufficient is shown by building the example crate. The lock file also has crates for build
/// scripts, tests and other systems, which are not copied.)
#[test]
fn no_crate_is_copied_for_nothing() {
    let lock =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    let all = lock["package"].as_array().unwrap();
    let name = |p: &toml::Value| p["name"].as_str().unwrap().to_string();
    let mut wanted = BTreeSet::new();
    let mut open = vec!["castanet-element".to_string()];
    while let Some(next) = open.pop() {
        let mut words = next.split(' ');
        let (n, version) = (words.next().unwrap(), words.next());
        if !wanted.insert(next.clone()) {
            continue;
        }
        for p in
            all.iter().filter(|p| name(p) == n && version.is_none_or(|v| p["version"].as_str() == Some(v)))
        {
            let more = p.get("dependencies").and_then(|d| d.as_array());
            open.extend(more.into_iter().flatten().map(|d| d.as_str().unwrap().to_string()));
        }
    }
    let wanted: BTreeSet<String> =
        wanted.iter().map(|n| n.split(' ').next().unwrap().replace('-', "_")).collect();
    let extra: Vec<_> = CRATES.iter().filter(|n| !wanted.contains(**n)).collect();
    assert!(extra.is_empty(), "{extra:?}");
}

#[test]
fn archives_are_told_apart() {
    let member = |body: &[u8]| {
        let mut m = format!("{:<48}{:<10}`\n", "x.o/", body.len()).into_bytes();
        m.extend(body);
        m.resize(m.len().next_multiple_of(2), b'\n');
        m
    };
    let archive = |bodies: &[&[u8]]| {
        let mut a = b"!<arch>\n".to_vec();
        a.extend(bodies.iter().flat_map(|b| member(b)));
        a
    };
    assert!(is_bitcode(&archive(&[b"\x7fELF", b"odd", b"BC\xc0\xde..."])));
    assert!(!is_bitcode(&archive(&[b"\x7fELF", b"odd", b"BC"])));
    let whole = archive(&[b"odd", b"BC\xc0\xde"]);
    for n in 0..whole.len() {
        assert!(!is_bitcode(&whole[..n]), "{n}");
    }
    assert!(!is_bitcode(b"!<arch>\n") && !is_bitcode(&[b'9'; 200]));
}
