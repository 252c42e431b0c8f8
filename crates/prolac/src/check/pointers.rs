// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pointers that no constructor sets. They point to no object of the program; fields read through them are 0.

use super::Checker;
use crate::program::{FieldId, MethodId, ModuleId, Type};
use crate::tree::{Callee, ExprKind};
use castanet_diagnostic::Diagnostic;
use std::collections::BTreeSet;

impl Checker {
    /// Warns about the pointers of modules that are created, if neither the constructor nor a method that it calls assigns
    /// to them.
    pub(super) fn unset_pointers(&mut self) {
        let mut warned: BTreeSet<FieldId> = BTreeSet::new();
        for module in self.program().instantiated() {
            let set = self.set_by(self.program().module(module).constructor);
            let modules = std::iter::successors(Some(module), |m| self.program().module(*m).parent);
            let fields: Vec<FieldId> =
                modules.flat_map(|m| self.program().module(m).fields.clone()).collect();
            for f in fields {
                let pointer = matches!(self.program().field(f).ty, Type::Pointer(_));
                if pointer && !set.contains(&f) && warned.insert(f) {
                    self.unset_pointer(module, f);
                }
            }
        }
    }

    fn unset_pointer(&mut self, module: ModuleId, f: FieldId) {
        let (p, field) = (self.program(), self.program().field(f));
        let (owner, ty) = (&p.module(module).name, self.name_of(&field.ty));
        let message = format!("no constructor of '{owner}' sets the pointer '{}'", field.name);
        let d = Diagnostic::warning(message, field.span).at("points to no object at first");
        let d = match p.module(module).constructor.map(|c| p.method(c).span) {
            Some(span) => d.label("the constructor", span),
            None => d,
        };
        self.report(d.help(format!("assign to it in the constructor, or declare it optional: ?{ty}")));
    }

    /// The fields that a constructor assigns to, or a method that it calls, directly or indirectly.
    fn set_by(&self, constructor: Option<MethodId>) -> BTreeSet<FieldId> {
        let p = self.program();
        let mut fields = BTreeSet::new();
        let mut open: Vec<MethodId> = constructor.into_iter().collect();
        let mut seen: BTreeSet<MethodId> = BTreeSet::new();
        while let Some(m) = open.pop() {
            if !seen.insert(m) {
                continue;
            }
            p.method(m).body.walk(&mut |e| match &e.kind {
                ExprKind::Assign { place, .. } => {
                    if let ExprKind::Field { field, .. } = place.kind {
                        fields.insert(field);
                    }
                }
                ExprKind::Call { callee: Callee::Direct(m), .. } => open.push(*m),
                ExprKind::Call { callee: Callee::Dynamic(slot, _), .. } => {
                    open.extend(p.modules.iter().filter_map(|m| m.vtable.get(slot).copied()));
                }
                _ => {}
            });
        }
        fields
    }
}
