// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet doctor`: finds what stands in the way of a router on this host, and mends it with `--mend`.
//!
//! - `checks`: the checks, one in each file
//! - `scope`: the part of the host that is examined
//! - `host`: the facts that checks read; `kernel`: the kernel of this host
//! - `finding`: what checks find, and the changes that mend it
//! - `report`: the findings as text and as JSON

mod checks;
mod finding;
mod host;
mod kernel;
mod report;
mod scope;
#[cfg(test)]
pub mod testing;

use crate::args::{Configuration, any_text};
use crate::load::{Loaded, Source, complain, load, show};
use castanet_lang::Unknown;
use checks::{CHECKS, Check};
use clap::Args;
use finding::{Change, Mend, Severity};
use host::{Host, Kernel};
use report::{Outcome, Reported};
use scope::Scope;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// `castanet doctor`.
#[derive(Args)]
pub struct Doctor {
    /// The configuration file (`-` is standard input), and variables as NAME=VALUE. Without it, the whole machine is
    /// examined.
    #[arg(value_name = "FILE | NAME=VALUE", value_parser = any_text())]
    words: Vec<String>,
    /// Use this text as the configuration.
    #[arg(short, long, value_name = "TEXT", value_parser = any_text())]
    expression: Option<String>,
    /// Folders to search for required libraries, separated by colons; default: $CLICKPATH.
    #[arg(short = 'C', long, value_name = "PATH")]
    clickpath: Option<String>,
    /// Make the changes that mend what was found, as far as they concern only this network namespace.
    #[arg(long)]
    mend: bool,
    /// Report only findings of this severity and worse ones.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = Severity::Note)]
    level: Severity,
    /// Run only these checks.
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', value_parser = CHECKS.map(|c| c.name))]
    only: Vec<String>,
    /// List the checks instead.
    #[arg(long)]
    list: bool,
    /// Print one JSON object for each finding.
    #[arg(long)]
    json: bool,
}

/// The text that `castanet doctor --help` ends with.
pub const EXAMPLES: &str = "Examples:\n  castanet doctor\n  sudo castanet doctor router.click --mend\n  \
    castanet doctor router.click --level warning --only forwarding,mtu\n\n\
    Exit codes: 0 nothing found, or all of it mended; 1 findings remain; 2 an error.";

/// How often a host is mended and examined again. Changes that bring each other about would not end.
const ROUNDS: usize = 3;
/// How often, and at which interval, a device that was brought up is looked at.
const LOOKS: usize = 20;
const LOOK: Duration = Duration::from_millis(100);

/// The checks to make, and from which severity on findings matter.
struct Examination<'a> {
    checks: Vec<&'a Check>,
    level: Severity,
    /// Why checks could not be made.
    failures: RefCell<BTreeSet<String>>,
}

impl Examination<'_> {
    /// Examines a host.
    fn examine(&self, host: &Host<'_>, scope: &Scope<'_>) -> Vec<Reported> {
        let mut out = Vec::new();
        for check in &self.checks {
            match (check.look)(host, scope) {
                Ok(found) => {
                    let bad = found.into_iter().filter(|f| f.severity >= self.level);
                    out.extend(bad.map(|finding| Reported {
                        check: check.name,
                        finding,
                        outcome: Outcome::Found,
                    }));
                }
                Err(e) => drop(self.failures.borrow_mut().insert(format!("{}: {e}", check.name))),
            }
        }
        out
    }
}

/// A host, and a configuration or none.
struct Patient<'a> {
    root: &'a Path,
    kernel: &'a dyn Kernel,
    configuration: Option<(&'a castanet_graph::Graph, &'a str)>,
}

impl Patient<'_> {
    fn examine(&self, with: &Examination<'_>) -> Result<Vec<Reported>, String> {
        let host = Host::new(self.root, self.kernel)?;
        Ok(with.examine(&host, &self.scope(&host)))
    }

    fn scope(&self, host: &Host<'_>) -> Scope<'_> {
        self.configuration.map_or_else(|| Scope::machine(host), |(graph, file)| Scope::of(graph, file))
    }

    /// Examines the host again after changes. If one brought a device up, waits for its carrier: the kernel tells it up to
    /// a second later.
    fn examine_when_up(&self, all: &[Reported], with: &Examination<'_>) -> Result<Vec<Reported>, String> {
        let is_up = |r: &Reported| {
            r.outcome == Outcome::Mended && matches!(r.finding.mend, Mend::Change(Change::Up { .. }))
        };
        let brought_up = all.iter().find(|r| is_up(r));
        let mut after = self.examine(with)?;
        for _ in 0..LOOKS {
            if brought_up.is_none_or(|up| after.iter().all(|a| a.check != up.check)) {
                break;
            }
            std::thread::sleep(LOOK);
            after = self.examine(with)?;
        }
        Ok(after)
    }

    /// Makes the changes that mend findings. Then examines the host again, because a change that the kernel has accepted
    /// need not have an effect, and because a change may bring something else about: the MTU of a device may no longer fit
    /// its other end. That is mended too.
    ///
    /// # Errors
    /// When the host cannot be examined again. `all` says what has been done until then.
    fn mend(&self, all: &mut Vec<Reported>, with: &Examination<'_>) -> Result<(), String> {
        let mut done = 0;
        for _ in 0..ROUNDS {
            let host = Host::new(self.root, self.kernel)?;
            for r in all.iter_mut().skip(done) {
                if let Mend::Change(change) = &r.finding.mend {
                    r.outcome = host.change(change).map_or_else(Outcome::Failed, |()| Outcome::Mended);
                }
            }
            done = all.len();
            let after = self.examine_when_up(all, with)?;
            for r in all.iter_mut() {
                let still = after.iter().any(|a| a.finding == r.finding);
                match &r.outcome {
                    Outcome::Mended if still => {
                        r.outcome =
                            Outcome::Failed("the kernel made the change, but it had no effect".into());
                    }
                    Outcome::Found | Outcome::Failed(_) if !still => r.outcome = Outcome::Gone,
                    _ => {}
                }
            }
            let is_new = |a: &Reported| all.iter().all(|r| r.finding.what != a.finding.what);
            let new: Vec<Reported> = after.into_iter().filter(is_new).collect();
            if new.is_empty() {
                break;
            }
            all.extend(new);
        }
        Ok(())
    }
}

/// Loads the configuration, if one is named. `Err` after errors in it, which are printed.
fn configuration(args: &Doctor) -> Result<Option<(Loaded, String)>, String> {
    if args.words.is_empty() && args.expression.is_none() {
        return Ok(None);
    }
    let configuration = Configuration {
        words: args.words.clone(),
        expression: args.expression.clone(),
        file: None,
        clickpath: args.clickpath.clone(),
        packages: Vec::new(),
        json: args.json,
    };
    let source = Source::read(&configuration)?;
    let loaded = load(&source, args.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics, args.json);
    if loaded.failed() {
        return Err(format!("{}: the configuration has errors; nothing was examined", source.name));
    }
    let name = if args.expression.is_some() { "-e ...".to_string() } else { source.name };
    Ok(Some((loaded, name)))
}

/// Lists the checks.
fn list() -> String {
    let width = CHECKS.iter().map(|c| c.name.len()).max().unwrap_or(0);
    CHECKS.iter().map(|c| format!("{:<width$}  {}\n", c.name, c.about)).collect()
}

/// The result of an examination.
struct Examined {
    /// The text to print.
    text: String,
    /// Whether nothing is left to mend.
    is_well: bool,
    /// Why checks could not be made.
    failures: Vec<String>,
}

fn run(args: &Doctor) -> Result<Examined, String> {
    if args.list {
        return Ok(Examined { text: list(), is_well: true, failures: Vec::new() });
    }
    let loaded = configuration(args)?;
    let chosen = |c: &&Check| args.only.is_empty() || args.only.iter().any(|n| n == c.name);
    let checks: Vec<&Check> = CHECKS.into_iter().filter(chosen).collect();
    let configuration = loaded.as_ref().map(|(l, name)| (&l.graph, name.as_str()));
    let patient = Patient { root: Path::new("/"), kernel: &kernel::Live, configuration };
    let with = Examination { checks, level: args.level, failures: RefCell::default() };
    let mut all = patient.examine(&with)?;
    let mended = if args.mend { patient.mend(&mut all, &with) } else { Ok(()) };
    let text = match args.json {
        true => report::json(&all),
        false => report::text(&all, args.mend) + &report::summary(&all, with.checks.len(), args.mend),
    };
    let failures = with.failures.into_inner().into_iter().chain(mended.err()).collect();
    Ok(Examined { text, is_well: all.iter().all(|r| r.outcome.is_well()), failures })
}

/// Examines this host.
pub fn main(args: &Doctor) -> ExitCode {
    let printed = run(args).and_then(|examined| {
        let mut out = anstream::stdout().lock();
        let done = out.write_all(examined.text.as_bytes()).and_then(|()| out.flush());
        done.map_err(|e| format!("standard output: {}", crate::load::reason(&e)))?;
        Ok(examined)
    });
    match printed {
        Ok(Examined { failures, .. }) if !failures.is_empty() => {
            failures.iter().for_each(|e| complain(e));
            ExitCode::from(2)
        }
        Ok(Examined { is_well: true, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(e) => {
            complain(&e);
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use finding::Finding;
    use testing::{Fake, graph, tree};

    #[test]
    fn names_of_checks_are_different() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn what_is_mended_is_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = "proc/sys/net/ipv4/conf/eth0/forwarding";
        tree(folder.path(), &[(key, "1")]);
        let mut kernel = Fake::default();
        kernel.device("eth1").info.up = false;
        let g = graph("FromDevice(eth0) -> Queue -> ToDevice(eth1)");
        let patient = Patient { root: folder.path(), kernel: &kernel, configuration: Some((&g, "a.click")) };
        let with = |level| Examination { checks: CHECKS.to_vec(), level, failures: RefCell::default() };
        let notes = with(Severity::Note);
        let mut all = patient.examine(&notes).unwrap();
        assert_eq!(all.iter().map(|r| r.check).collect::<Vec<_>>(), ["devices", "forwarding"]);
        assert_eq!(patient.examine(&with(Severity::Error)).unwrap().len(), 1);
        patient.mend(&mut all, &notes).unwrap();
        // The file is really written. The made-up kernel accepts changes, but does not make them.
        assert_eq!(std::fs::read_to_string(folder.path().join(key)).unwrap(), "0\n");
        assert_eq!(kernel.changes.borrow().len(), 1);
        assert!(matches!(&all[0].outcome, Outcome::Failed(e) if e.contains("no effect")), "{all:?}");
        assert_eq!(all[1].outcome, Outcome::Mended);
        assert_eq!(all.len(), 2);
    }

    /// A check that fails.
    const BROKEN: Check = Check { name: "broken", about: "", look: |_, _| Err("it broke".into()) };

    #[test]
    fn a_check_that_fails_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut kernel = Fake::default();
        kernel.device("eth0").info.up = false;
        let g = graph("FromDevice(eth0) -> Discard");
        let patient = Patient { root: folder.path(), kernel: &kernel, configuration: Some((&g, "a.click")) };
        let checks: Vec<&Check> = [&BROKEN].into_iter().chain(CHECKS).collect();
        let with = Examination { checks, level: Severity::Note, failures: RefCell::default() };
        let all = patient.examine(&with).unwrap();
        assert_eq!(all.iter().map(|r| r.check).collect::<Vec<_>>(), ["devices"]);
        assert_eq!(with.failures.into_inner().into_iter().collect::<Vec<_>>(), ["broken: it broke"]);
    }

    #[test]
    fn what_another_change_has_mended_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let key = "proc/sys/net/ipv4/conf/eth0/forwarding";
        tree(folder.path(), &[(key, "1")]);
        let mut kernel = Fake::default();
        kernel.device("eth0");
        let g = graph("FromDevice(eth0) -> Queue -> ToDevice(eth0)");
        let patient = Patient { root: folder.path(), kernel: &kernel, configuration: Some((&g, "a.click")) };
        let with =
            Examination { checks: CHECKS.to_vec(), level: Severity::Note, failures: RefCell::default() };
        let mut all = patient.examine(&with).unwrap();
        let by_hand = Finding::by_hand(
            Severity::Error,
            "elsewhere".into(),
            "",
            String::new(),
            finding::refusal::OTHERS,
        );
        all.push(Reported { check: "mtu", finding: by_hand, outcome: Outcome::Found });
        patient.mend(&mut all, &with).unwrap();
        let outcomes: Vec<_> = all.iter().map(|r| (r.check, &r.outcome)).collect();
        assert_eq!(outcomes, [("forwarding", &Outcome::Mended), ("mtu", &Outcome::Gone)]);
    }

    #[test]
    fn files_that_are_missing_are_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Fake::default();
        let host = Host::new(folder.path(), &kernel).unwrap();
        let change = Change::Sysctl { key: "net/ipv4/conf/eth0/forwarding".into(), value: 0 };
        assert!(host.change(&change).is_err());
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
