// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of the frame and pointers to it.

use super::*;
use crate::instruction::helper::{ADJUST_HEAD, ADJUST_META, ADJUST_TAIL};
use crate::interpreter::Refusal;

const SIZES: [(u8, i64); 4] = [(code::B, 1), (code::H, 2), (code::W, 4), (code::DW, 8)];
const ADJUSTMENTS: [i32; 3] = [ADJUST_HEAD, ADJUST_META, ADJUST_TAIL];

/// Moves a bound of the frame. Register 1 has to be the context; register 0 becomes the result.
fn adjust(function: i32, distance: i32) -> [Instruction; 2] {
    [set(2, distance), call(function)]
}

#[test]
fn every_byte_at_the_edges_is_checked() {
    for (size, length) in SIZES {
        for base in [16_i64, 20] {
            for offset in -5..22 {
                let data: Vec<u8> = (0..base as u8).collect();
                let reason = Reason::OutsideFrame { offset, size: length as usize };
                let inside = offset >= 0 && offset + length <= base;
                // The offset is in the instruction, or added to the pointer.
                for (moved, rest) in [(0, offset as i16), (offset as i32, 0), (offset as i32 - 9, 9)] {
                    let pointer = [load(code::W, 2, 1, 0), add(2, moved), set(0, 0)];
                    for access in [load(size, 3, 2, rest), store_constant(size, 2, rest, 0)] {
                        let program = program![pointer, access, EXIT];
                        let result = run_on(&program, &mut Frame::new(&data));
                        if inside {
                            assert!(result.is_ok(), "{size:#x} at {offset} of {base}");
                        } else {
                            assert_eq!(result, fault(3, reason));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn metadata_is_readable_and_moves_with_the_data() {
    let program = program![
        copy(6, 1),
        adjust(ADJUST_META, -8),
        load(code::W, 2, 6, 8),
        store_constant(code::DW, 2, 0, 0x0504_0302),
        copy(1, 6),
        adjust(ADJUST_HEAD, 4),
        load(code::W, 2, 6, 8),
        load(code::W, 3, 6, 0),
        load(code::W, 0, 2, 0),
        load(code::B, 4, 3, 0),
        i(code::ALU64 | code::ADD | code::REGISTER, 0, 4, 0, 0),
        EXIT
    ];
    let mut frame = frame();
    assert_eq!(run_on(&program, &mut frame).map(|run| run.result), Ok(0x0504_0306));
    assert_eq!(frame.metadata(), [2, 3, 4, 5, 0, 0, 0, 0]);
    assert_eq!(frame.data(), (4..60).collect::<Vec<u8>>());
    let before = program![adjust(ADJUST_META, -8), copy(0, 0), EXIT];
    assert_eq!(run_on(&before, &mut frame).map(|run| run.result), Ok(0));
    assert_eq!(frame.metadata().len(), 16);
}

#[test]
fn head_moves_within_the_headroom() {
    // Linux keeps 40 of the 256 bytes, and 14 bytes of data are the least.
    for (distance, allowed) in [(-216, true), (-217, false), (46, true), (47, false), (0, true)] {
        let mut frame = frame();
        let before = frame.clone();
        let result = frame.adjust_head(distance);
        assert_eq!(result, if allowed { Ok(()) } else { Err(Refusal::Invalid) }, "{distance}");
        if allowed {
            assert_eq!(frame.data().len() as i32, 60 - distance);
            assert_eq!(frame.headroom() as i32, 256 + distance);
            assert_eq!(frame.tailroom(), 256);
            let kept = 60 - distance.max(0) as usize;
            assert!(frame.data().ends_with(&before.data()[60 - kept..]));
        } else {
            assert_eq!(frame, before);
        }
    }
    // Metadata takes headroom.
    let mut frame = frame();
    frame.adjust_meta(-16).unwrap();
    assert_eq!(frame.adjust_head(-201), Err(Refusal::Invalid));
    assert_eq!(frame.adjust_head(-200), Ok(()));
    assert_eq!(frame.metadata().len(), 16);
    for extreme in [i32::MIN, i32::MAX] {
        assert_eq!(frame.adjust_head(extreme), Err(Refusal::Invalid));
        assert_eq!(frame.adjust_tail(extreme), Err(Refusal::Invalid));
        assert_eq!(frame.adjust_meta(extreme), Err(Refusal::Invalid));
    }
}

#[test]
fn tail_shrinks_and_grows() {
    for (distance, allowed) in [(-46, true), (-47, false), (10, true), (11, false)] {
        let mut frame = Frame::with_room(&[9; 60], 256, 10);
        let result = frame.adjust_tail(distance);
        assert_eq!(result, if allowed { Ok(()) } else { Err(Refusal::Invalid) }, "{distance}");
        let length = if allowed { 60 + distance } else { 60 };
        assert_eq!(frame.data().len() as i32, length);
        assert!(frame.data().iter().enumerate().all(|(at, &byte)| byte == if at < 60 { 9 } else { 0 }));
    }
    // Cut bytes come back as zeros.
    let mut frame = frame();
    frame.adjust_tail(-10).unwrap();
    frame.adjust_tail(10).unwrap();
    assert_eq!(frame.data()[48..], [48, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn metadata_has_a_multiple_of_four_bytes() {
    for (distance, result) in [
        (-4, Ok(())),
        (-216, Ok(())),
        (-2, Err(Refusal::Access)),
        (4, Err(Refusal::Invalid)),
        (-220, Err(Refusal::Invalid)),
    ] {
        assert_eq!(frame().adjust_meta(distance), result, "{distance}");
    }
    let mut roomy = Frame::with_room(&[0; 60], 400, 0);
    assert_eq!(roomy.adjust_meta(-256), Err(Refusal::Access));
    assert_eq!(roomy.adjust_meta(-252), Ok(()));
    assert_eq!(roomy.adjust_meta(252), Ok(()));
    assert_eq!(roomy.adjust_meta(4), Err(Refusal::Invalid));
}

#[test]
fn short_frames_are_not_moved() {
    let mut short = Frame::new(&[1; 13]);
    assert_eq!(short.adjust_head(0), Err(Refusal::Invalid));
    assert_eq!(short.adjust_tail(0), Err(Refusal::Invalid));
    assert_eq!(short.adjust_tail(1), Ok(()));
    let mut empty = Frame::with_room(&[], 0, 0);
    assert_eq!((empty.data(), empty.headroom()), (&[][..], 40));
    assert_eq!(empty.adjust_meta(-4), Err(Refusal::Invalid));
}

#[test]
fn programs_see_the_errors() {
    for (function, distance, error) in
        [(ADJUST_HEAD, 47, -22), (ADJUST_META, -2, -13), (ADJUST_TAIL, 1000, -22), (ADJUST_HEAD, 0, 0)]
    {
        let program = program![adjust(function, distance), EXIT];
        assert_eq!(run(&program).map(|run| run.result as i32), Ok(error));
    }
    // Only the lower half of the distance counts.
    let program = program![constant(2, 0xffff_ffff_0000_0004), call(ADJUST_HEAD), EXIT];
    let mut frame = frame();
    assert_eq!(run_on(&program, &mut frame).map(|run| run.result), Ok(0));
    assert_eq!(frame.data().len(), 56);
}

#[test]
fn pointers_are_stale_after_a_change() {
    let start = program![copy(6, 1), load(code::W, 7, 1, 0), copy(8, 7), store(code::DW, 10, -8, 7)];
    let uses = [
        (load(code::B, 0, 7, 0), Reason::StalePointer),
        (load(code::B, 0, 8, 0), Reason::StalePointer),
        (store_constant(code::B, 7, 0, 0), Reason::StalePointer),
        (add(7, 1), Reason::StalePointer),
        (i(code::ALU64 | code::SUB | code::REGISTER, 7, 8, 0, 0), Reason::StalePointer),
        (i(code::JUMP | code::JGT | code::REGISTER, 7, 8, 0, 0), Reason::StalePointer),
        (i(code::JUMP | code::JEQ, 7, 0, 0, 0), Reason::StalePointer),
    ];
    for function in ADJUSTMENTS {
        // The kernel's verifier forgets the pointers even if the call fails.
        for distance in [0, 1_000_000] {
            let start = program![start.clone(), adjust(function, distance)];
            for (stale, reason) in uses {
                let program = program![start.clone(), stale, set(0, 0), EXIT];
                assert_eq!(run(&program), fault(6, reason), "{stale:?}");
            }
            let spilled = program![start.clone(), load(code::DW, 7, 10, -8), load(code::B, 0, 7, 0), EXIT];
            assert_eq!(run(&spilled), fault(7, Reason::StalePointer));
            let renewed = program![start, load(code::W, 7, 6, 0), load(code::B, 0, 7, 5), EXIT];
            assert_eq!(run(&renewed).map(|run| run.result), Ok(5));
        }
    }
}

#[test]
fn packet_pointers_compare_like_their_positions() {
    for distance in [-300, -1, 0, 1, 59, 60, 61, 5000] {
        let pointers = [load(code::W, 2, 1, 0), load(code::W, 3, 1, 4), add(2, distance)];
        for (comparison, expected) in [
            (code::JEQ, distance == 60),
            (code::JNE, distance != 60),
            (code::JGT, distance > 60),
            (code::JGE, distance >= 60),
            (code::JLT, distance < 60),
            (code::JLE, distance <= 60),
        ] {
            let jump = i(code::JUMP | comparison | code::REGISTER, 2, 3, 1, 0);
            let program = program![pointers, set(0, 1), jump, set(0, 0), EXIT];
            assert_eq!(run(&program).map(|run| run.result == 1), Ok(expected), "{comparison:#x} {distance}");
        }
    }
}

#[test]
fn pointers_move_by_numbers() {
    let register = |operation| i(code::ALU64 | operation | code::REGISTER, 2, 3, 0, 0);
    for program in [
        program![load(code::W, 2, 1, 0), set(3, 7), register(code::ADD)],
        program![load(code::W, 2, 1, 0), set(3, -7), register(code::SUB)],
        program![load(code::W, 3, 1, 0), set(2, 7), register(code::ADD)],
        program![load(code::W, 2, 1, 0), add(2, 10), i(code::ALU64 | code::SUB, 2, 0, 0, 3)],
    ] {
        assert_eq!(run(&program![program, load(code::B, 0, 2, 0), EXIT]).map(|run| run.result), Ok(7));
    }
}
