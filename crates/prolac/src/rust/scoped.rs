// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects that are variables of functions, and need no place in an arena.
//!
//! `let m = Module(...) in ... end` makes an object that ends with its block. If all objects of a family are made in this way,
//! and no pointer to one can outlive it, each of them is a variable. Pointers to them are references. Their own pointers are
//! references too, unless other pointers lead to them, so that the objects behind them need not be looked up again.

use crate::program::{MethodKind, ModuleId, Program, Type};
use crate::tree::{Expr, ExprKind as K};
use std::collections::BTreeSet;

/// The families whose objects are variables, by their root modules.
#[derive(Default)]
pub(super) struct Scoped {
    families: BTreeSet<ModuleId>,
    /// Those to which pointers lead, in arguments and fields.
    referenced: BTreeSet<ModuleId>,
    /// Those whose pointers are references.
    with_references: BTreeSet<ModuleId>,
}

/// The position of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The object whose method is called, or whose field is used.
    Base,
    /// An argument, or the value of a new variable or field: the pointer does not outlive its object.
    Passed,
    /// The value is not used.
    Unused,
    /// Any other.
    Other,
}

impl Scoped {
    /// Finds the families of a program that has not been optimised.
    pub(super) fn new(p: &Program) -> Scoped {
        let mut search = Search { p, made: BTreeSet::new(), kept: BTreeSet::new(), passed: BTreeSet::new() };
        search.signatures();
        for m in &p.methods {
            let given = if m.kind == MethodKind::Constructor { m.params.len() } else { 0 };
            let is_used = !matches!(m.kind, MethodKind::Constructor) && m.result != Type::Void;
            search.expression(&m.body, if is_used { Position::Other } else { Position::Unused }, given);
        }
        let Search { made, kept, passed, .. } = search;
        let mut families: BTreeSet<ModuleId> = made.difference(&kept).copied().collect();
        // A pointer to a variable may be in a field of another variable only, to which no pointer leads.
        loop {
            let before = families.len();
            for f in &p.fields {
                let holder = p.module(f.module).root;
                let may_hold = families.contains(&holder) && !passed.contains(&holder);
                if let Some(root) = family_in(p, &f.ty)
                    && !(may_hold && holder != root && matches!(f.ty, Type::Pointer(_)))
                {
                    families.remove(&root);
                }
            }
            if families.len() == before {
                break;
            }
        }
        let referenced: BTreeSet<ModuleId> = families.intersection(&passed).copied().collect();
        let with_references = families
            .difference(&referenced)
            .copied()
            .filter(|root| p.fields.iter().any(|f| p.module(f.module).root == *root && is_pointer(p, &f.ty)))
            .collect();
        Scoped { families, referenced, with_references }
    }
    /// Whether the objects of a family are variables.
    pub(super) fn has(&self, root: ModuleId) -> bool {
        self.families.contains(&root)
    }
    /// Whether pointers lead to objects of such a family.
    pub(super) fn is_referenced(&self, root: ModuleId) -> bool {
        self.referenced.contains(&root)
    }
    /// Whether the pointers of such a family are references.
    pub(super) fn has_references(&self, root: ModuleId) -> bool {
        self.with_references.contains(&root)
    }
    /// Whether a field is a reference.
    pub(super) fn is_reference(&self, p: &Program, module: ModuleId, ty: &Type) -> bool {
        self.has_references(p.module(module).root) && is_pointer(p, ty)
    }
}

/// Whether a type is that of pointers to objects, not to positions in packets.
fn is_pointer(p: &Program, ty: &Type) -> bool {
    matches!(ty, Type::Pointer(_)) && family_in(p, ty).is_some()
}

/// The family of the objects to which values of a type lead.
fn family_in(p: &Program, ty: &Type) -> Option<ModuleId> {
    match ty {
        Type::Optional(inner) | Type::Array(inner, _) => family_in(p, inner),
        ty => p.target(ty).filter(|m| p.module(*m).punned.is_none()).map(|m| p.module(m).root),
    }
}

/// Whether an expression is one of the first variables of a method.
fn is_argument(e: &Expr, given: usize) -> bool {
    match &e.kind {
        K::Local(local) => local.0 < given,
        K::Convert(inner) => is_argument(inner, given),
        _ => false,
    }
}

struct Search<'a> {
    p: &'a Program,
    /// The families of which objects are made in blocks.
    made: BTreeSet<ModuleId>,
    /// The families whose objects need places in an arena.
    kept: BTreeSet<ModuleId>,
    /// The families whose pointers are passed.
    passed: BTreeSet<ModuleId>,
}

impl Search<'_> {
    /// Objects need a place in an arena if pointers to them occur in a type.
    fn keep(&mut self, ty: &Type) {
        self.kept.extend(family_in(self.p, ty));
    }
    /// Looks at what the host gets and gives, and at the variables of methods.
    fn signatures(&mut self) {
        for h in &self.p.hosts {
            h.params.iter().map(|(_, ty)| ty).chain([&h.result]).for_each(|ty| self.keep(ty));
        }
        for module in &self.p.exports {
            self.kept.insert(self.p.module(*module).root);
        }
        let exported = |m: ModuleId| self.p.exports.iter().any(|e| self.p.extends(*e, m));
        for m in &self.p.methods {
            self.keep(&m.result);
            for (n, local) in m.locals.iter().enumerate() {
                let is_argument = n < m.params.len() && exported(m.module);
                if is_argument || local.assigned || matches!(local.ty, Type::Optional(_) | Type::Array(..)) {
                    self.keep(&local.ty);
                }
            }
        }
    }

    /// Looks at an expression of a method. If that is a constructor, it is given so many arguments.
    fn expression(&mut self, e: &Expr, position: Position, given: usize) {
        let last = if position == Position::Unused { position } else { Position::Other };
        let mut visit = |e: &Expr, position| self.expression(e, position, given);
        match &e.kind {
            K::Call { base, args, .. } => {
                base.iter().for_each(|base| visit(base, Position::Base));
                args.iter().for_each(|arg| visit(arg, Position::Passed));
            }
            K::New { args, .. } => args.iter().for_each(|arg| visit(arg, Position::Passed)),
            K::Field { base, index, .. } => {
                visit(base, Position::Base);
                index.iter().for_each(|index| visit(index, Position::Other));
            }
            K::Convert(inner) => visit(inner, position),
            K::Let(_, value, body) => {
                visit(value, Position::Passed);
                visit(body, last);
            }
            K::Seq(all) => {
                if let Some((end, before)) = all.split_last() {
                    before.iter().for_each(|e| visit(e, Position::Unused));
                    visit(end, last);
                }
            }
            K::LetObject { object, body, .. } => {
                object.operands().into_iter().for_each(|arg| visit(arg, Position::Passed));
                visit(body, last);
                self.made.extend(family_in(self.p, &object.ty));
            }
            K::Assign { place, op: None, value } => {
                place.operands().into_iter().for_each(|part| visit(part, Position::Base));
                // The arguments of a constructor are older than its object.
                let own = matches!(&place.kind, K::Field { base, .. } if matches!(base.kind, K::SelfPtr));
                let is_older = own && is_argument(value, given);
                visit(value, if is_older { Position::Passed } else { Position::Other });
            }
            _ => e.operands().into_iter().for_each(|e| visit(e, Position::Other)),
        }
        self.result(e, position);
    }

    /// Looks at the value of an expression.
    fn result(&mut self, e: &Expr, position: Position) {
        let Some(root) = family_in(self.p, &e.ty).filter(|_| position != Position::Unused) else { return };
        let is_plain = matches!(e.ty, Type::Pointer(_) | Type::Object(_));
        let is_known = match &e.kind {
            K::Local(_) | K::Field { .. } | K::Convert(_) => position != Position::Other,
            K::SelfPtr => position == Position::Base,
            _ => false,
        };
        if !(is_plain && is_known) {
            self.kept.insert(root);
        }
        if position == Position::Passed {
            self.passed.insert(root);
        }
    }
}
