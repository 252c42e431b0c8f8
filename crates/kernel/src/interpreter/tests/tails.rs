// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tail calls.

use super::*;
use crate::instruction::helper;

/// A machine with a map of programs, and an array with one number.
fn machine(programs: Vec<Vec<Instruction>>) -> Machine {
    let mut map = Map::programs(programs.len() as u32 + 1);
    for index in 0..programs.len() as u32 {
        map.set(&index.to_le_bytes(), &index.to_le_bytes()).unwrap();
    }
    Machine { maps: vec![map, Map::array(1, 8)], programs, ..Machine::default() }
}

/// Calls a program of map 0. The context is in register 6.
fn tail_call(index: i32) -> Vec<Instruction> {
    program![copy(1, 6), map(2, 0), set(3, index), call(helper::TAIL_CALL)]
}

/// Adds 1 to the number.
fn count() -> Vec<Instruction> {
    program![copy(6, 1), map_value(7, 1, 0), load(code::DW, 0, 7, 0), add(0, 1), store(code::DW, 7, 0, 0)]
}

#[test]
fn tail_calls_go_on_with_another_program() {
    let second = program![set(0, 2), EXIT];
    let first = program![copy(6, 1), tail_call(0), set(0, 1), EXIT];
    let ran = machine(vec![second]).run(&first, &mut frame()).unwrap();
    assert_eq!((ran.result, ran.executed), (2, 7));
    // The map has no program at index 1.
    let first = program![copy(6, 1), tail_call(1), set(0, 1), EXIT];
    assert_eq!(machine(vec![program![set(0, 2), EXIT]]).run(&first, &mut frame()).unwrap().result, 1);
    // The map names a program that does not exist.
    let mut machine = machine(vec![program![EXIT]]);
    machine.programs.clear();
    let first = program![copy(6, 1), tail_call(0), EXIT];
    assert_eq!(machine.run(&first, &mut frame()).unwrap_err().reason, Reason::NoProgram(0));
}

#[test]
fn there_are_33_tail_calls_at_most() {
    let endless = program![count(), tail_call(0), set(0, 1), EXIT];
    let mut machine = machine(vec![endless.clone()]);
    assert_eq!(machine.run(&endless, &mut frame()).unwrap().result, 1);
    assert_eq!(machine.maps[1].get(&[0; 4]).unwrap(), 34u64.to_le_bytes());
}

#[test]
fn nothing_but_the_context_passes_to_the_next_program() {
    for (second, reason) in [
        (program![copy(0, 6), EXIT], Reason::Uninitialized(6)),
        (program![load(code::W, 0, 10, -4), EXIT], Reason::UnwrittenStack(-4)),
        (program![copy(0, 2), EXIT], Reason::Uninitialized(2)),
    ] {
        let first = program![copy(6, 1), store_constant(code::W, 10, -4, 7), tail_call(0), set(0, 1), EXIT];
        assert_eq!(machine(vec![second]).run(&first, &mut frame()).unwrap_err().reason, reason);
    }
}

#[test]
fn maps_of_programs_are_for_tail_calls_only() {
    let lookup = |index: i32| {
        program![
            store_constant(code::W, 10, -4, 0),
            map(1, index),
            copy(2, 10),
            add(2, -4),
            call(helper::MAP_LOOKUP),
            set(0, 0),
            EXIT
        ]
    };
    let mut machine = machine(vec![program![set(0, 0), EXIT]]);
    assert_eq!(machine.run(&lookup(0), &mut frame()).unwrap_err().reason, Reason::MapKind);
    assert!(machine.run(&lookup(1), &mut frame()).is_ok());
    let wrong = program![copy(6, 1), copy(1, 6), map(2, 1), set(3, 0), call(helper::TAIL_CALL), EXIT];
    assert_eq!(machine.run(&wrong, &mut frame()).unwrap_err().reason, Reason::MapKind);
}
