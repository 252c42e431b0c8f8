// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/security.md: each sentence names a test, and that test exists.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The error of a table row; `None` if it names an existing test.
fn fault(root: &Path, row: &str) -> Option<String> {
    let cells: Vec<&str> = row.trim().trim_matches('|').rsplitn(2, '|').map(str::trim).collect();
    let [test, sentence] = cells[..] else { return Some("a row has a sentence and a test".into()) };
    if !sentence.ends_with('.') {
        return Some("a sentence ends with a full stop".into());
    }
    let words: Vec<&str> = test.split('`').collect();
    let ["", file, ": ", name, ""] = words[..] else {
        return Some("the test is written as `FILE`: `NAME`".into());
    };
    let Ok(text) = std::fs::read_to_string(root.join(file)) else {
        return Some(format!("there is no file '{file}'"));
    };
    let mut lines = text.lines().map(str::trim);
    let found = lines.any(|l| l.strip_prefix("fn ").is_some_and(|l| l.starts_with(&format!("{name}("))));
    (!found).then(|| format!("there is no test '{name}' in {file}"))
}

#[test]
fn every_sentence_of_the_security_model_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    for heading in ["## Control clients", "## Privileges", "## Randomness", "## Limits"] {
        assert!(page.lines().any(|l| l == heading), "{heading}");
    }
    let rows =
        page.lines().filter(|l| l.starts_with('|') && !l.starts_with("|---") && !l.starts_with("| property"));
    let faults: Vec<String> =
        rows.filter_map(|row| Some(format!("{row}\n  {}", fault(&root, row)?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn rows_without_a_test_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here = "`crates/cli/tests/security.rs`: `rows_without_a_test_are_found`";
    assert_eq!(fault(&root, &format!("| A sentence. | {here} |")), None);
    for (row, want) in [
        (format!("| No full stop | {here} |"), "full stop"),
        ("| A sentence. | |".into(), "is written as"),
        ("| A sentence. | `crates/nothing.rs`: `x` |".into(), "no file"),
        ("| A sentence. | `crates/cli/tests/security.rs`: `missing` |".into(), "no test 'missing'"),
    ] {
        assert!(fault(&root, &row).is_some_and(|f| f.contains(want)), "{row}");
    }
}
