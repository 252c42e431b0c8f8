// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a test which cannot run on this machine reports it: no test returns early without a line that
//! begins with SKIP.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// The number of lines above an early return in which the reason must appear.
const ABOVE: usize = 3;
/// Acceptable reasons: the SKIP line itself, a function that prints it, or the part of a test that runs in its
/// own process.
const REASONS: [&str; 4] = ["SKIP", "has_tun()", "is_root()", "println!(\"{}\", writer.count())"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The line numbers, counting from 1, of early returns without a reason.
fn silent(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut found, mut in_test, mut announced) = (Vec::new(), false, false);
    for (i, line) in lines.iter().enumerate() {
        match *line {
            l if l.trim() == "#[test]" => announced = true,
            l if announced && l.trim_start().starts_with("fn ") => (in_test, announced) = (true, false),
            // A test ends with a closing brace in its own column, which is the first, or that of a `mod tests`.
            "}" | "    }" if in_test && !lines.get(i + 1).is_some_and(|l| l.starts_with("     ")) => {
                in_test = false;
            }
            _ => {}
        }
        let above = lines.get(i.saturating_sub(ABOVE)..=i).unwrap_or_default();
        let reason = above.iter().any(|l| REASONS.iter().any(|r| l.contains(r)));
        if in_test && line.trim() == "return;" && !reason {
            found.push(i + 1);
        }
    }
    found
}

#[test]
fn no_test_returns_silently() {
    let root = castanet_tests::binary::root();
    let mut files = Vec::new();
    for folder in ["crates", "tests", "examples"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 100, "{} files", files.len());
    for file in files {
        let found = silent(&std::fs::read_to_string(&file).unwrap());
        assert!(found.is_empty(), "{}: lines {found:?} return without a SKIP line", file.display());
    }
}

#[test]
fn silent_returns_are_found() {
    let test =
        |body: &str| format!("#[test]\nfn t() {{\n    if !can() {{\n{body}\n    }}\n    more();\n}}\n");
    assert_eq!(silent(&test("        return;")), [4]);
    assert_eq!(silent(&test("        println!(\"SKIP: no\");\n        return;")), []);
    assert_eq!(silent("fn f() {\n    return;\n}\n"), []);
}
