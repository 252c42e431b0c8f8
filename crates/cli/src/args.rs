// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `castanet`.

use crate::flatten::Listing;
use castanet_lang::bytes::decode_vec;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A modular router: runs Click configurations, fast and safely.
#[derive(Parser)]
#[command(
    name = "castanet",
    version,
    propagate_version = true,
    mut_subcommands(named_castanet),
    after_help = "Exit codes: 0 success, 1 an error in the configuration or the run \
    (reported on standard error), 2 a wrong command line."
)]
pub struct Castanet {
    #[command(subcommand)]
    pub command: Command,
}

/// Returns a parser of words that may hold any bytes, not only UTF-8.
pub fn any_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|word| decode_vec(word.into_vec()))
}

/// Makes `--version` of a subcommand print `castanet` as the name of the program, instead of `castanet-SUBCOMMAND`.
pub fn named_castanet(subcommand: clap::Command) -> clap::Command {
    subcommand.display_name("castanet").mut_subcommands(named_castanet)
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Run a configuration.
    #[command(
        after_help = "Examples:\n  castanet run router.click\n  castanet run -h '*.count' router.click RATE=1000\n  \
        castanet run -e 'InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard' -h c.count"
    )]
    Run(Box<Run>),
    /// Report all errors of configurations, without running them.
    #[command(after_help = "Several files are checked one after the other, each with the same variables.")]
    Check(Check),
    /// Print a configuration with all compounds expanded, or list its classes or elements.
    #[command(
        after_help = "Examples:\n  castanet flatten router.click -o flat.click\n  castanet flatten --classes router.click"
    )]
    Flatten(Flatten),
    /// Format the text of configurations: blanks, indentation and semicolons.
    #[command(after_help = "Line breaks, comments and configuration strings stay as they are.\n\n\
        Examples:\n  castanet fmt -w router.click\n  castanet fmt --check conf/*.click\n  castanet fmt < router.click")]
    Fmt(crate::fmt::Fmt),
    /// Insert Align elements where IP headers are not at aligned addresses, and remove those that are not needed.
    #[command(
        after_help = "Castanet reads packets at any address. The result serves routers that cannot.\n\n\
        Example:\n  castanet align -v router.click -o aligned.click"
    )]
    Align(Align),
    /// Remove dead code from a configuration: what no packet can reach, and what only passes packets on.
    #[command(
        after_help = "Elements whose names occur in other configuration strings stay, and so do elements of unknown classes.\n\n\
        Example:\n  castanet undead -v router.click -o smaller.click"
    )]
    Undead(Undead),
    /// Join several routers and the links between them to one configuration.
    #[command(after_help = crate::combine::EXAMPLES)]
    Combine(crate::combine::Combine),
    /// Run or check a network of several routers.
    Net(crate::net::Net),
    /// Take one router out of a combined configuration.
    #[command(after_help = "Example:\n  castanet uncombine net.click A -o a.click")]
    Uncombine(crate::uncombine::Uncombine),
    /// Replace classifiers by classes that hold their decision trees, and combine adjacent ones.
    #[command(
        name = "fastclassifier",
        after_help = "The result is an archive, which 'castanet run' runs. Classifiers whose names occur in other configuration \
        strings stay, and so do those whose patterns depend on the machine or on variables.\n\n\
        Examples:\n  castanet fastclassifier -v router.click -o fast.click\n  castanet fastclassifier --show router.click\n  \
        castanet fastclassifier --reverse fast.click"
    )]
    FastClassifier(FastClassifier),
    /// Compile code for a configuration, which moves packets from element to element by direct calls.
    #[command(after_help = crate::devirtualize::EXAMPLES)]
    Devirtualize(crate::devirtualize::Devirtualize),
    /// Replace parts of a configuration by others that do the same, as patterns say.
    #[command(
        after_help = "A pattern file has a compound class X for each pattern, and a class X_Replacement for its replacement. \
        A variable $v in a pattern stands for any argument.\n\n\
        Examples:\n  castanet xform -v --ip router.click -o faster.click\n  castanet xform -p mine.click router.click\n  \
        castanet xform --show ip > mine.click"
    )]
    Xform(Xform),
    /// Show which worker reaches which element, and why.
    Explain(Explain),
    /// Draw a configuration as SVG, or describe its graph for other programs.
    #[command(
        after_help = "Compounds are frames around their elements. A browser folds a compound when its name is clicked.\n\n\
        Examples:\n  castanet graph router.click -o router.svg\n  castanet graph router.click --fold Interface -o router.svg\n  \
        castanet graph router.click --dot | dot -Tpdf -o router.pdf\n  castanet graph --live router.sock -o now.svg"
    )]
    Graph(Graph),
    /// Show a configuration as an HTML page: the source with links and facts about ports, the drawing, and a list of elements.
    #[command(
        after_help = "The template is HTML with the tags <? title ?>, <? style ?>, <? config ?>, <? graph ?> and <? elements ?>, and \
        those that --define defines.\n\n\
        Examples:\n  castanet pretty router.click -o router.html\n  \
        castanet pretty router.click -T '<pre><? config ?></pre>' -u 'https://example.org/classes/%s.html'"
    )]
    Pretty(crate::pretty::Pretty),
    /// Compile, check, format or explain a program of the protocol language Prolac.
    Prolac(crate::prolac::Prolac),
    /// Print the manual of a class, or the list of all classes.
    Doc(Doc),
    /// List classes, annotations, drop reasons or global handlers.
    List(List),
    /// Make links with the classic names (click, click-check, ...), so that scripts can call this binary.
    Links(Links),
    /// Write a configuration to start from.
    New(crate::new::New),
    /// Query and change a running router.
    Ctl(crate::ctl::Ctl),
    /// Serve the metrics of a running router by HTTP, for Prometheus.
    Serve(crate::serve::Serve),
    /// Show what a running router does: elements by packets, drops and time, queues, workers.
    Top(crate::top::Top),
    /// Follow packets through a router, and show what each element does with them.
    Trace(crate::trace::Trace),
    /// Copy the packets that pass a port of a running router, to a file or into another program.
    Tap(crate::tap::Tap),
    /// Print a completion script for a shell.
    Completion(crate::ctl::completion::Completion),
    /// List the devices of this host, and how a router can receive from and send to each.
    #[command(after_help = "Examples:\n  castanet devices\n  castanet devices eth0 --json")]
    Devices(crate::devices::Devices),
    /// Find what stands in the way of a router on this host, and mend it.
    #[command(after_help = crate::doctor::EXAMPLES)]
    Doctor(crate::doctor::Doctor),
    /// Measure forwarding rates and latencies of operations.
    #[command(after_help = "Examples:\n  castanet bench fig8 --batch 1,32 --instructions --svg fig8.svg\n  \
        castanet bench veth --seconds 60 --svg veth.svg")]
    Bench(crate::bench::Bench),
    /// Unmount the folder of a router that was killed.
    #[command(hide = true, name = "unmount-after-run")]
    Unmount(crate::mount::Unmounter),
    /// Open devices for a router that has dropped its privileges.
    /// Run a configuration in the background, in the kernel as far as possible.
    #[command(
        after_help = "An installed router ends first, unless --hot is given. Whoever has the rights for the control socket may \
        change the router.\n\n\
        Examples:\n  castanet install router.click DEV0=eth1\n  castanet ctl /run/castanet/control read kernel\n  \
        castanet install --hot router.click\n  castanet uninstall"
    )]
    Install(Box<crate::install::Install>),
    /// End the router that 'castanet install' has installed.
    Uninstall(crate::install::Uninstall),
    #[command(hide = true, name = "install-part")]
    InstallPart(Box<crate::install::Part>),
    #[command(hide = true, name = "open-for-run")]
    Open(crate::privileges::Opener),
    /// Compile a crate of classes to a shared library, for `require(package NAME)`.
    BuildPackage(crate::package::BuildPackage),
    /// Copy the compiled crates of this castanet. build-package needs them: it compiles packages against them.
    Sdk(crate::package::Sdk),
    /// Make a minimal driver: an executable with only the classes that some configurations need.
    Mkmindriver(crate::mindriver::Mkmindriver),
}

/// The configuration of a command.
#[derive(Args, Clone, Default)]
pub struct Configuration {
    /// The configuration file (`-` is standard input), and variables as NAME=VALUE.
    #[arg(value_name = "FILE | NAME=VALUE", value_parser = any_text())]
    pub words: Vec<String>,
    /// Use this text as the configuration.
    #[arg(short, long, value_name = "TEXT", conflicts_with = "file", value_parser = any_text())]
    pub expression: Option<String>,
    /// The configuration file.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Folders to search for required libraries, separated by colons; default: $CLICKPATH.
    #[arg(short = 'C', long, value_name = "PATH")]
    pub clickpath: Option<String>,
    /// Load the classes of this package, even if the configuration does not require it.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print diagnostics as JSON on standard error, one object a line, in the form of rustc's --error-format=json.
    #[arg(long)]
    pub json: bool,
}

/// `castanet run`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Run {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Print this read handler after the run. ELEMENT may also be a glob or a class. `-h` alone prints this help.
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.HANDLER")]
    pub handlers: Vec<String>,
    #[command(flatten)]
    pub sockets: crate::control::Sockets,
    #[command(flatten)]
    pub http: crate::http::Http,
    /// Number of workers [default: 1, or as many as --cpus names].
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N")]
    pub workers: Option<usize>,
    /// How devices receive and send. `packet`: as the configuration says. `af-xdp`: around the host's network stack. `xdp`:
    /// the same, and the elements that can run in the kernel run there, at the driver of the device.
    #[arg(long, value_enum, value_name = "DRIVER", default_value_t)]
    pub driver: crate::kernel::Driver,
    #[command(flatten)]
    pub pin: crate::kernel::Pin,
    /// Bind worker 0 to the first of these processors, worker 1 to the second: `2,3`, `0-3`.
    #[arg(long, value_name = "LIST", conflicts_with = "affinity")]
    pub cpus: Option<String>,
    /// Bind each worker to a processor of its own: worker 0 to PROCESSOR, the others to the processors after it.
    #[arg(long, value_name = "PROCESSOR")]
    pub affinity: Option<usize>,
    /// Largest number of packets in a batch, 1 to 256.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub batch: usize,
    /// Run the configuration as it stands, without optimising it as it loads.
    #[arg(long)]
    pub no_optimize: bool,
    /// Make no machine code; without this option, classifiers and paths that see many packets become machine code.
    #[arg(long)]
    pub no_jit: bool,
    /// Make the machine code of classifiers before the router starts, and that of paths before their first packets.
    #[arg(long, conflicts_with_all = ["no_jit", "no_optimize"])]
    pub jit_first: bool,
    /// Measure what each element costs, in a sample of the time, and print a table after the run.
    #[arg(long)]
    pub profile: bool,
    /// Also draw a flame graph of the profile.
    #[arg(long, value_name = "FILE.svg", requires = "profile")]
    pub flame: Option<PathBuf>,
    /// Simulate time, starting SECONDS after 1970. The run ends when nothing is left to do.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1000000000")]
    pub simtime: Option<String>,
    /// Seed of random numbers, for reproducible runs. Default: random numbers from the kernel, or seed 1 with
    /// --simtime.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Show the handlers as files in this folder while the router runs.
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    #[command(flatten)]
    pub privileges: crate::privileges::Privileges,
    /// Print no summary after the run.
    #[arg(short, long)]
    pub quiet: bool,
    /// Let clients swap the configuration, by the handlers hotconfig, swapplan and loadpackage.
    #[arg(short = 'R', long)]
    pub allow_reconfigure: bool,
    #[command(flatten)]
    pub from_clients: crate::control::FromClients,
    /// Run the code in the archive of the configuration that 'castanet devirtualize' has put there.
    #[arg(long)]
    pub allow_code: bool,
    /// What to do when an element panics on a packet, in its task or in a timer. `stop`: an orderly stop.
    /// `disable`: continue without the element, which then drops its packets. `continue`: continue with the
    /// element, although its state may be wrong.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnPanic::Stop)]
    pub on_panic: OnPanic,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// The reaction to a panic of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnPanic {
    /// Stop in an orderly way.
    #[default]
    Stop,
    /// Continue without the element.
    Disable,
    /// Continue with the element.
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
    #[command(flatten)]
    pub configuration: Configuration,
    /// Number of workers to check placement for.
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N", default_value_t = 1)]
    pub workers: usize,
}

/// `castanet flatten`.
#[derive(Args)]
pub struct Flatten {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the names of the classes instead, one a line.
    #[arg(short, long, group = "listing")]
    classes: bool,
    /// Print the names of the elements instead, one a line.
    #[arg(short, long, alias = "elements", group = "listing")]
    names: bool,
    /// Print the elements as NAME :: CLASS instead, one a line.
    #[arg(short, long, alias = "decls", group = "listing")]
    declarations: bool,
    /// Keep the variables of the file scope, and print their definitions.
    #[arg(long)]
    pub no_expand_vars: bool,
}

impl Flatten {
    /// Returns the part of the configuration to print.
    pub fn listing(&self) -> Listing {
        match (self.classes, self.names, self.declarations) {
            (true, ..) => Listing::Classes,
            (_, true, _) => Listing::Names,
            (.., true) => Listing::Declarations,
            _ => Listing::Config,
        }
    }
}

/// `castanet align`.
#[derive(Args)]
pub struct Align {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Insert CheckAlign elements, which only check, in place of Align elements.
    #[arg(long)]
    pub assertions: bool,
    /// Print each element that is inserted or removed, on standard error.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `castanet undead`.
#[derive(Args)]
pub struct Undead {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print each element that is removed, and why, on standard error.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `castanet fastclassifier`.
#[derive(Args)]
pub struct FastClassifier {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not combine adjacent classifiers.
    #[arg(long)]
    pub no_combine: bool,
    /// Write the trees as arguments of the class FastClassifier, instead of making a class for each tree.
    #[arg(long)]
    pub no_classes: bool,
    /// Bring the original classifiers back.
    #[arg(short, long, conflicts_with_all = ["no_combine", "no_classes", "show"])]
    pub reverse: bool,
    /// Print the decision trees, not the configuration.
    #[arg(long)]
    pub show: bool,
    /// Print what is replaced, and which classifiers stay and why, on standard error.
    #[arg(short, long)]
    pub verbose: bool,
}

/// `castanet xform`.
#[derive(Args)]
pub struct Xform {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Read patterns from this file. May be repeated.
    #[arg(short, long, value_name = "FILE", value_parser = any_text())]
    pub patterns: Vec<String>,
    /// Use the patterns for IP routers: several elements of the forwarding path become one.
    #[arg(long)]
    pub ip: bool,
    /// Use the patterns that remove ARP from links between two routers of the same configuration.
    #[arg(long)]
    pub arp: bool,
    /// Look for the replacements, and put the patterns in their place.
    #[arg(short, long)]
    pub reverse: bool,
    /// Print each replacement on standard error.
    #[arg(short, long)]
    pub verbose: bool,
    /// List the patterns that come with the program.
    #[arg(long)]
    pub list: bool,
    /// Print the file of patterns that --ip or --arp uses.
    #[arg(long, value_name = "ip | arp", value_parser = ["ip", "arp"])]
    pub show: Option<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Xform {
    /// Whether the patterns of this name, which come with the program, are to be used.
    pub fn uses(&self, name: &str) -> bool {
        match name {
            "ip" => self.ip,
            "arp" => self.arp,
            _ => false,
        }
    }
}

/// `castanet explain`.
#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Number of workers.
    #[arg(short = 'j', long = "workers", alias = "threads", value_name = "N", default_value_t = 2)]
    pub workers: usize,
    /// `xdp`: print which elements run in the kernel with `castanet run --driver xdp`, and why the others do not.
    #[arg(long, value_enum, value_name = "DRIVER", default_value_t)]
    pub driver: crate::kernel::Driver,
}

/// `castanet graph`.
#[derive(Args)]
pub struct Graph {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw the compounds of this name or class as single boxes. May be repeated.
    #[arg(long, value_name = "COMPOUND")]
    pub fold: Vec<String>,
    /// Draw all compounds as single boxes.
    #[arg(long, conflicts_with = "fold")]
    pub fold_all: bool,
    /// Open compounds down to this depth: 1 opens the compounds of the configuration, but not those inside them.
    #[arg(long, value_name = "N", conflicts_with_all = ["fold", "fold_all"])]
    pub depth: Option<usize>,
    /// Show the packets per second on the connections of the running router at this address. Without FILE, its
    /// configuration is drawn.
    #[arg(long, value_name = "ADDRESS", value_parser = crate::ctl::address, conflicts_with_all = ["gml", "graphml"])]
    pub live: Option<castanet_control::client::Address>,
    /// With --live: seconds over which packets are counted.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = crate::ctl::seconds)]
    pub interval: std::time::Duration,
    /// Print the drawing in the DOT language of Graphviz, with compounds as clusters.
    #[arg(long, group = "form")]
    pub dot: bool,
    /// Print the graph in GML, the Graph Modelling Language.
    #[arg(long, group = "form")]
    pub gml: bool,
    /// Print the graph in GraphML, with compounds as nested graphs.
    #[arg(long, group = "form")]
    pub graphml: bool,
}

/// `castanet doc`.
#[derive(Args)]
pub struct Doc {
    /// The class; without it, all classes are listed, one line each.
    pub class: Option<String>,
    /// Include the classes of this package.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print Markdown, the format of docs/elements.md.
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
    /// Include the classes of this package.
    #[arg(long = "package", value_name = "FILE")]
    pub packages: Vec<String>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The subjects of `castanet list`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Listed {
    /// Element classes, by family.
    Classes,
    /// Packet annotations.
    Annotations,
    /// Drop reasons.
    Reasons,
    /// Global handlers.
    Handlers,
}

/// `castanet links`.
#[derive(Args)]
pub struct Links {
    /// The folder; it is created if it does not exist.
    pub folder: PathBuf,
    /// Replace existing files with these names.
    #[arg(long)]
    pub force: bool,
}
