// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typing of expressions.

use super::Checker;
use super::names::Denoted;
use super::scope::Scope;
use super::signatures::bytes_of;
use super::types::discard;
use crate::program::{FeatureKind, Int, ModuleId, Type};
use crate::syntax::ast::{self, ExprKind as A, Path};
use crate::tree::{Expr, ExprKind as K};
use castanet_diagnostic::{Diagnostic, Span};

pub(super) fn unknown(span: Span) -> Expr {
    Expr::new(Type::Unknown, K::Seq(Vec::new()), span)
}

pub(super) fn truth(span: Span, value: bool) -> Expr {
    Expr::new(Type::Bool, K::Bool(value), span)
}

impl Checker {
    /// Types an expression. `expected` is the type that the context has for it, if it is known.
    pub(super) fn expr(&mut self, scope: &mut Scope, e: &ast::Expr, expected: Option<&Type>) -> Expr {
        let span = e.span;
        match &e.kind {
            A::Number(n) => {
                let int = match expected {
                    Some(ty @ (Type::Int(_) | Type::Seq)) => ty.clone(),
                    _ if *n <= i32::MAX as u64 => Type::Int(Int::INT),
                    _ if *n <= u64::from(u32::MAX) => Type::Int(Int::UINT),
                    _ => Type::Int(Int::ULONG),
                };
                let whole = Expr::new(Type::Int(Int::ULONG), K::Int(*n), span);
                self.convert_int(whole, &int)
            }
            A::Bool(b) => truth(span, *b),
            A::Text(text) => Expr::new(Type::Text, K::Text(text.clone()), span),
            A::None => Expr::new(Type::NoneValue, K::NoneValue, span),
            A::SelfPtr => self.own(scope, span),
            A::Empty => Expr::new(Type::Void, K::Seq(Vec::new()), span),
            A::Missing => unknown(span),
            A::Paren(inner) => self.expr(scope, inner, expected),
            A::Name(_) | A::Member { .. } | A::Super => {
                let denoted = self.denoted(scope, e);
                self.value(scope, denoted)
            }
            A::Call { callee, args } => self.call(scope, callee, args, span),
            A::Index { base, index } => self.index(scope, base, index, span),
            A::Unary(op, inner) => self.unary(scope, *op, inner, expected, span),
            A::Postfix(up, place) => self.step(scope, place, *up, true, span),
            A::Binary(op, a, b) => self.binary(scope, *op, a, b, span),
            A::Assign(op, place, value) => self.assign(scope, *op, place, value, span),
            A::AndAnd(a, b) => self.and(scope, a, b, span),
            A::OrOr(a, b) => {
                let a = self.condition(scope, a);
                let b = self.expr(scope, b, None);
                let b = if b.ty == Type::Void { then(b, true) } else { self.truth(b) };
                logical(K::Or, a, b, span)
            }
            A::Then(a, b) => {
                let a = self.condition(scope, a);
                let b = self.expr(scope, b, None);
                let b = if b.ty == Type::Never { b } else { then(b, true) };
                logical(K::And, a, b, span)
            }
            A::Cond(c, a, b) => {
                let c = self.condition(scope, c);
                let (a, b) = (self.expr(scope, a, expected), self.expr(scope, b, expected));
                let (a, b, ty) = self.joined(a, b);
                match c.ty {
                    Type::Never => c,
                    _ => Expr::new(ty, K::Cond(Box::new(c), Box::new(a), Box::new(b)), span),
                }
            }
            A::Default(a, b) => self.default(scope, a, b, span),
            A::Seq(all) => self.sequence(scope, all, expected, span),
            A::Let { bindings, body, otherwise } => {
                self.bindings(scope, bindings, body, otherwise.as_deref(), expected, span)
            }
            A::Try { body, arms } => self.try_catch(scope, body, arms, expected, span),
            A::New(path, args) => match self.object_module(scope, path) {
                Some(module) => {
                    let e = self.creation(scope, module, args, span);
                    let view = self.program().module(module).outer;
                    if e.ty == Type::Never { e } else { Expr { ty: Type::Pointer(view), ..e } }
                }
                None => unknown(span),
            },
            A::Delete(pointer) => {
                let e = self.expr(scope, pointer, None);
                match self.program().target(&e.ty).filter(|_| matches!(e.ty, Type::Pointer(_))) {
                    Some(m) if self.program().module(m).punned.is_none() => {
                        Expr::new(Type::Void, K::Delete(Box::new(e)), span)
                    }
                    _ if matches!(e.ty, Type::Unknown | Type::Never) => e,
                    _ => {
                        let d = Diagnostic::error("only objects that 'new' creates are deleted", e.span);
                        self.report(d.at(format!("of type {}", self.name_of(&e.ty))));
                        unknown(span)
                    }
                }
            }
            A::Cast(ty, inner) => self.cast(scope, ty, inner, span),
            A::SizeOf(ty) => self.size_of(scope, ty, span),
            A::Hint(hint, inner) => self.hint(scope, *hint, inner, expected, span),
            A::Action(calls, value) => self.action(scope, calls, *value, span),
        }
    }

    /// Types an expression as a condition.
    pub(super) fn condition(&mut self, scope: &mut Scope, e: &ast::Expr) -> Expr {
        let e = self.expr(scope, e, Some(&Type::Bool));
        self.truth(e)
    }

    fn and(&mut self, scope: &mut Scope, a: &ast::Expr, b: &ast::Expr, span: Span) -> Expr {
        let a = self.condition(scope, a);
        let b = self.expr(scope, b, None);
        if b.ty == Type::Void {
            let d = Diagnostic::error("'&&' needs a value", b.span).at("of type void");
            self.report(d.help("write '==>' to do something if a condition holds"));
            return unknown(span);
        }
        let b = self.truth(b);
        logical(K::And, a, b, span)
    }

    fn default(&mut self, scope: &mut Scope, a: &ast::Expr, b: &ast::Expr, span: Span) -> Expr {
        let a = self.expr(scope, a, None);
        let Type::Optional(inner) = a.ty.clone() else {
            if !matches!(a.ty, Type::Unknown | Type::Never) {
                let d = Diagnostic::error("'??' needs an optional value", a.span);
                self.report(d.at(format!("of type {}", self.name_of(&a.ty))));
            }
            self.expr(scope, b, None);
            return unknown(span);
        };
        let b = self.expr(scope, b, Some(&inner));
        let ty = if matches!(b.ty, Type::Optional(_) | Type::NoneValue) { a.ty.clone() } else { *inner };
        let b = self.coerce(b, &ty, "the value after '??'");
        Expr::new(ty, K::Default(Box::new(a), Box::new(b)), span)
    }

    fn sequence(
        &mut self,
        scope: &mut Scope,
        all: &[ast::Expr],
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let mut out: Vec<Expr> = Vec::new();
        for (i, e) in all.iter().enumerate() {
            if let Some(last) = out.last().filter(|e| e.ty == Type::Never) {
                let place = last.span;
                let d = Diagnostic::warning("this is never evaluated", e.span).at("never reached");
                self.report(d.label("this always raises an exception", place));
                break;
            }
            let last = i + 1 == all.len();
            let e = self.expr(scope, e, expected.filter(|_| last));
            out.push(if last { e } else { discard(e) });
        }
        let ty = out.last().map_or(Type::Void, |e| e.ty.clone());
        Expr::new(ty, K::Seq(out), span)
    }

    fn bindings(
        &mut self,
        scope: &mut Scope,
        bindings: &[ast::Binding],
        body: &ast::Expr,
        otherwise: Option<&ast::Expr>,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let Some((first, rest)) = bindings.split_first() else {
            return self.expr(scope, body, expected);
        };
        let declared = first.ty.as_ref().map(|t| {
            let ty = self.ty(&scope.context, t);
            self.value_type(ty, t.span, "a variable")
        });
        if let (false, Some(module)) = (first.optional, self.created(scope, &first.value)) {
            return self.let_object(scope, module, first, |c, s| {
                c.bindings(s, rest, body, otherwise, expected, span)
            });
        }
        let value = self.expr(scope, &first.value, declared.as_ref());
        if !first.optional {
            if otherwise.is_some() && !bindings.iter().any(|b| b.optional) {
                let d = Diagnostic::error("'else' without an optional value", span).at("no '?='");
                self.report(
                    d.help("'let x ?= VALUE in … else … end' distinguishes whether there is a value"),
                );
            }
            let value = self.coerce_binding(value, declared);
            let ty = value.ty.clone();
            let local =
                scope.declare(&first.name.text, if ty == Type::Never { Type::Unknown } else { ty.clone() });
            let inner = self.bindings(scope, rest, body, otherwise, expected, span);
            scope.forget(1);
            return match value.ty {
                Type::Never => value,
                _ => Expr::new(inner.ty.clone(), K::Let(local, Box::new(value), Box::new(inner)), span),
            };
        }
        let inner_ty = match value.ty.clone() {
            Type::Optional(inner) => *inner,
            Type::Unknown | Type::Never => Type::Unknown,
            ty => {
                let d = Diagnostic::error("'?=' needs an optional value", value.span);
                self.report(d.at(format!("of type {}", self.name_of(&ty))).help("write '=' for '?='"));
                Type::Unknown
            }
        };
        let local = scope.declare(&first.name.text, inner_ty);
        let inner = self.bindings(scope, rest, body, otherwise, expected, span);
        scope.forget(1);
        let (inner, otherwise) = match otherwise {
            Some(e) => {
                let e = self.expr(scope, e, expected);
                let (a, b, _) = self.joined(inner, e);
                (a, b)
            }
            None => (if inner.ty == Type::Never { inner } else { then(inner, true) }, truth(span, false)),
        };
        let ty = if inner.ty == Type::Never { otherwise.ty.clone() } else { inner.ty.clone() };
        match value.ty {
            Type::Never => value,
            _ => {
                Expr::new(ty, K::LetSome(local, Box::new(value), Box::new(inner), Box::new(otherwise)), span)
            }
        }
    }

    fn coerce_binding(&mut self, value: Expr, declared: Option<Type>) -> Expr {
        if let Some(ty) = declared {
            return self.coerce(value, &ty, "the value of the variable");
        }
        let wrong = match value.ty {
            Type::Void => "of type void",
            Type::NoneValue => "'none' has no type of its own",
            Type::Text => "texts are only arguments of host functions",
            Type::Array(..) => "an array; its elements are values",
            _ => return value,
        };
        let d = Diagnostic::error("a variable cannot have this value", value.span).at(wrong);
        self.report(d.help("declare the type of the variable: let NAME :> TYPE = VALUE in … end"));
        Expr { ty: Type::Unknown, ..value }
    }

    fn try_catch(
        &mut self,
        scope: &mut Scope,
        body: &ast::Expr,
        arms: &[(Option<Path>, ast::Expr)],
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let mut body = self.expr(scope, body, expected);
        let mut out: Vec<(Option<crate::program::ExceptionId>, Expr)> = Vec::new();
        for (path, arm) in arms {
            let exception = match path {
                None => None,
                Some(path) => match self.exception(scope, path) {
                    Some(e) => Some(e),
                    None => continue,
                },
            };
            if out.iter().any(|(e, _)| e.is_none() || *e == exception) {
                let d = Diagnostic::warning("this exception is caught before", arm.span).at("never reached");
                self.report(d);
                continue;
            }
            let arm = self.expr(scope, arm, expected);
            let (b, arm, ty) = self.joined(body, arm);
            body = if b.ty == Type::Never { Expr { ty, ..b } } else { b };
            out.push((exception, arm));
        }
        // Arms have the type that all of them have in common.
        let ty = body.ty.clone();
        let out = out.into_iter().map(|(e, arm)| (e, self.coerce(arm, &ty, "the value"))).collect();
        Expr::new(ty, K::Try(Box::new(body), out), span)
    }

    fn exception(&mut self, scope: &mut Scope, path: &Path) -> Option<crate::program::ExceptionId> {
        let mut e =
            ast::Expr { kind: A::Name(Path { parts: vec![], ..path.clone() }), span: path.span, height: 1 };
        for (i, name) in path.parts.iter().enumerate() {
            let kind = match i {
                0 => A::Name(Path { global: path.global, parts: vec![name.clone()], span: name.span }),
                _ => A::Member { base: Box::new(e), name: name.clone(), arrow: false },
            };
            e = ast::Expr { kind, span: path.span, height: 1 };
        }
        match self.denoted(scope, &e) {
            Denoted::Exception(e, _) => Some(e),
            Denoted::Nothing(_) => None,
            _ => {
                let view = self.program().view(scope.view);
                let all: Vec<String> = view
                    .features
                    .iter()
                    .filter(|(_, f)| matches!(f.kind, FeatureKind::Exception(_)))
                    .map(|(k, _)| format!("'{k}'"))
                    .collect();
                let d = Diagnostic::error(format!("'{}' is no exception", path.text()), path.span)
                    .at("not declared so");
                let help = if all.is_empty() {
                    "declare it: exception NAME;".to_string()
                } else {
                    format!("the exceptions here are {}", all.join(", "))
                };
                self.report(d.help(help));
                None
            }
        }
    }

    /// The module of which `new` or `let` creates an object.
    pub(super) fn object_module(&mut self, scope: &Scope, path: &Path) -> Option<ModuleId> {
        let module = ast::ModuleExpr { path: path.clone(), ops: Vec::new() };
        let view = self.r.module_view(&scope.context, &module, 0)?;
        Some(self.program().view(view).module)
    }

    /// `sizeof(TYPE)`: the number of bytes that a value takes in a packet.
    fn size_of(&mut self, scope: &Scope, of: &ast::Type, span: Span) -> Expr {
        let ty = self.ty(&scope.context, of);
        let module = self.program().target(&ty).filter(|_| matches!(ty, Type::Object(_)));
        let size = match module {
            Some(module) => self.program().module(module).punned,
            None => bytes_of(&ty),
        };
        let Some(size) = size else {
            if ty != Type::Unknown {
                let d = Diagnostic::error(format!("'{}' has no size in bytes", self.name_of(&ty)), of.span);
                let d = d.at("not laid out over bytes");
                self.report(match module {
                    Some(_) => d.help("give its fields offsets: field NAME :> TYPE at OFFSET;"),
                    None => {
                        d.help("numbers, truth values, arrays of them and modules over bytes have a size")
                    }
                });
            }
            return unknown(span);
        };
        Expr::new(Type::Int(Int::UINT), K::Int(size as u64), span)
    }

    fn hint(
        &mut self,
        scope: &mut Scope,
        hint: ast::Hint,
        inner: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        use crate::program::Hint;
        let mut e = self.expr(scope, inner, expected);
        let hint = match hint {
            ast::Hint::Inline => Hint::Inline,
            ast::Hint::PathInline => Hint::PathInline,
            ast::Hint::NoInline => Hint::NoInline,
            ast::Hint::Outline => Hint::Outline,
        };
        match &mut e.kind {
            K::Call { hint: of, .. } => *of = Some(hint),
            _ if hint == Hint::Outline => return Expr::new(e.ty.clone(), K::Outline(Box::new(e)), span),
            _ if e.ty != Type::Unknown => {
                let d = Diagnostic::warning("this is no call of a method", e.span).at("nothing to inline");
                self.report(d.help("write the operator directly before the call"));
            }
            _ => {}
        }
        e
    }
}

/// Evaluates an expression, then gives a truth value.
pub(super) fn then(e: Expr, value: bool) -> Expr {
    let span = e.span;
    if e.ty == Type::Never {
        return e;
    }
    Expr::new(Type::Bool, K::Seq(vec![discard(e), truth(span, value)]), span)
}

/// `a && b` or `a || b`. Without a value of `a` it is `a`.
fn logical(kind: fn(Box<Expr>, Box<Expr>) -> K, a: Expr, b: Expr, span: Span) -> Expr {
    match a.ty {
        Type::Never => a,
        _ => Expr::new(Type::Bool, kind(Box::new(a), Box::new(b)), span),
    }
}
