// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of minimal drivers, the executables that `castanet mkmindriver` makes.
//!
//! INVARIANT: nothing that this module reaches names the list of all classes, so that the linker leaves out the code of
//! the classes that a driver does not have.

use crate::args::{Run, named_castanet};
use crate::classes::BuiltIn;
use crate::load::{complain, write_out};
use crate::{classic, help_of, mount, privileges, run};
use castanet_element::ClassDef;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// A router with only some element classes, made by `castanet mkmindriver`.
#[derive(Parser)]
#[command(
    name = "driver",
    version,
    propagate_version = true,
    mut_subcommands(named_castanet),
    after_help = "Under a name that ends in 'click', this program has the options of Click's driver."
)]
struct Driver {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a configuration.
    Run(Box<Run>),
    /// List the classes of this driver.
    List,
    /// Unmount the folder of a router that was killed.
    #[command(hide = true, name = "unmount-after-run")]
    Unmount(mount::Unmounter),
    /// Open devices for a router that has dropped its privileges.
    #[command(hide = true, name = "open-for-run")]
    Open(privileges::Opener),
}

/// Runs a minimal driver with these classes.
pub fn main(classes: &[ClassDef]) -> ExitCode {
    let built_in = BuiltIn::only(classes);
    let (name, words) = crate::called();
    if name.ends_with("click") {
        return classic::click::main(words, built_in);
    }
    if crate::asks_for_help(&words) {
        return help_of::<Driver>("run");
    }
    let all = std::iter::once(OsString::from(name)).chain(words);
    match Driver::parse_from(all).command {
        Command::Run(a) => run::main(&a, built_in),
        Command::List => list(&built_in),
        Command::Unmount(a) => mount::main(&a),
        Command::Open(a) => privileges::serve(&a),
    }
}

fn list(built_in: &BuiltIn) -> ExitCode {
    let text: String = built_in.names().into_iter().map(|name| format!("{name}\n")).collect();
    match write_out(None, &text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}
