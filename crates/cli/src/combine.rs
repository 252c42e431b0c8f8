// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet combine`: prints several routers and their links as one configuration.

use crate::args::any_text;
use crate::classes::BuiltIn;
use crate::load::{complain, show, write_out};
use crate::network::{Network, combined};
use castanet_graph::network::{Link, Order};
use castanet_lang::Unknown;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Closing text of `--help`.
pub const EXAMPLES: &str =
    "A link A.eth0=B.eth1 carries frames from device eth0 of router A to device eth1 of router B; \
== links both directions. The elements of router A get the prefix A/. Unknown classes are accepted.

Examples:
  castanet combine A=a.click B=b.click A.eth1==B.eth0 -o net.click
  castanet combine a.click b.click a.eth1==b.eth0 | castanet uncombine - a";

/// Arguments that name a network.
#[derive(Args, Clone)]
pub struct Routers {
    /// A router, or a link between two routers. A router without a name has that of its file.
    #[arg(value_name = "[NAME=]FILE | LINK", value_parser = any_text())]
    pub words: Vec<String>,
    /// A link, as an option. May be repeated.
    #[arg(short, long = "link", value_name = "LINK")]
    pub links: Vec<Link>,
    /// Folders to search for required libraries, separated by colons; default: $CLICKPATH.
    #[arg(short = 'C', long, value_name = "PATH")]
    pub clickpath: Option<String>,
    /// Print diagnostics as JSON on standard error, one object a line.
    #[arg(long)]
    pub json: bool,
}

impl Routers {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or a word is neither a file nor a link.
    pub fn read(&self) -> Result<Network, String> {
        let mut network = Network::default();
        self.words.iter().try_for_each(|w| network.word(w))?;
        network.links.extend(self.links.iter().cloned());
        if network.routers.is_empty() {
            return Err("no router given: name files, as in A=a.click B=b.click".into());
        }
        Ok(network)
    }
}

/// `castanet combine`.
#[derive(Args)]
pub struct Combine {
    #[command(flatten)]
    routers: Routers,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the combined configuration.
pub fn main(args: &Combine) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => {
            errors.iter().for_each(|e| complain(e));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Combine) -> Result<(), Vec<String>> {
    let network = args.routers.read().map_err(|e| vec![e])?;
    let available = BuiltIn::all().available(args.routers.clickpath.as_deref());
    let show = |sources: &_, diagnostics: &[_]| show(sources, diagnostics, args.routers.json);
    let combined = combined(network, &available, Unknown::Opaque, Order::Kept, show)?;
    write_out(args.output.as_deref(), &castanet_lang::print::driver(&combined.flat)).map_err(|e| vec![e])
}
