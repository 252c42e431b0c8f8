// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers: literals, operations, conversions.

use super::Printer;
use super::exprs::{ATOM, BITS, CAST, COMPARE, Code, MUL, SHIFT, UNARY};
use crate::arith;
use crate::program::{ModuleId, Type};
use crate::tree::{BinOp, Expr, ExprKind as K, Prefix};

/// The number of a literal with its sign.
fn literal(e: &Expr) -> Option<i128> {
    match (&e.kind, &e.ty) {
        (K::Int(n), Type::Int(i)) if !i.signed => Some(i128::from(*n)),
        (K::Int(n), ty) => Some(i128::from(arith::signed(*n, ty))),
        _ => None,
    }
}

fn bits(ty: &Type) -> u32 {
    match ty {
        Type::Int(i) => u32::from(i.bits),
        _ => 32,
    }
}

fn is_signed(ty: &Type) -> bool {
    matches!(ty, Type::Int(i) if i.signed)
}

/// The least and the greatest number of a type.
fn limits(ty: &Type) -> (i128, i128) {
    match is_signed(ty) {
        true => (-(1 << (bits(ty) - 1)), (1 << (bits(ty) - 1)) - 1),
        false => (0, (1 << bits(ty)) - 1),
    }
}

/// Whether the text of an expression has a type of its own, so that methods can be called on it.
fn is_typed(e: &Expr) -> bool {
    match &e.kind {
        K::Int(_) | K::Cond(..) | K::LetSome(..) | K::Default(..) | K::Try(..) | K::Convert(_) => false,
        K::Prefix(Prefix::BitNot, inner) => is_typed(inner),
        K::Binary(op, a, _) => matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) || is_typed(a),
        K::Let(_, _, body) | K::LetObject { body, .. } | K::Inlined { body, .. } => is_typed(body),
        K::Seq(all) => all.last().is_some_and(is_typed),
        _ => true,
    }
}

impl Printer<'_> {
    pub(super) fn number(&self, n: u64, ty: &Type, suffix: bool) -> Code {
        let text = match is_signed(ty) {
            true => arith::signed(n, ty).to_string(),
            false => n.to_string(),
        };
        let suffix = if suffix { self.ty(ty) } else { String::new() };
        let strength = if text.starts_with('-') { UNARY } else { ATOM };
        Code::of(strength, text + &suffix)
    }

    /// A method of a number.
    pub(super) fn method_call(&mut self, receiver: &Expr, method: &str, args: &[String]) -> Code {
        let ty = self.ty(&receiver.ty);
        if let K::Int(n) = receiver.kind {
            let plain = self.number(n, &receiver.ty, false).text;
            let text = if plain.starts_with('-') { format!("({plain}{ty})") } else { format!("{plain}{ty}") };
            return Code::atom(format!("{text}.{method}({})", args.join(", ")));
        }
        let code = self.value(receiver);
        if is_typed(receiver) {
            return Code::atom(format!("{}.{method}({})", code.at_least(ATOM), args.join(", ")));
        }
        let args: String = args.iter().map(|a| format!(", {a}")).collect();
        Code::atom(format!("{ty}::{method}({}{args})", code.text))
    }

    /// The text on the left of `<`, `<<` or another operator, where a cast would be misread.
    fn left(&mut self, e: &Expr, strength: u8) -> String {
        let code = self.value(e);
        if code.strength == CAST { format!("({})", code.text) } else { code.at_least(strength) }
    }

    pub(super) fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Code {
        match (&a.ty, op) {
            (Type::Bytes, _) => {
                let method = if op == BinOp::Add { "after" } else { "before" };
                let text = format!("{}.{method}({})", self.value(a).at_least(ATOM), self.bare(b).text);
                return Code::atom(text);
            }
            (Type::Seq, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge | BinOp::Max | BinOp::Min) => {
                let name = match op {
                    BinOp::Lt => "lt",
                    BinOp::Le => "le",
                    BinOp::Gt => "gt",
                    BinOp::Ge => "ge",
                    BinOp::Max => "max",
                    _ => "min",
                };
                return Code::atom(format!(
                    "runtime::seq_{name}({}, {})",
                    self.bare(a).text,
                    self.bare(b).text
                ));
            }
            _ => {}
        }
        let arg = |s: &mut Self| vec![s.bare(b).text];
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Max | BinOp::Min => {
                let method = match op {
                    BinOp::Add => "wrapping_add",
                    BinOp::Sub => "wrapping_sub",
                    BinOp::Mul => "wrapping_mul",
                    BinOp::Max => "max",
                    _ => "min",
                };
                let args = arg(self);
                self.method_call(a, method, &args)
            }
            BinOp::Div | BinOp::Rem => {
                if literal(b).is_some_and(|n| n != 0 && n != -1) {
                    let sign = if op == BinOp::Div { "/" } else { "%" };
                    let (a, b) = (self.left(a, MUL), self.bare(b).at_least(MUL + 1));
                    return Code::of(MUL, format!("{a} {sign} {b}"));
                }
                let args = arg(self);
                self.method_call(a, if op == BinOp::Div { "over" } else { "modulo" }, &args)
            }
            BinOp::Shl | BinOp::Shr => {
                if literal(b).is_some_and(|n| (0..i128::from(bits(&a.ty))).contains(&n)) {
                    let sign = if op == BinOp::Shl { "<<" } else { ">>" };
                    let (a, b) = (self.left(a, SHIFT), self.bare(b).text);
                    return Code::of(SHIFT, format!("{a} {sign} {b}"));
                }
                let args = arg(self);
                self.method_call(a, if op == BinOp::Shl { "left" } else { "right" }, &args)
            }
            BinOp::And | BinOp::Or | BinOp::Xor => {
                let sign = match op {
                    BinOp::And => "&",
                    BinOp::Or => "|",
                    _ => "^",
                };
                // Operators of one kind need no parentheses on the left; others get them, for readers.
                let left = match &a.kind {
                    K::Binary(inner, ..) if *inner == op => self.left(a, BITS),
                    _ => self.left(a, SHIFT),
                };
                let right = self.bare(b).at_least(SHIFT);
                Code::of(BITS, format!("{left} {sign} {right}"))
            }
            _ => self.comparison(op, a, b),
        }
    }

    fn comparison(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Code {
        let (sign, method) = match op {
            BinOp::Eq => ("==", "eq"),
            BinOp::Ne => ("!=", "ne"),
            BinOp::Lt => ("<", "lt"),
            BinOp::Le => ("<=", "le"),
            BinOp::Gt => (">", "gt"),
            _ => (">=", "ge"),
        };
        let (least, greatest) = limits(&a.ty);
        let (left, right) = (literal(a), literal(b));
        let settled = match op {
            BinOp::Lt | BinOp::Ge => right == Some(least) || left == Some(greatest),
            BinOp::Gt | BinOp::Le => right == Some(greatest) || left == Some(least),
            _ => false,
        };
        if settled {
            // The compiler of Rust warns of comparisons that always have the same outcome.
            let arg = format!("&{}", self.value(b).at_least(UNARY));
            let ty = self.ty(&a.ty);
            let a = self.value(a).at_least(UNARY);
            return Code::atom(format!("{ty}::{method}(&{a}, {arg})"));
        }
        let (a, b) = (self.left(a, COMPARE + 1), self.bare(b).at_least(COMPARE + 1));
        Code::of(COMPARE, format!("{a} {sign} {b}"))
    }

    pub(super) fn conversion(&mut self, e: &Expr, to: &Type) -> Code {
        let (from_text, to_text) = (self.ty(&e.ty), self.ty(to));
        match (&e.ty, to) {
            (Type::Int(_) | Type::Seq | Type::Bool, Type::Int(_) | Type::Seq) if from_text != to_text => {
                let code = self.value(e);
                // A block before `as` would be a statement.
                let operand = code.at_least(CAST);
                Code::of(CAST, format!("{operand} as {to_text}"))
            }
            _ => self.value(e),
        }
    }

    pub(super) fn downcast(&mut self, module: ModuleId, e: &Expr) -> Code {
        let pointer = self.value(e).text;
        if self.is_punned(module) {
            return Code::atom(format!("Some({pointer})"));
        }
        let root = self.root(module);
        let (name, arena) = (self.names.structs[&root].clone(), self.names.arenas[&root].clone());
        let kinds: Vec<String> = self
            .instantiated
            .iter()
            .filter(|m| self.p.extends(**m, module))
            .map(|m| format!("{name}Kind::{}", self.names.kinds[m]))
            .collect();
        if kinds.is_empty() {
            let effect = self.statement(e);
            return Code::block(format!("{{\n{effect}None\n}}"));
        }
        let test = format!("matches!(cx.{arena}(*p).kind.get(), {})", kinds.join(" | "));
        Code::atom(format!("Some({pointer}).filter(|p| {test})"))
    }
}
