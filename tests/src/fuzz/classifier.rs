// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for the classifier languages, with packets to classify.

use super::at_most;
use castanet_classify::definitions::Definitions;
use castanet_classify::{NoNames, Output, Program};

/// The maximum number of patterns in an input.
const MOST: usize = 16;

/// Checks that classifying with each pattern alone is consistent with all patterns together: the first match
/// decides.
fn agree(whole: &Program, alone: &[(Program, Output)], packet: &[u8]) {
    let first = alone.iter().find(|(p, _)| p.classify(packet) != Output::DROP);
    let expected = first.map_or(Output::DROP, |(_, output)| *output);
    assert_eq!(whole.classify(packet), expected, "{}", whole.program_text());
}

/// Classifies a packet. The first byte of the input selects a language. Patterns follow, one per line, up to a byte
/// 255. The rest is the packet. Every prefix of it is classified too. The text before the byte 255 is also read as the text of
/// a program and of definitions, which must do no harm.
pub fn classifier(data: &[u8]) {
    let Some((&language, rest)) = at_most(data, 2048).split_first() else { return };
    let end = rest.iter().position(|&b| b == 255).unwrap_or(rest.len());
    let (text, packet) = rest.split_at(end);
    let packet = at_most(packet.get(1..).unwrap_or_default(), 128);
    let text = String::from_utf8_lossy(text);
    let _ = Definitions::parse(text.as_bytes());
    if let Ok(program) = Program::assemble(text.lines()) {
        for n in 0..=packet.len() {
            std::hint::black_box(program.classify_frame(packet, at_most(packet, n)));
        }
    }
    let patterns: Vec<&str> = text.lines().take(MOST).collect();
    let compile = |patterns: &[&str]| match language % 3 {
        0 => Program::from_classifier(patterns),
        1 => Program::from_ip_classifier(patterns, &NoNames),
        _ => Program::from_ip_filter(patterns, &NoNames, MOST),
    };
    let Ok((whole, _)) = compile(&patterns) else { return };
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
        let Ok((program, _)) = compile(&[&pattern]) else { return };
        alone.push((program, output));
    }
    // `Output` has no public constructor, so a program of catch-all rules provides the values.
    let numbered = |n: usize| {
        let rule = format!("{n} all");
        let (p, _) = Program::from_ip_filter(&[&rule], &NoNames, MOST).ok()?;
        Some(p.classify(&[]))
    };
    let alone: Vec<_> =
        alone.into_iter().map(|(p, o)| (p, o.and_then(numbered).unwrap_or(Output::DROP))).collect();
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
