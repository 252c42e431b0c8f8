// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps of a router while real hosts send packets through it.

use crate::net::{castanet, from_a, hosts, lab};
use castanet_lab::frames::{Ip, ip_in};
use castanet_lab::{Host, Router, Wire};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of swaps.
const SWAPS: usize = 1000;

/// A client of the router's control socket.
pub struct Client(BufReader<UnixStream>);

impl Client {
    pub fn new(path: &Path) -> Client {
        let deadline = Instant::now() + Duration::from_secs(100);
        let stream = loop {
            match UnixStream::connect(path) {
                Ok(s) => break s,
                Err(e) => assert!(Instant::now() < deadline, "{}: {e}", path.display()),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(Duration::from_secs(200))).unwrap_or_else(|e| panic!("{e}"));
        let mut client = Client(BufReader::new(stream));
        assert_eq!(client.line(), "Click::ControlSocket/1.3");
        client
    }
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap_or_else(|e| panic!("{e}"));
        line.trim_end().to_string()
    }
    pub fn say(&mut self, text: &str) -> String {
        self.0.get_mut().write_all(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let mut all = Vec::new();
        loop {
            all.push(self.line());
            let last = all.last().map(String::as_str).unwrap_or_default();
            if last.is_empty() || last.as_bytes().get(3) == Some(&b' ') {
                return all.join("\n");
            }
        }
    }
    pub fn swap(&mut self, text: &str) {
        let answer = self.say(&format!("WRITEDATA hotconfig {}\r\n{text}", text.len()));
        assert!(answer.starts_with("200"), "{answer}\n{text}");
    }
    pub fn read(&mut self, handler: &str) -> String {
        let answer = self.say(&format!("READ {handler}\r\n"));
        assert!(answer.starts_with("200"), "{handler}: {answer}");
        let length = self.line().strip_prefix("DATA ").and_then(|n| n.parse().ok()).unwrap_or_default();
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).unwrap_or_else(|e| panic!("{e}"));
        String::from_utf8_lossy(&data).trim().to_string()
    }
    pub fn number(&mut self, handler: &str) -> u64 {
        self.read(handler).parse().unwrap_or_else(|e| panic!("{handler}: {e}"))
    }
}

/// Starts a router that permits swaps, with its control socket in a directory.
fn start(folder: &Path, r: Host, workers: usize, text: &str, devices: usize) -> (Router, Client) {
    let socket = folder.join("router.sock");
    let (name, workers) = (socket.display().to_string(), workers.to_string());
    let r = Router::run(r, castanet(), &["-q", "-R", "-j", &workers, "-u", &name, "-e", text], devices);
    let client = Client::new(&socket);
    (r, client)
}

/// Returns two versions of a configuration with a bridge, a TAP device, a server and a trace. They differ in
/// names and positions, and one has an additional element.
fn texts(folder: &Path) -> [String; 2] {
    let trace = folder.join("trace.pcap").display().to_string();
    let common = format!(
        "in0 :: FromDevice(eth0, PROMISC true, SNIFFER false) -> c0 :: Counter -> t :: Tee(2);
         t[1] -> copies :: Queue(100000) -> Unqueue -> dump :: ToDump({trace}, SNAPLEN 60);
         in1 :: FromDevice(eth1, PROMISC true, SNIFFER false) -> c1 :: Counter -> q1 :: Queue(5000) -> out0 :: ToDevice(eth0);
         echo :: Socket(TCP, 127.0.0.1, 7777) -> e :: Queue -> echo;
         tap :: KernelTap(10.9.0.1/24) -> Discard;
         timed :: TimedSource(0.01) -> ticks :: Counter -> Discard;"
    );
    [
        format!("{common} t[0] -> q0 :: Queue(5000) -> out1 :: ToDevice(eth1);"),
        // Devices are matched by device name, not by element name.
        format!(
            "y :: Idle -> Discard; {common} t[0] -> q0 :: Queue(5000) -> x :: Counter -> ToDevice(eth1);"
        )
        .replace("in1 ::", "")
        .replace("out0 ::", "")
        .replace("tap :: KernelTap", "other :: KernelTap")
        .replace("Idle -> tap", "Idle -> other"),
    ]
}

/// Returns the number of frames that the devices have received but the router has not read, because they
/// arrived before it started.
fn unread(router: &Router, client: &mut Client) -> u64 {
    let received: u64 = ["eth0", "eth1"].map(|d| router.host.statistic(d, "rx/packets")).iter().sum();
    received - client.number("c0.count") - client.number("c1.count")
}

/// Receives numbered frames until all below `end` have arrived. `next` is the first number that is missing.
fn receive(wire: &mut Wire, next: &mut u16, end: u16) {
    if *next >= end {
        return;
    }
    let arrived = wire.find(Duration::from_secs(200), |frame| {
        let ip = ip_in(&frame.bytes).filter(|ip| ip.payload.ends_with(b"numbered"))?;
        assert_eq!(ip.header.identification, *next, "lost, twice, or out of order");
        *next += 1;
        (*next == end).then_some(())
    });
    assert!(arrived.is_some(), "only {next} of {end} frames have arrived");
}

fn stream(workers: usize) {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (a, r, b) = hosts(&lab);
    // The bridge puts both hosts on one network.
    b.ip("address flush dev eth0");
    b.address("eth0", "10.0.0.3/24");
    r.ip("link set lo up");
    let texts = texts(folder.path());
    let (router, mut client) = start(folder.path(), r, workers, &texts[0], 2);
    a.run("ping -c 1 -W 60 10.0.0.3").good();
    let before = unread(&router, &mut client);
    let (mut from, mut to) = (a.wire("eth0"), b.wire("eth0"));
    // A client of the router's server, on the router's host. It must stay connected.
    let mut held = router.host.command("bash");
    held.args([
        "-c",
        "exec 3<>/dev/tcp/127.0.0.1/7777; for i in $(seq 100); do echo line $i >&3; read -r -t 20 x <&3 || exit 1; \
         [ \"$x\" = \"line $i\" ] || exit 2; sleep 0.02; done; echo all there",
    ]);
    let held = castanet_lab::Process::start(held);
    let device = || router.host.run("cat /sys/class/net/tap0/ifindex").stdout.trim().to_string();
    let tap = device();
    let (mut sent, mut standing, mut memory) = (0_u16, Vec::new(), None);
    let mut next = 0;
    for i in 1..=SWAPS {
        if i % 2 == 1 {
            // The receive buffer of the wire may hold only 256 frames, so wait until most frames have been received.
            receive(&mut to, &mut next, sent.saturating_sub(120));
            let frames: Vec<Vec<u8>> = (0..40)
                .map(|k| from_a(&Ip { id: sent + k, ..Ip::udp("10.0.0.2", "10.0.0.3", b"numbered") }))
                .collect();
            from.send_all(&frames);
            sent += 40;
        }
        client.swap(&texts[i % 2]);
        standing.push(client.number("c0.count"));
        if i == SWAPS / 4 {
            memory = router.memory();
        }
    }
    let grown = router.memory().zip(memory).map(|(after, before)| after.0.saturating_sub(before.0));
    assert!(grown.is_some_and(|g| g < 32 << 20), "{grown:?} bytes more after {SWAPS} swaps");
    receive(&mut to, &mut next, sent);
    assert!(standing.is_sorted(), "a count that went back");
    assert_eq!(unread(&router, &mut client), before, "frames that were received and not read");
    assert_eq!(device(), tap, "the TAP device was made again");
    assert!(client.number("ticks.count") > 0);
    let held = held.wait(Duration::from_secs(200));
    assert!(held.ok() && held.stdout.contains("all there"), "{}{}", held.stdout, held.stderr);
    // A configuration that cannot run leaves the old one running.
    for (wrong, why) in [
        (texts[0].replace("eth1", "nosuch"), "nosuch"),
        (texts[0].replace("Tee(2)", "Tee(2"), "error"),
        (texts[0].replace("KernelTap(10.9.0.1/24)", "KernelTap(10.9.0.1/24) -> Nothing"), "Nothing"),
    ] {
        let answer = client.say(&format!("WRITEDATA hotconfig {}\r\n{wrong}", wrong.len()));
        assert!(answer.starts_with("520") && answer.contains(why), "{answer}");
        a.run("ping -c 1 -W 60 10.0.0.3").good();
    }
    // Wait until all packets are in the trace. The counts may differ at first, because the hosts occasionally send
    // packets of their own.
    let deadline = Instant::now() + Duration::from_secs(100);
    let dumped = loop {
        let dumped = client.number("dump.count");
        match client.number("c0.count") {
            count if count == dumped => break dumped,
            count => assert!(Instant::now() < deadline, "{count} packets, {dumped} of them in the trace"),
        }
    };
    client.say("WRITE stop\r\n");
    router.stop();
    let trace = std::fs::read(folder.path().join("trace.pcap")).unwrap_or_default();
    // The file header has 24 bytes. Each record has a header of 16 bytes, and 42 (ARP) to 60 bytes of the frame.
    assert!(trace.len() as u64 > 24 + dumped * (16 + 42), "{} bytes for {dumped} packets", trace.len());
}

#[test]
fn a_stream_crosses_while_the_configuration_changes() {
    stream(1);
}

#[test]
fn a_stream_crosses_while_the_configuration_changes_on_two_workers() {
    stream(2);
}
