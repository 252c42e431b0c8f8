// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long programs: limits are reported once, and what the compiler does grows with the program and no faster.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::{Diagnostic, Sources};
use castanet_prolac::format::format;
use castanet_prolac::load::{Extensions, NoFiles};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::Program;
use castanet_prolac::rust::compile;

fn analyse(text: &str) -> (Program, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    castanet_prolac::analyse(&mut sources, file, &NoFiles, &Extensions::none())
}

/// Modules that extend each other, each of whose methods calls the one that it replaces.
fn chain(length: usize) -> Vec<String> {
    let first = "module M0 { step(n :> int) :> int ::= n; }".to_string();
    let next = |i: usize| {
        let parent = i - 1;
        format!(
            "module M{i} :> M{parent} {{ step(n :> int) :> int ::= super.step(n + 1) * 2; own{i} ::= step({i}); }}"
        )
    };
    let last = length - 1;
    let main = format!("module Main {{ main ::= let m = M{last} in m.step(1) + m.own1 end; }}");
    std::iter::once(first).chain((1..length).map(next)).chain([main]).collect()
}

#[test]
fn a_chain_of_modules_is_bounded() {
    for length in [201, 202, 500, 3_000] {
        let mut modules = chain(length);
        for _ in 0..2 {
            let (_, diagnostics) = analyse(&modules.join("\n"));
            let messages: Vec<_> = diagnostics.into_iter().map(|d| d.message).collect();
            let want: &[&str] = if length > 201 { &["more than 200 modules extend each other"] } else { &[] };
            assert_eq!(messages, want, "{length}");
            modules.reverse();
        }
    }
}

/// Each method of a chain calls the one before it. The text of the compiled program grows by the same amount for each module.
#[test]
fn chains_of_calls_grow_linearly() {
    let length = |modules: usize| {
        let (program, diagnostics) = analyse(&chain(modules).join("\n"));
        assert!(diagnostics.is_empty());
        compile(&program, Optimisations::ALL).text.len()
    };
    let [short, middle, long] = [50, 100, 200].map(length);
    let (first, second) = (middle - short, long - middle);
    assert!(first > 100_000 && second * 10 < first * 21, "{short} {middle} {long}");
}

/// This takes seconds at most. When each comment took a pass over the text before it, it took many minutes.
#[test]
fn comments_are_formatted_in_one_pass() {
    for comment in ["// a comment\n", "/* a */\n", "/* a */ "] {
        let text = comment.repeat((8 << 20) / comment.len());
        let mut sources = Sources::new();
        let file = sources.add("test.pc", text.as_str());
        assert_eq!(format(&sources, file).unwrap(), text.trim_end().to_string() + "\n");
    }
}
