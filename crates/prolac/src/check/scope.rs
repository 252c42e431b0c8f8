// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names inside a method: its module, namespace and variables.

use super::Checker;
use crate::program::{MethodId, MethodKind, ModuleId, Type, ViewId};
use crate::tree::{Local, LocalId};

pub(super) struct Scope {
    pub module: ModuleId,
    /// The view that the module has of itself.
    pub view: ViewId,
    /// The namespace of the method in the module.
    pub namespace: String,
    /// The namespace around the declaration, for names of modules.
    pub context: String,
    /// Whether the method has no object.
    pub is_static: bool,
    pub is_constructor: bool,
    pub locals: Vec<Local>,
    /// The variables that are visible, innermost last.
    visible: Vec<(String, LocalId)>,
}

impl Scope {
    pub fn new(checker: &Checker, id: MethodId) -> Scope {
        let m = checker.program().method(id);
        let source = &checker.r.sources[id.0];
        let mut scope = Scope {
            module: m.module,
            view: checker.program().module(m.module).inner,
            namespace: m.name.rsplit_once('.').map_or(String::new(), |n| n.0.to_string()),
            context: source.context.clone(),
            is_static: matches!(m.kind, MethodKind::Static | MethodKind::Constant),
            is_constructor: m.kind == MethodKind::Constructor,
            locals: Vec::new(),
            visible: Vec::new(),
        };
        for (param, ty) in source.decl.params.iter().zip(&m.params) {
            scope.declare(&param.name.text, ty.clone());
        }
        scope
    }
    /// Declares a variable, which is visible until [`Scope::forget`].
    pub fn declare(&mut self, name: &str, ty: Type) -> LocalId {
        let id = LocalId(self.locals.len());
        self.locals.push(Local { name: name.into(), ty, assigned: false });
        self.visible.push((name.into(), id));
        id
    }
    pub fn forget(&mut self, n: usize) {
        self.visible.truncate(self.visible.len().saturating_sub(n));
    }
    pub fn find(&self, name: &str) -> Option<LocalId> {
        self.visible.iter().rev().find(|(n, _)| n == name).map(|(_, id)| *id)
    }
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.visible.iter().map(|(n, _)| n.as_str())
    }
}
