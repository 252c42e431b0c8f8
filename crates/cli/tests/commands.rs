// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details of single commands: help, version, several files, simulated time without events, errors of hot swaps.
#![allow(clippy::unwrap_used)]

mod common;

use common::{BINARY, Bench, Ran, objects};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn castanet(args: &[&str]) -> Ran {
    Bench::new().run("castanet", args, "")
}

#[test]
fn the_version_names_castanet() {
    let want = format!("castanet {}\n", env!("CARGO_PKG_VERSION"));
    for args in
        [&["--version"][..], &["run", "--version"], &["ctl", "--version"], &["ctl", "a", "read", "-V"]]
    {
        assert_eq!(castanet(args), Ran { out: want.clone(), err: String::new(), code: 0 }, "{args:?}");
    }
}

#[test]
fn run_h_without_a_handler_prints_the_short_help() {
    for args in [&["run", "-h"][..], &["run", "router.click", "-h"]] {
        let ran = castanet(args);
        assert_eq!((ran.err.as_str(), ran.code), ("", 0), "{args:?}");
        assert!(ran.out.contains("Usage: castanet run") && ran.out.contains("--handler"), "{}", ran.out);
    }
    let text = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard";
    assert_eq!(castanet(&["run", "-q", "-e", text, "-h", "c.count"]).out, "5\n");
}

#[test]
fn check_takes_several_files() {
    let b = Bench::new();
    b.file("good.click", "Idle -> Discard;");
    b.file("a.click", "Idle -> Discrd;");
    b.file("b.click", "Idle -> Counter($N) -> Discard; Foo;");
    let run = |args: &[&str]| b.run("castanet", &[&["check"], args].concat(), "");
    let two = run(&["good.click", "a.click", "good.click", "b.click", "N=1"]);
    assert_eq!(two.out, "good.click: 2 elements, configuration OK\n".repeat(2));
    assert!(two.err.contains("a.click:1:") && two.err.contains("b.click:1:") && two.code == 1, "{}", two.err);
    assert_eq!(run(&["good.click", "good.click"]).code, 0);
    let missing = run(&["none.click", "a.click"]);
    assert!(missing.err.contains("none.click: No such file") && missing.err.contains("a.click:1:"));
    let json = run(&["--json", "a.click", "b.click", "N=1"]);
    let all = objects(&json.err);
    let files: Vec<_> = all.iter().map(|d| d["spans"][0]["file_name"].as_str().unwrap()).collect();
    assert!(files.contains(&"a.click") && files.contains(&"b.click"), "{files:?}");
    let good = run(&["--json", "good.click", "good.click"]);
    assert_eq!((good.out.as_str(), good.err.as_str(), good.code), ("", "", 0));
    let missing = objects(&run(&["--json", "none.click"]).err);
    assert_eq!(missing[0]["message"], "none.click: No such file or directory");
}

#[test]
fn check_warns_of_the_check_paint_of_the_papers() {
    let text = "Idle -> Paint(1) -> c :: CheckPaint(1) -> Discard; c [1] -> ICMPError(1.0.0.1, redirect) -> Discard;";
    let ran = castanet(&["check", "-e", text]);
    assert!(ran.err.contains("warning: output 1 of 'c :: CheckPaint' leads to redirects"), "{}", ran.err);
    assert!(ran.err.contains("use PaintTee(1)") && ran.code == 0, "{}", ran.err);
}

#[test]
fn simulated_time_without_events_ends_the_run() {
    let ran = castanet(&["run", "-q", "--simtime", "-e", "q :: Queue -> Unqueue -> Discard; Idle -> q"]);
    let want = "simulated time cannot advance: no task is scheduled and no timer is set; stopping\n";
    assert_eq!((ran.err.as_str(), ran.code), (want, 0));
    // Without events, each `pause` of a script receives a request to stop.
    let script = "Idle -> Discard; DriverManager(pause, print \"one\", pause, print \"two\")";
    let ran = castanet(&["run", "-q", "--simtime", "-e", script]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("one\ntwo\n", want));
    // A timer is an event.
    let timer = "TimedSource(INTERVAL 1h, LIMIT 2, STOP true) -> c :: Counter -> Discard";
    let ran = castanet(&["run", "-q", "--simtime", "-e", timer, "-h", "c.count"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("2\n", ""));
}

#[test]
fn help_of_new_names_options_that_exist() {
    let run = castanet(&["run", "--help"]).out;
    for what in ["nat", "firewall", "bridge", "ip-router"] {
        let help = castanet(&["new", what, "--help"]).out;
        let own =
            help.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-'));
        for option in own.filter(|w| w.starts_with("--") && w.len() > 2) {
            let defined =
                |text: &str| text.contains(&format!("{option} ")) || text.contains(&format!("{option}\n"));
            assert!(defined(&run) || help.matches(option).count() > 0, "{what}: {option}");
            assert!(!matches!(option, "--http" | "--unix"), "{what}: {option}");
        }
        assert!(what == "ip-router" || help.contains("castanet run -u FILE"), "{what}");
    }
}

#[test]
fn completion_leaves_hidden_commands_out() {
    for shell in ["bash", "zsh", "fish"] {
        let script = castanet(&["completion", shell]).out;
        assert!(script.contains("flatten") && script.contains("allow-reconfigure"), "{shell}");
        for hidden in ["unmount-after-run", "open-for-run", "veth-part"] {
            assert!(
                !script.contains(hidden) && !script.contains(&hidden.replace('-', "__")),
                "{shell}: {hidden}"
            );
        }
    }
}

/// A process that is killed when the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn errors_of_a_hot_swap_keep_file_caret_and_help() {
    let b = Bench::new();
    b.file("old.click", "Idle -> c :: Counter -> Discard;");
    b.file("wrong.click", "// A comment.\nIdle -> c :: Conter -> Discard;");
    let mut run = Command::new(BINARY);
    run.current_dir(&b.folder).args(["run", "-q", "-R", "-u", "sock", "old.click"]);
    let _router = Killed(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let start = Instant::now();
    while b.run("castanet", &["ctl", "sock", "read", "c.count"], "").code != 0 {
        assert!(start.elapsed() < Duration::from_secs(50), "the router does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    for dry_run in [&[][..], &["--dry-run"]] {
        let ran = b.run("castanet", &[&["ctl", "sock", "swap", "wrong.click"], dry_run].concat(), "");
        for part in ["--> wrong.click:2:14", "^^^^^^ no such class", "help: did you mean 'Counter'?"] {
            assert!(ran.err.contains(part), "{dry_run:?}, {part}:\n{}", ran.err);
        }
        assert_eq!((ran.out.as_str(), ran.code), ("", 1));
    }
    let ran = b.run("castanet", &["ctl", "sock", "swap", "-"], "Idle -> Conter -> Discard;");
    assert!(ran.err.contains("--> config:1:9"), "{}", ran.err);
}

#[test]
fn a_progress_bar_is_drawn_on_standard_error() {
    let b = Bench::new();
    let bar = "ProgressBar(c.count, FIXED_SIZE 20, UPDATE 0.5, BANNER x";
    let path = "RatedSource(RATE 10, LIMIT 20, STOP true) -> c :: Counter -> Discard;";
    b.file("drawn.click", &format!("{path} {bar}, CHECK_STDERR false);"));
    b.file("hidden.click", &format!("{path} {bar});"));
    let ran = b.run("castanet", &["run", "-q", "--simtime", "drawn.click"], "");
    let lines: Vec<&str> = ran.err.split('\r').skip(1).collect();
    assert_eq!((lines.len(), ran.code), (4, 0), "{}", ran.err);
    for (line, begin) in lines.iter().zip(["x  30% |****", "x  55% |****", "x  80% |****", "x 100% |****"]) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(lines[3].contains("|     20 00:01") && lines[3].ends_with('\n'), "{}", lines[3]);
    // Standard error of a test is not a terminal, so the bar is not drawn.
    let ran = b.run("castanet", &["run", "-q", "--simtime", "hidden.click"], "");
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
}
