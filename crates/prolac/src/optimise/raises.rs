// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exceptions that each method may raise.

use super::targets;
use crate::program::{ExceptionId, MethodId, ModuleId, Program};
use crate::tree::{Callee, Expr, ExprKind as K};
use std::collections::BTreeSet;

/// The exceptions that each method may raise.
pub(crate) struct Raises {
    methods: Vec<BTreeSet<ExceptionId>>,
    /// The modules of which the program creates objects.
    pub instantiated: BTreeSet<ModuleId>,
}

impl Raises {
    /// Computes the least sets that agree with the bodies. A method is looked at after the methods that it calls, and again if
    /// one of their sets has grown, which only recursion causes.
    pub fn new(program: &Program) -> Raises {
        let methods = vec![BTreeSet::new(); program.methods.len()];
        let mut r = Raises { methods, instantiated: program.instantiated() };
        let calls: Vec<_> = program.methods.iter().map(|m| r.calls(program, &m.body)).collect();
        let mut callers = vec![Vec::new(); calls.len()];
        for (caller, called) in calls.iter().enumerate() {
            called.iter().for_each(|m| callers[m.0].push(caller));
        }
        let order = called_first(&calls);
        let mut waiting = vec![true; calls.len()];
        while waiting.contains(&true) {
            for &n in &order {
                if !std::mem::take(&mut waiting[n]) {
                    continue;
                }
                let set = r.of(program, &program.methods[n].body);
                if set.len() > r.methods[n].len() {
                    callers[n].iter().for_each(|m| waiting[*m] = true);
                    r.methods[n] = set;
                }
            }
        }
        r
    }
    /// The methods that an expression may call.
    fn calls(&self, program: &Program, e: &Expr) -> BTreeSet<MethodId> {
        let mut all = BTreeSet::new();
        e.walk(&mut |e| match &e.kind {
            K::Call { callee: Callee::Direct(m), .. } | K::New { constructor: Some(m), .. } => {
                all.insert(*m);
            }
            K::Call { callee: Callee::Dynamic(slot, module), .. } => {
                all.extend(targets(program, &self.instantiated, *slot, *module));
            }
            _ => {}
        });
        all
    }
    /// Those of a method.
    pub fn method(&self, m: MethodId) -> &BTreeSet<ExceptionId> {
        &self.methods[m.0]
    }
    /// Those of an expression.
    pub fn of(&self, program: &Program, e: &Expr) -> BTreeSet<ExceptionId> {
        let mut set = BTreeSet::new();
        self.add(program, e, &mut set);
        set
    }
    fn add(&self, program: &Program, e: &Expr, set: &mut BTreeSet<ExceptionId>) {
        match &e.kind {
            K::Try(body, arms) => {
                let all = arms.iter().any(|(e, _)| e.is_none());
                let caught = |raised| all || arms.iter().any(|(e, _)| *e == Some(raised));
                set.extend(self.of(program, body).into_iter().filter(|raised| !caught(*raised)));
                arms.iter().for_each(|(_, arm)| self.add(program, arm, set));
                return;
            }
            K::Raise(exception) => {
                set.insert(*exception);
            }
            K::Call { callee: Callee::Direct(m), .. } | K::New { constructor: Some(m), .. } => {
                set.extend(self.method(*m));
            }
            K::Call { callee: Callee::Dynamic(slot, module), .. } => {
                let all = targets(program, &self.instantiated, *slot, *module);
                set.extend(all.into_iter().flat_map(|m| self.method(m)));
            }
            _ => {}
        }
        e.each_operand(&mut |operand| self.add(program, operand, set));
    }
}

/// All methods, each after those that it calls, as far as they do not call each other.
fn called_first(calls: &[BTreeSet<MethodId>]) -> Vec<usize> {
    let mut seen = vec![false; calls.len()];
    let mut order = Vec::new();
    // The second visit of a method comes after all that it calls.
    let mut open: Vec<(usize, bool)> = (0..calls.len()).rev().map(|n| (n, false)).collect();
    while let Some((n, done)) = open.pop() {
        if done {
            order.push(n);
        } else if !std::mem::replace(&mut seen[n], true) {
            open.push((n, true));
            open.extend(calls[n].iter().map(|m| (m.0, false)));
        }
    }
    order
}
