// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the interpreter. Each file covers one part.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod faults;
mod frames;
mod garbage;
mod maps;
mod memory;
mod tails;

use super::{Fault, Frame, Machine, Map, Reason, Run};
use crate::Instruction;
use crate::instruction::code;

/// An instruction with fewer letters.
const fn i(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction::new(code, to, from, offset, immediate)
}
const EXIT: Instruction = i(code::EXIT, 0, 0, 0, 0);

fn set(to: u8, immediate: i32) -> Instruction {
    i(code::ALU64 | code::MOV, to, 0, 0, immediate)
}
fn copy(to: u8, from: u8) -> Instruction {
    i(code::ALU64 | code::MOV | code::REGISTER, to, from, 0, 0)
}
fn add(to: u8, immediate: i32) -> Instruction {
    i(code::ALU64 | code::ADD, to, 0, 0, immediate)
}
fn load(size: u8, to: u8, from: u8, offset: i16) -> Instruction {
    i(code::LOAD | size, to, from, offset, 0)
}
fn store(size: u8, to: u8, offset: i16, from: u8) -> Instruction {
    i(code::STORE | size, to, from, offset, 0)
}
fn store_constant(size: u8, to: u8, offset: i16, immediate: i32) -> Instruction {
    i(code::STORE_CONSTANT | size, to, 0, offset, immediate)
}
fn call(function: i32) -> Instruction {
    i(code::CALL, 0, 0, 0, function)
}
fn constant(to: u8, value: u64) -> [Instruction; 2] {
    [i(code::WIDE, to, 0, 0, value as i32), i(0, 0, 0, 0, (value >> 32) as i32)]
}
fn map(to: u8, index: i32) -> [Instruction; 2] {
    [i(code::WIDE, to, code::MAP, 0, index), i(0, 0, 0, 0, 0)]
}
fn map_value(to: u8, index: i32, offset: i32) -> [Instruction; 2] {
    [i(code::WIDE, to, code::MAP_VALUE, 0, index), i(0, 0, 0, 0, offset)]
}

/// A program from single instructions and slices of them.
macro_rules! program {
    ($($part:expr),* $(,)?) => {{
        let mut program = Vec::new();
        $(program.extend(crate::interpreter::tests::Part::part($part));)*
        program
    }};
}
use program;

trait Part {
    fn part(self) -> Vec<Instruction>;
}
impl Part for Instruction {
    fn part(self) -> Vec<Instruction> {
        vec![self]
    }
}
impl<const N: usize> Part for [Instruction; N] {
    fn part(self) -> Vec<Instruction> {
        self.to_vec()
    }
}
impl Part for Vec<Instruction> {
    fn part(self) -> Vec<Instruction> {
        self
    }
}

/// Runs a program on 60 bytes that count from 0, on a machine without maps.
fn run(program: &[Instruction]) -> Result<Run, Fault> {
    run_on(program, &mut frame())
}
fn run_on(program: &[Instruction], frame: &mut Frame) -> Result<Run, Fault> {
    Machine::default().run(program, frame)
}
fn frame() -> Frame {
    Frame::new(&(0..60).collect::<Vec<u8>>())
}
fn fault(at: usize, reason: Reason) -> Result<Run, Fault> {
    Err(Fault { at, reason })
}

/// Runs a program that leaves a number in register 6, and returns the number with all its 64 bits.
fn number(program: Vec<Instruction>) -> Result<u64, Fault> {
    let program = program!(program, map_value(7, 0, 0), store(code::DW, 7, 0, 6), set(0, 0), EXIT);
    let mut machine = Machine { maps: vec![Map::array(1, 8)], ..Machine::default() };
    machine.run(&program, &mut frame())?;
    Ok(u64::from_le_bytes(machine.maps[0].get(&[0; 4]).unwrap().try_into().unwrap()))
}

#[test]
fn counts_executed_instructions() {
    // Three rounds of a loop with two instructions.
    let looped = program![
        set(0, 3),
        i(code::ALU64 | code::SUB, 0, 0, 0, 1),
        i(code::JUMP | code::JNE, 0, 0, -2, 0),
        EXIT
    ];
    // The constant counts as one, and the skipped instruction not at all.
    let skipping = program![constant(0, 1), i(code::JUMP, 0, 0, 1, 0), set(0, 2), EXIT];
    for (program, result, executed) in [(program![set(0, 7), EXIT], 7, 2), (looped, 0, 8), (skipping, 1, 3)] {
        assert_eq!(run(&program), Ok(Run { result, executed, redirect: None }));
    }
}

#[test]
fn stops_at_the_limit() {
    let endless = [i(code::JUMP, 0, 0, -1, 0)];
    assert_eq!(run(&endless), fault(0, Reason::Limit(1_000_000)));
    let mut machine = Machine { limit: 2, ..Machine::default() };
    assert!(machine.run(&[set(0, 1), EXIT], &mut frame()).is_ok());
    machine.limit = 1;
    assert_eq!(machine.run(&[set(0, 1), EXIT], &mut frame()), fault(1, Reason::Limit(1)));
}

#[test]
fn faults_name_the_instruction() {
    let fault = run(&[set(0, 0), copy(0, 3), EXIT]).unwrap_err();
    assert_eq!(fault.to_string(), "instruction 1: register 3 has no value");
}
