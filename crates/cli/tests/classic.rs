// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary under classic names: options, messages and exit codes, exactly as scripts expect them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{FIVE, bench, check, signal};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

const USAGE: &str = "Usage: click [OPTION]... [ROUTERFILE]\nTry 'click --help' for more information.\n";

#[test]
fn where_the_configuration_comes_from() {
    check(
        &bench(),
        &[
            (&["click", "-e", FIVE, "-h", "c.count"], "", "5\n", "", 0),
            (&["click", "--expression", FIVE, "--handler=c.count"], "", "5\n", "", 0),
            (&["click", "-f", "five.click", "-hc.count"], "", "5\n", "", 0),
            (&["click", "--file=five.click", "--hand", "c.count"], "", "5\n", "", 0),
            (&["click", "five.click", "-h", "c.count"], "", "5\n", "", 0),
            (&["click", "-h", "c.count", "--", "five.click"], "", "5\n", "", 0),
            (&["click", "-h", "c.count", "-"], FIVE, "5\n", "", 0),
            (&["click", "-h", "c.count"], FIVE, "5\n", "", 0),
            (&["click", "n.click", "N=7", "-h", "c.count"], "", "7\n", "", 0),
            (&["click", "N=7", "-h", "c.count", "n.click", "N=8"], "", "8\n", "", 0),
            (&["click", "-C", "lib", "uses.click", "-h", "c.count"], "", "2\n", "", 0),
            (&["click", "--clickpath=x:lib", "uses.click", "-h", "c.count"], "", "2\n", "", 0),
            (
                &["click", "five.click", "-e", FIVE],
                "",
                "",
                &format!("router configuration specified twice\n{USAGE}"),
                1,
            ),
            (
                &["click", "five.click", "n.click"],
                "",
                "",
                &format!("router configuration specified twice\n{USAGE}"),
                1,
            ),
            (&["click", "nofile.click"], "", "", "nofile.click: No such file or directory\n", 1),
            (&["click", "."], "", "", ".: Is a directory\n", 1),
        ],
    );
}

#[test]
fn the_empty_configuration() {
    let b = bench();
    b.file("e.click", "// nothing\n");
    check(
        &b,
        &[
            (&["click", "e.click"], "", "", "warning: e.click: configuration has no elements, exiting\n", 0),
            (&["click"], "", "", "warning: <stdin>: configuration has no elements, exiting\n", 0),
            (&["click", "-e", ""], "", "", "warning: config: configuration has no elements, exiting\n", 0),
            (&["click", "-w", "e.click"], "", "", "", 0),
            (&["click", "--no-warnings", "e.click"], "", "", "", 0),
            (
                &["click", "-w", "--warnings", "-e", ""],
                "",
                "",
                "warning: config: configuration has no elements, exiting\n",
                0,
            ),
        ],
    );
}

#[test]
fn warnings() {
    let b = bench();
    // Bytes that are not UTF-8 cause no warning.
    std::fs::write(b.path("latin.click"), b"// caf\xe9\na :: Idle -> Discard; StaticThreadSched(a 7)")
        .unwrap();
    check(
        &b,
        &[
            (
                &["click", "-q", "latin.click"],
                "",
                "",
                "latin.click:2: While configuring 'StaticThreadSched@3 :: StaticThreadSched':\n  \
                 warning: thread preference 7 out of range\n",
                0,
            ),
            (&["click", "-qw", "latin.click"], "", "", "", 0),
        ],
    );
}

#[test]
fn handlers() {
    let blocks = "c.count:\n5\n\nc.byte_count:\n0\n\n";
    let zero = "InfiniteSource(DATA \"\", LIMIT 5, STOP true) -> c :: Counter -> Discard;";
    check(
        &bench(),
        &[
            (&["click", "-e", zero, "-h", "c.count", "-h", "c.byte_count"], "", blocks, "", 0),
            (&["click", "-e", zero, "-h", "Counter.count"], "", "c.count:\n5\n\n", "", 0),
            (&["click", "-e", zero, "-h", "[c]*.count"], "", "c.count:\n5\n\n", "", 0),
            (&["click", "-e", zero, "-h", "c.name"], "", "c\n", "", 0),
            (&["click", "-e", zero, "-h", "driver"], "", "userlevel\n", "", 0),
            (&["click", "-e", zero, "-h", "c.config"], "", "\n", "", 0),
            (
                &["click", "-e", zero, "-h", "c.config", "-h", "c.class"],
                "",
                "c.config:\n\nc.class:\nCounter\n\n",
                "",
                0,
            ),
            (
                &["click", "-e", zero, "-h", "c.nope", "-h", "c.count"],
                "",
                "c.count:\n5\n\n",
                "no 'c.nope' handler\n",
                1,
            ),
            (&["click", "-e", zero, "-h", "zz.count"], "", "", "no element 'zz'\n", 1),
            (&["click", "-e", zero, "-h", "c.reset"], "", "", "'c.reset' is a write handler\n", 1),
            (&["click", "-e", zero, "-h", "c.*"], "", "", "no 'c.*' handler\n", 1),
            (&["click", "-qe", zero, "-h", "c.count"], "", "0\n", "", 0),
            (&["click", "--quit", "-e", zero, "-h", "c.count"], "", "0\n", "", 0),
        ],
    );
}

#[test]
fn exit_status_from_a_handler() {
    let ttl = |active: &str| {
        format!("InfiniteSource(LIMIT 1, STOP true) -> d :: DecIPTTL(ACTIVE {active}) -> Discard")
    };
    let (yes, no) = (ttl("true"), ttl("false"));
    let integer = "exit handler value should be integer\n";
    check(
        &bench(),
        &[
            (&["click", "five.click", "-x", "c.count"], "", "", "", 5),
            (&["click", "five.click", "--exit-handler=c.count", "-h", "c.count"], "", "5\n", "", 5),
            (&["click", "five.click", "-q", "-x", "c.count"], "", "", "", 0),
            (&["click", "-e", &yes, "-x", "d.active"], "", "", "", 0),
            (&["click", "-e", &no, "-x", "d.active"], "", "", "", 1),
            (&["click", "five.click", "-x", "c.class"], "", "", integer, 255),
            (&["click", "five.click", "-x", "*.count"], "", "", integer, 255),
            (&["click", "five.click", "-x", "c.nope"], "", "", "no 'c.nope' handler\n", 255),
            (&["click", "five.click", "-x", "c.count", "-h", "c.nope"], "", "", "no 'c.nope' handler\n", 5),
        ],
    );
}

#[test]
fn the_flat_configuration() {
    let b = bench();
    let flat = "InfiniteSource@1 :: InfiniteSource(LIMIT 2, STOP true);\nc :: Counter;\nDiscard@4 :: Discard;\n\
                L@2/Null@1 :: Null;\n\nInfiniteSource@1 -> L@2/Null@1\n    -> c\n    -> Discard@4;\n";
    check(
        &b,
        &[
            (&["click", "-q", "-C", "lib", "uses.click", "-o", "-"], "", flat, "", 0),
            (&["click", "-q", "-C", "lib", "uses.click", "--output=out.click"], "", "", "", 0),
            (
                &["click", "-q", "-e", FIVE, "-o", "no/out"],
                "",
                "",
                "click: no/out: No such file or directory\n",
                1,
            ),
        ],
    );
    assert_eq!(std::fs::read_to_string(b.path("out.click")).unwrap(), flat);
    check(&b, &[(&["click", "out.click", "-h", "c.count"], "", "2\n", "", 0)]);
}

#[test]
fn time_and_workers() {
    let b = bench();
    let ran = b.run("click", &["-t", "five.click"], "");
    let shape: String = ran.err.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!((ran.out.as_str(), shape.as_str(), ran.code), ("", "0.000u 0.000s 0:00.00\n", 0));
    // A minute and a half of simulated time.
    let rated = "RatedSource(RATE 1, LIMIT 90, STOP true) -> c :: Counter -> Discard;";
    check(
        &b,
        &[
            (&["click", "--simtime", "-e", rated, "-h", "c.count"], "", "90\n", "", 0),
            (&["click", "--simulation-time=5", "-e", rated, "-h", "c.count"], "", "90\n", "", 0),
            (&["click", "-j", "2", "five.click", "-h", "c.count"], "", "5\n", "", 0),
            (&["click", "-j0", "five.click", "-h", "c.count"], "", "5\n", "", 0),
            (&["click", "--threads=-3", "five.click", "-h", "c.count"], "", "5\n", "", 0),
        ],
    );
    let seen = b.run(
        "click",
        &[
            "--simtime=7",
            "-e",
            "InfiniteSource(LIMIT 1, STOP true) -> Print(a, TIMESTAMP true, CONTENTS NONE) -> Discard",
        ],
        "",
    );
    assert!(seen.err.starts_with("a: 7.0000000"), "{seen:?}");
}

#[test]
fn wrong_options() {
    let b = bench();
    for (args, message) in [
        (&["--foo"][..], "unrecognized option '--foo'"),
        (&["-Z"], "unrecognized option '-Z'"),
        (&["-h"], "option '-h' requires an argument"),
        (&["--quit=1"], "option '--quit' takes no argument"),
        (&["--e", "x"], "option '--e' is ambiguous; possibilities: '--expression' '--exit-handler'"),
        (&["-j", "x"], "option '--threads' expects an integer, not 'x'"),
        (&["-j", "100000"], "option '--threads': at most 256, not 100000"),
        (&["--simtime=x"], "--simtime: expected time in seconds"),
        (&["--simtick=-1"], "option '--simtick' expects nanoseconds, not '-1'"),
        (&["-ax"], "option '--affinity' expects a processor's number, not 'x'"),
        (&["--cpu=99999"], "--affinity 99999: there is no processor 99999; this process may run on"),
    ] {
        let ran = b.run("click", args, "");
        let (first, rest) = ran.err.split_once('\n').unwrap();
        assert!(first.starts_with(message), "{args:?}: {first}");
        assert_eq!((rest, ran.out.as_str(), ran.code), (USAGE, "", 1), "{args:?}");
    }
}

#[test]
fn options_of_other_drivers_and_options_switched_off() {
    let b = bench();
    let ran = b.run("click", &["--dpdk", "-l", "0-3", "-n", "4", "--", "five.click", "-h", "c.count"], "");
    let want = "warning: --dpdk: devices are opened by the kernel's drivers\n";
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("5\n", want, 0));
    check(
        &b,
        &[(
            &[
                "click",
                "--no-cpu",
                "-a9999",
                "--no-affinity",
                "--no-allow-reconfigure",
                "five.click",
                "-h",
                "c.count",
            ],
            "",
            "5\n",
            "",
            0,
        )],
    );
}

#[test]
fn what_is_wrong_with_a_configuration() {
    let b = bench();
    b.file("redeclared.click", "a :: Idle;\na :: Idle;\n");
    b.file("compound.click", "elementclass C { input -> Strip(x) -> output }\nIdle -> C -> C -> Discard;\n");
    let bad = "Router could not be initialized!\n";
    // Packages are installed beside the folder of the program.
    let installed = std::path::Path::new(common::BINARY).ancestors().nth(2).unwrap().join("lib/castanet");
    check(
        &b,
        &[
            // Errors of the first phase, which reads the text and finds the classes: the last line "Router
            // could not be initialized!" is not printed.
            (&["click", "-e", "Foo -> Discard"], "", "", "config:1: undeclared element 'Foo'\n", 1),
            (&["click", "-e", "Idle ->"], "", "", "config:1: syntax error near ''\n", 1),
            (&["click"], "Foo -> Discard", "", "<stdin>:1: undeclared element 'Foo'\n", 1),
            (&["click", "-e", "# 7 \"f.x\"\nFoo -> Discard"], "", "", "f.x:7: undeclared element 'Foo'\n", 1),
            (
                &["click", "redeclared.click"],
                "",
                "",
                "redeclared.click:2: redeclaration of element 'a'\nredeclared.click:1: element 'a' previously declared here\n",
                1,
            ),
            (
                &["click", "-e", "require(package nosuch); Idle -> Discard"],
                "",
                "",
                &format!(
                    "While loading package 'nosuch':\n  can't find required package 'nosuch.uo'\n  in CLICKPATH or \
                     '{}'\nrequirement 'nosuch' not available\n",
                    installed.display()
                ),
                1,
            ),
            // In the second phase, which connects and configures elements, errors of ports suppress errors of
            // arguments.
            (
                &["click", "-e", "Idle -> Discard -> Discard"],
                "",
                "",
                &format!("config:1: 'Discard@2 :: Discard' has no output 0\n{bad}"),
                1,
            ),
            (
                &["click", "-e", "Idle -> Strip(x)"],
                "",
                "",
                &format!("config:1: 'Strip@2 :: Strip' output 0 unused\n{bad}"),
                1,
            ),
            (
                &["click", "-e", "Idle -> q :: Queue -> q2 :: Queue -> Discard"],
                "",
                "",
                &format!("'q :: Queue' pull output 0 connected to 'q2 :: Queue' push input 0\n{bad}"),
                1,
            ),
            (
                &["click", "-e", "i :: InfiniteSource -> Discard; i -> Discard"],
                "",
                "",
                &format!("config:1: illegal reuse of 'i :: InfiniteSource' push output 0\n{bad}"),
                1,
            ),
            (
                &["click", "-e", "Idle -> s :: Strip(x, BADK 5) -> Discard"],
                "",
                "",
                &format!(
                    "config:1: While configuring 's :: Strip':\n  BADK: unknown argument\n  LENGTH: invalid number\n{bad}"
                ),
                1,
            ),
            (
                &["click", "-q", "compound.click"],
                "",
                "",
                &format!(
                    "compound.click:1: While configuring 'C@2/Strip@1 :: Strip':\n  LENGTH: invalid number\n\
                 compound.click:1: While configuring 'C@3/Strip@1 :: Strip':\n  LENGTH: invalid number\n{bad}"
                ),
                1,
            ),
            (&["click", "-e", "require(userlevel, package linux); Idle -> Discard", "-q"], "", "", "", 0),
        ],
    );
}

#[test]
fn messages_of_the_run_go_to_standard_error() {
    check(
        &bench(),
        &[
            (
                &[
                    "click",
                    "-e",
                    "InfiniteSource(DATA \\<0102030405060708>, LIMIT 2, STOP true) -> Print(a) -> Discard",
                ],
                "",
                "",
                "a:    8 | 01020304 05060708\na:    8 | 01020304 05060708\n",
                0,
            ),
            (
                &[
                    "click",
                    "-e",
                    "InfiniteSource(LIMIT 5, STOP true) -> q :: SimpleQueue(2) -> Idle",
                    "-h",
                    "q.drops",
                ],
                "",
                "3\n",
                "q :: SimpleQueue: overflow\n",
                0,
            ),
        ],
    );
}

#[test]
fn interrupts_stop_the_driver() {
    let b = bench();
    let mut c = b.command("click");
    c.args([
        "-e",
        "InfiniteSource(LIMIT 3) -> Print(a, CONTENTS NONE) -> c :: Counter -> Discard",
        "-h",
        "c.count",
    ]);
    let mut child = c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Signals are handled only once packets move, so wait for the output about the packets.
    let mut err = BufReader::new(child.stderr.take().unwrap());
    for _ in 0..3 {
        err.read_line(&mut String::new()).unwrap();
    }
    signal(child.id(), "INT");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), child.wait().unwrap().code()), ("3\n", Some(0)));
}

#[test]
fn a_closed_pipe_is_an_error_and_no_panic() {
    let b = bench();
    for args in [
        &["click", "-q", "five.click", "-o", "-"][..],
        &["click", "five.click", "-h", "c.count"],
        &["click", "--help"],
        &["click-flatten", "five.click"],
        &["click-buildtool", "provides"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut c = b.command(args[0]);
        let child =
            c.args(&args[1..]).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        drop(c);
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(
            (err, done.status.code()),
            (format!("{}: standard output: Broken pipe\n", args[0]), Some(1)),
            "{args:?}"
        );
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let b = bench();
    let mut c = b.command("click");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child =
        c.args(["five.click", "-h", "c.count"]).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    let done = child.spawn().unwrap().wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(
        (err.as_str(), done.status.code()),
        ("click: standard output: No space left on device\n", Some(1))
    );
}

#[test]
fn no_colour_and_no_summary_even_where_wanted() {
    let b = bench();
    let mut c = b.command("click");
    c.args(["-e", "Foo -> Discard"]).env("CLICOLOR_FORCE", "1");
    assert_eq!(common::run(c, "").err, "config:1: undeclared element 'Foo'\n");
    let mut c = b.command("click");
    c.arg("five.click").env("CLICOLOR_FORCE", "1");
    assert_eq!(common::run(c, ""), common::Ran { out: String::new(), err: String::new(), code: 0 });
}
