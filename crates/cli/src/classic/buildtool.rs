// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-buildtool`: reports which classes and features this binary provides.

use super::input::{print, say};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::provides::{self, Kinds};
use castanet_classes::Registry;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-buildtool",
    usage: "provides [OPTION]... [CLASS | FEATURE]...",
    summary: "Succeeds when this binary provides all classes and features named.",
    options: &[
        Opt::new(&["quiet"], "q", Value::None, "do not print what is missing"),
        Opt::new(&["list"], "l", Value::None, "list what is provided"),
        Opt::new(&["requirements"], "r", Value::None, "consider features, not classes"),
        Opt::new(&["elements"], "e", Value::None, "consider classes, not features"),
        HELP,
        VERSION,
    ],
};

/// Commands of Click's click-buildtool for classes written in C++.
const OTHERS: &[&str] = &[
    "shortensyms",
    "compile-shortensyms",
    "findelem",
    "elem2make",
    "elem2package",
    "elem2export",
    "quietlink",
];

/// Runs as `click-buildtool`.
pub fn main(mut words: Vec<OsString>) -> ExitCode {
    let first = words.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    if OTHERS.contains(&first.as_str()) {
        say(&format!(
            "{} {first}: it is for classes written in C++; 'castanet build-package DIR' builds classes written in Rust",
            ABOUT.name
        ));
        return ExitCode::FAILURE;
    }
    if first == "prefix" {
        // The folder above that of the program, below which packages are installed.
        let exe = std::env::current_exe().unwrap_or_default();
        let prefix = exe.parent().and_then(Path::parent).unwrap_or(Path::new("/usr/local"));
        return ExitCode::from(u8::from(!print(ABOUT.name, &format!("{}\n", prefix.display()))));
    }
    let provides = first == "provides";
    if provides {
        words.remove(0);
    }
    let done = ABOUT.read(words).and_then(|words| run(words, provides.then_some(()).ok_or(first)));
    done.unwrap_or_else(|wrong| ABOUT.complain(&wrong))
}

fn run(words: Vec<Word>, provides: Result<(), String>) -> Result<ExitCode, Wrong> {
    let (mut quiet, mut list, mut names) = (false, false, Vec::new());
    let (mut features, mut elements) = (false, false);
    for word in words {
        match word {
            Word::Plain(name) => names.push(name),
            Word::Option("quiet", ..) => quiet = true,
            Word::Option("list", ..) => list = true,
            Word::Option("requirements", ..) => features = true,
            Word::Option("elements", ..) => elements = true,
            Word::Option(name, ..) => {
                let text = if name == "version" { ABOUT.version() } else { ABOUT.help() };
                return Ok(ExitCode::from(u8::from(!print(ABOUT.name, &text))));
            }
        }
    }
    provides.map_err(|word| match word.as_str() {
        "" => Wrong::Usage("subcommand missing".into()),
        word => Wrong::Usage(format!("unknown subcommand '{word}'")),
    })?;
    let classes = Registry::new();
    let kinds = if features == elements {
        Kinds::All
    } else if features {
        Kinds::Features
    } else {
        Kinds::Classes
    };
    if names.is_empty() || list {
        let all = provides::all(&classes, kinds).into_iter().fold(String::new(), |s, n| s + n + "\n");
        return Ok(ExitCode::from(u8::from(!print(ABOUT.name, &all))));
    }
    let missing: Vec<&String> = names.iter().filter(|n| !provides::has(&classes, n, kinds)).collect();
    for name in missing.iter().filter(|_| !quiet) {
        say(&format!("{}: '{name}' is not provided", ABOUT.name));
    }
    Ok(ExitCode::from(u8::from(!missing.is_empty())))
}
