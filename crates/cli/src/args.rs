// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `castanet`.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A modular router: runs Click configurations, fast and safely.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 all went well, 1 something is wrong with the \
    configuration or the run (said on standard error), 2 the command line was wrong."
)]
pub struct Castanet {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the command can do.
#[derive(Subcommand)]
pub enum Command {
    /// Run a configuration.
    #[command(
        after_help = "Examples:\n  castanet run router.click\n  castanet run -h '*.count' router.click RATE=1000\n  \
        castanet run -e 'InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard' -h c.count"
    )]
    Run(Box<Run>),
    /// Find everything that is wrong with a configuration, without running it.
    Check(Check),
    /// Print a configuration with all compounds expanded.
    Flatten(Flatten),
    /// Say which worker reaches which element, and why.
    Explain(Explain),
    /// Draw a configuration as SVG.
    Graph(Graph),
    /// The manual of a class, or the list of all.
    Doc(Doc),
    /// List the classes, or what else there is.
    List(List),
    /// Make links under the classic names (click, click-check, ...), by which scripts call this binary.
    Links(Links),
    /// Write a configuration to start from.
    New(crate::new::New),
    /// Ask and change a running router.
    Ctl(crate::ctl::Ctl),
    /// Print a script by which a shell completes command lines.
    Completion(crate::ctl::completion::Completion),
    /// Look for what routers that were killed left behind on this host.
    Doctor(crate::doctor::Doctor),
    /// Measure how fast packets go.
    #[command(after_help = "Examples:\n  castanet bench fig8 --batch 1,32 --instructions --svg fig8.svg\n  \
        castanet bench veth --seconds 60 --svg veth.svg")]
    Bench(crate::bench::Bench),
    /// Unmount what a router that was killed left mounted.
    #[command(hide = true, name = "unmount-after-run")]
    Unmount(crate::mount::Unmounter),
    /// Open devices for a router that has given its privileges up.
    #[command(hide = true, name = "open-for-run")]
    Open(crate::privileges::Opener),
    /// Make a shared library of a crate of classes, for `require(package NAME)`.
    BuildPackage(crate::package::BuildPackage),
    /// Keep what packages are built with: the compiled crates of this castanet.
    Sdk(crate::package::Sdk),
}

/// Which configuration.
#[derive(Args, Clone)]
pub struct Configuration {
    /// The configuration file (`-` is standard input), and variables as NAME=VALUE.
    #[arg(value_name = "FILE | NAME=VALUE")]
    pub words: Vec<String>,
    /// Take this text as the configuration.
    #[arg(short, long, value_name = "TEXT", conflicts_with = "file")]
    pub expression: Option<String>,
    /// The configuration file.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Where required libraries are looked for, separated by colons; default: $CLICKPATH.
    #[arg(short = 'C', long, value_name = "PATH")]
    pub clickpath: Option<String>,
    /// Load the classes of this package too, whether or not it is required.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print diagnostics as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `castanet run`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Run {
    /// Which configuration.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Print this read handler after the run; the element may be a glob or a class.
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.HANDLER")]
    pub handlers: Vec<String>,
    /// Control sockets.
    #[command(flatten)]
    pub sockets: crate::control::Sockets,
    /// Number of workers.
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// The most packets that move together, 1 to 256.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub batch: usize,
    /// Simulate time, from so many seconds since 1970 on.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1000000000")]
    pub simtime: Option<String>,
    /// Seed of random numbers, for runs that are to be the same each time; without it they are secrets of the kernel, or with
    /// --simtime those of the seed 1.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Show the handlers as files in this folder while the router runs.
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// What the router may do.
    #[command(flatten)]
    pub privileges: crate::privileges::Privileges,
    /// No summary after the run.
    #[arg(short, long)]
    pub quiet: bool,
    /// Let clients swap the configuration: handlers hotconfig, swapplan and loadpackage.
    #[arg(short = 'R', long)]
    pub allow_reconfigure: bool,
    #[command(flatten)]
    pub from_clients: crate::control::FromClients,
    /// What happens when an element panics over a packet, in its task or in a timer: the router stops, in good order; goes on without the
    /// element, which drops its packets from then on; or goes on with it, although its state may be wrong.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnPanic::Stop)]
    pub on_panic: OnPanic,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// What happens when an element panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnPanic {
    /// The router stops, in good order.
    #[default]
    Stop,
    /// The router goes on without the element.
    Disable,
    /// The router goes on with the element.
    Continue,
}

impl From<OnPanic> for castanet_runtime::OnPanic {
    fn from(on_panic: OnPanic) -> castanet_runtime::OnPanic {
        match on_panic {
            OnPanic::Stop => castanet_runtime::OnPanic::Stop,
            OnPanic::Disable => castanet_runtime::OnPanic::Disable,
            OnPanic::Continue => castanet_runtime::OnPanic::Continue,
        }
    }
}

/// `castanet check`.
#[derive(Args)]
pub struct Check {
    /// Which configuration.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Number of workers to check for.
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N", default_value_t = 1)]
    pub workers: usize,
}

/// `castanet flatten`.
#[derive(Args)]
pub struct Flatten {
    /// Which configuration.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `castanet explain`.
#[derive(Args)]
pub struct Explain {
    /// Which configuration.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Number of workers.
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N", default_value_t = 2)]
    pub workers: usize,
}

/// `castanet graph`.
#[derive(Args)]
pub struct Graph {
    /// Which configuration.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `castanet doc`.
#[derive(Args)]
pub struct Doc {
    /// The class; none: all, one line each.
    pub class: Option<String>,
    /// The classes of this package too.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print as Markdown, as the element reference is written.
    #[arg(long)]
    pub markdown: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `castanet list`.
#[derive(Args)]
pub struct List {
    /// What to list.
    #[arg(value_enum, default_value_t = Listed::Classes)]
    pub what: Listed,
    /// The classes of this package too.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Listed {
    /// Element classes, by family.
    Classes,
    /// Packet annotations.
    Annotations,
    /// Reasons for drops.
    Reasons,
    /// Global handlers.
    Handlers,
}

/// `castanet links`.
#[derive(Args)]
pub struct Links {
    /// The folder; made if it does not exist.
    pub folder: PathBuf,
    /// Replace what stands there under these names.
    #[arg(long)]
    pub force: bool,
}
