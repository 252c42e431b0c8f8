// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic and comparisons of numbers (RFC 9669 sections 4.1 to 4.3).

use crate::instruction::code;

/// The two operands of an operation on 32 or 64 bits, without and with sign.
struct Operands {
    to: u64,
    from: u64,
    signed_to: i64,
    signed_from: i64,
}

impl Operands {
    fn new(wide: bool, to: u64, from: u64) -> Operands {
        if wide {
            Operands { to, from, signed_to: to as i64, signed_from: from as i64 }
        } else {
            let (to, from) = (to as u32, from as u32);
            Operands {
                to: u64::from(to),
                from: u64::from(from),
                signed_to: i64::from(to as i32),
                signed_from: i64::from(from as i32),
            }
        }
    }
}

/// The result of an operation on 64 bits if `wide`, else on 32. Returns nothing if the operation is unknown. `signed`
/// selects the signed division and remainder.
pub(super) fn result(operation: u8, wide: bool, signed: bool, to: u64, from: u64) -> Option<u64> {
    let o = Operands::new(wide, to, from);
    // RFC 9669 section 4.1: the distance of a shift is masked.
    let distance = (from & if wide { 63 } else { 31 }) as u32;
    let result = match operation {
        code::ADD => o.to.wrapping_add(o.from),
        code::SUB => o.to.wrapping_sub(o.from),
        code::MUL => o.to.wrapping_mul(o.from),
        code::DIV | code::MOD if o.from == 0 => {
            if operation == code::DIV {
                0
            } else {
                o.to
            }
        }
        code::DIV if signed => o.signed_to.wrapping_div(o.signed_from) as u64,
        code::DIV => o.to / o.from,
        code::MOD if signed => o.signed_to.wrapping_rem(o.signed_from) as u64,
        code::MOD => o.to % o.from,
        code::OR => o.to | o.from,
        code::AND => o.to & o.from,
        code::XOR => o.to ^ o.from,
        code::LSH => o.to << distance,
        code::RSH => o.to >> distance,
        code::ARSH => (o.signed_to >> distance) as u64,
        code::NEG => o.to.wrapping_neg(),
        code::MOV => o.from,
        _ => return None,
    };
    Some(if wide { result } else { u64::from(result as u32) })
}

/// Tells whether a comparison holds. Returns nothing if it is unknown.
pub(super) fn holds(comparison: u8, wide: bool, to: u64, from: u64) -> Option<bool> {
    let o = Operands::new(wide, to, from);
    Some(match comparison {
        code::JEQ => o.to == o.from,
        code::JNE => o.to != o.from,
        code::JGT => o.to > o.from,
        code::JGE => o.to >= o.from,
        code::JLT => o.to < o.from,
        code::JLE => o.to <= o.from,
        code::JSET => o.to & o.from != 0,
        code::JSGT => o.signed_to > o.signed_from,
        code::JSGE => o.signed_to >= o.signed_from,
        code::JSLT => o.signed_to < o.signed_from,
        code::JSLE => o.signed_to <= o.signed_from,
        _ => return None,
    })
}

/// The lowest `width` bits with their bytes reversed if `reverse`. Returns nothing if the width is not allowed.
pub(super) fn ordered(number: u64, width: i32, reverse: bool) -> Option<u64> {
    Some(match (width, reverse) {
        (16, false) => number & 0xffff,
        (32, false) => number & 0xffff_ffff,
        (64, false) => number,
        (16, true) => u64::from((number as u16).swap_bytes()),
        (32, true) => u64::from((number as u32).swap_bytes()),
        (64, true) => number.swap_bytes(),
        _ => return None,
    })
}

/// The lowest `width` bits with sign extension. Returns nothing if the width is not allowed.
pub(super) fn extended(number: u64, width: i16) -> Option<u64> {
    Some(match width {
        8 => number as i8 as u64,
        16 => number as i16 as u64,
        32 => number as i32 as u64,
        _ => return None,
    })
}
