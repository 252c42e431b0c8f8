// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typing: signatures, layout, and the bodies of methods, whose result types are inferred.

mod calls;
mod exprs;
mod names;
mod operators;
mod places;
mod pointers;
mod scope;
mod signatures;
mod types;
mod unknown;

use crate::program::{MethodId, MethodKind, Program, Type};
use crate::resolve::Resolver;
use crate::tree::{Expr, ExprKind};
use castanet_diagnostic::{Diagnostic, Span};
use scope::Scope;

/// How far the body of a method has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Checking,
    Done,
}

/// The maximum number of methods whose result types wait for each other.
const MAX_WAITING: usize = 400;

pub(crate) struct Checker {
    pub(crate) r: Resolver,
    states: Vec<State>,
    waiting: usize,
}

/// Types a program.
pub(crate) fn check(resolver: Resolver) -> (Program, Vec<Diagnostic>) {
    let states = vec![State::Waiting; resolver.program.methods.len()];
    let mut c = Checker { r: resolver, states, waiting: 0 };
    c.signatures();
    c.layouts();
    for n in 0..c.r.program.methods.len() {
        c.method(MethodId(n));
    }
    if !c.r.diagnostics.iter().any(Diagnostic::is_error) {
        c.unset_pointers();
    }
    (c.r.program, c.r.diagnostics)
}

impl Checker {
    fn report(&mut self, d: Diagnostic) {
        self.r.report(d);
    }

    fn program(&self) -> &Program {
        &self.r.program
    }

    fn name_of(&self, ty: &Type) -> String {
        self.program().type_name(ty)
    }

    /// The result type of a method, which may require checking its body.
    fn result(&mut self, id: MethodId, at: Span) -> Type {
        if self.states[id.0] == State::Waiting && self.program().method(id).result == Type::Unknown {
            self.method(id);
        }
        let method = self.program().method(id);
        if self.states[id.0] == State::Checking && method.result == Type::Unknown {
            let (name, span) = (method.name.clone(), method.span);
            let d = Diagnostic::error(format!("'{name}' calls itself before its result type is known"), at);
            let d = d.at("its type is inferred from its body").label("defined here", span);
            self.report(d.help(format!("declare the type of the result: {name} :> TYPE ::= …")));
        }
        self.program().method(id).result.clone()
    }

    /// Checks the body of a method.
    fn method(&mut self, id: MethodId) {
        if self.states[id.0] != State::Waiting {
            return;
        }
        self.states[id.0] = State::Checking;
        if self.waiting >= MAX_WAITING {
            let method = self.program().method(id);
            let d = Diagnostic::error("too many result types depend on each other", method.span);
            let d =
                d.at("not inferred").help(format!("declare the type of the result: {} :> TYPE", method.name));
            self.report(d);
            self.states[id.0] = State::Done;
            return;
        }
        self.waiting += 1;
        let method = self.program().method(id);
        let (overrides, declared) = (method.overrides, method.result.clone());
        let inherited = overrides.filter(|_| method.kind == MethodKind::Method);
        let span = method.span;
        // A definition that replaces another one has its type, and is checked against it.
        let base = inherited.map(|base| (base, self.result(base, span)));
        let expected = match (&declared, &base) {
            (Type::Unknown, Some((_, ty))) => ty.clone(),
            (ty, _) => ty.clone(),
        };
        if expected != Type::Unknown {
            self.r.program.methods[id.0].result = expected.clone();
        }
        if let Some((base, ty)) = base {
            self.same_signature(id, base, &ty);
        }
        let mut scope = Scope::new(self, id);
        // The declaration is taken out while its body is checked, and put back for later messages.
        let body = self.r.sources[id.0].decl.body.clone();
        let e = self.expr(&mut scope, &body, Some(&expected).filter(|t| **t != Type::Unknown));
        let e = match &expected {
            Type::Unknown => self.inferred(e),
            Type::Never if e.ty != Type::Never && e.ty != Type::Unknown => self.not_never(id, e),
            ty => self.coerce(e, ty, "the result"),
        };
        let m = &mut self.r.program.methods[id.0];
        m.result = if expected == Type::Unknown { e.ty.clone() } else { expected };
        m.body = e;
        m.locals = scope.locals;
        if m.kind == MethodKind::Constant {
            self.constant(id);
        }
        self.states[id.0] = State::Done;
        self.waiting -= 1;
    }

    /// The body of a method whose result type is inferred.
    fn inferred(&mut self, e: Expr) -> Expr {
        let wrong = match e.ty {
            Type::NoneValue => "'none' has no type of its own",
            Type::Text => "texts are only arguments of host functions",
            Type::Object(_) => "an object lives until the end of its 'let' only",
            _ => return e,
        };
        let d = Diagnostic::error("the result type of the method cannot be inferred", e.span).at(wrong);
        self.report(d.help("declare the type of the result after ':>'"));
        Expr { ty: Type::Unknown, ..e }
    }

    /// Reports a definition that returns where the one that it replaces always raises an exception.
    fn not_never(&mut self, id: MethodId, e: Expr) -> Expr {
        let base = self.program().method(id).overrides.map(|b| self.program().method(b).span);
        let d = Diagnostic::error("the method that this one replaces always raises an exception", e.span);
        let mut d = d.at("returns").help("declare the type of the result where the method is first defined");
        if let Some(span) = base {
            d = d.label("first defined here", span);
        }
        self.report(d);
        Expr { ty: Type::Never, ..e }
    }

    fn same_signature(&mut self, id: MethodId, base: MethodId, result: &Type) {
        if [id, base].iter().any(|m| self.r.sources[m.0].decl.broken) {
            return;
        }
        let (m, b) = (self.program().method(id), self.program().method(base));
        let params = m.params.len() == b.params.len()
            && m.params.iter().zip(&b.params).all(|(x, y)| self.same(x, y) || *x == Type::Unknown);
        let results = self.same(&m.result, result) || m.result == Type::Unknown;
        if params && (results || *result == Type::Unknown) {
            return;
        }
        let (what, differ) = if params { ("result type", "differs") } else { ("parameters", "differ") };
        let show = |m: &crate::program::Method, result: &Type| {
            let params: Vec<_> = m.params.iter().map(|t| self.name_of(t)).collect();
            format!("({}) :> {}", params.join(", "), self.name_of(result))
        };
        let help = format!("it must be {}{}", m.name, show(b, result));
        let d = Diagnostic::error(
            format!("the {what} of '{}' {differ} from the method that it replaces", m.name),
            m.span,
        );
        let (owner, place) = (self.program().module(b.module).name.clone(), b.span);
        let d = d.at("defined here").label(format!("defined by '{owner}'"), place);
        self.report(d.help(help));
    }

    /// Reports a constant that is not constant.
    fn constant(&mut self, id: MethodId) {
        let mut wrong = None;
        let method = self.program().method(id);
        method.body.walk(&mut |e| {
            let constant = match &e.kind {
                ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Convert(_) | ExprKind::Prefix(..) => true,
                ExprKind::Binary(..) | ExprKind::And(..) | ExprKind::Or(..) | ExprKind::Cond(..) => true,
                ExprKind::Call { callee: crate::tree::Callee::Direct(m), .. } => {
                    self.program().method(*m).kind == MethodKind::Constant
                }
                _ => e.ty == Type::Unknown,
            };
            if !constant && wrong.is_none() {
                wrong = Some(e.span);
            }
        });
        if let Some(span) = wrong {
            let d = Diagnostic::error(format!("'{}' is not constant", method.name), span);
            self.report(
                d.at("computed at run time").help("make it a static method: write 'static' for 'const'"),
            );
        }
    }
}
