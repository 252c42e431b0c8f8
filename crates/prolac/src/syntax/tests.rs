// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the parser: every text gives a tree that prints as the text.

use super::ast::{ExprKind, Item, Member};
use super::parser::Parsed;
use super::*;
use crate::random::Random;

fn parsed(text: &str) -> Parsed {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let parsed = parse(file, text);
    let tree = SyntaxNode::new_root(parsed.green(text));
    assert_eq!(tree.text().to_string(), text);
    parsed
}

fn messages(text: &str) -> Vec<String> {
    parsed(text).diagnostics.into_iter().map(|d| d.message).collect()
}

/// A fully parenthesised form of an expression.
fn shape(e: &ast::Expr) -> String {
    let list = |all: &[ast::Expr]| all.iter().map(shape).collect::<Vec<_>>().join(" ");
    match &e.kind {
        ExprKind::Number(n) => n.to_string(),
        ExprKind::Name(p) => p.text(),
        ExprKind::Member { base, name, arrow } => {
            format!("{}{}{}", shape(base), if *arrow { "->" } else { "." }, name.text)
        }
        ExprKind::Call { callee, args } => format!("{}({})", shape(callee), list(args)),
        ExprKind::Unary(op, a) => format!("({op:?} {})", shape(a)),
        ExprKind::Postfix(up, a) => format!("({} {})", if *up { "inc" } else { "dec" }, shape(a)),
        ExprKind::Binary(op, a, b) => format!("({op:?} {} {})", shape(a), shape(b)),
        ExprKind::AndAnd(a, b) => format!("(&& {} {})", shape(a), shape(b)),
        ExprKind::OrOr(a, b) => format!("(|| {} {})", shape(a), shape(b)),
        ExprKind::Then(a, b) => format!("(==> {} {})", shape(a), shape(b)),
        ExprKind::Assign(_, a, b) => format!("(= {} {})", shape(a), shape(b)),
        ExprKind::Cond(a, b, c) => format!("(? {} {} {})", shape(a), shape(b), shape(c)),
        ExprKind::Seq(all) => format!("(, {})", list(all)),
        ExprKind::Paren(a) => shape(a),
        ExprKind::Hint(hint, a) => format!("({hint:?} {})", shape(a)),
        other => format!("{other:?}"),
    }
}

fn expression(text: &str) -> String {
    let parsed = parsed(&format!("module M {{ m ::= {text}; }}"));
    assert!(parsed.diagnostics.is_empty(), "{text}: {:?}", parsed.diagnostics);
    let Some(Item::Module(module)) = parsed.items.first() else { return "no module".into() };
    match module.members.first() {
        Some(Member::Method(m)) => shape(&m.body),
        other => format!("{other:?}"),
    }
}

#[test]
fn precedence() {
    for (text, want) in [
        ("a + b * c", "(Add a (Mul b c))"),
        ("a - b - c", "(Sub (Sub a b) c)"),
        ("a = b = c", "(= a (= b c))"),
        ("a ==> b ==> c", "(==> a (==> b c))"),
        ("a || b ==> c", "(==> (|| a b) c)"),
        ("a ==> b = c", "(==> a (= b c))"),
        ("a, b ==> c, d", "(, a (==> b c) d)"),
        ("a ? b : c ? d : e", "(? a b (? c d e))"),
        ("a && b || c && d", "(|| (&& a b) (&& c d))"),
        ("a & b == c", "(And a (Eq b c))"),
        ("-a->b", "(Neg a->b)"),
        ("+a + +b * -+c", "(Add (Plus a) (Mul (Plus b) (Neg (Plus c))))"),
        ("a ? b, c : d", "(? a (, b c) d)"),
        ("!f(1)", "(Not f(1))"),
        ("inline super.hook(n)", "(Inline Super.hook(n))"),
        ("n++ + ++n", "(Add (inc n) (PreInc n))"),
        ("a max= b + 1", "(= a (Add b 1))"),
        ("(a, b) || c", "(|| (, a b) c)"),
        ("F.pending-ack | F.pending-output", "(Or F.pending-ack F.pending-output)"),
    ] {
        assert_eq!(expression(text), want, "{text}");
    }
}

#[test]
fn items() {
    let text = "include \"a.pc\"; hookup D \"d.pc\"; hookup TCB :> Base.TCB hide x; export A, B.C;
        host now :> uint; host log(text :> string);
        module A :> hookup TCB show (x, y) { field a :> *B at 4 big using; exception e, f; n { n ::= 1; } }
            hide all rename (a = b);
        Base { module X { constructor(a :> ?int) ::= ; } m ::= 2; }
        Base.X.hook(a :> uchar[4]) :> void ::= ;
        const K ::= 3;
        module Q = A hide x;";
    let parsed = parsed(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert_eq!(parsed.items.len(), 11);
}

#[test]
fn errors_recover_at_the_next_member() {
    assert_eq!(messages("module M { a := int; b ::= 1 +; c ::= 2; }"), ["unexpected ':='", "unexpected ';'"]);
    assert_eq!(messages("module M { a ::= (1; b ::= 2; }"), ["unexpected ';'"]);
    assert_eq!(messages("module { } module B { }"), ["unexpected '{'"]);
    assert_eq!(messages("} module A { }"), ["unexpected '}'"]);
    assert_eq!(messages("module A { x ::= 1;"), ["block without an end"]);
    assert_eq!(messages("module A { let ::= 1; }"), ["unexpected 'let'"]);
}

#[test]
fn nesting_is_bounded() {
    for open in ["(", "{", "f(", "-", "let a = ", "try ", "a = ", "x ? ", "a[", "inline ", "(int) "] {
        let text = format!("module M {{ m ::= {} }}", open.repeat(100_000));
        assert!(!messages(&text).is_empty(), "{open}");
    }
    for chain in ["+ 1", "->a", "|| a", "()"] {
        let text = format!("module M {{ m ::= a {}; }}", chain.repeat(10_000));
        assert!(!messages(&text).is_empty(), "{chain}");
    }
    messages(&"a {".repeat(10_000));
    messages(&format!("module M {{ field f :> {}int; }}", "*".repeat(10_000)));
}

/// Texts of random tokens, and the tokens of a program with some removed, repeated or exchanged.
#[test]
fn any_text_gives_its_tree() {
    const TOKENS: &[&str] = &[
        "module",
        "M",
        "a",
        "b-c",
        "{",
        "}",
        "(",
        ")",
        ";",
        "::=",
        ":>",
        "==>",
        "||",
        ",",
        "let",
        "in",
        "end",
        "=",
        "?=",
        "else",
        "try",
        "catch",
        "all",
        "field",
        "exception",
        "hide",
        "using",
        "at",
        "4",
        "\"s\"",
        "\"",
        "/*",
        "// x\n",
        "*",
        "&",
        ".",
        "->",
        "[",
        "]",
        "int",
        "new",
        "super",
        "self",
        "static",
        "const",
        "constructor",
        "hookup",
        "include",
        "export",
        "host",
        "as",
        "sizeof",
        "inline",
        "é",
        "\u{1}",
        " ",
        "\n",
        "-",
        "++",
        "?",
    ];
    let mut random = Random::new(7);
    for _ in 0..3_000 {
        let n = random.below(60);
        let text: String = (0..n)
            .map(|_| TOKENS[random.below(TOKENS.len())].to_string() + [" ", ""][random.below(2)])
            .collect();
        messages(&text);
    }
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..random.below(80)).map(|_| random.below(256) as u8).collect();
        messages(&String::from_utf8_lossy(&bytes));
    }
}

/// The grammar names no word that `words.rs` does not declare.
#[test]
fn all_words_are_declared() {
    let files = [
        include_str!("exprs.rs"),
        include_str!("forms.rs"),
        include_str!("items.rs"),
        include_str!("members.rs"),
    ];
    let known: Vec<_> = words_and_operators().into_iter().map(|(word, _)| word).collect();
    let mut found = 0;
    for literal in files.iter().flat_map(|f| f.split('"')) {
        if !literal.is_empty() && literal.bytes().all(|b| b.is_ascii_lowercase()) {
            assert!(known.contains(&literal), "{literal}");
            found += 1;
        }
    }
    assert!(found > 30, "{found}");
}
