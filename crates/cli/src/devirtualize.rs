// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet devirtualize`: compiles code for a configuration, which moves packets from element to element by direct calls,
//! and loads it when the configuration runs.
//!
//! The pass changes no element. The result is an archive with the code as a further member, so a configuration whose code
//! cannot be used runs without it.

use crate::args::Configuration;
use crate::classes::{Available, BuiltIn};
use crate::live;
use crate::load::{Source, archived, complain, elaborate_in, exit, load_in, reason, show, write_bytes};
use castanet_graph::Graph;
use castanet_graph::devirtualize::{self, Source as Code};
use castanet_lang::args::{cleaned, split};
use castanet_lang::bytes::{decode, encode};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Flat, Sources, Unknown, print, read};
use castanet_package::code;
use castanet_runtime::compiled::{self, LoadCode};
use clap::Args;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The member of the archive that holds the code.
pub const MEMBER: &str = "devirtualize.castanet";
/// The member of the archive that holds the configuration as it was.
const ORIGINAL: &str = "devirtualize.original";
/// The class whose arguments are instructions.
const INFO: &str = "DevirtualizeInfo";

/// The examples in the help.
pub const EXAMPLES: &str = "The result is an archive. Its code runs only with 'castanet run --allow-code', in the castanet that \
    compiled it and on a processor with the features of this one; otherwise the configuration runs without it. This should be the last pass: a pass \
    that changes the configuration makes the code useless.\n\n\
    Examples:\n  castanet devirtualize -v router.click -o direct.click && castanet run --allow-code direct.click\n  \
    castanet devirtualize --source router.click\n  castanet devirtualize --reverse direct.click";

/// `castanet devirtualize`.
#[derive(Args)]
pub struct Devirtualize {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Do not call elements of this class directly.
    #[arg(short = 'n', long = "no-devirtualize", value_name = "CLASS")]
    pub excluded: Vec<String>,
    /// Call elements of this class directly, even if an instruction says otherwise.
    #[arg(long = "devirtualize", value_name = "CLASS")]
    pub included: Vec<String>,
    /// Read instructions from this file: lines such as `no-devirtualize CLASS...` and `devirtualize CLASS...`.
    #[arg(short, long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// Print the Rust source of the code. Nothing is compiled.
    #[arg(short, long, conflicts_with = "reverse")]
    pub source: bool,
    /// Bring back the configuration without code.
    #[arg(short, long)]
    pub reverse: bool,
    /// The folder with the compiled crates of this castanet, if they are not at a default place.
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Print on standard error how many elements and chains have code, and how many functions they share.
    #[arg(short, long)]
    pub verbose: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Which classes are called directly: all but those with the value false.
#[derive(Clone, Debug, Default)]
pub struct Choice(BTreeMap<String, bool>);

impl Choice {
    /// Chooses or excludes a class. Later calls override earlier ones.
    pub fn set(&mut self, class: &str, direct: bool) {
        self.0.insert(class.to_string(), direct);
    }
    /// Adds what another choice says, which overrides this one.
    pub fn extend(&mut self, other: Choice) {
        self.0.extend(other.0);
    }
    /// Carries out an instruction. Returns false if there is no such instruction.
    fn instruct(&mut self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let direct = match words.next() {
            None => return true,
            Some("devirtualize") => true,
            Some("no-devirtualize") => false,
            Some(_) => return false,
        };
        words.for_each(|class| self.set(class, direct));
        true
    }
    /// Reads instructions from a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no instruction.
    pub fn read(&mut self, file: &Path) -> Result<(), String> {
        let shown = file.display();
        let bytes =
            read::file(file, read::MAX_CONFIGURATION).map_err(|e| format!("{shown}: {}", reason(&e)))?;
        for (i, line) in decode(&bytes).lines().enumerate() {
            let instruction = line.split_once("//").map_or(line, |l| l.0);
            if !self.instruct(instruction) {
                return Err(format!(
                    "{shown}:{}: expected 'devirtualize CLASS...' or 'no-devirtualize CLASS...'",
                    i + 1
                ));
            }
        }
        Ok(())
    }
    fn is_direct(&self, class: &str) -> bool {
        self.0.get(class).copied().unwrap_or(true)
    }
}

/// A configuration, and the code for it.
pub struct Devirtualized {
    /// The flat text of the configuration, in the format of the tool.
    pub text: String,
    /// The source of the code.
    pub code: Code,
    /// The fingerprint of the configuration.
    fingerprint: u128,
    /// The other members of its archive.
    members: Vec<(String, Vec<u8>)>,
}

/// A configuration as it was before the pass.
pub struct Original {
    /// Its text.
    pub text: String,
    /// The other members of its archive.
    pub members: Vec<(String, Vec<u8>)>,
}

/// Returns a configuration without code. `text` is its text as it is now. If another pass has changed the configuration
/// since, this text stays.
///
/// # Errors
/// The archive is damaged.
pub fn original(
    available: &Available,
    flat: &Flat,
    text: &str,
    globals: Globals,
) -> Result<Original, String> {
    let members = flat.archive.iter().filter(|m| m.0 != ORIGINAL && m.0 != MEMBER).cloned();
    let members: Vec<_> = members.collect();
    let mut text = text.to_string();
    if let Some((_, before)) = flat.archive.iter().find(|m| m.0 == ORIGINAL) {
        let before = decode(before).into_owned();
        let bytes = archived(&before, &members)?;
        let source = Source { bytes, ..Source::text(ORIGINAL, "", Vec::new()) };
        let (loaded, ..) = elaborate_in(available, &source, Unknown::Opaque, globals);
        if print::driver(&loaded.flat) == print::driver(flat) {
            text = before;
        }
    }
    Ok(Original { text, members })
}

/// Writes the source of the code for a configuration. `text` is its flat text, `members` are the other members of its
/// archive. None if there are errors, which `tell` has printed.
pub fn source(
    available: &Available,
    text: String,
    members: Vec<(String, Vec<u8>)>,
    packages: &[String],
    mut choice: Choice,
    tell: &dyn Fn(&Sources, &[Diagnostic]),
) -> Result<Option<Devirtualized>, String> {
    let bytes = archived(&text, &members)?;
    let source = Source { bytes, packages: packages.to_vec(), ..Source::text("config", "", Vec::new()) };
    let loaded = load_in(available, &source, Unknown::Error);
    if loaded.failed() {
        tell(&loaded.sources, &loaded.diagnostics);
        return Ok(None);
    }
    for e in loaded.graph.flat.elements.iter().filter(|e| e.class == INFO) {
        for instruction in split(&e.config) {
            choice.instruct(&cleaned(&e.config, instruction));
        }
    }
    let (graph, units) = match castanet_runtime::units(loaded.graph, loaded.classes.as_ref()) {
        Ok(done) => done,
        Err(diagnostics) => {
            tell(&loaded.sources, &diagnostics);
            return Ok(None);
        }
    };
    let code = devirtualize::source(&graph, &units, &|class| choice.is_direct(class), 0);
    let fingerprint = fingerprint(&graph);
    Ok(Some(Devirtualized { text, code, fingerprint, members }))
}

impl Devirtualized {
    /// Compiles the code. Returns the archive.
    ///
    /// # Errors
    /// There is no compiler, or the compiled crates of this castanet are missing.
    pub fn compile(self, original: &str, sdk: Option<&Path>) -> Result<Vec<u8>, String> {
        let line = std::io::stderr().is_terminal().then(|| live::Line::start("compiling", ""));
        let library = code::build(&self.code.text, self.fingerprint, sdk).map_err(|e| e.to_string());
        drop(line);
        let mut members = self.members;
        members.push((ORIGINAL.to_string(), encode(original).into_owned()));
        members.push((MEMBER.to_string(), library?));
        archived(&self.text, &members)
    }
    /// Returns how many elements and chains have code, in words.
    pub fn report(&self) -> String {
        let Code { units, functions, .. } = self.code;
        format!("{units} elements and chains, {functions} functions")
    }
}

/// Compiles code for a configuration, and prints it as an archive.
pub fn main(args: &Devirtualize) -> ExitCode {
    exit(run(args))
}

fn run(args: &Devirtualize) -> Result<bool, String> {
    let mut choice = Choice::default();
    if let Some(file) = &args.instructions {
        choice.read(file)?;
    }
    args.excluded.iter().for_each(|class| choice.set(class, false));
    args.included.iter().for_each(|class| choice.set(class, true));
    let given = Source::read(&args.configuration)?;
    let available = BuiltIn::all().available(args.configuration.clickpath.as_deref());
    let loaded = load_in(&available, &given, if args.reverse { Unknown::Opaque } else { Unknown::Error });
    show(&loaded.sources, &loaded.diagnostics, args.configuration.json);
    if loaded.failed() {
        return Ok(false);
    }
    let flat = loaded.graph.flat;
    let text = print::driver(&flat);
    let Original { text: before, members } = original(&available, &flat, &loaded.text, Globals::Substitute)?;
    if args.reverse {
        write_bytes(args.output.as_deref(), &archived(&before, &members)?)?;
        return Ok(true);
    }
    let tell = |sources: &Sources, d: &[Diagnostic]| show(sources, d, args.configuration.json);
    let Some(made) = source(&available, text, members, &given.packages, choice, &tell)? else {
        return Ok(false);
    };
    if args.verbose {
        complain(&made.report());
    }
    let content = match args.source {
        true => encode(&made.code.text).into_owned(),
        false => made.compile(&before, args.sdk.as_deref())?,
    };
    write_bytes(args.output.as_deref(), &content)?;
    Ok(true)
}

/// Identifies the elements and connections of a graph.
fn fingerprint(graph: &Graph) -> u128 {
    let mut text = String::new();
    for e in &graph.flat.elements {
        text += &format!("{} :: {};\n", e.name, e.class);
    }
    for c in &graph.flat.connections {
        text += &format!("{} {} {} {}\n", c.from.element, c.from.port, c.to.element, c.to.port);
    }
    castanet_package::header::checksum(&encode(&text))
}

/// Loads the code in the archives of configurations.
pub struct Loader {
    /// The name of the configuration in messages.
    pub name: String,
}

impl LoadCode for Loader {
    fn load(&self, graph: &Graph) -> Result<Option<Arc<dyn compiled::Code>>, String> {
        load(&self.name, graph, Some(fingerprint(graph)))
    }
}

/// Loads the code in the archive of a graph. `name` is the file in messages. Without a fingerprint, code for another
/// configuration is loaded too; it does nothing wrong, but may be of no use.
///
/// # Errors
/// The code cannot be used.
pub fn load(
    name: &str,
    graph: &Graph,
    fingerprint: Option<u128>,
) -> Result<Option<Arc<dyn compiled::Code>>, String> {
    let Some((_, library)) = graph.flat.archive.iter().find(|m| m.0 == MEMBER) else { return Ok(None) };
    code::load(name, library, fingerprint).map(Some).map_err(|e| e.to_string())
}
