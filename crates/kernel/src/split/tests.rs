// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in parts do the same as in one piece.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::instruction::{code, helper};
use crate::interpreter::{Frame, Machine, Map, Run};
use crate::{Arithmetic, Code, Counter, Lowered, MapName, Network, PASSED, Program, Reasons, Router, Test};

/// The number of elements.
const ELEMENTS: u32 = 60;
/// The length of the longest frame.
const LENGTH: usize = 90;
const REASONS: Reasons = Reasons { no_port: 1, no_room: 2 };

/// Elements that read and change the frame, the annotations and the length of packets.
struct Elements;

/// The constant by which the instructions of an element are found.
fn marker(element: u32) -> i64 {
    0x0011_0000 + i64::from(element)
}

/// A large tree of tests on two bytes. One of them changes in the frame while its former value is still needed.
fn tree(code: &mut Code<'_>) {
    let (first, second, rare) = (code.load(1, Size::Byte), code.load(2, Size::Byte), code.label());
    for n in 0..48u32 {
        let next = code.label();
        if n % 8 == 5 {
            // The sum is needed at the second label, but not at the first one.
            let (sum, skip) = (code.compute(Arithmetic::Add, first, n), code.label());
            let (inner, after) = (code.label(), code.label());
            code.branch(second, Test::Equal, n % 4, skip);
            code.branch(first, Test::Differ, n, inner);
            code.count("inner");
            code.bind(inner);
            code.count("skipped");
            code.jump(after);
            code.bind(skip);
            code.branch(sum, Test::Equal, 77u32, rare);
            code.bind(after);
        }
        if n == 24 {
            code.store(2, Size::Byte, 99i64);
        }
        // The third byte is not needed in the last tests.
        let tested = if n % 2 == 0 || n > 36 { first } else { second };
        code.branch(tested, Test::Differ, n * 5 % 251, next);
        code.count("found");
        code.jump(rare);
        code.bind(next);
    }
    let end = code.label();
    code.jump(end);
    code.bind(rare);
    code.next(1);
    code.bind(end);
}

impl Network for Elements {
    fn lower(&self, element: u32, _: u32, code: &mut Code<'_>) -> Lowered {
        let short = code.label();
        match element % 6 {
            0 if element == 0 => code.enter(),
            // The annotation is the sum of bytes of the frame.
            0 | 1 => {
                code.need(40, short);
                let at = (element % 40) as i32;
                let (first, second) = (code.load(at, Size::Byte), code.load(at & 32, Size::Byte));
                let sum = code.compute(Arithmetic::Add, first, second);
                code.set_annotation((element % 40) as usize & !3, Size::Word, sum);
            }
            2 if element == 2 => {
                code.need(20, short);
                tree(code);
            }
            // Some tests, which use a byte in several places.
            2 => {
                code.need(20, short);
                let (first, second) = (code.load(1, Size::Byte), code.load(2, Size::Byte));
                let (other, rare, end) = (code.label(), code.label(), code.label());
                code.branch(first, Test::Greater, 100u32, other);
                code.branch(second, Test::Less, 3u32, rare);
                code.branch(first, Test::Equal, 7u32, rare);
                code.jump(end);
                code.bind(other);
                let third = code.load(3, Size::Byte);
                code.branch(third, Test::Less, 2u32, rare);
                code.branch(first, Test::Equal, 200u32, rare);
                code.jump(end);
                code.bind(rare);
                code.next(1);
                code.bind(end);
            }
            // The packet loses its last byte.
            3 if element % 5 == 3 => {
                code.need(50, short);
                let length = code.length();
                let length = code.compute(Arithmetic::Subtract, length, 1u32);
                code.shorten(length, 49);
            }
            // An annotation decides.
            3 | 4 => {
                let seen = code.annotation((element % 40) as usize & !3, Size::Word);
                let other = code.label();
                code.branch(seen, Test::Equal, 0u32, other);
                code.count("seen");
                code.next(0);
                code.bind(other);
                code.count("other");
                code.next(1);
            }
            _ => {
                code.need(45, short);
                let mark = code.constant(marker(element));
                code.store(8 + (element % 30) as i32, Size::Word, mark);
            }
        }
        code.count("passed");
        if element + 1 == ELEMENTS {
            code.send("eth1", "sent", "unsent")
        } else {
            code.next(0)
        }
        code.bind(short);
        code.up();
        Ok(())
    }
    fn outputs(&self, _: u32) -> usize {
        2
    }
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)> {
        // The second output skips some elements, or leads to an element that all packets may go up at.
        let next = element + if output == 0 { 1 } else { 4 };
        (next < ELEMENTS).then_some((next, 0))
    }
}

/// Runs a program on a frame. Returns the result, the frame with its metadata, and the counters.
fn run(program: &Program, router: &Router, frame: &[u8]) -> (Run, Vec<u8>, Vec<u64>) {
    let counters = router.shared.counters.len();
    let mut machine = Machine {
        maps: vec![
            Map::per_cpu_array(1, 8 * counters),
            Map::sockets(1),
            Map::devices(1),
            Map::per_cpu_array(1, PASSED as usize),
            Map::programs(program.parts.len() as u32),
        ],
        ..Machine::default()
    };
    for map in [1, 2] {
        machine.maps[map].set(&[0; 4], &[0; 4]).unwrap();
    }
    let number = |name| match name {
        MapName::Counters => 0,
        MapName::Sockets => 1,
        MapName::Devices => 2,
        MapName::Passed => 3,
        MapName::Parts => 4,
        other => panic!("{other:?}"),
    };
    machine.programs = program.parts.iter().map(|p| p.with_maps(number)).collect();
    for part in 1..program.parts.len() as u32 {
        machine.maps[4].set(&part.to_le_bytes(), &part.to_le_bytes()).unwrap();
    }
    let mut frame = Frame::new(frame);
    let first = machine.programs[0].clone();
    let mut run = machine.run(&first, &mut frame).unwrap();
    run.executed = 0;
    let (words, _) = machine.maps[0].get(&[0; 4]).unwrap().as_chunks::<8>();
    let counted = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
    (run, [frame.metadata(), frame.data()].concat(), counted)
}

fn compiled(limit: usize) -> (Program, Router) {
    let mut router = Router { mark: 5, ..Router::default() };
    let program = router.compile(&Elements, (0, 0), REASONS, limit).unwrap();
    (program, router)
}

fn frames() -> impl Iterator<Item = Vec<u8>> {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    (0..60).map(move |_| {
        let length = [14, 30, 46, 60, LENGTH][random() % 5];
        // Small numbers, so that tests for equality hold at times.
        (0..length).map(|_| if random() % 2 == 0 { random() % 4 } else { random() } as u8).collect()
    })
}

#[test]
fn programs_in_parts_do_the_same() {
    let (whole, router) = compiled(usize::MAX);
    assert_eq!(whole.parts.len(), 1);
    let mut results = [0; 5];
    for limit in (1..500).step_by(9).chain([1000]) {
        let (parted, other) = compiled(limit);
        assert_eq!(router.shared, other.shared);
        assert!(parted.parts.len() > 1, "{limit}: {} instructions", whole.instructions());
        for frame in frames() {
            let wanted = run(&whole, &router, &frame);
            results[wanted.0.result as usize] += 1;
            assert_eq!(run(&parted, &other, &frame), wanted, "{limit}: {frame:?}");
        }
    }
    assert!(results[4] > 100, "{results:?}");
}

#[test]
fn parts_call_later_ones_only() {
    let (program, _) = compiled(1);
    let mut calls = 0;
    for (number, part) in program.parts.iter().enumerate() {
        for pair in part.instructions.windows(2) {
            if (pair[1].code, pair[1].immediate) == (code::CALL, helper::TAIL_CALL) {
                assert_eq!((pair[0].code, pair[0].to()), (code::ALU64 | code::MOV, 3));
                let to = pair[0].immediate as usize;
                assert!((number + 1..program.parts.len()).contains(&to), "{number} calls {to}");
                calls += 1;
            }
        }
    }
    assert!(calls >= program.parts.len() - 1);
}

#[test]
fn instructions_belong_to_their_elements() {
    for limit in [1, 60, usize::MAX] {
        let (program, _) = compiled(limit);
        let mut found = 0;
        for (number, part) in program.parts.iter().enumerate() {
            for (at, i) in part.instructions.iter().enumerate() {
                let element = i.immediate.wrapping_sub(marker(0) as i32);
                if (0..ELEMENTS as i32).contains(&element) {
                    assert_eq!(
                        program.element_of(number, at),
                        Some(element as u32),
                        "{limit}: {number} {at}"
                    );
                    found += 1;
                }
            }
            assert_eq!(program.element_of(number, 0), None);
            assert_eq!(program.element_of(number, part.instructions.len() - 1), None);
        }
        assert!(found >= 10, "{limit}: {found}");
        assert_eq!(program.element_of(program.parts.len(), 0), None);
    }
}

/// Units that lead to the next one each.
fn chain(sizes: &[usize]) -> Units {
    let unit = |(n, size): (usize, &usize)| Unit {
        fragment: n,
        steps: 0..1,
        exit: 0,
        leads: vec![Target::Fragment(n + 1)],
        size: *size,
    };
    let entry = |n| Entry { words: Vec::new(), present: 0, loads: Vec::new(), fragment: n };
    Units {
        all: sizes.iter().enumerate().map(unit).collect(),
        entries: (0..sizes.len()).map(|n| (Target::Fragment(n), (n, entry(n)))).collect(),
    }
}

#[test]
fn parts_are_filled_up_to_the_limit() {
    let units = chain(&[10, 50, 30, 30, 100, 5]);
    assert_eq!(units.parts(60).unwrap(), [0..2, 2..4, 4..5, 5..6]);
    assert_eq!(units.parts(1000).unwrap().len(), 1);
}

#[test]
fn too_many_tail_calls_are_refused() {
    // 34 parts need 33 calls. With one part more, parts become larger.
    assert_eq!(chain(&[10; 34]).parts(10).unwrap().len(), 34);
    assert_eq!(chain(&[10; 35]).parts(10).unwrap().len(), 18);
    let Refused(why) = chain(&[LARGEST; 35]).parts(PART).unwrap_err();
    assert_eq!(why, "the program is too large: a packet would pass through more than 34 parts of it");
}

#[test]
fn only_what_is_needed_is_passed() {
    struct Two;
    impl Network for Two {
        fn lower(&self, element: u32, _: u32, code: &mut Code<'_>) -> Lowered {
            if element == 0 {
                code.enter();
                // Only the first annotation is read later.
                let n = code.random();
                code.set_annotation(8, Size::Word, n);
                code.set_annotation(12, Size::Word, n);
                code.next(0);
            } else {
                let n = code.annotation(8, Size::Word);
                let other = code.label();
                code.branch(n, Test::Equal, 0u32, other);
                code.drop(1);
                code.bind(other);
                code.drop(2);
            }
            Ok(())
        }
        fn outputs(&self, _: u32) -> usize {
            1
        }
        fn next(&self, element: u32, _: u32) -> Option<(u32, u32)> {
            (element == 0).then_some((1, 0))
        }
    }
    let mut router = Router::default();
    let program = router.compile(&Two, (0, 0), REASONS, 1).unwrap();
    let stores = |part: usize| {
        // Stores of register 1 into the data that parts pass, to which register 0 points.
        let passes =
            |i: &&crate::Instruction| i.code == code::STORE | code::W && (i.to(), i.from()) == (0, 1);
        program.parts[part].instructions.iter().filter(passes).count()
    };
    assert_eq!(stores(0), 1);
    let counter = |e, n| router.shared.counters.contains(&vec![Counter::Dropped(e, n)]);
    assert!(counter(1, 1) && counter(1, 2));
}
