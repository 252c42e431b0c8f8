// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path MTU discovery, with the kernel at the other end, and with the kernel as the router in the middle.

use super::kernel::{connect, data, echoed};
use super::{count, during};
use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_testkit::namespace::{has_tun, inside, run};
use castanet_testkit::until;
use std::io::{ErrorKind, Read};

/// A stack behind a hop that lets packets of 1000 bytes through. `back` is on the way of its packets to the hop.
fn narrow(arguments: &str, back: &str) -> String {
    format!(
        "tun :: KernelTun(10.77.0.1/24, DEVNAME tcp0) -> CheckIPHeader -> to :: IPFragmenter(1000)
            -> tcp :: TCPStack(10.77.0.2{arguments}) -> {back} from :: IPFragmenter(1000) -> tun;
         to [1] -> ICMPError(10.77.0.9, unreachable, needfrag, PMTU 1000) -> tun;
         from [1] -> ICMPError(10.77.0.9, unreachable, needfrag, PMTU 1000) -> tcp;
         TCPEcho(tcp, PORT 7); TCPSource(tcp, PORT 19, LIMIT 100000);"
    )
}

#[test]
fn the_kernel_is_behind_a_narrow_hop() {
    inside("path_mtu::the_kernel_is_behind_a_narrow_hop", || {
        if !has_tun() {
            return;
        }
        let sent = data(300_000);
        for superpackets in ["", ", SUPERPACKETS false"] {
            during(&narrow(&format!(", PATHMTU true{superpackets}"), ""), |r| {
                assert!(echoed(connect(7), &sent, || ()) == sent);
                assert!(count(r, "tcp", "size_errors") > 0);
                assert_eq!((count(r, "from", "fragments"), count(r, "tcp", "reset")), (0, 0));
                // After the first errors all segments fit.
                assert!(count(r, "from", "drops") < 60);
            });
        }
        // Without it, packets are fragmented.
        during(&narrow("", ""), |r| {
            assert!(echoed(connect(7), &sent, || ()) == sent);
            assert!(count(r, "from", "fragments") > 200);
            assert_eq!((count(r, "from", "drops"), count(r, "tcp", "size_errors")), (0, 0));
        });
    });
}

/// If the packets of a stack must not be fragmented, but it does not discover the path MTU, no large segment arrives.
#[test]
fn without_discovery_no_large_segment_passes() {
    inside("path_mtu::without_discovery_no_large_segment_passes", || {
        if !has_tun() {
            return;
        }
        let mark = "StoreData(6, \\<40>) -> SetIPChecksum ->";
        during(&narrow(", SUPERPACKETS false", mark), |r| {
            let mut stream = connect(19);
            // Three segments in the first window, and one that is sent again.
            until("the first segment was resent", || count(r, "tcp", "soft_errors") > 3);
            stream.set_nonblocking(true).unwrap();
            assert_eq!(stream.read(&mut [0; 100]).unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(count(r, "tcp", "size_errors"), 0);
        });
    });
}

#[test]
fn the_kernel_is_the_router_of_a_narrow_link() {
    inside("path_mtu::the_kernel_is_the_router_of_a_narrow_link", || {
        if !has_tun() {
            return;
        }
        run("echo 1 > /proc/sys/net/ipv4/ip_forward");
        let router = "
            ta :: KernelTun(10.77.0.1/24, DEVNAME tcp0) -> CheckIPHeader -> a :: TCPStack(10.77.0.2, PATHMTU true) -> ta;
            tb :: KernelTun(10.78.0.1/24, DEVNAME tcp1) -> CheckIPHeader -> b :: TCPStack(10.78.0.2) -> tb;
            source :: TCPSource(a, LIMIT 300000); sink :: TCPSink(b, PORT 9);";
        during(router, |r| {
            run("ip link set tcp1 mtu 1000");
            r.write(Origin::Operator, Some("a"), "connect", "10.78.0.2:9 source").unwrap();
            until("the sink has read", || count(r, "sink", "received") == 300_000);
            assert_eq!(count(r, "sink", "wrong"), 0);
            assert!(count(r, "a", "size_errors") > 0);
        });
    });
}
