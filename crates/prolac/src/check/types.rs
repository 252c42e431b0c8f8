// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of values: which are the same, which convert to which, and the common type of two.

use super::Checker;
use crate::program::{Int, Type};
use crate::tree::{BinOp, Expr, ExprKind, Prefix};
use castanet_diagnostic::Diagnostic;

/// The type of a binary operation on two integers, as in C.
pub(super) fn common_int(a: Int, b: Int) -> Int {
    let promoted = |i: Int| if i.bits < 32 { Int::INT } else { i };
    let (a, b) = (promoted(a), promoted(b));
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => Int { bits: a.bits, signed: a.signed && b.signed },
    }
}

/// The value of a constant expression of literals.
pub(super) fn literal(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Int(n) if !matches!(e.ty, Type::Int(Int { signed: true, .. })) => Some(i128::from(*n)),
        ExprKind::Int(n) => Some(i128::from(crate::arith::signed(*n, &e.ty))),
        ExprKind::Prefix(Prefix::Neg, inner) => literal(inner).map(|n| -n),
        _ => None,
    }
}

/// Whether a number is one of a type's.
fn fits(n: i128, ty: &Type) -> bool {
    let (bits, signed) = match ty {
        Type::Int(i) => (u32::from(i.bits), i.signed),
        Type::Seq => (32, false),
        _ => return false,
    };
    match signed {
        true => (-(1i128 << (bits - 1))..(1i128 << (bits - 1))).contains(&n),
        false => (0..(1i128 << bits)).contains(&n),
    }
}

impl Checker {
    /// Whether two types are the same. Pointers through different views of a module are.
    pub(super) fn same(&self, a: &Type, b: &Type) -> bool {
        match (a, b) {
            (Type::Pointer(x), Type::Pointer(y)) | (Type::Object(x), Type::Object(y)) => {
                self.program().view(*x).module == self.program().view(*y).module
            }
            (Type::Optional(x), Type::Optional(y)) => self.same(x, y),
            (Type::Array(x, n), Type::Array(y, m)) => n == m && self.same(x, y),
            _ => a == b,
        }
    }

    /// Whether a pointer of the first type is one of the second: the module is the same or extends it.
    pub(super) fn points_to(&self, from: &Type, to: &Type) -> bool {
        match (self.program().target(from), self.program().target(to)) {
            (Some(a), Some(b)) => self.program().extends(a, b),
            _ => false,
        }
    }

    /// Converts an expression to a type, or reports that it has another one. `what` says what needs the type.
    pub(super) fn coerce(&mut self, e: Expr, to: &Type, what: &str) -> Expr {
        if self.same(&e.ty, to) {
            // The expected type decides about the view.
            return Expr { ty: to.clone(), ..e };
        }
        let span = e.span;
        match (&e.ty, to) {
            (Type::Never | Type::Unknown, _) | (_, Type::Unknown) => e,
            (_, Type::Void) => discard(e),
            (Type::Int(_) | Type::Seq, Type::Int(_) | Type::Seq) => self.convert_int(e, to),
            (Type::Int(_) | Type::Seq | Type::Optional(_), Type::Bool) => self.truth(e),
            (Type::NoneValue, Type::Optional(_)) => Expr { ty: to.clone(), ..e },
            (Type::Optional(a), Type::Optional(b)) if self.points_to(a, b) => {
                Expr::new(to.clone(), ExprKind::Convert(Box::new(e)), span)
            }
            (_, Type::Optional(inner)) => {
                let e = self.coerce(e, inner, what);
                Expr::new(to.clone(), ExprKind::Some(Box::new(e)), span)
            }
            (Type::Pointer(_), Type::Pointer(_)) if self.points_to(&e.ty, to) => {
                Expr::new(to.clone(), ExprKind::Convert(Box::new(e)), span)
            }
            _ => {
                self.mismatch(&e, to, what);
                Expr { ty: Type::Unknown, ..e }
            }
        }
    }

    fn mismatch(&mut self, e: &Expr, to: &Type, what: &str) {
        let (found, wanted) = (self.name_of(&e.ty), self.name_of(to));
        let d = Diagnostic::error(format!("{what} must be of type {wanted}"), e.span);
        let d = d.at(format!("this is of type {found}"));
        let d = match (&e.ty, to) {
            (Type::Bool, Type::Int(_)) => d.help("write 'CONDITION ? 1 : 0'"),
            (Type::Optional(_), _) => {
                d.help("take the value out: 'VALUE ?? OTHER', or 'let x ?= VALUE in … end'")
            }
            (Type::Object(_), Type::Pointer(_)) => d.help("write '&' before it for a pointer to the object"),
            (Type::Bytes, Type::Pointer(_)) => d.help("write 'BYTES as *MODULE'"),
            (Type::Pointer(_), Type::Pointer(_)) if self.points_to(to, &e.ty) => {
                d.help(format!("write 'POINTER as {wanted}', which gives an optional pointer"))
            }
            _ => d,
        };
        self.report(d);
    }

    /// Converts a number. A literal gets the type itself.
    pub(super) fn convert_int(&mut self, e: Expr, to: &Type) -> Expr {
        let span = e.span;
        if let Some(n) = literal(&e) {
            if !fits(n, to) {
                let name = self.name_of(to);
                let d = Diagnostic::warning(format!("{n} does not fit into {name}"), span)
                    .at("its low bits are used");
                self.report(d.help(format!("write a cast, '({name}) {n}', if that is meant")));
            }
            let kept = ExprKind::Int(crate::arith::truncate(n as u64, to));
            return Expr::new(to.clone(), kept, span);
        }
        Expr::new(to.clone(), ExprKind::Convert(Box::new(e)), span)
    }

    /// Converts a condition to a truth value.
    pub(super) fn truth(&mut self, e: Expr) -> Expr {
        let span = e.span;
        match &e.ty {
            Type::Bool | Type::Never | Type::Unknown => e,
            Type::Int(_) | Type::Seq => {
                let zero = Expr::new(e.ty.clone(), ExprKind::Int(0), span);
                Expr::new(Type::Bool, ExprKind::Binary(BinOp::Ne, Box::new(e), Box::new(zero)), span)
            }
            Type::Optional(_) => Expr::new(Type::Bool, ExprKind::IsSome(Box::new(e)), span),
            ty => {
                let d = Diagnostic::error("this is no condition", span)
                    .at(format!("of type {}", self.name_of(ty)));
                let d = match ty {
                    Type::Void => d.help(
                        "'CONDITION ==> ACTION' and 'CONDITION || ACTION' take an action without value",
                    ),
                    Type::Pointer(_) => {
                        d.help("a pointer always points to an object; one that may not is of type ?*M")
                    }
                    _ => d,
                };
                self.report(d);
                Expr { ty: Type::Unknown, ..e }
            }
        }
    }

    /// The type of an expression that has one of two values.
    pub(super) fn unify(&self, a: &Expr, b: &Expr) -> Option<Type> {
        let (x, y) = (&a.ty, &b.ty);
        Some(match (x, y) {
            (Type::Never | Type::Unknown, _) => y.clone(),
            (_, Type::Never | Type::Unknown) => x.clone(),
            _ if self.same(x, y) => x.clone(),
            (Type::Void, _) | (_, Type::Void) => Type::Void,
            (Type::Int(_) | Type::Seq, Type::Int(_) | Type::Seq) => match (literal(a), literal(b)) {
                (Some(n), None) if fits(n, y) => y.clone(),
                (None, Some(n)) if fits(n, x) => x.clone(),
                _ => self.common(x, y),
            },
            (Type::NoneValue, Type::Optional(_)) => y.clone(),
            (Type::Optional(_), Type::NoneValue) => x.clone(),
            (Type::NoneValue, _) => Type::Optional(Box::new(y.clone())),
            (_, Type::NoneValue) => Type::Optional(Box::new(x.clone())),
            (Type::Optional(inner), other) if self.same(inner, other) => x.clone(),
            (other, Type::Optional(inner)) if self.same(inner, other) => y.clone(),
            (Type::Pointer(_), Type::Pointer(_)) if self.points_to(x, y) => y.clone(),
            (Type::Pointer(_), Type::Pointer(_)) if self.points_to(y, x) => x.clone(),
            _ => return None,
        })
    }

    /// The type of an operation on two numbers.
    pub(super) fn common(&self, a: &Type, b: &Type) -> Type {
        match (a, b) {
            (Type::Int(a), Type::Int(b)) => Type::Int(common_int(*a, *b)),
            _ => Type::Seq,
        }
    }

    /// Converts the two values of a conditional expression to their common type.
    pub(super) fn joined(&mut self, a: Expr, b: Expr) -> (Expr, Expr, Type) {
        match self.unify(&a, &b) {
            Some(ty) => {
                let (a, b) = (self.coerce(a, &ty, "the value"), self.coerce(b, &ty, "the value"));
                (a, b, ty)
            }
            None => {
                let (x, y) = (self.name_of(&a.ty), self.name_of(&b.ty));
                let d = Diagnostic::error("the two values have different types", b.span);
                self.report(d.at(format!("of type {y}")).label(format!("of type {x}"), a.span));
                (a, b, Type::Unknown)
            }
        }
    }
}

/// Evaluates an expression for its effect only.
pub(super) fn discard(e: Expr) -> Expr {
    if matches!(e.ty, Type::Void | Type::Never) {
        return e;
    }
    let span = e.span;
    let nothing = Expr::new(Type::Void, ExprKind::Seq(Vec::new()), span);
    Expr::new(Type::Void, ExprKind::Seq(vec![e, nothing]), span)
}

/// Builds an operation whose operands are evaluated one after the other. If one of them never has a value, the
/// expression ends there.
pub(super) fn strict(mut operands: Vec<Expr>, build: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    let Some(at) = operands.iter().position(|e| e.ty == Type::Never) else { return build(operands) };
    operands.truncate(at + 1);
    let span = operands.iter().map(|e| e.span).reduce(|a, b| a.to(b)).unwrap_or_default();
    match operands.pop() {
        Some(only) if operands.is_empty() => only,
        Some(last) => {
            let mut all: Vec<Expr> = operands.into_iter().map(discard).collect();
            all.push(last);
            Expr::new(Type::Never, ExprKind::Seq(all), span)
        }
        None => build(operands),
    }
}
