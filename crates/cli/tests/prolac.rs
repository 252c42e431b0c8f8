// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet prolac`: each subcommand, its output and exit code.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Bench, objects};

const PROGRAM: &str = "hookup Twice \"twice.pc\";
hookup Counter :> Base.Counter;

module Base.Counter {
    field n :> uint;
    step :> void ::= n += size;
    size ::= 1;
}

module Main {
    main ::= let c = Counter in c.step, c.n end;
}
";

const TWICE: &str = "module Twice.Counter :> hookup Counter {
    size ::= super.size * 2;
}
";

fn bench() -> Bench {
    let b = Bench::new();
    b.file("counter.pc", PROGRAM);
    b.file("twice.pc", TWICE);
    b
}

#[test]
fn check_and_extensions() {
    let b = bench();
    let run = |args: &[&str]| b.run("castanet", &[&["prolac", "check"], args].concat(), "");
    let plain = run(&["counter.pc"]);
    assert_eq!(
        (plain.out.as_str(), plain.code),
        ("counter.pc: 2 modules, 3 methods, program OK\n", 0),
        "{}",
        plain.err
    );
    for x in ["Twice", "all"] {
        assert_eq!(run(&["-x", x, "counter.pc"]).out, "counter.pc: 3 modules, 4 methods, program OK\n");
    }
    let unknown = run(&["-x", "Thrice", "counter.pc"]);
    assert!(unknown.err.contains("unknown extension 'Thrice'") && unknown.code == 1, "{}", unknown.err);
    for x in ["all,nonsense", "nonsense,Twice"] {
        let unknown = run(&["-x", x, "counter.pc"]);
        assert!(unknown.err.contains("unknown extension 'nonsense'") && unknown.code == 1, "{}", unknown.err);
        assert!(unknown.err.contains("help: the program declares: Twice"), "{}", unknown.err);
    }
    let close = run(&["-x", "all,Twic", "counter.pc"]);
    assert!(close.err.contains("help: did you mean 'Twice'?") && close.code == 1, "{}", close.err);
    b.file("bad.pc", "module M { a ::= b; }");
    let json = run(&["--json", "bad.pc", "counter.pc", "none.pc"]);
    let all = objects(&json.err);
    assert_eq!((json.out.as_str(), json.code, all.len()), ("", 1, 2));
    assert_eq!(
        (&all[0]["message"], &all[0]["spans"][0]["file_name"]),
        (&"unknown name 'b'".into(), &"bad.pc".into())
    );
    assert_eq!(all[1]["message"], "none.pc: No such file or directory");
}

#[test]
fn one_of_each_and_what_is_included() {
    let b = bench();
    let check = |file: &str, input: &str| b.run("castanet", &["prolac", "check", file], input);
    let one = "module M { a ::= 1; }";
    b.file("one.pc", one);
    assert_eq!(check("one.pc", "").out, "one.pc: 1 module, 1 method, program OK\n");
    // The main file may be a pipe.
    for main in ["-", "/dev/stdin"] {
        let piped = check(main, one);
        assert_eq!(
            (piped.out, piped.code),
            (format!("{main}: 1 module, 1 method, program OK\n"), 0),
            "{}",
            piped.err
        );
    }
    let made = std::process::Command::new("mkfifo").arg(b.path("pipe.pc")).status();
    assert!(made.unwrap().success());
    for file in ["pipe.pc", "/dev/zero"] {
        b.file("includes.pc", &format!("include \"one.pc\";\ninclude \"{file}\";\n"));
        let refused = check("includes.pc", "");
        for text in ["includes.pc:2:9", &format!("cannot read '{file}'"), "this is not a regular file"] {
            assert!(refused.err.contains(text) && refused.code == 1, "{}", refused.err);
        }
    }
    let inlined = b.run("castanet", &["prolac", "stats", "-"], "module M { a ::= b; b ::= 1; }").out;
    assert!(inlined.contains("1 module, 2 methods\n") && inlined.contains("1 call inlined\n"), "{inlined}");
}

#[test]
fn compile() {
    let b = bench();
    let run = |args: &[&str]| b.run("castanet", &[&["prolac", "compile"], args].concat(), "");
    let compiled = run(&["counter.pc"]);
    assert!(
        compiled.out.contains("this.n.set(this.n.get().wrapping_add(") && compiled.code == 0,
        "{}",
        compiled.out
    );
    let kept = run(&["counter.pc", "--no-inline", "-x", "Twice", "-o", "out.rs"]);
    assert_eq!((kept.out.as_str(), kept.err.as_str(), kept.code), ("", "", 0));
    let text = std::fs::read_to_string(b.path("out.rs")).unwrap();
    assert!(text.contains("#[inline(never)]\n    pub(super) fn size<H: Host>"), "{text}");
    b.file("bad.pc", "module M { a ::= b; }");
    let bad = run(&["bad.pc", "-o", "bad.rs"]);
    assert!(bad.err.contains("bad.pc:1:18") && bad.code == 1 && !b.path("bad.rs").exists(), "{}", bad.err);
}

#[test]
fn fmt() {
    let b = bench();
    let run = |args: &[&str], input: &str| b.run("castanet", &[&["prolac", "fmt"], args].concat(), input);
    assert_eq!(run(&["counter.pc"], "").out, PROGRAM);
    assert_eq!(run(&["--check", "counter.pc", "twice.pc"], "").code, 0);
    b.file("loose.pc", "module  M{a::=1 ;}");
    let diff = run(&["--check", "loose.pc"], "");
    assert!(diff.out.contains("-module  M{a::=1 ;}") && diff.code == 1, "{}", diff.out);
    assert_eq!(run(&["-w", "loose.pc"], "").code, 0);
    let written = std::fs::read_to_string(b.path("loose.pc")).unwrap();
    assert_eq!(written, "module M {\n    a ::= 1;\n}\n");
    assert_eq!(run(&[], "module  M{a::=1 ;}").out, written);
    let bad = run(&["-w", "-"], "");
    assert!(bad.err.contains("standard input cannot be written back") && bad.code == 1, "{}", bad.err);
    // A file that could not be written back as it was is refused.
    let accent = b"// caf\xe9\nmodule M{a::=1 ;}";
    let long = format!("module M{{a::=1 ;}}\n//{}", "x".repeat(16 << 20));
    for (bytes, why) in
        [(&accent[..], "odd.pc:1: the text is not UTF-8"), (long.as_bytes(), "larger than 16 MiB")]
    {
        std::fs::write(b.path("odd.pc"), bytes).unwrap();
        let refused = run(&["-w", "odd.pc"], "");
        assert!(refused.err.contains(why) && refused.code == 1, "{}", refused.err);
        assert!(std::fs::read(b.path("odd.pc")).unwrap() == bytes);
    }
    let wrong = run(&[], "module {");
    assert!(
        wrong.err.contains("it stays as it is") && wrong.out.is_empty() && wrong.code == 1,
        "{}",
        wrong.err
    );
}

#[test]
fn stats_outline_and_graph() {
    let b = bench();
    let run = |args: &[&str]| b.run("castanet", &[&["prolac"], args].concat(), "").out;
    let stats = run(&["stats", "counter.pc", "-x", "all"]);
    let line = |word: &str| {
        let line = stats.lines().find(|l| l.contains(word)).unwrap_or("");
        line.split_whitespace().rev().take(2).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(line("every call"), ["1022", "2"], "{stats}");
    assert_eq!(line("several definitions"), ["62", "1"], "{stats}");
    assert_eq!(line("hierarchy"), ["0", "0"], "{stats}");
    assert!(stats.contains("  Main.main\n    Base.Counter.step\n      Twice.Counter.size\n"), "{stats}");
    let compiled = stats.lines().last().unwrap();
    assert!(compiled.starts_with("compiled to ") && compiled.ends_with(" ms"), "{compiled}");
    assert!(run(&["stats", "counter.pc", "--no-inline"]).contains("0 calls inlined"));
    let outline = run(&["outline", "counter.pc", "-x", "all"]);
    assert!(
        outline.starts_with("extension Twice: on\n\nmodule Base.Counter\n    field n :> uint\n"),
        "{outline}"
    );
    assert!(outline.contains("    size :> int, replaces Base.Counter.size\n"), "{outline}");
    let svg = run(&["graph", "counter.pc", "-x", "all"]);
    assert!(svg.starts_with("<svg ") && svg.contains(">Twice.Counter</text>"), "{svg}");
}
