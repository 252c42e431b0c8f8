// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs as text: what is read back classifies as before, and hostile text is refused or harmless.
#![allow(clippy::unwrap_used)]

mod clauses;
mod oracle;
mod packets;

use castanet_classify::definitions::Definitions;
use castanet_classify::{NoNames, Program};
use clauses::{first_match, patterns, texts};
use oracle::{Packet, Tree};
use packets::Rng;

fn assembled(text: &str) -> Result<Program, String> {
    Program::assemble(text.lines()).map_err(|e| e.to_string())
}

/// Writes a program and reads it back. Checks that the text does not change.
fn again(program: &Program) -> Program {
    let text = program.disassemble().join("\n");
    let read = assembled(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(read.disassemble().join("\n"), text);
    assert_eq!((read.kind(), read.outputs()), (program.kind(), program.outputs()));
    read
}

#[test]
fn patterns_read_back_at_every_length() {
    let mut rng = Rng(0x5eed_2001);
    let (mut hits, mut same) = (0, 0);
    for round in 0..400 {
        let patterns = patterns(&mut rng);
        let texts = texts(&patterns, &mut rng);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let before = Program::from_classifier(&texts).unwrap().0;
        let program = again(&before);
        same += usize::from(before.program_text() == program.program_text());
        for _ in 0..12 {
            let packet = clauses::packet(&patterns, &mut rng);
            for len in 0..=packet.len() {
                let want = first_match(&patterns, &packet[..len]);
                hits += usize::from(want.is_some_and(|w| w > 0));
                let got = program.classify(&packet[..len]).port();
                assert_eq!(got, want, "round {round}: {texts:?} {len}\n{program}");
            }
        }
    }
    assert!(hits > 5_000, "{hits}");
    // The fast tree is made from another tree than before, but it is nearly always the same.
    assert!(same > 390, "{same}");
}

#[test]
fn expressions_read_back_at_every_length() {
    let mut rng = Rng(0x5eed_2002);
    let mut hits = 0;
    for round in 0..200 {
        let trees: Vec<Tree> = (0..1 + rng.below(4)).map(|_| Tree::random(&mut rng, 2)).collect();
        let texts: Vec<String> = trees.iter().map(|t| t.text(&mut rng)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let program = again(&Program::from_ip_classifier(&texts, &NoNames).unwrap().0);
        for _ in 0..6 {
            let (ether, network) = packets::packet(&mut rng);
            for len in 0..=network.len() {
                let p = Packet { ether: &ether, network: &network[..len] };
                let want = trees.iter().position(|t| t.holds(&p));
                hits += usize::from(want.is_some_and(|w| w > 0));
                let got = program.classify_frame(p.ether, p.network).port();
                assert_eq!(got, want, "round {round}: {texts:#?} {len} of {network:02x?}\n{program}");
            }
        }
    }
    assert!(hits > 5_000, "{hits}");
}

/// Classifies as the text says, step by step. The oracle for programs that come from nowhere.
fn walk(text: &str, ether: &[u8], network: &[u8]) -> Option<usize> {
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    let target = |word: &str| word.strip_prefix('[').map(|w| w.trim_end_matches(']').parse::<usize>().ok());
    if let Some(out) = lines.get(1).and_then(|l| target(l[0])) {
        return out;
    }
    let ip = lines[0][0] == "ip";
    let header = network.first().map_or(0, |b| usize::from(b & 15) * 4);
    let byte = |at: usize| match (ip, at) {
        (false, _) => network.get(at),
        (true, 512..) => network.get(header..).and_then(|n| n.get(at - 512)),
        (true, 256..) => network.get(at - 256),
        (true, _) => ether.get(at.wrapping_sub(2)),
    };
    let mut at = 0;
    loop {
        let line = &lines[at + 1];
        let (offset, rest) = line[0].split_once('/').unwrap();
        let (value, mask) = rest.split_once('%').unwrap();
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap().to_be_bytes();
        let (offset, need): (usize, usize) = (offset.parse().unwrap(), line[1].parse().unwrap());
        let there = need == if ip && offset < 256 { 2 } else { offset & !255 } || byte(need - 1).is_some();
        let equal = (0..4).all(|i| byte(offset + i).unwrap_or(&0) & hex(mask)[i] == hex(value)[i]);
        let next = line[if there && equal { 2 } else { 3 }];
        match target(next) {
            Some(out) => return out,
            None => at = next.parse().unwrap(),
        }
    }
}

/// Changes a text in one place.
fn mutate(text: &str, rng: &mut Rng) -> String {
    let pieces = [
        "[0]",
        "[X]",
        "[1]",
        "[4]",
        " ",
        "\n",
        "1",
        "0",
        "f",
        "/",
        "%",
        "ip 3",
        "data 2",
        "é",
        "99999999999",
        "-",
    ];
    let mut bytes = text.as_bytes().to_vec();
    let at = rng.below(bytes.len() + 1);
    let piece = rng.pick(&pieces).as_bytes();
    match rng.below(8) {
        0 => drop(bytes.drain(at..(at + 1 + rng.below(6)).min(text.len()).max(at))),
        1 => drop(bytes.splice(at..at, piece.iter().copied())),
        2 => drop(bytes.splice(at..(at + piece.len()).min(text.len()), piece.iter().copied())),
        _ => {
            if let Some(b) = bytes.get_mut(at) {
                *b = rng.pick(b"0123456789abcdef[]X");
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn hostile_text_is_refused_or_does_what_it_says() {
    let mut rng = Rng(0x5eed_2003);
    let (mut refused, mut accepted) = (0, 0);
    for round in 0..2_000 {
        let mut text = if round % 2 == 0 {
            let patterns = patterns(&mut rng);
            let texts = texts(&patterns, &mut rng);
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Program::from_classifier(&texts).unwrap().0.disassemble().join("\n")
        } else {
            let text = Tree::random(&mut rng, 2).text(&mut rng);
            Program::from_ip_classifier(&[&text, "-"], &NoNames).unwrap().0.disassemble().join("\n")
        };
        for _ in 0..8 {
            let changed = mutate(&text, &mut rng);
            // The text is also refused or harmless between other classes.
            let class = Definitions::parse(format!("class FastClassifier@@c\n{changed}\n").as_bytes());
            let Ok(program) = assembled(&changed) else {
                refused += 1;
                continue;
            };
            assert!(class.is_ok() || changed.lines().any(|l| l.trim().is_empty()), "{class:?}\n{changed}");
            accepted += 1;
            for _ in 0..4 {
                let (ether, mut network) = packets::packet(&mut rng);
                network.truncate(rng.below(network.len() + 1));
                let want = walk(&changed, &ether, &network);
                let got = program.classify_frame(&ether, &network).port();
                assert_eq!(got, want, "{changed}\n{network:02x?}\n{program}");
            }
            text = changed;
        }
    }
    assert!(refused > 5_000 && accepted > 2_000, "{refused} refused, {accepted} accepted");
}

#[test]
fn errors_name_the_line() {
    let step = "0/08000000%ff000000 1";
    for (text, want) in [
        ("", "line 1: too few words, expected 'data OUTPUTS' or 'ip OUTPUTS'"),
        ("tcp 3", "line 1: bad kind of program, expected 'data' or 'ip'"),
        ("data 3 4", "line 1: too many words, expected 'data OUTPUTS' or 'ip OUTPUTS'"),
        ("data -1", "line 1: bad number of outputs, expected a decimal number"),
        ("data 1048577\n[0]", "line 1: number of outputs too large, expected at most 1048576"),
        ("data 2", "line 2: the program has neither steps nor a target, expected a step, or '[N]' or '[X]'"),
        ("data 2\n[2]", "line 2: no such output, expected less than 2"),
        ("data 2\n[0]\n[0]", "line 3: a line after the only target"),
        (&format!("data 2\n{step} [0]"), "line 2: too few words, expected 'OFFSET/VALUE%MASK END YES NO'"),
        (&format!("data 2\n{step} [0] 0"), "line 2: a step leads to a later step, expected more than 0"),
        (&format!("data 2\n{step} [0] 1"), "line 2: there is no step 1"),
        (&format!("data 2\n{step} [0] 2\n{step} [0] [X]\n{step} [0] [X]"), "line 3: no step leads to step 1"),
        ("data 2\n0/08%ff 1 [0] [1]", "line 2: bad value, expected eight hexadecimal digits"),
        ("data 2\n0/18000000%0f000000 1 [0] [1]", "line 2: the value has bits outside the mask"),
        ("data 2\n0/00080000%00ff0000 1 [0] [1]", "line 2: the end does not fit the word, expected 2 to 4"),
        ("data 2\n0/08000000%ff000000 5 [0] [1]", "line 2: the end does not fit the word, expected 1 to 4"),
        ("ip 2\n254/00000008%000000ff 258 [0] [1]", "line 2: the word lies in two headers"),
        (
            "ip 2\n254/08000000%ff000000 257 [0] [1]",
            "line 2: the end does not fit the word, expected 255 to 256",
        ),
        (
            "data 2\n4294967295/00000000%00000000 9 [0] [1]",
            "line 2: offset too large, expected at most 1073741824",
        ),
    ] {
        assert_eq!(assembled(text).err().as_deref(), Some(want), "{text}");
    }
    let parse = |text: &str| Definitions::parse(text.as_bytes()).map_err(|e| e.to_string()).err();
    let c = "class FastClassifier@@c";
    for (text, want) in [
        ("", None),
        ("\nmerged a into b\n", None),
        (&format!("{c}\n\ndata 1\n[0]\n{c}2\ndata 1\n[X]\nmerged a into b"), None),
        ("data 1", Some("line 1: no class, expected 'class NAME'")),
        (
            "class c\ndata 1\n[0]",
            Some("line 1: bad name of a class, expected a name that begins with 'FastClassifier@@'"),
        ),
        (&format!("{c}\ndata 1\n[0]\n\n{c}\ndata 1\n[0]"), Some("line 5: the class is defined twice")),
        ("merged a into b\nmerged a into c", Some("line 2: the element is merged twice")),
        (&format!("{c}\ndata 1\n\n[1]\n{c}2"), Some("line 4: no such output, expected less than 1")),
        (&format!("{c}\n{c}2"), Some("line 2: too few words, expected 'data OUTPUTS' or 'ip OUTPUTS'")),
    ] {
        assert_eq!(parse(text).as_deref(), want, "{text}");
    }
    assert_eq!(Definitions::parse(b"\xff").unwrap_err().to_string(), "line 1: the text is not UTF-8");
}

#[test]
fn definitions_read_back() {
    let program = |patterns: &[&str]| Program::from_classifier(patterns).unwrap().0;
    let mut all = Definitions::default();
    all.classes.insert("FastClassifier@@b".into(), program(&["12/0800", "-"]));
    all.classes.insert("FastClassifier@@a".into(), program(&["-"]));
    all.merged.insert("d".into(), "b".into());
    let text = "merged d into b\nclass FastClassifier@@a\ndata 1\n[0]\nclass FastClassifier@@b\ndata 2\n\
                12/08000000%ffff0000 14 [0] [1]\n";
    assert_eq!(all.to_string(), text);
    assert_eq!(Definitions::parse(text.as_bytes()).unwrap().to_string(), text);
}

/// Large programs are read in bounded time and memory, whether or not they make sense.
#[test]
fn large_programs() {
    let steps = |n: usize, no: &dyn Fn(usize) -> usize| {
        let mut text = "data 2\n".to_string();
        for i in 0..n {
            let offset = i * 7919 % n;
            let last = if i + 1 == n { "[1]".to_string() } else { no(i).to_string() };
            text += &format!("{offset}/{i:08x}%ffffffff {} [0] {last}\n", offset + 4);
        }
        text
    };
    let next = |i: usize| i + 1;
    assert!(assembled(&steps(50_000, &next)).is_ok());
    assert!(assembled(&steps(150_000, &next)).unwrap_err().contains("more than 131072 steps"));
    assert!(assembled(&steps(50_000, &|_| 49_999)).unwrap_err().contains("no step leads to step 1"));
    assert!(Definitions::parse("merged a into b\n".repeat(100_000).as_bytes()).is_err());
    let long = "x".repeat(1 << 20);
    assert!(assembled(&format!("data 2\n{long} 4 [0] [1]")).is_err());
}
