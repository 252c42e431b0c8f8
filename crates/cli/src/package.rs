// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet build-package` and `castanet sdk`: compile crates of classes to shared libraries.

use crate::load::{complain, write_out};
use castanet_package::build::Options;
use castanet_package::header::Header;
use castanet_package::{build as make, packages, sdk as crates};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `castanet build-package`.
#[derive(Args)]
#[command(
    after_help = "The crate lists its classes with castanet_element::package!, as examples/tally does. Nothing is downloaded: the crate \
    is compiled against the compiled crates of this castanet, with the compiler that built this castanet.\n\n\
    Example:\n  castanet build-package examples/tally\n  castanet doc CheckSize --package tally.castanet"
)]
pub struct BuildPackage {
    /// The folder of the crate.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The file to write; default: NAME.castanet, where NAME is the name of the crate without `castanet-`.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Optimise the classes (the default).
    #[arg(long, conflicts_with = "debug")]
    pub release: bool,
    /// Do not optimise the classes, and check for arithmetic overflow.
    #[arg(long)]
    pub debug: bool,
    /// The folder with the compiled crates of this castanet, if they are not at a default place.
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
}

/// `castanet sdk`.
#[derive(Args)]
#[command(
    after_help = "Run it where castanet was built (target/release/castanet sdk), before that folder is removed."
)]
pub struct Sdk {
    /// The destination; default: the place where build-package searches, lib/castanet/sdk beside the folder of this
    /// program.
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Copy the crates from this folder.
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Copy all crates, for castanet mkmindriver too.
    #[arg(long)]
    pub drivers: bool,
    /// Only print the build facts of this castanet and where its crates are.
    #[arg(long)]
    pub print: bool,
}

fn end(done: Result<String, String>) -> ExitCode {
    match done.and_then(|text| write_out(None, &text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Builds a package.
pub fn build(args: &BuildPackage) -> ExitCode {
    let options = Options {
        folder: args.folder.clone(),
        output: args.output.clone(),
        release: !args.debug,
        sdk: args.sdk.clone(),
    };
    end(make::build(&options)
        .map(|built| {
            let warnings = built.warnings.trim_end();
            if !warnings.is_empty() {
                complain(warnings);
            }
            format!("{}: {} ({} bytes)\n", built.file.display(), built.classes.join(", "), built.bytes)
        })
        .map_err(|e| e.to_string()))
}

/// Copies the compiled crates of this castanet, or prints where they are.
pub fn sdk(args: &Sdk) -> ExitCode {
    let found = crates::Sdk::find(args.from.as_deref());
    if args.print {
        let own = Header::own();
        let lines = ["castanet", "compiler", "api", "target", "features", "panic", "profile"];
        let mut text: String = lines.iter().map(|key| format!("{key}: {}\n", own.get(key))).collect();
        match found {
            Ok(sdk) => text.push_str(&format!("crates: {}\n", sdk.folder().display())),
            Err(e) => text.push_str(&format!("crates: {e}\n")),
        }
        return end(Ok(text));
    }
    let to = args.folder.clone().unwrap_or_else(|| packages::installed().join("sdk"));
    end(found.map_err(|e| e.to_string()).and_then(|sdk| {
        let extent = if args.drivers { crates::Extent::Drivers } else { crates::Extent::Packages };
        let bytes =
            sdk.copy(&to, extent).map_err(|e| format!("{}: {}", to.display(), crate::load::reason(&e)))?;
        Ok(format!("{}: {} MB\n", to.display(), bytes >> 20))
    }))
}
