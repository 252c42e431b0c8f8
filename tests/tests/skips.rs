// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a test which cannot run on this machine reports it: no test returns early without a line that
//! begins with SKIP.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// The number of lines above an early return in which the reason must appear.
const ABOVE: usize = 3;
/// Texts that count as a reason: the SKIP line itself, a function that prints it, or a line of a test that runs itself
/// as a subprocess.
const REASONS: [&str; 19] = [
    "SKIP",
    "has_tun()",
    "has_xdp()",
    "has_driver_xdp()",
    "has_browser()",
    "is_root()",
    "println!(\"{}\", writer.count())",
    // Functions that create a lab or a network in it.
    "lab()",
    "Net::new(",
    "Net::asked(",
    "following(",
    "alone(",
    "Nat::new(",
    "Nat::with(",
    "Field::new(",
    "Ring::new(",
    "Curves::measured(",
    // A comparison with another implementation, when that implementation refuses the input.
    "nothing to compare",
    // A function that runs a script with a mounted router.
    "script(",
];

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

/// Returns the code of a file: strings and comments become blanks, and lines stay where they are.
fn code(text: &str) -> String {
    let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = rest.strip_prefix('r').map(|r| r.len() - r.trim_start_matches('#').len())
            && rest[1 + hashes..].starts_with('"')
            && !out.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            let end = format!("\"{}", "#".repeat(hashes));
            rest[2 + hashes..].find(&end).map_or(rest.len(), |n| 2 + hashes + n + end.len())
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |n| n + 2)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\") {
            4.min(rest.len())
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..length].chars().map(blank));
        rest = &rest[length..];
    }
    out
}

/// Whether a line of code leaves a test early. A `return` with a value does not leave the test: it belongs to a closure
/// or function inside the test.
fn returns(line: &str) -> bool {
    let after = line.split("return").skip(1).zip(line.match_indices("return"));
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut values = after.filter_map(|(value, (at, _))| {
        let whole = !word(line[..at].chars().next_back()) && !word(value.chars().next());
        whole.then(|| value.trim_start().split([';', '}', ',']).next().unwrap_or_default().trim())
    });
    values.any(|value| match value {
        "" | "()" | "Ok(())" => true,
        // A call without a value, such as `return println!(...)`. (A returned error does not count, because
        // it fails the test.)
        _ => ["println!", "assert", "drop("].iter().any(|call| value.starts_with(call)),
    })
}

/// Returns the line numbers, counted from 1, of early returns without a reason.
fn silent(text: &str) -> Vec<usize> {
    let (lines, code): (Vec<&str>, String) = (text.lines().collect(), code(text));
    // `test` is the indentation of the test that the line is in. `announced` is set between `#[test]` and `fn`.
    let (mut test, mut announced) = (None, false);
    let mut found = Vec::new();
    for (i, line) in code.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() == "#[test]" {
            announced = true;
        } else if announced && line.trim_start().starts_with("fn ") {
            (test, announced) = (Some(indent), false);
        } else if line.trim() == "}" && test == Some(indent) {
            test = None;
        }
        let above = lines.get(i.saturating_sub(ABOVE)..=i).unwrap_or_default();
        let reason = above.iter().any(|l| REASONS.iter().any(|r| l.contains(r)));
        if test.is_some() && returns(line) && !reason {
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
    let test = |body: &str| format!("#[test]\nfn t() {{\n    before();\n{body}\n    more();\n}}\n");
    for body in [
        "    return;",
        "    let Some(x) = f() else { return };",
        "    if !can() { return }",
        "    return Ok(());",
        "    Err(e) => return,",
        "    let a = '\"'; return; let b = '\"';",
        "    return println!(\"no\");",
        "    return drop(guard);",
    ] {
        assert_eq!(silent(&test(body)), [4], "{body}");
        assert_eq!(silent(&test(body).replace("before", "// SKIP")), [], "{body}");
    }
    for body in [
        "    println!(\"SKIP: no\"); return;",
        "    let Some(lab) = lab() else { return };",
        "    let f = |x| { return x + 1; };",
        "    let text = \"\n    return;\n\";",
        "    let text = r#\"\" return;\"#;",
        "    // return;",
        "    let returns;",
    ] {
        assert_eq!(silent(&test(body)), [], "{body}");
    }
    assert_eq!(silent("fn f() {\n    return;\n}\n"), []);
}
