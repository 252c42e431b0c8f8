// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of section 3.4.1 of the paper: the dynamic dispatches of a program, and what analyses leave of them.

use crate::counted;
use crate::optimise::{Inlining, Optimisations, optimise, targets};
use crate::program::Program;
use crate::tree::{Callee, ExprKind};
use std::collections::BTreeMap;
use std::fmt;

/// The figures of the paper's TCP, in the order of [`Stats::dispatches`].
const PAPER: [usize; 3] = [1022, 62, 0];

/// Figures of a program.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Three counts of dynamic dispatches: if every call of a method of an object dispatches; if only calls of methods with
    /// several definitions do; and after the analysis of the class hierarchy.
    pub dispatches: [usize; 3],
    /// The number of modules.
    pub modules: usize,
    /// The number of method definitions.
    pub methods: usize,
    /// For each method with replaced calls, the methods whose bodies replaced them, and how deep inside other replaced
    /// calls.
    pub inlined: Vec<(String, Vec<(usize, String)>)>,
}

/// Computes the figures of a program without errors.
pub fn stats(program: &Program, optimisations: Optimisations) -> Stats {
    let nothing = Stats { dispatches: [0; 3], modules: 0, methods: 0, inlined: Vec::new() };
    crate::with_stack(|| figures(program, optimisations)).unwrap_or(nothing)
}

fn figures(program: &Program, optimisations: Optimisations) -> Stats {
    let instantiated = program.instantiated();
    let mut definitions: BTreeMap<_, usize> = BTreeMap::new();
    for m in &program.methods {
        *definitions.entry(m.slot).or_default() += 1;
    }
    let mut dispatches = [0; 3];
    for m in &program.methods {
        m.body.walk(&mut |e| {
            let ExprKind::Call { callee: Callee::Dynamic(slot, module), .. } = &e.kind else { return };
            dispatches[0] += 1;
            dispatches[1] += usize::from(definitions.get(slot).is_some_and(|n| *n > 1));
            dispatches[2] += usize::from(targets(program, &instantiated, *slot, *module).len() > 1);
        });
    }
    let (_, report) = optimise(program, optimisations);
    let mut inlined: Vec<(String, Vec<(usize, String)>)> = Vec::new();
    for Inlining { into, body, depth } in report.inlined {
        let (into, body) = (program.full_name(into), program.full_name(body));
        match inlined.last_mut() {
            Some((last, all)) if *last == into => all.push((depth, body)),
            _ => inlined.push((into, vec![(depth, body)])),
        }
    }
    Stats { dispatches, modules: program.modules.len(), methods: program.methods.len(), inlined }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {}", counted(self.modules, "module"), counted(self.methods, "method"))?;
        writeln!(f, "\n{:<50}{:>14}{:>14}", "dynamic dispatches", "this program", "paper's TCP")?;
        let lines = [
            "every call of an object's method",
            "methods with several definitions",
            "after class hierarchy analysis",
        ];
        for ((line, n), paper) in lines.iter().zip(self.dispatches).zip(PAPER) {
            writeln!(f, "  {line:<48}{n:>14}{paper:>14}")?;
        }
        let count: usize = self.inlined.iter().map(|(_, all)| all.len()).sum();
        writeln!(f, "\n{} inlined", counted(count, "call"))?;
        for (into, all) in &self.inlined {
            writeln!(f, "  {into}")?;
            for (depth, body) in all {
                writeln!(f, "  {}{body}", "  ".repeat(depth + 1))?;
            }
        }
        Ok(())
    }
}
