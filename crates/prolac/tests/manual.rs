// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs each example of the manual, and checks that it is formatted.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::Sources;
use castanet_diagnostic::render::render_pretty;
use castanet_prolac::arith;
use castanet_prolac::format::format;
use castanet_prolac::interp::{Host, Machine, Memory, Value};
use castanet_prolac::load::{Extensions, Files};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::{ModuleId, Type};
use castanet_prolac::syntax::{SyntaxKind, SyntaxNode, words_and_operators};
use std::collections::{BTreeMap, BTreeSet};

struct Named(BTreeMap<String, String>);

impl Files for Named {
    fn read(&self, _: &str, name: &str) -> Result<(String, String), String> {
        let name = name.trim_start_matches("./");
        let text = self.0.get(name).ok_or("no such file")?;
        Ok((name.to_string(), text.clone()))
    }
}

struct Log(Vec<String>);

impl Host for Log {
    fn call(&mut self, _: &mut Memory, name: &str, args: &[Value]) -> Value {
        let first = args.first().map_or(0, Value::number);
        match name {
            "packet" => return Value::Bytes(0, 0),
            "log" => self.0.push((first as i32).to_string()),
            "say" => {
                let number = args.get(1).map_or(0, Value::number);
                let Some(Value::Text(text)) = args.first() else { return Value::Void };
                self.0.push(format!("{text} {number}"));
                return Value::Number(number);
            }
            _ => {}
        }
        Value::Number(first)
    }
}

/// The examples, each with the file name that its first line gives, if it gives one.
fn examples() -> Vec<(Option<String>, String)> {
    let manual =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/prolac.md")).unwrap();
    let blocks = manual.split("```prolac\n").skip(1).map(|b| b.split("```").next().unwrap().to_string());
    let name = |text: &str| {
        let first = text.lines().next()?.strip_prefix("// ")?;
        first.ends_with(".pc").then(|| first.to_string())
    };
    blocks.map(|b| (name(&b), b)).collect()
}

#[test]
fn every_example_runs() {
    let examples = examples();
    assert!(examples.len() >= 20, "{}", examples.len());
    let files = Named(examples.iter().filter_map(|(n, b)| Some((n.clone()?, b.clone()))).collect());
    for (_, text) in examples.iter().filter(|(_, b)| b.contains("module Main")) {
        let mut sources = Sources::new();
        let file = sources.add("main.pc", text.as_str());
        let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &files, &Extensions::All);
        assert!(diagnostics.is_empty(), "{text}\n{}", render_pretty(&sources, &diagnostics, false));
        let main = ModuleId(program.modules.iter().position(|m| m.name == "Main").unwrap());
        let mut log = Log(Vec::new());
        let mut machine = Machine::new(&program, &mut log, 100_000);
        machine.memory.packets.push((0..64).collect());
        let object = machine.create(main, Vec::new()).unwrap();
        let value = machine.call(main, "main", object, Vec::new()).unwrap().unwrap();
        let ty =
            program.methods.iter().find(|m| m.module == main && m.name == "main").map(|m| m.result.clone());
        let shown = arith::signed(value.number(), &ty.unwrap_or(Type::Void)).to_string();
        let said =
            |word: &str| text.lines().filter_map(|l| l.strip_prefix(word)).collect::<Vec<_>>().join(" ");
        assert_eq!((shown, log.0.join(" ")), (said("// main is "), said("// logs ")), "{text}");
        // The compiler prints something for each; the oracle tests that it is right.
        assert!(castanet_prolac::rust::compile(&program, Optimisations::ALL).text.contains("fn main"));
    }
}

/// The words and operators of the language that stand in a tree, with the kinds of their nodes.
fn found(tree: &SyntaxNode, all: &mut BTreeSet<(String, SyntaxKind)>) {
    for token in tree.descendants_with_tokens().filter_map(|e| e.into_token()) {
        if !matches!(token.kind(), SyntaxKind::Comment | SyntaxKind::Text) {
            all.extend(token.parent_ancestors().take(1).map(|n| (token.text().to_string(), n.kind())));
        }
    }
}

#[test]
fn every_word_and_operator_has_an_example() {
    let examples = examples();
    let (mut uses, mut texts) = (BTreeSet::new(), String::new());
    for (_, text) in &examples {
        let mut sources = Sources::new();
        let file = sources.add("example.pc", text.as_str());
        found(&castanet_prolac::syntax::tree(&sources, file).0, &mut uses);
        texts.push_str(text);
    }
    let all = words_and_operators();
    assert!(all.len() > 130, "{}", all.len());
    for (word, node) in all {
        let used = uses.iter().any(|(w, n)| w == word && node.is_none_or(|node| node == *n));
        assert!(used, "no example uses '{word}' {node:?}");
    }
    // What several tokens, or a part of one, stand for.
    for (word, node) in [
        ("++", SyntaxKind::Postfix),
        ("--", SyntaxKind::Postfix),
        ("[", SyntaxKind::Postfix),
        ("*", SyntaxKind::Type),
        ("?", SyntaxKind::Type),
        ("[", SyntaxKind::Type),
        (".", SyntaxKind::Member),
        (".", SyntaxKind::Atom),
    ] {
        assert!(uses.contains(&(word.to_string(), node)), "no example uses '{word}' in {node:?}");
    }
    for text in ["?*", "as bytes", "as *", ":> .", "(int) ", "0x", "0b", "1_000", "/* ", "// "] {
        assert!(texts.contains(text), "no example uses '{text}'");
    }
}

/// With `PROLAC_FORMAT_MANUAL` set, the examples are formatted in place.
#[test]
fn every_example_is_formatted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/prolac.md");
    let mut manual = std::fs::read_to_string(path).unwrap();
    let rewrite = std::env::var_os("PROLAC_FORMAT_MANUAL").is_some();
    for (_, text) in examples() {
        let mut sources = Sources::new();
        let file = sources.add("example.pc", text.as_str());
        let formatted = format(&sources, file).unwrap();
        if rewrite {
            manual = manual.replace(&text, &formatted);
        } else {
            assert_eq!(formatted, text);
        }
    }
    if rewrite {
        std::fs::write(path, manual).unwrap();
    }
}
