// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios between hosts with `castanet run --driver xdp`: the firewall of conf/, TCP streams, gateways, and bad circumstances.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod disturbances;
mod gateways;

use castanet_testkit::host::Host;
use castanet_testkit::namespace::{inside_with_bpf, run};
use castanet_testkit::until;
use common::live_xdp::{add_host, came_up, has_driver_xdp, number, router, start, start_in_kernel};
use common::{BINARY, Live, signal};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs `f` on a thread in the namespace of a host.
fn on<R: Send + 'static>(host: &Host, f: impl FnOnce() -> R + Send + 'static) -> std::thread::JoinHandle<R> {
    let id = host.id();
    std::thread::spawn(move || {
        castanet_io::namespace::enter(id).unwrap();
        f()
    })
}

/// The bytes of a stream.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64 / 8).flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// Sends a stream by TCP from one host to another and back; every byte must be right.
fn stream(from: &Host, to: &Host, address: &str, length: usize) {
    stream_when(from, to, address, length, || true);
}

/// The messages before a stream: they ask for an echo and announce the stream.
const MESSAGES: [[u8; 4]; 2] = [*b"echo", *b"next"];

/// Like [`stream`], but the hosts exchange short messages first, until `settled` is true after one of them.
fn stream_when(
    from: &Host,
    to: &Host,
    address: &str,
    length: usize,
    mut settled: impl FnMut() -> bool + Send + 'static,
) {
    let [echo, next] = MESSAGES;
    let address: SocketAddr = address.parse().unwrap();
    let limit = Some(Duration::from_secs(200));
    let (ready, listening) = std::sync::mpsc::channel();
    let server = on(to, move || {
        let listener = TcpListener::bind(("0.0.0.0", address.port())).unwrap();
        ready.send(()).unwrap();
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(limit).unwrap();
        let mut message = echo;
        while message == echo {
            stream.read_exact(&mut message).unwrap();
            stream.write_all(&message).unwrap();
        }
        let mut got = vec![0; length];
        stream.read_exact(&mut got).unwrap();
        assert!(got == bytes(length), "the bytes differ");
        stream.write_all(&got).unwrap();
    });
    listening.recv().unwrap();
    let client = on(from, move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(limit).unwrap();
        let mut message = echo;
        let mut exchange = |sent: [u8; 4]| {
            stream.write_all(&sent).unwrap();
            stream.read_exact(&mut message).unwrap();
            assert_eq!(message, sent);
        };
        exchange(echo);
        while !settled() {
            exchange(echo);
        }
        exchange(next);
        stream.write_all(&bytes(length)).unwrap();
        let mut got = vec![0; length];
        stream.read_exact(&mut got).unwrap();
        assert!(got == bytes(length), "the bytes differ on the way back");
    });
    client.join().unwrap();
    server.join().unwrap();
}

/// Asserts that at least 99 of 100 packets of those that two devices have received did not come up.
fn mostly_in_the_kernel(socket: &Path, received: u64, before: u64) {
    let up = came_up(socket) - before;
    assert!(received > 1000 && up * 100 <= received, "{up} of {received} came up");
    println!("{up} of {received} packets came up");
}

/// The firewall of conf/firewall.click between the devices r0, outside, and r1.
fn firewall() -> (String, String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/firewall.click");
    let text = std::fs::read_to_string(path).unwrap();
    let (rules, rest) = text.split_once("FromIPSummaryDump(").unwrap();
    let data = rest.split_once(", STOP true").unwrap().0;
    let text = format!(
        "{rules}
         inward :: Queue(2000) -> ToDevice(r1); outward :: Queue(2000) -> ToDevice(r0);
         FromDevice(r0, PROMISC true, SNIFFER false) -> kind :: Classifier(12/0806, 12/0800, -);
         kind [0] -> inward; kind [1] -> Strip(14) -> CheckIPHeader -> sent :: Counter -> rules; kind [2] -> other :: Discard;
         rules [0] -> passed :: Counter -> Unstrip(14) -> inward; rules [1] -> blocked :: Counter -> Discard;
         FromDevice(r1, PROMISC true, SNIFFER false) -> back :: Classifier(12/0806, 12/0800, -);
         back [0] -> outward; back [1] -> replies :: Counter -> outward; back [2] -> other;"
    );
    (text, data.to_string())
}

/// Runs a configuration on a host.
fn castanet(host: &Host, text: &str) -> Live {
    let net = format!("--net=/proc/{}/ns/net", host.id());
    let mut c = Command::new("nsenter");
    c.args([&net, "--", BINARY, "run", "-q", "-e", text]);
    Live(c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn the_firewall_decides_in_the_kernel() {
    inside_with_bpf("the_firewall_decides_in_the_kernel", || {
        if !has_driver_xdp() {
            return;
        }
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let (a, b) = (add_host(0), add_host(1));
        let (text, data) = firewall();
        let folder = tempfile::tempdir().unwrap();
        let mut tables = Vec::new();
        for driver in ["packet", "xdp"] {
            let socket = folder.path().join(driver);
            let live = start(&socket, &["--driver", driver], &text);
            let dump = folder.path().join(format!("{driver}.dump"));
            let capture = castanet(
                &b,
                &format!(
                    "FromDevice(port, PROMISC true, SNIFFER false) -> Classifier(12/0800 6/020000000001) -> Strip(14) -> CheckIPHeader
                     -> ToIPSummaryDump({}, CONTENTS ip_src sport ip_dst dport ip_proto tcp_flags)",
                    dump.display()
                ),
            );
            until("it captures", || std::fs::metadata(&dump).is_ok());
            let mut sender = castanet(
                &a,
                &format!(
                    "FromIPSummaryDump({data}, STOP true, CHECKSUM true) -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
                     -> Queue -> t :: ToDevice(port); DriverManager(pause, wait 0.1s, stop)"
                ),
            );
            assert!(sender.0.wait().unwrap().success());
            until("all packets have arrived", || number(&socket, "sent.count") >= 33);
            let counts = ["sent", "passed", "blocked"].map(|e| number(&socket, &format!("{e}.count")));
            assert_eq!(counts, [33, 15, 18], "--driver {driver}");
            until("the last one has arrived", || {
                let text = b.run("cat /proc/net/dev");
                let port = text.lines().find_map(|l| l.trim().strip_prefix("port:")).unwrap();
                port.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
                    >= 15 * (1 + tables.len() as u64)
            });
            signal(capture.0.id(), "INT");
            let mut capture = capture;
            capture.0.wait().unwrap();
            let text = std::fs::read_to_string(&dump).unwrap();
            let mut rows: Vec<String> =
                text.lines().filter(|l| !l.starts_with('!')).map(String::from).collect();
            // Packets that come up may be overtaken by those of other flows.
            rows.sort();
            assert_eq!(rows.len(), 15, "--driver {driver}: {rows:?}");
            tables.push(rows);
            drop(live);
            until("the device is free", || !run("ip link show r0; ip link show r1").contains("xdp"));
        }
        assert_eq!(tables[0], tables[1]);
        // A connection to a permitted port, and one to another port.
        for (host, own, other) in [(&a, "20.1.1.7/8", "10.1.0.0/16"), (&b, "10.1.0.1/16", "20.0.0.0/8")] {
            host.run(&format!("ip address add {own} dev port"));
            let source = own.split('/').next().unwrap();
            host.run(&format!("ip route add {other} dev port src {source}"));
        }
        let socket = folder.path().join("s");
        let _live = start_in_kernel(&socket, &[], &text);
        stream(&a, &b, "10.1.0.1:80", 20 << 20);
        mostly_in_the_kernel(&socket, number(&socket, "sent.count") + number(&socket, "replies.count"), 0);
        let blocked = number(&socket, "blocked.count");
        let refused = on(&a, || {
            let address = "10.1.0.1:81".parse().unwrap();
            TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_err()
        });
        assert!(refused.join().unwrap());
        assert!(number(&socket, "blocked.count") > blocked);
    });
}

#[test]
fn streams_cross_the_ip_router_in_the_kernel() {
    inside_with_bpf("streams_cross_the_ip_router_in_the_kernel", || {
        if !has_driver_xdp() {
            return;
        }
        let (a, b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _live = start_in_kernel(&socket, &[], &router());
        let received =
            || number(&socket, "one/FromDevice@1.count") + number(&socket, "two/FromDevice@1.count");
        stream(&a, &b, "10.0.1.2:7777", 20 << 20);
        mostly_in_the_kernel(&socket, received(), 0);
        // The MTU of an interface becomes smaller and larger again. Meanwhile nothing that is sent exceeds it.
        let (up, before) = (came_up(&socket), received());
        for mtu in [1300, 1500] {
            run(&format!("ip link set r1 mtu {mtu}"));
            b.run(&format!("ip link set port mtu {mtu}"));
            stream(&b, &a, "10.0.0.2:7778", 2 << 20);
            stream(&a, &b, "10.0.1.2:7779", 2 << 20);
        }
        mostly_in_the_kernel(&socket, received() - before, up);
    });
}
