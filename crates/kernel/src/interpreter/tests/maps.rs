// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps, redirection, time and random numbers.

use super::*;
use crate::instruction::helper;
use crate::interpreter::{ANY, EXIST, MapKind, NO_EXIST, REDIRECT, Refusal};

/// Stores a key of 32 bits on the stack, and makes registers 1 and 2 the arguments of a map function.
fn key(key: i32) -> Vec<Instruction> {
    program![map(1, 0), store_constant(code::W, 10, -4, key), copy(2, 10), add(2, -4)]
}
/// Looks up a key, and ends with 99 if it is missing. Register 6 points to the value.
fn lookup(number: i32) -> Vec<Instruction> {
    let missing = [i(code::JUMP | code::JNE, 0, 0, 2, 0), set(0, 99), EXIT];
    program![key(number), call(helper::MAP_LOOKUP), missing, copy(6, 0)]
}
/// Updates a key with a value of 64 bits. The result is in register 0.
fn update(number: i32, value: i32, flags: i32) -> Vec<Instruction> {
    let value = [store_constant(code::DW, 10, -16, value), copy(3, 10), add(3, -16), set(4, flags)];
    program![key(number), value, call(helper::MAP_UPDATE)]
}
fn delete(number: i32) -> Vec<Instruction> {
    program![key(number), call(helper::MAP_DELETE)]
}
fn machine(map: Map) -> Machine {
    Machine { maps: vec![map], ..Machine::default() }
}
fn result(machine: &mut Machine, program: Vec<Instruction>) -> Result<i32, Fault> {
    machine.run(&program![program, EXIT], &mut frame()).map(|run| run.result as i32)
}
fn prefix(length: u32, data: [u8; 4]) -> Vec<u8> {
    [length.to_le_bytes(), data].concat()
}

#[test]
fn values_are_read_and_written() {
    for map in [Map::array(3, 8), Map::per_cpu_array(3, 8), Map::hash(3, 4, 8)] {
        let mut machine = machine(map);
        machine.maps[0].set(&[1, 0, 0, 0], &40_u64.to_le_bytes()).unwrap();
        let increment = [load(code::W, 0, 6, 0), add(0, 2), store(code::DW, 6, 0, 0)];
        assert_eq!(result(&mut machine, program![lookup(1), increment]), Ok(42));
        assert_eq!(machine.maps[0].get(&[1, 0, 0, 0]), Some(&42_u64.to_le_bytes()[..]));
        assert_eq!(result(&mut machine, lookup(3)), Ok(99));
    }
}

#[test]
fn values_have_bounds() {
    let bounds = [(code::B, 12, 1), (code::B, -1, 1), (code::H, 11, 2), (code::W, 9, 4), (code::DW, 5, 8)];
    for (size, offset, length) in bounds {
        let reason = Reason::OutsideValue { offset: offset.into(), size: length };
        for access in [load(size, 0, 6, offset), store_constant(size, 6, offset, 0)] {
            let mut machine = machine(Map::array(2, 12));
            let program = program![lookup(0), access, EXIT];
            assert_eq!(machine.run(&program, &mut frame()), fault(program.len() - 2, reason));
        }
        let last = program![lookup(1), load(size, 0, 6, 12 - length as i16)];
        assert_eq!(result(&mut machine(Map::array(2, 12)), last), Ok(0));
    }
}

#[test]
fn updates_return_the_errors_of_linux() {
    let cases = |map: Map, cases: &[(Vec<Instruction>, i32)]| {
        let mut machine = machine(map);
        for (index, (program, expected)) in cases.iter().enumerate() {
            assert_eq!(result(&mut machine, program.clone()), Ok(*expected), "{index}");
        }
    };
    for array in [Map::array(2, 8), Map::per_cpu_array(2, 8)] {
        cases(
            array,
            &[
                (update(1, 5, 0), 0),
                (program![lookup(1), load(code::W, 0, 6, 0)], 5),
                (update(1, 6, 1), -17),
                (update(1, 6, 2), 0),
                (update(2, 6, 0), -7),
                (update(1, 6, 3), -22),
                (delete(1), -22),
            ],
        );
    }
    cases(
        Map::hash(2, 4, 8),
        &[
            (update(1, 5, 2), -2),
            (update(1, 5, 1), 0),
            (update(1, 5, 1), -17),
            (update(1, 6, 2), 0),
            (update(2, 7, 0), 0),
            (update(3, 7, 0), -7),
            (update(2, 8, 0), 0),
            (update(2, 8, 4), -22),
            (program![lookup(1), load(code::W, 0, 6, 0)], 6),
            (delete(1), 0),
            (delete(1), -2),
            (lookup(1), 99),
            (update(3, 7, 0), 0),
        ],
    );
}

#[test]
fn trie_finds_the_longest_prefix() {
    let mut trie = Map::trie(4, 4, 1);
    for (length, data, value) in
        [(0, [0; 4], 0), (8, [10, 9, 9, 9], 8), (12, [10, 16, 0, 0], 12), (32, [10, 16, 0, 1], 32)]
    {
        trie.set(&prefix(length, data), &[value]).unwrap();
    }
    for (length, data, expected) in [
        (32, [10, 16, 0, 1], 32),
        (31, [10, 16, 0, 1], 12),
        (32, [10, 31, 0, 1], 12),
        (32, [10, 32, 0, 1], 8),
        (11, [10, 16, 0, 1], 8),
        (32, [11, 16, 0, 1], 0),
        (0, [10, 16, 0, 1], 0),
    ] {
        let found = trie.find(&prefix(length, data)).unwrap();
        assert_eq!(trie.get(&found), Some(&[expected][..]), "{length} {data:?}");
    }
    assert_eq!(trie.find(&prefix(33, [0; 4])), None);
    assert_eq!(trie.set(&prefix(33, [0; 4]), &[0]), Err(Refusal::Invalid));
    assert_eq!(trie.set(&prefix(9, [0; 4]), &[0]), Err(Refusal::NoSpace));
    // Bits after the prefix do not matter.
    assert_eq!(trie.update(&prefix(8, [10, 1, 2, 3]), &[7], NO_EXIST), Err(Refusal::Exists));
    assert_eq!(trie.update(&prefix(8, [10, 1, 2, 3]), &[7], EXIST), Ok(()));
    assert_eq!(trie.get(&prefix(8, [10, 3, 2, 1])), Some(&[7][..]));
    assert_eq!(trie.remove(&prefix(0, [1; 4])), Ok(()));
    assert_eq!(trie.find(&prefix(32, [11, 0, 0, 1])), None);
    assert_eq!(trie.keys().len(), 3);
}

#[test]
fn programs_look_up_prefixes() {
    let mut trie = Map::trie(4, 4, 4);
    trie.set(&prefix(16, [1, 2, 0, 0]), &[5, 0, 0, 0]).unwrap();
    let mut machine = machine(trie);
    // The address is bytes 1 to 4 of the frame.
    let program = program![
        load(code::W, 2, 1, 0),
        load(code::W, 3, 2, 1),
        store(code::W, 10, -4, 3),
        store_constant(code::W, 10, -8, 32),
        map(1, 0),
        copy(2, 10),
        add(2, -8),
        call(helper::MAP_LOOKUP),
        load(code::W, 0, 0, 0),
    ];
    assert_eq!(result(&mut machine, program), Ok(5));
}

#[test]
fn keys_may_be_in_the_frame() {
    let mut machine = machine(Map::hash(1, 8, 4));
    machine.maps[0].set(&[2, 3, 4, 5, 6, 7, 8, 9], &[6, 0, 0, 0]).unwrap();
    let program = |distance| {
        let key = [load(code::W, 2, 1, 0), add(2, distance)];
        program![key, map(1, 0), call(helper::MAP_LOOKUP), load(code::W, 0, 0, 0)]
    };
    assert_eq!(result(&mut machine, program(2)), Ok(6));
    assert_eq!(result(&mut machine, program(3)), Err(Fault { at: 5, reason: Reason::NullPointer }));
    let outside = Reason::OutsideFrame { offset: 53, size: 8 };
    assert_eq!(result(&mut machine, program(53)), Err(Fault { at: 4, reason: outside }));
}

#[test]
fn pointers_to_replaced_values_are_refused() {
    let mut machine = machine(Map::hash(4, 4, 8));
    machine.maps[0].set(&[1, 0, 0, 0], &[0; 8]).unwrap();
    for change in [update(1, 3, 0), delete(1)] {
        let program = program![update(1, 2, 0), lookup(1), change, load(code::W, 0, 6, 0)];
        let at = program.len() - 1;
        assert_eq!(result(&mut machine, program), Err(Fault { at, reason: Reason::RemovedValue }));
    }
    // A failed update and a change of another key leave the pointer valid, and a new lookup finds the new value.
    let program = program![
        update(1, 2, 0),
        lookup(1),
        update(1, 3, 1),
        update(2, 3, 0),
        delete(2),
        load(code::W, 0, 6, 0)
    ];
    assert_eq!(result(&mut machine, program), Ok(2));
    let program = program![lookup(1), update(1, 9, 0), lookup(1), load(code::W, 0, 6, 0)];
    assert_eq!(result(&mut machine, program), Ok(9));
    // Values of arrays are changed in place.
    machine.maps[0] = Map::array(2, 8);
    let program = program![lookup(1), update(1, 9, 0), load(code::W, 0, 6, 0)];
    assert_eq!(result(&mut machine, program), Ok(9));
}

#[test]
fn frames_are_redirected() {
    for (map_, kind) in [(Map::devices(4), MapKind::Devices), (Map::sockets(4), MapKind::Sockets)] {
        let mut machine = machine(map_);
        assert_eq!(machine.maps[0].kind(), kind);
        machine.maps[0].set(&[2, 0, 0, 0], &[7, 0, 0, 0]).unwrap();
        assert_eq!(machine.maps[0].set(&[4, 0, 0, 0], &[7, 0, 0, 0]), Err(Refusal::TooBig));
        let redirect =
            |key, flags| program![map(1, 0), constant(2, key), set(3, flags), call(helper::REDIRECT_MAP)];
        let mut run = |program| machine.run(&program![program, EXIT], &mut frame());
        // The upper half of the key does not count.
        for key in [2, 0x1_0000_0002] {
            let found = run(redirect(key, 1)).unwrap();
            assert_eq!((found.result, found.redirect), (REDIRECT, Some((0, 2))));
        }
        for flags in 0..4 {
            let missing = run(redirect(1, flags)).unwrap();
            assert_eq!((missing.result, missing.redirect), (flags as u32, None));
        }
        // The last redirection counts, and only if the result is REDIRECT.
        let forgotten = run(program![redirect(2, 0), redirect(3, 0), set(0, 4)]).unwrap();
        assert_eq!((forgotten.result, forgotten.redirect), (4, None));
        let unused = run(program![redirect(2, 0), set(0, 2)]).unwrap();
        assert_eq!((unused.result, unused.redirect), (2, None));
        assert_eq!(run(redirect(2, 8)), fault(5, Reason::Flags(8)));
    }
}

#[test]
fn kinds_of_maps_are_checked() {
    let redirect = program![map(1, 0), set(2, 0), set(3, 0), call(helper::REDIRECT_MAP)];
    for (map_, program) in [
        (Map::devices(2), program![key(0), call(helper::MAP_LOOKUP)]),
        (Map::sockets(2), update(0, 0, 0)),
        (Map::devices(2), delete(0)),
        (Map::array(2, 8), redirect.clone()),
        (Map::hash(2, 4, 8), redirect),
        (Map::array(2, 8), map_value(0, 0, 0).to_vec()),
        (Map::per_cpu_array(1, 8), map_value(0, 0, 0).to_vec()),
        (Map::hash(1, 4, 8), map_value(0, 0, 0).to_vec()),
    ] {
        let found = result(&mut machine(map_.clone()), program);
        assert_eq!(found.map_err(|fault| fault.reason), Err(Reason::MapKind), "{map_:?}");
    }
}

#[test]
fn address_of_a_value_has_an_offset() {
    let mut machine = machine(Map::array(1, 8));
    machine.maps[0].set(&[0; 4], &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let program = |offset| program![map_value(2, 0, offset), load(code::W, 0, 2, -1)];
    assert_eq!(result(&mut machine, program(3)), Ok(0x0605_0403));
    assert_eq!(result(&mut machine, program(5)), Ok(0x0807_0605));
    let reason = Reason::OutsideValue { offset: 8, size: 1 };
    assert_eq!(result(&mut machine, program(8)), Err(Fault { at: 0, reason }));
}

#[test]
fn maps_are_checked_from_outside_as_well() {
    let mut hash = Map::hash(1, 2, 3);
    assert_eq!((hash.key_size(), hash.value_size(), hash.capacity()), (2, 3, 1));
    assert_eq!(hash.set(&[0; 3], &[0; 3]), Err(Refusal::Invalid));
    assert_eq!(hash.set(&[0; 2], &[0; 2]), Err(Refusal::Invalid));
    assert_eq!(hash.update(&[0; 2], &[1; 3], ANY), Ok(()));
    assert_eq!((hash.get(&[0; 2]), hash.get(&[0; 3])), (Some(&[1; 3][..]), None));
    assert_eq!(hash.remove(&[0; 2]), Ok(()));
    assert_eq!((hash.keys().len(), hash.remove(&[0; 2])), (0, Err(Refusal::Missing)));
    assert_eq!(Map::array(2, 1).keys(), [[0, 0, 0, 0], [1, 0, 0, 0]]);
    assert_eq!(Map::array(2, 1).get(&[2, 0, 0, 0]), None);
    assert_eq!(Map::array(2, 1).remove(&[0; 4]), Err(Refusal::Invalid));
}

#[test]
fn time_and_random_numbers() {
    let mut machine = Machine { now: 0x5_0000_0007, random: 0x6_0000_0009, ..Machine::default() };
    let time = program![call(helper::KTIME), i(code::ALU64 | code::RSH, 0, 0, 0, 4)];
    assert_eq!(result(&mut machine, time), Ok(0x5000_0000));
    let random = program![call(helper::RANDOM)];
    assert_eq!(result(&mut machine, random.clone()), Ok(9));
    assert_ne!(result(&mut machine, random), Ok(9));
    let upper = program![call(helper::RANDOM), i(code::ALU64 | code::RSH, 0, 0, 0, 32)];
    assert_eq!(result(&mut machine, upper), Ok(0));
}
