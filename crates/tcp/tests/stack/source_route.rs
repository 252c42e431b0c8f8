// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source routes (RFC 9293, section 3.9.2.1) with the kernel's TCP, over a host between the two: a router of Castanet that follows them.

use super::{count, during, text};
use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_testkit::namespace::{has_tun, inside};
use castanet_testkit::{Watchdog, until};
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;

/// A stack behind the host 10.77.0.9, which is also reached directly.
fn router(arguments: &str) -> String {
    format!(
        "tun :: KernelTun(10.77.0.1/24, DEVNAME tcp0) -> CheckIPHeader -> there :: IPClassifier(dst host 10.77.0.9, -)
            -> IPGWOptions(10.77.0.9, SOURCE_ROUTE follow) -> there_via :: Counter -> tcp :: TCPStack(10.77.0.2{arguments});
         there [1] -> there_directly :: Counter -> tcp;
         tcp -> back :: IPClassifier(dst host 10.77.0.9, -)
            -> IPGWOptions(10.77.0.9, SOURCE_ROUTE follow) -> back_via :: Counter -> tun;
         back [1] -> back_directly :: Counter -> tun;
         TCPEcho(tcp, PORT 7); source :: TCPSource(tcp, LIMIT 300000);"
    )
}

/// Lets the kernel take packets with source routes, from devices that are created later.
fn kernel_takes_routes() {
    for device in ["all", "default"] {
        std::fs::write(format!("/proc/sys/net/ipv4/conf/{device}/accept_source_route"), "1").unwrap();
    }
}

/// The way that packets have taken: the numbers over the host and directly, there and back.
fn ways(r: &castanet_runtime::Running) -> [u64; 4] {
    ["there_via", "there_directly", "back_via", "back_directly"].map(|c| count(r, c, "count"))
}

/// A client whose packets take a loose source route over the host (ip(7), IP_OPTIONS). It prints what went wrong.
const CLIENT: &str = "
import socket, sys, threading
s = socket.socket()
s.settimeout(float(sys.argv[1]))
s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([131, 7, 4, 10, 77, 0, 9, 0]))
try:
    s.connect(('10.77.0.2', 7))
except TimeoutError:
    print('timeout')
    sys.exit()
sent = bytes(i * 7 % 251 for i in range(200000))
def write():
    s.sendall(sent)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=write).start()
read = b''
while part := s.recv(65536):
    read += part
print('right' if read == sent else f'{len(read)} bytes')
";

fn client(seconds: &str) -> Option<String> {
    let out = Command::new("python3").args(["-c", CLIENT, seconds]).output().ok()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// MUST-53: a connection that the kernel begins along a route is answered along the way back.
#[test]
fn the_kernel_gives_the_route() {
    inside("source_route::the_kernel_gives_the_route", || {
        if !has_tun() {
            return;
        }
        if Command::new("python3").arg("--version").output().is_err() {
            return println!("SKIP: no python3, which sets IP options");
        }
        let _watchdog = Watchdog::arm();
        kernel_takes_routes();
        during(&router(""), |r| {
            assert_eq!(client("60").unwrap(), "right");
            until("the connection has ended", || count(r, "tcp", "count") == 0);
            let [there_via, there_directly, back_via, back_directly] = ways(r);
            assert!(there_via > 10 && back_via > 10, "{there_via} {back_via}");
            assert_eq!((there_directly, back_directly), (0, 0));
            // A super-packet is one packet.
            assert!((10..=there_via).contains(&count(r, "tcp", "routed")));
        });
        // A stack that does not want it drops the SYN.
        during(&router(", SOURCEROUTES false"), |r| {
            assert_eq!(client("0.2").unwrap(), "timeout");
            let [there_via, _, back_via, back_directly] = ways(r);
            assert!(there_via > 0);
            assert_eq!((back_via, back_directly, count(r, "tcp", "opened")), (0, 0, 0));
        });
    });
}

/// MUST-51: the user of the stack gives a route, and the kernel answers along the way back.
#[test]
fn the_user_gives_the_route() {
    inside("source_route::the_user_gives_the_route", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        kernel_takes_routes();
        for mark in ["@", "!"] {
            during(&router(""), |r| {
                let listener = TcpListener::bind("10.77.0.1:9").unwrap();
                let connect = format!("10.77.0.1:9{mark}10.77.0.9 source");
                r.write(Origin::Operator, Some("tcp"), "connect", &connect).unwrap();
                let (mut stream, mut read) = (listener.accept().unwrap().0, Vec::new());
                stream.read_to_end(&mut read).unwrap();
                let right = read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8);
                assert!(right && read.len() == 300_000, "{}", read.len());
                let [there_via, there_directly, back_via, back_directly] = ways(r);
                assert!(there_via > 10 && back_via > 100, "{there_via} {back_via}");
                assert_eq!((there_directly, back_directly), (0, 0), "{}", text(r, "tcp", "connections"));
            });
        }
    });
}
