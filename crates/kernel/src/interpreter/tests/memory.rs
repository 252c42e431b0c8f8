// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stack, the context, loads and stores.

use super::*;

const SIZES: [(u8, i64); 4] = [(code::B, 1), (code::H, 2), (code::W, 4), (code::DW, 8)];

#[test]
fn loads_are_little_endian_and_extended() {
    let bytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x79, 0, 0, 0, 0, 0, 0, 0];
    let (plain, signed) = (code::LOAD, code::LOAD_SIGNED);
    let cases = [
        (plain | code::B, 0, 0x81),
        (plain | code::H, 0, 0x9281),
        (plain | code::W, 0, 0xb4a3_9281),
        (plain | code::DW, 0, 0xf8e7_d6c5_b4a3_9281),
        (plain | code::H, 1, 0xa392),
        (plain | code::DW, 1, 0x79f8_e7d6_c5b4_a392),
        (signed | code::B, 0, -0x7f_i64 as u64),
        (signed | code::B, 8, 0x79),
        (signed | code::H, 0, 0x9281_u16 as i16 as u64),
        (signed | code::H, 8, 0x79),
        (signed | code::W, 0, 0xb4a3_9281_u32 as i32 as u64),
        (signed | code::W, 8, 0x79),
    ];
    for (code, offset, expected) in cases {
        let program = program![
            load(code::W, 2, 1, 0),
            i(code, 3, 2, offset, 0),
            map_value(4, 0, 0),
            store(code::DW, 4, 0, 3),
            set(0, 0),
            EXIT
        ];
        let mut machine = Machine { maps: vec![Map::array(1, 8)], ..Machine::default() };
        machine.run(&program, &mut Frame::new(&bytes)).unwrap();
        assert_eq!(machine.maps[0].get(&[0; 4]), Some(&expected.to_le_bytes()[..]), "{code:#x} {offset}");
    }
}

#[test]
fn stores_write_only_their_bytes() {
    for (size, length) in SIZES {
        for from_register in [false, true] {
            let store = if from_register { store(size, 2, 3, 3) } else { store_constant(size, 2, 3, -2) };
            let mut frame = frame();
            run_on(&[load(code::W, 2, 1, 0), set(3, -2), store, set(0, 0), EXIT], &mut frame).unwrap();
            let mut expected: Vec<u8> = (0..60).collect();
            expected[3..3 + length as usize].copy_from_slice(&(-2_i64).to_le_bytes()[..length as usize]);
            assert_eq!(frame.data(), expected);
        }
    }
}

#[test]
fn stack_has_512_bytes() {
    for (size, length) in SIZES {
        let access = |offset: i64| {
            let offset = offset as i16;
            run(&[store_constant(size, 10, offset, 77), load(size, 0, 10, offset), EXIT])
        };
        for offset in [-512, -512 + length, -length] {
            assert_eq!(access(offset).map(|run| run.result), Ok(77), "{size:#x} {offset}");
        }
        for offset in [-512 - length, 0] {
            let reason = Reason::OutsideStack { offset, size: length as usize };
            assert_eq!(access(offset), fault(0, reason), "{size:#x} {offset}");
        }
    }
}

#[test]
fn stack_bytes_have_to_be_written_first() {
    let program = |written: i16| {
        let stores = (-8..0).filter(|&offset| offset != written);
        let stores: Vec<_> = stores.map(|offset| store_constant(code::B, 10, offset, 1)).collect();
        program![stores, load(code::DW, 0, 10, -8), EXIT]
    };
    for missing in -8..0 {
        assert_eq!(run(&program(missing)), fault(7, Reason::UnwrittenStack(missing.into())));
    }
    assert_eq!(run(&program(1)).map(|run| run.result), Ok(0x0101_0101));
}

#[test]
fn stack_keeps_the_type_of_pointers() {
    let spill = [load(code::W, 2, 1, 0), store(code::DW, 10, -16, 2)];
    // The pointer comes back through a copy of register 10.
    let back = [copy(3, 10), add(3, -24), load(code::DW, 4, 3, 8), load(code::B, 0, 4, 5), EXIT];
    assert_eq!(run(&program![spill, back]).map(|run| run.result), Ok(5));
    for (size, offset) in [(code::W, -16), (code::B, -9)] {
        assert_eq!(run(&program![spill, load(size, 0, 10, offset), EXIT]), fault(2, Reason::PartOfPointer));
    }
    // A store over a part of the pointer leaves the rest without a value.
    let over = store_constant(code::W, 10, -16, 3);
    assert_eq!(run(&program![spill, over, load(code::W, 0, 10, -16), EXIT]).map(|run| run.result), Ok(3));
    let first = store_constant(code::DW, 10, -16, 9);
    let rest = program![first, spill, over, load(code::W, 0, 10, -12), EXIT];
    assert_eq!(run(&rest), fault(4, Reason::UnwrittenStack(-12)));
}

#[test]
fn context_has_five_fields() {
    let mut machine = Machine { interface: 7, queue: 3, ..Machine::default() };
    for (offset, expected) in [(12, 7), (16, 3)] {
        let run = machine.run(&[load(code::W, 0, 1, offset), EXIT], &mut frame()).unwrap();
        assert_eq!(run.result, expected);
    }
    for (first, second, distance) in [(4, 0, 60), (0, 8, 0), (8, 4, -60)] {
        let subtract = i(code::ALU64 | code::SUB | code::REGISTER, 2, 3, 0, 0);
        let program = [load(code::W, 2, 1, first), load(code::W, 3, 1, second), subtract, copy(0, 2), EXIT];
        assert_eq!(run(&program).map(|run| run.result as i32), Ok(distance));
    }
    for wrong in [
        load(code::W, 0, 1, 20),
        load(code::W, 0, 1, 2),
        load(code::W, 0, 1, -4),
        load(code::DW, 0, 1, 0),
        load(code::H, 0, 1, 12),
        i(code::LOAD_SIGNED | code::W, 0, 1, 12, 0),
        store_constant(code::W, 1, 12, 0),
        store(code::W, 1, 12, 10),
    ] {
        assert_eq!(run(&[wrong, EXIT]), fault(0, Reason::ContextAccess), "{wrong:?}");
    }
}

#[test]
fn atomic_addition() {
    for (size, width) in [(code::W, 32), (code::DW, 64)] {
        for fetch in [0, code::FETCH] {
            let before = 0xffff_fff0_ffff_fff0_u64;
            let program = program![
                constant(2, before),
                store(code::DW, 10, -8, 2),
                set(6, 0x20),
                i(code::ATOMIC | size, 10, 6, -8, fetch),
                load(code::DW, 3, 10, -8),
            ];
            let (sum, seen) = if width == 32 {
                (0xffff_fff0_0000_0010, before & 0xffff_ffff)
            } else {
                (0xffff_fff1_0000_0010, before)
            };
            assert_eq!(number(program![program.clone(), copy(6, 3)]), Ok(sum));
            assert_eq!(number(program), Ok(if fetch == 0 { 0x20 } else { seen }));
        }
    }
    let in_map = program![
        map_value(2, 0, 0),
        set(3, 5),
        i(code::ATOMIC | code::DW, 2, 3, 0, 0),
        i(code::ATOMIC | code::DW, 2, 3, 0, 0),
        load(code::DW, 6, 2, 0)
    ];
    assert_eq!(number(in_map), Ok(10));
}
