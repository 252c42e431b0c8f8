// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `Classifier` patterns with an evaluator that tests clause by clause and byte by byte.
#![allow(clippy::unwrap_used)]

mod clauses;
mod packets;

use castanet_classify::{Output, Program, Shape, Target, WarningKind};
use clauses::{Clause, first_match, patterns, texts};
use packets::Rng;

#[test]
fn random_patterns_at_every_length() {
    let mut rng = Rng(0x5eed_0001);
    let mut hits = 0;
    for round in 0..600 {
        let patterns = patterns(&mut rng);
        let texts = texts(&patterns, &mut rng);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (program, warnings) = Program::from_classifier(&texts).unwrap();
        let mut seen = vec![false; patterns.len()];
        for _ in 0..12 {
            let packet = clauses::packet(&patterns, &mut rng);
            for len in 0..=packet.len() {
                let want = first_match(&patterns, &packet[..len]);
                if let Some(w) = want {
                    seen[w] = true;
                    hits += usize::from(w > 0);
                }
                assert_eq!(
                    program.classify(&packet[..len]).port(),
                    want,
                    "round {round}: {texts:?} {len}\n{program}"
                );
            }
        }
        for w in warnings {
            assert!(!seen[w.pattern], "{texts:?}: {w}");
        }
    }
    assert!(hits > 10_000, "{hits}");
}

#[test]
fn many_patterns_stay_right_when_pruning_gives_up() {
    let mut rng = Rng(0x5eed_0002);
    let patterns: Vec<Vec<Clause>> =
        (0..150).map(|_| (0..3).map(|_| Clause::random(&mut rng)).collect()).collect();
    let texts = texts(&patterns, &mut rng);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (program, _) = Program::from_classifier(&texts).unwrap();
    for _ in 0..400 {
        let packet: Vec<u8> = (0..24).map(|_| [0x00, 0x01, 0x10, 0xff, 0x5a][rng.below(5)]).collect();
        for len in [0, 3, 9, 13, 16, 20, 24] {
            let want = first_match(&patterns, &packet[..len]);
            assert_eq!(program.classify(&packet[..len]).port(), want);
        }
    }
}

#[test]
fn ten_thousand_patterns() {
    let texts: Vec<String> = (0..10_000).map(|i| format!("12/{i:04x}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (program, warnings) = Program::from_classifier(&texts).unwrap();
    assert_eq!((warnings.len(), program.steps().len(), program.shape()), (0, 10_000, Shape::Values));
    let mut packet = [0u8; 60];
    for value in [0u16, 1, 4711, 9_999, 10_000, 65_535] {
        packet[12..14].copy_from_slice(&value.to_be_bytes());
        let want = (value < 10_000).then_some(usize::from(value));
        for len in [14, 16, 60] {
            assert_eq!(program.classify(&packet[..len]).port(), want);
        }
        assert_eq!(program.classify(&packet[..13]), Output::DROP);
    }
}

#[test]
fn program_text() {
    let text = |patterns: &[&str]| Program::from_classifier(patterns).unwrap().0.program_text();
    let lines = |lines: &[&str]| lines.join("\n") + "\nalignment offset 0\n";
    assert_eq!(
        text(&["12/0800", "12/0806 20/0001", "!0/52", "-"]),
        lines(&[
            " 0  12/08000000%ffff0000  yes->[0]  no->step 1",
            " 1  12/08060000%ffff0000  yes->step 2  no->step 3",
            " 2  20/00010000%ffff0000  yes->[1]  no->step 3",
            " 3   0/52000000%ff000000  yes->[3]  no->[2]",
            "safe length 22",
        ])
    );
    assert_eq!(text(&["-"]), lines(&["all->[0]", "safe length 0"]));
    assert_eq!(text(&[]), lines(&["all->[X]", "safe length 0"]));
    assert_eq!(text(&["12/0800"]), lines(&[" 0  12/08000000%ffff0000  yes->[0]  no->[X]", "safe length 14"]));
    assert_eq!(
        text(&["33/02%12 2/?a?B%ffF?"]),
        lines(&[
            " 0  32/00020000%00120000  yes->step 1  no->[X]",
            " 1   0/00000a00%00000f00  yes->[0]  no->[X]",
            "safe length 34",
        ])
    );
}

#[test]
fn shapes() {
    let shape = |patterns: &[&str]| Program::from_classifier(patterns).unwrap().0.shape();
    assert_eq!(shape(&[]), Shape::Always(Output::DROP));
    assert!(matches!(shape(&["-", "0/00"]), Shape::Always(out) if out.port() == Some(0)));
    assert_eq!(shape(&["12/0800", "-"]), Shape::OneStep);
    assert_eq!(shape(&["12/0800", "12/0806", "-"]), Shape::Values);
    assert_eq!(shape(&["12/0800 23/06", "12/0806"]), Shape::General);
    // Only the length is tested.
    assert_eq!(shape(&["99/??", "-"]), Shape::General);
}

#[test]
fn missing_bytes() {
    let run =
        |patterns: &[&str], data: &[u8]| Program::from_classifier(patterns).unwrap().0.classify(data).port();
    assert_eq!(run(&["4/00", "-"], &[0, 0]), Some(1));
    assert_eq!(run(&["!4/11"], &[0, 0]), Some(0));
    assert_eq!(run(&["99/??", "-"], &[0; 99]), Some(1));
    assert_eq!(run(&["99/??", "-"], &[0; 100]), Some(0));
    assert_eq!(run(&["!99/??", "-"], &[0; 99]), Some(0));
    // A clause that extends over two words needs both words. One of the words alone can show that the clause is false.
    assert_eq!(run(&["2/11112222", "-"], &[0, 0, 0x11, 0x11, 0x22]), Some(1));
    assert_eq!(run(&["2/11112222", "-"], &[0, 0, 0x11, 0x11, 0x22, 0x22]), Some(0));
    assert_eq!(run(&["!2/11112222", "-"], &[0, 0, 0x11, 0x11, 0x22]), Some(0));
    assert_eq!(run(&["!2/11112222", "-"], &[0, 0, 0x11, 0x11, 0x22, 0x22]), Some(1));
}

#[test]
fn warnings_name_outputs() {
    let warned = |patterns: &[&str]| -> Vec<usize> {
        let warnings = Program::from_classifier(patterns).unwrap().1;
        assert!(warnings.iter().all(|w| w.kind == WarningKind::OutputMatchesNothing));
        warnings.iter().map(|w| w.pattern).collect()
    };
    assert_eq!(warned(&["-", "12/0800"]), [1]);
    assert_eq!(warned(&["12/0800", "12/0800 14/45"]), [1]);
    assert_eq!(warned(&["12/0800 12/0806", "-"]), [0]);
    assert_eq!(warned(&["3/??", "!3/??", "3/00%01", "-"]), [2, 3]);
    assert_eq!(warned(&["!20/00", "20/00", "-"]), [2]);
    assert_eq!(warned(&["12/0800", "!12/0800", "-"]), [2]);
    let (_, warnings) = Program::from_classifier(&["-", "1/22"]).unwrap();
    assert_eq!(warnings[0].to_string(), "output 1 matches no packets");
    assert_eq!(warnings[0].range, 0..4);
}

#[test]
fn steps_are_open_to_compilers() {
    let (program, _) = Program::from_classifier(&["12/0800 14/45", "12/0806", "-"]).unwrap();
    assert_eq!(program.root(), Target::Step(0));
    for (i, step) in program.steps().iter().enumerate() {
        assert_eq!(step.value & !step.mask, 0);
        for target in [step.yes, step.no] {
            assert!(!matches!(target, Target::Step(at) if at as usize <= i));
        }
    }
    assert_eq!((program.safe_length(), program.safe_lengths()), (15, [15, 0, 0]));
}
