// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats all configurations of the project: their meaning stays the same, and those in conf/ are formatted.
#![allow(clippy::unwrap_used)]

use castanet_lang::elaborate::{Globals, Options, Unknown, load_with};
use castanet_lang::format::format;
use castanet_lang::library::SearchPath;
use castanet_lang::{Diagnostic, Sources};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with this ending in a folder and its subfolders, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let (mut open, mut all) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|e| e == ending) => all.push(path),
                false => {}
            }
        }
    }
    all.sort();
    all
}

fn formatted(name: &str, text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    format(&mut sources, file)
}

/// The flat configuration of a text, with everything but the positions in the text, and the messages.
fn meaning(name: &str, text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let library = SearchPath::new(None);
    let options = Options { classes: &["Idle"], defines: &[], library: &library, unknown: Unknown::Opaque };
    let loaded = load_with(&mut sources, file, &options, Globals::Keep);
    let flat = &loaded.flat;
    let elements = flat.elements.iter().map(|e| {
        let origin: Vec<_> = e.origin.iter().map(|o| (&o.instance, &o.class, &o.parameters)).collect();
        (&e.name, &e.class, &e.config, origin)
    });
    let connections = flat.connections.iter().map(|c| (c.from, c.to));
    let messages = loaded.diagnostics.iter().map(|d| &d.message);
    let (elements, connections, messages): (Vec<_>, Vec<_>, Vec<_>) =
        (elements.collect(), connections.collect(), messages.collect());
    format!("{elements:#?}\n{connections:?}\n{:?}\n{:?}\n{messages:?}", flat.requirements, loaded.defines)
}

/// Formats a text that has no syntax errors, and compares the meaning. Returns whether it had none.
fn keeps_meaning(name: &str, text: &str) -> bool {
    let Ok(once) = formatted(name, text) else { return false };
    assert_eq!(meaning(name, &once), meaning(name, text), "{name}");
    assert_eq!(formatted(name, &once).unwrap(), once, "{name}");
    true
}

#[test]
fn configurations_are_formatted() {
    let all: Vec<PathBuf> =
        ["conf", "examples"].into_iter().flat_map(|folder| files(folder, "click")).collect();
    assert!(all.len() > 30, "{}", all.len());
    for path in all {
        let (name, text) = (path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        assert!(keeps_meaning(&name, &text), "{name}");
        assert!(formatted(&name, &text).unwrap() == text, "{name}: run 'castanet fmt -w {name}'");
    }
}

#[test]
fn the_meaning_stays() {
    let mut count = 0;
    for path in files("tests", "click") {
        let (name, text) = (path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        count += usize::from(keeps_meaning(&name, &text));
    }
    // Examples in the documentation: blocks between lines of three backquotes. Those that are not configurations have syntax errors.
    for path in files("docs", "md") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (i, block) in text.split("\n```").skip(1).step_by(2).enumerate() {
            let block = block.split_once('\n').map_or("", |b| b.1);
            count += usize::from(keeps_meaning(&format!("{}:{i}", path.display()), block));
        }
    }
    assert!(count > 100, "{count}");
}
