// SPDX-License-Identifier: MIT OR Apache-2.0
//! One configuration for each rule of the language.

use super::{flat, messages};

fn check(table: &[(&str, &str)]) {
    for (text, want) in table {
        assert_eq!(flat(text), *want, "{text}");
    }
}

#[test]
fn declarations_and_references() {
    check(&[
        ("", ""),
        ("a :: Idle", "a::Idle;"),
        ("a::Idle(1,(2))", "a::Idle(1,(2));"),
        ("a, b, c :: Idle(x);", "a::Idle(x);b::Idle(x);c::Idle(x);"),
        ("a :: Idle, b :: Tee", "a::Idle;b::Tee;"),
        ("Idle; Idle()", "Idle@1::Idle;Idle@2::Idle;"),
        (
            "a :: Idle; a -> Discard; a -> b :: Discard",
            "a::Idle;Discard@2::Discard;b::Discard;a -> Discard@2;a -> b;",
        ),
        // An element may have the name of its class if the class was not used before.
        ("Idle :: Idle; Idle -> Discard", "Idle::Idle;Discard@2::Discard;Idle -> Discard@2;"),
        ("a :: Idle\nb :: Discard\na -> b", "a::Idle;b::Discard;a -> b;"),
        ("a@1/x_2 :: Idle", "a@1/x_2::Idle;"),
        ("input :: Idle -> output :: Discard", "input::Idle;output::Discard;input -> output;"),
        ("0 :: Idle", "0::Idle;"),
        // The preferred number, 1, is already in use, so the next free number is used.
        ("Idle; Idle@1 :: Idle", "Idle@2::Idle;Idle@1::Idle;"),
        (
            "Idle; Idle; Idle@1 :: Idle; Idle@2 :: Idle",
            "Idle@3::Idle;Idle@4::Idle;Idle@1::Idle;Idle@2::Idle;",
        ),
        // A repeated connection has no effect.
        ("a :: Idle -> b :: Discard; a -> b; a [0] -> [0] b", "a::Idle;b::Discard;a -> b;"),
    ]);
}

#[test]
fn ports_and_links() {
    let head = "a, b, c :: Idle; x, y, z :: Discard; ";
    let decl = "a::Idle;b::Idle;c::Idle;x::Discard;y::Discard;z::Discard;";
    for (text, want) in [
        ("a -> x", "a -> x;"),
        ("a [2] -> [3] x", "a [2] -> [3] x;"),
        ("a, b -> x", "a -> x;b -> x;"),
        ("a -> x, y", "a -> x;a -> y;"),
        ("a [0,2] -> x", "a -> x;a [2] -> x;"),
        ("a [0-2] -> x", "a -> x;a [1] -> x;a [2] -> x;"),
        ("a -> [1-2] x", "a -> [1] x;a -> [2] x;"),
        ("a, b => x, y", "a -> x;b -> y;"),
        ("a, b => [1, 3] x", "a -> [1] x;b -> [3] x;"),
        ("a => x", "a -> x;"),
        // A single element without a port list takes as many ports as the other side has.
        ("a => x, y, z", "a -> x;a [1] -> y;a [2] -> z;"),
        ("a, b => x", "a -> x;b -> [1] x;"),
        // Expandable lists.
        ("a [] => x, y", "a -> x;a [1] -> y;"),
        ("a [1-] => x, y", "a [1] -> x;a [2] -> y;"),
        ("a [0, 2-] => x, y, z", "a -> x;a [2] -> y;a [3] -> z;"),
        ("a, b => [] x", "a -> x;b -> [1] x;"),
        ("a [] -> x", "a -> x;"),
        ("a [2-] -> x", "a [2] -> x;"),
        ("a, b [] => x, y, z", "a -> x;b -> y;b [1] -> z;"),
        ("a [0,1] -> [0] x", "a -> x;a [1] -> x;"),
    ] {
        assert_eq!(flat(&format!("{head}{text}")), format!("{decl}{want}"), "{text}");
    }
}

#[test]
fn compounds() {
    check(&[
        (
            "elementclass C { input -> Null -> output } Idle -> c :: C -> Discard",
            "Idle@1::Idle;Discard@3::Discard;c/Null@1::Null;Idle@1 -> c/Null@1 -> Discard@3;",
        ),
        (
            "Idle -> { -> Null -> } -> Discard",
            "Idle@1::Idle;Discard@3::Discard;@2/Null@1::Null;Idle@1 -> @2/Null@1 -> Discard@3;",
        ),
        ("Idle -> {->} -> Discard", "Idle@1::Idle;Discard@3::Discard;Idle@1 -> Discard@3;"),
        (
            "elementclass C { [0] -> Null; [1] -> n :: Null -> [1]; Null -> } Idle, Idle => C => Discard, Discard",
            "Idle@1::Idle;Idle@2::Idle;Discard@4::Discard;Discard@5::Discard;C@3/Null@1::Null;C@3/n::Null;C@3/Null@3::Null;\
          Idle@1 -> C@3/Null@1;Idle@2 -> C@3/n -> Discard@5;C@3/Null@3 -> Discard@4;",
        ),
        // The elements of a compound come after all elements of the scope around it, nested compounds last.
        (
            "elementclass A { B :: Null; Idle; i :: { Discard } ; Tee } A; Queue; A",
            "Queue@2::Queue;A@1/B::Null;A@1/Idle@2::Idle;A@1/Tee@4::Tee;A@1/i/Discard@1::Discard;\
          A@3/B::Null;A@3/Idle@2::Idle;A@3/Tee@4::Tee;A@3/i/Discard@1::Discard;",
        ),
        // Class scopes: a class defined inside a compound is not visible outside; an outer class is visible
        // inside.
        ("elementclass A { elementclass Idle Tee; Idle } A; Idle", "Idle@2::Idle;A@1/Idle@1::Tee;"),
        // No recursion: inside its own definition a name refers to the previous definition.
        ("elementclass Idle { x :: Idle } a :: Idle", "a/x::Idle;"),
        ("elementclass A { Idle } elementclass A { A; Tee } a :: A", "a/Tee@2::Tee;a/A@1/Idle@1::Idle;"),
        ("elementclass A Tee; elementclass B A; A -> b :: B", "A@1::Tee;b::Tee;A@1 -> b;"),
        ("elementclass A { Tee } elementclass B A; B", "B@1/Tee@1::Tee;"),
        // A pass-through connects every source to every sink.
        (
            "t :: {->}; a, b :: Idle; x, y :: Discard; a, b -> t; t -> x, y",
            "a::Idle;b::Idle;x::Discard;y::Discard;a -> x;a -> y;b -> x;b -> y;",
        ),
    ]);
}

#[test]
fn overloading() {
    let class = "elementclass C { $a | Tee($a) || -> Null -> || $a, K $k | Print($k) || ... } ";
    let before = "elementclass C { input -> Strip -> output; Queue(two) } ";
    check(&[
        (&format!("{}C(1)", class.replace(" || ...", "")), "C@1/Tee@1::Tee(1);"),
        (&format!("{}C(1, K 2)", class.replace(" || ...", "")), "C@1/Print@1::Print(2);"),
        (
            &format!("{}Idle -> C -> Discard", class.replace(" || ...", "")),
            "Idle@1::Idle;Discard@3::Discard;C@2/Null@1::Null;Idle@1 -> C@2/Null@1 -> Discard@3;",
        ),
        // The first alternative that fits wins; `...` continues with the previous class.
        (
            &format!("{before}{class}Idle -> C -> Discard"),
            "Idle@1::Idle;Discard@3::Discard;C@2/Null@1::Null;Idle@1 -> C@2/Null@1 -> Discard@3;",
        ),
        (
            "elementclass Queue { $a | Tee($a) || ... } Queue(1); Idle -> Queue(2, 3) -> Discard",
            "Idle@2::Idle;Queue@3::Queue(2, 3);Discard@4::Discard;Queue@1/Tee@1::Tee(1);Idle@2 -> Queue@3 -> Discard@4;",
        ),
        (
            "elementclass A { Tee } elementclass A { $x | Null || ... } A; A(1)",
            "A@1/Tee@1::Tee;A@2/Null@1::Null;",
        ),
    ]);
}

#[test]
fn parameters() {
    check(&[
        ("elementclass C { $a, $b | Print($a-$b) } C(1, 2)", "C@1/Print@1::Print(1-2);"),
        (
            "elementclass C { $a, K $k, __REST__ $r | Print($a, $k, $r) } C(K v w, 1, 2, 3)",
            "C@1/Print@1::Print(1, v w, 2, 3);",
        ),
        (
            "elementclass C { __REST__ $r | Print($r) } C(); C(1, L 2)",
            "C@1/Print@1::Print;C@2/Print@1::Print(1, L 2);",
        ),
        // Arguments are evaluated in the scope of the use, the body in the scope of the definition.
        (
            "define($v out) elementclass C { $a | Print($a $v) } { define($v in) C($v) }",
            "@1/C@1/Print@1::Print(in out);",
        ),
        (
            "elementclass C { $a | elementclass D { $b | Print($a $b) } D(2 $a) } C(1)",
            "C@1/D@1/Print@1::Print(1 2 1);",
        ),
        ("{ $x | Print($x) } (5)", "@1/Print@1::Print(5);"),
        ("c :: { $x | Print($x) } (a /* b */ c)", "c/Print@1::Print(a c);"),
    ]);
}

#[test]
fn variables() {
    check(&[
        ("Print($a); define($a 1)", "Print@1::Print(1);"),
        (
            "define($a 1, $b  x  y ) Print($a${a}$b, ${b[1]}, ${b[2]}, ${c-d e}, ${a-z}, $c)",
            "Print@1::Print(11x y, y, , d e, 1, $c);",
        ),
        ("define($a \"q\\\\$\") Print(\"$a\", '$a', $a)", r#"Print@1::Print("\"q\\\\\$\"", '$a', "q\\$");"#),
        ("define($a $b, $b 2) Print($a)", "Print@1::Print(2);"),
        (
            "define($x 1) Script(print $(add $x 1), $?, $#, $$x, $0, $12, \"\\$x\", $, ${}, ${x!})",
            "Script@1::Script(print $(add 1 1), $?, $#, $$x, $0, $12, \"\\$x\", $, ${}, ${x!});",
        ),
        (
            "define($j sub, $n 2) Script($($j 8 $(add $n $v)), \"$(s.$j $n)\", '$($j)', $($j.run))",
            "Script@1::Script($(sub 8 $(add 2 $v)), \"$(s.sub 2)\", '$($j)', $(sub.run));",
        ),
        (
            "define($a x y z, $n 1, $m b) Print(${a[$n]}, ${a[$m]}, ${a[$v]}, ${v[$n]}, ${a[$]}, ${a[$n 2]})",
            "Print@1::Print(y, ${a[$m]}, ${a[$v]}, ${v[$n]}, ${a[$]}, ${a[$n 2]});",
        ),
        ("define($x 1) Print(/*$x*/$x // $x\n)", "Print@1::Print(/*$x*/1 // $x );"),
        ("define($x 1) Print(\\<$x>$x)", "Print@1::Print(\\<$x>1);"),
        ("define($e) Print(a$e)", "Print@1::Print(a);"),
        ("define($x 1, $y '$x', $z \"$x\") Print($y $z)", "Print@1::Print('$x' \"1\");"),
    ]);
    assert_eq!(flat("define($0 z) Print($0)"), "Print@1::Print(z);");
    let deep: String = (1..12).map(|i| format!(", $v{i} $v{}", i - 1)).collect();
    assert_eq!(messages(&format!("define($v0 x{deep}) Print($v9)")), Vec::<String>::new());
    assert_eq!(
        messages(&format!("define($v0 x{deep}) Print($v11)")),
        ["variables of 'Print@1' refer to each other too deeply"]
    );
    assert_eq!(
        messages("define($a $b, $b $a) Print($a)"),
        ["variables of 'Print@1' refer to each other too deeply"]
    );
}

#[test]
fn groups() {
    check(&[
        (
            "Idle -> (-> Null ->) -> Discard",
            "Idle@1::Idle;Null@2::Null;Discard@3::Discard;Idle@1 -> Null@2 -> Discard@3;",
        ),
        ("Idle -> (->) -> Discard", "Idle@1::Idle;Discard@2::Discard;Idle@1 -> Discard@2;"),
        // A group's ports form an implied list; its names belong to the surrounding scope.
        (
            "a, b :: Idle; a, b => (-> n :: Null ->; [1] -> Null -> [1]) => x :: Discard, Discard; n -> Tee",
            "a::Idle;b::Idle;n::Null;Null@4::Null;x::Discard;Discard@6::Discard;Tee@7::Tee;\
          n -> x;a -> n -> Tee@7;b -> Null@4 -> Discard@6;",
        ),
    ]);
    check(&[
        // Explicit ports take precedence over the implied list.
        (
            "Idle -> [1] (-> Null; [1] -> Tee ->) -> Discard",
            "Idle@1::Idle;Null@2::Null;Tee@3::Tee;Discard@4::Discard;Idle@1 -> Tee@3 -> Discard@4;",
        ),
        (
            "Idle => (input [0] -> Null; input [1] -> Tee); ",
            "Idle@1::Idle;Null@2::Null;Tee@3::Tee;Idle@1 -> Null@2;Idle@1 [1] -> Tee@3;",
        ),
        (
            "Idle -> { input -> (-> Null ->) -> output } -> Discard",
            "Idle@1::Idle;Discard@3::Discard;@2/Null@1::Null;Idle@1 -> @2/Null@1 -> Discard@3;",
        ),
    ]);
}

#[test]
fn stored_order_of_connections() {
    // Connections through a compound are stored last; the printed chains follow the stored order.
    check(&[(
        "src :: Idle -> t :: Tee; elementclass Two { -> s :: Strip -> c :: Counter ->; [1] -> c2 :: Counter -> [1] }\n\
         t -> two :: Two -> Discard; t [1] -> [1] two [1] -> d :: Discard; t [2] -> d",
        "src::Idle;t::Tee;Discard@4::Discard;d::Discard;two/s::Strip;two/c::Counter;two/c2::Counter;\
         src -> t -> two/s -> two/c -> Discard@4;t [2] -> d;t [1] -> two/c2 -> d;",
    )]);
}

#[test]
fn requirements() {
    assert_eq!(
        flat("require(a); require(package \"b c\", compact_config); require(a) { require(d) }"),
        "require(package \"a\");require(package \"b c\");require(compact_config);require(package \"d\");"
    );
}

#[test]
fn line_directives() {
    let (sources, flat, _) = super::elaborate(
        "# 7 \"g\"\na :: Idle\n# 3\nb :: Idle(\n# 20 \"h\"\n)\nc :: Idle\n# 9 \"\"\nd :: Idle",
    );
    let places: Vec<String> = flat
        .elements
        .iter()
        .map(|e| sources.place(e.span))
        .map(|p| format!("{}:{}", p.file, p.line))
        .collect();
    assert_eq!(places, ["g:7", "g:3", "h:21", "test:9"]);
}

#[test]
fn warning_of_an_implicit_start() {
    let warns = |t: &str| messages(t).iter().filter(|m| m.starts_with("suggest")).count();
    assert_eq!(warns("{ Idle -> Null; -> Null -> } "), 1);
    assert_eq!(warns("a :: { -> Null ->; [1] -> Null -> [1] }; Idle, Idle => a => Discard, Discard"), 0);
    assert_eq!(warns("a :: { x :: Null; -> x -> }; Idle -> a -> Discard"), 0);
}
