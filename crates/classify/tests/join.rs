// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are joined classify as one after the other does.
#![allow(clippy::unwrap_used)]

mod clauses;
mod oracle;
mod packets;

use castanet_classify::{Exit, NoNames, Part, Program};
use clauses::{Clause, first_match, patterns, texts};
use oracle::{Packet, Tree};
use packets::Rng;

/// Decides at random what follows each output of `counts.len()` parts, of which part `i` has `counts[i]` outputs. Every part but
/// the first follows one output. Returns the exits of each part, and the number of outputs of the whole.
fn exits(counts: &[usize], rng: &mut Rng) -> (Vec<Vec<Exit>>, usize) {
    let mut exits: Vec<Vec<Option<Exit>>> = counts.iter().map(|&n| vec![None; n]).collect();
    for next in 1..counts.len() {
        let free: Vec<(usize, usize)> = (0..next)
            .flat_map(|p| (0..counts[p]).map(move |o| (p, o)))
            .filter(|&(p, o)| exits[p][o].is_none())
            .collect();
        let (part, output) = free[rng.below(free.len())];
        exits[part][output] = Some(Exit::Part(next));
    }
    let mut outputs = 0;
    let mut number = |exit: Option<Exit>| {
        exit.unwrap_or_else(|| {
            outputs += 1;
            Exit::Output(outputs - 1)
        })
    };
    let exits = exits.into_iter().map(|e| e.into_iter().map(&mut number).collect()).collect();
    (exits, outputs as usize)
}

/// Follows a packet through the parts. `classify` returns the output of a part.
fn follow(exits: &[Vec<Exit>], mut classify: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
    let mut part = 0;
    loop {
        match exits[part][classify(part)?] {
            Exit::Part(next) => part = next,
            Exit::Output(out) => return Some(out as usize),
        }
    }
}

fn joined(programs: &[Program], exits: &[Vec<Exit>], outputs: usize) -> Program {
    let parts = programs.iter().zip(exits).map(|(program, exits)| Part { program, exits: exits.clone() });
    Program::join(&parts.collect::<Vec<_>>(), outputs).unwrap()
}

#[test]
fn patterns_of_several_classifiers() {
    let mut rng = Rng(0x5eed_3001);
    let (mut later, mut tests, mut alone) = (0, 0, 0);
    for round in 0..300 {
        // At least two outputs each, so that all parts find an output to follow.
        let parts: Vec<Vec<Vec<Clause>>> = (0..1 + rng.below(4))
            .map(|_| [patterns(&mut rng), patterns(&mut rng)].into_iter().flatten().collect())
            .collect();
        let programs: Vec<Program> = parts
            .iter()
            .map(|p| {
                let texts = texts(p, &mut rng);
                Program::from_classifier(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap().0
            })
            .collect();
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        let (exits, outputs) = exits(&counts, &mut rng);
        let whole = joined(&programs, &exits, outputs);
        assert_eq!(whole.outputs(), outputs);
        tests += whole.steps().len();
        alone += programs.iter().map(|p| p.steps().len()).sum::<usize>();
        let again = Program::assemble(whole.disassemble().iter().map(String::as_str)).unwrap();
        for _ in 0..12 {
            let some = &parts[rng.below(parts.len())];
            let packet = clauses::packet(some, &mut rng);
            for len in 0..=packet.len() {
                let want = follow(&exits, |part| {
                    let out = first_match(&parts[part], &packet[..len]);
                    later += usize::from(part > 0 && out.is_some());
                    out
                });
                let got = whole.classify(&packet[..len]).port();
                assert_eq!(got, want, "round {round}: {programs:?} {exits:?} {len}\n{whole}");
                assert_eq!(again.classify(&packet[..len]).port(), want, "{again}");
            }
        }
    }
    assert!(later > 5_000, "{later} packets classified by a later part");
    assert!(tests < alone, "{tests} tests in the joined programs, {alone} before");
}

#[test]
fn expressions_of_several_classifiers() {
    let mut rng = Rng(0x5eed_3002);
    let mut later = 0;
    for _ in 0..150 {
        let parts: Vec<Vec<Tree>> = (0..1 + rng.below(3))
            .map(|_| (0..2 + rng.below(2)).map(|_| Tree::random(&mut rng, 1)).collect())
            .collect();
        let texts: Vec<Vec<String>> =
            parts.iter().map(|p| p.iter().map(|t| t.text(&mut rng)).collect()).collect();
        // Rules of an IPFilter may drop packets, and several may lead to one output.
        let actions: Vec<Vec<usize>> =
            parts.iter().map(|p| p.iter().map(|_| rng.below(3)).collect()).collect();
        let programs: Vec<Program> = texts
            .iter()
            .zip(&actions)
            .map(|(texts, actions)| {
                let rule = |(t, a): (&String, &usize)| format!("{} {t}", ["0", "1", "deny"][*a]);
                let rules: Vec<String> = texts.iter().zip(actions).map(rule).collect();
                let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
                Program::from_ip_filter(&rules, &NoNames, 2).unwrap().0
            })
            .collect();
        let (exits, outputs) = exits(&vec![2; parts.len()], &mut rng);
        let whole = joined(&programs, &exits, outputs);
        for _ in 0..6 {
            let (ether, network) = packets::packet(&mut rng);
            for len in 0..=network.len() {
                let p = Packet { ether: &ether, network: &network[..len] };
                let want = follow(&exits, |part| {
                    let rule = parts[part].iter().position(|t| t.holds(&p))?;
                    later += usize::from(part > 0);
                    Some(actions[part][rule]).filter(|a| *a < 2)
                });
                let got = whole.classify_frame(p.ether, p.network).port();
                assert_eq!(got, want, "{texts:#?} {actions:?} {exits:?} {len} of {network:02x?}\n{whole}");
            }
        }
    }
    assert!(later > 2_000, "{later} packets classified by a later part");
}

#[test]
fn the_second_of_two_equal_tests_is_left_out() {
    let program = |texts: &[&str]| Program::from_classifier(texts).unwrap().0;
    let first = program(&["12/0800", "12/0806", "-"]);
    let second = program(&["12/0800 14/45", "12/0806", "-"]);
    let exits = vec![Exit::Part(1), Exit::Output(3), Exit::Output(4)];
    let rest = vec![Exit::Output(0), Exit::Output(1), Exit::Output(2)];
    let parts = [Part { program: &first, exits }, Part { program: &second, exits: rest }];
    let whole = Program::join(&parts, 5).unwrap();
    assert_eq!(
        whole.disassemble().join("\n"),
        "data 5\n12/08000000%ffff0000 14 1 2\n12/00004500%0000ff00 15 [0] [2]\n12/08060000%ffff0000 14 [3] [4]"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = Program::from_classifier(&["12/0800", "-"]).unwrap().0;
    let ip = Program::from_ip_classifier(&["tcp", "-"], &NoNames).unwrap().0;
    let part = |program, exits: &[Exit]| Part { program, exits: exits.to_vec() };
    let outputs = [Exit::Output(0), Exit::Output(1)];
    assert!(Program::join(&[], 0).is_none());
    assert!(Program::join(&[part(&data, &outputs)], 2).is_some());
    assert!(Program::join(&[part(&data, &outputs)], 1).is_none());
    assert!(Program::join(&[part(&data, &[Exit::Part(0)])], 1).is_none());
    assert!(Program::join(&[part(&data, &[Exit::Part(1)])], 1).is_none());
    assert!(Program::join(&[part(&data, &[Exit::Part(1)]), part(&ip, &outputs)], 2).is_none());
    // Outputs without an entry drop.
    let whole = Program::join(&[part(&data, &outputs[..1])], 1).unwrap();
    assert_eq!(whole.classify(&[0; 20]).port(), None);
}
