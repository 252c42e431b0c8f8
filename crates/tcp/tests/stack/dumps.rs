// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of the same exchanges with this TCP and with Linux's own, which docs/tcp-linux.md compares. With `CASTANET_DUMPS=FOLDER` the
//! test writes them into a folder.

use super::during;
use super::kernel::{data, echoed, host};
use castanet_testkit::namespace::{has_tun, inside_with_bpf, run};
use castanet_testkit::{Watchdog, until};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A capture without packets.
const EMPTY: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

/// tcpdump, which writes the packets of a device to a file.
struct Dump(Child, String);

impl Dump {
    fn start(device: &str, file: String) -> Dump {
        let _ = std::fs::remove_file(&file);
        let arguments = ["-Z", "root", "-i", device, "-U", "-w", &file, "-s", "100", "tcp"];
        let child = Command::new("tcpdump").args(arguments).stderr(Stdio::null()).spawn().unwrap();
        until("tcpdump listens", || std::fs::metadata(&file).is_ok_and(|m| m.len() >= 24));
        Dump(child, file)
    }
    /// The lines of the dump, when the last FIN has been acknowledged, with times since the first packet.
    fn end(mut self) -> Vec<String> {
        let mut text = String::new();
        until("both FINs are acknowledged", || {
            text = run(&format!("tcpdump -Z root -nr {} -ttttt 2>/dev/null || true", self.1));
            let fins = text.lines().filter(|l| l.contains("Flags [F")).count();
            fins >= 2 && text.lines().last().is_some_and(|l| l.contains("Flags [.]"))
        });
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        text.lines().map(str::to_string).collect()
    }
}

/// The exchanges: their names, the ports, and what the user of the kernel does.
type Exchange = (&'static str, u16, fn(TcpStream));
const EXCHANGES: [Exchange; 3] = [
    ("echo", 7, |mut stream| {
        let mut back = [0; 5];
        for _ in 0..2 {
            stream.write_all(b"hello").unwrap();
            stream.read_exact(&mut back).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut back).unwrap(), 0);
    }),
    ("bulk", 7, |stream| {
        let sent = data(100_000);
        assert!(echoed(stream, &sent, || ()) == sent);
    }),
    ("close", 19, |mut stream| {
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 5000);
    }),
];

/// The applications of the stack, once more, on Linux.
fn serve(listener: &TcpListener, port: u16) {
    let mut stream = listener.accept().unwrap().0;
    if port == 19 {
        return stream.write_all(&data(5000)).unwrap();
    }
    let mut buffer = [0; 16_384];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            n => stream.write_all(&buffer[..n]).unwrap(),
        }
    }
}

/// The lines that a server has sent.
fn of_server(lines: &[String], port: u16) -> Vec<&String> {
    lines.iter().filter(|l| l.contains(&format!(".{port} > "))).collect()
}

#[test]
fn exchanges_with_this_tcp_and_with_linux() {
    const NAME: &str = "dumps::exchanges_with_this_tcp_and_with_linux";
    // tcpdump gives up the rights that it does not need, which is impossible in a user namespace of its own.
    inside_with_bpf(NAME, || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        // The loopback device gets the packet size of an Ethernet, and sends no super-packets.
        run("ip link set lo mtu 1500 up");
        run("ethtool -K lo tso off gso off gro off");
        let temporary = tempfile::tempdir().unwrap();
        let empty = temporary.path().join("empty.pcap");
        std::fs::write(&empty, EMPTY).unwrap();
        match Command::new("tcpdump").args(["-Z", "root", "-r"]).arg(&empty).output() {
            Ok(o) if o.status.success() => {}
            Ok(o) => return println!("SKIP: {NAME}: {}", String::from_utf8_lossy(&o.stderr).trim()),
            Err(e) => return println!("SKIP: {NAME}: {e}"),
        }
        let folder = std::env::var("CASTANET_DUMPS").unwrap_or(temporary.path().display().to_string());
        let file = |name: &str, who: &str| format!("{folder}/{name}-{who}.pcap");
        let mut dumps = Vec::new();
        during(&host("", "", "TCPEcho(tcp, PORT 7); TCPSource(tcp, PORT 19, LIMIT 5000);"), |_| {
            for (name, port, user) in EXCHANGES {
                let dump = Dump::start("tcp0", file(name, "castanet"));
                user(TcpStream::connect(("10.77.0.2", port)).unwrap());
                dumps.push((name, "castanet", port, dump.end()));
            }
        });
        for (name, port, user) in EXCHANGES {
            let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
            let dump = Dump::start("lo", file(name, "linux"));
            std::thread::scope(|s| {
                s.spawn(|| serve(&listener, port));
                user(TcpStream::connect(("127.0.0.1", port)).unwrap());
            });
            dumps.push((name, "linux", port, dump.end()));
        }
        if std::env::var_os("CASTANET_DUMPS").is_some() {
            for (name, who, _, lines) in &dumps {
                std::fs::write(format!("{folder}/{name}-{who}.txt"), lines.join("\n") + "\n").unwrap();
            }
        }
        for (name, who, port, lines) in &dumps {
            compare(name, *who == "castanet", &of_server(lines, *port));
        }
    });
}

/// Checks the server's segments: options, numbers of segments in the echo, FINs and sizes.
fn compare(name: &str, ours: bool, lines: &[&String]) {
    let shown = || format!("{name} {ours}: {lines:#?}");
    let has = |words: &[&str]| lines.iter().any(|l| words.iter().all(|w| l.contains(w)));
    let empty = lines.iter().filter(|l| l.contains("Flags [.]") && l.ends_with("length 0")).count();
    let order = if ours { "[mss 1460,nop,wscale 3,nop,nop,TS val" } else { "[mss 1460,sackOK,TS val" };
    assert!(lines.first().is_some_and(|l| l.contains(order)), "{}", shown());
    match (name, ours) {
        // A window update, four segments, and the acknowledgement of the FIN.
        ("echo", true) => assert_eq!((lines.len(), empty), (6, 2), "{}", shown()),
        // Linux needs no update, and its FIN has the acknowledgement of the other one.
        ("echo", false) => assert!((4..=6).contains(&lines.len()) && has(&["Flags [F.]"]), "{}", shown()),
        ("close", true) => assert!(has(&["Flags [FP.]"]), "{}", shown()),
        ("close", false) => assert!(has(&["Flags [F.]"]), "{}", shown()),
        _ => assert!(has(&["length 1448"]), "{}", shown()),
    }
}
