// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the tests named in docs/rfc1812.md exist.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the names of all scenarios, as `module::test`.
fn scenarios() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let name = pair[1].strip_prefix("fn ").and_then(|rest| rest.split_once('('));
            if let ("#[test]", Some((name, _))) = (pair[0], name) {
                all.insert(format!("{module}::{name}"));
            }
        }
    }
    all
}

#[test]
fn every_scenario_that_the_document_names_exists() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rfc1812.md")).unwrap();
    let all = scenarios();
    let named: BTreeSet<String> =
        text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains("::")).map(String::from).collect();
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(missing.is_empty(), "no such scenarios: {missing:?}");
    assert!(named.len() > 30, "the document names only {}", named.len());
}
