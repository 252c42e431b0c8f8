// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of control sockets, with clients that write and read the bytes of the protocol themselves.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use castanet_element::spec::Origin;
use castanet_element::{Random, Remote as _};
use castanet_runtime::Running;
use castanet_testkit::{FEW_ROUNDS, Log, Watchdog, number, real, router, try_router, until};
use parking_lot::{Mutex, MutexGuard};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A timeout that expires only if a test hangs.
const LONG: Duration = Duration::from_secs(100);

/// A router that runs on a thread of its own, and must end in time.
struct Live {
    running: Arc<Running>,
    log: Log,
    thread: Option<std::thread::JoinHandle<castanet_runtime::Router>>,
    _watchdog: Watchdog,
    _alone: MutexGuard<'static, ()>,
}

/// Lets only one test run at a time, so that the resources used by the process can be measured.
fn alone() -> (MutexGuard<'static, ()>, Watchdog) {
    static ONE: Mutex<()> = Mutex::new(());
    (ONE.lock(), Watchdog::arm())
}

impl Live {
    fn start(text: &str, workers: usize) -> Live {
        let (alone, watchdog) = alone();
        let (options, log) = real(workers);
        let mut r = router(text, options);
        let running = r.running().clone();
        let thread = std::thread::spawn(move || {
            r.run().unwrap();
            r
        });
        Live { running, log, thread: Some(thread), _watchdog: watchdog, _alone: alone }
    }
    fn read(&self, element: &str, handler: &str) -> String {
        self.running.read(Some(element), handler, "").unwrap()
    }
    fn number(&self, element: &str, handler: &str) -> u64 {
        self.read(element, handler).parse().unwrap()
    }
    /// Stops the router and cleans it up.
    fn end(mut self) -> castanet_runtime::Router {
        let _ = self.running.write(Origin::Operator, None, "stop", "1");
        let mut r = self.thread.take().unwrap().join().unwrap();
        assert_eq!(r.cleanup(), []);
        r
    }
}

struct Folder(tempfile::TempDir);
impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    fn path(&self) -> PathBuf {
        self.0.path().join("s")
    }
    fn connect(&self) -> UnixStream {
        let s = UnixStream::connect(self.path()).unwrap();
        s.set_read_timeout(Some(LONG)).unwrap();
        s
    }
    /// Sends these bytes. Returns the replies, up to the end of the connection.
    fn say(&self, bytes: &[u8]) -> String {
        let mut s = self.connect();
        s.write_all(bytes).unwrap();
        s.shutdown(Shutdown::Write).unwrap();
        let mut out = Vec::new();
        s.read_to_end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

const GREETING: &str = "Click::ControlSocket/1.3\r\n";

#[test]
fn the_transcript() {
    let f = Folder::new();
    for workers in [1, 2] {
        let text =
            format!("Idle -> c :: Counter -> Discard; cs :: ControlSocket(UNIX, {})", f.path().display());
        let live = Live::start(&text, workers);
        let list = "4\nIdle@1\nc\nDiscard@3\ncs\n";
        let mut want = String::from(GREETING);
        for reply in [
            "200 Read handler 'c.count' OK\r\nDATA 1\r\n0",
            "510 No element named 'x'\r\n",
            "511 No handler named 'c.zz'\r\n",
            "200 Write handler 'c.reset' OK\r\n",
            "530 Handler 'c.count' read-only\r\n",
            &format!("200 Read handler 'list' OK\r\nDATA {}\r\n{list}", list.len()),
            "501 Command 'FOO' unimplemented\r\n",
            "200 Read handler 'c.count' OK\r\n",
            "501 Cannot call LLRPC 'c#00' remotely\r\n",
            "200 Read handler 'c.class' OK\r\nDATA 7\r\nCounter",
            "200 Read handler 'cs.filename' OK\r\n",
        ] {
            want += reply;
        }
        let said = f.say(
            b"READ c.count\r\nREAD x.y\nREAD c.zz\rWRITE c.reset\nWRITE c.count 1\nread list\nFOO\nCHECKREAD c.count\n\
            LLRPC c#00 1\nxREAD 2.class\nCHECKREAD cs.filename\nQUIT\n",
        );
        assert_eq!(said, want + "200 Goodbye!\r\n");
        assert_eq!(live.read("cs", "filename"), f.path().display().to_string());
        live.end();
        assert!(!f.path().exists());
    }
}

#[test]
fn llrpcs_of_a_switch() {
    let f = Folder::new();
    let router = "Idle -> s :: Switch(1); s [0] -> Discard; s [1] -> Discard; s [2] -> d :: Discard;";
    let socket = |more: &str| format!("{router} cs :: ControlSocket(UNIX, {}{more})", f.path().display());
    let live = Live::start(&socket(""), 1);
    let two = 2i32.to_ne_bytes();
    let say = |parts: &[&[u8]]| f.say(&[&parts.concat()[..], b"QUIT\n"].concat());
    let got = |name: &str, value: &[u8; 4]| {
        format!("200 LLRPC '{name}' OK\r\nDATA 4\r\n{}", String::from_utf8_lossy(value))
    };
    let bye = "200 Goodbye!\r\n";
    let said = say(&[b"LLRPC s#4004C005 4\n", &two, b"LLRPC 2#4004c005\n"]);
    let one = 1i32.to_ne_bytes();
    assert_eq!(said, format!("{GREETING}{}{}{bye}", got("s#4004C005", &one), got("2#4004c005", &one)));
    let said = say(&[b"LLRPC s#80044006 4\n", &two]);
    assert_eq!(said, format!("{GREETING}{}{bye}", got("s#80044006", &two)));
    assert_eq!(live.read("s", "switch"), "2");
    for (command, reply) in [
        (
            &b"LLRPC s#80044006\n"[..],
            "522-LLRPC 's#80044006' error:\r\n522 expected 4 bytes of data, got 0\r\n",
        ),
        (
            b"LLRPC s#4004C005 1\nx",
            "522-LLRPC 's#4004C005' error:\r\n522 expected 4 bytes of data, got 1\r\n",
        ),
        (b"LLRPC d#4004C005 4\nabcd", "501 Cannot call LLRPC 'd#4004C005' remotely\r\n"),
        (b"LLRPC s#1C0044006 4\nabcd", "501 Cannot call LLRPC 's#1C0044006' remotely\r\n"),
    ] {
        assert_eq!(say(&[command]), format!("{GREETING}{reply}{bye}"));
    }
    live.end();
    let live = Live::start(&socket(", READONLY true"), 1);
    let said = say(&[b"LLRPC s#80044006 4\n", &two]);
    assert_eq!(said, format!("{GREETING}530 Permission denied for 's#80044006'\r\n{bye}"));
    live.end();
}

#[test]
fn listings_errors_and_data_as_long_as_wanted() {
    let f = Folder::new();
    let text = format!(
        "Idle -> c :: Counter -> q :: Queue(7) -> Discard; s :: Script(TYPE PASSIVE, return 1); ControlSocket(UNIX, {})",
        f.path().display()
    );
    let live = Live::start(&text, 1);
    let listing = live.read("c", "handlers");
    let want = format!("200 Read handler 'c.handlers' OK\r\nDATA {}\r\n{listing}", listing.len());
    assert!(f.say(b"READ c.handlers\n").ends_with(&want));
    assert!(listing.contains("reset\twb\n") && listing.contains("count\tr\n"), "{listing}");
    let flat = live.running.read(None, "flatconfig", "").unwrap();
    assert!(f.say(b"READ flatconfig\n").ends_with(&format!("DATA {}\r\n{flat}", flat.len())));
    let said = f.say(
        b"WRITE q.capacity x\nREAD c.count 1\nREAD q.capacity\nREAD s.cat /etc/passwd\nREAD s.kill 9 1\n",
    );
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[1].starts_with("520-Write handler 'q.capacity' error:") && lines[2].starts_with("520 "),
        "{said}"
    );
    assert_eq!(lines[3], "520-Read handler 'c.count' error:");
    assert_eq!(lines[4], "520 read handler 'c.count' does not take parameters");
    assert_eq!(lines[7], "7511 No handler named 's.cat'");
    assert_eq!(lines[8], "511 No handler named 's.kill'");
    let long = "x".repeat(5_000_000);
    let said = f.say(format!("READDATA s.length {}\n{long}", long.len()).as_bytes());
    assert!(said.ends_with("DATA 7\r\n5000000"), "{said}");
    live.end();
}

#[test]
fn rules() {
    let f = Folder::new();
    let text = format!(
        "Idle -> c :: Counter -> Discard; p :: Script(TYPE PROXY, return \"$0 $write $args\"); ControlSocket(UNIX, {}, PROXY p, READONLY true)",
        f.path().display()
    );
    let live = Live::start(&text, 1);
    let said = f.say(b"READ c.count a\nWRITE c.reset\n");
    assert!(said.contains("200 Read handler 'c.count' OK\r\n") && said.contains("c.count false a"), "{said}");
    assert!(said.ends_with("530 Permission denied for 'c.reset'\r\n"), "{said}");
    live.end();
}

#[test]
fn a_client_that_stops_the_router_is_told_so() {
    let f = Folder::new();
    for _ in 0..20 {
        let text = format!("InfiniteSource -> Discard; ControlSocket(UNIX, {})", f.path().display());
        let mut live = Live::start(&text, 1);
        let asking = std::thread::spawn({
            let f = Folder::connect(&f);
            move || {
                let (mut s, mut out) = (f, String::new());
                s.write_all(b"WRITE stop\nREAD list\n").unwrap();
                let _ = s.read_to_string(&mut out);
                out
            }
        });
        let mut r = live.thread.take().unwrap().join().unwrap();
        r.cleanup();
        let said = asking.join().unwrap();
        assert!(said.starts_with(&format!("{GREETING}200 Write handler 'stop' OK\r\n")), "{said}");
        assert!(!f.path().exists());
    }
}

#[test]
fn hostile_clients() {
    let f = Folder::new();
    let path = f.path().display().to_string();
    let text = format!(
        "InfiniteSource -> c :: Counter -> Discard; q :: Queue(5); Idle -> q -> Idle; InfiniteSource -> sw :: Switch(0) -> Discard; sw [1] -> Discard;
         tcp :: ControlSocket(TCP, 0); ControlSocket(UNIX, {path})"
    );
    let live = Live::start(&text, 2);
    let port: u16 = live.read("tcp", "port").parse().unwrap();
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let memory = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let (first, before) = (live.number("c", "count"), memory());
    std::thread::scope(|s| {
        // Clients that send garbage mixed with commands, and reset the connection.
        for seed in 0..4 {
            s.spawn(move || {
                let mut random = Random::new(seed, "garbage");
                for _ in 0..40 {
                    let mut c = connect();
                    for _ in 0..random.below(20) {
                        let n = random.below(3000) as usize;
                        let mut bytes: Vec<u8> = (0..n).map(|_| random.below(256) as u8).collect();
                        bytes.extend_from_slice(match random.below(6) {
                            0 => b"\nREAD c.count\n",
                            1 => b"\nREAD config\r\nREAD flatconfig\n",
                            2 => b"\nWRITEDATA q.capacity 100000\n",
                            3 => b"\nWRITEUNTIL sw.switch x\n",
                            4 => b"\nWRITE q.reset\xff\n",
                            _ => b"READDATA ",
                        });
                        if c.write_all(&bytes).is_err() {
                            break;
                        }
                    }
                    // The client closes the connection before it has read all replies, so the connection is
                    // reset.
                    drop(c);
                }
            });
        }
        // A client that sends a huge line and huge data, and one that sends its commands byte by byte.
        s.spawn(move || {
            let mut c = connect();
            let _ = c.write_all(&vec![b'x'; 40 << 20]);
            let _ = c.write_all(b"\nWRITEDATA q.capacity 99999999999\n");
            let _ = c.write_all(&vec![b'x'; 40 << 20]);
        });
        s.spawn(move || {
            let mut c = connect();
            for b in b"WRITEDATA sw.switch 1\r\n1READ sw.switch\r\nQUIT\r\n" {
                c.write_all(&[*b]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut out = String::new();
            c.read_to_string(&mut out).unwrap();
            assert!(out.starts_with(GREETING) && out.ends_with("200 Goodbye!\r\n"), "{out}");
        });
        // 50 clients send commands but do not read the replies. 50 other clients send nothing.
        let mut silent: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
        for c in silent.iter_mut().take(50) {
            // The server may disconnect the clients for which it holds the most data.
            let _ = c.write_all(&b"READ flatconfig\n".repeat(500));
        }
        let said = f.say(b"READ c.class\nQUIT\n");
        assert!(said.ends_with("DATA 7\r\nCounter200 Goodbye!\r\n"), "{said}");
    });
    let last = live.number("c", "count");
    assert!(last > first, "the data path went on");
    until("the data path goes on", || live.number("c", "count") > last + 100_000);
    let grown = memory().saturating_sub(before);
    assert!(grown < 200_000, "{grown} KiB");
    live.end();
}

#[test]
fn any_bytes_for_every_write_handler() {
    let f = Folder::new();
    let text = format!(
        "i :: InfiniteSource(LIMIT 10) -> c :: Counter -> q :: Queue(5) -> u :: Unqueue -> s :: Switch(0) -> d :: DecIPTTL -> Discard; s [1] -> Discard;
         r :: RatedSource(RATE 10) -> x :: StaticIPLookup(0/0 0) -> Discard; ControlSocket(UNIX, {})",
        f.path().display()
    );
    let live = Live::start(&text, 1);
    let mut random = Random::new(7, "values");
    let mut commands = 0;
    for e in ["i", "c", "q", "u", "s", "d", "r", "x"] {
        let handlers = live.read(e, "handlers");
        let writable = handlers.lines().filter_map(|l| l.split_once('\t')).filter(|h| h.1.contains('w'));
        for (h, _) in writable {
            let mut bytes = Vec::new();
            for i in 0..20 {
                let n = [0, 1, 3, 20, 2000][i % 5];
                // One value in four may contain bytes that are not UTF-8.
                let top = if i % 4 == 0 { 256 } else { 128 };
                let value: Vec<u8> = (0..n).map(|_| random.below(top) as u8).collect();
                bytes.extend_from_slice(format!("WRITEDATA {e}.{h} {n}\n").as_bytes());
                bytes.extend_from_slice(&value);
                commands += 1;
            }
            let said = f.say(&bytes);
            let answered = said.lines().filter(|l| l.starts_with("200 ") || l.starts_with("520 ")).count();
            assert_eq!(answered, 20, "{e}.{h}: {said}");
        }
    }
    assert!(commands > 200, "{commands}");
    live.end();
}

#[test]
fn messages() {
    let f = Folder::new();
    let text = format!(
        "i :: InfiniteSource(DATA \\<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 3, ACTIVE false)
           -> Print(a) -> CheckIPHeader -> IPPrint(b, CHANNEL news) -> Discard;
         m :: Script(TYPE PASSIVE, print \"no\");
         ChatterSocket(UNIX, {0}); n :: ChatterSocket(UNIX, {0}n, CHANNEL news, GREETING false)",
        f.path().display()
    );
    let live = Live::start(&text, 1);
    let mut all = BufReader::new(f.connect());
    let news = UnixStream::connect(format!("{}n", f.path().display())).unwrap();
    news.set_read_timeout(Some(LONG)).unwrap();
    let mut news = BufReader::new(news);
    let mut line = String::new();
    all.read_line(&mut line).unwrap();
    assert_eq!(line, "Click::ChatterSocket/1.0\r\n");
    // This socket sends no greeting, so only the first message shows that the client has been accepted.
    news.get_ref().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut rounds = 0;
    line.clear();
    while news.read_line(&mut line).is_err() {
        assert!(rounds < 1000, "no message came");
        rounds += 1;
        live.running.write(Origin::Operator, Some("i"), "reset", "").unwrap();
        live.running.write(Origin::Operator, Some("i"), "active", "true").unwrap();
    }
    news.get_ref().set_read_timeout(Some(LONG)).unwrap();
    assert!(line.starts_with("b: ") && line.ends_with('\n'), "{line:?}");
    for (from, label, count) in [(&mut all, "a", 3 * rounds), (&mut news, "b", 2)] {
        for _ in 0..count {
            line.clear();
            from.read_line(&mut line).unwrap();
            assert!(line.starts_with(&format!("{label}: ")) && line.ends_with('\n'), "{line:?}");
        }
    }
    assert_eq!(live.log.lines().iter().filter(|l| l.starts_with("a:")).count(), 3 * rounds);
    assert!(!live.log.lines().iter().any(|l| l.starts_with("b:")), "a channel does not reach standard error");
    // A client that reads nothing loses messages, and the router continues.
    let before = live.number("n", "lost");
    live.running.write(Origin::Operator, Some("i"), "limit", "-1").unwrap();
    live.running.write(Origin::Operator, Some("i"), "active", "true").unwrap();
    until("messages are lost", || live.number("n", "lost") > before);
    live.running.write(Origin::Operator, Some("i"), "active", "false").unwrap();
    let memory = std::fs::read_to_string("/proc/self/statm").unwrap();
    assert!(!memory.is_empty());
    live.end();
    assert!(!f.path().exists());
}

#[test]
fn a_place_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = |more: &str| format!("c :: ControlSocket(TCP, {port}{more}); Idle -> Discard");
    let error = try_router(&text(""), real(1).0).err().unwrap();
    assert!(error.contains(&format!("cannot listen on TCP port {port}: Address already in use")), "{error}");
    // With `+` after the port, the socket takes the next free port.
    let live = Live::start(&text("+"), 1);
    assert!(live.number("c", "port") > u64::from(port));
    live.end();
    // When all retries have failed, the router stops.
    let live = Live::start(&text(", RETRIES 1"), 1);
    let log = live.log.clone();
    let mut live = live;
    live.thread.take().unwrap().join().unwrap().cleanup();
    let said = log.lines();
    assert!(
        said[0].ends_with("Address already in use; trying again") && said[1].ends_with("giving up"),
        "{said:?}"
    );
    drop(live);
    // The port becomes free before the retries are used up.
    let live = Live::start(&text(", RETRIES 5, RETRY_WARNINGS false"), 1);
    drop(taken);
    until("it listens", || live.read("c", "port") == port.to_string());
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(live.log.lines().is_empty());
    live.end();
}

#[test]
fn an_idle_router_with_clients_sleeps() {
    let f = Folder::new();
    let text = format!("Idle -> c :: Counter -> Discard; ControlSocket(UNIX, {})", f.path().display());
    let live = Live::start(&text, 1);
    let mut clients: Vec<UnixStream> = (0..50).map(|_| f.connect()).collect();
    for c in &mut clients {
        c.write_all(b"READ c.count\nhalf").unwrap();
    }
    // The command of each client takes some rounds of the run loop. Polling would take thousands.
    std::thread::sleep(Duration::from_millis(300));
    let mut r = live.end();
    let rounds = r.shared().rounds();
    let most = FEW_ROUNDS + 50 * 10;
    assert!((1..=most).contains(&rounds), "{rounds} rounds");
    assert_eq!(number(&mut r, "c", "count"), 0);
}
