// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifies one packet many times, with two programs one after the other or with the program that joins them: `joined
//! apart|joined arp|same|ip COUNT`. Callgrind counts the instructions; docs/tools.md has the results.

use std::hint::black_box;

use castanet_classify::{Exit, NoNames, Part, Program};

/// Two programs, of which the second follows output 0 of the first, and a packet that reaches both.
fn case(name: &str) -> Option<([Program; 2], Vec<u8>)> {
    let patterns = |texts: &[&str]| Program::from_classifier(texts).ok().map(|p| p.0);
    let reply = [&[0; 12][..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &[0; 38]].concat();
    let first = || patterns(&["12/0806", "12/0800", "-"]);
    Some(match name {
        "arp" => ([first()?, patterns(&["20/0001", "20/0002", "-"])?], reply),
        "same" => ([first()?, patterns(&["12/0806 20/0001", "12/0806 20/0002", "-"])?], reply),
        "ip" => {
            let filter =
                Program::from_ip_filter(&["deny src net 10.0.0.0/8", "allow all"], &NoNames, 1).ok()?.0;
            let ports = Program::from_ip_classifier(&["tcp dst port www", "udp", "-"], &NoNames).ok()?.0;
            let request = [
                &[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 9, 9, 0, 80][..],
                &[0; 16],
            ];
            ([filter, ports], request.concat())
        }
        _ => return None,
    })
}

/// Joins the two programs.
fn join([first, second]: &[Program; 2]) -> Option<Program> {
    let outputs =
        |program: &Program, from: usize| (from..from + program.outputs()).map(|o| Exit::Output(o as u32));
    let rest = outputs(first, second.outputs()).skip(1);
    let first = Part { program: first, exits: std::iter::once(Exit::Part(1)).chain(rest).collect() };
    let parts = [first, Part { program: second, exits: outputs(second, 0).collect() }];
    Program::join(&parts, parts.iter().map(|p| p.exits.len()).sum())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, name, count] = args.as_slice() else {
        eprintln!("usage: joined apart|joined arp|same|ip COUNT");
        return;
    };
    let (Some((programs, packet)), Ok(count)) = (case(name), count.parse::<u32>()) else {
        eprintln!("no such case, or bad COUNT");
        return;
    };
    let (Some(whole), [first, second]) = (join(&programs), &programs) else { return };
    let one = |packet: &[u8]| whole.classify(packet).number();
    let two = |packet: &[u8]| match first.classify(packet) {
        output if output.port() == Some(0) => second.classify(packet).number(),
        output => output.number(),
    };
    let packets = (0..count).map(|_| black_box(packet.as_slice()));
    let sum: u32 = if mode == "joined" { packets.map(one).sum() } else { packets.map(two).sum() };
    println!(
        "sum of outputs {sum}; tests {}, {}, joined {}",
        first.steps().len(),
        second.steps().len(),
        whole.steps().len()
    );
}
