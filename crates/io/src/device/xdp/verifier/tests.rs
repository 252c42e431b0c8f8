// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of Linux 6.18, and what is made of them. The second test makes the kernel write them again.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::device::bpf::{Map, MapKind, Operation, Program};
use castanet_kernel::instruction::{code, helper};
use castanet_testkit::namespace::inside_with_bpf;
use std::os::fd::AsRawFd;

/// Logs, the instructions that they complain about, and the reasons.
const LOGS: &[(&str, Option<usize>, &str)] = &[
    (
        "0: R1=ctx() R10=fp0\n0: (bf) r0 = r3\nR3 !read_ok\nprocessed 1 insns (limit 1000000) max_states_per_insn 0",
        Some(0),
        "it uses a register that has no value",
    ),
    (
        "0: R1=ctx() R10=fp0\n0: (61) r2 = *(u32 *)(r1 +0)          ; R1=ctx() R2=pkt(r=0)\n1: (71) r0 = *(u8 *)(r2 +40)\n\
         invalid access to packet, off=40 size=1, R2(id=0,off=40,r=0)\nR2 offset is outside of the packet\n\
         processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0",
        Some(1),
        "it accesses bytes of the frame, but has not tested that they are present",
    ),
    (
        "unreachable insn 2\nprocessed 0 insns (limit 1000000)",
        Some(2),
        "it has instructions that no path reaches",
    ),
    // Linux before 5.3, and later ones without rights.
    ("back-edge from insn 3 to 1\nprocessed 0 insns (limit 1000000)", Some(3), "it has a loop"),
    (
        "2: (05) goto pc-2\n1: (b7) r1 = 5                        ; R1=5\n2: (05) goto pc-2\ninfinite loop detected at insn 1\n\
         cur state: R0=0 R1=5 R10=fp0\nold state: R0=0 R1=5 R10=fp0\nprocessed 10 insns (limit 1000000)",
        Some(1),
        "it has a loop that may never end",
    ),
    ("jump out of range from insn 0 to 10\n", Some(0), "it has a jump that leads out of the program"),
    ("last insn is not an exit or jmp\n", None, "it has a path without an end"),
    (
        "0: (b7) r1 = 0                        ; R1=0\n1: (85) call unknown#9999\ninvalid func unknown#9999\nprocessed 2 insns",
        Some(1),
        "it calls a function that this kernel does not have",
    ),
    (
        "1: (85) call bpf_skb_store_bytes#9\nprogram of this type cannot use helper bpf_skb_store_bytes#9\nprocessed 2 insns",
        Some(1),
        "it calls a function that this kernel does not offer to XDP programs",
    ),
    // Linux 5.18.
    (
        "1: (85) call bpf_skb_store_bytes#9\nunknown func bpf_skb_store_bytes#9\nprocessed 2 insns",
        Some(1),
        "it calls a function that this kernel does not have",
    ),
    (
        "5: (85) call bpf_map_lookup_elem#1    ; R0=map_value_or_null(id=1,ks=4,vs=8)\n6: (79) r0 = *(u64 *)(r0 +0)\n\
         R0 invalid mem access 'map_value_or_null'\nprocessed 6 insns (limit 1000000)",
        Some(6),
        "it uses the result of a look-up, but has not tested that there is an entry",
    ),
    (
        "7: (79) r0 = *(u64 *)(r0 +8)\ninvalid access to map value, value_size=8 off=8 size=8\n\
         R0 min value is outside of the allowed memory range\nprocessed 7 insns",
        Some(7),
        "it accesses bytes beyond the end of a table's entry",
    ),
    (
        "10: (0f) r2 += r1\nmath between pkt pointer and register with unbounded min value is not allowed\nprocessed 10 insns",
        Some(10),
        "it accesses the frame at an offset that has no bound",
    ),
    (
        "8: (0f) r0 += r1\nmath between map_value pointer and register with unbounded min value is not allowed\n",
        Some(8),
        "it accesses memory at an offset that has no bound",
    ),
    (
        "9: (71) r1 = *(u8 *)(r0 +0)\nR0 unbounded memory access, make sure to bounds check any such access\n",
        Some(9),
        "it accesses memory at an offset that has no bound",
    ),
    (
        "1: (71) r0 = *(u8 *)(r2 +0)\nR2 invalid mem access 'scalar'\n",
        Some(1),
        "it accesses memory at something that is not an address",
    ),
    (
        "0: (7a) *(u64 *)(r10 -520) = 0\ninvalid write to stack R10 off=-520 size=8\nprocessed 1 insns",
        Some(0),
        "it accesses memory outside its stack",
    ),
    ("unknown opcode ff\nprocessed 0 insns", None, "it has an instruction that this kernel does not know"),
    ("fd 999 is not pointing to valid bpf_map\n", None, "one of its maps is missing"),
    (
        "0: (7a) *(u64 *)(r10 -9) = 0\nmisaligned stack access off 0+0+-9 size 8\n",
        Some(0),
        "it accesses memory at an address that is not a multiple of the size",
    ),
    // The log is longer than its room: it begins within a line.
    (
        "goto pc-2    ; R1=0x7a118\n2: (07) r1 += 1                       ; R1=0x7a119\n\
         3: (a5) if r1 < 0x1e8480 goto pc-2    ; R1=0x7a119\nBPF program is too large. Processed 1000001 insn\n\
         processed 1000001 insns (limit 1000000) max_states_per_insn 4",
        Some(3),
        "it has too many paths for the kernel to check all of them",
    ),
    // The same without the steps, as an older kernel is asked for.
    (
        "BPF program is too large. Processed 1000001 insn\nverification time 776649 usec\nstack depth 0\nprocessed 1000001 insns",
        None,
        "it has too many paths for the kernel to check all of them",
    ),
    (
        "16386: (15) if r2 == 0x2001 goto pc+1\nThe sequence of 8193 jumps is too complex.\nprocessed 16387 insns (limit 1000000)",
        Some(16386),
        "it has too many branches for the kernel to check all of them",
    ),
    // A log without a known complaint, and none.
    ("3: (61) r0 = *(u32 *)(r1 +200)\nsomething new\nprocessed 4 insns", Some(3), "Invalid argument"),
    ("", None, "Invalid argument"),
];

#[test]
fn logs_are_explained() {
    for (log, instruction, why) in LOGS {
        let refusal = Refusal::new(0, Errno::INVAL, log);
        assert_eq!((refusal.instruction(), refusal.why().as_str()), (*instruction, *why), "{log}");
        // The process that opens devices passes on the lines that were kept.
        assert_eq!(Refusal::new(0, Errno::INVAL, &refusal.lines().join("\n")), refusal);
    }
    assert_eq!(Refusal::new(0, Errno::TOOBIG, "").why(), "it has more instructions than this kernel takes");
    assert_eq!(Refusal::new(0, Errno::NOMEM, "").why(), "the kernel has not enough memory for it");
    let untranslated = Refusal::new(0, Errno::from_raw_os_error(524), "");
    assert_eq!(untranslated.why(), "the kernel could not translate it to machine code (dmesg may say why)");
}

#[test]
fn the_message_names_the_element_and_ends_with_the_log() {
    let steps: String = (0..50).map(|n| format!("{n}: (b7) r1 = {n}\n")).collect();
    let log = format!("{steps}50: (bf) r0 = r3\nR3 !read_ok\nprocessed 51 insns (limit 1000000)\n");
    let refusal = Refusal::new(1, Errno::ACCESS, &log);
    assert_eq!(
        refusal.text("eth0", Some("element 'ttl' (DecIPTTL)")),
        "the kernel refused the program for eth0 at element 'ttl' (DecIPTTL): it uses a register that has no value\n  \
         note: 50: (bf) r0 = r3\n  note: R3 !read_ok"
    );
    assert!(refusal.text("eth0", None).starts_with("the kernel refused the program for eth0: it uses"));
    // The last instruction is kept, however long the complaint is, and long lines are cut.
    let long = format!("7: (bf) r0 = r3\n{}\n", ["x".repeat(500).as_str()].repeat(9).join("\n"));
    let refusal = Refusal::new(0, Errno::ACCESS, &long);
    assert_eq!((refusal.instruction(), refusal.lines().len()), (Some(7), LINES));
    assert!(refusal.lines().iter().all(|l| l.len() <= WIDTH));
}

#[test]
fn hostile_logs_are_read() {
    for log in [
        "1: (",
        "1: (é)x",
        "insn ",
        ": (71) ",
        "\n\n\n",
        "99999999999999999999: (71) x",
        "é".repeat(400).as_str(),
    ] {
        let refusal = Refusal::new(usize::MAX, Errno::INVAL, log);
        assert_eq!((refusal.instruction(), refusal.why().as_str()), (None, "Invalid argument"), "{log}");
    }
}

fn i(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Operation {
    Operation::new(code, to, from, offset, immediate)
}

/// Wrong programs, with the number of the wrong instruction and the reason.
fn wrong(map: i32) -> Vec<(Vec<Operation>, Option<usize>, &'static str)> {
    let exit = i(code::EXIT, 0, 0, 0, 0);
    let set = |to, n| i(code::ALU64 | code::MOV, to, 0, 0, n);
    let copy = |to, from| i(code::ALU64 | code::MOV | code::REGISTER, to, from, 0, 0);
    let look_up = [
        copy(6, 1),
        i(code::STORE_CONSTANT | code::W, 10, 0, -4, 0),
        i(code::WIDE, 1, code::MAP, 0, map),
        i(0, 0, 0, 0, 0),
        copy(2, 10),
        i(code::ALU64 | code::ADD, 2, 0, 0, -4),
        i(code::CALL, 0, 0, 0, helper::MAP_LOOKUP),
    ];
    let found = |rest: &[Operation]| [&look_up[..], &[i(code::JUMP | code::JEQ, 0, 0, 1, 0)], rest].concat();
    vec![
        (vec![copy(0, 3), exit], Some(0), "no value"),
        (
            vec![i(code::LOAD | code::W, 2, 1, 0, 0), i(code::LOAD | code::B, 0, 2, 40, 0), exit],
            Some(1),
            "present",
        ),
        (vec![set(0, 2), exit, set(0, 1), exit], Some(2), "no path reaches"),
        (vec![set(0, 0), set(1, 5), i(code::JUMP, 0, 0, -2, 0)], None, "loop"),
        (vec![i(code::JUMP, 0, 0, 9, 0), exit], Some(0), "out of the program"),
        (vec![set(1, 0), i(code::CALL, 0, 0, 0, 9999), exit], Some(1), "calls a function"),
        (vec![set(1, 0), i(code::CALL, 0, 0, 0, 9), exit], Some(1), "calls a function"),
        (
            [&look_up[..], &[i(code::LOAD | code::DW, 0, 0, 0, 0), exit]].concat(),
            Some(7),
            "there is an entry",
        ),
        (found(&[i(code::LOAD | code::DW, 0, 0, 8, 0), set(0, 0), exit]), Some(8), "end of a table's entry"),
        (vec![set(2, 5), i(code::LOAD | code::B, 0, 2, 0, 0), exit], Some(1), "not an address"),
        (
            vec![i(code::STORE_CONSTANT | code::DW, 10, 0, -520, 0), set(0, 0), exit],
            Some(0),
            "outside its stack",
        ),
        // More steps than the verifier takes, and than the log has room for.
        (
            vec![
                set(0, 0),
                i(code::ALU64 | code::ADD, 0, 0, 0, 1),
                i(code::JUMP | code::JLT, 0, 0, -2, 2_000_000),
                exit,
            ],
            None,
            "too many paths",
        ),
    ]
}

#[test]
fn the_kernel_refuses_wrong_programs_as_explained() {
    let name = "device::xdp::verifier::tests::the_kernel_refuses_wrong_programs_as_explained";
    inside_with_bpf(name, || {
        let shape = |entries| MapShape { kind: MapKind::Hash, key: 4, value: 8, entries };
        let map = match Map::new(shape(4)) {
            Ok(map) => map,
            Err(e) => return println!("SKIP: {name}: {e}"),
        };
        for (program, at, why) in wrong(map.fd().as_raw_fd()) {
            let (errno, log) = Program::load_explained(&program).unwrap_err();
            let refusal = Refusal::new(0, errno, &log);
            // Later kernels may say more or something else, but not about another instruction.
            assert!(at.is_none() || refusal.instruction() == at, "{at:?}: {log}");
            assert!(refusal.why().contains(why), "{why}: {:?}", refusal.lines());
        }
        let huge = MapShape { key: 1 << 20, ..shape(1 << 30) };
        let error = too_large(huge, Map::new(huge).unwrap_err()).unwrap();
        assert_eq!(error, "a map of 1073741824 entries of 1048584 bytes is too large for the kernel");
    });
}
