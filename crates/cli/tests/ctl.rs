// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet ctl`, of completion, of the control sockets of the command line, and of the sessions in
//! docs/control.md.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::until;
use common::{BINARY, Bench, Live, Ran};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUTER: &str = "i :: InfiniteSource(LENGTH 60, ACTIVE false) -> c :: Counter -> Discard; odd@name :: Null; Idle -> odd@name -> Discard;
    s :: Script(TYPE PASSIVE, return $(length $args));";

fn start(b: &Bench, tool: &str, args: &[&str]) -> Live {
    let mut c = b.command(tool);
    c.args(args).stdin(Stdio::null()).stdout(Stdio::null());
    c.stderr(std::fs::File::create(b.path("log")).unwrap());
    let live = Live(c.spawn().unwrap());
    until("it listens", || {
        b.path("s").exists()
            && Command::new(BINARY)
                .args(["ctl"])
                .arg(b.path("s"))
                .args(["read", "version"])
                .output()
                .unwrap()
                .status
                .success()
    });
    live
}

fn ctl(b: &Bench, args: &[&str]) -> Ran {
    ctl_with(b, args, "")
}
fn ctl_with(b: &Bench, args: &[&str], input: &str) -> Ran {
    b.run("castanet", &[&["ctl", "s"], args].concat(), input)
}
fn ran(out: &str, err: &str, code: i32) -> Ran {
    Ran { out: out.into(), err: err.into(), code }
}

#[test]
fn values_in_json_are_what_classes_and_the_runtime_declare() {
    let b = Bench::new();
    let text = "i :: InfiniteSource(ACTIVE false) -> q :: Queue(5) -> d :: DelayShaper(500ms) -> Discard;";
    let _live = start(&b, "castanet", &["run", "-q", "-u", "s", "-e", text]);
    for (handler, value) in [
        ("q.config", "\"5\""),
        ("d.delay", "0.5"),
        ("i.scheduled", "false"),
        ("i.tickets", "1024"),
        ("timewarp", "1"),
    ] {
        let want = format!("{{\"handler\":\"{handler}\",\"value\":{value}}}\n");
        assert_eq!(ctl(&b, &["read", "--json", handler]), ran(&want, "", 0));
    }
}

#[test]
fn every_command() {
    let b = Bench::new();
    let mut live = start(&b, "castanet", &["run", "-q", "-u", "s", "-e", ROUTER]);
    assert_eq!(ctl(&b, &["read", "c.count"]), ran("0\n", "", 0));
    assert_eq!(ctl(&b, &["read", "s.run", "ab", "-c"]), ran("5\n", "", 0));
    assert_eq!(
        ctl(&b, &["read", "--json", "s.run", "ab"]),
        ran("{\"handler\":\"s.run\",\"value\":\"2\"}\n", "", 0)
    );
    assert_eq!(ctl(&b, &["write", "i.limit", "7"]), ran("", "", 0));
    assert_eq!(ctl_with(&b, &["write", "i.limit", "-"], "12\n"), ran("", "", 0));
    assert_eq!(ctl(&b, &["write", "i.active", "true"]), ran("", "", 0));
    until("all are counted", || ctl(&b, &["read", "c.count"]).out == "12\n");
    let done = ctl(&b, &["--json", "write", "i.active", "false"]);
    assert_eq!(done, ran("{\"done\":\"Write handler 'i.active' OK\"}\n", "", 0));
    let list = ctl(&b, &["list"]);
    let rows: Vec<Vec<_>> = list.out.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[..2], [["i", "InfiniteSource"], ["c", "Counter"]], "{}", list.out);
    let list: serde_json::Value = serde_json::from_str(&ctl(&b, &["list", "--json"]).out).unwrap();
    assert_eq!(list[1], serde_json::json!({ "name": "c", "class": "Counter" }));
    let list = ctl(&b, &["list", "c"]).out;
    assert!(
        list.contains("reset            write (button)\n") && list.contains("count            read\n"),
        "{list}"
    );
    assert!(ctl(&b, &["list", "s"]).out.contains("read with parameters"));
    assert!(!ctl(&b, &["list", "s"]).out.contains("kill"), "private handlers are not listed");
    let list: serde_json::Value = serde_json::from_str(&ctl(&b, &["list", "/", "--json"]).out).unwrap();
    assert!(list.as_array().unwrap().iter().any(|h| h["name"] == "stop" && h["flags"] == "w"));
    let list: serde_json::Value = serde_json::from_str(&ctl(&b, &["list", "c", "--json"]).out).unwrap();
    let count = list.as_array().unwrap().iter().find(|h| h["name"] == "count").unwrap();
    assert_eq!((&count["value"], &count["unit"]), (&"counter".into(), &"packets".into()), "{list}");
    let watched = ctl(&b, &["watch", "c.count", "*.limit", "--count", "2", "--interval", "0.05"]);
    assert_eq!(watched.code, 0);
    assert_eq!(watched.out.lines().count(), 4);
    assert!(watched.out.ends_with("c.count  12        0 /s\ni.limit  12\n"), "{}", watched.out);
    let watched = ctl(&b, &["watch", "c.count", "--count", "1", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&watched.out).unwrap();
    assert_eq!(line["values"], serde_json::json!({ "c.count": 12 }));
    for (args, err, code) in [
        (&["read", "c.nothing"][..], "castanet: No handler named 'c.nothing'\n", 1),
        (&["read", "x.count"], "castanet: No element named 'x'\n", 1),
        (&["write", "c.count", "1"], "castanet: Handler 'c.count' read-only\n", 1),
        (&["watch", "z*.count"], "castanet: no element that matches 'z*.count' has this read handler\n", 1),
        (&["read", "s.cat", "/etc/passwd"], "castanet: No handler named 's.cat'\n", 1),
        (&["swap", "nothing.click"], "castanet: nothing.click: No such file or directory\n", 1),
        (
            &["load", "nothing"],
            "castanet: No handler named 'loadpackage': this router does not allow reconfiguration; 'castanet run -R' starts one that does\n",
            1,
        ),
    ] {
        let ran = ctl(&b, args);
        assert_eq!((ran.err.as_str(), ran.code), (err, code), "{args:?}");
    }
    assert_eq!(ctl(&b, &["frobnicate"]).code, 2);
    assert_eq!(ctl(&b, &["read"]).code, 2);
    assert_eq!(b.run("castanet", &["ctl", "", "list"], "").code, 2);
    assert_eq!(ctl(&b, &["stop"]), ran("", "", 0));
    assert!(live.0.wait().unwrap().success());
    assert!(!b.path("s").exists());
    let gone = ctl(&b, &["stop"]);
    assert!(gone.code == 3 && gone.err.contains("there is no such file"), "{gone:?}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let gone = b.run("castanet", &["ctl", &port, "list"], "");
    let want = format!("castanet: 127.0.0.1:{port}: no router listens there; 'castanet run -p {port} FILE'");
    assert!(gone.code == 3 && gone.err.starts_with(&want), "{gone:?}");
}

#[test]
fn workers_and_their_load() {
    let b = Bench::new();
    let cpu = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
    let cpu = cpu.trim().split([',', '-']).next().unwrap().to_string();
    let text = "InfiniteSource(ACTIVE false) -> Discard; Idle -> workers2 :: Queue -> Discard;";
    let _live = start(&b, "castanet", &["run", "-q", "-u", "s", "--cpus", &cpu, "-e", text]);
    let list = ctl(&b, &["list", "workers"]);
    let header: Vec<_> = list.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["WORKER", "LOAD", "IDLE", "POLL", "WORK", "TASKS"], "{}", list.err);
    let json: serde_json::Value = serde_json::from_str(&ctl(&b, &["list", "workers", "--json"]).out).unwrap();
    let rows = json.as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["worker"], &rows[0]["tasks"]), (1, &0.into(), &3.into()));
    for share in ["load", "idle", "poll", "work"] {
        assert!((0.0..=1.0).contains(&rows[0][share].as_f64().unwrap()), "{json}");
    }
}

#[test]
fn drops_of_a_running_router() {
    let b = Bench::new();
    let text = "i :: InfiniteSource(LIMIT 12, ACTIVE false) -> c :: Counter -> q :: SimpleQueue(5) -> Idle;";
    let _live = start(&b, "castanet", &["run", "-q", "-u", "s", "-e", text]);
    let table = ctl(&b, &["drops", "--interval", "0.01"]);
    assert!(table.out.starts_with("no packets were dropped\n\nQUEUE"), "{table:?}");
    assert_eq!(ctl(&b, &["write", "i.active", "true"]).code, 0);
    until("all are counted", || ctl(&b, &["read", "c.count"]).out == "12\n");
    let table = ctl(&b, &["drops", "--interval", "0.01"]);
    let rows: Vec<Vec<_>> = table.out.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ELEMENT", "CLASS", "REASON", "PACKETS", "RATE"], "{table:?}");
    assert_eq!(rows[1], ["q", "SimpleQueue", "queue-full", "7", "0", "/s"]);
    assert_eq!(rows[4], ["q", "5", "5", "100", "%"], "{table:?}");
    assert_eq!(rows[6], ["WORKER", "LOAD", "IDLE", "POLL", "WORK", "TASKS"], "{table:?}");
    let json: serde_json::Value =
        serde_json::from_str(&ctl(&b, &["drops", "--interval", "0.01", "--json"]).out).unwrap();
    let want = serde_json::json!([
        { "element": "q", "class": "SimpleQueue", "reason": "queue-full", "packets": 7, "rate": 0.0 }
    ]);
    assert_eq!(json["drops"], want);
    assert_eq!(json["queues"], serde_json::json!([{ "element": "q", "length": 5, "capacity": 5 }]));
    assert_eq!(json["held"], serde_json::json!([{ "element": "q", "packets": 5 }]));
    assert_eq!(json["workers"].as_array().unwrap().len(), 1);
    assert!(json["seconds"].as_f64() > Some(0.0), "{json}");
    assert_eq!(ctl(&b, &["drops", "--interval", "0"]).code, 2);
    let gone = b.run("castanet", &["ctl", "nothing.sock", "drops"], "");
    assert_eq!(gone.code, 3, "{gone:?}");
}

#[test]
fn profiles_of_a_running_router() {
    let b = Bench::new();
    let text = "InfiniteSource -> Counter -> Discard;";
    let _live = start(&b, "castanet", &["run", "-q", "-u", "s", "-e", text]);
    let table = ctl(&b, &["profile", "--seconds", "0.2", "--flame", "f.svg"]);
    assert!(table.out.starts_with("ELEMENT") && table.out.contains("Counter@2"), "{table:?}");
    assert!(std::fs::read_to_string(b.path("f.svg")).unwrap().ends_with("</svg>\n"));
    let json: serde_json::Value =
        serde_json::from_str(&ctl(&b, &["profile", "--seconds", "0.2", "--json"]).out).unwrap();
    let rows = json["elements"].as_array().unwrap();
    assert!(rows.iter().any(|r| r["class"] == "Counter" && r["packets"].as_u64() > Some(0)), "{json}");
    // The profile has ended.
    let read = || ctl(&b, &["read", "profile"]).out;
    let ended = read();
    until("the last round is over", || read() == read());
    assert!(!ended.is_empty());
}

#[test]
fn something_else_listens_there() {
    let b = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let thread = std::thread::spawn(move || {
        use std::io::Write;
        let (mut c, _) = listener.accept().unwrap();
        c.write_all(b"220 mail.example.org ESMTP\r\n").unwrap();
        // The second connection gets no greeting.
        listener.accept().unwrap()
    });
    let ran = b.run("castanet", &["ctl", &port, "list"], "");
    assert_eq!(ran.code, 3);
    assert_eq!(ran.err, "castanet: this is no control socket: it says '220 mail.example.org ESMTP'\n");
    let ran = b.run("castanet", &["ctl", &port, "--timeout", "0.2", "list"], "");
    assert!(ran.code == 3 && ran.err.ends_with("no greeting received\n"), "{ran:?}");
    drop(thread.join().unwrap());
}

#[test]
fn sockets_of_the_driver() {
    let b = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let plus = format!("{port}+");
    for (tool, args) in [
        ("castanet", &["run", "-q", "-u", "s", "-p", &plus, "-e", ROUTER][..]),
        ("click", &["-u", "s", "-p", &plus, "-e", ROUTER]),
    ] {
        let mut live = start(&b, tool, args);
        let said = std::fs::read_to_string(b.path("log")).unwrap();
        let next = said.trim().strip_prefix("castanet: listening on TCP port ").unwrap();
        assert_eq!(b.run("castanet", &["ctl", next, "read", "c.count"], "").out, "0\n");
        assert_eq!(ctl(&b, &["stop"]).code, 0);
        assert!(live.0.wait().unwrap().success());
        assert!(!b.path("s").exists());
    }
    let p = port.to_string();
    let said = format!("cannot listen on TCP port {port}: Address already in use\n");
    let ran = b.run("castanet", &["run", "-p", &p, "-e", ROUTER], "");
    assert_eq!((ran.err, ran.code), (format!("castanet: {said}"), 1));
    let ran = b.run("click", &["-p", &p, "-e", ROUTER], "");
    assert_eq!((ran.err, ran.code), (format!("click: {said}"), 1));
    assert_eq!(b.run("castanet", &["run", "-p", "x", "-e", ROUTER], "").code, 1);
    assert!(b.run("click", &["--port=x", "-e", ROUTER], "").err.starts_with("--port x: expected 0 to 65535"));
    assert!(b.run("click", &["--socket", "77", "-e", ROUTER], "").err.contains("Bad file descriptor"));
}

#[test]
fn sockets_of_the_driver_are_shown_as_elements() {
    let b = Bench::new();
    let text = "cs :: ControlSocket(UNIX, e); Idle -> c :: Counter -> Discard;";
    b.file("next.click", "Idle -> d :: Discard;");
    let names = ["click_driver@@ControlSocket", "click_driver@@ControlSocket@1"];
    for (tool, more) in [("castanet", &["run", "-q"][..]), ("click", &[])] {
        let live = start(&b, tool, &[more, &["-R", "-u", "s", "-p", "0", "-e", text]].concat());
        let read = |h: &str| ctl(&b, &["read", h]).out;
        let of = |n: usize, h: &str| read(&format!("{}.{h}", names[n]));
        let listed = read("list");
        let listed: Vec<_> = listed.lines().collect();
        assert_eq!((listed[0], &listed[listed.len() - 2..]), ("6", &names[..]), "{listed:?}");
        let said = std::fs::read_to_string(b.path("log")).unwrap();
        let port = said.trim().strip_prefix("castanet: listening on TCP port ").unwrap();
        assert_eq!(
            (of(0, "port"), of(0, "config"), of(0, "filename")),
            (format!("{port}\n"), "TCP, 0\n".into(), "\n".into())
        );
        assert_eq!(
            (of(1, "port"), of(1, "config"), of(1, "filename")),
            ("\n".into(), "UNIX, \"s\"\n".into(), "s\n".into())
        );
        assert_eq!((of(1, "class"), of(1, "name")), ("ControlSocket\n".into(), format!("{}\n", names[1])));
        for h in ["handlers", "ports"] {
            assert_eq!(of(0, h), read(&format!("cs.{h}")), "{h}");
        }
        assert_eq!(read("6.name"), format!("{}\n", names[1]));
        let refused = |args: &[&str], want: &str| {
            let ran = ctl(&b, args);
            assert!(ran.code == 1 && ran.err.contains(want), "{ran:?}");
        };
        refused(&["write", "click_driver@@ControlSocket.config", "TCP, 1"], "read-only");
        refused(&["read", "click_driver@@ControlSocket.zz"], "No handler named");
        // After a hot swap, the elements of the control sockets are still listed.
        assert_eq!(ctl(&b, &["swap", "next.click"]).code, 0);
        until("it is swapped", || read("d.class") == "Discard\n");
        assert_eq!(read("list"), format!("4\nIdle@1\nd\n{}\n{}\n", names[0], names[1]));
        assert_eq!(of(0, "port"), format!("{port}\n"));
        assert_eq!(ctl(&b, &["stop"]).code, 0);
        drop(live);
    }
}

#[test]
fn sockets_of_the_driver_answer_scripts_and_requests() {
    let b = Bench::new();
    let text = "DriverManager(print click_driver@@ControlSocket.config, print $(click_driver@@ControlSocket@1.filename), stop); Idle -> Discard;";
    let ran =
        b.run("click", &["-u", "s", "-u", "t", "-h", "click_driver@@ControlSocket.config", "-e", text], "");
    assert_eq!((ran.out.as_str(), ran.code), ("UNIX, \"s\"\nt\nUNIX, \"s\"\n", 0), "{ran:?}");
    let ran = b.run(
        "click",
        &["-u", "s", "-u", "t", "-h", "ControlSocket.filename", "-e", "DriverManager(stop)"],
        "",
    );
    let blocks = "click_driver@@ControlSocket.filename:\ns\n\nclick_driver@@ControlSocket@1.filename:\nt\n\n";
    assert_eq!(ran.out, blocks, "{ran:?}");
}

#[test]
fn warnings_of_a_swap_are_in_the_reply() {
    use std::io::{Read, Write};
    let b = Bench::new();
    let live = start(&b, "castanet", &["run", "-q", "-R", "-u", "s", "-e", ROUTER]);
    let mut c = std::os::unix::net::UnixStream::connect(b.path("s")).unwrap();
    let odd = "Idle -> Queue -> BandwidthRatedUnqueue(1000) -> Discard;";
    c.write_all(format!("WRITE hotconfig {odd}\nWRITE hotconfig Idle -> Discard;\nQUIT\n").as_bytes())
        .unwrap();
    let mut said = String::new();
    c.read_to_string(&mut said).unwrap();
    let lines: Vec<_> = said.lines().skip(1).collect();
    let (last, first) = (lines.iter().rev().take(2).rev().copied().collect::<Vec<_>>(), lines[0]);
    assert_eq!(first, "220-Write handler 'hotconfig' OK", "{said}");
    assert!(lines.iter().any(|l| l.starts_with("220") && l.contains("warning")), "{said}");
    assert_eq!(last, ["200 Write handler 'hotconfig' OK", "200 Goodbye!"]);
    assert_eq!(ctl(&b, &["stop"]).code, 0);
    drop(live);
}

#[test]
fn swaps() {
    use std::io::{Read, Write};
    let b = Bench::new();
    let text = |more: &str| {
        format!(
            "define($LIMIT 3); i :: InfiniteSource(LIMIT $LIMIT) -> c :: Counter -> q :: Queue -> Idle; cs :: ControlSocket(UNIX, e{more});"
        )
    };
    b.file("a.click", &text(""));
    b.file("b.click", &(text(", READONLY true") + " new :: Null; Idle -> new -> Discard;"));
    b.file("bad.click", "Foo -> Discard;");
    let live = start(&b, "castanet", &["run", "-q", "-R", "-u", "s", "a.click"]);
    until("it runs", || ctl(&b, &["read", "q.length"]).out == "3\n");
    // This client of the ControlSocket stays connected across the swap.
    let mut c = std::os::unix::net::UnixStream::connect(b.path("e")).unwrap();
    c.write_all(b"WRITE c.count_call 5 stop\n").unwrap();
    let plan = ctl(&b, &["swap", "--dry-run", "b.click"]);
    assert!(plan.code == 0 && plan.out.contains("+ new :: Null") && plan.out.contains("~ cs"), "{plan:?}");
    assert_eq!(ctl(&b, &["read", "new.class"]).code, 1, "nothing has changed");
    let bad = ctl(&b, &["swap", "bad.click"]);
    assert!(bad.code == 1 && bad.err.contains("undeclared element 'Foo'"), "{bad:?}");
    assert_eq!(ctl(&b, &["swap", "b.click", "LIMIT=4"]), ran("", "", 0));
    assert_eq!(ctl(&b, &["read", "new.class"]).out, "Null\n");
    assert_eq!(ctl(&b, &["read", "i.limit"]).out, "4\n");
    // The count continues from 3, the queue keeps its packets, and the socket keeps its clients.
    assert!(ctl(&b, &["read", "c.count"]).out.trim().parse::<u64>().unwrap() >= 3);
    c.write_all(b"READ q.class\nWRITE c.reset\nQUIT\n").unwrap();
    let mut said = String::new();
    c.read_to_string(&mut said).unwrap();
    let want = "Click::ControlSocket/1.3\r\n200 Write handler 'c.count_call' OK\r\n\
        200 Read handler 'q.class' OK\r\nDATA 5\r\nQueue530 Permission denied for 'c.reset'\r\n200 Goodbye!\r\n";
    assert_eq!(said, want);
    // A swap to a configuration without the ControlSocket closes its socket, even if a client of that socket
    // requested the swap.
    ctl(&b, &["swap", "a.click"]);
    let mut own = std::os::unix::net::UnixStream::connect(b.path("e")).unwrap();
    own.write_all(b"WRITE hotconfig Idle -> Discard;\n").unwrap();
    let mut said = String::new();
    own.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("200 Write handler 'hotconfig' OK\r\n"), "{said}");
    until("its file has gone", || !b.path("e").exists());
    assert_eq!(ctl(&b, &["stop"]).code, 0);
    drop(live);
}

#[test]
fn swaps_that_race_with_stops_and_with_each_other() {
    use std::io::{BufRead, BufReader, Write};
    let b = Bench::new();
    let text = |n: u64| {
        format!(
            "InfiniteSource -> c :: Counter -> q{n} :: Queue -> Unqueue -> Discard; ControlSocket(UNIX, e);"
        )
    };
    for round in 0..8 {
        let mut live = start(&b, "castanet", &["run", "-q", "-R", "-u", "s", "-e", &text(0)]);
        let connect = |file: &str| {
            let c = std::os::unix::net::UnixStream::connect(b.path(file)).unwrap();
            c.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
            c
        };
        let mut stopper = connect("s");
        let answers: usize = std::thread::scope(|scope| {
            let all: Vec<_> = ["s", "e", "s"]
                .into_iter()
                .map(|file| {
                    let mut to = connect(file);
                    let text = &text;
                    scope.spawn(move || {
                        let (mut from, mut answers) = (BufReader::new(to.try_clone().unwrap()), 0);
                        for n in 0.. {
                            let config = text(n % 3);
                            let asked =
                                write!(to, "WRITEDATA hotconfig {}\n{config}READ c.class\n", config.len());
                            let mut line = String::new();
                            if asked.is_err() || !from.read_line(&mut line).is_ok_and(|n| n > 0) {
                                break;
                            }
                            answers += 1;
                        }
                        answers
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(30 * round));
            stopper.write_all(b"WRITE stop\n").unwrap();
            all.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert!(answers > 0);
        until("it has ended", || live.0.try_wait().unwrap().is_some());
        assert!(live.0.wait().unwrap().success());
        assert!(!b.path("s").exists() && !b.path("e").exists());
    }
}

#[test]
fn completion() {
    let b = Bench::new();
    let _live = start(&b, "castanet", &["run", "-q", "-u", "s", "-e", ROUTER]);
    for (purpose, word, want) in [
        ("read", "c.co", "c.config\nc.count\nc.count_call\n"),
        ("write", "c.res", "c.reset\nc.reset_counts\n"),
        ("write", "st", "stop\n"),
        ("read", "odd", "odd@name.\n"),
        ("list", "od", "odd@name\n"),
        ("read", "zz", ""),
    ] {
        assert_eq!(ctl(&b, &["complete", purpose, word]), ran(want, "", 0), "{purpose} {word}");
    }
    for shell in ["zsh", "fish"] {
        let ran = b.run("castanet", &["completion", shell], "");
        assert!(ran.code == 0 && ran.out.contains("complete ") && ran.out.contains("swap"), "{shell}");
    }
    // Bash runs the completion script and prints the completions.
    std::os::unix::fs::symlink(BINARY, b.path("castanet")).unwrap();
    let script = r#"
        PATH=".:$PATH"; source <(castanet completion bash)
        try() {
            COMP_LINE="$1" COMP_POINT=${#1}
            # Cut as readline does, as far as it matters here.
            read -ra COMP_WORDS <<<"${1//@/ @ }"; [[ $1 != *" " ]] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            $(complete -p castanet | sed 's/.*-F \([^ ]*\).*/\1/') castanet "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            echo "${COMPREPLY[*]}"
        }
        try "castanet ctl s read c.coun"
        try "castanet ctl s write c.res"
        try "castanet ctl s watch c.count odd@na"
        try "castanet ctl s list "
        try "castanet ctl s sw"
        try "castanet fla"
    "#;
    let mut c = Command::new("bash");
    c.current_dir(b.folder.path()).args(["--norc", "-c", script]);
    let ran = common::run(c, "");
    let elements = "Discard@3 Discard@6 Idle@5 c click_driver@@ControlSocket i odd@name s";
    let want = format!("c.count c.count_call\nc.reset c.reset_counts\nname.\n{elements}\nswap\nflatten\n");
    let same = |text: &str| {
        text.lines()
            .map(|l| {
                let mut words: Vec<String> = l.split_whitespace().map(Into::into).collect();
                words.sort();
                words
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(same(&ran.out), same(&want), "{}{}", ran.out, ran.err);
}

/// The router that the sessions in docs/control.md start. It is stopped when the test ends, even if the test fails.
struct Started<'a>(&'a Bench);

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let _ = self.0.command("castanet").args(["ctl", "router.sock", "stop"]).output();
    }
}

#[test]
fn what_the_page_shows_is_true() {
    let b = Bench::new();
    let _started = Started(&b);
    std::os::unix::fs::symlink(BINARY, b.path("castanet")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/control.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (mut shown, mut inside) = (Vec::<(String, String)>::new(), false);
    for line in page.lines() {
        match (line, inside) {
            ("```console", _) => inside = true,
            ("```", _) => inside = false,
            (l, true) => match (l.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => shown.push((command.into(), String::new())),
                (None, Some(last)) => last.1 += &format!("{l}\n"),
                (None, None) => {}
            },
            _ => {}
        }
    }
    assert!(shown.len() > 12);
    for (command, said) in shown {
        if let Some(name) = command.strip_prefix("cat ") {
            b.file(name, &said);
            continue;
        }
        let mut c = Command::new("sh");
        c.current_dir(b.folder.path())
            .env("PATH", format!("{}:{}", b.folder.path().display(), std::env::var("PATH").unwrap()));
        c.args(["-c", &format!("exec 2>&1; {command}")]);
        let ran = common::run(c, "");
        assert_eq!(ran.out.trim_end(), said.trim_end(), "$ {command}");
        if command.ends_with('&') {
            until("it listens", || b.path("router.sock").exists());
            // The router generates a thousand packets once it runs; wait for them.
            until("it runs", || {
                let mut c = b.command("castanet");
                c.args(["ctl", "router.sock", "read", "c.count"]);
                common::run(c, "").out == "1000\n"
            });
        }
        if command.ends_with("out.active true") {
            until("all have left", || {
                let mut c = b.command("castanet");
                c.args(["ctl", "router.sock", "read", "done.count"]);
                common::run(c, "").out == "1000\n"
            });
        }
    }
    until("it has gone", || !b.path("router.sock").exists());
}
