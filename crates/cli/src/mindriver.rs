// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet mkmindriver`: makes an executable with only the classes that some configurations need.
//!
//! ASPLOS 2002, section 7, names the tool of this purpose among Click's.

use crate::args::Configuration;
use crate::classes::{Available, BuiltIn};
use crate::load::{Source, complain, load_in, show, write_out};
use crate::{check, live};
use castanet_element::{ClassDef, Classes};
use castanet_graph::offload;
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_package::driver::{self, Size};
use castanet_runtime::Options;
use clap::Args;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// `castanet mkmindriver`.
#[derive(Args)]
#[command(
    after_help = "Several files may be given; the driver has the classes of all. It runs them, and every other configuration that needs \
    no other classes, with the options of 'castanet run'. Under a name that ends in 'click' it has those of Click's driver. \
    The Rust compiler that built this castanet is needed, and its compiled crates ('castanet sdk --drivers').\n\n\
    Example:\n  castanet mkmindriver router.click -o router\n  ./router run router.click\n  ./router list"
)]
pub struct Mkmindriver {
    #[command(flatten)]
    pub configuration: Configuration,
    /// The executable to write.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Include these classes too.
    #[arg(short = 'E', long, value_name = "CLASS,...", value_delimiter = ',')]
    pub elements: Vec<String>,
    /// Include all classes.
    #[arg(short, long)]
    pub all: bool,
    /// Include classes that are often useful when a configuration is changed.
    #[arg(long)]
    pub extras: bool,
    /// Do not check that the configurations have no errors and that the driver works.
    #[arg(long)]
    pub no_check: bool,
    /// Leave symbols and debug information out of the executable.
    #[arg(long)]
    pub strip: bool,
    /// The folder with the compiled crates of this castanet, if they are not at a default place.
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Print which classes each configuration needs, on standard error.
    #[arg(short, long)]
    pub verbose: bool,
}

/// The classes that `--extras` adds: ends, counters and printers for experiments, and the class that the router
/// itself inserts before classes that cannot handle offloads.
pub const EXTRAS: &[&str] =
    &["CompleteOffload", "Counter", "Discard", "Idle", "InfiniteSource", "Null", "Print", "Queue", "Script"];

/// A minimal driver to make.
pub struct Wanted<'a> {
    /// The configurations that it has to run.
    pub configurations: Vec<Source>,
    /// The search path of libraries and packages.
    pub clickpath: Option<&'a str>,
    /// The names of other classes that it has to have. `None` for all classes.
    pub classes: Option<Vec<String>>,
    /// Whether to check the configurations and the driver.
    pub check: bool,
    /// Whether to leave out symbols.
    pub strip: bool,
    /// The folder of compiled crates.
    pub sdk: Option<&'a Path>,
    /// The executable.
    pub output: PathBuf,
    /// Prints the diagnostics of a configuration.
    pub show: &'a dyn Fn(&Sources, &[Diagnostic]),
    /// Prints progress on standard error.
    pub say: &'a dyn Fn(&str),
    /// Whether to say which classes each configuration needs.
    pub verbose: bool,
}

/// Makes a minimal driver and reports its size.
pub fn main(args: &Mkmindriver) -> ExitCode {
    let made = sources(args).and_then(|configurations| {
        let extras = EXTRAS.iter().filter(|_| args.extras).map(|name| (*name).to_string());
        let words = args.elements.iter().flat_map(|e| e.split_whitespace()).map(str::to_string);
        make(&Wanted {
            configurations,
            clickpath: args.configuration.clickpath.as_deref(),
            classes: (!args.all).then(|| words.chain(extras).collect()),
            check: !args.no_check,
            strip: args.strip,
            sdk: args.sdk.as_deref(),
            output: args.output.clone(),
            show: &|sources, diagnostics| show(sources, diagnostics, args.configuration.json),
            say: &complain,
            verbose: args.verbose,
        })
    });
    match made.and_then(|report| write_out(None, &report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Reads the configurations. There may be none, if other classes are asked for.
fn sources(args: &Mkmindriver) -> Result<Vec<Source>, String> {
    let c = &args.configuration;
    let none = c.words.is_empty() && c.expression.is_none() && c.file.is_none();
    if none && (args.all || !args.elements.is_empty()) {
        return Ok(Vec::new());
    }
    check::each(c).iter().map(Source::read).collect()
}

/// Makes a minimal driver. Returns the report of its size.
///
/// # Errors
/// A class or configuration is wrong, or the driver cannot be built. The error is a text for standard error.
pub fn make(wanted: &Wanted<'_>) -> Result<String, String> {
    let all = BuiltIn::all().available(wanted.clickpath);
    let classes = classes(wanted, &all)?;
    let names: Vec<&'static str> = classes.iter().map(|c| c.spec.name).collect();
    if names.is_empty() {
        return Err("the configurations need no classes; no driver is made".into());
    }
    if wanted.check {
        let only = BuiltIn::only(&classes).available(wanted.clickpath);
        wanted.configurations.iter().try_for_each(|source| runnable(wanted, source, &only))?;
    }
    let count = all.built_in.names().len();
    let built = || {
        driver::prepare(wanted.sdk)?;
        (wanted.say)(&format!("compiling a driver with {} of {count} classes", names.len()));
        let _line = std::io::stderr().is_terminal().then(|| live::Line::start("compiling", ""));
        driver::build(&driver::Options {
            output: wanted.output.clone(),
            classes: names.clone(),
            strip: wanted.strip,
            sdk: wanted.sdk.map(Path::to_path_buf),
        })
    };
    let size = built().map_err(|e| e.to_string())?;
    if wanted.check {
        works(&wanted.output, &names)?;
    }
    let full = std::env::current_exe().ok().and_then(|exe| Size::of_file(&exe));
    Ok(report(&wanted.output, &names, count, size, full))
}

/// Returns the classes that the driver has to have, sorted by name.
fn classes(wanted: &Wanted<'_>, all: &Available) -> Result<Vec<ClassDef>, String> {
    let registry = all.built_in.registry();
    let mut names: BTreeSet<&'static str> = BTreeSet::new();
    for source in &wanted.configurations {
        let needed = needed(wanted, source, all)?;
        if wanted.verbose {
            let list: Vec<&str> = needed.iter().copied().collect();
            (wanted.say)(&format!("{} needs {}", source.name, list.join(", ")));
        }
        names.extend(needed);
    }
    match &wanted.classes {
        None => names.extend(all.built_in.names()),
        Some(more) => {
            for name in more {
                let def = registry.get(name).ok_or_else(|| {
                    format!("there is no class '{name}' in this castanet; 'castanet list' lists the classes")
                })?;
                names.insert(def.spec.name);
            }
        }
    }
    Ok(names.iter().filter_map(|name| registry.get(name)).collect())
}

/// Returns the names of the classes in this castanet that a configuration needs, also for elements that the router
/// inserts. Classes of packages are left out: the driver loads the package.
fn needed(wanted: &Wanted<'_>, source: &Source, all: &Available) -> Result<BTreeSet<&'static str>, String> {
    let unknown = if wanted.check { Unknown::Error } else { Unknown::Opaque };
    let loaded = load_in(all, source, unknown);
    if loaded.misread || wanted.check && loaded.failed() {
        (wanted.show)(&loaded.sources, &loaded.diagnostics);
        return Err(wrong(source));
    }
    let (graph, _) = offload::complete(loaded.graph, loaded.classes.as_ref());
    let absent = |class: &&str| loaded.classes.spec(class).is_none();
    for class in graph.flat.elements.iter().map(|e| e.class.as_str()).filter(absent).collect::<BTreeSet<_>>()
    {
        (wanted.say)(&format!(
            "{}: there is no class '{class}' in this castanet; it is left out",
            source.name
        ));
    }
    let own = |name: &str| {
        let (used, own) = (loaded.classes.spec(name)?, all.built_in.registry().get(name)?.spec);
        std::ptr::eq(used, own).then_some(own.name)
    };
    Ok(graph.flat.elements.iter().filter_map(|e| own(&e.class)).collect())
}

fn wrong(source: &Source) -> String {
    format!("{}: the configuration has errors; no driver is made", source.name)
}

/// Checks that a configuration has no errors with the classes of the driver.
fn runnable(wanted: &Wanted<'_>, source: &Source, only: &Available) -> Result<(), String> {
    let mut loaded = load_in(only, source, Unknown::Error);
    if !loaded.failed() {
        let classes: Arc<dyn Classes> = loaded.classes;
        loaded.diagnostics.extend(castanet_runtime::check(loaded.graph, classes, &Options::default()));
    }
    (wanted.show)(&loaded.sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) { Err(wrong(source)) } else { Ok(()) }
}

/// Checks that a driver starts and has these classes.
fn works(driver: &Path, names: &[&str]) -> Result<(), String> {
    let shown = driver.display();
    // The absolute path, because a bare name would be searched along PATH.
    let path = std::path::absolute(driver).map_err(|e| format!("{shown}: {e}"))?;
    let listed = Command::new(path).arg0("driver").arg("list").output();
    let listed =
        listed.map_err(|e| format!("{shown}: the driver cannot be run: {}", crate::load::reason(&e)))?;
    let has: Vec<&str> = std::str::from_utf8(&listed.stdout).unwrap_or_default().lines().collect();
    if listed.status.success() && has == names {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&listed.stderr);
    Err(format!("{shown}: the driver does not work: {}\n{}", listed.status, said.trim_end()))
}

/// The report: the number of classes, and the sizes of the driver and of this castanet in bytes.
fn report(driver: &Path, names: &[&str], count: usize, size: Size, full: Option<Size>) -> String {
    let driver = driver.display().to_string();
    let mut out = format!("{driver}: {} of {count} classes\n", names.len());
    let width = driver.chars().count().max("castanet".len());
    let _ = writeln!(out, "{:width$}  {:>10}  without symbols", "", "bytes");
    for (name, size) in [(driver.as_str(), Some(size)), ("castanet", full)] {
        if let Some(Size { file, loaded }) = size {
            let _ = writeln!(out, "{name:width$}  {file:>10}  {loaded:>15}");
        }
    }
    out
}
