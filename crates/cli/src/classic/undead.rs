// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-undead`: removes dead code from a configuration.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, OUTPUT, run, transform};
use super::options::{About, HELP, Opt, VERSION, Value};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-undead",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Removes elements that no packet can reach or leave, and redundant ones, from a configuration.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
        Opt::new(&["kernel"], "k", Value::None, DRIVER),
        Opt::new(&["user"], "u", Value::None, DRIVER),
        Opt::new(
            &["config"],
            "c",
            Value::None,
            "write only the configuration, even if the input is an archive",
        ),
        CLICKPATH,
        Opt::new(&["verbose"], "V", Value::None, "print what is removed"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-undead`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    // Whether to leave out the other members of an archive, and whether to print what is removed.
    let own = |(alone, verbose): &mut (bool, bool), name: &str, _, _| match name {
        "config" => *alone = true,
        "verbose" => *verbose = true,
        _ => {}
    };
    run(&ABOUT, words, (false, false), own, |given, (alone, verbose)| {
        transform(&ABOUT, given, alone, verbose, &crate::undead::pass)
    })
}
