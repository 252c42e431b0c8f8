// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-mkmindriver`: makes a driver with only the classes that some configurations need.

use super::input::{print, say, show};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, definition};
use crate::mindriver::{EXTRAS, Wanted, make};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-mkmindriver",
    usage: "-p PKG [OPTION]... [ROUTERFILE]...",
    summary: "Makes the driver PKGclick, which has only the element classes that the configurations need.",
    options: &[
        Opt::new(&["package"], "p", Value::Required("PKG"), "name the driver PKGclick"),
        Opt::new(&["file"], "f", Value::Required("FILE"), "include the classes of the configuration in FILE"),
        Opt::new(
            &["expression"],
            "e",
            Value::Required("TEXT"),
            "include the classes of the configuration TEXT",
        ),
        Opt::new(&["all"], "a", Value::None, "include all classes").negatable(),
        Opt::new(
            &["kernel", "linuxmodule"],
            "lk",
            Value::None,
            "accepted for old scripts; there is one driver",
        ),
        Opt::new(&["user"], "u", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["directory"], "d", Value::Required("DIR"), "write the driver to DIR"),
        Opt::new(&["elements"], "E", Value::Required("ELTS"), "include these classes"),
        Opt::new(&["extras"], "", Value::None, "include classes that are often useful").negatable(),
        Opt::new(&["verbose"], "V", Value::None, "print which classes each configuration needs"),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["align"], "A", Value::None, "include the classes that click-align inserts"),
        Opt::new(&["check"], "", Value::None, "check the configurations and the driver (the default)")
            .negatable(),
        HELP,
        VERSION,
    ],
};

/// The classes that `click-align` inserts.
const ALIGN: [&str; 2] = ["Align", "AlignmentInfo"];

/// Runs as `click-mkmindriver`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ABOUT.exit(run(words))
}

/// A configuration of the command line.
enum Given {
    File(String),
    Text(String),
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut package, mut folder, mut clickpath) = (None, None, None);
    let (mut all, mut extras, mut align, mut verbose, mut check) = (false, false, false, false, true);
    let (mut given, mut defines, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => match definition(&w) {
                Some(d) => defines.push(d),
                None => given.push(Given::File(w)),
            },
            Word::Option("package", v, _) => package = v,
            Word::Option("file", v, _) => given.extend(v.map(Given::File)),
            Word::Option("expression", v, _) => given.extend(v.map(Given::Text)),
            Word::Option("elements", v, _) => classes.extend(list(&v.unwrap_or_default())),
            Word::Option("directory", v, _) => folder = v,
            Word::Option("clickpath", v, _) => clickpath = v,
            Word::Option("all", _, on) => all = on,
            Word::Option("extras", _, on) => extras = on,
            Word::Option("align", ..) => align = true,
            Word::Option("verbose", ..) => verbose = true,
            Word::Option("check", _, on) => check = on,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    let name = package.ok_or_else(|| Wrong::Usage("no driver is named: -p PKG names it PKGclick".into()))?;
    if name.is_empty() || name.contains('/') {
        return Err(Wrong::Usage(format!("option '-p' expects the name of a package, not '{name}'")));
    }
    if given.is_empty() && classes.is_empty() && !all {
        given.push(Given::File("-".into()));
    }
    classes.extend(EXTRAS.iter().filter(|_| extras).map(|name| (*name).to_string()));
    let known = castanet_classes::Registry::new();
    let has = |name: &&&str| castanet_lang::ClassNames::knows(&known, name);
    classes.extend(ALIGN.iter().filter(|_| align).filter(has).map(|name| (*name).to_string()));
    let read = |g: Given| match g {
        Given::File(file) => Source::file(&file, defines.clone()),
        Given::Text(text) => Ok(Source::text("config", &text, defines.clone())),
    };
    let made = given.into_iter().map(read).collect::<Result<Vec<_>, _>>().and_then(|configurations| {
        make(&Wanted {
            configurations,
            clickpath: clickpath.as_deref(),
            classes: (!all).then_some(classes),
            check,
            strip: false,
            sdk: None,
            output: folder
                .as_deref()
                .map_or(PathBuf::new(), |f| Path::new(f).to_path_buf())
                .join(name + "click"),
            show: &show,
            say: &|text| say(&format!("{}: {text}", ABOUT.name)),
            verbose,
        })
    });
    Ok(match made {
        Ok(report) => print(ABOUT.name, &report),
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    })
}

/// Splits a list of classes, separated by commas or spaces.
fn list(text: &str) -> Vec<String> {
    text.split([',', ' ', '\t', '\n']).filter(|w| !w.is_empty()).map(str::to_string).collect()
}
