// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic and jumps on edge values, against plain Rust.

use super::*;

const EDGES: [u64; 26] = [
    0,
    1,
    2,
    7,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    i64::MAX as u64,
    i64::MIN as u64,
    i64::MIN as u64 + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// An operation with one operand in plain Rust.
type Plain = fn(u64) -> u64;
/// An operation, the offset in its instruction, and the same in plain Rust for 64 and 32 bits.
type Operation = (u8, i16, fn(u64, u64) -> u64, fn(u32, u32) -> u32);

const OPERATIONS: [Operation; 14] = [
    (code::ADD, 0, u64::wrapping_add, u32::wrapping_add),
    (code::SUB, 0, u64::wrapping_sub, u32::wrapping_sub),
    (code::MUL, 0, u64::wrapping_mul, u32::wrapping_mul),
    (code::DIV, 0, |a, b| a.checked_div(b).unwrap_or(0), |a, b| a.checked_div(b).unwrap_or(0)),
    (code::MOD, 0, |a, b| a.checked_rem(b).unwrap_or(a), |a, b| a.checked_rem(b).unwrap_or(a)),
    (
        code::DIV,
        1,
        |a, b| if b == 0 { 0 } else { (a as i64).wrapping_div(b as i64) as u64 },
        |a, b| if b == 0 { 0 } else { (a as i32).wrapping_div(b as i32) as u32 },
    ),
    (
        code::MOD,
        1,
        |a, b| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 },
        |a, b| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 },
    ),
    (code::OR, 0, |a, b| a | b, |a, b| a | b),
    (code::AND, 0, |a, b| a & b, |a, b| a & b),
    (code::XOR, 0, |a, b| a ^ b, |a, b| a ^ b),
    (code::LSH, 0, |a, b| a.wrapping_shl(b as u32), u32::wrapping_shl),
    (code::RSH, 0, |a, b| a.wrapping_shr(b as u32), u32::wrapping_shr),
    (
        code::ARSH,
        0,
        |a, b| (a as i64).wrapping_shr(b as u32) as u64,
        |a, b| (a as i32).wrapping_shr(b) as u32,
    ),
    (code::MOV, 0, |_, b| b, |_, b| b),
];

#[test]
fn arithmetic_is_as_in_rust() {
    for (operation, offset, long, short) in OPERATIONS {
        for (a, b) in EDGES.into_iter().flat_map(|a| EDGES.map(|b| (a, b))) {
            let case = format!("{operation:#x}/{offset} {a:#x} {b:#x}");
            let registers = |class: u8| {
                let code = class | operation | code::REGISTER;
                number(program![constant(6, a), constant(2, b), i(code, 6, 2, offset, 0)])
            };
            assert_eq!(registers(code::ALU64), Ok(long(a, b)), "{case}");
            assert_eq!(registers(code::ALU), Ok(short(a as u32, b as u32).into()), "{case}");
            let immediate = b as i32;
            let constants =
                |class: u8| number(program![constant(6, a), i(class | operation, 6, 0, offset, immediate)]);
            assert_eq!(constants(code::ALU64), Ok(long(a, immediate as i64 as u64)), "{case}");
            assert_eq!(constants(code::ALU), Ok(short(a as u32, immediate as u32).into()), "{case}");
        }
    }
}

#[test]
fn one_operand_is_as_in_rust() {
    let (alu, alu64) = (code::ALU, code::ALU64);
    let (neg, end, network) = (code::NEG, code::END, code::END | code::REGISTER);
    let operations: [(u8, i32, Plain); 11] = [
        (alu64 | neg, 0, u64::wrapping_neg),
        (alu | neg, 0, |a| (a as u32).wrapping_neg().into()),
        (alu | end, 16, |a| u16::from_le(a as u16).into()),
        (alu | end, 32, |a| u32::from_le(a as u32).into()),
        (alu | end, 64, u64::from_le),
        (alu | network, 16, |a| u16::from_be_bytes((a as u16).to_le_bytes()).into()),
        (alu | network, 32, |a| u32::from_be_bytes((a as u32).to_le_bytes()).into()),
        (alu | network, 64, |a| u64::from_be_bytes(a.to_le_bytes())),
        (alu64 | end, 16, |a| (a as u16).swap_bytes().into()),
        (alu64 | end, 32, |a| (a as u32).swap_bytes().into()),
        (alu64 | end, 64, u64::swap_bytes),
    ];
    for (operation, immediate, expected) in operations {
        for a in EDGES {
            let result = number(program![constant(6, a), i(operation, 6, 0, 0, immediate)]);
            assert_eq!(result, Ok(expected(a)), "{operation:#x} {immediate} {a:#x}");
        }
    }
}

#[test]
fn copies_with_sign_extension_are_as_in_rust() {
    let (short, long) = (code::ALU, code::ALU64);
    let operations: [(u8, i16, Plain); 5] = [
        (long, 8, |a| a as i8 as i64 as u64),
        (long, 16, |a| a as i16 as i64 as u64),
        (long, 32, |a| a as i32 as i64 as u64),
        (short, 8, |a| (a as i8 as i32 as u32).into()),
        (short, 16, |a| (a as i16 as i32 as u32).into()),
    ];
    for (class, width, expected) in operations {
        for a in EDGES {
            let copy = i(class | code::MOV | code::REGISTER, 6, 2, width, 0);
            let result = number(program![constant(6, 5), constant(2, a), copy]);
            assert_eq!(result, Ok(expected(a)), "{class} {width} {a:#x}");
        }
    }
}

#[test]
fn jumps_are_as_in_rust() {
    type Comparison = (u8, fn(u64, u64) -> bool, fn(u32, u32) -> bool);
    let comparisons: [Comparison; 11] = [
        (code::JEQ, |a, b| a == b, |a, b| a == b),
        (code::JNE, |a, b| a != b, |a, b| a != b),
        (code::JGT, |a, b| a > b, |a, b| a > b),
        (code::JGE, |a, b| a >= b, |a, b| a >= b),
        (code::JLT, |a, b| a < b, |a, b| a < b),
        (code::JLE, |a, b| a <= b, |a, b| a <= b),
        (code::JSET, |a, b| a & b != 0, |a, b| a & b != 0),
        (code::JSGT, |a, b| a as i64 > b as i64, |a, b| a as i32 > b as i32),
        (code::JSGE, |a, b| a as i64 >= b as i64, |a, b| a as i32 >= b as i32),
        (code::JSLT, |a, b| (a as i64) < b as i64, |a, b| (a as i32) < b as i32),
        (code::JSLE, |a, b| a as i64 <= b as i64, |a, b| a as i32 <= b as i32),
    ];
    for (comparison, long, short) in comparisons {
        for (a, b) in EDGES.into_iter().flat_map(|a| EDGES.map(|b| (a, b))) {
            let case = format!("{comparison:#x} {a:#x} {b:#x}");
            // The result is 1 if the jump is taken.
            let taken = |jump: Instruction| {
                let operands = program![constant(1, a), constant(2, b), set(0, 1)];
                run(&program![operands, jump, set(0, 0), EXIT]).map(|run| run.result == 1)
            };
            let registers = |class: u8| taken(i(class | comparison | code::REGISTER, 1, 2, 1, 0));
            assert_eq!(registers(code::JUMP), Ok(long(a, b)), "{case}");
            assert_eq!(registers(code::JUMP32), Ok(short(a as u32, b as u32)), "{case}");
            let immediate = b as i32;
            let constants = |class: u8| taken(i(class | comparison, 1, 0, 1, immediate));
            assert_eq!(constants(code::JUMP), Ok(long(a, immediate as i64 as u64)), "{case}");
            assert_eq!(constants(code::JUMP32), Ok(short(a as u32, immediate as u32)), "{case}");
        }
    }
}

#[test]
fn jumps_go_both_ways_and_far() {
    let back = program![i(code::JUMP, 0, 0, 2, 0), set(0, 9), EXIT, i(code::JUMP, 0, 0, -3, 0),];
    let far = program![i(code::JUMP32, 0, 0, 0, 40_000), vec![EXIT; 40_000], set(0, 9), EXIT];
    for (program, executed) in [(back, 4), (far, 3)] {
        assert_eq!(run(&program), Ok(Run { result: 9, executed, redirect: None }));
    }
}
