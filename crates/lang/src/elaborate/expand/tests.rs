// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fragments: which classes they come from, and what is substituted in them.

use crate::elaborate::{Fragment, load_fragments, substitute, variables_of};
use crate::{NoLibrary, Options, Sources, Unknown};

fn fragments(text: &str, defines: &[(String, String)]) -> (Vec<Fragment>, Vec<String>) {
    let classes = ["A", "B"];
    let options = Options { classes: &classes, defines, library: &NoLibrary, unknown: Unknown::Opaque };
    let read = load_fragments(&mut Sources::new(), "patterns.click", text.as_bytes(), &options);
    (read.fragments, read.diagnostics.into_iter().map(|d| d.message).collect())
}

/// A fragment as text: elements, then connections, with ports of the fragment as `<N`.
fn shown(f: &Fragment) -> String {
    let mut all: Vec<String> =
        f.elements.iter().map(|e| format!("{} {}({})", e.name, e.class, e.config)).collect();
    let name = |e: usize| f.elements.get(e).map_or("?", |e| e.name.as_str());
    for c in &f.connections {
        all.push(format!("{}[{}]->[{}]{}", name(c.from.element), c.from.port, c.to.port, name(c.to.element)));
    }
    for (side, ports) in [("in", &f.inputs), ("out", &f.outputs)] {
        for (n, ports) in ports.iter().enumerate() {
            all.extend(ports.iter().map(|p| format!("{side}{n}={}[{}]", name(p.element), p.port)));
        }
    }
    all.extend(f.passages.iter().map(|(i, o)| format!("in{i}=out{o}")));
    format!("{}: {}", f.name, all.join(" "))
}

#[test]
fn classes_at_file_scope_are_fragments() {
    for (text, want) in [
        ("A -> B", &[][..]),
        (
            "elementclass X { $a | input -> a :: A($a, 1) -> [1] output; input [1] -> B -> output }",
            &["X: a A($a, 1) B@2 B() in0=a[0] in1=B@2[0] out0=B@2[0] out1=a[0]"],
        ),
        ("elementclass X { input -> output; input [1] -> A }", &["X: A@1 A() in1=A@1[0] in0=out0"]),
        // The last of several classes of one name; classes in classes are no fragments.
        (
            "elementclass X { input -> A -> output } elementclass X { elementclass Y { -> B -> } input -> Y -> output }",
            &["X: Y@1/B@1 B() in0=Y@1/B@1[0] out0=Y@1/B@1[0]"],
        ),
        // Alternatives.
        (
            "elementclass X { input -> A -> output || $a | input -> B($a) -> output }",
            &["X: A@1 A() in0=A@1[0] out0=A@1[0]", "X: B@1 B($a) in0=B@1[0] out0=B@1[0]"],
        ),
        // A compound in a fragment gets its arguments, but the parameters of the fragment stay.
        (
            "elementclass In { $x | A($x, $y) } define($y 7, $v 8) elementclass X { $v | In($v); B($v $y \"$v\") }",
            &["In: A@1 A($x, 7)", "X: B@2 B($v 7 \"$v\") In@1/A@1 A($v, 7)"],
        ),
    ] {
        let (found, wrong) = fragments(text, &[]);
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), want, "{text}");
        assert!(wrong.is_empty(), "{wrong:?}");
    }
    let (found, _) =
        fragments("elementclass X { $v | A($v $y) }", &[("y".into(), "1".into()), ("v".into(), "2".into())]);
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), ["X: A@1 A($v 1)"]);
    assert_eq!(
        fragments("elementclass X { $a, K $b, __REST__ $c | A }", &[])
            .0
            .iter()
            .map(|f| f.parameters.clone())
            .collect::<Vec<_>>(),
        [[("a".to_string(), false), ("b".to_string(), false), ("c".to_string(), true)]]
    );
}

#[test]
fn limits_apply_to_all_fragments_together() {
    let mut text = String::from("elementclass X0 { A; A; A; A; A; A; A; A; A; A }");
    for n in 1..7 {
        let inner = format!("X{}; ", n - 1).repeat(10);
        text += &format!("elementclass X{n} {{ {inner} }}");
    }
    let (found, wrong) = fragments(&text, &[]);
    assert!(found.iter().map(|f| f.elements.len()).sum::<usize>() <= 1_000_000);
    assert!(wrong.iter().any(|w| w.contains("too large")), "{wrong:?}");
    // Errors in the text are reported, and what can be read is read.
    let (found, wrong) = fragments("elementclass X { input -> A -> output } elementclass Y { input -> ", &[]);
    assert!(found.len() == 2 && !wrong.is_empty());
}

#[test]
fn variables_are_listed_and_substituted() {
    let values = [("a".to_string(), "1, x".to_string()), ("1".to_string(), "one".to_string())];
    for (text, names, want) in [
        ("", &[][..], ""),
        ("$a ${a} $1 $b", &["a", "a", "1", "b"], "1, x 1, x one $b"),
        ("'$a' \"$a\" $$ ${b-2}", &["a", "b"], "'$a' \"1, x\" $$ 2"),
    ] {
        assert_eq!(variables_of(text), names, "{text}");
        assert_eq!(substitute(text, &values), want, "{text}");
    }
}
