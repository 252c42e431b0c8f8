// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words and operators of the language. The parser takes them from here, and a test looks for an example of each in
//! the manual.

use super::ast::{BinOp, Hint, OperatorKind, UnOp};
use super::kind::{PUNCTUATION, SyntaxKind};

/// The reserved words that are no types.
pub(super) const RESERVED: &[&str] = &[
    "module",
    "field",
    "static",
    "const",
    "constructor",
    "exception",
    "let",
    "in",
    "else",
    "end",
    "try",
    "catch",
    "super",
    "self",
    "true",
    "false",
    "none",
    "new",
    "delete",
    "as",
    "inline",
    "noinline",
    "pathinline",
    "outline",
    "sizeof",
];

/// The words that are keywords in certain places and names elsewhere.
pub(super) const CONTEXTUAL: &[&str] =
    &["include", "hookup", "export", "host", "hide", "show", "using", "rename", "all", "at", "big", "little"];

/// The names of built-in types, which are reserved.
pub(crate) const BUILTIN: &[&str] = &[
    "void", "bool", "string", "bytes", "seqint", "int", "uint", "char", "uchar", "short", "ushort", "long",
    "ulong", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
];

/// Module operators by name.
pub(super) const OPERATORS: [(&str, OperatorKind); 8] = [
    ("hide", OperatorKind::Hide),
    ("show", OperatorKind::Show),
    ("using", OperatorKind::Using),
    ("rename", OperatorKind::Rename),
    ("inline", OperatorKind::Inline),
    ("noinline", OperatorKind::NoInline),
    ("pathinline", OperatorKind::PathInline),
    ("outline", OperatorKind::Outline),
];

/// The directions to the compiler that stand before expressions.
pub(super) const HINTS: [(&str, Hint); 4] = [
    ("inline", Hint::Inline),
    ("noinline", Hint::NoInline),
    ("pathinline", Hint::PathInline),
    ("outline", Hint::Outline),
];

/// The operators before an operand.
pub(super) const PREFIX: [(SyntaxKind, UnOp); 8] = [
    (SyntaxKind::Plus, UnOp::Plus),
    (SyntaxKind::Minus, UnOp::Neg),
    (SyntaxKind::Not, UnOp::Not),
    (SyntaxKind::Tilde, UnOp::BitNot),
    (SyntaxKind::Star, UnOp::Deref),
    (SyntaxKind::And, UnOp::AddressOf),
    (SyntaxKind::PlusPlus, UnOp::PreInc),
    (SyntaxKind::MinusMinus, UnOp::PreDec),
];

/// The beginnings of numbers that are not decimal, and their bases.
pub(super) const RADIXES: [(&str, u32); 2] = [("0x", 16), ("0b", 2)];

/// The binary operators that evaluate both operands, and their binding strengths.
pub(super) fn binary(kind: SyntaxKind) -> Option<(u8, BinOp)> {
    use SyntaxKind as K;
    Some(match kind {
        K::Or => (7, BinOp::Or),
        K::Caret => (8, BinOp::Xor),
        K::And => (9, BinOp::And),
        K::EqEq => (10, BinOp::Eq),
        K::NotEq => (10, BinOp::Ne),
        K::Less => (11, BinOp::Lt),
        K::LessEq => (11, BinOp::Le),
        K::More => (11, BinOp::Gt),
        K::MoreEq => (11, BinOp::Ge),
        K::Shl => (12, BinOp::Shl),
        K::Shr => (12, BinOp::Shr),
        K::Plus => (13, BinOp::Add),
        K::Minus => (13, BinOp::Sub),
        K::Star => (14, BinOp::Mul),
        K::Slash => (14, BinOp::Div),
        K::Percent => (14, BinOp::Rem),
        _ => return None,
    })
}

/// The operators that assign.
pub(super) fn assignment(kind: SyntaxKind) -> Option<Option<BinOp>> {
    use SyntaxKind as K;
    Some(match kind {
        K::Eq => None,
        K::PlusEq => Some(BinOp::Add),
        K::MinusEq => Some(BinOp::Sub),
        K::StarEq => Some(BinOp::Mul),
        K::SlashEq => Some(BinOp::Div),
        K::PercentEq => Some(BinOp::Rem),
        K::AndEq => Some(BinOp::And),
        K::OrEq => Some(BinOp::Or),
        K::CaretEq => Some(BinOp::Xor),
        K::ShlEq => Some(BinOp::Shl),
        K::ShrEq => Some(BinOp::Shr),
        K::MaxEq => Some(BinOp::Max),
        K::MinEq => Some(BinOp::Min),
        _ => return None,
    })
}

/// Every word and operator, with the kind of node in which it stands if its meaning depends on that.
pub fn words_and_operators() -> Vec<(&'static str, Option<SyntaxKind>)> {
    let words = [RESERVED, CONTEXTUAL, BUILTIN].concat();
    let mut all: Vec<_> = words.into_iter().map(|w| (w, None)).collect();
    all.extend(OPERATORS.iter().map(|(w, _)| (*w, Some(SyntaxKind::Operator))));
    all.extend(HINTS.iter().map(|(w, _)| (*w, Some(SyntaxKind::Unary))));
    // `:=` is no operator: the lexer accepts it only to report it.
    for (text, kind) in PUNCTUATION.iter().filter(|(_, k)| *k != SyntaxKind::ColonEq) {
        all.push((*text, None));
        let prefix = PREFIX.iter().any(|(k, _)| k == kind);
        all.extend(prefix.then_some((*text, Some(SyntaxKind::Unary))));
        let infix = binary(*kind).is_some() || assignment(*kind).is_some();
        all.extend(infix.then_some((*text, Some(SyntaxKind::Binary))));
    }
    all
}
