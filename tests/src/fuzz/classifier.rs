// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz targets for the classifier languages and for their machine code, with packets to classify.

use super::at_most;
use castanet_classify::definitions::Definitions;
use castanet_classify::{NoNames, Output, Program};
use std::borrow::Cow;

/// The maximum number of patterns in an input.
const MOST: usize = 16;

/// Checks that classifying with each pattern alone is consistent with all patterns together: the first match
/// decides.
fn agree(whole: &Program, alone: &[(Program, Output)], packet: &[u8]) {
    let first = alone.iter().find(|(p, _)| p.classify(packet) != Output::DROP);
    let expected = first.map_or(Output::DROP, |(_, output)| *output);
    assert_eq!(whole.classify(packet), expected, "{}", whole.program_text());
}

/// Splits an input. The first byte selects a language. Text follows up to a byte 255, and the rest is a packet.
fn parts(data: &[u8]) -> Option<(u8, Cow<'_, str>, &[u8])> {
    let (&language, rest) = at_most(data, 2048).split_first()?;
    let end = rest.iter().position(|&b| b == 255).unwrap_or(rest.len());
    let (text, packet) = rest.split_at(end);
    let packet = at_most(packet.get(1..).unwrap_or_default(), 128);
    Some((language, String::from_utf8_lossy(text), packet))
}

/// Compiles patterns of a language.
fn compile(language: u8, patterns: &[&str]) -> Option<Program> {
    let compiled = match language % 3 {
        0 => Program::from_classifier(patterns),
        1 => Program::from_ip_classifier(patterns, &NoNames),
        _ => Program::from_ip_filter(patterns, &NoNames, MOST),
    };
    compiled.ok().map(|c| c.0)
}

/// Classifies every beginning of a packet by machine code and by the interpreter. The text of the input is patterns, one per line,
/// and is also read as the text of a program.
pub fn jit(data: &[u8]) {
    let Some((language, text, packet)) = parts(data) else { return };
    let patterns: Vec<&str> = text.lines().take(MOST).collect();
    let programs = [compile(language, &patterns), Program::assemble(text.lines()).ok()];
    for program in programs.into_iter().flatten() {
        let Some(code) = castanet_jit::compile(&program) else { continue };
        for n in 0..=packet.len() {
            let data = at_most(packet, n);
            if let Some(number) = code.run(data) {
                assert_eq!(Output::from_number(number), program.classify(data), "{program}");
            }
        }
    }
}

/// Classifies a packet and every beginning of it. The text of the input is patterns, one per line. It is also read as the text of
/// a program and of definitions, which must do no harm.
pub fn classifier(data: &[u8]) {
    let Some((language, text, packet)) = parts(data) else { return };
    let _ = Definitions::parse(text.as_bytes());
    if let Ok(program) = Program::assemble(text.lines()) {
        for n in 0..=packet.len() {
            std::hint::black_box(program.classify_frame(packet, at_most(packet, n)));
        }
    }
    let patterns: Vec<&str> = text.lines().take(MOST).collect();
    let Some(whole) = compile(language, &patterns) else { return };
    whole.program_text();
    let mut alone = Vec::new();
    for (i, &pattern) in patterns.iter().enumerate() {
        // In a filter, the action of the matching rule gives the output. A rule that is tested alone gets the action
        // `allow`, so that its match is visible even if its own action is `drop`.
        let (pattern, output) = if language % 3 == 2 {
            let Some((action, condition)) = pattern.trim().split_once(char::is_whitespace) else { return };
            let output = match action {
                "allow" => Some(0),
                "deny" | "drop" => None,
                n => match n.parse::<usize>() {
                    Ok(n) if n < MOST => Some(n),
                    _ => return,
                },
            };
            (format!("allow {condition}"), output)
        } else {
            (pattern.to_string(), Some(i))
        };
        let Some(program) = compile(language, &[&pattern]) else { return };
        alone.push((program, output));
    }
    let numbered = |n: Option<usize>| n.map_or(Output::DROP, |n| Output::from_number(n as u32));
    let alone: Vec<_> = alone.into_iter().map(|(p, o)| (p, numbered(o))).collect();
    let lines = whole.disassemble();
    let again = Program::assemble(lines.iter().map(String::as_str));
    assert!(again.is_ok(), "{again:?} {lines:?}");
    for n in 0..=packet.len() {
        agree(&whole, &alone, at_most(packet, n));
        if let Ok(again) = &again {
            agree(again, &alone, at_most(packet, n));
        }
    }
}
