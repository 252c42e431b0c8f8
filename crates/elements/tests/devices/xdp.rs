// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests METHOD XDP between hosts, and while devices vanish.

use super::{
    LENGTH, add_host, drops, during, during_calls, frame, hash, number, send, send_while_down, try_router,
    value,
};
use castanet_element::spec::Reason;
use castanet_testkit::host::Host;
use castanet_testkit::namespace::{inside_with_xdp, pair, run};
use castanet_testkit::{real, until};

/// Sends data by TCP from one host to another.
fn transfer(from: &Host, to: &Host) {
    let me = std::env::current_exe().unwrap();
    let program = |name: &str| format!("{} --exact {name} --ignored --nocapture", me.display());
    let serve = program("tcp_server");
    let server = std::thread::scope(|s| {
        let server = s.spawn(|| to.run(&serve));
        from.run(&program("tcp_client"));
        server.join().unwrap()
    });
    assert!(server.contains(&format!("received {LENGTH} {}", hash(LENGTH))), "{server}");
}

#[test]
fn hosts_speak_tcp_across() {
    inside_with_xdp("xdp::hosts_speak_tcp_across", || {
        let (a, b) = (add_host(1, "10.0.0.1/24"), add_host(2, "10.0.0.2/24"));
        b.run("ethtool -K h2 tx off");
        // On the side of a packet socket, the host leaves checksums and segmentation to the device.
        for (method, workers) in [("XDP", 1), ("XDP", 2), ("PACKET", 1)] {
            a.run(&format!("ethtool -K h1 tx {}", if method == "XDP" { "off" } else { "on" }));
            let router = format!(
                "one :: FromDevice(r1, PROMISC true, SNIFFER false, METHOD {method})
                    -> Queue(5000) -> two_out :: ToDevice(r2, METHOD XDP);
                 two :: FromDevice(r2, PROMISC true, SNIFFER false, METHOD XDP)
                    -> Queue(5000) -> one_out :: ToDevice(r1, METHOD {method});"
            );
            let (mut r, messages) = during(&router, workers, |_| transfer(&a, &b));
            let expected = if method == "XDP" { 2 } else { 1 };
            assert_eq!(messages.len(), expected, "{messages:?}");
            assert!(messages[0].contains("ethtool -K DEVICE tx off txvlan off"), "{messages:?}");
            for (from, to) in [("one", "two_out"), ("two", "one_out")] {
                for reason in [Reason::BadOffload, Reason::Truncated, Reason::NoBuffer] {
                    assert_eq!(drops(&r, from, reason) + drops(&r, to, reason), 0);
                }
                assert_eq!(number(&mut r, from, "kernel_drops"), 0);
            }
            assert_eq!(number(&mut r, "two", "count"), number(&mut r, "one_out", "count"));
            if method == "XDP" {
                assert_eq!(number(&mut r, "one", "count"), number(&mut r, "two_out", "count"));
                let copied = number(&mut r, "two_out", "copied") + number(&mut r, "one_out", "copied");
                assert_eq!(copied, 0, "no packet is copied on its way through the router");
            }
            assert_eq!(value(&mut r, "two", "way"), "xdp driver copy 1 queue");
        }
    });
}

#[test]
fn devices_may_be_polled_or_have_no_driver_for_xdp() {
    inside_with_xdp("xdp::devices_may_be_polled_or_have_no_driver_for_xdp", || {
        pair();
        run("ip link add bridge type bridge && ip link set vb master bridge && ip link set bridge up");
        for (device, options, way) in [
            ("vb", ", BUSY_POLL true", "xdp driver copy 1 queue"),
            ("bridge", "", "xdp generic copy 1 queue"),
        ] {
            if device == "vb" {
                run("ip link set vb nomaster");
            } else {
                run("ip link set vb master bridge");
            }
            let router = format!(
                "f :: FromDevice({device}, METHOD XDP, SNIFFER false{options}) -> Print(got, 0) -> Discard;"
            );
            let (mut r, messages) = during(&router, 1, |log| {
                let got = || log.lines().iter().filter(|l| l.starts_with("got")).count();
                until("a frame", || {
                    send(&[frame(1, 60), frame(2, 1514)]);
                    got() > 100
                });
            });
            assert_eq!(
                (value(&mut r, "f", "way"), number(&mut r, "f", "kernel_drops")),
                (way.to_string(), 0)
            );
            let said = messages.iter().any(|m| m.contains("generic mode"));
            assert_eq!(said, device == "bridge", "{messages:?}");
        }
    });
}

#[test]
fn devices_that_vanish_are_picked_up_again() {
    inside_with_xdp("xdp::devices_that_vanish_are_picked_up_again", || {
        pair();
        let router = "f :: FromDevice(vb, METHOD XDP, TIMESTAMP false) -> Print(got, 0) -> Discard;";
        let (mut r, messages) = during(router, 1, |log| {
            let got = || log.lines().iter().filter(|l| l.starts_with("got")).count();
            let back = || log.lines().iter().filter(|l| l.contains("device is back")).count();
            until("the program is attached", || run("ip link show vb").contains("xdp"));
            // The first frames may come before the router has begun to take them.
            until("the first frame", || {
                send(&[frame(1, 60)]);
                got() > 0
            });
            for round in 1..=5 {
                run("ip link del va");
                until("a message", || {
                    log.lines().iter().filter(|l| l.contains("packets are received again")).count() == round
                });
                pair();
                until("another device of that name", || back() == round);
                let before = got();
                until("a frame", || {
                    send(&[frame(2, 60)]);
                    got() > before
                });
            }
        });
        assert_eq!(number(&mut r, "f", "losses"), 5);
        assert!(
            messages[0].starts_with("f :: FromDevice: vb: METHOD XDP takes the frames from the host"),
            "{messages:?}"
        );
        r.cleanup();
        assert!(!run("ip link show vb").contains("xdp"), "the program goes with the router");
    });
}

#[test]
fn nothing_is_lost_while_a_device_is_down() {
    inside_with_xdp("xdp::nothing_is_lost_while_a_device_is_down", || {
        pair();
        send_while_down(", METHOD XDP");
    });
}

#[test]
fn elements_share_the_queues_of_a_device() {
    inside_with_xdp("xdp::elements_share_the_queues_of_a_device", || {
        run("ip link add va numtxqueues 2 numrxqueues 2 type veth peer name vb numtxqueues 2 numrxqueues 2");
        run("ip link set va up && ip link set vb up");
        let both = "a :: FromDevice(vb, METHOD XDP, SNIFFER false, FANOUT 1) -> c :: Counter -> Discard;
             b :: FromDevice(vb, METHOD XDP, SNIFFER false, FANOUT 1) -> d :: Counter -> Discard;
             StaticThreadSched(a 0, b 1);";
        if castanet_io::device::receive_queues("vb") != 2 {
            return println!("SKIP: this veth has no second queue");
        }
        let all = |remote: &dyn castanet_element::Remote| {
            let count = |e: &str| remote.read(Some(e), "count", "").unwrap().parse::<u64>().unwrap();
            until("frames", || {
                send(&[frame(1, 60)]);
                count("c") + count("d") > 0
            });
        };
        let (mut r, _) = during_calls(both, 2, |_, remote| all(remote));
        assert_eq!(value(&mut r, "a", "way"), "xdp driver copy 1 queue");
        assert_eq!(value(&mut r, "b", "way"), "xdp driver copy 1 queue");
        r.cleanup();
        drop(r);
        // A third element has no queue.
        let three = format!("{both} FromDevice(vb, METHOD XDP, SNIFFER false, FANOUT 1) -> Discard;");
        let error = try_router(&three, real(1).0).err().unwrap();
        assert!(error.contains("vb: it has 2 receive queues") && error.contains("ethtool -L vb"), "{error}");
    });
}
