// SPDX-License-Identifier: MIT OR Apache-2.0
//! New configurations: their diagnostics, the plan of a hot swap, and the swap.

use super::problem::Problem;
use super::router::Session;
use crate::check::diagnose;
use crate::classes::Available;
use crate::control::FromClients;
use crate::load::{Reach, Source, load_in};
use castanet_lang::diagnostic::shown;
use castanet_lang::{Diagnostic, Unknown};
use serde_json::{Value, json};
use std::sync::Arc;

/// The largest number of diagnostics in an answer.
const DIAGNOSTICS: usize = 100;

/// How new configurations are read.
#[derive(Clone)]
pub struct Context {
    /// The classes and packages of this process.
    pub available: Arc<Available>,
    /// The variables of the command line.
    pub defines: Vec<(String, String)>,
    /// The libraries and packages that configurations of clients may require.
    pub allowed: FromClients,
    /// The number of workers with which they would run.
    pub workers: usize,
}

impl Context {
    /// Returns the diagnostics of a configuration. It may require what configurations of clients may.
    pub fn check(&self, text: &str) -> Value {
        let reach = Reach::Client(self.allowed.clone());
        let source = Source { reach, ..Source::text("config", text, self.defines.clone()) };
        let loaded = load_in(&self.available, &source, Unknown::Error);
        let elements = loaded.graph.len();
        let (sources, all) = diagnose(loaded, self.workers);
        let listed = shown(&all);
        let diagnostics: Vec<Value> =
            listed.iter().take(DIAGNOSTICS).map(|d| crate::json::object(&sources, d)).collect();
        json!({
            "elements": elements,
            "errors": all.iter().filter(|d| Diagnostic::is_error(d)).count(),
            "more": all.len().saturating_sub(DIAGNOSTICS),
            "diagnostics": diagnostics,
        })
    }
}

/// Adds the likely reason to an error: a router without `-R` has no such handler.
fn explained(e: Problem) -> Problem {
    match e.status {
        404 => Problem::new(
            409,
            "this router does not allow reconfiguration; 'castanet run -R' starts one that does",
        ),
        _ => e,
    }
}

/// Returns what a hot swap to a configuration would change, one change per line.
pub fn plan(router: &mut Session, text: &str) -> Result<Value, Problem> {
    let plan = router.write("swapplan", text).map_err(explained)?;
    Ok(json!({ "changes": plan.lines().filter(|l| !l.is_empty()).collect::<Vec<_>>() }))
}

/// Replaces the configuration.
pub fn swap(router: &mut Session, text: &str) -> Result<Value, Problem> {
    let warnings = router.write("hotconfig", text).map_err(explained)?;
    Ok(json!({ "warnings": warnings.trim_end() }))
}
