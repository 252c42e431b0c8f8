// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of methods, constructors and host functions.

use super::Checker;
use super::exprs::unknown;
use super::names::{Base, Denoted};
use super::scope::Scope;
use super::types::strict;
use crate::counted;
use crate::program::{HostId, MethodId, MethodKind, ModuleId, Type};
use crate::resolve::nearest;
use crate::syntax::ast::{self, Path};
use crate::tree::{Callee, Expr, ExprKind};
use castanet_diagnostic::{Diagnostic, Span};

impl Checker {
    /// The value of what a name denotes. A method is called without arguments.
    pub(super) fn value(&mut self, scope: &mut Scope, denoted: Denoted) -> Expr {
        match denoted {
            Denoted::Value(e) => e,
            Denoted::Method { span, .. } => self.call_method(scope, denoted, &[], span),
            Denoted::Exception(e, span) => Expr::new(Type::Never, ExprKind::Raise(e), span),
            Denoted::Nothing(span) => unknown(span),
            Denoted::Namespace { key, span, .. } => {
                let name = key.rsplit('.').next().unwrap_or(&key).to_string();
                let d = Diagnostic::error(format!("namespace '{key}' has no method '{name}'"), span);
                let d = d.at("a namespace");
                self.report(d.help("the method with the name of its namespace answers for the namespace"));
                unknown(span)
            }
            Denoted::Outside(path) => {
                let d = Diagnostic::error(format!("'{}' is a module", path.text()), path.span).at("no value");
                self.report(
                    d.help("objects are created by 'new MODULE(…)', or 'let x = MODULE(…) in … end'"),
                );
                unknown(path.span)
            }
            Denoted::Super(span) => {
                self.report(Diagnostic::error("'super' is no value", span).at("a member must follow"));
                unknown(span)
            }
        }
    }

    pub(super) fn call(
        &mut self,
        scope: &mut Scope,
        callee: &ast::Expr,
        args: &[ast::Expr],
        span: Span,
    ) -> Expr {
        match self.denoted(scope, callee) {
            Denoted::Super(at) => self.super_constructor(scope, args, at, span),
            m @ Denoted::Method { .. } => self.call_method(scope, m, args, span),
            namespace @ Denoted::Namespace { .. } => self.value(scope, namespace),
            Denoted::Outside(path) if self.r.find_module(&scope.context, &path).is_some() => {
                let d = Diagnostic::error(format!("'{}' is a module", path.text()), path.span).at("called");
                self.report(
                    d.help("objects are created by 'new MODULE(…)', or 'let x = MODULE(…) in … end'"),
                );
                unknown(span)
            }
            Denoted::Value(e) if args.is_empty() && matches!(e.ty, Type::Never | Type::Unknown) => e,
            Denoted::Exception(e, at) if args.is_empty() => Expr::new(Type::Never, ExprKind::Raise(e), at),
            other => {
                let at = callee.span;
                let e = self.value(scope, other);
                if e.ty != Type::Unknown {
                    let d = Diagnostic::error("this is no method", at).at("called with arguments");
                    self.report(d.label("of a value", e.span));
                }
                unknown(span)
            }
        }
    }

    fn call_method(&mut self, scope: &mut Scope, denoted: Denoted, args: &[ast::Expr], span: Span) -> Expr {
        let Denoted::Method { base, method, hint, view, span: at, .. } = denoted else {
            return unknown(span);
        };
        let args = self.args(scope, method, args, span.to(at));
        let ty = self.result(method, at);
        let name = self.program().method(method).name.clone();
        let slot = self.program().method(method).slot;
        let (base, callee) = match self.kind(method) {
            MethodKind::Static | MethodKind::Constant => (None, Callee::Direct(method)),
            _ => {
                let direct = matches!(base, Base::Ancestor);
                let own = matches!(base, Base::Own);
                let Some(object) = self.object(scope, base, at, &name) else { return unknown(span) };
                let module = self.program().view(view).module;
                let module = if own { scope.module } else { module };
                (Some(object), if direct { Callee::Direct(method) } else { Callee::Dynamic(slot, module) })
            }
        };
        let has_base = base.is_some();
        let operands = base.into_iter().chain(args).collect();
        strict(operands, |mut args| {
            let base = has_base.then(|| Box::new(args.remove(0)));
            Expr::new(ty, ExprKind::Call { callee, base, args, hint }, span)
        })
    }

    /// Types the arguments of a method.
    fn args(&mut self, scope: &mut Scope, method: MethodId, args: &[ast::Expr], span: Span) -> Vec<Expr> {
        let params = self.program().method(method).params.clone();
        // The parameters of a declaration with a syntax error are not all known.
        if params.len() != args.len() && !self.r.sources[method.0].decl.broken {
            let m = self.program().method(method);
            let (name, place) = (m.name.clone(), m.span);
            let d = Diagnostic::error(format!("'{name}' takes {}", counted(params.len(), "argument")), span);
            let d = d.at(format!("{} given", counted(args.len(), "argument"))).label("defined here", place);
            let d = d.help(format!("its parameters are: {}", self.signature(method)));
            self.report(d);
        }
        let mut out = Vec::new();
        for (arg, ty) in args.iter().zip(&params) {
            let e = self.expr(scope, arg, Some(ty));
            out.push(self.coerce(e, ty, "the argument"));
        }
        // Missing arguments have been reported.
        out.extend(params.iter().skip(out.len()).map(|_| unknown(span)));
        out
    }

    fn super_constructor(&mut self, scope: &mut Scope, args: &[ast::Expr], at: Span, span: Span) -> Expr {
        let parent = self.program().module(scope.module).parent;
        let constructor = parent.and_then(|p| self.program().module(p).constructor);
        if !scope.is_constructor {
            let d = Diagnostic::error("'super(…)' outside a constructor", at)
                .at("calls the parent's constructor");
            self.report(d.help("write 'super.METHOD' to call a method of the parent"));
            return unknown(span);
        }
        let Some(constructor) = constructor else {
            if self.program().module(scope.module).incomplete {
                return unknown(span);
            }
            let d = Diagnostic::error("the parent has no constructor", at).at("called here");
            self.report(d);
            return unknown(span);
        };
        let args = self.args(scope, constructor, args, span);
        let base = Some(Box::new(self.own(scope, at)));
        strict(args, |args| {
            let callee = Callee::Direct(constructor);
            Expr::new(Type::Void, ExprKind::Call { callee, base, args, hint: None }, span)
        })
    }

    /// The creation of an object.
    pub(super) fn creation(
        &mut self,
        scope: &mut Scope,
        module: ModuleId,
        args: &[ast::Expr],
        span: Span,
    ) -> Expr {
        let m = self.program().module(module);
        if m.punned.is_some() {
            let d = Diagnostic::error(format!("objects of '{}' are bytes of a packet", m.name), span);
            let d = d.at("not created").help("write 'BYTES as *MODULE'");
            self.report(d);
            return unknown(span);
        }
        let constructor = m.constructor;
        let args = match constructor {
            Some(c) => self.args(scope, c, args, span),
            None if args.is_empty() || m.incomplete => Vec::new(),
            None => {
                let d = Diagnostic::error(format!("'{}' has no constructor", m.name), span);
                let place = m.span;
                let d = d.at("arguments given").label("the module", place);
                self.report(d.help("declare it: constructor(NAME :> TYPE) ::= …;"));
                Vec::new()
            }
        };
        let view = self.program().module(module).outer;
        strict(args, |args| Expr::new(Type::Object(view), ExprKind::New { module, constructor, args }, span))
    }

    /// The module of which the value of a `let` creates an object: `MODULE` or `MODULE(…)`.
    pub(super) fn created(&mut self, scope: &mut Scope, value: &ast::Expr) -> Option<ModuleId> {
        let callee = match &value.kind {
            ast::ExprKind::Call { callee, .. } => callee,
            _ => value,
        };
        let path = dotted(callee)?;
        let first = path.parts.first()?;
        let taken = !path.global
            && (scope.find(&first.text).is_some()
                || self.program().view(scope.view).find(&first.text).is_some_and(|f| match f {
                    crate::program::Found::Feature(_, f) => f.hidden.is_none(),
                    crate::program::Found::Namespace(_) => true,
                }));
        if taken {
            return None;
        }
        let view = self.r.find_module(&scope.context, &path)?;
        Some(self.program().view(view).module)
    }

    pub(super) fn let_object(
        &mut self,
        scope: &mut Scope,
        module: ModuleId,
        binding: &ast::Binding,
        body: impl FnOnce(&mut Checker, &mut Scope) -> Expr,
    ) -> Expr {
        let args = match &binding.value.kind {
            ast::ExprKind::Call { args, .. } => args.as_slice(),
            _ => &[],
        };
        let span = binding.value.span;
        let object = self.creation(scope, module, args, span);
        let view = self.program().module(module).outer;
        let local = scope.declare(&binding.name.text, Type::Object(view));
        let inner = body(self, scope);
        scope.forget(1);
        if matches!(object.ty, Type::Never | Type::Unknown) {
            return object;
        }
        let ty = inner.ty.clone();
        let kind = ExprKind::LetObject { local, object: Box::new(object), body: Box::new(inner) };
        Expr::new(ty, kind, span)
    }

    /// An action: calls of host functions.
    pub(super) fn action(&mut self, scope: &mut Scope, calls: &[ast::Expr], value: bool, span: Span) -> Expr {
        let mut all = Vec::new();
        for (i, call) in calls.iter().enumerate() {
            let ast::ExprKind::Call { callee, args } = &call.kind else { continue };
            let last = i + 1 == calls.len();
            let e = self.host_call(scope, callee, args, call.span);
            all.push(if last && value { e } else { super::types::discard(e) });
        }
        match all.pop() {
            Some(only) if all.is_empty() => only,
            Some(last) => {
                let ty = last.ty.clone();
                all.push(last);
                Expr::new(ty, ExprKind::Seq(all), span)
            }
            None => Expr::new(Type::Void, ExprKind::Seq(Vec::new()), span),
        }
    }

    fn host_call(&mut self, scope: &mut Scope, callee: &ast::Expr, args: &[ast::Expr], span: Span) -> Expr {
        let name = dotted(callee).map_or(String::new(), |p| p.text().replace('-', "_"));
        let hosts = &self.program().hosts;
        let Some(id) = hosts.iter().position(|h| h.name.replace('-', "_") == name) else {
            let known: Vec<String> = hosts.iter().map(|h| h.name.replace('-', "_")).collect();
            let d =
                Diagnostic::error(format!("unknown host function '{name}'"), callee.span).at("not declared");
            let d = match nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => d.did_you_mean(near),
                None => d.help(
                    "an action calls functions that the program declares: host NAME(PARAMETERS) :> TYPE;",
                ),
            };
            self.report(d);
            return unknown(span);
        };
        let (params, result, place) = (hosts[id].params.clone(), hosts[id].result.clone(), hosts[id].span);
        if params.len() != args.len() {
            let d = Diagnostic::error(format!("'{name}' takes {}", counted(params.len(), "argument")), span);
            self.report(
                d.at(format!("{} given", counted(args.len(), "argument"))).label("declared here", place),
            );
            return unknown(span);
        }
        let mut out = Vec::new();
        for (arg, (_, ty)) in args.iter().zip(&params) {
            let e = self.expr(scope, arg, Some(ty));
            out.push(self.coerce(e, ty, "the argument"));
        }
        strict(out, |args| Expr::new(result, ExprKind::Host(HostId(id), args), span))
    }
}

/// The path of an expression that consists of names and dots.
fn dotted(e: &ast::Expr) -> Option<Path> {
    match &e.kind {
        ast::ExprKind::Name(path) => Some(path.clone()),
        ast::ExprKind::Member { base, name, arrow: false } => {
            let mut path = dotted(base)?;
            path.parts.push(name.clone());
            path.span = path.span.to(name.span);
            Some(path)
        }
        _ => None,
    }
}
