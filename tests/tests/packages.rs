// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests a crate of classes outside the repository, from source to packets: `castanet build-package`, `require`, and
//! the errors for packages that do not fit.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Returns a directory with a copy of the example crate in `src-of-tally`, and the built package in `lib`.
fn folder() -> &'static (tempfile::TempDir, PathBuf) {
    static FOLDER: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let castanet = castanet();
        let copied = Command::new("cp")
            .arg("-r")
            .arg(root().join("examples/tally"))
            .arg(at.join("src-of-tally"))
            .status();
        assert!(copied.unwrap().success());
        std::fs::create_dir(at.join("lib")).unwrap();
        let out = ran(Command::new(&castanet).current_dir(at).args([
            "build-package",
            "src-of-tally",
            "--debug",
            "-o",
            "lib/tally.castanet",
        ]));
        assert_eq!(out.0, 0, "{out:?}");
        assert!(out.1.starts_with("lib/tally.castanet: CheckSize, TallySwitch ("), "{out:?}");
        (folder, castanet)
    })
}

/// Runs a command; returns exit code, standard output and standard error.
fn ran(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        command.env_remove("CLICKPATH").env_remove("RUST_BACKTRACE").env("NO_COLOR", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

fn run(words: &[&str]) -> (i32, String, String) {
    let (folder, castanet) = folder();
    ran(Command::new(castanet).current_dir(folder.path()).args(words))
}

fn write(name: &str, text: impl AsRef<[u8]>) {
    let path = folder().0.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
    std::fs::write(path, text).unwrap();
}

fn example() -> String {
    let text = std::fs::read_to_string(root().join("examples/tally/tally.click")).unwrap();
    assert!(text.contains("\nrequire(package tally);\n"));
    text
}

#[test]
fn a_configuration_requires_it() {
    write("lib/beside.click", example());
    write("elsewhere/main.click", example());
    let tally = "0 0\n1 20\n2 30\n";
    // The package is in the folder of the configuration, or on the search path.
    for words in [
        ["run", "-q", "lib/beside.click", "-h", "tally.tally", "-C", ""],
        ["run", "-q", "elsewhere/main.click", "-h", "tally.tally", "-C", "lib"],
        ["run", "-q", "elsewhere/main.click", "-h", "tally.tally", "-C", "nosuch:."],
    ] {
        assert_eq!(run(&words), (0, tally.into(), String::new()), "{words:?}");
    }
    // The configuration requires the package by its file name.
    let text = example().replace("package tally", "package lib/tally.castanet");
    write("file.click", text);
    assert_eq!(run(&["run", "-q", "file.click", "-h", "tally.tally"]), (0, tally.into(), String::new()));
    let text = example().replace("require(package tally);", "");
    write("without.click", text);
    let words = ["run", "-q", "without.click", "--package", "lib/tally.castanet", "-h", "tally.tally"];
    assert_eq!(run(&words), (0, tally.into(), String::new()));
    let (code, out, err) = run(&["check", "lib/beside.click"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "lib/beside.click: 9 elements, configuration OK\n", "")
    );
}

#[test]
fn its_classes_are_checked_and_documented() {
    write(
        "lib/wrong.click",
        "require(package tally); Idle -> CheckSize(9, 8) -> [1] TallySwitch -> Discard;",
    );
    let (code, _, err) = run(&["check", "lib/wrong.click"]);
    assert!(code == 1 && err.contains("'TallySwitch@3 :: TallySwitch' has no input 1"), "{err}");
    write(
        "lib/wrong.click",
        "require(package tally); Idle -> CheckSize(9, 8) -> TallySwitch(OFSET 1) -> Discard;",
    );
    let (code, _, err) = run(&["check", "lib/wrong.click"]);
    assert!(code == 1 && err.contains("MIN: 9 is more than MAX, 8"), "{err}");
    assert!(err.contains("OFSET: unknown argument") && err.contains("did you mean 'OFFSET'?"), "{err}");
    let (code, out, _) = run(&["doc", "CheckSize", "--package", "lib/tally.castanet"]);
    assert!(code == 0 && out.contains("Passes packets of MIN to MAX bytes."), "{out}");
    let (code, out, _) = run(&["list", "--json", "--package", "lib/tally.castanet"]);
    assert!(
        code == 0 && out.contains("\"name\": \"TallySwitch\"") && out.contains("castanet_tally"),
        "{out}"
    );
    let (code, _, err) = run(&["doc", "CheckSize"]);
    assert!(code == 1 && err.contains("no class 'CheckSize'"), "{err}");
}

#[test]
fn missing_and_incompatible_packages_are_reported() {
    write("lib/nosuch.click", "require(package nosuch); Idle -> Discard;");
    let (code, out, err) = run(&["run", "lib/nosuch.click", "-C", "conf"]);
    assert_eq!((code, out.as_str()), (1, ""));
    for part in [
        "can't find required package 'nosuch.uo'",
        "While loading package 'nosuch'",
        "in CLICKPATH or '",
        "'nosuch.castanet' and 'nosuch.so' were searched for in conf, conf/lib, lib, ",
        "requirement 'nosuch' not available",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    // The header names another compiler.
    let mut bytes = std::fs::read(folder().0.path().join("lib/tally.castanet")).unwrap();
    let at = bytes.windows(19).position(|w| w == b"\ncompiler=rustc 1.9").unwrap();
    bytes[at + 16..at + 19].copy_from_slice(b"0.1");
    write("lib/other.castanet", &bytes);
    write("lib/noise.castanet", [7; 4096]);
    write("lib/short.castanet", &bytes[..bytes.len() / 2]);
    for (name, parts) in [
        (
            "other",
            [
                "built for another castanet",
                "compiler: the package has rustc 0.1",
                "this castanet has rustc 1.",
            ],
        ),
        ("noise", ["not a loadable package", "it is not a shared library", "castanet build-package"]),
        ("short", ["not a loadable package", "lib/short.castanet", "castanet build-package"]),
    ] {
        write("lib/main.click", format!("require(package {name}); Idle -> Discard;"));
        let (code, _, err) = run(&["run", "lib/main.click"]);
        assert_eq!(code, 1, "{err}");
        for part in parts {
            assert!(err.contains(part), "{name}: {part}: {err}");
        }
    }
}

#[test]
fn crates_that_were_kept_are_enough() {
    let (code, out, err) = run(&["sdk", "kept"]);
    assert!(code == 0 && out.starts_with("kept: ") && out.ends_with(" MB\n"), "{out}{err}");
    let build = ["build-package", "src-of-tally", "--debug", "--sdk", "kept", "-o", "again.castanet"];
    let (code, out, err) = run(&build);
    assert!(code == 0 && out.starts_with("again.castanet: CheckSize, TallySwitch"), "{out}{err}");
    let (code, _, err) = run(&["build-package", "src-of-tally", "--sdk", "lib"]);
    assert_eq!((code, err.as_str()), (1, "castanet: lib: it does not contain castanet's compiled crates\n"));
    let (code, out, _) = run(&["sdk", "--print", "--from", "kept"]);
    assert!(code == 0 && out.contains("compiler: rustc 1.") && out.trim_end().ends_with("/kept"), "{out}");
}

#[test]
fn the_classic_compiler_makes_the_same() {
    use std::os::unix::process::CommandExt as _;
    let (folder, castanet) = folder();
    let compile = |words: &[&str]| {
        ran(Command::new(castanet).arg0("click-compile").current_dir(folder.path()).args(words))
    };
    let (code, out, err) =
        compile(&["-t", "userlevel", "-p", "other", "-d", "lib", "--cflags=-O2", "src-of-tally"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "lib/other.castanet: CheckSize, TallySwitch\n", ""));
    write("lib/other.click", example().replace("package tally", "package other"));
    let words = ["run", "-q", "lib/other.click", "-h", "tally.tally"];
    assert_eq!(run(&words), (0, "0 0\n1 20\n2 30\n".into(), String::new()));
    let (code, out, _) = compile(&["src-of-tally"]);
    assert_eq!((code, out.as_str()), (0, "tally.castanet: CheckSize, TallySwitch\n"));
}

/// A panic in a class of a package ends the run like a panic in a built-in class, not with a signal.
#[test]
fn a_panic_is_an_error_of_the_program() {
    let probe = root().join("crates/package/tests/packages/probe").display().to_string();
    let (code, out, err) = run(&["build-package", &probe, "--debug", "-o", "probe.castanet"]);
    assert_eq!(code, 0, "{out}{err}");
    let words =
        ["run", "-q", "--package", "probe.castanet", "-e", "ProbeSource(3) -> ProbePanic(packet) -> Discard"];
    let (code, out, err) = run(&words);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("thread 'worker 0': package 'probe' panicked at src/lib.rs:"), "{err}");
    assert!(err.contains("ProbePanic (config:1) panicked: the probe panics at packet"), "{err}");
    // Every other packet makes the element panic. The option --on-panic determines what happens then.
    let text = "ProbeSource(6) -> r :: RoundRobinSwitch -> ProbePanic(packet) -> Discard; r [1] -> c :: Counter -> Discard";
    let words = ["run", "-q", "--package", "probe.castanet", "--batch", "1", "-e", text, "-h", "c.count"];
    for (choice, passed, panics) in [
        (None, "0\n", 1),
        (Some("stop"), "0\n", 1),
        (Some("disable"), "3\n", 1),
        (Some("continue"), "3\n", 3),
    ] {
        let more = choice.map_or(vec![], |c| vec!["--on-panic", c]);
        let (code, out, err) = run(&[&words[..], &more].concat());
        let told = err.matches("package 'probe' panicked at").count();
        assert_eq!((code, out.as_str(), told), (1, passed, panics), "{choice:?}: {err}");
    }
}

#[test]
fn tools_do_without() {
    write("lib/opaque.click", "require(package nosuch); Idle -> Unheard(1) -> Discard;");
    let (code, out, err) = run(&["flatten", "lib/opaque.click"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("require(package \"nosuch\");") && out.contains("Unheard(1)"), "{out}");
}

/// Returns the number of executable mappings of the package in the process.
fn code(process: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    maps.lines().filter(|l| l.contains(" r-xp ") && l.contains("castanet-package-tally")).count()
}

#[test]
fn a_running_router_loads_it_uses_it_and_lets_go_of_it() {
    let (folder, castanet) = folder();
    let at = folder.path();
    let plain = "s :: RatedSource(RATE 2000) -> c :: Counter -> Discard;";
    let with = "require(package tally); s :: RatedSource(RATE 2000) -> k :: CheckSize(10, 2000) -> c :: Counter -> Discard;";
    write("lib/plain.click", plain);
    write("lib/with.click", with);
    let mut router = Command::new(castanet);
    router.current_dir(at).args([
        "run",
        "-q",
        "-R",
        "--allow-packages",
        "-u",
        "router.sock",
        "lib/plain.click",
        "-h",
        "c.count",
    ]);
    let mut router = router.stdout(std::process::Stdio::null()).spawn().unwrap();
    let ctl = |words: &[&str]| run(&[&["ctl", "router.sock"], words].concat());
    let start = std::time::Instant::now();
    while ctl(&["read", "c.count"]).0 != 0 {
        assert!(start.elapsed().as_secs() < 100 && router.try_wait().unwrap().is_none());
    }
    let packages = |expected: &str, mapped: bool| {
        // The old router is freed asynchronously, so wait for that.
        let start = std::time::Instant::now();
        while (code(router.id()) > 0) != mapped {
            assert!(start.elapsed().as_secs() < 100, "{expected}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(ctl(&["read", "packages"]).1.trim(), expected);
    };
    packages("", false);
    // If the package is missing, the new configuration is refused and the old one continues.
    let refused = ctl(&["load", "no-such-package"]);
    assert!(refused.0 == 1 && refused.2.contains("no-such-package"), "{refused:?}");
    let library = at.join("lib/tally.castanet");
    assert_eq!(ctl(&["load", library.to_str().unwrap()]).0, 0);
    packages("tally", true);
    for _ in 0..3 {
        let swapped = ctl(&["swap", "lib/with.click"]);
        assert_eq!(swapped.0, 0, "{swapped:?}");
        packages("tally", true);
        assert!(ctl(&["list"]).1.contains("CheckSize"));
        assert_eq!(ctl(&["swap", "lib/plain.click"]).0, 0);
        packages("", false);
        assert_eq!(ctl(&["load", library.to_str().unwrap()]).0, 0);
    }
    let count: u64 = ctl(&["read", "c.count"]).1.trim().parse().unwrap();
    assert!(count > 0);
    assert_eq!(ctl(&["stop"]).0, 0);
    assert!(router.wait().unwrap().success());
}
