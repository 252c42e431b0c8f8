// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of formatting.

use super::*;
use crate::random::Random;

fn formatted(text: &str) -> Option<String> {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    format(&sources, file).ok()
}

/// The tokens of a text without blanks.
fn tokens(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (root, _) = tree(&sources, file);
    let tokens = root.descendants_with_tokens().filter_map(|e| e.into_token());
    tokens.filter(|t| t.kind() != K::Whitespace).map(|t| t.text().trim_end().to_string()).collect()
}

#[test]
fn layout() {
    let text = "module  A:>B.C show( x,y ){field  n:>?*T[4] at 4 big using;// note\n\n\n\nf( a:>int,b :>*B ):>int::=a+-1*b->x [ 2 ]+! ( a ) ;\n
  n { n ::= (a==>b),\n(c || !d) ,\n let x=1 , y?=z in\nx++ , {log( \"a\" ,x);log(1);}\nend; }} hide ( a ) rename (x=y)
// last\nA.f ::=new .B.C( 1 )->g , inline  super.h(a) ? sizeof( H ) : (uint)x;hookup T:>A;";
    let want = "module A :> B.C show (x, y) {
    field n :> ?*T[4] at 4 big using; // note

    f(a :> int, b :> *B) :> int ::= a + -1 * b->x[2] + !(a);

    n {
        n ::= (a ==> b),
            (c || !d),
            let x = 1, y ?= z in
                x++, { log(\"a\", x); log(1); }
            end;
    }
} hide (a) rename (x = y)
// last
A.f ::= new .B.C(1)->g, inline super.h(a) ? sizeof(H) : (uint) x;
hookup T :> A;
";
    assert_eq!(formatted(text).as_deref(), Some(want));
    assert_eq!(formatted(want).as_deref(), Some(want));
    let text = "module A{m::=+ a- + +b+sizeof( uint [ 2 ] )*sizeof (.B.C);}";
    let want = "module A {\n    m ::= +a - + +b + sizeof(uint[2]) * sizeof(.B.C);\n}\n";
    assert_eq!(formatted(text).as_deref(), Some(want));
    assert_eq!(formatted("").as_deref(), Some(""));
    assert_eq!(formatted("module A {\n}\n// x").as_deref(), Some("module A {}\n// x\n"));
    assert_eq!(formatted("module A { ::= }"), None);
}

/// Programs with other blanks and line breaks between their tokens keep their tokens, and formatting settles at once.
#[test]
fn any_blanks() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/examples");
    let mut random = Random::new(3);
    for entry in std::fs::read_dir(folder).expect("the folder of examples") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("an example");
        let words = tokens(&text);
        for n in 0..40 {
            let mut changed = String::new();
            for word in &words {
                changed.push_str(word);
                changed.push_str(
                    [" ", "\n", "\n\n\n", "  ", " ", " "][random.below(if n == 0 { 1 } else { 6 })],
                );
                if word.starts_with("//") {
                    changed.push('\n');
                }
            }
            let once = formatted(&changed).expect("no syntax error");
            assert_eq!(tokens(&once), words);
            assert_eq!(formatted(&once).as_deref(), Some(once.as_str()));
            assert!(once.lines().all(|l| l.trim_end() == l), "{once}");
        }
    }
}
