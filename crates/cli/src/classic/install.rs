// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-install` and `click-uninstall`: a router in the background, in the kernel as far as possible.

use super::filter::{CLICKPATH, EXPRESSION, FILE};
use super::input::print;
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::args::Configuration;
use crate::install::{Install, Place, Uninstall};
use crate::kernel::{Driver, Pin};
use std::ffi::OsString;
use std::process::ExitCode;

/// The help text of options that only mattered to a kernel module.
const IGNORED: &str = "accepted for old scripts, and ignored";

const ABOUT: About = About {
    name: "click-install",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Installs a configuration: it runs in the background, in the kernel as far as possible.",
    options: &[
        FILE,
        EXPRESSION,
        Opt::new(
            &["hot-swap", "hotswap"],
            "h",
            Value::None,
            "replace the installed router, and keep its state",
        ),
        Opt::new(&["uninstall"], "u", Value::None, "end the installed router first"),
        Opt::new(&["priority"], "n", Value::Required("N"), IGNORED),
        Opt::new(&["private", "cabalistic"], "p", Value::None, IGNORED),
        Opt::new(&["user", "uid"], "U", Value::Required("USER[:GROUP]"), IGNORED),
        Opt::new(&["gid"], "", Value::Required("GROUP"), IGNORED),
        Opt::new(&["threads"], "j", Value::Required("N"), IGNORED),
        Opt::new(&["greedy"], "G", Value::None, IGNORED),
        Opt::new(&["cpu"], "", Value::Required("N"), IGNORED),
        Opt::new(&["verbose"], "V", Value::None, IGNORED),
        CLICKPATH,
        HELP,
        VERSION,
    ],
};

const ABOUT_UNINSTALL: About = About {
    name: "click-uninstall",
    usage: "[OPTION]...",
    summary: "Ends the router that click-install has installed.",
    options: &[Opt::new(&["verbose"], "V", Value::None, IGNORED), HELP, VERSION],
};

/// The folder of the installed router.
fn place() -> Place {
    // A variable of its own, because the classic command line has no option for it.
    let state = std::env::var_os("CASTANET_STATE").filter(|s| !s.is_empty());
    Place { state: state.map_or_else(|| "/run/castanet".into(), Into::into) }
}

/// Runs as `click-install`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match read(words) {
        Ok(Some(install)) => crate::install::main(&install),
        Ok(None) => ExitCode::SUCCESS,
        Err(wrong) => ABOUT.exit(Err(wrong)),
    }
}

fn read(words: Vec<OsString>) -> Result<Option<Install>, Wrong> {
    let mut configuration = Configuration::default();
    let mut hot = false;
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => configuration.words.push(w),
            Word::Option("file", v, _) => configuration.file = v,
            Word::Option("expression", v, _) => configuration.expression = v,
            Word::Option("clickpath", v, _) => configuration.clickpath = v,
            Word::Option("hot-swap", ..) => hot = true,
            Word::Option("version", ..) => {
                print(ABOUT.name, &ABOUT.version());
                return Ok(None);
            }
            Word::Option("help", ..) => {
                print(ABOUT.name, &ABOUT.help());
                return Ok(None);
            }
            Word::Option(..) => {}
        }
    }
    let pin = Pin::default();
    Ok(Some(Install { configuration, hot, driver: Driver::Xdp, mount: None, pin, place: place() }))
}

/// Runs as `click-uninstall`.
pub fn uninstall(words: Vec<OsString>) -> ExitCode {
    let all = match ABOUT_UNINSTALL.read(words) {
        Ok(all) => all,
        Err(wrong) => return ABOUT_UNINSTALL.exit(Err(wrong)),
    };
    for word in all {
        let text = match word {
            Word::Option("version", ..) => ABOUT_UNINSTALL.version(),
            Word::Option("help", ..) => ABOUT_UNINSTALL.help(),
            _ => continue,
        };
        print(ABOUT_UNINSTALL.name, &text);
        return ExitCode::SUCCESS;
    }
    crate::install::uninstall_main(&Uninstall { place: place() })
}
