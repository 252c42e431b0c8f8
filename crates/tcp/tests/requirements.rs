// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of docs/rfc9293.md: it has each requirement of RFC 9293, appendix B, once, and the methods, files and tests that it names
//! exist.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::Sources;
use castanet_prolac::load::{Extensions, Folder};
use castanet_prolac::outline::outline;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A row of the table.
struct Row {
    number: String,
    state: String,
    places: Vec<String>,
    /// Files, and the names of tests in them.
    tests: Vec<(String, String)>,
}

/// The texts between backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("docs/rfc9293.md")).unwrap();
    let cells = text.lines().map(|l| l.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .filter_map(|cells| match cells[..] {
            ["", number, _, state, places, tests, ""] if number.contains(|c: char| c.is_ascii_digit()) => {
                let tests = quoted(tests).chunks(2).map(|t| (t[0].clone(), t[1].clone())).collect();
                Some(Row { number: number.into(), state: state.into(), places: quoted(places), tests })
            }
            _ => None,
        })
        .collect()
}

/// The methods of protocols/tcp, with all extensions, as `Module.method`, and the modules.
fn methods() -> BTreeSet<String> {
    let main = root().join("protocols/tcp/tcp.pc");
    let mut sources = Sources::new();
    let file = sources.add(main.to_string_lossy(), std::fs::read_to_string(&main).unwrap());
    let (program, problems) = castanet_prolac::analyse(&mut sources, file, &Folder, &Extensions::All);
    assert!(problems.is_empty(), "{problems:?}");
    let (mut module, mut all) = (String::new(), BTreeSet::new());
    for line in outline(&program).lines() {
        let words: Vec<&str> = line.split([' ', '(', ',']).filter(|w| !w.is_empty()).collect();
        match (line.strip_prefix("module "), &words[..]) {
            (Some(_), [_, name, ..]) => {
                module = name.to_string();
                all.insert(module.clone());
            }
            (None, ["const" | "static", name, ..] | [name, ..]) if line.starts_with("    ") => {
                all.insert(format!("{module}.{name}"));
            }
            _ => {}
        }
    }
    all
}

/// Whether a file has a test of this name.
fn has_test(file: &str, name: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(root().join(file)) else { return false };
    if file.ends_with(".pkt") {
        return name == "scripts" && has_test("crates/tcp/tests/scripts/main.rs", name);
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.windows(2).any(|l| l[0] == "#[test]" && l[1].starts_with(&format!("fn {name}()")))
}

#[test]
fn each_requirement_is_there_once() {
    let numbers = [("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)];
    let all = numbers.iter().flat_map(|(kind, most)| (1..=*most).map(move |n| format!("{kind}-{n}")));
    let (mut wanted, mut named): (Vec<_>, Vec<_>) =
        (all.collect(), rows().into_iter().map(|r| r.number).collect());
    wanted.sort();
    named.sort();
    assert_eq!(named, wanted);
}

#[test]
fn what_the_table_names_exists() {
    let methods = methods();
    assert!(methods.contains("Base.Ack.ack-arrives") && methods.contains("Tcp-Interface.no-delay"));
    for row in rows() {
        for place in &row.places {
            let exists =
                if place.contains('/') { root().join(place).exists() } else { methods.contains(place) };
            assert!(exists, "{}: there is no {place}", row.number);
        }
        for (file, name) in &row.tests {
            assert!(has_test(file, name), "{}: there is no test {name} in {file}", row.number);
        }
    }
}

/// A requirement that is met has a test; one that is not has none.
#[test]
fn what_is_met_is_tested() {
    for row in rows() {
        match row.state.as_str() {
            "met" => assert!(!row.tests.is_empty(), "{} has no test", row.number),
            "not met" | "not applicable" => assert!(row.tests.is_empty(), "{} is not met", row.number),
            other => panic!("{}: '{other}'", row.number),
        }
    }
}

/// Each script that names a requirement shows it: the table has the script, or another one that names the same number.
#[test]
fn requirements_that_scripts_name_are_met() {
    let folder = root().join("crates/tcp/tests/scripts");
    let rows = rows();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pkt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        for number in words.filter(|w| rows.iter().any(|r| r.number == **w)) {
            let row = rows.iter().find(|r| r.number == number).unwrap();
            assert_eq!(row.state, "met", "{number} in {path:?}");
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}
