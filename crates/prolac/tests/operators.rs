// SPDX-License-Identifier: MIT OR Apache-2.0
//! Module operators one after the other, in every place where they may stand.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::render::render_pretty;
use castanet_diagnostic::{Diagnostic, Sources};
use castanet_prolac::load::{Extensions, NoFiles};
use castanet_prolac::program::{Hint, Program, View};

fn program(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &NoFiles, &Extensions::none());
    // Nothing creates the objects, so nothing sets their pointers; warnings say so.
    let errors: Vec<_> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    assert!(errors.is_empty(), "{text}\n{}", render_pretty(&sources, &errors, false));
    program
}

fn outer<'a>(program: &'a Program, module: &str) -> &'a View {
    program.view(program.modules.iter().find(|m| m.name == module).unwrap().outer)
}

/// The method `m` and the field `f` after some operators.
#[derive(Clone, Debug, PartialEq)]
struct Appearance {
    name: &'static str,
    hidden: bool,
    using: bool,
    hint: Option<Hint>,
}

/// The operators, with the name that `m` has where they stand, and what they do.
type Change = fn(&mut Appearance) -> String;
const OPERATORS: [Change; 8] = [
    |a| {
        a.hidden = true;
        format!("hide {}", a.name)
    },
    |a| {
        a.hidden = false;
        format!("show ({})", a.name)
    },
    |a| {
        a.using = true;
        "using f".into()
    },
    |a| {
        let (old, new) = if a.name == "m" { ("m", "other") } else { ("other", "m") };
        a.name = new;
        format!("rename ({old} = {new})")
    },
    |a| {
        a.hint = Some(Hint::Inline);
        format!("inline {}", a.name)
    },
    |a| {
        a.hint = Some(Hint::NoInline);
        format!("noinline ({})", a.name)
    },
    |a| {
        a.hint = Some(Hint::PathInline);
        format!("pathinline {}", a.name)
    },
    |a| {
        a.hint = Some(Hint::Outline);
        format!("outline {}", a.name)
    },
];

#[test]
fn every_combination_of_three() {
    let n = OPERATORS.len();
    for combination in 0..n * n * n {
        let mut want = Appearance { name: "m", hidden: false, using: false, hint: None };
        let ops: Vec<String> = [combination / n / n, combination / n % n, combination % n]
            .iter()
            .map(|i| OPERATORS[*i](&mut want))
            .collect();
        let ops = ops.join(" ");
        let base = "module B { x ::= 1; } module A { m ::= 2; field f :> *B; }";
        // After the module, after the parent, and in another name.
        let program = program(&format!(
            "{base} {ops} module P {{ m ::= 2; field f :> *B; }} module C :> P {ops} {{ }}
             module D {{ m ::= 2; field f :> *B; }} module E = D {ops}; module User {{ field e :> *E; }}"
        ));
        let user = program.fields.iter().find(|f| f.name == "e").unwrap();
        let castanet_prolac::program::Type::Pointer(alias) = user.ty else { panic!("no pointer") };
        for view in [outer(&program, "A"), outer(&program, "C"), program.view(alias)] {
            let m = view.features.get(want.name).unwrap_or_else(|| panic!("{ops}"));
            let found = Appearance {
                name: want.name,
                hidden: m.hidden.is_some(),
                using: view.features["f"].using,
                hint: m.hint,
            };
            assert_eq!(found, want, "{ops}");
            assert!(view.features.len() == 2, "{ops}");
        }
    }
}

#[test]
fn operators_on_namespaces() {
    let text = "module A { n { n ::= part; part ::= 1; } other ::= n; }";
    let hidden = program(&format!("{text} hide n"));
    let view = outer(&hidden, "A");
    assert!(view.features["n.n"].hidden.is_some() && view.features["n.part"].hidden.is_some());
    assert!(view.features["other"].hidden.is_none());
    let renamed = program(&format!("{text} rename (n = k) hide all show (k.part)"));
    let view = outer(&renamed, "A");
    let names: Vec<_> = view.features.iter().map(|(k, f)| (k.as_str(), f.hidden.is_some())).collect();
    assert_eq!(names, [("k.k", true), ("k.part", false), ("other", true)]);
    let inlined = program(&format!("{text} inline n"));
    let hints: Vec<_> = outer(&inlined, "A").features.values().map(|f| f.hint).collect();
    assert_eq!(hints, [Some(Hint::Inline), None, None]);
}
