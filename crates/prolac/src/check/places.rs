// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignments, `++` and `--`, and elements.

use super::Checker;
use super::exprs::unknown;
use super::scope::Scope;
use super::types::strict;
use crate::program::{Int, Type};
use crate::syntax::ast::{self, ExprKind as A, UnOp};
use crate::tree::{BinOp, Expr, ExprKind as K};
use castanet_diagnostic::{Diagnostic, Span};

fn unparenthesised(mut e: &ast::Expr) -> &ast::Expr {
    while let A::Paren(inner) = &e.kind {
        e = inner;
    }
    e
}

impl Checker {
    /// Types an expression that is assigned to.
    fn place(&mut self, scope: &mut Scope, e: &ast::Expr) -> Option<Expr> {
        let place = self.expr(scope, e, None);
        // `+x` and a cast of `x` to its own type are values, although they are typed as `x` is.
        let value = matches!(unparenthesised(e).kind, A::Unary(UnOp::Plus, _) | A::Cast(..) | A::Hint(..));
        match (&place.kind, &place.ty) {
            (_, Type::Unknown | Type::Never) => None,
            (K::Local(_) | K::Field { .. } | K::ByteAt(..), _) if value => {
                self.no_place(place);
                None
            }
            (_, Type::Object(_) | Type::Array(..)) => {
                let d = Diagnostic::error("this cannot be assigned to", place.span);
                self.report(
                    d.at(format!("of type {}", self.name_of(&place.ty)))
                        .help("assign to its fields or elements"),
                );
                None
            }
            (K::Local(local), _) => {
                let local = *local;
                scope.locals[local.0].assigned = true;
                Some(place)
            }
            (K::Field { .. } | K::ByteAt(..), _) => Some(place),
            _ => {
                self.no_place(place);
                None
            }
        }
    }

    /// Reports a value in the place of a variable.
    fn no_place(&mut self, value: Expr) {
        let d = Diagnostic::error("this cannot be assigned to", value.span).at("no field or variable");
        self.report(match value.kind {
            K::Call { .. } => d.help("it is a method; methods compute values"),
            _ => d,
        });
    }

    pub(super) fn assign(
        &mut self,
        scope: &mut Scope,
        op: Option<BinOp>,
        place: &ast::Expr,
        value: &ast::Expr,
        span: Span,
    ) -> Expr {
        let Some(place) = self.place(scope, place) else {
            self.expr(scope, value, None);
            return unknown(span);
        };
        let ty = place.ty.clone();
        let value = self.expr(scope, value, Some(&ty));
        let value = match op {
            None => self.coerce(value, &ty, "the value"),
            Some(op) => match self.operand(op, &place, value, span) {
                Some(value) => value,
                None => return unknown(span),
            },
        };
        strict(vec![value], |mut v| match v.pop() {
            Some(value) => {
                Expr::new(ty, K::Assign { place: Box::new(place), op, value: Box::new(value) }, span)
            }
            None => unknown(span),
        })
    }

    /// The operand of an assignment with an operator. The operation has the type of the place.
    fn operand(&mut self, op: BinOp, place: &Expr, value: Expr, span: Span) -> Option<Expr> {
        let bits = matches!(op, BinOp::And | BinOp::Or | BinOp::Xor);
        match (&place.ty, &value.ty) {
            (_, Type::Never | Type::Unknown) => Some(value),
            (Type::Int(_) | Type::Seq, Type::Int(_) | Type::Seq) if matches!(op, BinOp::Shl | BinOp::Shr) => {
                let value = self.convert_int(value, &Type::Int(Int::UINT));
                Some(self.saturated(value, &place.ty))
            }
            (Type::Int(_) | Type::Seq, Type::Int(_) | Type::Seq) => {
                Some(if value.ty == place.ty { value } else { self.convert_int(value, &place.ty) })
            }
            (Type::Bool, Type::Bool) if bits => Some(value),
            (Type::Bytes, Type::Int(_)) if matches!(op, BinOp::Add | BinOp::Sub) => {
                Some(self.convert_int(value, &Type::Int(Int::UINT)))
            }
            _ => {
                self.operation(op, place.clone(), value, span);
                None
            }
        }
    }

    /// The distance of a shift with the type of the shifted number. A distance that is too large stays so.
    fn saturated(&mut self, value: Expr, ty: &Type) -> Expr {
        let (uint, span) = (Type::Int(Int::UINT), value.span);
        if value.ty == *ty {
            return value;
        }
        let limit = Expr::new(uint.clone(), K::Int(64), span);
        let least = Expr::new(uint, K::Binary(BinOp::Min, Box::new(value), Box::new(limit)), span);
        Expr::new(ty.clone(), K::Convert(Box::new(least)), span)
    }

    pub(super) fn step(
        &mut self,
        scope: &mut Scope,
        place: &ast::Expr,
        up: bool,
        old: bool,
        span: Span,
    ) -> Expr {
        let Some(place) = self.place(scope, place) else { return unknown(span) };
        if !matches!(place.ty, Type::Int(_) | Type::Seq | Type::Bytes) {
            let d = Diagnostic::error("'++' and '--' need a number or a position", place.span);
            self.report(d.at(format!("of type {}", self.name_of(&place.ty))));
            return unknown(span);
        }
        Expr::new(place.ty.clone(), K::Step { place: Box::new(place), up, old }, span)
    }

    pub(super) fn index(
        &mut self,
        scope: &mut Scope,
        base: &ast::Expr,
        index: &ast::Expr,
        span: Span,
    ) -> Expr {
        let base = self.expr(scope, base, None);
        let index = self.expr(scope, index, Some(&Type::Int(Int::UINT)));
        let index = self.coerce(index, &Type::Int(Int::UINT), "the index");
        if matches!(index.ty, Type::Never | Type::Unknown) {
            return index;
        }
        let index = Box::new(index);
        match (base.ty.clone(), base.kind) {
            (Type::Array(element, _), K::Field { base, field, .. }) => {
                Expr::new(*element, K::Field { base, field, index: Some(index) }, span)
            }
            (Type::Bytes, kind) => {
                let base = Expr::new(Type::Bytes, kind, base.span);
                Expr::new(Type::Int(Int::UCHAR), K::ByteAt(Box::new(base), index), span)
            }
            (Type::Never | Type::Unknown, _) => unknown(span),
            (ty, _) => {
                let d = Diagnostic::error("this has no elements", base.span);
                self.report(d.at(format!("of type {}", self.name_of(&ty))));
                unknown(span)
            }
        }
    }
}
