// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic on the numbers of the language. A number is kept in the low bits of 64, the others are 0.
//!
//! Every operation has a result: sums wrap, a quotient by 0 is 0, a shift by the width or more leaves no bit of an
//! unsigned number and only the sign of a signed one.

use crate::program::{Int, Type};
use crate::tree::BinOp;

/// The bits and the sign of a type of numbers.
fn shape(ty: &Type) -> (u32, bool) {
    match ty {
        Type::Int(Int { bits, signed }) => (u32::from(*bits), *signed),
        Type::Bool => (1, false),
        _ => (32, false),
    }
}

/// The low bits of a number that its type has.
pub fn truncate(n: u64, ty: &Type) -> u64 {
    let (bits, _) = shape(ty);
    if bits >= 64 { n } else { n & ((1 << bits) - 1) }
}

/// The number with its sign.
pub fn signed(n: u64, ty: &Type) -> i64 {
    let (bits, signed) = shape(ty);
    if signed { ((n << (64 - bits)) as i64) >> (64 - bits) } else { n as i64 }
}

/// Converts a number from one type to another.
pub fn convert(n: u64, from: &Type, to: &Type) -> u64 {
    truncate(signed(n, from) as u64, to)
}

/// The value of an operation on two numbers of a type. Comparisons give 0 or 1.
pub fn binary(op: BinOp, ty: &Type, a: u64, b: u64) -> u64 {
    let (bits, is_signed) = shape(ty);
    let (x, y) = (signed(a, ty), signed(b, ty));
    // Sequence numbers are compared by the sign of their distance.
    let less = |a: u64, b: u64| match ty {
        Type::Seq => (a.wrapping_sub(b) as u32 as i32) < 0,
        _ if is_signed => signed(a, ty) < signed(b, ty),
        _ => a < b,
    };
    let n = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div if is_signed => x.checked_div(y).unwrap_or(if y == 0 { 0 } else { x }) as u64,
        BinOp::Rem if is_signed => x.checked_rem(y).unwrap_or(0) as u64,
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinOp::Shl => u32::try_from(b).ok().filter(|n| *n < bits).map_or(0, |n| a << n),
        BinOp::Shr => match u32::try_from(b).ok().filter(|n| *n < bits) {
            Some(n) if is_signed => (x >> n) as u64,
            Some(n) => a >> n,
            None if is_signed && x < 0 => u64::MAX,
            None => 0,
        },
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Eq => u64::from(a == b),
        BinOp::Ne => u64::from(a != b),
        BinOp::Lt => u64::from(less(a, b)),
        BinOp::Gt => u64::from(less(b, a)),
        BinOp::Le => u64::from(a == b || less(a, b)),
        BinOp::Ge => u64::from(a == b || less(b, a)),
        BinOp::Max => return if less(a, b) { b } else { a },
        BinOp::Min => return if less(b, a) { b } else { a },
    };
    truncate(n, ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_result() {
        let (char, uchar, int) =
            (Type::Int(Int { bits: 8, signed: true }), Type::Int(Int::UCHAR), Type::Int(Int::INT));
        for (op, ty, a, b, want) in [
            (BinOp::Add, &uchar, 250, 10, 4),
            (BinOp::Div, &uchar, 250, 0, 0),
            (BinOp::Div, &char, 0x80, 0xff, 0x80),
            (BinOp::Rem, &char, 0x80, 0xff, 0),
            (BinOp::Div, &char, 0xf9, 2, 0xfd),
            (BinOp::Shl, &int, 1, 31, 0x8000_0000),
            (BinOp::Shl, &int, 1, 32, 0),
            (BinOp::Shr, &int, 0x8000_0000, 40, 0xffff_ffff),
            (BinOp::Shr, &uchar, 0x80, 7, 1),
            (BinOp::Lt, &char, 0xff, 0, 1),
            (BinOp::Lt, &uchar, 0xff, 0, 0),
            (BinOp::Max, &int, 0xffff_ffff, 1, 1),
        ] {
            assert_eq!(binary(op, ty, a, b), want, "{op:?} {a} {b}");
        }
        assert_eq!(convert(0xff, &char, &int), 0xffff_ffff);
        assert_eq!(convert(0x1ff, &int, &uchar), 0xff);
    }

    #[test]
    fn sequence_numbers_are_compared_by_distance() {
        let less = |a: u64, b: u64| binary(BinOp::Lt, &Type::Seq, a, b) == 1;
        assert!(less(0xffff_fff0, 5) && !less(5, 0xffff_fff0) && !less(7, 7));
        assert_eq!(binary(BinOp::Max, &Type::Seq, 0xffff_fff0, 5), 5);
        assert_eq!(binary(BinOp::Min, &Type::Seq, 0xffff_fff0, 5), 0xffff_fff0);
        assert_eq!(binary(BinOp::Ge, &Type::Seq, 5, 0xffff_fff0), 1);
    }
}
