// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of configurations as XML: what is written, what is read, and that both together keep a configuration as it is.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::Graph;
use crate::testing::{Random, TestClasses, random_graph};
use castanet_lang::elaborate::structure::structure;
use castanet_lang::{Diagnostic, Flat, NoLibrary, Options, Sources, Unknown, load, print};

const OPTIONS: Options<'_> =
    Options { classes: &TestClasses, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };

fn loaded(text: &str) -> (Flat, Sources) {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    let (flat, diagnostics) = load(&mut sources, file, &OPTIONS);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{text}\n{diagnostics:#?}");
    (flat, sources)
}

/// Everything of a flat configuration but positions. The order of connections has no meaning.
fn meaning(flat: &Flat) -> String {
    let mut connections: Vec<_> = flat.connections.iter().map(|c| (c.from, c.to)).collect();
    connections.sort();
    let elements = flat.elements.iter().map(|e| (&e.name, &e.class, &e.config));
    format!("{:#?}\n{connections:?}\n{:?}", elements.collect::<Vec<_>>(), flat.requirements)
}

/// The configuration as XML, with its compounds.
fn xml(text: &str) -> String {
    let (flat, sources) = loaded(text);
    let graph = Graph::new(flat, &TestClasses).0;
    let mut own = Sources::new();
    let file = own.add("test.click", text);
    let (structure, diagnostics) = structure(&mut own, file, &OPTIONS);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{diagnostics:#?}");
    structured(&structure, &graph, &sources)
}

fn round_trip(text: &str) {
    let (before, sources) = loaded(text);
    let xml = xml(text);
    let back = to_text(&xml).unwrap_or_else(|e| panic!("{e}\n{xml}"));
    assert_eq!(meaning(&loaded(&back).0), meaning(&before), "{text}\n{xml}\n{back}");
    let wanted = meaning(&before);
    let flat_xml = flat(&Graph::new(before, &TestClasses).0, &sources);
    let back = to_text(&flat_xml).unwrap_or_else(|e| panic!("{e}\n{flat_xml}"));
    assert_eq!(meaning(&loaded(&back).0), wanted, "{flat_xml}\n{back}");
}

#[test]
fn documents() {
    let text = "require(package \"p\"); elementclass C { $x, K $y | input -> q :: Queue($x, \"<&\") -> output; }\n\
                Source -> c :: C(1, K 2) -> Unqueue -> [1] t :: Strange;";
    let want = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>
<configuration xmlns=\"http://www.lcdf.org/click/xml/\">
<?require package \"p\"?>
<elementclass classname=\"C\" classid=\"c0\" file=\"test.click\" line=\"1\">
<compound ninputs=\"1\" noutputs=\"1\" nformals=\"2\">
<formal number=\"0\" name=\"x\"/>
<formal number=\"1\" name=\"y\" key=\"K\"/>
<element name=\"q\" classname=\"Queue\" file=\"test.click\" line=\"1\" ninputs=\"1\" noutputs=\"1\" processing=\"h/l\" config=\"$x, &quot;&lt;&amp;&quot;\"/>
<connection from=\"input\" fromport=\"0\" to=\"q\" toport=\"0\" file=\"test.click\" line=\"1\"/>
<connection from=\"q\" fromport=\"0\" to=\"output\" toport=\"0\" processing=\"l\" file=\"test.click\" line=\"1\"/>
</compound>
</elementclass>
<element name=\"Source@1\" classname=\"Source\" file=\"test.click\" line=\"2\" ninputs=\"0\" noutputs=\"1\" processing=\"/h\"/>
<element name=\"c\" classname=\"C\" classid=\"c0\" file=\"test.click\" line=\"2\" ninputs=\"1\" noutputs=\"1\" config=\"1, K 2\"/>
<element name=\"Unqueue@3\" classname=\"Unqueue\" file=\"test.click\" line=\"2\" ninputs=\"1\" noutputs=\"1\" processing=\"l/h\"/>
<element name=\"t\" classname=\"Strange\" file=\"test.click\" line=\"2\" ninputs=\"2\" noutputs=\"0\" processing=\"hh/\"/>
<connection from=\"Source@1\" fromport=\"0\" to=\"c\" toport=\"0\" processing=\"h\" file=\"test.click\" line=\"2\"/>
<connection from=\"c\" fromport=\"0\" to=\"Unqueue@3\" toport=\"0\" file=\"test.click\" line=\"2\"/>
<connection from=\"Unqueue@3\" fromport=\"0\" to=\"t\" toport=\"1\" processing=\"h\" file=\"test.click\" line=\"2\"/>
</configuration>
";
    assert_eq!(xml(text), want);
    assert_eq!(
        to_text(want).unwrap(),
        "require(package \"p\");
elementclass C { $x, K $y |
    q :: Queue($x, \"<&\");
    input -> q;
    q -> output;
}
Source@1 :: Source;
c :: C(1, K 2);
Unqueue@3 :: Unqueue;
t :: Strange;
Source@1 -> c;
c -> Unqueue@3;
Unqueue@3 -> [1] t;
"
    );
}

#[test]
fn configurations_come_back() {
    for text in [
        "",
        "a :: Tee(\n  x, // c\n  \"\t\") -> b :: Tee; b [1] -> a",
        "require(package p, compact_config); require(package \"a ?> b\")",
        "define($v 1, $w q r); elementclass A { define($u $v$v); Tee($u, $w, ${w-x}, \"$v\") } A; Tee(${w[0]})",
        // Overloading, extension of a class and of one outside, anonymous compounds with alternatives.
        "elementclass A { $x | Tee($x) || $x, $y | Strip($x, $y) } elementclass A { -> Null -> || ... } A(1); A(1, 2); Idle -> A -> Idle",
        "elementclass Tee { $x | a :: Strip || ... } Tee(1); Tee",
        "Idle -> { -> Null -> || $x | -> Strip($x) -> }(5) -> Idle; x :: { y :: { z :: { Tee } } }",
        // A definition hides a class from where it stands.
        "a :: Tee; elementclass Tee { b :: Tee(1) } c :: Tee; elementclass Tee { d :: Tee } e :: Tee; elementclass F Tee; F",
        "elementclass O { $p | elementclass I { $q | Tee($p, $q) || Null } I(1); I; elementclass I J; I } O(2)",
        "elementclass P { -> } Idle -> P -> { -> P -> (-> Null ->) -> } -> Idle; Idle -> (->) -> Idle",
        "elementclass R { A $a, __REST__ $r | Tee($a | $r) } R(A 1, 2, 3)",
        "c :: { input [0] -> Null -> [1] output; input [1] -> [0] output }; Idle, Idle => c => Idle, Idle",
        "Compound@@1 :: Tee; { Tee }; { Strip }",
        "a :: Tee(\u{10ffff}\u{e9}\r\n)",
    ] {
        round_trip(text);
    }
    let mut random = Random(7);
    for _ in 0..60 {
        let graph = random_graph(&mut random, &["Tee", "Queue", "Strip", "Strange"]);
        round_trip(&print::driver(&graph.flat));
    }
}

#[test]
fn wrong_documents() {
    let of = |body: &str| format!("<configuration>\n{body}</configuration>");
    for (text, line, want) in [
        (String::new(), 1, "the document does not have a root node"),
        ("<a>".to_string(), 1, "the root node was opened but never closed"),
        ("<a/>".to_string(), 1, "expected the tag 'configuration'"),
        (of("<x/>"), 2, "unknown tag 'x'"),
        (of("<element/>"), 2, "element: attribute 'name' missing"),
        (of("<element name='a'/>"), 2, "element: attribute 'classname' missing"),
        (of("<element name='a b' classname='C'/>"), 2, "element: name: bad name 'a b'"),
        (of("<element name='a' classname='require'/>"), 2, "element: classname: bad name 'require'"),
        (
            of("<element name='a' classname='C' config='x) -> b :: D('/>"),
            2,
            "element 'a': config: quotes, comments or parentheses are not balanced",
        ),
        (
            of("<element name='a' classname='C' config='// x'/>"),
            2,
            "element 'a': config: quotes, comments or parentheses are not balanced",
        ),
        (
            of("<element name='a' classname='C' config='\"'/>"),
            2,
            "element 'a': config: quotes, comments or parentheses are not balanced",
        ),
        (
            of("<element name='a' classname='C'/>\n<connection from='a'/>"),
            3,
            "connection: attribute 'to' missing",
        ),
        (of("<connection from='a' to='b'/>"), 2, "connection: from: no element 'a' here"),
        (
            of("<connection from='input' to='b'/><element name='b' classname='B'/>"),
            2,
            "connection: from: no element 'input' here",
        ),
        (
            of("<connection from='b' to='b' toport='-1'/><element name='b' classname='B'/>"),
            2,
            "connection: toport: bad port",
        ),
        (of("<elementclass classname='A'/>"), 2, "elementclass: expected the tag 'compound' or 'synonym'"),
        (
            of("<elementclass classname='A'><compound><formal/></compound></elementclass>"),
            2,
            "formal: name: bad name ''",
        ),
        (of("<?require x) a :: b(?>"), 2, "bad requirement 'x) a :: b('"),
        (of("&a;"), 2, "unknown entity reference 'a'"),
    ] {
        let wrong = to_text(&text).unwrap_err();
        assert!(wrong.message.starts_with(want), "{text}: {wrong}");
        assert_eq!(wrong.line, line, "{text}: {wrong}");
    }
}

#[test]
fn hostile_documents() {
    let deep = |n: usize| {
        let (open, close) = ("<elementclass classname='A'><compound>", "</compound></elementclass>");
        to_text(&format!("<configuration>{}{}</configuration>", open.repeat(n), close.repeat(n)))
    };
    assert!(deep(50).is_ok());
    assert_eq!(deep(51).unwrap_err().message, "compounds nest more than 50 deep");
    assert!(deep(100_000).is_err());
    let mut laughs = String::from("<!DOCTYPE configuration [<!ENTITY a0 'ha'>");
    for n in 1..30 {
        laughs.push_str(&format!("<!ENTITY a{n} '&a{0};&a{0};'>", n - 1));
    }
    assert!(to_text(&format!("{laughs}]><configuration>&a29;</configuration>")).is_err());
    let many = "<element name='a' classname='C'/>".repeat(100_000);
    assert_eq!(to_text(&format!("<configuration>{many}</configuration>")).unwrap().lines().count(), 100_000);
}
