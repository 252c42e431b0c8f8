// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet xform`: prints the configuration with parts of it replaced, as patterns say.

use crate::args::Xform;
use crate::load::{Source, complain, elaborate, exit, show, write_out};
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_graph::xform::{Direction, Outcome, Refused, Rule, SHIPPED, Shipped, xform};
use castanet_lang::elaborate::{Fragments, load_fragments};
use castanet_lang::library::SearchPath;
use castanet_lang::{Diagnostic, Flat, Options, Sources, Unknown};
use std::process::ExitCode;

/// The message if there are no patterns.
pub const NO_PATTERNS: &str = "warning: no patterns read";

/// Rules of one or more files.
#[derive(Default)]
pub struct Rules {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// The requirements of the files.
    pub requirements: Vec<(String, String)>,
    /// Whether there was an error.
    pub failed: bool,
}

impl Rules {
    /// Adds the rules of a file. `show` prints its diagnostics.
    pub fn add(
        &mut self,
        file: &Source,
        clickpath: Option<&str>,
        direction: Direction,
        classes: &dyn Classes,
        show: &dyn Fn(&Sources, &[Diagnostic]),
    ) {
        let environment = std::env::var("CLICKPATH").ok();
        let library = SearchPath::new(clickpath.or(environment.as_deref()));
        let options =
            Options { classes, defines: &file.defines, library: &library, unknown: Unknown::Opaque };
        let mut sources = Sources::new();
        let Fragments { fragments, requirements, mut diagnostics } =
            load_fragments(&mut sources, &file.name, &file.bytes, &options);
        let (rules, wrong) = Rule::read(&fragments, direction);
        diagnostics.extend(wrong);
        show(&sources, &diagnostics);
        self.failed |= diagnostics.iter().any(Diagnostic::is_error);
        self.rules.extend(rules);
        self.requirements.extend(requirements);
    }

    /// Adds rules that come with the program.
    pub fn add_shipped(
        &mut self,
        shipped: &Shipped,
        direction: Direction,
        classes: &dyn Classes,
        show: &dyn Fn(&Sources, &[Diagnostic]),
    ) {
        let name = format!("<{}>", shipped.name);
        self.add(&Source::text(&name, shipped.text, Vec::new()), None, direction, classes, show);
    }

    /// Applies the rules. If one was applied, the result requires what the files of the rules require.
    ///
    /// # Errors
    /// There are too many ways in which patterns may match, or the result is too large.
    pub fn apply(&self, flat: Flat, classes: &dyn Classes) -> Result<Outcome, String> {
        let mut outcome = xform(flat, &self.rules, classes).map_err(|e| e.to_string())?;
        if !outcome.applied.is_empty() {
            for r in &self.requirements {
                if !outcome.flat.requirements.contains(r) {
                    outcome.flat.requirements.push(r.clone());
                    outcome.flat.required_at.push(Default::default());
                }
            }
        }
        Ok(outcome)
    }
}

/// Returns the message about a match that was not replaced.
pub fn refusal(r: &Refused) -> String {
    format!("warning: '{}' not applied: '{}' is named by '{}'", r.rule, r.element, r.named_by)
}

/// Prints the flat configuration with the replacements. Unknown classes are accepted.
pub fn main(args: &Xform) -> ExitCode {
    exit(run(args))
}

fn run(args: &Xform) -> Result<bool, String> {
    if let Some(text) = shipped_text(args) {
        write_out(args.output.as_deref(), &text)?;
        return Ok(true);
    }
    let json = args.configuration.json;
    let clickpath = args.configuration.clickpath.as_deref();
    let source = Source::read(&args.configuration)?;
    let (flat, sources, mut diagnostics, classes) = elaborate(&source, clickpath, Unknown::Opaque);
    let (graph, wrong) = Graph::new(flat, classes.as_ref());
    diagnostics.extend(wrong);
    show(&sources, &diagnostics, json);
    let direction = if args.reverse { Direction::Reverse } else { Direction::Forward };
    let mut rules = Rules::default();
    let print = |sources: &Sources, diagnostics: &[Diagnostic]| show(sources, diagnostics, json);
    for shipped in SHIPPED.iter().filter(|s| args.uses(s.name)) {
        rules.add_shipped(shipped, direction, classes.as_ref(), &print);
    }
    for file in &args.patterns {
        let file = Source::file(file, source.defines.clone())?;
        rules.add(&file, clickpath, direction, classes.as_ref(), &print);
    }
    if rules.failed || diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    if rules.rules.is_empty() {
        complain(NO_PATTERNS);
    }
    let outcome = rules.apply(graph.flat, classes.as_ref())?;
    for a in outcome.applied.iter().filter(|_| args.verbose) {
        let added = if a.added.is_empty() { "nothing".to_string() } else { a.added.join(", ") };
        complain(&format!("{}: {} by {added}", a.rule, a.removed.join(", ")));
    }
    outcome.refused.iter().for_each(|r| complain(&refusal(r)));
    write_out(args.output.as_deref(), &castanet_lang::print::driver(&outcome.flat))?;
    Ok(true)
}

/// Returns the text of `--list` or `--show`.
fn shipped_text(args: &Xform) -> Option<String> {
    if args.list {
        return Some(SHIPPED.iter().map(|s| format!("{:<5} {}\n", s.name, s.summary)).collect());
    }
    args.show.as_deref().and_then(Shipped::named).map(|s| s.text.to_string())
}
