// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the structure of configurations.

use super::*;
use crate::elaborate::{NoLibrary, Unknown};
use std::fmt::Write;

/// The structure of a configuration as text.
fn shown(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("test", text);
    let options = Options { classes: &["Idle"], defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let (structure, diagnostics) = structure(&mut sources, file, &options);
    assert_eq!(diagnostics, [], "{text}");
    let mut out = String::new();
    show(&structure, &structure.top, &mut out);
    out
}

fn show(all: &Structure, scope: &Scope, out: &mut String) {
    let class = |class: &ClassRef| match class {
        ClassRef::Plain(name) => name.clone(),
        ClassRef::Compound(i) => format!("#{i}"),
    };
    for item in &scope.items {
        match item {
            Item::Element(e) => write!(out, "{}::{}({});", e.name, class(&e.class), e.config),
            Item::Compound(i) => {
                let c = &all.classes[*i];
                let _ = write!(out, "#{i}={}", c.name.as_deref().unwrap_or("?"));
                for a in &c.alternatives {
                    let _ = write!(out, "[{}/{}", a.inputs, a.outputs);
                    for (name, keyword) in &a.parameters {
                        let _ = write!(out, " {}${name}", keyword.as_deref().unwrap_or(""));
                    }
                    out.push('|');
                    show(all, &a.scope, out);
                    out.push(']');
                }
                write!(out, "{};", c.extends.as_ref().map(class).unwrap_or_default())
            }
        }
        .unwrap_or_default();
    }
    for c in &scope.connections {
        let end = |end: &End| match end {
            End::Element(name) => name.clone(),
            End::Input => "input".into(),
            End::Output => "output".into(),
        };
        let _ = write!(out, "{}[{}]->[{}]{};", end(&c.from.0), c.from.1, c.to.1, end(&c.to.0));
    }
}

#[test]
fn structures() {
    for (text, want) in [
        ("", ""),
        ("a :: Idle(x) -> B -> a", "a::Idle(x);B@2::B();a[0]->[0]B@2;B@2[0]->[0]a;"),
        // Definitions stand between the elements before and after them.
        (
            "a :: Idle; elementclass Idle { b :: Idle } c :: Idle",
            "a::Idle();#0=Idle[0/0|b::Idle();];c::#0();",
        ),
        (
            "elementclass A { elementclass B { x :: C } y :: B || $v, K $w | z :: {->} } A",
            "#2=A[0/0|#0=B[0/0|x::C();];y::#0();][0/0 $v K$w|#1=?[1/1|input[0]->[0]output;];z::#1();];A@1::#2();",
        ),
        ("elementclass A { a } elementclass A { b || ... }", "#0=A[0/0|a@1::a();];#1=A[0/0|b@1::b();]#0;"),
        // Groups are dissolved.
        ("a -> (-> b ->) -> c", "a@1::a();b@2::b();c@3::c();b@2[0]->[0]c@3;a@1[0]->[0]b@2;"),
        ("{ -> (-> a ->) -> }", "#0=?[1/1|a@1::a();a@1[0]->[0]output;input[0]->[0]a@1;];@1::#0();"),
        // Variables are substituted, except parameters.
        (
            "define($g 1, $x 2); elementclass A { $x | define($d $g$x); B($g $x $d ${x-3} ${u-4} $u \"$x\") } C($x, $d)",
            "#0=A[0/0 $x|B@1::B(1 $x 1$x ${x-3} 4 $u \"$x\");];C@1::C(2, $d);",
        ),
    ] {
        assert_eq!(shown(text), want, "{text}");
    }
}
