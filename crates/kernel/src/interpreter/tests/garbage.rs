// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs: none panics, and all end.

use super::*;
use crate::instruction::helper;

/// SplitMix64 (Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Any 64 bits.
fn noise(random: &mut Random) -> Instruction {
    let bits = random.next();
    i(bits as u8, (bits >> 8) as u8 & 15, (bits >> 12) as u8 & 15, (bits >> 16) as i16, (bits >> 32) as i32)
}

/// An instruction that is likely to be valid after [`prepared`], which leaves numbers in registers 0, 4 and 5.
fn plausible(random: &mut Random) -> Instruction {
    if random.below(8) == 0 {
        return any_registers(random);
    }
    let (to, from) = (random.pick(&[0, 4, 5]), random.pick(&[0, 4, 5]));
    let offset = random.pick(&[0, 1, 4, 8]);
    let immediate = random.pick(&[0, 1, -1, 2, 4, 8, 16, 32, 64, -4, -8, i32::MAX, i32::MIN]);
    let size = random.pick(&[code::B, code::H, code::W, code::DW]);
    let operation = (random.below(13) as u8) << 4;
    let comparison = (random.below(8) as u8) << 4;
    let class = random.pick(&[code::ALU, code::ALU64]);
    match random.below(10) {
        0 => i(class | code::MOV, to, 0, 0, immediate),
        1 if operation == code::NEG => i(class | operation, to, 0, 0, 0),
        1 => i(class | operation, to, 0, 0, immediate),
        2 if operation != code::NEG => i(class | operation | code::REGISTER, to, from, 0, 0),
        2 => i(class | code::END, to, 0, 0, random.pick(&[16, 32, 64])),
        3 => load(size, to, random.pick(&[6, 7, 8]), offset),
        4 => store(size, random.pick(&[6, 8]), offset, from),
        5 => store_constant(size, 10, -random.pick(&[8, 16, 24, 512]), immediate),
        6 => i(random.pick(&[code::JUMP, code::JUMP32]) | comparison, 0, 0, random.pick(&[1, 2, -3]), 0),
        7 => i(code::JUMP | code::JEQ | code::REGISTER, to, from, random.pick(&[0, 1, -2]), 0),
        8 => i(code::ATOMIC | random.pick(&[code::W, code::DW]), 8, from, 0, immediate & 1),
        _ => call(random.pick(&FUNCTIONS)),
    }
}

/// An instruction with registers that may well be of the wrong type.
fn any_registers(random: &mut Random) -> Instruction {
    let (to, from) = (random.below(11) as u8, random.below(11) as u8);
    let offset = random.pick(&[0, 0, 1, 4, 8, 12, 16, -1, -2, -4, -8, -16, -512]);
    let size = random.pick(&[code::B, code::H, code::W, code::DW]);
    let operation = (random.below(16) as u8) << 4;
    match random.below(7) {
        0 => copy(to, from),
        1 => i(code::ALU64 | operation, to, 0, 0, random.next() as i32),
        2 => i(code::ALU64 | operation | code::REGISTER, to, from, 0, 0),
        3 => load(size, to, from, offset),
        4 => store(size, to, offset, from),
        5 => i(code::JUMP | operation | code::REGISTER, to, from, offset, 0),
        _ => i(code::ATOMIC | size, to, from, offset, 0),
    }
}

const FUNCTIONS: [i32; 9] = [
    helper::MAP_LOOKUP,
    helper::MAP_UPDATE,
    helper::MAP_DELETE,
    helper::KTIME,
    helper::RANDOM,
    helper::ADJUST_HEAD,
    helper::ADJUST_META,
    helper::ADJUST_TAIL,
    helper::REDIRECT_MAP,
];

/// A program that begins with values in all registers, so that it gets further.
fn prepared(random: &mut Random) -> Vec<Instruction> {
    let mut program = program![
        load(code::W, 6, 1, 0),
        load(code::W, 7, 1, 8),
        copy(2, 10),
        add(2, -8),
        copy(3, 2),
        store_constant(code::DW, 10, -8, random.below(3) as i32),
        set(4, 0),
        set(5, 1),
        set(0, 0),
        map_value(8, 0, 0),
        copy(9, 1),
    ];
    if random.below(2) == 0 {
        let index = random.below(7) as i32;
        program.extend(map(1, index));
    }
    program
}

#[test]
fn random_programs_end_without_a_panic() {
    let mut random = Random(1);
    let maps = vec![
        Map::array(1, 8),
        Map::hash(2, 4, 8),
        Map::trie(2, 4, 8),
        Map::per_cpu_array(2, 8),
        Map::devices(2),
        Map::sockets(2),
    ];
    let mut machine = Machine { maps, limit: 500, ..Machine::default() };
    for key in [[0; 4], [1, 0, 0, 0]] {
        machine.maps[4].set(&key, &key).unwrap();
    }
    let (mut ended, mut late) = (0, 0);
    for round in 0..200_000 {
        let mut program = if round % 4 == 0 { Vec::new() } else { prepared(&mut random) };
        let start = program.len();
        for _ in 0..random.below(24) {
            let instruction = if round % 4 == 0 { noise(&mut random) } else { plausible(&mut random) };
            program.push(instruction);
        }
        program.push(EXIT);
        let length = random.below(80);
        let data: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let headroom = random.pick(&[0, 60, 256]);
        match machine.run(&program, &mut Frame::with_room(&data, headroom, random.pick(&[0, 8]))) {
            Ok(run) => {
                assert!(run.executed <= 500);
                ended += 1;
            }
            Err(fault) => {
                assert!(fault.at < program.len());
                late += usize::from(fault.at >= start + 3);
            }
        }
    }
    // The programs reach more than their first instructions.
    assert!(ended > 20_000 && late > 40_000, "{ended} {late}");
}
