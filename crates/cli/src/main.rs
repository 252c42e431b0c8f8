// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `castanet` command.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod check;
mod classic;
mod control;
mod ctl;
mod doc;
mod doctor;
mod draw;
mod explain;
mod flatten;
mod links;
mod live;
mod load;
mod mount;
mod new;
mod package;
mod privileges;
mod provides;
mod requests;
mod reread;
mod run;
mod signals;
mod summary;
mod times;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Under a classic name the binary takes the options of that name.
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name =
        std::path::Path::new(&name).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(classic) = classic::Tool::named(&name) {
        return classic.main(words.collect());
    }
    match args::Castanet::parse().command {
        args::Command::Run(a) => run::main(&a),
        args::Command::Check(a) => check::main(&a),
        args::Command::Flatten(a) => flatten::main(&a),
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
