// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-align`: inserts the Align elements that a configuration needs.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, OUTPUT, run, transform};
use super::options::{About, HELP, Opt, VERSION, Value};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-align",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Inserts Align elements where packets need another alignment than they have, and removes redundant ones.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
        Opt::new(&["assertions"], "", Value::None, "insert CheckAlign elements in place of Align elements"),
        Opt::new(&["bsdmodule"], "b", Value::None, DRIVER),
        Opt::new(&["linuxmodule"], "l", Value::None, DRIVER),
        Opt::new(&["userlevel"], "u", Value::None, DRIVER),
        CLICKPATH,
        Opt::new(&["verbose"], "V", Value::None, "print what is inserted and removed"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-align`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    // Whether to insert CheckAlign elements, and whether to print what is inserted and removed.
    let own = |(assertions, verbose): &mut (bool, bool), name: &str, _, _| match name {
        "assertions" => *assertions = true,
        "verbose" => *verbose = true,
        _ => {}
    };
    run(&ABOUT, words, (false, false), own, |given, (assertions, verbose)| {
        transform(&ABOUT, given, false, verbose, &crate::align::pass(assertions))
    })
}
