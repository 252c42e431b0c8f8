// SPDX-License-Identifier: MIT OR Apache-2.0
//! Name lookup: variables, features of the module, features of modules that fields marked `using` point to,
//! other modules.

use super::Checker;
use super::scope::Scope;
use crate::program::{
    ExceptionId, Feature, FeatureKind, Found, Hint, MethodId, MethodKind, ModuleId, Type, ViewId,
};
use crate::resolve::{enclosing, joined, nearest};
use crate::syntax::ast::{self, Name, Path};
use crate::tree::{Expr, ExprKind};
use castanet_diagnostic::{Diagnostic, Span};

/// The object of a feature.
#[derive(Clone, Debug)]
pub(super) enum Base {
    /// The object of the method itself.
    Own,
    /// The object that a pointer points to.
    Of(Box<Expr>),
    /// The object of the method itself, and the definition of an ancestor.
    Ancestor,
    /// None: the name of a module stands before the name.
    Module,
}

/// The result of looking up a name.
pub(super) enum Denoted {
    Value(Expr),
    /// A method, and the namespace that it answers for.
    Method {
        base: Base,
        method: MethodId,
        hint: Option<Hint>,
        view: ViewId,
        span: Span,
        namespace: Option<String>,
    },
    Exception(ExceptionId, Span),
    /// A namespace inside a module.
    Namespace {
        base: Base,
        view: ViewId,
        key: String,
        span: Span,
    },
    /// A module, or a namespace of modules.
    Outside(Path),
    /// `super`.
    Super(Span),
    /// Nothing; reported.
    Nothing(Span),
}

impl Checker {
    /// Looks up a name or a member. Any other expression gives its value.
    pub(super) fn denoted(&mut self, scope: &mut Scope, e: &ast::Expr) -> Denoted {
        match &e.kind {
            ast::ExprKind::Name(path) => self.name(scope, path),
            ast::ExprKind::Super => Denoted::Super(e.span),
            ast::ExprKind::Member { base, name, arrow } => self.member(scope, base, name, *arrow, e.span),
            _ => Denoted::Value(self.expr(scope, e, None)),
        }
    }

    /// Looks up a name without dots.
    fn name(&mut self, scope: &Scope, path: &Path) -> Denoted {
        let Some(name) = path.parts.first() else { return Denoted::Nothing(path.span) };
        if path.global {
            return Denoted::Outside(path.clone());
        }
        if let Some(local) = scope.find(&name.text) {
            let ty = scope.locals[local.0].ty.clone();
            return Denoted::Value(Expr::new(ty, ExprKind::Local(local), name.span));
        }
        let mut hidden = Vec::new();
        for namespace in enclosing(&scope.namespace) {
            let asked = joined(namespace, &name.text);
            match self.program().view(scope.view).find(&asked) {
                Some(Found::Feature(_, Feature { hidden: Some(by), kind, .. })) => hidden.push((by, kind)),
                Some(Found::Feature(key, f)) => {
                    let answers = (key != asked).then_some(asked);
                    return self.feature(scope, Base::Own, scope.view, f, name.span, answers);
                }
                Some(Found::Namespace(key)) => {
                    return Denoted::Namespace { base: Base::Own, view: scope.view, key, span: name.span };
                }
                None => {}
            }
        }
        if self.r.find_module(&scope.context, path).is_some() || self.r.is_namespace(&scope.context, path) {
            return Denoted::Outside(path.clone());
        }
        if hidden.is_empty() && self.r.is_declared(&scope.context, path) {
            return Denoted::Nothing(path.span);
        }
        self.implicit(scope, name, hidden)
    }

    /// The fields marked `using`, with the views of what they point to.
    fn using(&self, scope: &Scope) -> Vec<(String, crate::program::FieldId, ViewId)> {
        if scope.is_static {
            return Vec::new();
        }
        let view = self.program().view(scope.view);
        let fields = view.features.iter().filter(|(_, f)| f.using && f.hidden.is_none());
        let target = |f: &Feature| match f.kind {
            FeatureKind::Field(id) => match self.program().field(id).ty {
                Type::Pointer(view) => Some((id, view)),
                _ => None,
            },
            _ => None,
        };
        fields.filter_map(|(name, f)| target(f).map(|(id, view)| (name.clone(), id, view))).collect()
    }

    /// Looks up a name in the modules that fields marked `using` point to.
    fn implicit(&mut self, scope: &Scope, name: &Name, mut hidden: Vec<(Span, FeatureKind)>) -> Denoted {
        let fields = self.using(scope);
        let mut found = Vec::new();
        for (field, id, view) in &fields {
            match self.program().view(*view).find(&name.text) {
                Some(Found::Feature(_, Feature { hidden: Some(by), kind, .. })) => hidden.push((by, kind)),
                Some(other) => found.push((field.clone(), *id, *view, other)),
                None => {}
            }
        }
        if found.len() > 1 {
            let mut d = Diagnostic::error(format!("'{}' may mean several things", name.text), name.span);
            d = d.at("found through several fields marked 'using'");
            for (field, id, view, found) in &found {
                let (_, declared) = match found {
                    Found::Feature(_, f) => self.r.declared_by(f.kind),
                    Found::Namespace(_) => (ModuleId(0), self.program().field(*id).span),
                };
                let module = &self.program().module(self.program().view(*view).module).name;
                d = d.label(format!("'{field}->{}', of module '{module}'", name.text), declared);
            }
            let all: Vec<_> = found.iter().map(|f| format!("'{}->{}'", f.0, name.text)).collect();
            self.report(d.help(format!("write {}", all.join(" or "))));
            return Denoted::Nothing(name.span);
        }
        let Some((_, id, view, found)) = found.pop() else {
            self.unknown_name(scope, name, &fields, hidden);
            return Denoted::Nothing(name.span);
        };
        let pointer = self.program().field(id).ty.clone();
        let own = self.own(scope, name.span);
        let kind = ExprKind::Field { base: Box::new(own), field: id, index: None };
        let base = Base::Of(Box::new(Expr::new(pointer, kind, name.span)));
        match found {
            Found::Feature(key, f) => {
                let answers = (key != name.text).then(|| name.text.clone());
                self.feature(scope, base, view, f, name.span, answers)
            }
            Found::Namespace(key) => Denoted::Namespace { base, view, key, span: name.span },
        }
    }

    /// The pointer to the object of the method.
    pub(super) fn own(&mut self, scope: &Scope, span: Span) -> Expr {
        if scope.is_static {
            let d = Diagnostic::error("a static method has no object", span).at("needs one");
            self.report(d.help("remove 'static', or pass a pointer to the object as a parameter"));
            return Expr::new(Type::Unknown, ExprKind::SelfPtr, span);
        }
        Expr::new(Type::Pointer(scope.view), ExprKind::SelfPtr, span)
    }

    fn feature(
        &mut self,
        scope: &Scope,
        base: Base,
        view: ViewId,
        f: Feature,
        span: Span,
        namespace: Option<String>,
    ) -> Denoted {
        match f.kind {
            FeatureKind::Method(method) => {
                Denoted::Method { base, method, hint: f.hint, view, span, namespace }
            }
            FeatureKind::Exception(e) => Denoted::Exception(e, span),
            FeatureKind::Field(field) => {
                let Some(base) = self.object(scope, base, span, &self.program().field(field).name.clone())
                else {
                    return Denoted::Nothing(span);
                };
                let ty = self.program().field(field).ty.clone();
                let kind = ExprKind::Field { base: Box::new(base), field, index: None };
                Denoted::Value(Expr::new(ty, kind, span))
            }
        }
    }

    /// The pointer to the object of a feature that needs one.
    pub(super) fn object(&mut self, scope: &Scope, base: Base, span: Span, name: &str) -> Option<Expr> {
        match base {
            Base::Of(pointer) => Some(*pointer),
            Base::Own | Base::Ancestor => Some(self.own(scope, span)).filter(|e| e.ty != Type::Unknown),
            Base::Module => {
                let d = Diagnostic::error(format!("'{name}' belongs to an object"), span);
                self.report(d.at("the name of a module stands before it").help("write POINTER->NAME"));
                None
            }
        }
    }

    /// Looks up `base.name` or `base->name`.
    fn member(
        &mut self,
        scope: &mut Scope,
        base: &ast::Expr,
        name: &Name,
        arrow: bool,
        span: Span,
    ) -> Denoted {
        match self.denoted(scope, base) {
            Denoted::Nothing(at) => Denoted::Nothing(at),
            Denoted::Namespace { base, view, key, .. } => {
                self.in_view(scope, base, view, &joined(&key, &name.text), name)
            }
            Denoted::Method { base, view, namespace: Some(key), .. }
                if !arrow && self.program().view(view).find(&joined(&key, &name.text)).is_some() =>
            {
                self.in_view(scope, base, view, &joined(&key, &name.text), name)
            }
            Denoted::Super(at) => match self.program().module(scope.module).inherited {
                Some(view) => self.in_view(scope, Base::Ancestor, view, &name.text, name),
                None if self.program().module(scope.module).incomplete => Denoted::Nothing(at),
                None => {
                    let module = self.program().module(scope.module).name.clone();
                    let d = Diagnostic::error(format!("'{module}' extends no module"), at);
                    self.report(
                        d.at("there is no 'super'").help("name the parent: module NAME :> PARENT { … }"),
                    );
                    Denoted::Nothing(at)
                }
            },
            Denoted::Outside(path) => self.outside(scope, path, name),
            Denoted::Exception(_, at) => {
                self.report(Diagnostic::error("an exception has no members", at).at("an exception"));
                Denoted::Nothing(at)
            }
            value => {
                let e = self.value(scope, value);
                self.member_of(scope, e, name, arrow, span)
            }
        }
    }

    fn member_of(&mut self, scope: &Scope, e: Expr, name: &Name, arrow: bool, span: Span) -> Denoted {
        match &e.ty {
            Type::Never => Denoted::Value(e),
            Type::Unknown => Denoted::Nothing(e.span),
            Type::Bytes if name.text == "length" => Denoted::Value(Expr::new(
                Type::Int(crate::program::Int::UINT),
                ExprKind::Length(Box::new(e)),
                span,
            )),
            Type::Pointer(view) | Type::Object(view) => {
                let (view, object) = (*view, matches!(e.ty, Type::Object(_)));
                if object == arrow {
                    let (wrong, right) = if arrow { ("->", ".") } else { (".", "->") };
                    let what = if object { "an object" } else { "a pointer" };
                    let d = Diagnostic::error(format!("'{wrong}' after {what}"), e.span).at(what);
                    self.report(d.help(format!("write '{right}{}'", name.text)));
                }
                let base = Base::Of(Box::new(e));
                self.in_view(scope, base, view, &name.text, name)
            }
            ty => {
                let d = Diagnostic::error(format!("no member '{}'", name.text), name.span).at("not found");
                let d = d.label(format!("of type {}", self.name_of(ty)), e.span);
                let d = match ty {
                    Type::Optional(_) => d.help("take the value out first: let x ?= VALUE in … end"),
                    Type::Bytes => d.help("bytes have a 'length', and elements: BYTES[INDEX]"),
                    _ => d.help("only pointers and objects have members"),
                };
                self.report(d);
                Denoted::Nothing(e.span)
            }
        }
    }

    /// Looks up a name of a view.
    fn in_view(&mut self, scope: &Scope, base: Base, view: ViewId, key: &str, name: &Name) -> Denoted {
        match self.program().view(view).find(key) {
            Some(Found::Feature(_, Feature { hidden: Some(by), kind, .. })) => {
                self.report_hidden(key, name.span, &[(by, kind)]);
                Denoted::Nothing(name.span)
            }
            Some(Found::Feature(found, f)) => {
                let answers = (found != key).then(|| key.to_string());
                self.feature(scope, base, view, f, name.span, answers)
            }
            Some(Found::Namespace(key)) => Denoted::Namespace { base, view, key, span: name.span },
            None if self.incomplete(view) => Denoted::Nothing(name.span),
            None => {
                let v = self.program().view(view);
                let module = self.program().module(v.module).name.clone();
                let near = nearest(key, v.features.keys().map(String::as_str)).map(str::to_string);
                let d =
                    Diagnostic::error(format!("module '{module}' has no '{key}'"), name.span).at("not found");
                let d = match near {
                    Some(near) => match near.rsplit_once('.') {
                        Some(_) => d.help(format!("did you mean '{near}'?")),
                        None => d.did_you_mean(&near),
                    },
                    None => d,
                };
                self.report(d);
                Denoted::Nothing(name.span)
            }
        }
    }

    /// Looks up a name after the name of a module, or of a namespace of modules.
    fn outside(&mut self, scope: &Scope, path: Path, name: &Name) -> Denoted {
        if let Some(view) = self.r.find_module(&scope.context, &path) {
            let module = self.program().view(view).module;
            let ancestor = module != scope.module && self.program().extends(scope.module, module);
            let longer = self.longer(&path, name);
            // `Base.TCB` may be a module beside the module `Base`.
            if self.program().view(view).find(&name.text).is_none()
                && (self.r.find_module(&scope.context, &longer).is_some()
                    || self.r.is_namespace(&scope.context, &longer))
            {
                return Denoted::Outside(longer);
            }
            let base = if ancestor && !scope.is_static { Base::Ancestor } else { Base::Module };
            return self.in_view(scope, base, view, &name.text, name);
        }
        let longer = self.longer(&path, name);
        if self.r.find_module(&scope.context, &longer).is_some()
            || self.r.is_namespace(&scope.context, &longer)
        {
            return Denoted::Outside(longer);
        }
        let d =
            Diagnostic::error(format!("unknown module '{}'", longer.text()), longer.span).at("not declared");
        self.report(d);
        Denoted::Nothing(longer.span)
    }

    fn longer(&self, path: &Path, name: &Name) -> Path {
        let mut parts = path.parts.clone();
        parts.push(name.clone());
        Path { global: path.global, parts, span: path.span.to(name.span) }
    }

    /// The kind of a method.
    pub(super) fn kind(&self, id: MethodId) -> MethodKind {
        self.program().method(id).kind
    }
}
