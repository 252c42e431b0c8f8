// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of sessions, with input in pieces of every size.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::{CallError, Listener, Remote};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A router of two elements that records writes.
#[derive(Default)]
pub(crate) struct Fake {
    pub written: Mutex<Vec<String>>,
    pub ended: AtomicBool,
    pub swaps: AtomicU64,
    pub calls: AtomicU64,
    /// Channels and their listeners.
    pub listeners: Mutex<Vec<(String, Weak<dyn Listener>)>>,
}

impl Fake {
    /// Passes a message to the listeners of its channel.
    pub fn message(&self, channel: &str, text: &str) {
        for (c, listener) in &*self.listeners.lock() {
            if let Some(l) = listener.upgrade().filter(|_| c == channel) {
                l.hear(text);
            }
        }
    }
}

const COUNTER: &str =
    "reset\twb\nfail\trw\nfile\twF\ndeep\tw\ncount\tr\necho\tr+\nkill\tr+p\nbig\tr+\nhandlers\tr.\n";

impl Remote for Fake {
    fn elements(&self) -> Vec<String> {
        vec!["c".into(), "a/p".into()]
    }
    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(match (element, handler) {
            (Some("c"), "handlers") => COUNTER.into(),
            (Some("a/p"), "handlers") => "*\trw\nkill\tr+p\n".into(),
            (None, "handlers") => {
                "list\tr\nstop\tw\nswapplan\twR\nhotconfig\twR\nelement_cycles.csv\tr\n".into()
            }
            (Some("c"), "count") => self.swaps.load(Ordering::SeqCst).to_string(),
            (Some("c"), "echo") => parameters.into(),
            (Some("c"), "big") => "x".repeat(parameters.parse().unwrap()),
            (None, "list") => "2\nc\na/p\n".into(),
            (None, "element_cycles.csv") => "1,2".into(),
            (Some("a/p"), h) => format!("{h}({parameters})"),
            _ => return Err(CallError::Refused("first\nsecond\r\n".into())),
        })
    }
    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        if handler == "fail" {
            return Err(CallError::Refused("no".into()));
        }
        let element = element.unwrap_or("-");
        self.written.lock().push(format!("{element}.{handler}={value}"));
        match handler {
            "deep" if from == Origin::Anonymous => Err(CallError::Denied("not deep down".into())),
            "swapplan" => Ok(format!("+ {value}\n1 added\n")),
            "hotconfig" if value == "odd" => Ok("config:1: warning: odd\n".into()),
            _ => Ok(String::new()),
        }
    }
    fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::SeqCst)
    }
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    fn listen(&self, channel: &str, listener: Weak<dyn Listener>) {
        self.listeners.lock().push((channel.into(), listener));
    }
}

fn small() -> Limits {
    Limits { line: 60, data: 20, backlog: 300, ..Limits::default() }
}

/// Returns the output for input that arrives in pieces of this size.
fn talk_in(pieces: usize, input: &[u8], rules: &Rules, from: Origin, limits: &Limits) -> (String, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let (mut access, mut session) = (Access::new(fake.clone()), Session::new(limits.clone(), from));
    let mut out = Vec::new();
    let mut pump = |s: &mut Session| {
        loop {
            let step = s.step(rules, &mut access);
            while !s.output().is_empty() {
                out.extend_from_slice(s.output());
                s.sent(s.output().len());
            }
            if step != Step::Done {
                break;
            }
        }
    };
    for piece in input.chunks(pieces) {
        session.feed(piece);
        pump(&mut session);
    }
    pump(&mut session);
    (bytes::decode_vec(out), fake)
}

fn talk_as(input: &str, rules: &Rules) -> String {
    talk_from(input, rules, Origin::Authorised)
}

fn talk_from(input: &str, rules: &Rules, from: Origin) -> String {
    let input = input.as_bytes();
    let (whole, fake) = talk_in(1 << 20, input, rules, from, &small());
    for pieces in [1, 2, 3, 7] {
        let (out, f) = talk_in(pieces, input, rules, from, &small());
        assert_eq!((&out, &*f.written.lock()), (&whole, &*fake.written.lock()), "{pieces}");
    }
    whole.strip_prefix(GREETING).unwrap().to_string()
}

fn talk(input: &str) -> String {
    talk_as(input, &Rules::default())
}

#[test]
fn the_transcript() {
    for (command, reply) in [
        ("READ c.count\n", "200 Read handler 'c.count' OK\r\nDATA 1\r\n0"),
        ("GET c.count\r\n", "200 Read handler 'c.count' OK\r\nDATA 1\r\n0"),
        ("READ x.y\r", "510 No element named 'x'\r\n"),
        ("READ c.zz\n", "511 No handler named 'c.zz'\r\n"),
        ("WRITE c.reset\n", "200 Write handler 'c.reset' OK\r\n"),
        ("WRITE c.count 1\n", "530 Handler 'c.count' read-only\r\n"),
        ("READ c.reset\n", "530 Handler 'c.reset' write-only\r\n"),
        ("read list\n", "200 Read handler 'list' OK\r\nDATA 8\r\n2\nc\na/p\n"),
        ("FOO\n", "501 Command 'FOO' unimplemented\r\n"),
        ("CHECKREAD c.count\n", "200 Read handler 'c.count' OK\r\n"),
        ("checkread c.reset\n", "530 Handler 'c.reset' write-only\r\n"),
        ("CHECKWRITE c.reset\n", "200 Write handler 'c.reset' OK\r\n"),
        ("CHECKWRITE c.count\n", "530 Handler 'c.count' read-only\r\n"),
        ("LLRPC c#00 1\nx", "501 Cannot call LLRPC 'c#00' remotely\r\n"),
        ("LLRPC c#00\n", "501 Cannot call LLRPC 'c#00' remotely\r\n"),
        ("LLRPC x#00\n", "510 No element named 'x'\r\n"),
        ("LLRPC c\n", "500 Syntax error in LLRPC 'c'\r\n"),
        ("LLRPC c#zz\n", "500 Syntax error in LLRPC 'c#zz'\r\n"),
        ("LLRPC c#\n", "500 Syntax error in LLRPC 'c#'\r\n"),
        ("QUIT\n", "200 Goodbye!\r\n"),
        ("close\n", "200 Goodbye!\r\n"),
        ("READ\n", "500 Wrong number of arguments\r\n"),
        ("CHECKREAD c.count x\n", "500 Wrong number of arguments\r\n"),
        ("READ c.fail\n", "520-Read handler 'c.fail' error:\r\n520-first\r\n520 second\r\n"),
        ("WRITE c.fail x\n", "520-Write handler 'c.fail' error:\r\n520 no\r\n"),
        ("READ 1.count\n", "200 Read handler 'c.count' OK\r\nDATA 1\r\n0"),
        ("READ 2.x\n", "200 Read handler 'a/p.x' OK\r\nDATA 3\r\nx()"),
        ("READ 0.x\nREAD 3.x\n", "510 No element named '0'\r\n510 No element named '3'\r\n"),
        ("READ element_cycles.csv\n", "200 Read handler 'element_cycles.csv' OK\r\nDATA 3\r\n1,2"),
        // Private handlers are for scripts only.
        ("READ c.kill 9 1\n", "511 No handler named 'c.kill'\r\n"),
        ("READ a/p.kill 9 1\n", "511 No handler named 'a/p.kill'\r\n"),
        ("\n\r\n \n", ""),
        ("QUIT\nREAD c.count\n", "200 Goodbye!\r\n"),
    ] {
        assert_eq!(talk(command), reply, "{command:?}");
    }
    assert!(talk("help\n").starts_with("200-Commands supported:\r\n200-READ handler"));
    assert_eq!(talk("help\n").lines().filter(|l| l.starts_with("200 ")).count(), 1);
}

#[test]
fn data_of_every_kind() {
    let ok = |v: &str| format!("200 Read handler 'c.echo' OK\r\nDATA {}\r\n{v}", v.len());
    for (command, value) in [
        ("READ c.echo  a  b \n", "a  b"),
        ("READDATA c.echo 4\na\r\nb", "a\r\nb"),
        ("READDATA c.echo 0\r\n", ""),
        ("GETDATA c.echo 2\r\n\n\n", "\n\n"),
        ("READUNTIL c.echo\na\n b\n\n", "a\n b\n"),
        ("READUNTIL c.echo\na\r\nb\r\r\r", "a\r\nb\r"),
        ("READUNTIL c.echo .\r\na\r\n\r\n.. \r\n. \r\n", "a\r\n\r\n.. \r\n"),
        ("READUNTIL c.echo\n\n", ""),
        ("READUNTIL c.echo END OF IT\nEND\nEND OF IT\n", "END\n"),
        ("READDATA c.echo 20\n01234567890123456789", "01234567890123456789"),
        ("READUNTIL c.echo\n0123456789012345678\n\n", "0123456789012345678\n"),
    ] {
        assert_eq!(talk(command), ok(value), "{command:?}");
    }
    let wrong = "500 Expected the number of bytes\r\n";
    for n in ["", "x", "-1", "1x", "1 2"] {
        assert_eq!(talk(&format!("READDATA c.echo {n}\n")), wrong, "{n}");
    }
    let (_, fake) = talk_in(
        3,
        b"WRITE c.reset a b\nSETDATA c.reset 3\n\n\r\nWRITEUNTIL c.reset\nx\n\nset stop 2\n",
        &Rules::default(),
        Origin::Authorised,
        &small(),
    );
    assert_eq!(*fake.written.lock(), ["c.reset=a b", "c.reset=\n\r\n", "c.reset=x\n", "-.stop=2"]);
}

#[test]
fn too_much_is_refused_and_passed_over() {
    let then = "READ c.count\n";
    let fine = "200 Read handler 'c.count' OK\r\nDATA 1\r\n0";
    let big = "521 Data too big\r\n";
    for (command, reply) in [
        (format!("READDATA c.echo 21\n{}", "x".repeat(21)), big),
        (format!("WRITEDATA nothing 210\r\n{}", "READ c.count\n".repeat(16) + "12"), big),
        (format!("READUNTIL c.echo END\n{}\nEND\n", "x".repeat(20)), big),
        (format!("READUNTIL c.echo END\n{}\nEND\n", "x\n".repeat(900)), big),
        (format!("READUNTIL c.echo END\n{}END\nEND\n", "x".repeat(900)), big),
        (format!("READUNTIL c.echo {0}\n{0}\r\n", "e".repeat(25)), big),
        (format!("READ c.echo {}\n", "x".repeat(50)), "500 Line too long\r\n"),
        (format!("READ c.echo {}\n", "x".repeat(5000)), "500 Line too long\r\n"),
        // Data of refused commands is not stored.
        ("WRITEDATA c.count 3\nabc".into(), "530 Handler 'c.count' read-only\r\n"),
        ("READDATA c.zz 3\nabc".into(), "511 No handler named 'c.zz'\r\n"),
    ] {
        assert_eq!(talk(&format!("{command}{then}")), format!("{reply}{fine}"), "{command:?}");
    }
    // The data never ends; none of it is stored.
    let fake = Arc::new(Fake::default());
    let (mut access, mut session) = (Access::new(fake), Session::new(small(), Origin::Authorised));
    session.feed(b"WRITEDATA c.reset 99999999999999999999999999\n");
    for _ in 0..1000 {
        while session.step(&Rules::default(), &mut access) == Step::Done {}
        session.feed(&[b'x'; 1000]);
        assert!(session.is_amid() && session.held() < 200_000, "{}", session.held());
    }
}

#[test]
fn any_bytes_get_an_answer_of_text() {
    let limits = Limits { line: 4000, data: 4000, ..Limits::default() };
    for (input, want) in [
        (&b"READ \xff.\x01\n"[..], "510 No element named '\u{10ffff}'\r\n"),
        (b"\x00\x01\x02\n", "501 Command '\\u{0}\\u{1}\\u{2}' unimplemented\r\n"),
        (b"READ c.\x1b[2J\n", "511 No handler named 'c.\\u{1b}[2J'\r\n"),
    ] {
        let (out, fake) = talk_in(5, input, &Rules::default(), Origin::Authorised, &limits);
        assert!(out.strip_prefix(GREETING).unwrap().starts_with(want), "{out}");
        assert!(fake.written.lock().is_empty());
    }
    let long = format!("{}\n", "x".repeat(3000));
    let (out, _) = talk_in(100, long.as_bytes(), &Rules::default(), Origin::Authorised, &limits);
    assert!(out.len() < 300, "{out}");
}

#[test]
fn rules() {
    let readonly = Rules { readonly: true, ..Rules::default() };
    for (command, reply) in [
        ("READ c.count\n", "200 Read handler 'c.count' OK\r\nDATA 1\r\n0"),
        ("WRITE c.reset\n", "530 Permission denied for 'c.reset'\r\n"),
        ("WRITEDATA c.reset 1\nx", "530 Permission denied for 'c.reset'\r\n"),
        ("CHECKWRITE c.reset\n", "530 Permission denied for 'c.reset'\r\n"),
        ("WRITE stop\n", "530 Permission denied for 'stop'\r\n"),
        ("LLRPC c#1 1\nx", "530 Permission denied for 'c#1'\r\n"),
        // `swapplan` reads the files that its text requires, so it needs the right to write.
        ("READ swapplan require(library /etc/shadow)\n", "530 Handler 'swapplan' write-only\r\n"),
        ("WRITE swapplan x\n", "530 Permission denied for 'swapplan'\r\n"),
    ] {
        assert_eq!(talk_as(command, &readonly), reply, "{command:?}");
    }
    let proxy = Rules { proxy: Some("a/p".into()), ..Rules::default() };
    for (command, reply) in [
        ("READ c.count 1\n", "200 Read handler 'c.count' OK\r\nDATA 10\r\nc.count(1)"),
        ("READ list\n", "200 Read handler 'list' OK\r\nDATA 6\r\nlist()"),
        ("WRITE x.y z\n", "200 Write handler 'x.y' OK\r\n"),
        ("READ kill 1\n", "511 No handler named 'kill'\r\n"),
    ] {
        assert_eq!(talk_as(command, &proxy), reply, "{command:?}");
    }
}

#[test]
fn a_client_without_the_token_may_not_reconfigure_or_name_files() {
    let rules = Rules::default();
    let denied = |h: &str| format!("530 Permission denied for '{h}'\r\n");
    for handler in ["c.file", "hotconfig", "swapplan", "c.deep"] {
        for command in
            ["WRITE H x\n", "SET H x\n", "WRITEDATA H 1\nx", "WRITEUNTIL H\nx\n\n", "CHECKWRITE H\n"]
        {
            // The flags of `c.deep` allow the write, so the check succeeds. The handler itself refuses the write.
            if command.starts_with("CHECK") && handler == "c.deep" {
                continue;
            }
            let command = command.replace(" H", &format!(" {handler}"));
            assert_eq!(talk_from(&command, &rules, Origin::Anonymous), denied(handler), "{command:?}");
            assert!(talk_from(&command, &rules, Origin::Authorised).starts_with("200"), "{command:?}");
        }
    }
    for command in ["WRITE c.reset\n", "READ c.count\n", "WRITE stop\n", "CHECKWRITE c.fail\n"] {
        assert!(talk_from(command, &rules, Origin::Anonymous).starts_with("200"), "{command:?}");
    }
    let plan = "200-Write handler 'swapplan' OK\r\n200-+ x\r\n200 1 added\r\n";
    assert_eq!(talk_from("WRITE swapplan x\n", &rules, Origin::Authorised), plan);
    let warned = "220-Write handler 'hotconfig' OK\r\n220 config:1: warning: odd\r\n";
    assert_eq!(talk_from("WRITE hotconfig odd\n", &rules, Origin::Authorised), warned);
    let silent = "200 Write handler 'hotconfig' OK\r\n";
    assert_eq!(talk_from("WRITE hotconfig even\n", &rules, Origin::Authorised), silent);
}

#[test]
fn a_client_of_another_host_without_the_token_calls_nothing() {
    let token = "0123456789abcdef";
    let rules = Rules { token: Some(Arc::new(token.parse().unwrap())), ..Rules::default() };
    for (command, name) in [
        ("READ c.count\n", "c.count"),
        ("READ nothing.here\n", "nothing.here"),
        ("READ list\n", "list"),
        ("READDATA c.echo 2\nab", "c.echo"),
        ("READUNTIL c.echo\nx\n\n", "c.echo"),
        ("CHECKREAD c.count\n", "c.count"),
        ("WRITE c.reset\n", "c.reset"),
        ("WRITEDATA c.reset 1\nx", "c.reset"),
        ("WRITEUNTIL c.reset\nx\n\n", "c.reset"),
        ("CHECKWRITE c.reset\n", "c.reset"),
        ("WRITE stop\n", "stop"),
        ("LLRPC c#1\n", "c#1"),
    ] {
        let denied = format!("530 Permission denied for '{name}': clients of other hosts need the token\r\n");
        let then = format!("{command}AUTH {token}\nREAD c.count\n");
        let want = format!("{denied}200 Authorised\r\n200 Read handler 'c.count' OK\r\nDATA 1\r\n0");
        assert_eq!(talk_from(&then, &rules, Origin::Network), want, "{command:?}");
        let (_, fake) = talk_in(99, command.as_bytes(), &rules, Origin::Network, &small());
        assert!(fake.written.lock().is_empty(), "{command:?}");
    }
    // If the router has no token, no token is accepted.
    assert_eq!(
        talk_from(&format!("AUTH {token}\n"), &Rules::default(), Origin::Network),
        "530 Permission denied\r\n"
    );
}

#[test]
fn the_token_gives_the_rights_and_wrong_ones_end_the_conversation() {
    let token = "0123456789abcdef";
    let rules = Rules { token: Some(Arc::new(token.parse().unwrap())), ..Rules::default() };
    let file = "WRITE c.file x\n";
    let (done, denied) = ("200 Write handler 'c.file' OK\r\n", "530 Permission denied for 'c.file'\r\n");
    let talk = |text: String, rules: &Rules| talk_from(&text, rules, Origin::Anonymous);
    assert_eq!(talk(format!("AUTH {token}\n{file}"), &rules), format!("200 Authorised\r\n{done}"));
    let wrong = "AUTH 0123456789abcdeF\n";
    let no = "530 Permission denied\r\n";
    assert_eq!(talk(format!("{wrong}{file}"), &rules), format!("{no}{denied}"));
    assert_eq!(talk(format!("{wrong}{wrong}{wrong}AUTH {token}\n{file}"), &rules), no.repeat(3));
    assert_eq!(talk("AUTH\n".into(), &rules), "500 Wrong number of arguments\r\n");
    // If the router has no token, no guess is correct.
    assert_eq!(talk(format!("AUTH {token}\n{file}"), &Rules::default()), format!("{no}{denied}"));
    // A READONLY socket stays read-only.
    let readonly = Rules { readonly: true, ..rules.clone() };
    assert_eq!(talk(format!("AUTH {token}\n{file}"), &readonly), format!("200 Authorised\r\n{denied}"));
}

#[test]
fn http_and_other_protocols_end_the_conversation() {
    let body = "\r\nWRITE c.reset\r\n";
    for (first, verb) in [
        ("POST / HTTP/1.1", "POST"),
        ("GET /index.html HTTP/1.1", "GET"),
        ("WRITE / HTTP/1.1", "WRITE"),
        ("options * HTTP/1.1", "options"),
        ("PUT /x", "PUT"),
        ("PRI * HTTP/2.0", "PRI"),
    ] {
        let said = talk_from(&format!("{first}\r\nHost: h\r\n{body}"), &Rules::default(), Origin::Authorised);
        assert_eq!(said, format!("501 Command '{verb}' unimplemented\r\n"), "{first}");
    }
    let unknown = |v: &str| format!("501 Command '{v}' unimplemented\r\n");
    let said = talk("EHLO x\nMAIL FROM: y\nRCPT TO: z\nWRITE c.reset\n");
    assert_eq!(said, unknown("EHLO") + &unknown("MAIL") + &unknown("RCPT"));
    // Known commands in between do not reset the count.
    let said = talk("A\nREAD c.count\nB\nREAD c.count\nC\nWRITE c.reset\n");
    assert!(!said.contains("c.reset"), "{said}");
}

#[test]
fn a_client_takes_its_replies_before_the_next_command_is_looked_at() {
    let fake = Arc::new(Fake::default());
    let (mut access, mut session) = (Access::new(fake.clone()), Session::new(small(), Origin::Authorised));
    session.sent(GREETING.len());
    session.feed(b"READ c.big 400\nREAD c.big 500\nREAD c.count\n");
    let rules = Rules::default();
    for _ in 0..5 {
        assert_eq!(session.step(&rules, &mut access), Step::Done);
    }
    assert!(!session.wants_input());
    assert_eq!(session.output().len(), 400 + "200 Read handler 'c.big' OK\r\nDATA 400\r\n".len());
    session.sent(100);
    session.step(&rules, &mut access);
    let waits = session.output().len();
    assert_eq!(waits, 300 + "200 Read handler 'c.big' OK\r\nDATA 400\r\n".len());
    session.sent(waits);
    while session.step(&rules, &mut access) == Step::Done && session.wants_input() {}
    assert!(session.output().len() > 500);
}

#[test]
fn sessions_say_what_they_hold_and_give_it_back() {
    let fake = Arc::new(Fake::default());
    let limits = Limits { backlog: 1000, ..Limits::default() };
    let (mut access, mut session) = (Access::new(fake), Session::new(limits, Origin::Authorised));
    let mut feed = |session: &mut Session, bytes: &[u8]| {
        session.feed(bytes);
        while session.step(&Rules::default(), &mut access) == Step::Done && session.wants_input() {}
        session.held()
    };
    assert!(feed(&mut session, b"") < 1000);
    for (command, end) in [("READDATA c.echo 20000\n", ""), ("READUNTIL c.echo E\n", "E\n")] {
        feed(&mut session, command.as_bytes());
        // Feed small pieces, so that the input buffer stays small.
        for _ in 0..199 {
            feed(&mut session, &[b'x'; 100]);
        }
        assert!((19_900..60_000).contains(&feed(&mut session, b"")), "{}", session.held());
        let held = feed(&mut session, format!("{}\n{end}", "y".repeat(99)).as_bytes());
        assert!((20_000..60_000).contains(&held), "the reply: {held}");
        while !session.output().is_empty() {
            session.sent(700);
        }
        assert!(session.held() < 2000, "{}", session.held());
    }
}

#[test]
fn what_is_too_long_is_not_kept_until_its_end() {
    let limits = Limits { line: 30, data: 100_000, ..Limits::default() };
    let mut access = Access::new(Arc::new(Fake::default()));
    let mut said = |command: &str, then: usize| {
        let mut session = Session::new(limits.clone(), Origin::Authorised);
        session.sent(GREETING.len());
        session.feed(command.as_bytes());
        for _ in 0..then / 10 {
            session.feed(&[b'x'; 10]);
            while session.step(&Rules::default(), &mut access) == Step::Done {}
        }
        assert!(session.wants_input() && session.held() < 5000, "{}", session.held());
        String::from_utf8(session.output().to_vec()).unwrap()
    };
    assert_eq!(said("", 30), "");
    assert_eq!(said("", 40), "500 Line too long\r\n");
    assert_eq!(said("READUNTIL c.echo E\n", 100_010), "");
}

#[test]
fn replies_show_tabs_and_no_other_control_characters() {
    let reply = "200-Write handler 'swapplan' OK\r\n200-+ a\tb[1mc\r\n200 1 added\r\n";
    assert_eq!(talk("WRITE swapplan a\tb\x1b[1m\x07c\n"), reply);
}

#[test]
fn handlers_are_remembered_until_the_configuration_is_swapped() {
    let fake = Arc::new(Fake::default());
    let mut access = Access::new(fake.clone());
    let calls = || fake.calls.load(Ordering::SeqCst);
    for _ in 0..10 {
        assert!(access.readable("c.count", None).is_ok());
    }
    assert_eq!(calls(), 1);
    fake.swaps.store(1, Ordering::SeqCst);
    assert!(access.readable("c.count", None).is_ok());
    assert_eq!(calls(), 2);
    // Unknown names are not cached, and the cache of known names is bounded.
    for i in 0..20_000 {
        assert!(access.readable(&format!("a/p.{i}"), None).is_ok());
        assert!(access.readable(&format!("c.x{i}"), None).is_err());
    }
    fake.ended.store(true, Ordering::SeqCst);
    assert_eq!(access.readable("c.count", None).unwrap_err(), Refusal(540, "No router installed".into()));
}
