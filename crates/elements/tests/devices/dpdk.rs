// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the classes for DPDK's ports on devices of the kernel.

use super::*;

/// Every argument that the classes have in FastClick.
const FROM: &str = "PROMISC true, VLAN_FILTER false, VLAN_STRIP true, VLAN_EXTEND false, LRO false, JUMBO false, QUEUE -1, \
    NDESC 1024, MAC 2:0:0:0:0:1, MTU 1500, MODE rss, FLOW_ISOLATE false, VF_POOLS 0, MINQUEUES 1, MAXQUEUES 128, RX_INTR -1, \
    MAX_RSS 2, RETA_SIZE 0, TIMESTAMP true, RSS_AGGREGATE true, PAINT_QUEUE false, BURST 32, CLEAR false, PAUSE none, \
    IPCO false, TCO false, UCO false, NUMA false, NUMA_NODE -1, THREADOFFSET 0, N_QUEUES 1, MAXTHREADS 1, VERBOSE 1, ACTIVE \
    true, ALLOW_NONEXISTENT false, SCALE parallel, FLOW_RULES_FILE \"\", VF_VLAN 1, POWER_MGMT none";
const TO: &str = "QUEUE 0, TIMEOUT 0, NDESC 1024, MAXQUEUES 1, ALLOC true, BURST 32, TSO 0, IPCO false, TCO false, UCO false, \
    IQUEUE 4000, BLOCKING true, N_QUEUES 1, MAXTHREADS 1, VERBOSE 1, ACTIVE true, ALLOW_NONEXISTENT false";

#[test]
fn hosts_speak_across_ports() {
    inside("dpdk::hosts_speak_across_ports", || {
        let (a, _b) = (add_host(1, "10.0.0.1/24"), add_host(2, "10.0.0.2/24"));
        // The host has the addresses of both networks. It must not answer, because the router has taken the frames.
        run("ip address add 10.0.0.2/24 dev r1");
        let router = format!(
            "DPDKInfo(65536);
             one :: FromDPDKDevice(r1, {FROM}) -> two_out :: ToDPDKDevice(r2, {TO});
             two :: FromDPDKDevice(r2) -> one_out :: ToDPDKDevice(r1);"
        );
        let (mut r, messages) = during(&router, 1, |_| {
            a.ping(20, "-i 0.01 10.0.0.2");
        });
        let told = |what: &str| messages.iter().filter(|m| m.contains(what)).count();
        assert_eq!(told("port 'r1' is r1, with METHOD PACKET: "), 2, "{messages:?}");
        assert_eq!(
            told(
                "one :: FromDPDKDevice: without effect here: VLAN_STRIP, MAC, MTU, MODE, VF_VLAN, RSS_AGGREGATE"
            ),
            1,
            "{messages:?}"
        );
        let (from, to) = (number(&mut r, "one", "count"), number(&mut r, "two_out", "count"));
        assert!(from == to && from >= 21, "requests of ping and of ARP: {from} {to}");
        assert_eq!(number(&mut r, "two_out", "dropped"), 0);
        let s = info("r1").unwrap().statistics;
        assert_eq!(number(&mut r, "one", "hw_count"), s.rx_packets);
        assert_eq!(number(&mut r, "one_out", "hw_bytes"), s.tx_bytes);
        assert_eq!(value(&mut r, "one", "mac"), ether("r1"));
        let of = |r: &mut Router, handler: &str| value(r, "one", handler);
        assert_eq!((of(&mut r, "device"), of(&mut r, "driver")), ("r1".into(), "veth".into()));
        assert_eq!((of(&mut r, "carrier"), of(&mut r, "mtu")), ("true".into(), "1500".into()));
    });
}

#[test]
fn the_queue_of_a_port_is_bounded() {
    inside("dpdk::the_queue_of_a_port_is_bounded", || {
        pair();
        run("ip link set va down");
        let router = "i :: InfiniteSource(LENGTH 60, LIMIT 100, ACTIVE false) -> EtherEncap(0x88b5, 1:1:1:1:1:1, 2:2:2:2:2:2)
            -> to :: ToDPDKDevice(va, IQUEUE 10);";
        let (mut r, _) = during_calls(router, 1, |log, calls| {
            calls.write(castanet_element::spec::Origin::Operator, Some("i"), "active", "true").unwrap();
            until("the device is known to be down", || {
                log.lines().iter().any(|l| l.contains("device is down"))
            });
            let dropped = || calls.read(Some("to"), "dropped", "").unwrap();
            until("the queue is full", || dropped() == "90");
            run("ip link set va up");
            until("what waited is sent", || calls.read(Some("to"), "count", "").unwrap() == "10");
        });
        assert_eq!(drops(&r, "to", Reason::QueueFull), 90);
        assert_eq!((number(&mut r, "to", "q"), number(&mut r, "to", "overflows")), (0, 90));
    });
}

#[test]
fn a_port_can_wait_and_be_missing() {
    inside("dpdk::a_port_can_wait_and_be_missing", || {
        pair();
        let router = "f :: FromDPDKDevice(vb, ACTIVE false) -> c :: Counter -> Discard;
            none :: FromDPDKDevice(7, ALLOW_NONEXISTENT true) -> Discard;
            InfiniteSource(LIMIT 5) -> to :: ToDPDKDevice(0000:99:00.0, ALLOW_NONEXISTENT true);";
        let (mut r, messages) = during_calls(router, 1, |_, calls| {
            let mut sender = PacketSender::open("va").unwrap();
            for n in 0..3 {
                sender.send([Outgoing::plain(&frame(n, 60))].into_iter());
            }
            assert_eq!(calls.read(Some("f"), "count", "").unwrap(), "0");
            calls.write(castanet_element::spec::Origin::Operator, Some("f"), "active", "true").unwrap();
            until("frames that waited come", || calls.read(Some("c"), "count", "").unwrap() == "3");
        });
        assert_eq!(messages.iter().filter(|m| m.contains("there is no device for port '7'")).count(), 1);
        assert_eq!(drops(&r, "to", Reason::Inactive), 5);
        assert_eq!((number(&mut r, "none", "count"), value(&mut r, "to", "way")), (0, String::new()));
        let wrong = try_router("FromDPDKDevice(eth77) -> Discard;", real(1).0).err().unwrap().to_string();
        assert!(wrong.contains("no device for port 'eth77'"), "{wrong}");
    });
}

#[test]
fn elements_with_queue_share_a_port() {
    inside("dpdk::elements_with_queue_share_a_port", || {
        pair();
        let router = "FromDPDKDevice(vb, QUEUE 0) -> one :: Counter -> Discard;
            FromDPDKDevice(vb, QUEUE 1) -> two :: Counter -> Discard;";
        let count =
            |calls: &dyn Remote, of: &str| calls.read(Some(of), "count", "").unwrap().parse::<u32>().unwrap();
        let (_, _) = during_calls(router, 1, |_, calls| {
            let mut sender = PacketSender::open("va").unwrap();
            for flow in 0..64 {
                let f = fanout::udp_frame(flow, 0);
                until("it is sent", || sender.send([Outgoing::plain(&f)].into_iter()).count == 1);
            }
            until("each frame comes once", || count(calls, "one") + count(calls, "two") == 64);
            assert!(count(calls, "one") > 0 && count(calls, "two") > 0);
        });
        let wrong = try_router("FromDPDKDevice(vb) -> Discard; FromDPDKDevice(vb) -> Discard;", real(1).0);
        assert!(wrong.err().unwrap().to_string().contains("already used by"));
    });
}
