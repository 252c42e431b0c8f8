// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the printed forms.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::elaborate::{Globals, NoLibrary, Options, Unknown, load_with};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn parse(text: &str, globals: Globals) -> (Sources, crate::elaborate::Loaded) {
    let mut sources = Sources::new();
    let file = sources.add("r.click", text);
    let options = Options { classes: &["Idle"], defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let loaded = load_with(&mut sources, file, &options, globals);
    assert!(loaded.diagnostics.iter().all(|d| !d.is_error()), "{text}: {:?}", loaded.diagnostics);
    (sources, loaded)
}

#[test]
fn driver_form() {
    let text = "require(package \"p\")\nsrc :: Idle -> t :: Tee(4); t -> two :: { -> s :: Strip(14) -> c :: Counter -> } -> Discard;\n\
                t [2] -> Alias -> d :: Discard; rr :: RR; Idle(x) [1] -> [1] rr; l :: A -> m :: B -> l;";
    let want = "require(package \"p\");\nsrc :: Idle;\nt :: Tee(4);\nDiscard@4 :: Discard;\nAlias@5 :: Alias;\nd :: Discard;\n\
                rr :: RR;\nIdle@8 :: Idle(x);\nl :: A;\nm :: B;\ntwo/s :: Strip(14);\ntwo/c :: Counter;\n\n\
                src -> t\n    -> two/s\n    -> two/c\n    -> Discard@4;\nt [2] -> Alias@5\n    -> d;\nIdle@8 [1] -> [1] rr;\n\
                l -> m\n    -> l;\n";
    assert_eq!(driver(&parse(text, Globals::Substitute).1.flat), want);
    assert_eq!(driver(&parse(want, Globals::Substitute).1.flat), want);
    assert_eq!(driver(&Flat::default()), "");
}

#[test]
fn tool_form() {
    let (sources, loaded) =
        parse("define($L 5, $e)\na :: Idle(LIMIT $L)\n\n -> b :: Discard;\n", Globals::Keep);
    assert_eq!(
        tool(&loaded.flat, &loaded.defines, &sources),
        "define($L 5, $e);\n\n# 2 \"r.click\"\na :: Idle(LIMIT $L);\n# 4 \"r.click\"\nb :: Discard;\n# 8 \"\"\na -> b;\n"
    );
}

#[test]
fn which_connection_goes_on() {
    for (text, want) in [
        // Several connections leave output 0 of `b`: the first that enters an input 0 continues the chain.
        ("a::A->b::B; b->[1]c::C; b->d::D; b->e::E", "a -> b\n    -> d;\nb -> [1] c;\nb -> e;\n"),
        // If none of these connections enters an input 0, the last one continues the chain.
        ("a::A->b::B; b->[1]c::C; b->[2]c", "a -> b\n    -> [2] c;\nb -> [1] c;\n"),
        // Two connections enter input 0 of `c`: the chain of the first one continues.
        ("a::A->c::C; b::B->c->d::D", "a -> c\n    -> d;\nb -> c;\n"),
        // An input or output other than 0 ends a chain.
        ("a::A->[1]b::B->c::C", "a -> [1] b;\nb -> c;\n"),
        ("a::A->b::B[1]->c::C", "a -> b;\nb [1] -> c;\n"),
        // Cycles.
        ("a::A->a", "a -> a;\n"),
        ("x::X->a::A->b::B->a", "x -> a\n    -> b\n    -> a;\n"),
    ] {
        let printed = driver(&parse(text, Globals::Substitute).1.flat);
        assert_eq!(printed.split_once("\n\n").unwrap().1, want, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn printing_keeps_the_meaning(
        configs in proptest::collection::vec("|[a-z0-9 ,.$-]{1,12}|\"[a-z,)(]{0,6}\"|\\([a-z]*\\)|'[(\"]*'", 1..9),
        links in proptest::collection::vec((0usize..9, 0usize..3, 0usize..9, 0usize..3), 0..25),
    ) {
        let n = configs.len();
        let mut text: String = configs.iter().enumerate().map(|(i, c)| format!("e{i} :: K{}({c});\n", i % 3)).collect();
        for (a, p, b, q) in links {
            text.push_str(&format!("e{} [{p}] -> [{q}] e{};\n", a % n, b % n));
        }
        let before = parse(&text, Globals::Substitute).1.flat;
        for form in [driver(&before), tool(&before, &[], &parse(&text, Globals::Substitute).0)] {
            let after = parse(&form, Globals::Substitute).1.flat;
            let elements = |f: &Flat| f.elements.iter().map(|e| (e.name.clone(), e.class.clone(), e.config.clone())).collect::<Vec<_>>();
            let ends = |f: &Flat| f.connections.iter().map(|c| (c.from, c.to)).collect::<BTreeSet<_>>();
            prop_assert_eq!(elements(&before), elements(&after));
            prop_assert_eq!(ends(&before), ends(&after));
            prop_assert_eq!(before.connections.len(), after.connections.len());
        }
    }
}
