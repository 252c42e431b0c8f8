// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records at compile time the source of the classes and of the run loop. Code that was compiled for a configuration
//! accesses the fields of elements directly, so it must come from the same source as the program that loads it.

use std::path::{Path, PathBuf};
use std::{env, fs};

include!("../element/build/hash.rs");

/// The crates whose types the code uses, besides the API crates (see the build script of `castanet-element`).
const CRATES: [&str; 8] =
    ["classify", "devirtualized", "elements", "graph", "io", "native", "runtime", "typed"];

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut hash = Hash::new();
    add_sources(&mut hash, &here, &CRATES);
    println!("cargo:rustc-env=CASTANET_SOURCE={:032x}", hash.0);
}
