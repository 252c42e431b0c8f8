// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet top`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use castanet_testkit::until;
use common::{Bench, Live, Ran, objects};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// 12 packets: 5 stay in the queue, and 7 are dropped.
const ROUTER: &str = "i :: InfiniteSource(LIMIT 12) -> c :: Counter -> q :: SimpleQueue(5) -> Idle; Idle -> n :: Null -> d :: Discard;";

fn start(b: &Bench) -> Live {
    let mut c = b.command("castanet");
    c.args(["run", "-q", "-u", "s", "-e", ROUTER])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let live = Live(c.spawn().unwrap());
    until("all packets have come", || b.run("castanet", &["ctl", "s", "read", "c.count"], "").out == "12\n");
    live
}

fn top(b: &Bench, args: &[&str]) -> Ran {
    b.run("castanet", &[&["top", "s", "--interval", "0.01"], args].concat(), "")
}

#[test]
fn one_table() {
    let b = Bench::new();
    let _live = start(&b);
    let ran = top(&b, &["--once", "--sort", "configuration"]);
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    let rows: Vec<Vec<_>> = ran.out.lines().map(|l| l.split_whitespace().collect()).collect();
    let want = [
        &["ELEMENT", "CLASS", "PACKETS", "DROPS", "HELD", "TIME", "NS/PKT"][..],
        &["i", "InfiniteSource", "0", "-", "-", "-", "-"],
        &["c", "Counter", "0", "-", "-", "-", "-"],
        &["q", "SimpleQueue", "-", "0", "5/5", "-", "-"],
    ];
    assert_eq!(rows[..4], want, "{}", ran.out);
    assert!(rows.iter().any(|r| r.first() == Some(&"WORKER")), "{}", ran.out);
    let first = |args: &[&str]| {
        let out = top(&b, args).out;
        out.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_string()
    };
    assert_eq!(first(&["--once", "--sort", "held"]), "q");
    assert_eq!(first(&["--once", "--sort", "drops"]), "q");
    assert_eq!(first(&["--once", "--filter", "Discard"]), "d");
    assert_eq!(first(&["--once", "--filter", "[d]"]), "d");
}

#[test]
fn one_object() {
    let b = Bench::new();
    let _live = start(&b);
    let all = objects(&top(&b, &["--once", "--json", "--sort", "drops"]).out);
    let [one] = &all[..] else { panic!("{all:?}") };
    let q = &one["elements"][0];
    assert_eq!(
        (&q["element"], &q["drops"], &q["held"], &q["capacity"]),
        (&"q".into(), &7.into(), &5.into(), &5.into())
    );
    assert_eq!(one["drops"][0]["reason"], "queue-full");
    assert_eq!(one["workers"].as_array().unwrap().len(), 1);
    let packets = |name: &str| {
        let all = one["elements"].as_array().unwrap();
        all.iter().find(|e| e["element"] == name).unwrap()["packets"].clone()
    };
    assert_eq!((packets("i"), packets("c"), packets("n")), (12.into(), 12.into(), serde_json::Value::Null));
}

#[test]
fn the_time_of_elements_is_measured_if_asked_for() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    let text = "i :: InfiniteSource -> c :: Counter -> Discard;";
    c.args(["run", "-q", "-u", "s", "-e", text]).stdin(Stdio::null()).stdout(Stdio::null());
    let _live = Live(c.spawn().unwrap());
    until("it listens", || b.run("castanet", &["ctl", "s", "read", "version"], "").code == 0);
    until("a round was measured", || {
        let all = objects(&top(&b, &["--once", "--json", "--profile", "--filter", "c"]).out);
        let time = |o: &serde_json::Value| o["elements"][0]["time_share"].as_f64();
        all.iter().any(|o| time(o) > Some(0.0))
    });
}

/// Runs `castanet top` in a terminal of 80x24, and returns it with the other end of the terminal.
fn in_terminal(b: &Bench, args: &[&str]) -> (Live, File) {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pair = openpty(Some(&size), None).unwrap();
    // In a session of its own, it cannot find the terminal of whoever runs the test.
    let castanet = b.command("castanet");
    let mut c = Command::new("setsid");
    c.current_dir(castanet.get_current_dir().unwrap())
        .arg(castanet.get_program())
        .args(["top", "s", "--interval", "0.05"])
        .args(args);
    let end = || Stdio::from(pair.slave.try_clone().unwrap());
    let live = Live(c.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap());
    (live, File::from(pair.master))
}

/// A terminal as far as this program uses one: text at positions, and the second screen.
struct Screen {
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    second: bool,
    /// The characters of a control sequence that has not ended.
    begun: Option<String>,
}

impl Screen {
    fn put(&mut self, c: char) {
        let Some(sequence) = &mut self.begun else {
            match c {
                '\x1b' => self.begun = Some(String::new()),
                ' '.. => {
                    let (row, column) = self.at;
                    if let Some(cell) = self.rows.get_mut(row).and_then(|r| r.get_mut(column)) {
                        *cell = c;
                    }
                    self.at.1 += 1;
                }
                _ => {}
            }
            return;
        };
        sequence.push(c);
        let end = sequence.len() > 1 && c.is_ascii_alphabetic();
        if !end && !sequence.starts_with('[') {
            self.begun = None;
        }
        if !end {
            return;
        }
        let sequence = self.begun.take().unwrap();
        let numbers = || sequence[1..sequence.len() - 1].split(';').map(|n| n.parse().unwrap_or(1));
        match c {
            'H' => self.at = (numbers().next().unwrap_or(1) - 1, numbers().nth(1).unwrap_or(1) - 1),
            'J' => self.rows.iter_mut().for_each(|r| r.fill(' ')),
            'h' | 'l' if sequence.contains("?1049") => self.second = c == 'h',
            _ => {}
        }
    }
    fn text(&self) -> String {
        self.rows.iter().map(|r| r.iter().collect::<String>().trim_end().to_string() + "\n").collect()
    }
}

/// Reads a terminal on another thread.
fn screen(terminal: &File) -> Arc<Mutex<Screen>> {
    let empty = Screen { rows: vec![vec![' '; 80]; 24], at: (0, 0), second: false, begun: None };
    let out = Arc::new(Mutex::new(empty));
    let (from, into) = (terminal.try_clone().unwrap(), out.clone());
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal that nobody writes to any more fails with EIO.
        for byte in BufReader::new(from).bytes().map_while(Result::ok) {
            bytes.push(byte);
            if let Ok(text) = std::str::from_utf8(&bytes) {
                text.chars().for_each(|c| into.lock().unwrap().put(c));
                bytes.clear();
            }
        }
    });
    out
}

#[test]
fn keys_work_in_a_terminal() {
    let b = Bench::new();
    let _live = start(&b);
    let (mut top, mut terminal) = in_terminal(&b, &["--sort", "configuration"]);
    let out = screen(&terminal);
    let text = || out.lock().unwrap().text();
    let has = |what: &str| text().contains(what);
    until("the table is drawn", || out.lock().unwrap().second && has("ELEMENT"));
    for what in ["i", "InfiniteSour", "SimpleQueue", "5/5", "Discard", "worker 0"] {
        assert!(has(what), "{what}\n{}", text());
    }
    terminal.write_all(b"/Disc\r").unwrap();
    until("other elements are hidden", || has("Discard") && !has("SimpleQueue"));
    terminal.write_all(b"/\x1b").unwrap();
    until("they are back", || has("SimpleQueue"));
    terminal.write_all(b"q").unwrap();
    assert_eq!(top.0.wait().unwrap().code(), Some(0));
    until("the first screen is back", || !out.lock().unwrap().second);
}

#[test]
fn a_signal_restores_the_terminal() {
    let b = Bench::new();
    let _live = start(&b);
    let (mut top, terminal) = in_terminal(&b, &[]);
    let out = screen(&terminal);
    until("the table is drawn", || out.lock().unwrap().second);
    let ended = Command::new("kill").arg(top.0.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(top.0.wait().unwrap().code(), Some(0));
    until("the first screen is back", || !out.lock().unwrap().second);
}

#[test]
fn a_terminal_is_needed_without_once() {
    let b = Bench::new();
    let _live = start(&b);
    let ran = top(&b, &[]);
    let want =
        "castanet: standard output is no terminal; --once prints one table, --json one object per reading\n";
    assert_eq!((ran.err.as_str(), ran.code), (want, 1));
    assert_eq!(top(&b, &["--once", "--sort", "x"]).code, 2);
    assert_eq!(b.run("castanet", &["top", "nothing.sock", "--once"], "").code, 3);
}
