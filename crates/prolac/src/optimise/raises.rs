// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exceptions that each method may raise.

use super::targets;
use crate::program::{ExceptionId, MethodId, ModuleId, Program};
use crate::tree::{Callee, Expr, ExprKind as K};
use std::collections::BTreeSet;

/// The exceptions that each method may raise.
pub(crate) struct Raises {
    methods: Vec<BTreeSet<ExceptionId>>,
    instantiated: BTreeSet<ModuleId>,
}

impl Raises {
    /// Computes the least sets that agree with the bodies.
    pub fn new(program: &Program) -> Raises {
        let methods = vec![BTreeSet::new(); program.methods.len()];
        let mut r = Raises { methods, instantiated: program.instantiated() };
        loop {
            let mut changed = false;
            for n in 0..program.methods.len() {
                let set = r.of(program, &program.methods[n].body);
                changed |= set.len() > r.methods[n].len();
                r.methods[n] = set;
            }
            if !changed {
                return r;
            }
        }
    }
    /// Those of a method.
    pub fn method(&self, m: MethodId) -> &BTreeSet<ExceptionId> {
        &self.methods[m.0]
    }
    /// Those of a call.
    pub fn call(&self, program: &Program, callee: Callee) -> BTreeSet<ExceptionId> {
        match callee {
            Callee::Direct(m) => self.method(m).clone(),
            Callee::Dynamic(slot, module) => {
                let all = targets(program, &self.instantiated, slot, module);
                all.into_iter().flat_map(|m| self.method(m).iter().copied()).collect()
            }
        }
    }
    /// Those of an expression.
    pub fn of(&self, program: &Program, e: &Expr) -> BTreeSet<ExceptionId> {
        if let K::Try(body, arms) = &e.kind {
            let mut set = self.of(program, body);
            let all = arms.iter().any(|(e, _)| e.is_none());
            set.retain(|raised| !all && !arms.iter().any(|(e, _)| *e == Some(*raised)));
            set.extend(arms.iter().flat_map(|(_, arm)| self.of(program, arm)));
            return set;
        }
        let mut set: BTreeSet<ExceptionId> = BTreeSet::new();
        match &e.kind {
            K::Raise(exception) => {
                set.insert(*exception);
            }
            K::Call { callee, .. } => set.extend(self.call(program, *callee)),
            K::New { constructor: Some(m), .. } => set.extend(self.method(*m)),
            _ => {}
        }
        for operand in e.operands() {
            set.extend(self.of(program, operand));
        }
        set
    }
}
