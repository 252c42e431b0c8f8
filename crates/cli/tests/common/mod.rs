// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the binary under its names, with a time limit.
#![allow(clippy::unwrap_used, dead_code)]

pub mod browser;
pub mod live_xdp;
pub mod schema;
pub mod web;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

/// The binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_castanet");
/// The time limit of a run.
pub const LIMIT: Duration = Duration::from_secs(200);

/// The output of a run, and its exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: i32,
}

/// A folder with links to the binary under classic names.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "click",
            "click-check",
            "click-flatten",
            "click-buildtool",
            "click-install",
            "click-uninstall",
            "click2xml",
            "xml2click",
        ] {
            std::os::unix::fs::symlink(BINARY, folder.path().join(name)).unwrap();
        }
        Bench { folder }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    /// Writes a file to the folder in which commands run.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    /// Returns a command that runs in the folder, without environment variables that affect it.
    pub fn command(&self, tool: &str) -> Command {
        let program = if tool == "castanet" { Path::new(BINARY).to_path_buf() } else { self.path(tool) };
        let mut c = Command::new(program);
        c.current_dir(self.folder.path());
        for name in ["CLICKPATH", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS"] {
            c.env_remove(name);
        }
        c
    }
    /// Runs a tool with arguments and standard input.
    pub fn run(&self, tool: &str, args: &[&str], input: &str) -> Ran {
        let mut c = self.command(tool);
        c.args(args);
        run(c, input)
    }
}

/// Runs a command to its end.
pub fn run(mut c: Command, input: &str) -> Ran {
    let mut child = c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    // The write fails if the process has ended without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (tx, rx) = channel();
    std::thread::spawn(move || tx.send(child.wait_with_output().unwrap()));
    let Ok(done) = rx.recv_timeout(LIMIT) else {
        signal(id, "KILL");
        panic!("{c:?} does not end");
    };
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { out: text(done.stdout), err: text(done.stderr), code: done.status.code().unwrap_or(-1) }
}

/// A process that is killed when the test ends.
pub struct Live(pub Child);

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(id: u32, signal: &str) {
    let done = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap();
    assert!(done.success());
}

/// A run: tool and arguments, standard input, expected standard output and standard error, and exit code.
pub type Case<'a> = (&'a [&'a str], &'a str, &'a str, &'a str, i32);

pub fn check(bench: &Bench, cases: &[Case<'_>]) {
    for &(words, input, out, err, code) in cases {
        let (tool, args) = words.split_first().unwrap();
        let ran = bench.run(tool, args, input);
        assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), (out, err, code), "{words:?}");
    }
}

/// A configuration that counts five packets.
pub const FIVE: &str = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard;";

/// Makes a folder with some configurations.
pub fn bench() -> Bench {
    let b = Bench::new();
    b.file("five.click", FIVE);
    b.file("n.click", "InfiniteSource(LIMIT $N, STOP true) -> c :: Counter -> Discard;");
    b.file("A=B.click", FIVE);
    b.file("lib/l.click", "elementclass L { input -> Null -> output }");
    b.file(
        "uses.click",
        "require(library l.click)\nInfiniteSource(LIMIT 2, STOP true) -> L -> c :: Counter -> Discard;",
    );
    b
}

/// Parses the JSON objects of a text, one per line.
pub fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
