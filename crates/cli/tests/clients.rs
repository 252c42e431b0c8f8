// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rights of control clients of a running router, for each kind of connection.
#![allow(clippy::unwrap_used)]

mod common;

use common::Bench;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-of-the-operator";
const ROUTER: &str = "Idle -> c :: Counter -> agg :: AggregateCounter -> Discard; \
    ControlSocket(UNIX, readonly, READONLY true); tcp :: ControlSocket(TCP, 0);";

/// A running router, which is killed when the test ends.
struct Live {
    b: Bench,
    child: Child,
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Live {
    /// Starts a router with a Unix socket `s` and further options. Its folder also has a file `secret`, which
    /// clients must not be able to read.
    fn new(more: &[&str]) -> Live {
        let b = Bench::new();
        b.file("secret", "a_word_of_the_secret -> ;");
        b.file("token", TOKEN);
        b.file("lib/shared.click", "elementclass Shared { input -> output };");
        std::fs::set_permissions(b.path("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut c = b.command("castanet");
        c.args(["run", "-q", "-R", "-u", "s", "-e", ROUTER]).args(more).stdin(Stdio::null());
        let child = c.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let live = Live { b, child };
        let start = Instant::now();
        while live.ctl(&["s", "read", "version"]).0 != 0 {
            assert!(start.elapsed() < Duration::from_secs(100));
            std::thread::sleep(Duration::from_millis(5));
        }
        live
    }
    /// Runs `castanet ctl`. Returns the exit code and the output.
    fn ctl(&self, args: &[&str]) -> (i32, String) {
        let ran = self.b.run("castanet", &[&["ctl"], args].concat(), "");
        (ran.code, ran.out + &ran.err)
    }
    /// Returns the port of the ControlSocket.
    fn port(&self) -> String {
        self.ctl(&["s", "read", "tcp.port"]).1.trim().to_string()
    }
    /// Sends commands to a Unix socket. Returns the replies, up to the end of the connection.
    fn unix(&self, socket: &str, commands: &str) -> String {
        talk(UnixStream::connect(self.b.path(socket)).unwrap(), commands)
    }
    /// Sends commands to the TCP port. Returns the replies, up to the end of the connection.
    fn tcp(&self, commands: &str) -> String {
        let stream = TcpStream::connect(("127.0.0.1", self.port().parse().unwrap())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        talk(stream, commands)
    }
    fn secret(&self) -> String {
        self.b.path("secret").display().to_string()
    }
}

fn talk(mut stream: impl Read + Write, commands: &str) -> String {
    stream.write_all(commands.as_bytes()).unwrap();
    let mut said = Vec::new();
    // A connection reset also ends the replies.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_client_that_may_only_read_reads_no_file() {
    let live = Live::new(&[]);
    let text = format!("require(library {})", live.secret());
    for command in ["READ", "WRITE"] {
        let said = live.unix("readonly", &format!("{command} swapplan {text}\nQUIT\n"));
        assert!(said.contains("\n530 ") && !said.contains("a_word_of_the_secret"), "{said}");
    }
}

#[test]
fn a_configuration_of_a_client_requires_nothing_that_the_operator_did_not_allow() {
    let live = Live::new(&[]);
    let secret = live.secret();
    live.b.file("x.so", "no library");
    let package = live.b.path("x.so").display().to_string();
    for text in [
        format!("require(library {secret});"),
        "require(library secret);".into(),
        "require(library lib/shared.click);".into(),
        format!("require(package {package});"),
        "require(package x);".into(),
    ] {
        live.b.file("new.click", &format!("{text} Idle -> Discard;"));
        for how in [&["--dry-run"][..], &[]] {
            let said = live.ctl(&[&["s", "swap", "new.click"], how].concat());
            let told = said.1.contains("may require no library") || said.1.contains("may not load packages");
            assert!(said.0 == 1 && told && !said.1.contains("a_word"), "{text} {how:?}: {said:?}");
            assert!(!said.1.contains("ELF") && !said.1.contains("not a package"), "{text}: {said:?}");
        }
    }
    let said = live.ctl(&["s", "load", "x.so"]);
    assert!(said.0 == 1 && said.1.contains("clients may not load packages"), "{said:?}");
}

#[test]
fn a_configuration_of_a_client_requires_libraries_of_the_folder_that_the_operator_named() {
    let live = Live::new(&["--library-path", "lib"]);
    let swap = |text: &str| {
        live.b.file("new.click", text);
        live.ctl(&["s", "swap", "new.click"])
    };
    for name in ["../secret", &live.secret(), "nothing.click"] {
        let said = swap(&format!("require(library {name}); Idle -> Discard;"));
        assert!(said.0 == 1 && !said.1.contains("a_word"), "{name}: {said:?}");
    }
    let said = swap("require(library shared.click); Idle -> Shared -> d :: Discard;");
    assert_eq!(said, (0, String::new()));
    assert_eq!(live.ctl(&["s", "read", "d.class"]).1, "Discard\n");
}

#[test]
fn the_operators_own_configuration_requires_what_it_likes() {
    let b = Bench::new();
    b.file("lib/a.click", "elementclass A { input -> output };");
    b.file("main.click", "require(library lib/a.click); InfiniteSource(LIMIT 1, STOP true) -> A -> Discard;");
    assert_eq!(b.run("castanet", &["run", "-q", "main.click"], "").code, 0);
    // Scripts of the operator's configuration have the operator's rights.
    let text = "Idle -> d :: Discard; Script(write hotconfig require(library lib/a.click); Idle -> A -> d :: Discard; DriverManager(stop))";
    let ran = b.run("castanet", &["run", "-q", "-R", "-e", text, "-h", "list"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn tcp_without_the_token_changes_elements_and_nothing_else() {
    let live = Live::new(&[]);
    let file = live.b.path("made").display().to_string();
    let said = live.tcp(&format!(
        "READ c.count\nWRITE c.reset\nCHECKWRITE hotconfig\nWRITE hotconfig Idle -> Discard\nWRITE swapplan Idle -> Discard\n\
         WRITE loadpackage x\nWRITE agg.write_text_file {file}\nWRITE agg.write_file {file}\nQUIT\n"
    ));
    let denied = |h: &str| format!("530 Permission denied for '{h}'\r\n");
    let want = format!(
        "Click::ControlSocket/1.3\r\n200 Read handler 'c.count' OK\r\nDATA 1\r\n0200 Write handler 'c.reset' OK\r\n\
         {0}{0}{1}{2}{3}{4}200 Goodbye!\r\n",
        denied("hotconfig"),
        denied("swapplan"),
        denied("loadpackage"),
        denied("agg.write_text_file"),
        denied("agg.write_file"),
    );
    assert_eq!(said, want);
    assert!(!live.b.path("made").exists());
    // The user of the router has all rights on a Unix socket.
    assert_eq!(live.ctl(&["s", "write", "agg.write_text_file", &file]).0, 0);
    assert!(live.b.path("made").exists());
}

#[test]
fn files_of_a_client_with_the_token_lie_below_the_folder_that_the_operator_named() {
    let live = Live::new(&["--library-path", "lib"]);
    let socket = "Idle -> agg :: AggregateCounter -> Discard; tcp :: ControlSocket(TCP, 0, TOKEN token);";
    live.b.file("with.click", socket);
    live.b.file("lib/inside", "an inner word");
    // The client's configurations name this token file.
    live.b.file("lib/token", TOKEN);
    std::fs::set_permissions(live.b.path("lib/token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(live.secret(), live.b.path("lib/link")).unwrap();
    std::os::unix::fs::symlink(live.b.path("victim"), live.b.path("lib/dangling")).unwrap();
    let port = || [live.port(), "--token".into(), "token".into()];
    let ctl = |call: &[&str]| live.ctl(&[&port().each_ref().map(String::as_str)[..], call].concat());
    let told = |said: &(i32, String), what: &str| {
        assert!(said.0 == 1 && said.1.contains("(--library-path)"), "{what}: {said:?}");
    };
    assert_eq!(live.ctl(&["s", "swap", "with.click"]), (0, String::new()));
    let (secret, victim) = (live.secret(), live.b.path("victim").display().to_string());
    // The client names forbidden files in calls of handlers of the operator's configuration.
    for name in [&victim[..], "../victim", "dangling", "../lib/x"] {
        told(&ctl(&["write", "agg.write_text_file", name]), name);
    }
    assert_eq!(ctl(&["write", "agg.write_text_file", "made"]), (0, String::new()));
    assert!(live.b.path("lib/made").exists());
    // The client sends configurations whose elements have forbidden files as arguments.
    for element in [
        "ToDump(@)",
        "ToIPSummaryDump(@)",
        "IPPrint(OUTFILE @) -> Discard",
        "Socket(UNIX, @)",
        "ARPPrint(OUTFILE @) -> Discard",
    ] {
        for name in [&victim[..], "../victim", "dangling"] {
            let element = element.replace('@', name);
            live.b.file("new.click", &format!("{socket} Idle -> {element};"));
            told(&ctl(&["swap", "new.click"]), &element);
        }
    }
    for text in [
        format!("FromDump({secret}) -> Discard"),
        "FromDump(../secret) -> Discard".into(),
        "ControlSocket(UNIX, ../new.sock)".into(),
    ] {
        live.b.file("new.click", &format!("{socket} {text};"));
        told(&ctl(&["swap", "new.click"]), &text);
    }
    // The client sends scripts whose instructions name forbidden files.
    let script = |body: &str| {
        live.b.file("new.click", &format!("{socket} s :: Script(TYPE PASSIVE, {body});"));
        assert_eq!(ctl(&["swap", "new.click"]), (0, String::new()), "{body}");
        ctl(&["read", "s.run"])
    };
    for name in [&secret[..], "../secret", "link", "/etc/hostname", "/proc/self/environ"] {
        for cat in ["cat", "catq"] {
            let said = script(&format!("return $({cat} {name})"));
            assert_eq!(said, (0, format!("$({cat} {name})\n")), "{name}");
        }
    }
    for name in [&victim[..], "../victim", "dangling"] {
        for body in
            ["print >@ \"x\"", "print >>@ \"x\"", "printn >@ \"x\"", "save agg.count @", "append agg.count @"]
        {
            script(&body.replace('@', name));
            assert!(!live.b.path("victim").exists(), "{body} {name}");
        }
    }
    assert_eq!(script("print >out \"word\", return $(cat inside) $(cat out)").1.trim(), "an inner word word");
    assert!(!live.b.path("victim").exists() && !live.b.path("new.sock").exists());
    // The user of the router may name any file.
    live.b.file("new.click", &format!("{socket} s :: Script(TYPE PASSIVE, return $(cat {secret}));"));
    assert_eq!(live.ctl(&["s", "swap", "new.click"]), (0, String::new()));
    assert!(ctl(&["read", "s.run"]).1.contains("a_word_of_the_secret"));
    assert_eq!(live.ctl(&["s", "write", "agg.write_text_file", &victim]), (0, String::new()));
    assert!(live.b.path("victim").exists());
}

#[test]
fn tcp_with_the_token_reconfigures_the_router() {
    let mut live = Live::new(&[]);
    live.b.file("with.click", "Idle -> c :: Counter -> Discard; tcp :: ControlSocket(TCP, 0, TOKEN token);");
    assert_eq!(live.ctl(&["s", "swap", "with.click"]), (0, String::new()));
    let port = live.port();
    live.b.file("new.click", "Idle -> n :: Null -> Discard;");
    let said = live.ctl(&[&port, "swap", "--dry-run", "new.click"]);
    assert!(said.0 == 1 && said.1.contains("Permission denied for 'swapplan'"), "{said:?}");
    live.b.file("wrong", "another-token-of-nobody");
    std::fs::set_permissions(live.b.path("wrong"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = live.ctl(&[&port, "--token", "wrong", "swap", "new.click"]);
    assert_eq!(said, (1, "castanet: Permission denied\n".into()));
    let said = live.ctl(&[&port, "--token", "token", "swap", "--dry-run", "new.click"]);
    assert!(said.0 == 0 && said.1.contains("+ n :: Null"), "{said:?}");
    let mut named = live.b.command("castanet");
    named.args(["ctl", &port, "swap", "new.click"]).env("CASTANET_TOKEN_FILE", live.b.path("token"));
    assert!(named.output().unwrap().status.success());
    assert_eq!(live.ctl(&["s", "read", "n.class"]).1, "Null\n");
    assert_eq!(live.ctl(&["s", "stop"]).0, 0);
    assert!(live.child.wait().unwrap().success());
}

#[test]
fn tcp_from_elsewhere_needs_the_token_for_everything() {
    let name = "tcp_from_elsewhere_needs_the_token_for_everything";
    castanet_testkit::namespace::inside(name, || {
        castanet_testkit::namespace::run("ip link set lo up; ip addr add 10.9.0.1/32 dev lo");
        let live = Live::new(&[]);
        let socket = "tcp :: ControlSocket(TCP, 0, LOCALHOST false, TOKEN token)";
        live.b.file("with.click", &format!("Idle -> c :: Counter -> Discard; {socket};"));
        assert_eq!(live.ctl(&["s", "swap", "with.click"]), (0, String::new()));
        let (near, far) = (live.port(), format!("10.9.0.1:{}", live.port()));
        let (near, far) = ([near.as_str()], [far.as_str()]);
        // A connection to 10.9.0.1 also comes from 10.9.0.1, so the server treats it as a connection from another host.
        for call in [&["read", "c.count"][..], &["read", "list"], &["write", "c.reset"], &["read", "none"]] {
            let said = live.ctl(&[&far[..], call].concat());
            assert!(
                said.0 == 1 && said.1.contains("clients of other hosts need the token"),
                "{call:?}: {said:?}"
            );
        }
        assert_eq!(live.ctl(&[&near[..], &["read", "c.count"]].concat()).0, 0);
        assert_eq!(live.ctl(&[&near[..], &["write", "c.reset"]].concat()), (0, String::new()));
        let with = [far[0], "--token", "token"];
        assert_eq!(live.ctl(&[&with[..], &["read", "c.count"]].concat()).0, 0);
        assert_eq!(live.ctl(&[&with[..], &["write", "c.reset"]].concat()), (0, String::new()));
    });
}

#[test]
fn a_token_file_that_others_can_read_stops_the_router_from_starting() {
    let b = Bench::new();
    b.file("token", TOKEN);
    std::fs::set_permissions(b.path("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = b.run("castanet", &["run", "--control-token", "token", "-p", "0", "-e", "Idle -> Discard"], "");
    assert!(ran.code == 1 && ran.err.contains("other users can access the token file"), "{ran:?}");
    let text = "Idle -> Discard; ControlSocket(TCP, 0, TOKEN token)";
    let ran = b.run("castanet", &["run", "-e", text], "");
    assert!(ran.code == 1 && ran.err.contains("other users can access the token file"), "{ran:?}");
}

#[test]
fn a_page_in_a_browser_cannot_drive_the_port() {
    let live = Live::new(&[]);
    let body = "WRITE c.reset\r\nWRITE stop\r\n";
    for first in ["POST / HTTP/1.1", "GET /?WRITE HTTP/1.1", "PUT / HTTP/1.1", "OPTIONS * HTTP/1.1"] {
        let length = body.len();
        let said = live.tcp(&format!(
            "{first}\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        assert!(!said.contains("200 "), "{first}: {said}");
    }
    assert_eq!(live.ctl(&["s", "read", "c.count"]).0, 0, "the router goes on");
}

#[test]
fn another_user_of_the_host_cannot_use_the_unix_socket() {
    let live = Live::new(&[]);
    // Everyone may open the socket file here, so that the server itself has to check the user.
    for name in ["", "s"] {
        std::fs::set_permissions(live.b.path(name), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut c = Command::new("setpriv");
    c.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(common::BINARY).arg("ctl");
    let c = c.arg(live.b.path("s")).args(["read", "version"]).output();
    let Ok(out) = c.map_err(|e| e.to_string()) else {
        println!("SKIP another_user_of_the_host_cannot_use_the_unix_socket: there is no setpriv");
        return;
    };
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if said.contains("setpriv:") {
        println!("SKIP another_user_of_the_host_cannot_use_the_unix_socket: {}", said.trim());
        return;
    }
    assert!(!out.status.success() && said.contains("Permission denied"), "{said}");
    assert_eq!(live.ctl(&["s", "read", "version"]).0, 0);
}
