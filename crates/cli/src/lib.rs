// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `castanet` command, and what minimal drivers share with it.
//!
//! [`main`] is the command with all classes. [`driver()`] is the command line of an executable with some classes, which
//! `castanet mkmindriver` generates.
#![forbid(unsafe_code)]

mod align;
mod api;
mod args;
mod bench;
mod check;
mod classes;
mod classic;
mod combine;
mod control;
mod ctl;
mod devices;
mod devirtualize;
mod doc;
mod doctor;
mod draw;
mod driver;
mod explain;
mod fastclassifier;
mod flatten;
mod fmt;
mod http;
mod install;
mod json;
mod kernel;
mod links;
mod live;
mod load;
mod metrics;
mod mindriver;
mod mount;
mod net;
mod network;
mod new;
mod observe;
mod package;
mod pass;
mod pretty;
mod privileges;
mod processor;
mod profile;
mod prolac;
mod provides;
mod requests;
mod reread;
mod run;
mod serve;
mod signals;
mod summary;
mod tap;
mod times;
mod top;
mod trace;
mod uncombine;
mod undead;
mod xform;

pub use castanet_classes::class;
pub use castanet_element::ClassDef;
pub use castanet_element::package::BUILT;
pub use driver::main as driver;

use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

/// Whether the command line is `run ... -h` with nothing after `-h`. `-h` takes a handler as its value, so
/// without a value it can only mean help.
fn asks_for_help(words: &[OsString]) -> bool {
    words.len() > 1 && words.first().is_some_and(|w| w == "run") && words.last().is_some_and(|w| w == "-h")
}

/// Prints the short help of a subcommand.
fn help_of<Program: CommandFactory>(subcommand: &str) -> ExitCode {
    let mut program = Program::command();
    program.build();
    let printed = program.find_subcommand_mut(subcommand).map(clap::Command::print_help);
    if matches!(printed, Some(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the name by which this program was called, without its folder, and the other words of the command line.
fn called() -> (String, Vec<OsString>) {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name = std::path::Path::new(&name).file_name().map(|n| n.to_string_lossy().into_owned());
    (name.unwrap_or_default(), words.collect())
}

/// Runs the `castanet` command.
pub fn main() -> ExitCode {
    // If the binary is called by the name of a classic tool, it accepts the options of that tool.
    let (name, words) = called();
    if let Some(classic) = classic::Tool::named(&name) {
        return classic.main(words);
    }
    if asks_for_help(&words) {
        return help_of::<args::Castanet>("run");
    }
    match args::Castanet::parse().command {
        args::Command::Run(a) => run::main(&a, classes::BuiltIn::all()),
        args::Command::Check(a) => check::main(&a),
        args::Command::Flatten(a) => flatten::main(&a),
        args::Command::FastClassifier(a) => fastclassifier::main(&a),
        args::Command::Devirtualize(a) => devirtualize::main(&a),
        args::Command::Fmt(a) => fmt::main(&a),
        args::Command::Pretty(a) => pretty::main(&a),
        args::Command::Prolac(a) => prolac::main(&a),
        args::Command::Align(a) => align::main(&a),
        args::Command::Undead(a) => undead::main(&a),
        args::Command::Net(a) => net::main(&a),
        args::Command::Combine(a) => combine::main(&a),
        args::Command::Uncombine(a) => uncombine::main(&a),
        args::Command::Xform(a) => xform::main(&a),
        args::Command::Explain(a) => explain::main(&a),
        args::Command::Graph(a) => draw::main(&a),
        args::Command::Doc(a) => doc::main(&a),
        args::Command::Devices(a) => devices::main(&a),
        args::Command::Doctor(a) => doctor::main(&a),
        args::Command::List(a) => doc::list(&a),
        args::Command::Links(a) => links::main(&a),
        args::Command::New(a) => new::main(&a),
        args::Command::Ctl(a) => ctl::main(&a),
        args::Command::Serve(a) => serve::main(&a),
        args::Command::Top(a) => top::main(&a),
        args::Command::Trace(a) => trace::main(&a),
        args::Command::Tap(a) => tap::main(&a),
        args::Command::Completion(a) => ctl::completion::main(&a),
        args::Command::Bench(a) => bench::main(&a),
        args::Command::Unmount(a) => mount::main(&a),
        args::Command::Install(a) => install::main(&a),
        args::Command::Uninstall(a) => install::uninstall_main(&a),
        args::Command::InstallPart(a) => a.main(),
        args::Command::Open(a) => privileges::serve(&a),
        args::Command::BuildPackage(a) => package::build(&a),
        args::Command::Sdk(a) => package::sdk(&a),
        args::Command::Mkmindriver(a) => mindriver::main(&a),
    }
}
