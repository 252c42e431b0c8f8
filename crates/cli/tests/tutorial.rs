// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tutorial of CONTRIBUTING.md, run as it is printed: in a folder outside the workspace, and in a copy of
//! the workspace.
//!
//! Blocks whose first line names a file are parts of that file. In blocks of the kind `console`, lines with
//! `$` are commands; the lines below a command are its expected output, if there is any. Other blocks are not
//! run.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const CASTANET: &str = env!("CARGO_BIN_EXE_castanet");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Reads the tutorial. Returns its two parts: the one outside Castanet, and the one inside.
fn tutorial() -> (String, String) {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, text) = text.split_once("\n## Ten minutes to your first element\n").unwrap();
    let (text, _) = text.split_once("\n## Conventions\n").unwrap();
    let (outside, inside) = text.split_once("\n### 7.").unwrap();
    (outside.to_string(), inside.to_string())
}

/// Splits a text into its blocks. Returns the kind and the lines of each.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(kind) => {
                open = !open;
                all.extend(open.then(|| (kind, Vec::new())));
            }
            None if open => all.last_mut().unwrap().1.push(line),
            None => {}
        }
    }
    assert!(!open, "a block has no end");
    all
}

/// Collects the files of a text. Each consists of its blocks in the order in which they are printed, with an
/// empty line between.
fn files(text: &str) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (kind, lines) in blocks(text).into_iter().filter(|b| ["rust", "toml", "click"].contains(&b.0)) {
        let name = lines[0].trim_start_matches(['/', '#', ' ']);
        let (name, more) = name.strip_suffix(", continued").map_or((name, false), |n| (n, true));
        assert_eq!(more, all.contains_key(name), "{kind}: {}", lines[0]);
        let file = all.entry(name.to_string()).or_default();
        let gap = if more { "\n" } else { "" };
        *file += &format!("{gap}{}\n", lines[1..].join("\n"));
    }
    all
}

/// Returns the commands of a text, each with the output that the text shows.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in blocks(text).into_iter().filter(|b| b.0 == "console").flat_map(|b| b.1) {
        match line.strip_prefix("$ ") {
            Some(command) => all.push((command.to_string(), String::new())),
            None => all.last_mut().unwrap().1 += &format!("{line}\n"),
        }
    }
    all
}

/// Runs the commands in a folder, and compares their output with the tutorial. Crates are compiled into
/// `target`, and nothing is downloaded.
fn run(commands: &[(String, String)], folder: &Path, target: &Path) {
    let programs = Path::new(CASTANET).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    for (command, prints) in commands {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command} 2>&1")]).current_dir(folder);
        shell.env("PATH", format!("{}:{path}", programs.display()));
        shell.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
        for name in
            ["CLICKPATH", "CASTANET_SDK", "CASTANET_BLESS", "RUSTFLAGS", "CARGO_MAKEFLAGS", "CLICOLOR_FORCE"]
        {
            shell.env_remove(name);
        }
        let out = shell.output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let is_error = prints.starts_with("error");
        assert_eq!(out.status.success(), !is_error, "$ {command}\n{text}");
        if !prints.is_empty() {
            assert_eq!(text.trim_end(), prints.trim_end(), "$ {command}");
        }
    }
}

fn write(files: &BTreeMap<String, String>, folder: &Path) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn the_tutorial_runs_outside_the_workspace() {
    let (outside, _) = tutorial();
    let (files, commands) = (files(&outside), commands(&outside));
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["Cargo.toml", "first.click", "src/check_size.rs", "src/lib.rs"]
    );
    assert_eq!(commands.len(), 6, "{commands:?}");
    let place = tempfile::tempdir().unwrap();
    assert!(!place.path().starts_with(root()), "{}", place.path().display());
    std::os::unix::fs::symlink(root(), place.path().join("castanet")).unwrap();
    let folder = place.path().join("first");
    write(&files, &folder);
    run(&commands, &folder, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial"));
}

/// Applies a printed diff. Returns the name of the file and its new text.
fn patched(lines: &[&str], read: impl Fn(&str) -> String) -> (String, String) {
    let name = lines[1].strip_prefix("+++ b/").unwrap().to_string();
    let mut text = read(&name);
    for hunk in lines[2..].split(|l| *l == "@@").filter(|h| !h.is_empty()) {
        let side = |skip: char| -> String {
            hunk.iter().filter(|l| !l.starts_with(skip)).map(|l| format!("{}\n", &l[1..])).collect()
        };
        let (before, after) = (side('+'), side('-'));
        assert_eq!(text.matches(&before).count(), 1, "{name} does not have these lines once:\n{before}");
        text = text.replace(&before, &after);
    }
    (name, text)
}

/// Applies the tutorial's diff to the workspace as it is. Returns the name of the file and its new text.
fn difference(inside: &str) -> (String, String) {
    let diffs: Vec<_> = blocks(inside).into_iter().filter(|b| b.0 == "diff").collect();
    assert_eq!(diffs.len(), 1);
    patched(&diffs[0].1, |name| std::fs::read_to_string(root().join(name)).unwrap())
}

#[test]
fn the_printed_difference_applies() {
    let (_, text) = difference(&tutorial().1);
    for line in ["pub mod check_size;\n", "    action::<check_size::CheckSize>(),\n"] {
        assert_eq!(text.matches(line).count(), 1, "{line}");
    }
}

/// Compiles a copy of the workspace. This takes minutes, so only `.ci/long` runs this test.
#[test]
#[ignore = "compiles the workspace again"]
fn the_tutorial_runs_in_a_copy_of_the_workspace() {
    let (outside, inside) = tutorial();
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("castanet");
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success());
    for name in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|n| !n.is_empty()) {
        let to = copy.join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root().join(name), to).unwrap();
    }
    write(&files(&outside), &place.path().join("first"));
    let (name, text) = difference(&inside);
    std::fs::write(copy.join(name), text).unwrap();
    run(&commands(&inside), &copy, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial-inside"));
}
