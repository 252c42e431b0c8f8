// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the order of the crate's files, which the documentation of the crate lists.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The modules that a line of the list names.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The modules that a file declares.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    let declared = text.lines().filter_map(|l| {
        let l = l.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        l.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.filter(|m| *m != "tests")
}

/// The paths that a file of module `parent` imports from its crate, such as `swap::plan::Plan`. `parent` is empty for a
/// file beside lib.rs.
fn imports<'a>(text: &'a str, parent: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines().filter_map(move |l| {
        let path = |l: &str| l.split(['{', ';']).next().unwrap_or_default().to_string();
        let of_crate = l.strip_prefix("use crate::").map(path);
        of_crate.or_else(|| l.strip_prefix("use super::").map(|l| format!("{parent}::{}", path(l))))
    })
}

#[test]
fn each_file_uses_only_files_that_come_before_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |module: &str| {
        let path = folder.join(format!("{}.rs", module.replace("::", "/")));
        std::fs::read_to_string(path).unwrap()
    };
    let lib = read("lib");
    let list = lib.lines().skip_while(|l| !l.contains("Each file uses only"));
    let order: Vec<&str> = list.take_while(|l| l.starts_with("//!")).flat_map(names).collect();
    // A path belongs to the listed module that is its longest prefix.
    let place = |path: &str| {
        let listed = order.iter().enumerate();
        let of =
            listed.filter(|(_, m)| path == **m || path.strip_prefix(**m).is_some_and(|r| r.starts_with(':')));
        of.max_by_key(|(_, m)| m.len()).map(|(i, _)| i)
    };
    let mut all: Vec<String> = Vec::new();
    for module in modules(&lib) {
        all.push(module.to_string());
        all.extend(modules(&read(module)).map(|inner| format!("{module}::{inner}")));
    }
    let mut checked = 0;
    for module in &all {
        let own = place(module).unwrap_or_else(|| panic!("the list in lib.rs lacks {module}"));
        let parent = module.rsplit_once("::").map_or("", |m| m.0);
        for used in imports(&read(module), parent) {
            let Some(at) = place(&used) else { continue };
            let inside = order[at] == parent || order[at] == order[own];
            assert!(inside || at < own, "{module} uses {used}, which comes after it in the list in lib.rs");
            checked += 1;
        }
    }
    assert!(checked > 130, "{checked} imports");
}
