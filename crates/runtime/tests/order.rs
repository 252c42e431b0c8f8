// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the order of the crate's files, which the documentation of the crate lists.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The modules that a line of the list names.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn each_file_uses_only_files_that_come_before_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(folder.join("lib.rs")).unwrap();
    let list = lib.lines().skip_while(|l| !l.contains("Each file uses only"));
    let order: Vec<&str> = list.take_while(|l| l.starts_with("//!")).flat_map(names).collect();
    let place = |name: &str| order.iter().position(|o| *o == name);
    let modules = lib.lines().filter_map(|l| l.trim_start_matches("pub ").strip_prefix("mod "));
    let mut checked = 0;
    for module in modules.map(|m| m.trim_end_matches(';')).filter(|m| *m != "tests") {
        let own = place(module).unwrap_or_else(|| panic!("the list in lib.rs lacks {module}"));
        let text = std::fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
        let used = text.lines().filter_map(|l| l.strip_prefix("use crate::"));
        for used in used.map(|u| u.split([':', ';']).next().unwrap()).filter(|u| place(u).is_some()) {
            assert!(
                place(used).unwrap() < own,
                "{module} uses {used}, which comes after it in the list in lib.rs"
            );
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked} imports");
}
