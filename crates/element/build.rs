// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records at compile time what must be the same for castanet and for a package of classes that it loads: the compiler,
//! the target, and the source of the API crates.
//!
//! castanet calls a class from a shared library by Rust's own calling convention, and both sides use the same Rust
//! types. Neither the calling convention nor the memory layout of types is stable across compilers. So both sides must
//! come from the same compiler, and from the same source of every crate whose types they share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The crates that define the types which packages and castanet share.
const API: [&str; 8] = ["derive", "element", "kernel", "lang", "packet", "spec", "tables", "wire"];

include!("build/hash.rs");

/// One package of a `Cargo.lock` file: name, version, dependencies as `NAME` or `NAME VERSION`.
type Locked<'a> = (&'a str, &'a str, Vec<&'a str>);

fn locked(text: &str) -> Vec<Locked<'_>> {
    text.split("[[package]]")
        .skip(1)
        .map(|block| {
            let value = |key: &str| {
                block
                    .lines()
                    .find_map(|l| l.strip_prefix(key)?.trim().strip_prefix('='))
                    .map_or("", |v| v.trim().trim_matches('"'))
            };
            let dependencies = block.split_once("dependencies = [").map_or("", |d| d.1);
            let dependencies = dependencies.split(']').next().unwrap_or("");
            let dependencies =
                dependencies.lines().map(|l| l.trim().trim_matches([',', '"'])).filter(|l| !l.is_empty());
            (value("name"), value("version"), dependencies.collect())
        })
        .collect()
}

/// Returns `NAME VERSION` of `castanet-element` and of all its direct and indirect dependencies.
fn dependencies(lock: &str) -> BTreeSet<String> {
    let all = locked(lock);
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = vec!["castanet-element".into()];
    while let Some(name) = open.pop() {
        for (n, version, more) in &all {
            let full = format!("{n} {version}");
            if (name == *n || full == name || name.starts_with(&format!("{full} "))) && found.insert(full) {
                open.extend(more.iter().map(|m| (*m).to_string()));
            }
        }
    }
    found
}

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let mut hash = Hash::new();
    add_sources(&mut hash, &here, &API);
    let lock = here.join("../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    for name in dependencies(&fs::read_to_string(lock).unwrap_or_default()) {
        hash.add(name.as_bytes());
    }
    hash.add(variable("CARGO_PKG_VERSION").as_bytes());

    let rustc = Command::new(variable("RUSTC")).arg("-vV").output().map(|o| o.stdout).unwrap_or_default();
    let rustc = String::from_utf8_lossy(&rustc);
    let of = |key: &str| rustc.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("").trim().to_string();
    let compiler =
        format!("{}, commit {}, on {}", rustc.lines().next().unwrap_or(""), of("commit-hash:"), of("host:"));
    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let profile = format!("{}, opt-level {}", variable("PROFILE"), variable("OPT_LEVEL"));
    for (name, value) in [
        ("COMPILER", compiler),
        ("TARGET", variable("TARGET")),
        ("FEATURES", features),
        ("PANIC", variable("CARGO_CFG_PANIC")),
        ("PROFILE", profile),
        ("API", format!("{:032x}", hash.0)),
        ("FLAGS", variable("CARGO_ENCODED_RUSTFLAGS").replace('\x1f', " ")),
    ] {
        println!("cargo:rustc-env=CASTANET_{name}={value}");
    }
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
}
