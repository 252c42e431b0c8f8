// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of elaboration.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::print::driver;
use std::collections::HashMap;

mod garbage;
mod rules;

pub(super) const CLASSES: [&str; 9] =
    ["Idle", "Tee", "Discard", "Counter", "Strip", "Null", "Queue", "Print", "Script"];

/// Libraries held in memory.
pub(super) struct Books(HashMap<&'static str, &'static str>);

impl Library for Books {
    fn read(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), LibraryError> {
        let text = self.0.get(name.trim_start_matches("./")).ok_or(LibraryError::Missing)?;
        Ok((format!("lib/{}", name.trim_start_matches("./")), text.as_bytes().to_vec()))
    }
}

pub(super) fn options<'a>(defines: &'a [(String, String)], library: &'a dyn Library) -> Options<'a> {
    Options { classes: &CLASSES, defines, library, unknown: Unknown::Error }
}

pub(super) fn elaborate(text: &str) -> (Sources, Flat, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    let (flat, diagnostics) = load(&mut sources, file, &options(&[], &NoLibrary));
    (sources, flat, diagnostics)
}

/// The elements and chains of a configuration without errors, on one line.
pub(super) fn flat(text: &str) -> String {
    let (_, flat, diagnostics) = elaborate(text);
    let messages: Vec<&str> =
        diagnostics.iter().filter(|d| d.is_error()).map(|d| d.message.as_str()).collect();
    assert_eq!(messages, Vec::<&str>::new(), "{text}");
    driver(&flat).split_whitespace().collect::<Vec<_>>().join(" ").replace("; ", ";").replace(" :: ", "::")
}

/// The messages of a configuration.
pub(super) fn messages(text: &str) -> Vec<String> {
    elaborate(text).2.into_iter().map(|d| d.message).collect()
}

#[test]
fn configuration_bytes_know_where_they_stand() {
    let text = "define($v 12345)\nelementclass C { $a | Print(x $a y, ${v[0]}) }\nC(\"q q\"); Print(a, $v)";
    let (sources, flat, _) = elaborate(text);
    let find = |name: &str, part: &str| {
        let e = &flat.elements[flat.find(name).unwrap()];
        let at = e.config.find(part).unwrap();
        sources.snippet(e.config_place(at..at + part.len())).to_string()
    };
    assert_eq!(find("C@1/Print@1", "x"), "x");
    assert_eq!(find("C@1/Print@1", "\"q q\""), "$a");
    assert_eq!(find("C@1/Print@1", "q\" y"), "$a y");
    assert_eq!(find("C@1/Print@1", "12345"), "${v[0]}");
    assert_eq!(find("C@1/Print@1", "y, 1"), "y, ${v[0]}");
    assert_eq!(find("Print@2", "a"), "a");
    assert_eq!(find("Print@2", "12345"), "$v");
    let inner = &flat.elements[flat.find("C@1/Print@1").unwrap()];
    assert_eq!(sources.snippet(inner.span), "Print");
    assert_eq!(sources.snippet(inner.config_span), "x $a y, ${v[0]}");
    let origin: Vec<_> =
        inner.origin.iter().map(|o| (&*o.instance, &*o.class, sources.snippet(o.span))).collect();
    assert_eq!(origin, [("C@1", "C", "C")]);
}

#[test]
fn spans_of_elements_and_connections() {
    let (sources, flat, _) = elaborate("a :: Idle(1) -> Discard; b, c :: Idle; { Null } -> d::{ -> Null }");
    let spans: Vec<&str> = flat.elements.iter().map(|e| sources.snippet(e.span)).collect();
    assert_eq!(spans[..4], ["a :: Idle", "Discard", "b", "c :: Idle"]);
    assert_eq!(sources.snippet(flat.connections[0].span), "a :: Idle(1) -> Discard");
    assert!(sources.snippet(flat.elements[2].config_span).is_empty());
}

#[test]
fn libraries_are_read_once() {
    let books = Books(HashMap::from([
        ("a", "require(library b, package p); elementclass A { -> Null -> }"),
        ("b", "require(library a); elementclass B A2; require(library ./a); require(q)"),
        ("c", "elementclass A2 { -> }"),
        ("bad", "Idle -> ;"),
    ]));
    let mut sources = Sources::new();
    let file = sources.add(
        "main",
        "require(library c, library a); Idle -> A -> B -> Discard; require(library nope, library bad)",
    );
    let (flat, diagnostics) = load(&mut sources, file, &options(&[], &books));
    let got: Vec<(String, &str)> = diagnostics
        .iter()
        .map(|d| (sources.name(d.span.unwrap().file).to_string(), d.message.as_str()))
        .collect();
    assert_eq!(
        got,
        [
            ("main".to_string(), "can't open library 'nope': no such file"),
            ("lib/bad".to_string(), "syntax error near ';'")
        ]
    );
    assert_eq!(flat.requirements, [("package".to_string(), "p".to_string()), ("package".into(), "q".into())]);
    assert!(flat.find("A@2/Null@1").is_some());
}

#[test]
fn a_chain_of_libraries_may_be_long() {
    struct Endless;
    impl Library for Endless {
        fn read(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), LibraryError> {
            let n: usize = name.parse().map_err(|_| LibraryError::Missing)?;
            Ok((name.into(), format!("require(library {})", n + 1).into_bytes()))
        }
    }
    let mut sources = Sources::new();
    let file = sources.add("main", "require(library 0)");
    let (_, diagnostics) = load(&mut sources, file, &options(&[], &Endless));
    assert_eq!(
        diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(),
        ["more than 10000 libraries"]
    );
}

#[test]
fn bytes_may_be_an_archive_or_no_text() {
    let archive = crate::archive::write(&[
        ("p.uo".into(), vec![1, 2]),
        ("config".into(), b"Idle -> Discard".to_vec()),
        ("elementmap.xml".into(), b"<x/>".to_vec()),
    ])
    .unwrap();
    let load = |bytes: &[u8]| load_bytes(&mut Sources::new(), "c", bytes, &options(&[], &NoLibrary));
    let (flat, diagnostics) = load(&archive);
    assert_eq!((flat.elements.len(), diagnostics.len()), (2, 0));
    assert_eq!(flat.archive.iter().map(|m| m.0.as_str()).collect::<Vec<_>>(), ["p.uo", "elementmap.xml"]);
    let messages = |bytes: &[u8]| load(bytes).1.into_iter().map(|d| d.message).collect::<Vec<_>>();
    assert_eq!(messages(b"!<arch>\n"), ["archive 'c' has no member 'config'"]);
    assert_eq!(messages(b"!<arch>\nx"), ["bad archive 'c': bad member header at byte 8"]);
    let (flat, diagnostics) = load(b"Idle -> Discard // caf\xe9\n");
    assert_eq!((flat.elements.len(), diagnostics.len()), (2, 0));
}

#[test]
fn unknown_classes_may_be_opaque() {
    let mut sources = Sources::new();
    let file = sources.add("test", "Foo(1) -> b :: Bar -> Foo");
    let mut opaque = options(&[], &NoLibrary);
    opaque.unknown = Unknown::Opaque;
    let (flat, diagnostics) = load(&mut sources, file, &opaque);
    assert_eq!(diagnostics, []);
    assert_eq!(
        flat.elements.iter().map(|e| e.declaration()).collect::<Vec<_>>(),
        ["Foo@1 :: Foo", "b :: Bar", "Foo@3 :: Foo"]
    );
}

#[test]
fn the_command_line_wins() {
    let given = [("a".to_string(), "9".to_string()), ("c".to_string(), "8".to_string())];
    let mut sources = Sources::new();
    let file = sources.add("test", "define($a 1, $b $a) Print($a, $b, $c); {define($c 3) Print($a, $c)}");
    let (flat, _) = load(&mut sources, file, &options(&given, &NoLibrary));
    assert_eq!(flat.elements.iter().map(|e| e.config.as_str()).collect::<Vec<_>>(), ["9, 9, 8", "9, 3"]);
    let kept = load_with(&mut sources, file, &options(&given, &NoLibrary), Globals::Keep);
    assert_eq!(
        kept.flat.elements.iter().map(|e| e.config.as_str()).collect::<Vec<_>>(),
        ["$a, $b, $c", "$a, 3"]
    );
    assert_eq!(kept.defines, [("a".to_string(), "1".to_string()), ("b".into(), "$a".into())]);
}
