// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every other reason to refuse a program.

use super::*;
use crate::instruction::helper;

/// Asserts that the last instruction before the exit faults.
fn assert_fault(program: Vec<Instruction>, reason: Reason) {
    let at = program.len() - 1;
    let program = program![program, EXIT];
    let mut machine = Machine { maps: vec![Map::array(2, 16), Map::hash(2, 4, 8)], ..Machine::default() };
    let found = machine.run(&program, &mut frame());
    assert_eq!(found, fault(at, reason), "{:?}", program[at]);
}

#[test]
fn programs_have_to_end() {
    assert_eq!(run(&[]), fault(0, Reason::NoExit));
    assert_eq!(run(&[set(0, 0)]), fault(0, Reason::NoExit));
    assert_eq!(run(&[set(0, 0), i(code::JUMP | code::JNE, 0, 0, -2, 0)]), fault(1, Reason::NoExit));
    assert_eq!(run(&program![constant(0, 0)]), fault(0, Reason::NoExit));
    assert_eq!(run(&[i(code::WIDE, 0, 0, 0, 0)]), fault(0, Reason::HalfConstant));
}

#[test]
fn jumps_stay_inside() {
    for (distance, target) in [(1, 2), (-2, -1), (i16::MAX, 32_768), (i16::MIN, -32_767)] {
        assert_eq!(run(&[i(code::JUMP, 0, 0, distance, 0), EXIT]), fault(0, Reason::JumpOutside(target)));
    }
    for (distance, target) in [(i32::MAX, 1 << 31), (i32::MIN, 1 - (1 << 31))] {
        assert_eq!(run(&[i(code::JUMP32, 0, 0, 0, distance), EXIT]), fault(0, Reason::JumpOutside(target)));
    }
    // A jump into the middle of a constant.
    let middle = program![i(code::JUMP, 0, 0, 1, 0), constant(0, 0), EXIT];
    assert_eq!(run(&middle), fault(2, Reason::UnknownCode(0)));
}

#[test]
fn unknown_codes_are_refused() {
    // Absolute loads, a signed load of 64 bits, an atomic addition of 16 bits, unknown operations.
    let unknown = [
        0x00,
        0x20,
        0x40,
        code::LOAD_SIGNED | code::DW,
        code::ATOMIC | code::H,
        code::ATOMIC | code::B,
        code::ALU64 | 0xe0,
        code::ALU | 0xf0,
        code::ALU64 | code::END | code::REGISTER,
        code::JUMP | 0xe0,
        code::JUMP32 | 0xf0,
        code::JUMP32 | 0x80,
        code::JUMP32 | 0x90,
    ];
    for code in unknown {
        let start = program![set(0, 0), set(2, 1), set(3, 1)];
        let width = if code == code::ALU64 | code::END | code::REGISTER { 16 } else { 0 };
        assert_fault(program![start, i(code, 2, 0, 0, width)], Reason::UnknownCode(code));
    }
    for function in [0, 4, 66, -1] {
        assert_fault(program![call(function)], Reason::UnknownFunction(function));
    }
}

#[test]
fn unused_fields_are_zero() {
    let register = code::REGISTER;
    let (add, mov) = (code::ALU64 | code::ADD, code::MOV);
    let jump = code::JUMP | code::JEQ;
    for wrong in [
        i(add, 2, 3, 0, 1),
        i(add, 2, 0, 1, 1),
        i(add | register, 2, 3, 0, 1),
        i(code::ALU64 | code::DIV, 2, 0, 2, 1),
        i(code::ALU64 | mov, 2, 0, 8, 1),
        i(code::ALU64 | mov | register, 2, 3, 7, 0),
        i(code::ALU | mov | register, 2, 3, 32, 0),
        i(code::ALU64 | code::NEG, 2, 0, 0, 1),
        i(code::ALU64 | code::NEG | register, 2, 3, 0, 0),
        i(code::ALU | code::END, 2, 0, 0, 8),
        i(code::ALU | code::END, 2, 0, 1, 16),
        i(code::ALU | code::END, 2, 3, 0, 16),
        i(jump, 2, 3, 0, 1),
        i(jump | register, 2, 3, 0, 1),
        i(code::JUMP, 1, 0, 0, 0),
        i(code::JUMP, 0, 0, 0, 1),
        i(code::JUMP | register, 0, 0, 0, 0),
        i(code::JUMP32, 0, 0, 1, 0),
        i(code::LOAD, 2, 1, 0, 1),
        i(code::STORE, 10, 2, -4, 1),
        i(code::STORE_CONSTANT, 10, 2, -4, 1),
        i(code::ATOMIC, 10, 2, -4, 0xf1),
        i(code::CALL, 0, 1, 0, helper::KTIME),
        i(code::CALL, 0, 0, 1, helper::KTIME),
        i(code::EXIT, 0, 0, 0, 1),
        i(code::EXIT, 0, 1, 0, 0),
        i(code::EXIT, 0, 0, 1, 0),
    ] {
        assert_fault(program![set(2, 1), set(3, 1), set(0, 0), wrong], Reason::InvalidField);
    }
    let zero = i(0, 0, 0, 0, 0);
    for (first, second) in [
        (i(code::WIDE, 0, 0, 1, 0), zero),
        (i(code::WIDE, 0, 3, 0, 0), zero),
        (i(code::WIDE, 0, code::MAP, 0, 0), i(0, 0, 0, 0, 1)),
        (i(code::WIDE, 0, 0, 0, 0), i(0, 1, 0, 0, 0)),
        (i(code::WIDE, 0, 0, 0, 0), i(0, 0, 0, 1, 0)),
        (i(code::WIDE, 0, 0, 0, 0), EXIT),
    ] {
        assert_eq!(run(&[first, second, EXIT]), fault(0, Reason::InvalidField), "{first:?} {second:?}");
    }
}

#[test]
fn registers_are_checked() {
    for register in [0, 2, 3, 4, 5, 6, 7, 8, 9] {
        let reason = Reason::Uninitialized(register);
        assert_fault(program![copy(0, register)], reason);
        assert_fault(program![add(register, 1)], reason);
        assert_fault(program![store(code::DW, 10, -8, register)], reason);
        assert_fault(program![load(code::B, 0, register, 0)], reason);
        assert_fault(program![i(code::JUMP | code::JEQ, register, 0, 0, 0)], reason);
    }
    assert_eq!(run(&[EXIT]), fault(0, Reason::Uninitialized(0)));
    for register in 1..6 {
        let after = program![set(register, 1), call(helper::KTIME), copy(0, register)];
        assert_fault(after, Reason::Uninitialized(register));
    }
    for register in 11..16 {
        assert_fault(program![set(register, 1)], Reason::UnknownRegister(register));
        assert_fault(program![copy(0, register)], Reason::UnknownRegister(register));
    }
    for write in [set(10, 1), add(10, -8), load(code::W, 10, 1, 12)] {
        assert_fault(program![write], Reason::FramePointer);
    }
    assert_eq!(run(&program![constant(10, 1), EXIT]), fault(0, Reason::FramePointer));
}

#[test]
fn only_memory_is_accessed() {
    for (pointer, reason) in [
        (set(2, 0).part(), Reason::NullPointer),
        (set(2, 8).part(), Reason::NotMemory),
        (map(2, 0).part(), Reason::NotMemory),
    ] {
        assert_fault(program![pointer.clone(), load(code::B, 0, 2, 0)], reason);
        assert_fault(program![pointer.clone(), store_constant(code::B, 2, 0, 0)], reason);
        assert_fault(program![pointer, set(3, 1), i(code::ATOMIC, 2, 3, 0, 0)], reason);
    }
    let end = load(code::W, 2, 1, 4);
    assert_fault(program![end, load(code::B, 0, 2, -1)], Reason::EndPointer);
    assert_fault(program![end, store_constant(code::B, 2, -1, 0)], Reason::EndPointer);
    assert_fault(program![end, add(2, -1)], Reason::EndPointer);
    for index in [2, -1] {
        let unknown = program![map(0, index), EXIT];
        let mut machine = Machine { maps: vec![Map::array(2, 8); 2], ..Machine::default() };
        assert_eq!(machine.run(&unknown, &mut frame()), fault(0, Reason::UnknownMap(index)));
    }
}

#[test]
fn stack_and_atomic_accesses_are_aligned() {
    for (size, offset) in [(code::H, -3), (code::W, -6), (code::DW, -12)] {
        assert_fault(program![store_constant(size, 10, offset, 0)], Reason::Misaligned);
        assert_fault(program![set(2, 0), store(size, 10, offset, 2)], Reason::Misaligned);
        let written: Vec<_> = (-16..0).map(|at| store_constant(code::B, 10, at, 0)).collect();
        assert_fault(program![written, load(size, 0, 10, offset)], Reason::Misaligned);
    }
    let value = program![
        map(1, 0),
        store_constant(code::W, 10, -4, 0),
        copy(2, 10),
        add(2, -4),
        call(helper::MAP_LOOKUP),
        set(3, 1)
    ];
    let atomic = |size, offset| i(code::ATOMIC | size, 0, 3, offset, 0);
    assert_fault(program![value.clone(), atomic(code::W, 2)], Reason::Misaligned);
    assert_fault(program![value.clone(), atomic(code::DW, 4)], Reason::Misaligned);
    let outside = Reason::OutsideValue { offset: 16, size: 8 };
    assert_fault(program![value, atomic(code::DW, 16)], outside);
    let packet = program![load(code::W, 2, 1, 0), set(3, 1), i(code::ATOMIC, 2, 3, 0, 0)];
    assert_fault(packet, Reason::AtomicPlace);
    assert_fault(program![set(3, 1), i(code::ATOMIC, 1, 3, 12, 0)], Reason::AtomicPlace);
    let unwritten = program![set(3, 1), i(code::ATOMIC, 10, 3, -4, 0)];
    assert_fault(unwritten, Reason::UnwrittenStack(-4));
}

#[test]
fn arithmetic_on_pointers_is_limited() {
    let data = load(code::W, 2, 1, 0);
    let (long, short, register) = (code::ALU64, code::ALU, code::REGISTER);
    let reason = Reason::PointerArithmetic;
    for operation in
        [code::MUL, code::DIV, code::OR, code::AND, code::LSH, code::RSH, code::MOD, code::XOR, code::ARSH]
    {
        assert_fault(program![data, i(long | operation, 2, 0, 0, 1)], reason);
    }
    for wrong in [
        i(long | code::NEG, 2, 0, 0, 0),
        i(short | code::END, 2, 0, 0, 16),
        i(short | code::ADD, 2, 0, 0, 1),
        i(short | code::MOV | register, 3, 2, 0, 0),
        i(long | code::MOV | register, 3, 2, 8, 0),
        i(long | code::ADD | register, 2, 2, 0, 0),
        i(long | code::SUB | register, 2, 10, 0, 0),
        i(long | code::SUB | register, 4, 2, 0, 0),
        add(1, 4),
    ] {
        assert_fault(program![data, set(4, 1), wrong], reason);
    }
    assert_fault(program![map(2, 0), add(2, 1)], reason);
    assert_fault(program![i(code::ATOMIC | code::DW, 10, 1, -8, 0)], reason);
    for far in [i32::MAX, i32::MIN, 1 << 29, -(1 << 29)] {
        assert_fault(program![copy(2, 10), add(2, far)], Reason::FarPointer);
    }
    for far in [i32::MAX, i32::MIN] {
        assert_fault(program![load(code::W, 2, 1, 0), add(2, far)], Reason::FarPointer);
    }
    let subtract = i(long | code::SUB | register, 2, 3, 0, 0);
    assert_fault(program![data, constant(3, 1 << 63), subtract], Reason::FarPointer);
}

#[test]
fn comparisons_of_pointers_are_limited() {
    let data = program![load(code::W, 2, 1, 0), load(code::W, 3, 1, 4), set(4, 0), set(5, 8)];
    let (long, register) = (code::JUMP, code::REGISTER);
    for wrong in [
        i(long | code::JSGT | register, 2, 3, 0, 0),
        i(long | code::JSET | register, 2, 3, 0, 0),
        i(code::JUMP32 | code::JEQ | register, 2, 3, 0, 0),
        i(code::JUMP32 | code::JEQ, 2, 0, 0, 0),
        i(long | code::JGT, 2, 0, 0, 0),
        i(long | code::JEQ, 2, 0, 0, 8),
        i(long | code::JEQ | register, 5, 2, 0, 0),
        i(long | code::JEQ | register, 2, 10, 0, 0),
        i(long | code::JEQ | register, 10, 10, 0, 0),
    ] {
        assert_fault(program![data.clone(), wrong], Reason::PointerComparison);
    }
    // A pointer is not null.
    for (jump, taken) in [
        (i(long | code::JEQ, 2, 0, 1, 0), false),
        (i(long | code::JNE, 2, 0, 1, 0), true),
        (i(long | code::JEQ | register, 4, 2, 1, 0), false),
    ] {
        let program = program![data.clone(), set(0, 1), jump, set(0, 0), EXIT];
        assert_eq!(run(&program).map(|run| run.result == 1), Ok(taken));
    }
}

#[test]
fn pointers_do_not_leave_the_program() {
    let data = load(code::W, 2, 1, 0);
    for wrong in [
        store(code::DW, 2, 0, 2),
        store(code::DW, 2, 0, 10),
        store(code::W, 10, -8, 2),
        store(code::DW, 10, -12, 2),
    ] {
        assert_fault(program![data, wrong], Reason::PointerStored);
    }
    assert_eq!(run(&[copy(0, 10), EXIT]), fault(1, Reason::PointerResult));
    assert_fault(program![store(code::DW, 10, 0, 10)], Reason::OutsideStack { offset: 0, size: 8 });
}

#[test]
fn arguments_are_checked() {
    let key = program![store_constant(code::W, 10, -4, 0), copy(2, 10), add(2, -4)];
    let lookup = call(helper::MAP_LOOKUP);
    assert_fault(program![key.clone(), lookup], Reason::Argument(1));
    assert_fault(program![map(1, 0), lookup], Reason::Uninitialized(2));
    assert_fault(program![map(1, 0), set(2, 0), lookup], Reason::NullPointer);
    assert_fault(program![copy(2, 1), map(1, 0), lookup], Reason::Argument(2));
    let unwritten = program![copy(2, 10), add(2, -4), map(1, 0), lookup];
    assert_fault(unwritten, Reason::UnwrittenStack(-4));
    let update = call(helper::MAP_UPDATE);
    let hash = program![key.clone(), map(1, 1)];
    assert_fault(program![hash.clone(), update], Reason::Uninitialized(3));
    assert_fault(program![hash.clone(), copy(3, 1), update], Reason::Argument(3));
    let short = program![hash.clone(), copy(3, 10), add(3, -4), update];
    assert_fault(short, Reason::OutsideStack { offset: -4, size: 8 });
    let value = program![store_constant(code::DW, 10, -16, 0), copy(3, 10), add(3, -16)];
    assert_fault(program![hash.clone(), value.clone(), update], Reason::Uninitialized(4));
    assert_fault(program![hash, value, copy(4, 10), update], Reason::Argument(4));
    assert_fault(program![key, call(helper::MAP_DELETE)], Reason::Argument(1));
    for function in [helper::ADJUST_HEAD, helper::ADJUST_META, helper::ADJUST_TAIL] {
        assert_fault(program![call(function)], Reason::Uninitialized(2));
        assert_fault(program![copy(2, 10), call(function)], Reason::Argument(2));
        assert_fault(program![set(1, 0), set(2, 0), call(function)], Reason::Argument(1));
    }
    let redirect = call(helper::REDIRECT_MAP);
    assert_fault(program![set(2, 0), set(3, 0), redirect], Reason::Argument(1));
    assert_fault(program![map(1, 0), copy(2, 10), set(3, 0), redirect], Reason::Argument(2));
    assert_fault(program![map(1, 0), set(2, 0), redirect], Reason::Uninitialized(3));
}
