// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building a module: its parent, and its features over those that it inherits.

use super::{Entity, MethodSource, Resolver, State, flatten, new_exception, new_field};
use crate::program::{
    ExceptionId, Feature, FeatureKind, FieldId, Method, MethodId, MethodKind, Module, ModuleId, SlotId, Type,
    View, ViewId,
};
use crate::syntax::ast::{self, Member, MethodDecl, Operator, Parent};
use crate::tree::{Expr, ExprKind};
use castanet_diagnostic::{Diagnostic, Span};

/// The maximum number of ancestors of a module.
const MAX_ANCESTORS: usize = 200;

impl Resolver {
    /// Whether a chain of modules is too long. Reports the first one.
    pub(super) fn too_deep(&mut self, depth: usize, span: Span) -> bool {
        let yes = depth > MAX_ANCESTORS;
        if yes && !self.too_long {
            self.too_long = true;
            let d = Diagnostic::error(format!("more than {MAX_ANCESTORS} modules extend each other"), span);
            self.report(d.at("the chain of modules goes on here"));
        }
        yes
    }

    /// Builds a module after its parent. `None` if it is its own ancestor, or nested too deeply.
    pub(super) fn build(&mut self, index: usize, depth: usize) -> Option<ModuleId> {
        match self.states[index] {
            State::Built(id) => return id,
            State::Building => {
                let span = self.modules[index].decl.as_ref().map(|d| d.name.span);
                self.report(Diagnostic::error("module extends itself", span).at("its own ancestor"));
                return None;
            }
            State::Waiting => {}
        }
        let name_span = self.modules[index].decl.as_ref().map_or(Span::default(), |d| d.name.span);
        if self.too_deep(depth, name_span) {
            self.states[index] = State::Built(None);
            return None;
        }
        self.states[index] = State::Building;
        let (decl_parent, context) = {
            let d = &self.modules[index];
            (d.decl.as_ref().and_then(|d| d.parent.clone()), d.context.clone())
        };
        let extends = decl_parent.is_some();
        let parent = decl_parent.and_then(|p| self.parent_view(index, &context, &p, depth));
        let ancestors = parent.map_or(0, |p| 1 + self.ancestors[self.program.view(p).module.0]);
        if self.too_deep(ancestors, name_span) || (extends && parent.is_none() && self.too_long) {
            self.states[index] = State::Built(None);
            return None;
        }
        // The declaration stays in place while ancestors are built, because messages show it.
        let decl = self.modules[index].decl.take()?;
        let id = self.new_module(&super::joined(&context, &decl.name.text()), decl.name.span, parent);
        self.ancestors.push(ancestors);
        self.program.modules[id.0].incomplete |= extends && parent.is_none();
        self.states[index] = State::Built(Some(id));
        let mut members = Vec::new();
        flatten(decl.members, "", &mut members);
        let outside = std::mem::take(&mut self.outside[index]);
        let mut all: Vec<(String, Member, String)> =
            members.into_iter().map(|(name, m)| (name, m, context.clone())).collect();
        all.extend(outside.into_iter().map(|d| (d.decl.0, Member::Method(d.decl.1), d.context)));
        for (name, member, context) in all {
            self.member(id, &name, member, &context);
        }
        self.answering_twice(id);
        self.finish(id, &decl.after);
        Some(id)
    }

    fn parent_view(&mut self, index: usize, context: &str, parent: &Parent, depth: usize) -> Option<ViewId> {
        if !parent.hookup {
            return self.module_view(context, &parent.module, depth + 1);
        }
        let (_, Entity::HookName(hook)) = self.entity(context, &parent.module.path)? else { return None };
        let chain = &self.hook_names[hook].decl.chain;
        let at = chain.iter().position(|m| *m == index)?;
        let view = match at.checked_sub(1).and_then(|n| chain.get(n)).copied() {
            Some(previous) => {
                let id = self.build(previous, depth + 1)?;
                self.program.module(id).outer
            }
            None => self.hook_target(hook, depth)?,
        };
        Some(self.with_operators(view, &parent.module.ops))
    }

    fn new_module(&mut self, name: &str, span: Span, parent: Option<ViewId>) -> ModuleId {
        let id = ModuleId(self.program.modules.len());
        let mut module = Module {
            name: name.into(),
            span,
            parent: None,
            incomplete: false,
            root: id,
            children: Vec::new(),
            inner: ViewId(0),
            outer: ViewId(0),
            inherited: parent,
            vtable: Default::default(),
            fields: Vec::new(),
            constructor: None,
            punned: None,
        };
        let mut view = View { module: id, features: Default::default() };
        if let Some(parent) = parent {
            view.features = self.program.view(parent).features.clone();
            let parent = self.program.view(parent).module;
            let p = self.program.module(parent);
            module.parent = Some(parent);
            module.incomplete = p.incomplete;
            module.root = p.root;
            module.vtable = p.vtable.clone();
            module.constructor = p.constructor;
            self.program.modules[parent.0].children.push(id);
        }
        module.inner = self.add_view(view);
        self.program.modules.push(module);
        id
    }

    fn inner(&mut self, id: ModuleId) -> &mut View {
        let inner = self.program.module(id).inner;
        &mut self.program.views[inner.0]
    }

    /// Adds a member to a module.
    fn member(&mut self, id: ModuleId, name: &str, member: Member, context: &str) {
        let span = match &member {
            Member::Field(f) => f.name.span,
            Member::Method(m) => m.path.span,
            Member::Exceptions(names) => names.first().map_or(Span::default(), |n| n.span),
            Member::Namespace(n, _) => n.span,
        };
        let is_constructor = matches!(&member, Member::Method(m) if m.kind == ast::MethodKind::Constructor);
        let inherited = self.inner(id).features.get(name).cloned().filter(|_| !is_constructor);
        if let Some(first) = inherited.as_ref().and_then(|f| self.own(id, f.kind)) {
            let d = Diagnostic::error(format!("'{name}' is defined twice"), span).at("defined again");
            self.report(d.label("first defined here", first));
            return;
        }
        let mut feature =
            Feature { kind: FeatureKind::Field(FieldId(0)), hidden: None, using: false, hint: None };
        feature.kind = match member {
            Member::Method(decl) => {
                let Some((method, hint)) = self.method(id, name, decl, context, inherited.as_ref()) else {
                    return;
                };
                if is_constructor {
                    self.program.modules[id.0].constructor = Some(method);
                    return;
                }
                feature.hint = hint;
                FeatureKind::Method(method)
            }
            Member::Field(decl) => {
                self.replaces(id, name, span, inherited.as_ref());
                let field = FieldId(self.program.fields.len());
                feature.using = decl.using;
                self.program.fields.push(new_field(name, id, span));
                self.field_sources.push((decl, context.to_string()));
                self.program.modules[id.0].fields.push(field);
                FeatureKind::Field(field)
            }
            Member::Exceptions(_) => {
                self.replaces(id, name, span, inherited.as_ref());
                let exception = ExceptionId(self.program.exceptions.len());
                self.program.exceptions.push(new_exception(name, id, span));
                FeatureKind::Exception(exception)
            }
            Member::Namespace(..) => return,
        };
        self.inner(id).features.insert(name.to_string(), feature);
    }

    /// The position of a feature that the module declares itself.
    fn own(&self, id: ModuleId, kind: FeatureKind) -> Option<Span> {
        let (module, span) = self.declared_by(kind);
        (module == id).then_some(span)
    }

    /// The module that declares a feature, and the position.
    pub(crate) fn declared_by(&self, kind: FeatureKind) -> (ModuleId, Span) {
        match kind {
            FeatureKind::Method(m) => (self.program.method(m).module, self.program.method(m).span),
            FeatureKind::Field(f) => (self.program.field(f).module, self.program.field(f).span),
            FeatureKind::Exception(e) => {
                (self.program.exceptions[e.0].module, self.program.exceptions[e.0].span)
            }
        }
    }

    /// Reports a field or exception with the name of an inherited feature that is not hidden.
    fn replaces(&mut self, id: ModuleId, name: &str, span: Span, inherited: Option<&Feature>) {
        let Some(feature) = inherited.filter(|f| f.hidden.is_none()) else { return };
        let (module, place) = self.declared_by(feature.kind);
        let (owner, heir) = (self.program.module(module).name.clone(), self.program.module(id).name.clone());
        let d = Diagnostic::error(format!("'{heir}' inherits a '{name}' from '{owner}'"), span);
        let d = d.at("declared again").label("inherited from here", place);
        self.report(d.help("choose another name, or hide the inherited one"));
    }

    /// Adds a method definition. Returns it and the hint that it inherits.
    fn method(
        &mut self,
        id: ModuleId,
        name: &str,
        decl: MethodDecl,
        context: &str,
        inherited: Option<&Feature>,
    ) -> Option<(MethodId, Option<crate::program::Hint>)> {
        let span = decl.path.parts.last().map_or(decl.path.span, |n| n.span);
        let kind = match decl.kind {
            ast::MethodKind::Method => MethodKind::Method,
            ast::MethodKind::Static => MethodKind::Static,
            ast::MethodKind::Constant => MethodKind::Constant,
            ast::MethodKind::Constructor => MethodKind::Constructor,
        };
        let method = MethodId(self.program.methods.len());
        let mut slot = SlotId(self.program.slots);
        let (mut overrides, mut hint) = (None, None);
        match inherited {
            Some(Feature { kind: FeatureKind::Method(old), hidden: None, hint: old_hint, .. }) => {
                let before = self.program.method(*old);
                if before.kind != kind {
                    let place = before.span;
                    let d =
                        Diagnostic::error(format!("'{name}' is inherited as another kind of method"), span);
                    let d = d.at("defined differently here").label("inherited from here", place);
                    self.report(
                        d.help("static methods, constants and methods of objects do not replace each other"),
                    );
                    return None;
                }
                slot = before.slot;
                overrides = Some(*old);
                hint = *old_hint;
            }
            Some(Feature { kind: FeatureKind::Method(old), hidden: Some(hidden), .. }) => {
                let place = self.program.method(*old).span;
                let d = Diagnostic::warning(format!("'{name}' does not replace the hidden method"), span);
                let by = self.hidden_by(*hidden);
                let d = d.at("a new method").label(by, *hidden).label("the hidden method", place);
                self.report(
                    d.help(format!("to replace it, write 'show {name}' after the module that is extended")),
                );
            }
            feature => self.replaces(id, name, span, feature),
        }
        if overrides.is_none() {
            self.program.slots += 1;
        }
        if kind == MethodKind::Method {
            self.program.modules[id.0].vtable.insert(slot, method);
        }
        self.program.methods.push(Method {
            name: name.into(),
            module: id,
            slot,
            kind,
            span,
            params: Vec::new(),
            result: Type::Unknown,
            locals: Vec::new(),
            body: Expr::new(Type::Unknown, ExprKind::Seq(Vec::new()), decl.body.span),
            overrides,
        });
        self.sources.push(MethodSource { decl, context: context.into() });
        Some((method, hint))
    }

    /// Reports a name that a feature has and a namespace with a method of its own name answers to as well.
    fn answering_twice(&mut self, id: ModuleId) {
        let view = self.program.view(self.program.module(id).inner);
        let twice: Vec<_> = view
            .features
            .iter()
            .filter_map(|(name, f)| {
                let last = name.rsplit('.').next().unwrap_or(name);
                view.features.get(&format!("{name}.{last}")).map(|a| (name.clone(), f.kind, a.kind))
            })
            .collect();
        for (name, kind, answering) in twice {
            let ((module, span), (other, place)) = (self.declared_by(kind), self.declared_by(answering));
            if module == id || other == id {
                let d = Diagnostic::error(format!("'{name}' means two things"), span).at("defined here");
                let d = d.label("the namespace of this name has such a method", place);
                self.report(d.help("remove or rename one of them"));
            }
        }
    }

    fn finish(&mut self, id: ModuleId, after: &[Operator]) {
        let inner = self.program.module(id).inner;
        let outer = self.with_operators(inner, after);
        // `using` concerns the module's own methods too, so the marks of the outer view hold inside.
        let marked: Vec<String> = self
            .program
            .view(outer)
            .features
            .iter()
            .filter(|(_, f)| f.using)
            .map(|(k, _)| k.clone())
            .collect();
        let hints: Vec<_> = self
            .program
            .view(outer)
            .features
            .iter()
            .filter_map(|(k, f)| f.hint.map(|h| (k.clone(), h)))
            .collect();
        for key in marked {
            if let Some(f) = self.inner(id).features.get_mut(&key) {
                f.using = true;
            }
        }
        for (key, hint) in hints {
            if let Some(f) = self.inner(id).features.get_mut(&key) {
                f.hint = Some(hint);
            }
        }
        self.program.modules[id.0].outer = outer;
    }
}
