// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests hot swaps of devices: no frame is lost, and no frame is emitted twice.
#![allow(clippy::unwrap_used)]

use super::from_device::FromDevice;
use super::from_dpdk_device::FromDpdkDevice;
use super::from_host::FromHost;
use super::kernel_filter::KernelFilter;
use super::kernel_tap::KernelTap;
use super::to_device::ToDevice;
use super::to_dpdk_device::ToDpdkDevice;
use crate::handover::testing::{hand_over, prepare};
use castanet_element::Lifecycle;
use castanet_element::Turn;
use castanet_element::kit::{Kit, packet};
use castanet_element::run_loop::Internals as _;
use castanet_element::spec::Reason;
use castanet_io::device::{Outgoing, PacketOptions, PacketSender, PacketSocket};
use castanet_testkit::namespace::{has_tun, inside, pair, run};

fn frame(n: u8) -> Vec<u8> {
    let mut f = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5, n]].concat();
    f.resize(60, 7);
    f
}

/// Runs a task until it sleeps. Returns the first payload byte of each frame that it emitted.
fn received(kit: &mut Kit<FromDevice>) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let (turn, out) = kit.task();
        all.extend(out.iter().map(|(_, p)| p.data()[14]));
        if turn == Turn::Sleep {
            return all;
        }
    }
}

#[test]
fn what_the_system_dropped_is_booked_once() {
    inside("device::tests::what_the_system_dropped_is_booked_once", || {
        pair();
        let mut sender = PacketSender::open("va").unwrap();
        let mut old = Kit::<FromDevice>::new("vb").unwrap();
        let drops = |kit: &mut Kit<FromDevice>| kit.read("kernel_drops").unwrap().parse::<u64>().unwrap();
        // Send more frames than the socket holds. None of them is read.
        for _ in 0..1_000_000 {
            sender.send([Outgoing::plain(&frame(1))].into_iter());
        }
        let dropped = drops(&mut old);
        assert!(dropped > 0);
        let mut new = Kit::<FromDevice>::new("vb").unwrap();
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        assert_eq!((drops(&mut old), drops(&mut new)), (0, dropped), "the count goes with the socket");
        old.cleanup().unwrap();
        new.cleanup().unwrap();
        assert_eq!((old.missed(), new.missed()), (0, dropped));
        [old, new].iter_mut().for_each(Kit::handed_over);
    });
}

#[test]
fn frames_that_wait_move_to_the_new_router() {
    inside("device::tests::frames_that_wait_move_to_the_new_router", || {
        pair();
        let mut sender = PacketSender::open("va").unwrap();
        let mut send = |n: u8| assert_eq!(sender.send([Outgoing::plain(&frame(n))].into_iter()).count, 1);
        let mut old = Kit::<FromDevice>::new("vb").unwrap();
        send(1);
        assert_eq!(received(&mut old), [1]);
        assert!(old.waits(), "an empty ring is waited for");
        send(2);
        let mut new = Kit::<FromDevice>::new("vb").unwrap();
        send(3);
        assert_eq!(old.element.holds(), new.element.holds());
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        new.take_state_of(&mut old).unwrap();
        send(4);
        assert_eq!(received(&mut new), [2, 3, 4]);
        assert_eq!(received(&mut old), []);
        // An element with another filter opens its own socket. Both sockets receive frame 6, which must be emitted
        // once.
        send(5);
        let mut other = Kit::<FromDevice>::new("vb, PROTOCOL 0x88b5").unwrap();
        assert_ne!(other.element.holds(), new.element.holds());
        send(6);
        other.take_state_of(&mut new).unwrap();
        send(7);
        // The swap from `new` to `other` fails, and `new` takes its frames back. A second swap succeeds.
        new.take_state_of(&mut other).unwrap();
        assert_eq!((received(&mut other), received(&mut new)), (vec![7], vec![5, 6, 7]));
        send(8);
        other.take_state_of(&mut new).unwrap();
        send(9);
        assert_eq!(received(&mut other), [8, 9]);
        other.cleanup().unwrap();
        [old, new, other].iter_mut().for_each(Kit::handed_over);
    });
}

#[test]
fn packets_that_the_device_has_not_taken_move_to_the_new_router() {
    inside("device::tests::packets_that_the_device_has_not_taken_move_to_the_new_router", || {
        pair();
        let mut sink =
            PacketSocket::open("vb", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
        let mut old = Kit::<ToDevice>::new("va").unwrap();
        run("ip link set va down");
        (1..=3).for_each(|n| old.supply(0, packet(&frame(n))));
        old.task();
        assert_eq!((old.read("q").unwrap(), old.all_dropped()), ("3".into(), 0));
        let mut new = Kit::<ToDevice>::new("va").unwrap();
        assert_eq!(old.element.holds(), new.element.holds());
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        assert_eq!((old.read("q").unwrap(), new.read("q").unwrap()), ("0".into(), "3".into()));
        // If the swap fails, the old router has the packets again, and still treats the device as down.
        old.with(|e, cx| e.take_over(&mut new.element, cx)).unwrap();
        assert_eq!((old.read("q").unwrap(), new.read("q").unwrap()), ("3".into(), "0".into()));
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        assert!(new.next_timer().is_some() && new.task().0 == Turn::Sleep);
        run("ip link set va up");
        new.supply(0, packet(&frame(4)));
        new.expire().unwrap();
        new.task();
        assert_eq!((new.read("q").unwrap(), new.dropped(Reason::Consumed)), ("0".into(), 4));
        let mut got = Vec::new();
        sink.receive(9, |f| {
            let mut data = [0; 60];
            assert!(f.copy_to(&mut data));
            got.push(data[14]);
        });
        assert_eq!(got, [1, 2, 3, 4]);
        // Packets that are held when the router stops are accounted for.
        run("ip link set va down");
        new.supply(0, packet(&frame(5)));
        new.task();
        new.cleanup().unwrap();
        assert_eq!(new.dropped(Reason::Stopped), 1);
        [old, new].iter_mut().for_each(Kit::handed_over);
    });
}

#[test]
fn ports_and_what_waits_at_them_move_to_the_new_router() {
    inside("device::tests::ports_and_what_waits_at_them_move_to_the_new_router", || {
        pair();
        let mut sender = PacketSender::open("va").unwrap();
        let mut send = |n: u8| assert_eq!(sender.send([Outgoing::plain(&frame(n))].into_iter()).count, 1);
        let mut old = Kit::<FromDpdkDevice>::new("vb").unwrap();
        send(1);
        let mut new = Kit::<FromDpdkDevice>::new("vb, TIMESTAMP true").unwrap();
        assert_eq!(old.element.holds(), new.element.holds());
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        new.take_state_of(&mut old).unwrap();
        send(2);
        let mut got = Vec::new();
        while let (Turn::Again, out) = new.task() {
            got.extend(out.iter().map(|(_, p)| p.data()[14]));
        }
        assert_eq!((got, new.read("count").unwrap()), (vec![1, 2], "2".into()));
        new.cleanup().unwrap();
        [old, new].iter_mut().for_each(Kit::handed_over);
        // Packets that a port has not sent yet.
        run("ip link set va down");
        let mut old = Kit::<ToDpdkDevice>::new("va").unwrap();
        old.push(0, (1..=3).map(|n| packet(&frame(n))));
        old.task();
        let mut new = Kit::<ToDpdkDevice>::new("va, IQUEUE 4").unwrap();
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        assert_eq!((old.read("q").unwrap(), new.read("q").unwrap()), ("0".into(), "3".into()));
        new.push(0, (4..=6).map(|n| packet(&frame(n))));
        assert_eq!((new.read("q").unwrap(), new.read("dropped").unwrap()), ("4".into(), "2".into()));
        new.cleanup().unwrap();
        assert_eq!((new.dropped(Reason::Stopped), new.dropped(Reason::QueueFull)), (4, 2));
        [old, new].iter_mut().for_each(Kit::handed_over);
    });
}

#[test]
fn the_host_sees_no_gap_when_a_tap_device_moves() {
    inside("device::tests::the_host_sees_no_gap_when_a_tap_device_moves", || {
        if !has_tun() {
            return;
        }
        let config = "10.5.0.1/24, DEVNAME mine, ETHER 2:0:0:0:0:1";
        let mut old = Kit::<KernelTap>::new(config).unwrap();
        let index = castanet_io::device::index("mine").unwrap();
        let mut new = Kit::<KernelTap>::new(config).unwrap();
        assert_eq!(old.element.holds(), new.element.holds());
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        drop(old);
        // The run loop drops descriptors that are no longer watched. Dropping its last descriptor closes the
        // second queue.
        new.with(|_, cx| cx.core().watches().changes().for_each(drop));
        assert_eq!(castanet_io::device::index("mine").unwrap(), index);
        assert_eq!(new.read("dev_name").unwrap(), "mine");
        // The host sends an ARP request for this address.
        let socket = std::net::UdpSocket::bind("10.5.0.1:0").unwrap();
        socket.send_to(b"hello", "10.5.0.9:9").unwrap();
        let asked = (0..50_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            new.task().1.iter().any(|(_, p)| p.data().get(12..14) == Some(&[8, 6]))
        });
        assert!(asked, "packets of the host come to the new router");
        assert!(new.waits());
        for bad in
            ["10.5.0.1/24, MTU 67", "10.5.0.1/24, HEADROOM 9000", "10.5.0.1/24, BURST 0", "10.5.0.1/33"]
        {
            assert!(Kit::<KernelTap>::new(bad).is_err(), "{bad}");
        }
    });
}

#[test]
fn a_prepared_router_opens_nothing_that_it_inherits() {
    inside("device::tests::a_prepared_router_opens_nothing_that_it_inherits", || {
        pair();
        let mut sender = PacketSender::open("va").unwrap();
        let mut send = |n: u8| assert_eq!(sender.send([Outgoing::plain(&frame(n))].into_iter()).count, 1);
        let config = "vb, PROMISC true, OUTBOUND true, SNAPLEN 20";
        let mut old = Kit::<FromDevice>::new("vb").unwrap();
        let mut new = Kit::<FromDevice>::new("va").unwrap();
        prepare(&mut new, config, 0, 1);
        assert!(!run("ip -d link show vb").contains("promiscuity 1"));
        send(1);
        assert_eq!(new.task().0, Turn::Sleep);
        hand_over(&mut old, &mut new);
        assert!(run("ip -d link show vb").contains("promiscuity 1"), "changed while open");
        send(2);
        assert_eq!(received(&mut new), [1, 2]);
        hand_over(&mut new, &mut old);
        assert!(!run("ip -d link show vb").contains("promiscuity 1"), "and back");
        // The device goes down before the swap. The new router uses it again when it is up.
        run("ip link set vb down");
        assert_eq!(received(&mut old), []);
        assert_eq!(old.read("losses").unwrap(), "1");
        hand_over(&mut old, &mut new);
        assert_eq!((new.read("losses").unwrap(), new.task().0), ("1".into(), Turn::Sleep));
        run("ip link set vb up");
        new.expire().unwrap();
        send(3);
        assert_eq!(received(&mut new), [3]);
        assert_eq!(new.messages(), ["e :: FromDevice: vb: device is back"]);
        let mut sink = Kit::<ToDevice>::new("va").unwrap();
        prepare(&mut sink, "vb", 1, 0);
        sink.cleanup().unwrap();
    });
}

/// Counts the filters at the ingress of the device that keep frames from the host.
fn shields() -> usize {
    run("tc filter show dev vb ingress").matches("handle").count()
}

#[test]
fn the_host_is_kept_out_all_the_time() {
    inside("device::tests::the_host_is_kept_out_all_the_time", || {
        pair();
        let mut old = match Kit::<KernelFilter>::new("drop dev vb") {
            Ok(kit) => kit,
            Err(e) => return println!("SKIP: {e:?}"),
        };
        assert_eq!(shields(), 1);
        let mut new = Kit::<KernelFilter>::new("").unwrap();
        prepare(&mut new, "drop dev vb", 0, 0);
        hand_over(&mut old, &mut new);
        old.cleanup().unwrap();
        assert_eq!(shields(), 1);
        // If the list of devices differs, both routers have their own filter until the old router is gone.
        let mut other = Kit::<KernelFilter>::new("drop dev vb, drop dev va").unwrap();
        assert_ne!(other.element.holds(), new.element.holds());
        assert_eq!(shields(), 2);
        other.take_state_of(&mut new).unwrap();
        new.cleanup().unwrap();
        assert_eq!(shields(), 1);
        other.cleanup().unwrap();
        assert!(!run("tc qdisc show dev vb").contains("clsact"), "the place for filters goes with the last");
        // A FromDevice with SNIFFER false keeps its filter if a swap fails, and hands it over if a swap succeeds.
        let mut old = Kit::<FromDevice>::new("vb, SNIFFER false").unwrap();
        let mut new = Kit::<FromDevice>::new("va").unwrap();
        prepare(&mut new, "vb, SNIFFER true", 0, 1);
        hand_over(&mut old, &mut new);
        hand_over(&mut new, &mut old);
        assert_eq!(shields(), 1);
        prepare(&mut new, "vb, SNIFFER false", 0, 1);
        hand_over(&mut old, &mut new);
        old.cleanup().unwrap();
        assert_eq!(shields(), 1);
        new.cleanup().unwrap();
        assert!(!run("tc qdisc show dev vb").contains("clsact"));
    });
}

#[test]
fn the_device_of_from_host_stays() {
    inside("device::tests::the_device_of_from_host_stays", || {
        if !has_tun() {
            return;
        }
        let config = "fake, 10.6.0.1/24, ETHER 2:0:0:0:0:1";
        let mut old = Kit::<FromHost>::new(config).unwrap();
        let mut new = Kit::<FromHost>::new("other").unwrap();
        prepare(&mut new, config, 0, 1);
        let index = castanet_io::device::index("fake").unwrap();
        new.cleanup().unwrap();
        prepare(&mut new, config, 0, 1);
        hand_over(&mut old, &mut new);
        hand_over(&mut new, &mut old);
        hand_over(&mut old, &mut new);
        old.cleanup().unwrap();
        drop(old);
        assert_eq!(castanet_io::device::index("fake").unwrap(), index);
        // The swap sets the new address. If the swap fails, the old address is restored.
        let changed = "fake, 10.6.1.1/24, ETHER 2:0:0:0:0:2, MTU 1400, GATEWAY 10.6.1.9";
        let mut next = Kit::<FromHost>::new("another").unwrap();
        prepare(&mut next, changed, 0, 1);
        let shown = || run("ip address show dev fake") + &run("ip route show default");
        let before = shown();
        assert!(before.contains("10.6.0.1/24") && before.contains("02:00:00:00:00:01"));
        hand_over(&mut new, &mut next);
        let after = shown();
        for (text, there) in [
            ("10.6.0.1", false),
            ("10.6.1.1/24", true),
            ("02:00:00:00:00:02", true),
            ("mtu 1400", true),
            ("default via 10.6.1.9", true),
        ] {
            assert_eq!(after.contains(text), there, "{text}: {after}");
        }
        hand_over(&mut next, &mut new);
        assert_eq!(shown(), before);
        // A change that is refused leaves everything as it was.
        prepare(&mut next, "fake, 10.6.1.1/24, GATEWAY 9.9.9.9", 0, 1);
        let refused = next.with(|e, cx| e.take_over(&mut new.element, cx));
        assert!(refused.is_err_and(|e| e.to_string().contains("gateway")));
        assert_eq!(shown(), before);
        let socket = std::net::UdpSocket::bind("10.6.0.1:0").unwrap();
        socket.send_to(b"hello", "10.6.0.9:9").unwrap();
        let asked = (0..50_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            new.task().1.iter().any(|(_, p)| p.data().get(12..14) == Some(&[8, 6]))
        });
        assert!(asked && new.waits());
    });
}
