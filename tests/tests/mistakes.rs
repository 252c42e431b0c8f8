// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages about typical mistakes: each configuration in tests/mistakes has one mistake, except one configuration that
//! has five. The message in the `.txt` file of the same name must show the place, the cause and the correction.
//! `CASTANET_BLESS=1` updates these files.
//!
//! Each file is passed to `castanet check`. A first line `// castanet ARGUMENTS` gives another command, for
//! mistakes that show only at start-up. In this line, FILE stands for the file. `// castanet-unprivileged
//! ARGUMENTS` runs the command without the right to open packet sockets.
#![allow(clippy::unwrap_used)]
use castanet_tests::binary::{castanet, root};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns what castanet prints about a file, on both outputs.
fn messages(castanet: &Path, file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let first = text.lines().next().unwrap_or_default();
    let unprivileged = first.strip_prefix("// castanet-unprivileged ");
    let words = first.strip_prefix("// castanet ").or(unprivileged).unwrap_or("check FILE");
    let words = words.split(' ').map(|w| if w == "FILE" { name } else { w });
    let mut command = Command::new(castanet);
    // Root has the rights to open packet sockets and must drop them. Other users do not have them.
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    if unprivileged.is_some() && root {
        command = Command::new("setpriv");
        command.arg("--bounding-set=-net_raw,-net_admin").arg(castanet);
    }
    command.args(words).current_dir(file.parent().unwrap()).env("LC_ALL", "C.UTF-8");
    for name in ["CLICKPATH", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    let ran = command.output().unwrap();
    // Messages show the search path for packages, which contains the folder of the binary.
    let libraries = castanet.ancestors().nth(2).unwrap().join("lib/castanet");
    let show =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(libraries.to_str().unwrap(), "LIBRARIES");
    // Messages may list the devices of the machine.
    let line = |line: &str| match line.split_once("devices here: ") {
        Some((before, _)) => format!("{before}devices here: DEVICES\n"),
        None => format!("{line}\n"),
    };
    (show(&ran.stdout) + &show(&ran.stderr)).lines().map(line).collect()
}

fn mistakes() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("tests/mistakes")).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "click"));
    all.sort();
    all
}

#[test]
fn messages_name_place_cause_and_mend() {
    let castanet = castanet().canonicalize().unwrap();
    let bless = std::env::var_os("CASTANET_BLESS").is_some();
    let files = mistakes();
    assert!(files.len() >= 60, "{}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let (got, pinned) = (messages(&castanet, file), file.with_extension("txt"));
        if bless {
            std::fs::write(&pinned, &got).unwrap();
        }
        let want = std::fs::read_to_string(&pinned).unwrap_or_default();
        if let Some(why) = missing(file.file_stem().unwrap().to_str().unwrap(), &got) {
            wrong.push(format!("{}: {why}\n{got}", file.display()));
        } else if got != want {
            wrong.push(format!("{}\n--- pinned\n{want}--- printed\n{got}", pinned.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

/// Returns what a message lacks that a reader needs to correct the file: line and column, the text, a `help:`
/// line. Each mistake must cause exactly one message.
fn missing(name: &str, text: &str) -> Option<&'static str> {
    let count = match name {
        "five-mistakes" => 5,
        // An exception: without the arrow, the ports at both ends are unused, and each causes a message.
        "arrow-missing" => 2,
        _ => 1,
    };
    let begins = |word: &str| text.lines().filter(|l| l.starts_with(word)).count();
    match () {
        () if begins("error: ") + begins("warning: ") != count => {
            Some("more or fewer messages than mistakes")
        }
        () if text.matches("help: ").count() < count => Some("a message without a help"),
        () if !text.contains(&format!("--> {name}.click:")) => Some("no place"),
        () if !text.contains('^') && !text.contains("---") => Some("no mark in the text"),
        () => None,
    }
}
