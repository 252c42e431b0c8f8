// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typing of operators on numbers, truth values, pointers and bytes, and of casts.

use super::Checker;
use super::exprs::unknown;
use super::scope::Scope;
use super::types::{literal, strict};
use crate::program::{Int, Type};
use crate::syntax::ast::{self, UnOp};
use crate::tree::{BinOp, Expr, ExprKind, Prefix};
use castanet_diagnostic::{Diagnostic, Span};

fn is_comparison(op: BinOp) -> bool {
    matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

fn pair(op: BinOp, ty: Type, a: Expr, b: Expr, span: Span) -> Expr {
    strict(vec![a, b], |v| {
        let mut v = v.into_iter();
        match (v.next(), v.next()) {
            (Some(a), Some(b)) => Expr::new(ty, ExprKind::Binary(op, Box::new(a), Box::new(b)), span),
            _ => unknown(span),
        }
    })
}

impl Checker {
    pub(super) fn binary(
        &mut self,
        scope: &mut Scope,
        op: BinOp,
        a: &ast::Expr,
        b: &ast::Expr,
        span: Span,
    ) -> Expr {
        let (a, b) = (self.expr(scope, a, None), self.expr(scope, b, None));
        self.operation(op, a, b, span)
    }

    /// An operation on two values.
    pub(super) fn operation(&mut self, op: BinOp, a: Expr, b: Expr, span: Span) -> Expr {
        match (&a.ty, &b.ty) {
            (Type::Unknown, _) | (_, Type::Unknown) => unknown(span),
            (Type::Never, _) | (_, Type::Never) => pair(op, Type::Never, a, b, span),
            (Type::Int(_) | Type::Seq, Type::Int(_) | Type::Seq) => self.numbers(op, a, b, span),
            (Type::Bool, Type::Bool)
                if matches!(op, BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Eq | BinOp::Ne) =>
            {
                pair(op, Type::Bool, a, b, span)
            }
            (Type::Bytes, Type::Int(_)) if matches!(op, BinOp::Add | BinOp::Sub) => {
                let b = self.convert_int(b, &Type::Int(Int::UINT));
                pair(op, Type::Bytes, a, b, span)
            }
            (Type::Optional(_), Type::NoneValue) if matches!(op, BinOp::Eq | BinOp::Ne) => {
                self.is_none(op, a, span)
            }
            (Type::NoneValue, Type::Optional(_)) if matches!(op, BinOp::Eq | BinOp::Ne) => {
                self.is_none(op, b, span)
            }
            (Type::Pointer(_), Type::Pointer(_))
                if matches!(op, BinOp::Eq | BinOp::Ne)
                    && (self.points_to(&a.ty, &b.ty) || self.points_to(&b.ty, &a.ty)) =>
            {
                pair(op, Type::Bool, a, b, span)
            }
            _ => self.bad_operands(op, &a, &b, span),
        }
    }

    fn is_none(&mut self, op: BinOp, optional: Expr, span: Span) -> Expr {
        let some = Expr::new(Type::Bool, ExprKind::IsSome(Box::new(optional)), span);
        match op {
            BinOp::Ne => some,
            _ => Expr::new(Type::Bool, ExprKind::Prefix(Prefix::Not, Box::new(some)), span),
        }
    }

    fn bad_operands(&mut self, op: BinOp, a: &Expr, b: &Expr, span: Span) -> Expr {
        let d = Diagnostic::error(format!("no '{}' for these types", symbol(op)), span);
        let (x, y) = (self.name_of(&a.ty), self.name_of(&b.ty));
        let d =
            d.at("not defined").label(format!("of type {x}"), a.span).label(format!("of type {y}"), b.span);
        let d = match (&a.ty, &b.ty) {
            (Type::Bool, Type::Int(_) | Type::Seq) | (Type::Int(_) | Type::Seq, Type::Bool) => {
                d.help("write 'CONDITION ? 1 : 0' for a number")
            }
            (Type::Optional(_), _) | (_, Type::Optional(_)) => {
                d.help("take the value out: 'VALUE ?? OTHER', or 'let x ?= VALUE in … end'")
            }
            (Type::Void, _) | (_, Type::Void) => {
                d.help("an action without value follows '==>' or '||' or stands in a list")
            }
            _ => d,
        };
        self.report(d);
        unknown(span)
    }

    fn numbers(&mut self, op: BinOp, a: Expr, b: Expr, span: Span) -> Expr {
        let uint = Type::Int(Int::UINT);
        if matches!(op, BinOp::Shl | BinOp::Shr) {
            let left = match (&a.ty, literal(&a)) {
                (Type::Int(i), None) if i.bits < 32 => Type::Int(Int::INT),
                (Type::Seq, _) => uint.clone(),
                (ty, _) => ty.clone(),
            };
            let a = self.number_as(a, &left);
            let b = self.convert_int(b, &uint);
            // The distance has the type of the left operand, so that both operands have one type.
            let b = self.number_as(b, &left);
            return pair(op, left, a, b, span);
        }
        let seq = matches!(a.ty, Type::Seq) || matches!(b.ty, Type::Seq);
        let both = matches!((&a.ty, &b.ty), (Type::Seq, Type::Seq));
        let operands = match op {
            _ if !seq => match (literal(&a), literal(&b), &a.ty, &b.ty) {
                (None, Some(_), Type::Int(x), Type::Int(y)) | (Some(_), None, Type::Int(y), Type::Int(x))
                    if y.bits <= x.bits && x.bits >= 32 =>
                {
                    Type::Int(*x)
                }
                _ => self.common(&a.ty, &b.ty),
            },
            BinOp::Add | BinOp::Sub | BinOp::Max | BinOp::Min => Type::Seq,
            _ if is_comparison(op) => Type::Seq,
            _ => uint,
        };
        let result = match op {
            _ if is_comparison(op) => Type::Bool,
            // The distance of two sequence numbers has a sign.
            BinOp::Sub if both => Type::Int(Int::INT),
            _ => operands.clone(),
        };
        let (a, b) = (self.number_as(a, &operands), self.number_as(b, &operands));
        let inner = if is_comparison(op) { Type::Bool } else { operands };
        let e = pair(op, inner, a, b, span);
        if e.ty == result || e.ty == Type::Never {
            return e;
        }
        Expr::new(result, ExprKind::Convert(Box::new(e)), span)
    }

    /// An operand with the type of the operation. A negative literal in an unsigned operation is not worth a warning.
    fn number_as(&mut self, e: Expr, ty: &Type) -> Expr {
        if e.ty == *ty || e.ty == Type::Never {
            return e;
        }
        if let Some(n) = literal(&e) {
            let kept = crate::arith::truncate(n as u64, ty);
            return Expr::new(ty.clone(), ExprKind::Int(kept), e.span);
        }
        let span = e.span;
        Expr::new(ty.clone(), ExprKind::Convert(Box::new(e)), span)
    }

    pub(super) fn unary(
        &mut self,
        scope: &mut Scope,
        op: UnOp,
        inner: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        match op {
            UnOp::PreInc | UnOp::PreDec => return self.step(scope, inner, op == UnOp::PreInc, false, span),
            UnOp::Not => {
                let e = self.condition(scope, inner);
                if matches!(e.ty, Type::Never | Type::Unknown) {
                    return e;
                }
                return Expr::new(Type::Bool, ExprKind::Prefix(Prefix::Not, Box::new(e)), span);
            }
            UnOp::AddressOf => return self.address(scope, inner, span),
            UnOp::Deref => {
                let e = self.expr(scope, inner, None);
                return match e.ty {
                    Type::Pointer(view) => Expr { ty: Type::Object(view), ..e },
                    Type::Never | Type::Unknown => e,
                    _ => {
                        let d = Diagnostic::error("'*' before something that is no pointer", e.span);
                        self.report(d.at(format!("of type {}", self.name_of(&e.ty))));
                        unknown(span)
                    }
                };
            }
            UnOp::Plus | UnOp::Neg | UnOp::BitNot => {}
        }
        // A negative literal may have a type that has no such positive number.
        let operand = match (&inner.kind, op) {
            (ast::ExprKind::Number(n), UnOp::Neg) => {
                Expr::new(Type::Int(Int::ULONG), ExprKind::Int(*n), inner.span)
            }
            _ => self.expr(scope, inner, expected),
        };
        let ty = match &operand.ty {
            Type::Never | Type::Unknown => return operand,
            Type::Int(_) if literal(&operand).is_some() && op == UnOp::Neg => {
                return self.negative(operand, expected, span);
            }
            Type::Int(i) if i.bits < 32 => Type::Int(Int::INT),
            Type::Int(i) => Type::Int(*i),
            Type::Seq => Type::Int(Int::UINT),
            ty => {
                let d = Diagnostic::error("this operator needs a number", operand.span);
                let d = d.at(format!("of type {}", self.name_of(ty)));
                self.report(if *ty == Type::Bool {
                    d.help("write '!' for the opposite of a condition")
                } else {
                    d
                });
                return unknown(span);
            }
        };
        let operand = self.number_as(operand, &ty);
        let prefix = match op {
            UnOp::Plus => return Expr { span, ..operand },
            UnOp::Neg => Prefix::Neg,
            _ => Prefix::BitNot,
        };
        Expr::new(ty, ExprKind::Prefix(prefix, Box::new(operand)), span)
    }

    fn negative(&mut self, operand: Expr, expected: Option<&Type>, span: Span) -> Expr {
        let n = literal(&operand).map_or(0, |n| -n);
        let long = Type::Int(Int { bits: 64, signed: true });
        let ty = match expected {
            Some(ty @ Type::Int(Int { signed: true, .. })) => ty.clone(),
            _ if n >= i128::from(i32::MIN) => Type::Int(Int::INT),
            _ => long.clone(),
        };
        let wide = Expr::new(long, ExprKind::Int(n as u64), span);
        self.convert_int(wide, &ty)
    }

    fn address(&mut self, scope: &mut Scope, inner: &ast::Expr, span: Span) -> Expr {
        let e = self.expr(scope, inner, None);
        match e.ty {
            Type::Object(view) => Expr { ty: Type::Pointer(view), ..e },
            Type::Never | Type::Unknown => e,
            _ => {
                let d = Diagnostic::error("'&' before something that is no object", e.span);
                let d = d.at(format!("of type {}", self.name_of(&e.ty)));
                self.report(d.help("pointers point to objects that 'let' or 'new' creates"));
                unknown(span)
            }
        }
    }

    pub(super) fn cast(&mut self, scope: &mut Scope, ty: &ast::Type, inner: &ast::Expr, span: Span) -> Expr {
        let to = self.ty(&scope.context, ty);
        let e = self.expr(scope, inner, None);
        let convert = |e: Expr, to: &Type| Expr::new(to.clone(), ExprKind::Convert(Box::new(e)), span);
        let punned = |c: &Checker, ty: &Type| {
            c.program().target(ty).is_some_and(|m| c.program().module(m).punned.is_some())
        };
        match (&e.ty, &to) {
            (Type::Unknown, _) | (_, Type::Unknown) => unknown(span),
            (Type::Never, _) => e,
            (Type::Int(_) | Type::Seq | Type::Bool, Type::Int(_) | Type::Seq) => match literal(&e) {
                Some(n) => {
                    let kept = crate::arith::truncate(n as u64, &to);
                    Expr::new(to, ExprKind::Int(kept), span)
                }
                None => convert(e, &to),
            },
            (_, Type::Bool) => self.truth(e),
            (_, Type::Void) => super::types::discard(e),
            (Type::Bytes, Type::Bytes) => e,
            (Type::Bytes, Type::Pointer(_)) if punned(self, &to) => convert(e, &to),
            (Type::Pointer(_), Type::Bytes) if punned(self, &e.ty) => convert(e, &to),
            (Type::Pointer(_), Type::Pointer(_)) if punned(self, &e.ty) && punned(self, &to) => {
                convert(e, &to)
            }
            (Type::Pointer(_), Type::Pointer(_)) if self.points_to(&e.ty, &to) => convert(e, &to),
            (Type::Pointer(_), Type::Pointer(view)) if self.points_to(&to, &e.ty) => {
                let module = self.program().view(*view).module;
                let ty = Type::Optional(Box::new(to.clone()));
                Expr::new(ty, ExprKind::Downcast(module, Box::new(e)), span)
            }
            _ => {
                let (x, y) = (self.name_of(&e.ty), self.name_of(&to));
                let d = Diagnostic::error(format!("no conversion to {y}"), span).at("not defined");
                self.report(d.label(format!("of type {x}"), e.span));
                unknown(span)
            }
        }
    }
}

/// The text of an operator.
pub(crate) fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::Max => "max=",
        BinOp::Min => "min=",
    }
}
