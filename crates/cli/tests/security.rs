// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/security.md: each sentence names a test, and that test exists and is run.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// Returns what is wrong with a table row; `None` if it names an existing test.
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
    is_run(&text, name).err().map(|why| format!("{why} '{name}' in {file}"))
}

/// Checks that the text of a file contains a test of this name, and that the test is always run.
fn is_run(text: &str, name: &str) -> Result<(), &'static str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |l: &&str| l.strip_prefix("fn ").is_some_and(|l| l.starts_with(&format!("{name}(")));
    let at = lines.iter().position(is_it).ok_or("there is no test")?;
    let attributes = || lines.iter().take(at).rev().take_while(|l| l.starts_with("#["));
    if !attributes().any(|l| *l == "#[test]") {
        return Err("there is no #[test] directly above");
    }
    let ignored = attributes().any(|l| l.starts_with("#[ignore") || l.starts_with("#[cfg_attr"));
    if ignored { Err("a test that may be ignored is") } else { Ok(()) }
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
    for (text, runs) in [
        ("#[test]\nfn it() {", true),
        ("    #[test]\n    #[should_panic]\n    fn it() {", true),
        ("fn it() {", false),
        ("#[test]\n\nfn it() {", false),
        ("#[test]\nfn other() {}\nfn it() {", false),
        ("// #[test]\nfn it() {", false),
        ("#[test]\n#[ignore]\nfn it() {", false),
        ("#[test]\n#[ignore = \"slow\"]\nfn it() {", false),
        ("#[ignore]\n#[test]\nfn it() {", false),
        ("#[test]\n#[cfg_attr(unix, ignore)]\nfn it() {", false),
        ("#[test]\nfn it_too() {", false),
    ] {
        assert_eq!(is_run(text, "it").is_ok(), runs, "{text}");
    }
}
