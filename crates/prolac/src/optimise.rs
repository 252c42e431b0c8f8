// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transformations of the typed tree before it is printed: static class hierarchy analysis (Dean, Grove and
//! Chambers, ECOOP 1995), inlining, path inlining and outlining (Mosberger et al., SIGCOMM 1996).

mod inline;
mod raises;

use crate::program::{Hint, MethodId, ModuleId, Program, SlotId, Type};
use crate::tree::{Callee, Expr, ExprKind};
use castanet_diagnostic::Span;
pub(crate) use raises::Raises;
use std::collections::BTreeSet;

/// The optimisations, each of which can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimisations {
    /// Call the only possible definition directly.
    pub hierarchy: bool,
    /// Replace calls by bodies.
    pub inline: bool,
    /// Let `pathinline` replace the calls in the body likewise.
    pub path_inline: bool,
    /// Move what `outline` marks into functions of its own.
    pub outline: bool,
}

impl Optimisations {
    /// All of them.
    pub const ALL: Optimisations =
        Optimisations { hierarchy: true, inline: true, path_inline: true, outline: true };
    /// None of them.
    pub const NONE: Optimisations =
        Optimisations { hierarchy: false, inline: false, path_inline: false, outline: false };
}

/// A replaced call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlining {
    /// The method with the call.
    pub into: MethodId,
    /// The method whose body replaced it.
    pub body: MethodId,
    /// How deep the call was inside other replaced calls.
    pub depth: usize,
}

/// The effects of the optimisations.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How often the compiler has looked at an operation: a measure of its work that does not depend on the machine.
    pub visits: u64,
    /// The replaced calls.
    pub inlined: Vec<Inlining>,
}

/// The definitions that a dynamic call may run, given the modules of which objects are created.
pub(crate) fn targets(
    program: &Program,
    instantiated: &BTreeSet<ModuleId>,
    slot: SlotId,
    module: ModuleId,
) -> BTreeSet<MethodId> {
    let table = |m: ModuleId| program.module(m).vtable.get(&slot).copied();
    let mut all: BTreeSet<MethodId> = BTreeSet::new();
    if program.module(module).punned.is_some() {
        all.extend(table(program.punned_object(module)));
        return all;
    }
    all.extend(instantiated.iter().filter(|m| program.extends(**m, module)).filter_map(|m| table(*m)));
    if all.is_empty() {
        all.extend(table(program.fallback(module, instantiated)).or_else(|| table(module)));
    }
    all
}

/// Optimises a program. The result has the same behaviour.
pub fn optimise(program: &Program, optimisations: Optimisations) -> (Program, Report) {
    let (program, report, _) = with_raises(program, optimisations);
    (program, report)
}

/// Optimises a program, and finds the exceptions that the methods of the result raise.
pub(crate) fn with_raises(program: &Program, optimisations: Optimisations) -> (Program, Report, Raises) {
    let mut out = program.clone();
    let instantiated = program.instantiated();
    let mut report = Report::default();
    for m in &mut out.methods {
        direct(program, &instantiated, optimisations.hierarchy, &mut m.body);
        if optimisations.outline {
            outline(&mut m.body);
        } else {
            keep_in_line(&mut m.body);
        }
    }
    if optimisations.inline {
        inline::inline(&mut out, optimisations.path_inline, &mut report);
    }
    // The exceptions of an arm no longer count once the arm is gone, which may make further arms superfluous.
    loop {
        let raises = Raises::new(&out);
        // The sets of exceptions are known, so that no body is needed while one changes.
        let nothing = || Expr::new(Type::Void, ExprKind::Seq(Vec::new()), Span::default());
        let bodies = out.methods.iter_mut().map(|m| std::mem::replace(&mut m.body, nothing()));
        let mut bodies: Vec<Expr> = bodies.collect();
        let changes: usize = bodies.iter_mut().map(|b| prune(&out, &raises, b)).sum();
        for (m, body) in out.methods.iter_mut().zip(bodies) {
            m.body = body;
        }
        if changes == 0 {
            return (out, report, raises);
        }
    }
}

/// Removes the arms of `try` for exceptions that its body never raises. Returns the number of changes.
fn prune(program: &Program, raises: &Raises, e: &mut Expr) -> usize {
    let mut changes: usize = e.operands_mut().into_iter().map(|e| prune(program, raises, e)).sum();
    if let ExprKind::Try(body, arms) = &mut e.kind {
        let mut left = raises.of(program, body);
        let before = arms.len();
        arms.retain(|(exception, _)| match exception {
            Some(exception) => left.remove(exception),
            None => !std::mem::take(&mut left).is_empty(),
        });
        changes += before - arms.len();
        if arms.is_empty() {
            changes += 1;
            let nothing = Expr::new(body.ty.clone(), ExprKind::Seq(Vec::new()), body.span);
            let ty = e.ty.clone();
            let body = std::mem::replace(&mut **body, nothing);
            *e = if body.ty == ty { body } else { Expr::new(ty, ExprKind::Seq(vec![body]), e.span) };
        }
    }
    changes
}

/// Makes calls direct that can run one definition only. Calls on views of bytes always are.
fn direct(program: &Program, instantiated: &BTreeSet<ModuleId>, hierarchy: bool, e: &mut Expr) {
    if let ExprKind::Call { callee, .. } = &mut e.kind
        && let Callee::Dynamic(slot, module) = *callee
        && (hierarchy || program.module(module).punned.is_some())
    {
        let mut all = targets(program, instantiated, slot, module).into_iter();
        if let (Some(only), None) = (all.next(), all.next()) {
            *callee = Callee::Direct(only);
        }
    }
    e.operands_mut().into_iter().for_each(|e| direct(program, instantiated, hierarchy, e));
}

/// Turns calls with the hint `outline` into outlined expressions.
fn outline(e: &mut Expr) {
    e.operands_mut().into_iter().for_each(outline);
    if let ExprKind::Call { hint, .. } = &mut e.kind
        && *hint == Some(Hint::Outline)
    {
        *hint = None;
        let inner = Expr::new(e.ty.clone(), ExprKind::Seq(Vec::new()), e.span);
        let call = std::mem::replace(e, inner);
        let (ty, span) = (call.ty.clone(), call.span);
        *e = Expr::new(ty, ExprKind::Outline(Box::new(call)), span);
    }
}

/// Removes what marks expressions for outlining.
fn keep_in_line(e: &mut Expr) {
    e.operands_mut().into_iter().for_each(keep_in_line);
    match &mut e.kind {
        ExprKind::Outline(inner) => {
            let nothing = Expr::new(inner.ty.clone(), ExprKind::Seq(Vec::new()), inner.span);
            *e = std::mem::replace(inner, nothing);
        }
        ExprKind::Call { hint: hint @ Some(Hint::Outline), .. } => *hint = None,
        _ => {}
    }
}

/// The methods that the host calls, and those that they may run, directly or indirectly.
pub(crate) fn reachable(program: &Program, instantiated: &BTreeSet<ModuleId>) -> BTreeSet<MethodId> {
    let mut open: Vec<MethodId> = Vec::new();
    for m in &program.exports {
        open.extend(entries(program, *m));
    }
    let mut seen: BTreeSet<MethodId> = BTreeSet::new();
    while let Some(m) = open.pop() {
        if !seen.insert(m) {
            continue;
        }
        program.method(m).body.walk(&mut |e| match &e.kind {
            ExprKind::Call { callee: Callee::Direct(m), .. } => open.push(*m),
            ExprKind::Call { callee: Callee::Dynamic(slot, module), .. } => {
                open.extend(targets(program, instantiated, *slot, *module));
            }
            ExprKind::New { constructor, .. } => open.extend(*constructor),
            _ => {}
        });
    }
    seen
}

/// The methods of an exported module that the host may call, with the constructor.
pub(crate) fn entries(program: &Program, module: ModuleId) -> Vec<MethodId> {
    let m = program.module(module);
    let view = program.view(m.outer);
    let visible = view.features.values().filter(|f| f.hidden.is_none());
    let methods = visible.filter_map(|f| match f.kind {
        crate::program::FeatureKind::Method(m) => Some(m),
        _ => None,
    });
    methods.chain(m.constructor).collect()
}
