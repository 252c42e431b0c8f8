// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification (RFC 3168) with the kernel's TCP, through classes that mark packets.

use super::kernel::{connect, data, echoed, host};
use super::{count, during};
use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_testkit::Watchdog;
use castanet_testkit::namespace::{has_tun, inside, run};
use std::io::Read;
use std::net::{TcpListener, TcpStream};

/// Marks a tenth of the packets that may be marked, and counts the segments with CWR, but for SYNs.
const MARKS: &str = "elementclass Marks {
        input -> cwr :: Classifier(33/80%82, -) -> reduced :: Counter -> c :: Classifier(1/02%03, -)
            -> some :: RandomSample(0.9) -> output;
        cwr [1] -> c; c [1] -> output; some [1] -> MarkIPCE -> output;
    }";

/// A router with these settings of the stack.
fn router(ecn: &str) -> String {
    let applications = "TCPEcho(tcp, PORT 7); source :: TCPSource(tcp, LIMIT 1000000);";
    let router = host("to :: Marks ->", "back :: Marks ->", applications);
    format!("{MARKS} {}", router.replace("(10.77.0.2)", &format!("(10.77.0.2{ecn})")))
}

/// A number that the kernel counts.
fn kernel(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
    let pair = lines.chunks(2).find_map(|pair| {
        let at = pair[0].iter().position(|word| *word == name)?;
        pair[1][at].parse().ok()
    });
    pair.unwrap_or_else(|| panic!("the kernel does not count {name}"))
}

fn kernel_ecn(how: u8) {
    std::fs::write("/proc/sys/net/ipv4/tcp_ecn", how.to_string()).unwrap();
}

/// The kernel's description of a connection. Those of earlier stacks may still be there.
fn shown(stream: &TcpStream) -> String {
    let (ours, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    run(&format!("ss -Htino src {ours} dst {peer}"))
}

/// The kernel offers ECN, and the stack accepts it by default. Each end echoes the marks of the other one, which says that it has reduced
/// its window.
#[test]
fn the_kernel_offers_it() {
    inside("ecn::the_kernel_offers_it", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        kernel_ecn(1);
        during(&router(""), |r| {
            let sent = data(2_000_000);
            let stream = connect(7);
            assert!(shown(&stream).contains(" ecn "), "{}", shown(&stream));
            let before = kernel("InCEPkts");
            assert!(echoed(stream, &sent, || ()) == sent);
            assert!(count(r, "tcp", "marked") > 0 && kernel("InCEPkts") > before);
            assert!(count(r, "to/reduced", "count") > 0 && count(r, "back/reduced", "count") > 0);
        });
        // A stack that does not want it.
        during(&router(", ECN off"), |r| {
            let sent = data(100_000);
            let stream = connect(7);
            assert!(!shown(&stream).contains(" ecn "), "{}", shown(&stream));
            assert!(echoed(stream, &sent, || ()) == sent);
            assert_eq!(count(r, "tcp", "marked"), 0);
        });
    });
}

/// The stack offers ECN, if it is asked to, and the kernel accepts it, as it does by default.
#[test]
fn the_stack_offers_it() {
    inside("ecn::the_stack_offers_it", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        for (how, ecn, used) in [(2, ", ECN offer", true), (0, ", ECN offer", false), (2, "", false)] {
            kernel_ecn(how);
            during(&router(ecn), |r| {
                let before = kernel("InCEPkts");
                let listener = TcpListener::bind("10.77.0.1:9").unwrap();
                r.write(Origin::Operator, Some("tcp"), "connect", "10.77.0.1:9 source").unwrap();
                let (mut stream, mut read) = (listener.accept().unwrap().0, Vec::new());
                assert_eq!(shown(&stream).contains(" ecn "), used, "{}", shown(&stream));
                stream.read_to_end(&mut read).unwrap();
                let right = read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8);
                assert!(right && read.len() == 1_000_000, "{}", read.len());
                assert_eq!(kernel("InCEPkts") > before, used);
                assert_eq!(count(r, "back/reduced", "count") > 0, used);
            });
        }
    });
}
