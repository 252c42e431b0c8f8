// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic tools: the binary called as `click`, `click-check` and so on, for existing scripts.
//!
//! Under these names the binary accepts Click's options and has Click's output: no summary, no colour, one line
//! per message.

mod align;
mod buildtool;
mod check;
pub mod click;
mod click2xml;
mod combine;
mod compile;
mod devirtualize;
mod elementmap;
mod fastclassifier;
mod filter;
mod flatten;
mod input;
mod install;
mod mindriver;
mod options;
mod pretty;
mod uncombine;
mod undead;
mod viz;
mod xform;
mod xml2click;

use crate::classes::BuiltIn;
use std::ffi::OsString;
use std::process::ExitCode;

/// The names of the tools.
pub const NAMES: &[&str] = &[
    "click",
    "click-align",
    "click-buildtool",
    "click-check",
    "click-combine",
    "click-compile",
    "click-devirtualize",
    "click-fastclassifier",
    "click-flatten",
    "click-install",
    "click-ipopt",
    "click-mkelemmap",
    "click-mkmindriver",
    "click-pretty",
    "click-uncombine",
    "click-undead",
    "click-uninstall",
    "click-viz",
    "click-xform",
    "click2xml",
    "xml2click",
];

/// A classic tool, by its name.
pub struct Tool(&'static str);

impl Tool {
    /// Returns the tool with this name.
    pub fn named(name: &str) -> Option<Tool> {
        NAMES.iter().find(|n| **n == name).map(|n| Tool(n))
    }

    /// Runs the tool.
    pub fn main(&self, words: Vec<OsString>) -> ExitCode {
        match self.0 {
            "click" => click::main(words, BuiltIn::all()),
            "click-check" => check::main(words),
            "click-flatten" => flatten::main(words),
            "click-buildtool" => buildtool::main(words),
            "click-mkelemmap" => elementmap::main(words),
            "click-fastclassifier" => fastclassifier::main(words),
            "click-align" => align::main(words),
            "click-devirtualize" => devirtualize::main(words),
            "click-compile" => compile::main(words),
            "click-mkmindriver" => mindriver::main(words),
            "click-undead" => undead::main(words),
            "click-combine" => combine::main(words),
            "click-uncombine" => uncombine::main(words),
            "click-pretty" => pretty::main(words),
            "click-viz" => viz::main(words),
            "click2xml" => click2xml::main(words),
            "xml2click" => xml2click::main(words),
            "click-xform" => xform::main(words),
            "click-ipopt" => xform::ipopt(words),
            "click-install" => install::main(words),
            "click-uninstall" => install::uninstall(words),
            name => {
                input::say(&format!("{name}: no such tool"));
                ExitCode::FAILURE
            }
        }
    }
}
