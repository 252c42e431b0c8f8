// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles code for configurations with `castanet devirtualize`, and runs them with `castanet run --allow-code`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of a test, with the classic names.
struct Place {
    folder: tempfile::TempDir,
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let castanet = env!("CARGO_BIN_EXE_castanet");
        for name in ["castanet", "click-devirtualize"] {
            std::os::unix::fs::symlink(castanet, folder.path().join(name)).unwrap();
        }
        Place { folder }
    }
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }
    fn output(&self, program: &str, words: &[&str], rustc: Option<&str>) -> Output {
        let mut command = Command::new(self.file(program));
        command.args(words).current_dir(self.folder.path()).env("NO_COLOR", "1");
        command.env_remove("CLICKPATH").env_remove("CASTANET_SDK");
        // The compiled crates are beside the program, not beside the link.
        let deps = Path::new(env!("CARGO_BIN_EXE_castanet")).with_file_name("deps");
        command.env("CASTANET_SDK", deps);
        if let Some(rustc) = rustc {
            command.env("RUSTC", rustc);
        }
        command.output().unwrap()
    }
    /// Runs a program, which has to succeed without messages. Returns its standard output.
    fn quiet(&self, program: &str, words: &[&str]) -> Vec<u8> {
        let out = self.output(program, words, None);
        assert!(out.status.success() && out.stderr.is_empty(), "{words:?}: {}", text(out.stderr));
        out.stdout
    }
    /// Runs a program. Returns its exit code and standard error.
    fn failing(&self, program: &str, words: &[&str], rustc: Option<&str>) -> (i32, String) {
        let out = self.output(program, words, rustc);
        (out.status.code().unwrap_or(-1), text(out.stderr))
    }
}

const ROUTER: &str = "// A comment.
elementclass Side { $n | input -> Paint($n) -> c :: Counter -> Strip($n) -> output }
source :: InfiniteSource(LIMIT 100, STOP true) -> kinds :: Classifier(0/52, -) -> Side(1) -> d :: Discard;
kinds [1] -> Side(2) -> d;
";

#[test]
fn a_configuration_with_code_does_the_same() {
    let place = Place::new();
    place.write("router.click", ROUTER);
    let words = ["devirtualize", "router.click", "-o", "direct.click"];
    assert_eq!(place.quiet("castanet", &words), b"");
    let counts = ["-q", "-h", "Counter.count", "-h", "d.count"];
    let run = |more: &[&str]| text(place.quiet("castanet", &[&["run"], more, &counts].concat()));
    let plain = run(&["router.click"]);
    assert!(plain.contains("100"), "{plain}");
    // The names of elements are those of the original.
    assert_eq!(run(&["direct.click"]), plain);
    assert_eq!(run(&["--allow-code", "direct.click"]), plain);
    assert_eq!(run(&["--allow-code", "-j", "2", "direct.click"]), plain);
    assert_eq!(run(&["--allow-code", "--simtime", "direct.click"]), plain);
    // A configuration without code may be run in the same way.
    assert_eq!(run(&["--allow-code", "router.click"]), plain);
    // The original comes back.
    assert_eq!(text(place.quiet("castanet", &["devirtualize", "--reverse", "direct.click"])), ROUTER);
    // Code is made again from the original.
    place.quiet("castanet", &["devirtualize", "direct.click", "-o", "again.click"]);
    assert_eq!(
        std::fs::read(place.file("direct.click")).unwrap(),
        std::fs::read(place.file("again.click")).unwrap()
    );
    // Other tools read the archive. After a change, the code is not used.
    place.quiet("castanet", &["check", "direct.click"]);
    let changed = place.quiet("castanet", &["flatten", "direct.click"]);
    assert!(text(changed).contains("kinds :: Classifier"));
}

#[test]
fn code_for_other_elements_is_not_used() {
    let place = Place::new();
    place.write("a.click", "s :: InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> d :: Discard");
    place.quiet("castanet", &["devirtualize", "a.click", "-o", "direct.click"]);
    let archive = std::fs::read(place.file("direct.click")).unwrap();
    let (from, to) = (b"Paint(1)", b"Null ( )");
    let at = archive.windows(from.len()).position(|w| w == from).unwrap();
    let mut changed = archive.clone();
    changed[at..at + to.len()].copy_from_slice(to);
    std::fs::write(place.file("changed.click"), changed).unwrap();
    let words = ["run", "-q", "--allow-code", "changed.click", "-h", "d.count"];
    let out = place.output("castanet", &words, None);
    let err = text(out.stderr);
    assert!(out.status.success() && text(out.stdout) == "5\n", "{err}");
    assert!(
        err.contains(
            "warning: changed.click: the compiled code is not used: it was compiled for another configuration"
        ),
        "{err}"
    );
    // `--reverse` keeps the change.
    let back = text(place.quiet("castanet", &["devirtualize", "--reverse", "changed.click"]));
    assert!(back.contains("Null"), "{back}");
}

#[test]
fn the_source_and_what_is_left_out_of_it() {
    let place = Place::new();
    place.write("router.click", ROUTER);
    let source = |words: &[&str]| {
        text(place.quiet("castanet", &[&["devirtualize", "--source", "router.click"], words].concat()))
    };
    let all = source(&[]);
    for class in ["paint::Paint", "counter::Counter", "classifier::Classifier", "strip::Strip"] {
        assert!(all.contains(class), "{class}\n{all}");
    }
    // Both sides share a function.
    assert_eq!(all.matches("counter::Counter,").count(), 1, "{all}");
    assert!(!source(&["-n", "Counter"]).contains("Counter,"));
    place.write("instructions", "no-devirtualize Counter Strip // not these\n\ndevirtualize Strip\n");
    let instructed = source(&["-i", "instructions"]);
    assert!(!instructed.contains("Counter,") && instructed.contains("Strip,"), "{instructed}");
    assert!(source(&["-i", "instructions", "--devirtualize", "Counter"]).contains("Counter,"));
    let classic = place.quiet("click-devirtualize", &["-s", "router.click", "--no-devirtualize", "Counter"]);
    assert_eq!(text(classic), source(&["-n", "Counter"]));
    place.write("wrong", "devirtualize A\ncompile B\n");
    let (code, err) = place.failing("castanet", &["devirtualize", "-i", "wrong", "router.click"], None);
    assert_eq!(code, 1);
    assert!(err.contains("wrong:2: expected 'devirtualize CLASS...' or 'no-devirtualize CLASS...'"), "{err}");
    // Instructions in the configuration.
    place.write("info.click", &format!("{ROUTER}DevirtualizeInfo(no-devirtualize Counter);"));
    let info = text(place.quiet("castanet", &["devirtualize", "--source", "info.click"]));
    assert!(!info.contains("Counter,"), "{info}");
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    place.write("router.click", ROUTER);
    let words = ["devirtualize", "router.click"];
    let (code, err) = place.failing("castanet", &words, Some("/nonexistent/rustc"));
    assert_eq!(code, 1);
    assert!(
        err.contains("/nonexistent/rustc: ")
            && err.contains("the compiler that castanet was built with is needed"),
        "{err}"
    );
    let (code, err) = place.failing("castanet", &["devirtualize", "router.click", "--sdk", "."], None);
    assert!(code == 1 && err.contains("it does not contain castanet's compiled crates"), "{err}");
    let (code, err) = place.failing("castanet", &["devirtualize", "-e", "Unheard -> Discard"], None);
    assert!(code == 1 && err.contains("undeclared element 'Unheard'"), "{err}");
    let (code, err) = place.failing("click-devirtualize", &["-e", "Idle -> Strip -> Discard"], None);
    assert!(code == 1 && err.contains("Strip"), "{err}");
}

#[test]
fn the_classic_tool() {
    let place = Place::new();
    place.write("router.click", ROUTER);
    place.quiet("click-devirtualize", &["-f", "router.click", "-o", "direct.click"]);
    let members = Command::new("ar").args(["t", "direct.click"]).current_dir(place.folder.path()).output();
    if let Ok(members) = members {
        assert_eq!(text(members.stdout), "config\ndevirtualize.original\ndevirtualize.castanet\n");
    }
    let words = ["run", "-q", "--allow-code", "direct.click", "-h", "d.count"];
    assert_eq!(text(place.quiet("castanet", &words)), "100\n");
    assert_eq!(text(place.quiet("click-devirtualize", &["-r", "direct.click"])), ROUTER);
    let config = text(place.quiet("click-devirtualize", &["-c", "router.click"]));
    assert!(config.contains("kinds :: Classifier"), "{config}");
}
