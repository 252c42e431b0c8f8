// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers and clients of all kinds.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::session::tests::Fake;
use crate::{Client, client::Address};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;

const LOOPBACK: ListenAddress =
    ListenAddress::Tcp { address: std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0, following: false };
const GREETING: &str = "Click::ControlSocket/1.3\r\n";

fn settings(limits: Limits) -> Settings {
    Settings { limits, ..Settings::control(Rules::default()) }
}

fn server(limits: Limits) -> (Server, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    (Server::start(&LOOPBACK, settings(limits), fake.clone()).unwrap(), fake)
}

fn connect(s: &Server) -> TcpStream {
    let c = TcpStream::connect(("127.0.0.1", s.port().unwrap())).unwrap();
    c.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    c
}

/// Returns everything that is received until the other end closes.
fn rest(mut c: impl Read) -> String {
    let mut out = Vec::new();
    // A reset ends the connection too.
    let _ = c.read_to_end(&mut out);
    String::from_utf8(out).unwrap()
}

fn until(what: &str, f: impl Fn() -> bool) {
    let start = Instant::now();
    while !f() {
        assert!(start.elapsed() < Duration::from_secs(100), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn commands_in_one_piece_and_a_half_closed_client() {
    let (s, _) = server(Limits::default());
    let mut c = connect(&s);
    c.write_all(b"READ c.count\nREAD c.echo a\nWRITE c.reset\nread c").unwrap();
    c.shutdown(Shutdown::Write).unwrap();
    let want = "200 Read handler 'c.count' OK\r\nDATA 1\r\n0200 Read handler 'c.echo' OK\r\nDATA 1\r\na200 Write handler 'c.reset' OK\r\n";
    assert_eq!(rest(c), format!("{GREETING}{want}"));
    until("the client has gone", || s.clients() == 0);
}

#[test]
fn many_commands_in_one_piece_are_answered_while_the_client_waits() {
    let (s, _) = server(Limits::default());
    let mut c = connect(&s);
    c.write_all(&b"CHECKREAD c.count\n".repeat(100)).unwrap();
    expect(&mut c, GREETING);
    expect(&mut c, &"200 Read handler 'c.count' OK\r\n".repeat(100));
}

#[test]
fn what_a_client_sent_before_it_went_is_carried_out() {
    let (s, fake) = server(Limits::default());
    let mut c = connect(&s);
    // All commands are sent in one write, because the reset below discards data that is not sent yet.
    let all: String = (0..50).map(|i| format!("WRITE c.reset {i}\n")).collect();
    c.write_all(all.as_bytes()).unwrap();
    // Closing a connection with unread replies resets it.
    drop(c);
    until("all are carried out", || fake.written.lock().len() == 50);
    until("the client has gone", || s.clients() == 0);
}

#[test]
fn input_behind_the_last_command_does_not_reset_the_connection() {
    let (s, _) = server(Limits::default());
    let mut c = connect(&s);
    c.write_all(b"QUIT\r").unwrap();
    let mut all = vec![0; GREETING.len() + b"200 Goodbye!\r\n".len()];
    c.read_exact(&mut all).unwrap();
    assert_eq!(all, format!("{GREETING}200 Goodbye!\r\n").as_bytes());
    // The second write fails if the first was answered by a reset.
    for _ in 0..2 {
        c.write_all(b"\n").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(c.read(&mut [0]).unwrap(), 0);
    drop(c);
    until("the client has gone", || s.clients() == 0);
    // The server does not wait for a client that never closes.
    let mut c = connect(&s);
    c.write_all(b"QUIT\n").unwrap();
    assert!(c.read(&mut all).unwrap() > 0);
    until("the client has gone", || s.clients() == 0);
}

#[test]
fn a_server_sleeps_while_its_clients_are_silent() {
    let (s, _) = server(Limits::default());
    let mut clients: Vec<TcpStream> = (0..20).map(|_| connect(&s)).collect();
    for c in &mut clients {
        c.write_all(b"READ c.count\nhalf").unwrap();
        let mut said = [0; GREETING.len()];
        c.read_exact(&mut said).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    // The server wakes up a few times for each client, and a few times to check incomplete commands. A server that
    // polls would have woken up thousands of times.
    let rounds = s.common.rounds.load(Ordering::Relaxed);
    assert!((1..=200).contains(&rounds), "{rounds}");
}

#[test]
fn the_client_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let fake = Arc::new(Fake::default());
    let s =
        Server::start(&ListenAddress::Unix(path.clone()), settings(Limits::default()), fake.clone()).unwrap();
    let patience = Duration::from_secs(100);
    let mut c = Client::connect(&Address::Unix(path.clone()), patience).unwrap();
    assert_eq!(c.read("c.count", "").unwrap(), b"0");
    let long = "a b\r\n\0".repeat(1_000_000);
    assert!(c.read_text("c.echo", &long).unwrap() == long);
    assert_eq!(c.write("c.reset", long.as_bytes()).unwrap(), "Write handler 'c.reset' OK");
    c.write("c.reset", b"").unwrap();
    let refused = c.read("c.fail", "").unwrap_err();
    assert_eq!(refused.to_string(), "Read handler 'c.fail' error:\nfirst\nsecond");
    assert!(refused.is_refusal());
    assert!(c.read("c.fail x", "").unwrap_err().is_refusal());
    let e = c.write("c.reset", &vec![b'x'; (64 << 20) + 1]).unwrap_err();
    assert_eq!(e.to_string(), "Data too big");
    assert_eq!(c.read("c.count", "").unwrap(), b"0", "the connection is still good");
    drop(s);
    assert!(!path.exists());
    // The server may still answer commands that it read before it was dropped.
    let end = (0..).find_map(|_| c.read("c.count", "").err());
    assert!(matches!(end, Some(crate::client::ClientError::Broken(_))));
    let e = Client::connect(&Address::Unix(path), patience).err().unwrap().to_string();
    assert!(e.contains("there is no such file; 'castanet run -u"), "{e}");
}

#[test]
fn a_thousand_connections_at_once() {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let more = rustix::process::Rlimit { current: limits.maximum.or(Some(1 << 16)), ..limits };
    if rustix::process::setrlimit(rustix::process::Resource::Nofile, more).is_err()
        || limits.maximum.is_some_and(|m| m < 5000)
    {
        println!("SKIP: this process may not open 5000 files");
        return;
    }
    let (s, fake) = server(Limits::default());
    let mut all: Vec<TcpStream> = (0..1000).map(|_| connect(&s)).collect();
    until("all are there", || s.clients() == 1000);
    // All clients but one send incomplete commands. The other client is still served.
    for c in &mut all {
        c.write_all(b"WRITE c.rese").unwrap();
    }
    let mut one = connect(&s);
    one.write_all(b"READ c.count\nQUIT\n").unwrap();
    assert!(rest(one).ends_with("DATA 1\r\n0200 Goodbye!\r\n"));
    for c in &mut all {
        c.write_all(b"t\nQUIT\n").unwrap();
    }
    for c in all {
        assert_eq!(rest(c), format!("{GREETING}200 Write handler 'c.reset' OK\r\n200 Goodbye!\r\n"));
    }
    assert_eq!(fake.written.lock().len(), 1000);
}

#[test]
fn too_many_are_told_so() {
    let (s, _) = server(Limits { clients: 3, ..Limits::default() });
    let all: Vec<TcpStream> = (0..3).map(|_| connect(&s)).collect();
    until("all are there", || s.clients() == 3);
    assert_eq!(rest(connect(&s)), format!("{GREETING}590 Too many clients\r\n"));
    drop(all);
    until("all have gone", || s.clients() == 0);
    let mut c = connect(&s);
    c.write_all(b"QUIT\n").unwrap();
    assert_eq!(rest(c), format!("{GREETING}200 Goodbye!\r\n"));
}

#[test]
fn slow_ones_go_and_silent_ones_stay() {
    let short = Duration::from_millis(150);
    let (s, _) = server(Limits { half: short, stalled: short, backlog: 1000, ..Limits::default() });
    let silent = connect(&s);
    let mut half = connect(&s);
    half.write_all(b"WRITEDATA c.reset 100\nabc").unwrap();
    let mut stalled = connect(&s);
    // The client reads nothing, and the replies are larger than its socket buffers.
    stalled.write_all(b"READ c.big 30000000\nREAD c.big 30000000\n").unwrap();
    assert_eq!(rest(half), GREETING);
    until("two have gone", || s.clients() == 1);
    let mut silent = silent;
    silent.write_all(b"QUIT\n").unwrap();
    assert_eq!(rest(silent), format!("{GREETING}200 Goodbye!\r\n"));
}

#[test]
fn the_one_that_holds_most_goes_when_all_hold_too_much() {
    let (s, _) = server(Limits { total: 10 << 20, ..Limits::default() });
    let mut small = connect(&s);
    small.write_all(b"WRITEDATA c.reset 100000\n").unwrap();
    small.write_all(&[b'x'; 50_000]).unwrap();
    let mut big = connect(&s);
    big.write_all(b"WRITEDATA c.reset 60000000\n").unwrap();
    let block = vec![b'x'; 1 << 20];
    let sent = (0..60).take_while(|_| big.write_all(&block).is_ok()).count();
    assert!(sent < 60, "it was sent away");
    small.write_all(&[b'x'; 50_000]).unwrap();
    small.write_all(b"QUIT\n").unwrap();
    assert!(rest(small).ends_with("Write handler 'c.reset' OK\r\n200 Goodbye!\r\n"));
}

#[test]
fn changed_rules_hold_for_clients_that_are_there() {
    let (s, _) = server(Limits::default());
    let address = Address::Tcp("localhost".into(), s.port().unwrap());
    let mut c = Client::connect(&address, Duration::from_secs(100)).unwrap();
    c.write("c.reset", b"").unwrap();
    s.set(Settings::control(Rules { readonly: true, ..Rules::default() }));
    let e = c.write("c.reset", b"").unwrap_err();
    assert_eq!(e.to_string(), "Permission denied for 'c.reset'");
}

type Lines = Arc<Mutex<Vec<String>>>;

/// A message server at a Unix socket, and its reports.
fn chatter(
    channel: &str,
    (greeting, aloud, verbose): (bool, bool, bool),
    messages: usize,
) -> (Server, Arc<Fake>, impl Fn() -> UnixStream, Lines) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let reports = Lines::default();
    let reported = reports.clone();
    let settings = Settings {
        service: Service::Chatter { channel: channel.into(), greeting, aloud },
        limits: Limits { messages, clients: 3, ..Limits::default() },
        name: "N".into(),
        verbose,
        report: Arc::new(move |line| reported.lock().push(line.to_string())),
    };
    let fake = Arc::new(Fake::default());
    let server = Server::start(&ListenAddress::Unix(path.clone()), settings, fake.clone()).unwrap();
    let connect = move || {
        let _ = &folder;
        let c = UnixStream::connect(&path).unwrap();
        c.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        c
    };
    (server, fake, connect, reports)
}

/// Reads exactly `text`.
fn expect(c: &mut impl Read, text: &str) {
    let mut all = vec![0; text.len()];
    c.read_exact(&mut all).unwrap();
    assert_eq!(String::from_utf8(all).unwrap(), text);
}

#[test]
fn messages_go_to_every_client_of_their_channel() {
    let greeting = crate::chatter::GREETING;
    for (channel, aloud, reported) in
        [("news", true, &["one\ntwo", "three"][..]), ("news", false, &[]), ("default", true, &[])]
    {
        let (s, fake, connect, reports) = chatter(channel, (true, aloud, false), 1000);
        let mut all = [connect(), connect()];
        all.iter_mut().for_each(|c| expect(c, greeting));
        fake.message("other", "nothing");
        fake.message(channel, "one\ntwo");
        all.iter_mut().for_each(|c| expect(c, "one\ntwo\n"));
        let [gone, mut stays] = all;
        drop(gone);
        until("one has gone", || s.clients() == 1);
        // A client that has shut down its output still receives messages.
        stays.shutdown(Shutdown::Write).unwrap();
        fake.message(channel, "three");
        expect(&mut stays, "three\n");
        assert_eq!(*reports.lock(), reported, "{channel} {aloud}");
        assert_eq!(s.lost(), 0);
        drop(s);
        assert_eq!(rest(stays), "");
    }
}

#[test]
fn messages_without_room_are_counted_for_each_client() {
    let (s, fake, connect, _) = chatter("news", (false, false, false), 10);
    let mut all = [connect(), connect()];
    until("both are there", || s.clients() == 2);
    fake.message("news", "0123456789");
    fake.message("news", "a");
    all.iter_mut().for_each(|c| expect(c, "a\n"));
    until("the long one is counted", || s.lost() == 2);
    // A client that reads nothing loses messages, but only whole ones.
    let (s, fake, connect, _) = chatter("news", (false, false, false), 100_000);
    let c = connect();
    until("it is there", || s.clients() == 1);
    let text = "x".repeat(49_999);
    (0..100).for_each(|_| fake.message("news", &text));
    fake.message("news", "");
    until("some are lost", || s.lost() > 0);
    drop((fake, s));
    // The end of the server may truncate the last message.
    let said = rest(c);
    let (whole, _) = said.rsplit_once('\n').unwrap();
    assert!(whole.split('\n').all(|line| line == text || line.is_empty()));
}

#[test]
fn clients_that_come_and_go_are_reported() {
    let (s, _, connect, reports) = chatter("news", (false, false, true), 1000);
    let one = connect();
    until("it is there", || s.clients() == 1);
    drop((one, connect()));
    until("it was reported", || reports.lock().len() == 4);
    let mut lines = reports.lock().clone();
    lines.sort();
    assert_eq!(
        lines,
        [1, 2].map(|n| ["closed", "opened"].map(|e| format!("N: connection {n} {e}"))).concat()
    );
}

#[test]
fn messages_wait_up_to_the_limit() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut p = peer::Peer::chatter(ours.into(), false);
    assert!(p.queue(b"abc", 5) && !p.queue(b"abc", 5) && p.queue(b"de", 5) && !p.queue(b"f", 5));
    assert!(p.queue(b"", 5) && p.holds() >= 5);
}

#[test]
fn a_connection_that_it_was_started_with() {
    use std::os::fd::AsRawFd;
    let (theirs, ours) = UnixStream::pair().unwrap();
    let place = ListenAddress::Descriptor(ours.as_raw_fd());
    let s = Server::start(&place, settings(Limits::default()), Arc::new(Fake::default())).unwrap();
    drop(ours);
    (&theirs).write_all(b"READ c.count\nQUIT\n").unwrap();
    assert!(rest(theirs).ends_with("DATA 1\r\n0200 Goodbye!\r\n"));
    drop(s);
}
