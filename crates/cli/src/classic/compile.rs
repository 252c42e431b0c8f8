// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-compile`: compiles element classes to a package. Here these are a crate, as for `castanet build-package`.

use super::input::{print, say};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use castanet_package::build::{Options, build, name};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-compile",
    usage: "[OPTION]... DIR",
    summary: "Compiles the crate of element classes in DIR to a package, for require(package PKG).",
    options: &[
        Opt::new(
            &["driver"],
            "t",
            Value::Required("DRIVER"),
            "the driver to compile for; there is only 'userlevel'",
        ),
        Opt::new(&["directory"], "d", Value::Required("DIR"), "write the package to DIR"),
        Opt::new(&["package"], "p", Value::Required("PKG"), "name the package PKG instead of by its crate"),
        Opt::new(&["cflags"], "", Value::Required("FLAGS"), "ignored; there is no C code"),
        Opt::new(&["libs"], "", Value::Required("LIBS"), "refused; a package uses no other libraries"),
        Opt::new(&["otherlibs"], "", Value::Required("LIBS"), "refused; a package uses no other libraries"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-compile`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ABOUT.exit(run(words))
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut source, mut folder, mut package) = (None, None, None);
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) if w.ends_with(".cc") || w.ends_with(".cpp") => {
                return Err(Wrong::Usage(format!(
                    "{w}: classes are written in Rust here: name the folder of a crate ('castanet doc' lists the classes that exist)"
                )));
            }
            Word::Plain(w) => {
                if source.replace(w).is_some() {
                    return Err(Wrong::Usage("more than one folder of a crate".into()));
                }
            }
            Word::Option("directory", v, _) => folder = v,
            Word::Option("package", v, _) => package = v,
            Word::Option("driver", v, _) => driver(&v.unwrap_or_default())?,
            Word::Option(name @ ("libs" | "otherlibs"), v, _) => {
                if v.is_some_and(|v| !v.trim().is_empty()) {
                    return Err(Wrong::Usage(format!(
                        "option '--{name}': a package uses no other libraries"
                    )));
                }
            }
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    let source = source.ok_or_else(|| Wrong::Usage("no folder of a crate is given".into()))?;
    if package.as_deref().is_some_and(|p| p.is_empty() || p.contains('/')) {
        return Err(Wrong::Usage("option '-p' expects the name of a package".into()));
    }
    Ok(compile(&source, folder.as_deref(), package.as_deref()))
}

/// Checks the word of `-t`.
fn driver(word: &str) -> Result<(), Wrong> {
    match word {
        "user" | "userlevel" => Ok(()),
        word => Err(Wrong::Usage(format!("option '-t': there is only the driver 'userlevel', not '{word}'"))),
    }
}

/// Compiles the crate. Returns false after an error.
fn compile(source: &str, folder: Option<&str>, package: Option<&str>) -> bool {
    let folder = folder.map_or(PathBuf::new(), PathBuf::from);
    // Without -p, the manifest of the crate has the name.
    let name = match package.map_or_else(|| name(Path::new(source)), |p| Ok(p.into())) {
        Ok(name) => name,
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            return false;
        }
    };
    let output = Some(folder.join(name + ".castanet"));
    match build(&Options { folder: source.into(), output, release: true, sdk: None }) {
        Ok(built) => {
            let warnings = built.warnings.trim_end();
            if !warnings.is_empty() {
                say(warnings);
            }
            print(ABOUT.name, &format!("{}: {}\n", built.file.display(), built.classes.join(", ")))
        }
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    }
}
