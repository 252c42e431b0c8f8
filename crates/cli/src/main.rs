// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `castanet` command.
#![forbid(unsafe_code)]

mod align;
mod args;
mod bench;
mod check;
mod classic;
mod combine;
mod control;
mod ctl;
mod doc;
mod doctor;
mod draw;
mod explain;
mod fastclassifier;
mod flatten;
mod fmt;
mod json;
mod links;
mod live;
mod load;
mod mount;
mod net;
mod network;
mod new;
mod package;
mod pretty;
mod privileges;
mod processor;
mod provides;
mod requests;
mod reread;
mod run;
mod signals;
mod summary;
mod times;
mod uncombine;
mod undead;
mod xform;

use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

/// Whether the command line is `run ... -h` with nothing after `-h`. `-h` takes a handler as its value, so
/// without a value it can only mean help.
fn asks_for_help(words: &[OsString]) -> bool {
    words.len() > 1 && words.first().is_some_and(|w| w == "run") && words.last().is_some_and(|w| w == "-h")
}

/// Prints the short help of `castanet run`.
fn help_of_run() -> ExitCode {
    let mut castanet = args::Castanet::command();
    castanet.build();
    let printed = castanet.find_subcommand_mut("run").map(clap::Command::print_help);
    if matches!(printed, Some(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    // If the binary is called by the name of a classic tool, it accepts the options of that tool.
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name =
        std::path::Path::new(&name).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if let Some(classic) = classic::Tool::named(&name) {
        return classic.main(words);
    }
    if asks_for_help(&words) {
        return help_of_run();
    }
    match args::Castanet::parse().command {
        args::Command::Run(a) => run::main(&a),
        args::Command::Check(a) => check::main(&a),
        args::Command::Flatten(a) => flatten::main(&a),
        args::Command::FastClassifier(a) => fastclassifier::main(&a),
        args::Command::Fmt(a) => fmt::main(&a),
        args::Command::Pretty(a) => pretty::main(&a),
        args::Command::Align(a) => align::main(&a),
        args::Command::Undead(a) => undead::main(&a),
        args::Command::Net(a) => net::main(&a),
        args::Command::Combine(a) => combine::main(&a),
        args::Command::Uncombine(a) => uncombine::main(&a),
        args::Command::Xform(a) => xform::main(&a),
        args::Command::Explain(a) => explain::main(&a),
        args::Command::Graph(a) => draw::main(&a),
        args::Command::Doc(a) => doc::main(&a),
        args::Command::Doctor(a) => doctor::main(&a),
        args::Command::List(a) => doc::list(&a),
        args::Command::Links(a) => links::main(&a),
        args::Command::New(a) => new::main(&a),
        args::Command::Ctl(a) => ctl::main(&a),
        args::Command::Completion(a) => ctl::completion::main(&a),
        args::Command::Bench(a) => bench::main(&a),
        args::Command::Unmount(a) => mount::main(&a),
        args::Command::Open(a) => privileges::serve(&a),
        args::Command::BuildPackage(a) => package::build(&a),
        args::Command::Sdk(a) => package::sdk(&a),
    }
}
