// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic tools beside `click`: options, messages and exit codes, exactly as scripts expect them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{bench, check};

#[test]
fn click_flatten() {
    let b = bench();
    let text =
        "define($L 5);\nIdle -> two :: { -> s :: Strip($L) -> output }\n -> Discard; Foo(1) -> Discard;\n";
    b.file("t.click", text);
    let kept = "define($L 5);\n\n# 2 \"t.click\"\nIdle@1 :: Idle;\n# 3 \"t.click\"\nDiscard@3 :: Discard;\n# 3 \"t.click\"\n\
                Foo@4 :: Foo(1);\n# 3 \"t.click\"\nDiscard@5 :: Discard;\n# 2 \"t.click\"\ntwo/s :: Strip($L);\n\
                # 14 \"\"\nFoo@4 -> Discard@5;\nIdle@1 -> two/s\n    -> Discard@3;\n";
    let expanded = kept.replace("define($L 5);\n\n", "").replace("$L", "5").replace("# 14 ", "# 12 ");
    let given = kept.replace("$L 5", "$L 6");
    check(
        &b,
        &[
            (&["click-flatten", "t.click"], "", kept, "", 0),
            (&["click-flatten", "--config", "-f", "t.click", "--no-expand-vars"], "", kept, "", 0),
            (&["click-flatten", "t.click", "--expand-vars"], "", &expanded, "", 0),
            (&["click-flatten", "t.click", "L=6"], "", &given, "", 0),
            (&["click-flatten", "t.click", "-o", "o.click"], "", "", "", 0),
            (&["click-flatten", "-c", "t.click"], "", "Discard\nFoo\nIdle\nStrip\n", "", 0),
            (&["click-flatten", "--classes", "t.click"], "", "Discard\nFoo\nIdle\nStrip\n", "", 0),
            (&["click-flatten", "-n", "t.click"], "", "Discard@3\nDiscard@5\nFoo@4\nIdle@1\ntwo/s\n", "", 0),
            (
                &["click-flatten", "--elements", "t.click"],
                "",
                "Discard@3\nDiscard@5\nFoo@4\nIdle@1\ntwo/s\n",
                "",
                0,
            ),
            (
                &["click-flatten", "-d", "t.click"],
                "",
                "Discard@3 :: Discard\nDiscard@5 :: Discard\nFoo@4 :: Foo\nIdle@1 :: Idle\ntwo/s :: Strip\n",
                "",
                0,
            ),
            (
                &["click-flatten", "-e", "a :: Idle -> d :: Discard"],
                "",
                "# 1 \"config\"\na :: Idle;\n# 1 \"config\"\nd :: Discard;\n# 6 \"\"\na -> d;\n",
                "",
                0,
            ),
            (
                &["click-flatten", "-C", "lib", "-c", "uses.click"],
                "",
                "Counter\nDiscard\nInfiniteSource\nNull\n",
                "",
                0,
            ),
            (&["click-flatten", "-e", "Idle ->"], "", "", "config:1: syntax error near ''\n", 1),
            (&["click-flatten", "nofile.click"], "", "", "nofile.click: No such file or directory\n", 1),
            (
                &["click-flatten", "--nope"],
                "",
                "",
                "unrecognized option '--nope'\nUsage: click-flatten [OPTION]... [ROUTERFILE]\nTry 'click-flatten --help' for more information.\n",
                1,
            ),
        ],
    );
    assert_eq!(std::fs::read_to_string(b.path("o.click")).unwrap(), kept);
}

/// The configurations in conf/.
fn configurations() -> Vec<String> {
    let conf = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let folders = [conf.clone(), conf.join("bench")];
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap()).map(|e| e.unwrap().path());
    let mut all: Vec<String> = files
        .filter(|p| p.extension().is_some_and(|e| e == "click"))
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn configurations_come_back_from_xml() {
    let b = bench();
    for file in configurations() {
        let want = b.run("castanet", &["flatten", &file], "").out;
        for form in [&["-f"][..], &["--flatten", "-f"]] {
            let xml = b.run("click2xml", &[form, &[file.as_str()]].concat(), "");
            assert_eq!((xml.err.as_str(), xml.code), ("", 0), "{file}");
            assert_eq!(b.run("xml2click", &["-F"], &xml.out).out, want, "{file}");
            let back = b.run("xml2click", &[], &xml.out);
            assert_eq!(b.run("castanet", &["flatten", "-"], &back.out).out, want, "{file}\n{}", back.out);
        }
    }
}

#[test]
fn archives_stay_archives() {
    let b = bench();
    let members =
        [("config".to_string(), b"Idle -> Discard;".to_vec()), ("x.txt".to_string(), b"abc".to_vec())];
    let archive = castanet_lang::archive::write(&members).unwrap();
    std::fs::write(b.path("a.click"), archive).unwrap();
    assert_eq!(
        b.run("click-flatten", &["a.click", "-o", "b.click"], ""),
        common::Ran { out: String::new(), err: String::new(), code: 0 }
    );
    let after = castanet_lang::archive::read(&std::fs::read(b.path("b.click")).unwrap()).unwrap();
    assert_eq!(after[1], members[1]);
    assert!(String::from_utf8_lossy(&after[0].1).ends_with("\nIdle@1 -> Discard@2;\n"));
}

#[test]
fn click_check() {
    let right = "config: configuration OK in userlevel driver\n";
    let text = "a :: Idle -> d :: Discard";
    let printed = "# 1 \"config\"\na :: Idle;\n# 1 \"config\"\nd :: Discard;\n# 6 \"\"\na -> d;\n";
    let head = "config:1: While checking configuration for userlevel driver:\n";
    let b = bench();
    let note = |driver| {
        format!("click-check: note: --{driver}: only the userlevel driver exists, so it is checked\n")
    };
    check(
        &b,
        &[
            (&["click-check", "-e", text], "", "", right, 0),
            (&["click-check", "-q", "-e", text], "", "", "", 0),
            (
                &["click-check", "-u", "five.click"],
                "",
                "",
                "five.click: configuration OK in userlevel driver\n",
                0,
            ),
            (&["click-check"], text, "", "<stdin>: configuration OK in userlevel driver\n", 0),
            (&["click-check", "-p", "-e", text], "", printed, right, 0),
            (&["click-check", "--filter", "-q", "-e", text], "", printed, "", 0),
            (&["click-check", "-qo", "o.click", "-e", text], "", "", "", 0),
            (&["click-check", "--no-linuxmodule", "-qe", text], "", "", "", 0),
            (&["click-check", "-k", "-e", text], "", "", &format!("{}{right}", note("linuxmodule")), 0),
            (&["click-check", "-blq", "--no-userlevel", "-e", text], "", "", "", 0),
            (
                &["click-check", "-bl", "--no-linuxmodule", "-e", text],
                "",
                "",
                &format!("{}{right}", note("bsdmodule")),
                0,
            ),
            (
                &["click-check", "-e", "Idle -> Discard -> Discard", "-p"],
                "",
                "",
                &format!(
                    "{head}config:1:   too many outputs for 'Discard@2', 0 allowed\nconfig:1:   'Discard@2' output 0 used here\n"
                ),
                1,
            ),
            (
                &["click-check", "-e", "Idle -> q :: Queue"],
                "",
                "",
                &format!("{head}config:1:   too few outputs for 'q', 1 required\n"),
                1,
            ),
            (
                &["click-check", "-e", "Idle -> q :: Queue -> r :: Queue -> Discard"],
                "",
                "",
                "While checking configuration for userlevel driver:\n  'q :: Queue' pull output 0 connected to 'r :: Queue' push input 0\n",
                1,
            ),
            // This tool does not check arguments.
            (&["click-check", "-e", "Idle -> Strip(x) -> Discard"], "", "", right, 0),
            (
                &["click-check", "-e", "Idle -> Foo -> Discard"],
                "",
                "",
                "config:1: unknown element class 'Foo'\nwarning: config: not suitable for userlevel driver\n",
                1,
            ),
            (&["click-check", "-e", "Idle ->"], "", "", "config:1: syntax error near ''\n", 1),
            (&["click-check", "nofile.click"], "", "", "nofile.click: No such file or directory\n", 1),
        ],
    );
    assert_eq!(std::fs::read_to_string(b.path("o.click")).unwrap(), printed);
}

#[test]
fn click_buildtool() {
    let b = bench();
    let usage = "Usage: click-buildtool provides [OPTION]... [CLASS | FEATURE]...\nTry 'click-buildtool --help' for more information.\n";
    check(
        &b,
        &[
            (&["click-buildtool", "provides", "Counter"], "", "", "", 0),
            (
                &["click-buildtool", "provides", "Counter", "userlevel", "int64", std::env::consts::ARCH],
                "",
                "",
                "",
                0,
            ),
            (
                &["click-buildtool", "provides", "Counter", "Nope"],
                "",
                "",
                "click-buildtool: 'Nope' is not provided\n",
                1,
            ),
            (&["click-buildtool", "provides", "-q", "Nope"], "", "", "", 1),
            (
                &["click-buildtool", "provides", "linuxmodule"],
                "",
                "",
                "click-buildtool: 'linuxmodule' is not provided\n",
                1,
            ),
            // Counter is a class, and userlevel a feature.
            (&["click-buildtool", "provides", "-r", "userlevel"], "", "", "", 0),
            (
                &["click-buildtool", "provides", "-r", "Counter"],
                "",
                "",
                "click-buildtool: 'Counter' is not provided\n",
                1,
            ),
            (&["click-buildtool", "provides", "-e", "Counter"], "", "", "", 0),
            (
                &["click-buildtool", "provides", "-e", "userlevel"],
                "",
                "",
                "click-buildtool: 'userlevel' is not provided\n",
                1,
            ),
            (
                &["click-buildtool", "findelem", "x"],
                "",
                "",
                "click-buildtool findelem: it is for classes written in C++; 'castanet build-package DIR' builds classes written in Rust\n",
                1,
            ),
            (&["click-buildtool", "nope"], "", "", &format!("unknown subcommand 'nope'\n{usage}"), 1),
            (&["click-buildtool"], "", "", &format!("subcommand missing\n{usage}"), 1),
        ],
    );
    for args in [&["provides"][..], &["provides", "-l"], &["provides", "-q"], &["provides", "--list", "Nope"]]
    {
        let ran = b.run("click-buildtool", args, "");
        let lines: Vec<&str> = ran.out.lines().collect();
        assert!(lines.is_sorted() && lines.contains(&"Counter") && lines.contains(&"userlevel"), "{args:?}");
        assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    }
}

#[test]
fn a_router_is_installed_under_the_classic_names() {
    let b = bench();
    let folder = tempfile::tempdir().unwrap();
    let run = |tool: &str, args: &[&str]| {
        let out = b.command(tool).args(args).env("CASTANET_STATE", folder.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout) + &text(&out.stderr))
    };
    let (ok, text) = run("click-uninstall", &[]);
    assert!(!ok && text.contains("no router is installed"), "{text}");
    // Without a device, nothing can run in the kernel.
    for args in [&["-n", "5", "-p"][..], &["-h"]] {
        let (ok, text) = run("click-install", &[args, &["-e", "Idle -> c :: Counter -> Discard;"]].concat());
        assert!(ok && text.contains(if args == ["-h"] { "swapped" } else { "no FromDevice" }), "{text}");
    }
    assert!(run("click-uninstall", &[]).0);
    for (tool, usage) in [("click-install", "[OPTION]... [ROUTERFILE]"), ("click-uninstall", "[OPTION]...")] {
        let (ok, text) = run(tool, &["--help"]);
        assert!(ok && text.contains(usage), "{text}");
    }
}

#[test]
fn help_and_version() {
    let b = bench();
    // Clients compare this version, so it is that of Click.
    let version = castanet_runtime::global_handlers::CLICK_VERSION;
    for tool in ["click", "click-check", "click-flatten", "click-buildtool"] {
        for args in [["--version"], ["-v"], ["--ver"]] {
            let ran = b.run(tool, &args, "");
            assert_eq!(ran.out.lines().next(), Some(format!("{tool} (Click) {version}").as_str()));
            assert_eq!((ran.err.as_str(), ran.code), ("", 0));
        }
        let ran = b.run(tool, &["--help"], "");
        assert!(ran.out.contains(&format!("Usage: {tool} ")) && ran.out.contains("--version"), "{ran:?}");
        assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    }
}

#[test]
fn endless_files_are_refused() {
    let b = bench();
    let large = "File too large: the limit is 64 MiB\n";
    let file = format!("/dev/zero: {large}");
    let library = format!("config:1: can't open library '/dev/zero': {large}");
    let required = "require(library /dev/zero)";
    check(
        &b,
        &[
            (&["click-flatten", "/dev/zero"], "", "", &file, 1),
            (&["click-check", "-f", "/dev/zero"], "", "", &file, 1),
            (&["click-flatten", "-e", required], "", "", &library, 1),
            (&["castanet", "check", "/dev/zero"], "", "", &format!("castanet: {file}"), 1),
        ],
    );
    // The sizes of archive members are checked against the size of the archive before members are read.
    let member =
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "config", 0, 0, 0, 100_644, 9_999_999_999u64);
    let archive = format!("!<arch>\n{member}Idle -> Discard;");
    let bad = "bad archive '<stdin>': bad member size at byte 8\n";
    check(&b, &[(&["click-flatten", "-"], &archive, "", bad, 1)]);
}

#[test]
fn many_errors_are_counted() {
    let b = bench();
    b.file("bad.click", &"Idle -> [1] Discard;\n".repeat(3000));
    let classic = b.run("click-check", &["bad.click"], "");
    let shown = classic.err.matches("too many inputs").count();
    assert_eq!((classic.code, shown), (1, 500), "{}", classic.err);
    assert!(classic.err.ends_with("\n  5000 more lines not shown\n"), "{}", classic.err);
    let ours = b.run("castanet", &["check", "bad.click"], "");
    assert_eq!((ours.code, ours.err.matches("has no input 1").count()), (1, 500));
    assert!(ours.err.ends_with(" errors\n"), "{}", ours.err);
    let json = b.run("castanet", &["check", "--json", "bad.click"], "");
    let shown = json.err.lines().filter(|line| line.contains("has no input 1")).count();
    assert_eq!((json.code, shown), (1, 500));
}

/// Random numbers are reproducible only with a seed or in simulated time.
#[test]
fn random_numbers_are_secrets_unless_a_seed_or_simulated_time_is_given() {
    let b = bench();
    let numbers = |tool: &str, options: &[&str]| {
        let script = ["-e", "Script(print $(random 1000000000000000000), stop)"];
        let line = if tool == "castanet" { [&["run", "-q"], options].concat() } else { options.to_vec() };
        let ran = b.run(tool, &[&line[..], &script].concat(), "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{options:?}");
        assert!(ran.out.trim().parse::<u64>().is_ok(), "{ran:?}");
        ran.out
    };
    for tool in ["castanet", "click"] {
        assert_ne!(numbers(tool, &[]), numbers(tool, &[]), "{tool}");
        assert_eq!(numbers(tool, &["--simtime"]), numbers(tool, &["--simtime"]), "{tool}");
    }
    let seeded = numbers("castanet", &["--seed", "7"]);
    assert_eq!(numbers("castanet", &["--seed", "7"]), seeded);
    assert_eq!(numbers("castanet", &["--seed", "7", "--simtime"]), seeded);
    assert_eq!(numbers("castanet", &["--seed", "1"]), numbers("castanet", &["--simtime"]));
    assert_ne!(numbers("castanet", &["--seed", "8"]), seeded);
}

#[test]
fn names_that_are_not_there_are_reported() {
    let b = bench();
    let path = "InfiniteSource(LIMIT 1) -> count :: Counter -> Discard;";
    let script = format!(
        "{path} Script(print count.cuont, read conut.count, print $(count.rset), write count.rest, stop)"
    );
    let ran = b.run("castanet", &["run", "-q", "-e", &script], "");
    let lines: Vec<&str> = ran.err.lines().map(str::trim_start).collect();
    assert_eq!(
        lines,
        [
            "While executing 'Script@4 :: Script':",
            "no 'count.cuont' read handler; did you mean 'count.count'?",
            "no element named 'conut'; did you mean 'count.count'?",
            "no 'count.rset' read handler; did you mean 'count.reset'?",
            "no 'count.rest' write handler; did you mean 'count.reset'?",
        ],
    );
    // A script continues after an instruction that failed, and the run exits with 1.
    assert_eq!(ran.code, 1);
    let variable = "Idle -> Print(\"$lable\") -> Discard; Script(print \"$x\")";
    let checked = b.run("castanet", &["check", "-e", variable], "");
    assert_eq!((checked.code, checked.err.matches("warning: ").count()), (0, 1), "{}", checked.err);
    assert!(checked.err.starts_with("warning: variable '$lable' is not defined\n"), "{}", checked.err);
    // A run reports each variable once. The reports do not affect its exit code.
    let script = "Idle -> Discard; Script(print $x, print \"$y $1\", print $x ${x[1]} ${z-none}, stop)";
    let ran = b.run("castanet", &["run", "-q", "-e", script], "");
    let warnings =
        ["$x", "$y", "$1"].map(|v| format!("Script@3 :: Script: warning: variable '{v}' is not defined\n"));
    let out = "$x\n$y $1\n$x ${x[1]} none\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err), (0, out, warnings.concat()));
    let ran = b.run("click", &["-e", script], "");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, out, ""));
    // Tools print the text as it is written. The classic driver prints no warning.
    assert_eq!(b.run("click-flatten", &["-e", variable], "").err, "");
    let open = b.run("click", &["-e", "Idle -> Discard; /* DriverManager(stop);"], "");
    assert_eq!((open.code, open.err.lines().next()), (1, Some("config:1: unclosed comment")));
}
