// SPDX-License-Identifier: MIT OR Apache-2.0
//! No text makes the front end, the formatter, the interpreter or the compiler panic. The texts are the examples and the
//! programs with diagnostics, with tokens removed, repeated, exchanged or replaced.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::render::render_pretty;
use castanet_diagnostic::{Diagnostic, Sources};
use castanet_prolac::interp::{Machine, NoHost};
use castanet_prolac::load::{Extensions, NoFiles};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::ModuleId;
use castanet_prolac::syntax::tree;
use castanet_prolac::{format, graph, outline, rust, stats};
use std::path::Path;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n as u64) as usize
    }
}

fn texts(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == "pc")).collect();
    paths.sort();
    paths.into_iter().map(|p| std::fs::read_to_string(p).unwrap()).collect()
}

fn tokens(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (root, _) = tree(&sources, file);
    let tokens = root.descendants_with_tokens().filter_map(|e| e.into_token());
    tokens.map(|t| t.text().to_string()).collect()
}

/// Runs everything that takes a program. Returns whether it had no errors.
fn survives(text: &str) -> bool {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (root, syntax_errors) = tree(&sources, file);
    assert_eq!(root.text().to_string(), text);
    if let Ok(formatted) = format::format(&sources, file) {
        let again = sources.add("formatted.pc", formatted.as_str());
        assert_eq!(format::format(&sources, again).as_deref(), Ok(formatted.as_str()), "{text}");
    }
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &NoFiles, &Extensions::All);
    render_pretty(&sources, &diagnostics, false);
    if syntax_errors.is_empty() {
        assert!(graph::svg(&program).starts_with("<svg "));
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    for set in [Optimisations::ALL, Optimisations::NONE] {
        rust::compile(&program, set);
    }
    outline::outline(&program);
    let _ = stats::stats(&program, Optimisations::ALL).to_string();
    for m in 0..program.modules.len() {
        if program.modules[m].punned.is_none() {
            let mut host = NoHost;
            let mut machine = Machine::new(&program, &mut host, 20_000);
            let constructor = program.modules[m].constructor.map_or(0, |c| program.method(c).params.len());
            let args = vec![castanet_prolac::interp::Value::Number(1); constructor];
            if let Ok(object) = machine.create(ModuleId(m), args) {
                let _ = machine.call(ModuleId(m), "main", object, Vec::new());
            }
        }
    }
    true
}

#[test]
fn changed_programs() {
    let host = "host log(n :> int); host say(t :> string, n :> uint); host packet(n :> uint) :> bytes;\n";
    let mut programs = texts("tests/diagnostics");
    // The examples have no errors, so changes of them often have none either.
    for _ in 0..20 {
        programs.extend(texts("tests/oracle/examples").into_iter().map(|t| format!("{host}{t}")));
    }
    let all: Vec<Vec<String>> = programs.iter().map(|t| tokens(t)).collect();
    let rounds = std::env::var("PROLAC_GARBAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let (mut random, mut good, mut tried) = (Random(12345), 0, 0);
    for _ in 0..rounds {
        for words in &all {
            let mut words = words.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(words.len());
                let other = &all[random.below(all.len())];
                let word = other[random.below(other.len())].clone();
                match random.below(5) {
                    0 => {
                        words.remove(at);
                    }
                    1 => words.insert(at, word),
                    2 => words[at] = word,
                    3 => {
                        let second = random.below(words.len());
                        words.swap(at, second);
                    }
                    _ => words.truncate(at.max(1)),
                }
                if words.is_empty() {
                    break;
                }
            }
            tried += 1;
            good += usize::from(survives(&words.concat()));
        }
    }
    assert!(good > tried / 50, "{good} of {tried} changed programs have no errors");
}
