// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet fastclassifier`: replaces classifiers by classes that hold their decision trees, and brings the originals
//! back.

use crate::args::FastClassifier;
use crate::load::{Source, archived, complain, elaborate_with, exit, show, write_bytes};
use castanet_classify::definitions::{Definitions, MEMBER};
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_graph::fastclassifier::{Made, Options, Trees, fastclassifier, restore};
use castanet_lang::bytes::{decode, encode};
use castanet_lang::elaborate::{Globals, Loaded, load_bytes_with};
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown, print};
use castanet_spec::ArgCx;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The member of the archive that holds the original configuration.
const ORIGINAL: &str = "fastclassifier.original";

/// The classifiers that were replaced, and those that stay.
#[derive(Default)]
pub struct Report {
    /// The classifiers that were replaced.
    pub made: Vec<Made>,
    /// The classifiers that stay, and why.
    pub kept: Vec<(String, String)>,
}

impl Report {
    /// Returns one line for each classifier.
    pub fn lines(&self) -> Vec<String> {
        let made = self.made.iter().map(|m| {
            let with =
                if m.merged.is_empty() { String::new() } else { format!(" with {}", m.merged.join(", ")) };
            format!("{}{with}: now {}", m.element, m.class)
        });
        made.chain(self.kept.iter().map(|(element, why)| format!("{element} stays: {why}"))).collect()
    }

    /// Returns the decision trees, as the handler `program` shows them.
    pub fn trees(&self) -> String {
        let mut out = String::new();
        for m in &self.made {
            let all: Vec<&str> = std::iter::once(&m.element).chain(&m.merged).map(String::as_str).collect();
            let _ = writeln!(out, "{}: {}\n{}", all.join(", "), m.class, m.program);
        }
        out
    }
}

/// Returns the text of a configuration, in the format of the tool.
pub type Printer<'a> = dyn Fn(&Loaded, &Sources) -> String + 'a;

/// Replaces the classifiers of a configuration. Classifiers that were replaced before are brought back first. Errors of the graph are
/// added to the diagnostics; nothing is replaced then.
///
/// # Errors
/// If the archive of the configuration is damaged.
pub fn forward(
    loaded: &mut Loaded,
    sources: &mut Sources,
    classes: &dyn Classes,
    globals: Globals,
    options: Options,
    printer: &Printer<'_>,
) -> Result<Report, String> {
    let existing = reverse(loaded, sources, classes, globals)?.definitions;
    let (graph, wrong) = Graph::new(std::mem::take(&mut loaded.flat), classes);
    loaded.diagnostics.extend(wrong);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(Report::default());
    }
    let fast = fastclassifier(&graph, &trees(&graph, classes), existing, options);
    loaded.flat = graph.flat;
    if !fast.made.is_empty() {
        let original = encode(&printer(loaded, sources)).into_owned();
        loaded.flat = fast.flat;
        put(loaded, &fast.definitions);
        loaded.flat.archive.push((ORIGINAL.to_string(), original));
    }
    Ok(Report { made: fast.made, kept: fast.kept })
}

/// A configuration whose classifiers have been brought back.
#[derive(Default)]
pub struct Reversed {
    /// The definitions that it still uses.
    pub definitions: Definitions,
    /// Its text, if it is exactly the original.
    pub text: Option<String>,
}

/// Brings back the classifiers that were replaced.
///
/// # Errors
/// If the archive of the configuration is damaged.
pub fn reverse(
    loaded: &mut Loaded,
    sources: &mut Sources,
    classes: &dyn Classes,
    globals: Globals,
) -> Result<Reversed, String> {
    let damaged = |member: &str, why: String| format!("member '{member}' of the archive: {why}");
    let member =
        |loaded: &Loaded, name: &str| loaded.flat.archive.iter().find(|m| m.0 == name).map(|m| m.1.clone());
    let mut text = None;
    let mut definitions = match member(loaded, MEMBER) {
        Some(bytes) => Definitions::parse(&bytes).map_err(|e| damaged(MEMBER, e.to_string()))?,
        None => Definitions::default(),
    };
    if let Some(bytes) = member(loaded, ORIGINAL) {
        let unknown = Unknown::Opaque;
        let options = castanet_lang::Options { classes, defines: &[], library: &NoLibrary, unknown };
        let original = load_bytes_with(sources, ORIGINAL, &bytes, &options, globals);
        if let Some(e) = original.diagnostics.iter().find(|d| d.is_error()) {
            return Err(damaged(ORIGINAL, e.message.clone()));
        }
        loaded.flat = restore(&loaded.flat, &original.flat, &definitions);
        definitions.merged.clear();
        let (now, before) = (&loaded.flat, &original.flat);
        let is_same = print::driver(now) == print::driver(before) && loaded.defines == original.defines;
        text = is_same.then(|| decode(&bytes).into_owned());
    }
    let used: HashSet<&str> = loaded.flat.elements.iter().map(|e| e.class.as_str()).collect();
    definitions.classes.retain(|name, _| used.contains(name.as_str()));
    loaded.flat.archive.retain(|m| m.0 != MEMBER && m.0 != ORIGINAL);
    put(loaded, &definitions);
    Ok(Reversed { definitions, text })
}

/// Writes definitions to the archive of a configuration.
fn put(loaded: &mut Loaded, definitions: &Definitions) {
    loaded.flat.archive.retain(|m| m.0 != MEMBER);
    let text = definitions.to_string();
    if !text.is_empty() {
        loaded.flat.archive.push((MEMBER.to_string(), text.into_bytes()));
    }
}

/// Compiles the classifiers of a configuration.
fn trees(graph: &Graph, classes: &dyn Classes) -> Trees {
    let names = castanet_runtime::portable_names(graph, classes);
    let tree = |e: usize| {
        let (element, spec) = (graph.element(e)?, graph.spec(e)?);
        let cx = ArgCx { scope: element.scope(), names: &names, origin: names.origin() };
        let program = castanet_elements::classify::program(spec, &element.config, graph.outputs(e), cx)?;
        // A variable may get another value when the configuration runs.
        let variable = element.config.contains('$');
        Some(if variable { Err("its configuration string has variables".into()) } else { program })
    };
    (0..graph.len()).map(tree).collect()
}

/// Prints the flat configuration with fast classifiers, as an archive. Unknown classes are accepted.
pub fn main(args: &FastClassifier) -> ExitCode {
    exit(run(args))
}

fn run(args: &FastClassifier) -> Result<bool, String> {
    let source = Source::read(&args.configuration)?;
    let clickpath = args.configuration.clickpath.as_deref();
    let globals = Globals::Substitute;
    let (mut loaded, mut sources, classes) = elaborate_with(&source, clickpath, Unknown::Opaque, globals);
    let printer = |loaded: &Loaded, _: &Sources| print::driver(&loaded.flat);
    let options = Options { combine: !args.no_combine, classes: !args.no_classes };
    let readable = !loaded.diagnostics.iter().any(Diagnostic::is_error);
    let (mut report, mut text) = (Report::default(), None);
    if readable && args.reverse {
        text = reverse(&mut loaded, &mut sources, classes.as_ref(), globals)?.text;
    } else if readable {
        report = forward(&mut loaded, &mut sources, classes.as_ref(), globals, options, &printer)?;
    }
    show(&sources, &loaded.diagnostics, args.configuration.json);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    if args.verbose {
        report.lines().iter().for_each(|line| complain(line));
    }
    let content = match args.show {
        true => encode(&report.trees()).into_owned(),
        false => archived(&text.unwrap_or_else(|| printer(&loaded, &sources)), &loaded.flat.archive)?,
    };
    write_bytes(args.output.as_deref(), &content)?;
    Ok(true)
}
