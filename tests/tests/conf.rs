// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the configurations of conf/ do what their comments say, that README.md and the pages in docs/ show real
//! output, and that the pictures in docs/ match their configurations. With `CASTANET_BLESS=1`, the tests write the real
//! output and the pictures into these files and do not compare them.
#![allow(clippy::unwrap_used)]
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Timeout, longer than any of these runs needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pictures, with their configurations.
const PICTURES: [(&str, &str); 3] = [
    ("docs/ip-router.svg", "conf/ip-router-trace.click"),
    ("docs/scheduling.svg", "conf/scheduling.click"),
    ("docs/ethernet-switch.svg", "conf/ethernet-switch.click"),
];

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

fn bless() -> bool {
    std::env::var_os("CASTANET_BLESS").is_some()
}

/// The castanet command.
fn castanet() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(castanet_tests::binary::castanet)
}

/// Runs a shell command in a directory. Returns whether it succeeded, and its standard error followed by its
/// standard output.
fn shell(line: &str, folder: &Path) -> (bool, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let prints = tempfile::tempdir().unwrap();
    let (out, err) = (prints.path().join("out"), prints.path().join("err"));
    let mut run = Command::new("sh");
    run.args(["-c", line]).current_dir(folder).stdin(Stdio::null());
    run.env("PATH", format!("{}:{path}", castanet().parent().unwrap().display()));
    run.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
    let mut child = run.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                panic!("'{line}' does not end");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    (status.success(), fs::read_to_string(err).unwrap() + &fs::read_to_string(out).unwrap())
}

/// Returns every configuration below a directory.
fn below(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "click"));
    files.chain(folders.iter().flat_map(|f| below(f))).collect()
}

/// Returns every configuration in conf/ and its directories.
fn configurations() -> Vec<PathBuf> {
    let mut all = below(&root().join("conf"));
    all.sort();
    all
}

/// What the test does with a command that cannot run unchanged, with the reason.
enum Instead {
    /// The configuration is only checked.
    Check(&'static str),
    /// The command gets these additional words.
    With(&'static str, &'static str),
}

const DEVICES: Instead =
    Instead::Check("it runs on devices that this machine need not have, until it is stopped");
const INSTEAD: [(&str, Instead); 7] = [
    (
        "conf/bench/fig8.click",
        Instead::With("LIMIT=10000", "a million packets take long without optimisation"),
    ),
    ("conf/ethernet-switch-devices.click", DEVICES),
    ("conf/home-node.click", DEVICES),
    ("conf/ip-router.click", DEVICES),
    ("conf/mobile-node.click", DEVICES),
    ("conf/nat-gateway.click", DEVICES),
    ("conf/tcp-host.click", DEVICES),
];

/// Returns the commands in the comments of a configuration: indented lines that contain the program's name as
/// a word.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let shown = text.lines().filter_map(|l| l.strip_prefix("//     "));
    shown.filter(|l| l.starts_with("castanet ") || l.contains(" castanet "))
}

#[test]
fn every_command_in_a_comment_works() {
    let folder = tempfile::tempdir().unwrap();
    // Output files are written to the test's directory.
    std::os::unix::fs::symlink(root().join("conf"), folder.path().join("conf")).unwrap();
    let mut used = Vec::new();
    let mut ran = 0;
    for file in configurations() {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        let text = fs::read_to_string(&file).unwrap();
        for command in commands(&text) {
            let mut command = command.replace("OUT=/tmp", "OUT=.");
            assert!(command.starts_with("castanet ") && command.contains(&name), "{name}: {command}");
            let found = INSTEAD.iter().find(|i| i.0 == name);
            match found.map(|i| &i.1) {
                Some(Instead::Check(why)) => {
                    command = command.replacen("castanet run", "castanet check", 1);
                    println!("{name} is checked: {why}");
                }
                Some(Instead::With(words, why)) if !command.contains("LIMIT=") => {
                    command = format!("{command} {words}");
                    println!("{name} is run with {words}: {why}");
                }
                Some(Instead::With(..)) | None => {}
            }
            used.extend(found.map(|i| i.0));
            let (good, prints) = shell(&command, folder.path());
            assert!(good, "{name}: '{command}'\n{prints}");
            ran += 1;
        }
    }
    assert!(ran > 30, "only {ran} commands");
    assert!(INSTEAD.iter().all(|i| used.contains(&i.0)), "an exception that is none: {used:?}");
}

#[test]
fn every_configuration_checks() {
    assert!(configurations().len() > 8);
    for file in configurations() {
        let (good, text) = shell(&format!("castanet check '{}'", file.display()), &root());
        assert!(good && text.lines().count() == 1, "{text}");
    }
}

/// Returns the first command in a configuration's comment, and the line range of its output. `None` if the
/// comment shows no output.
fn promise(text: &str) -> Option<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let command = lines.iter().find_map(|l| l.strip_prefix("//     castanet run "))?;
    let start = lines.iter().position(|l| *l == "// prints")? + 1;
    let quoted = lines.get(start..)?.iter().take_while(|l| **l == "//" || l.starts_with("//     ")).count();
    Some((format!("castanet run {command}"), start, start + quoted))
}

fn without_blanks<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines.map(str::trim).filter(|l| !l.is_empty()).collect()
}

#[test]
fn configurations_print_what_their_comments_say() {
    let mut kept = 0;
    for file in configurations() {
        let text = fs::read_to_string(&file).unwrap();
        let Some((command, start, end)) = promise(&text) else { continue };
        let (good, prints) = shell(&command, &root());
        assert!(good, "{}: '{command}'\n{prints}", file.display());
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        if bless() {
            let quoted = prints.trim().lines().map(|l| format!("//     {l}").trim_end().to_string());
            lines.splice(start..end, ["//".to_string()].into_iter().chain(quoted).chain(["//".to_string()]));
            fs::write(&file, lines.join("\n") + "\n").unwrap();
        } else {
            let said = lines.get(start..end).unwrap().iter().map(|l| l.trim_start_matches('/'));
            assert_eq!(
                without_blanks(said),
                without_blanks(prints.lines()),
                "{}: '{command}'",
                file.display()
            );
        }
        kept += 1;
    }
    assert!(kept > 8, "only {kept} configurations say what they print");
}

#[test]
fn configurations_with_fast_classifiers_print_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (links, fast) = (folder.path().join("bin"), folder.path().join("fast.click"));
    let (links, fast) = (links.to_str().unwrap(), fast.to_str().unwrap());
    assert!(shell(&format!("castanet links '{links}'"), &root()).0);
    let mut replaced = 0;
    for file in configurations() {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        let Some((command, ..)) = promise(&fs::read_to_string(&file).unwrap()) else { continue };
        let tool = format!("'{links}/click-fastclassifier' -V '{name}' -o '{fast}'");
        let (good, report) = shell(&tool, &root());
        assert!(good && command.contains(&name), "{command}\n{report}");
        replaced += report.lines().filter(|l| l.contains(": now FastClassifier@@")).count();
        assert_eq!(shell(&command.replace(&name, fast), &root()), shell(&command, &root()), "{command}");
    }
    assert!(replaced > 20, "only {replaced} classifiers");
}

/// Tools whose results must run like what they are given.
const TOOLS: [&str; 4] = ["flatten", "align", "xform --ip", "undead"];
/// The configuration that runs otherwise after `castanet undead`: an Idle follows its counters, which are removed.
const NOT_UNDEAD: &str = "conf/tee.click";

#[test]
fn transformed_configurations_print_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.click");
    let other = other.to_str().unwrap();
    let (mut ran, mut excepted) = (0, 0);
    for file in configurations() {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        let Some((command, ..)) = promise(&fs::read_to_string(&file).unwrap()) else { continue };
        let plain = shell(&command, &root());
        for option in ["--no-optimize", "--no-jit", "--jit-first"] {
            let written = command.replacen("castanet run ", &format!("castanet run {option} "), 1);
            assert_eq!(shell(&written, &root()), plain, "{written}");
        }
        // Tools replace variables, so that those in the command would not be found.
        if command.contains('=') {
            continue;
        }
        for tool in TOOLS {
            if (tool, name.as_str()) == ("undead", NOT_UNDEAD) {
                excepted += 1;
                continue;
            }
            let (good, text) = shell(&format!("castanet {tool} '{name}' -o '{other}'"), &root());
            assert!(good, "{tool} {name}: {text}");
            assert_eq!(shell(&command.replace(&name, other), &root()), plain, "{tool}: {command}");
            ran += 1;
        }
    }
    assert!(ran > 60 && excepted == 1, "only {ran} runs, {excepted} exceptions");
}

/// A command in a Markdown text, the output shown, and the lines of that output.
struct Shown {
    command: String,
    said: String,
    lines: std::ops::Range<usize>,
}

/// Returns the commands in the `console` blocks of a Markdown text.
fn sessions(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (i, line) in text.lines().enumerate() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            Some(command) if inside => {
                all.push(Shown { command: command.into(), said: String::new(), lines: i + 1..i + 1 });
            }
            None if inside => {
                let last = all.last_mut().unwrap();
                last.said += line;
                last.said += "\n";
                last.lines.end = i + 1;
            }
            _ => {}
        }
    }
    all
}

/// Whether a command printed what the text shows. `...` stands for any remaining output.
fn shown(prints: &str, said: &str) -> bool {
    match said.split_once("...") {
        Some((start, _)) => prints.starts_with(start),
        None => prints.trim_end() == said.trim_end(),
    }
}

/// The Markdown texts whose commands are run.
const TEXTS: [&str; 6] = [
    "README.md",
    "docs/running.md",
    "docs/tools.md",
    "docs/language.md",
    "docs/firewall.md",
    "docs/ethernet-switch.md",
];

#[test]
fn the_texts_show_real_output() {
    for text in TEXTS {
        follow(text);
    }
}

/// Runs the commands of a text in a temporary directory, and compares their output.
fn follow(text: &str) {
    let file = root().join(text);
    let content = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = content.lines().map(str::to_string).collect();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("conf"), folder.path().join("conf")).unwrap();
    let mut wrong = Vec::new();
    let commands = sessions(&content);
    assert!(!commands.is_empty(), "{text}");
    for Shown { command, said, lines } in commands {
        // A reader would have written the file that `cat` shows, so the test writes it.
        if let Some(file) = command.strip_prefix("cat ") {
            fs::write(folder.path().join(file), said).unwrap();
            continue;
        }
        let (_, prints) = shell(&command, folder.path());
        if !shown(&prints, &said) {
            wrong.push((command, lines, prints));
        }
    }
    if bless() {
        for (_, range, prints) in wrong.into_iter().rev() {
            lines.splice(range, prints.trim_end().lines().map(str::to_string));
        }
        fs::write(&file, lines.join("\n") + "\n").unwrap();
    } else {
        let wrong: String =
            wrong.iter().map(|(command, _, prints)| format!("$ {command}\n{prints}\n")).collect();
        assert!(wrong.is_empty(), "{text} says something else than:\n{wrong}");
    }
}

#[test]
fn pictures_show_their_configurations() {
    for (picture, configuration) in PICTURES {
        let (good, svg) = shell(&format!("castanet graph '{configuration}'"), &root());
        assert!(good, "{svg}");
        let file = root().join(picture);
        if bless() {
            fs::write(&file, svg).unwrap();
        } else {
            let same = fs::read_to_string(&file).is_ok_and(|kept| kept == svg);
            assert!(same, "{picture} is out of date: castanet graph {configuration} -o {picture}");
        }
    }
}
