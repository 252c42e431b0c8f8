// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of receiving frames, and of the readiness of descriptors.

use crate::{ALL, GROUP, LONG, frame, mac, readable, receive, receive_all, send};
use castanet_io::device::owner::Fate;
use castanet_io::device::shield;
use castanet_io::device::{
    DeviceError, FrameKind, Instruction, PacketOptions, PacketSender, PacketSocket, Shield, complete, info,
};
use castanet_testkit::host::Host;
use castanet_testkit::namespace::{inside, inside_with_bpf, pair, run};
use std::time::Duration;

#[test]
fn frames_arrive_as_they_were_sent() {
    inside("receiving::frames_arrive_as_they_were_sent", || {
        pair();
        let mut r =
            PacketSocket::open("vb", &PacketOptions { promiscuous: true, ..Default::default() }).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let before =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
        let sent: Vec<Vec<u8>> = [(mac("vb"), 60), (ALL, 14), (GROUP, 1514), ([2, 0, 0, 0, 0, 77], 61)]
            .map(|(dst, len)| frame(dst, 0x88b5, len))
            .into();
        send(&mut s, &sent);
        let got = receive_all(&mut r, sent.len());
        assert_eq!(got.iter().map(|g| &g.data).collect::<Vec<_>>(), sent.iter().collect::<Vec<_>>());
        let kinds: Vec<_> = got.iter().map(|g| g.kind).collect();
        assert_eq!(
            kinds,
            [FrameKind::Host, FrameKind::Broadcast, FrameKind::Multicast, FrameKind::OtherHost]
        );
        for g in &got {
            assert_eq!(g.wire_len, g.data.len());
            assert!(g.time_ns >= before);
        }
        // Compare with the kernel's counters at both ends.
        let (a, b) = (info("va").unwrap().statistics, info("vb").unwrap().statistics);
        assert_eq!((a.tx_packets, b.rx_packets, r.drops()), (4, 4, 0));
        assert_eq!(a.tx_bytes, sent.iter().map(|f| f.len() as u64).sum::<u64>());
    });
}

#[test]
fn many_frames_go_round_the_ring_in_order() {
    inside("receiving::many_frames_go_round_the_ring_in_order", || {
        pair();
        let mut r = PacketSocket::open("vb", &PacketOptions { slots: 100, ..Default::default() }).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let (mut next, slots) = (0u32, r.slots());
        for round in 0..40 {
            let numbered: Vec<Vec<u8>> = (0..1 + round)
                .map(|_| {
                    next += 1;
                    let mut f = frame(ALL, 0x88b5, 60 + (next as usize * 7) % 1400);
                    f[14..18].copy_from_slice(&next.to_be_bytes());
                    f
                })
                .collect();
            send(&mut s, &numbered);
            let mut got = Vec::new();
            while got.len() < numbered.len() {
                assert!(readable(r.fd(), LONG));
                r.receive(7, |f| {
                    let mut data = vec![0; f.len()];
                    assert!(f.copy_to(&mut data));
                    got.push(data);
                });
            }
            assert_eq!(got, numbered);
        }
        // More frames than the ring holds: the first ones are kept, the others are counted as drops.
        let many: Vec<Vec<u8>> = (0..64).map(|_| frame(ALL, 0x88b5, 60)).collect();
        for _ in 0..(slots / 64 + 2) {
            send(&mut s, &many);
        }
        let (sent, got) = ((slots / 64 + 2) * 64, receive_all(&mut r, slots).len());
        assert_eq!((got, r.drops()), (slots, (sent - slots) as u64));
        assert_eq!(r.drops(), (sent - slots) as u64, "the count does not start again");
    });
}

#[test]
fn what_the_host_sends_is_seen_only_on_demand() {
    inside("receiving::what_the_host_sends_is_seen_only_on_demand", || {
        pair();
        let open =
            |outgoing| PacketSocket::open("va", &PacketOptions { outgoing, ..Default::default() }).unwrap();
        let (mut without, mut with) = (open(false), open(true));
        // `PacketSender` bypasses the queueing discipline, so other sockets do not see its frames. Therefore the
        // host's own stack sends the frame here.
        run("ip address add 10.1.0.1/24 dev va");
        let socket = std::net::UdpSocket::bind("10.1.0.1:0").unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(b"hello", "10.1.0.255:9").unwrap();
        let got = receive_all(&mut with, 1);
        assert_eq!(got.len(), 1);
        assert_eq!((got[0].kind, &got[0].data[42..]), (FrameKind::Outgoing, &b"hello"[..]));
        assert_eq!(receive(&mut without), []);
        assert!(got[0].vnet.needs_checksum(), "the host leaves the checksum to the device");
        let mut data = got[0].data.clone();
        complete(&mut data, &got[0].vnet).unwrap();
        let p = etherparse::SlicedPacket::from_ethernet(&data).unwrap();
        let (Some(etherparse::NetSlice::Ipv4(ip)), Some(etherparse::TransportSlice::Udp(u))) =
            (p.net, p.transport)
        else {
            panic!("not UDP")
        };
        let want = u.to_header().calc_checksum_ipv4(&ip.header().to_header(), u.payload()).unwrap();
        assert_eq!(u.checksum(), want);
    });
}

#[test]
fn protocols_and_filters_choose() {
    inside("receiving::protocols_and_filters_choose", || {
        pair();
        // ldh [12]; jeq #0x88b6; ret #0xffff; ret #0.
        let program = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x88b6), (6, 0, 0, 0xffff), (6, 0, 0, 0)];
        let filter = Some(program.map(|(c, t, f, k)| Instruction::new(c, t, f, k)).to_vec());
        let mut filtered = PacketSocket::open("vb", &PacketOptions { filter, ..Default::default() }).unwrap();
        let mut typed =
            PacketSocket::open("vb", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let frames = [0x88b5, 0x88b6, 0x88b7, 0x88b6].map(|t| frame(ALL, t, 60));
        send(&mut s, &frames);
        assert_eq!(
            receive_all(&mut filtered, 2).iter().map(|g| &g.data).collect::<Vec<_>>(),
            [&frames[1], &frames[3]]
        );
        assert_eq!(receive_all(&mut typed, 1).iter().map(|g| &g.data).collect::<Vec<_>>(), [&frames[0]]);
        let bad =
            PacketOptions { filter: Some(vec![Instruction::new(0xffff, 0, 0, 0)]), ..Default::default() };
        assert!(PacketSocket::open("vb", &bad).unwrap_err().to_string().contains("attach the filter"));
    });
}

#[test]
fn vlan_tags_come_back() {
    inside("receiving::vlan_tags_come_back", || {
        pair();
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let tagged = |tags: &[u8]| {
            let mut f = frame(ALL, 0x88b5, 80);
            f.splice(12..12, tags.iter().copied());
            f
        };
        let frames = [
            tagged(&[0x81, 0, 0x60, 5]),
            tagged(&[0x88, 0xa8, 0, 7]),
            tagged(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]),
            tagged(&[0x81, 0, 0, 0]),
        ];
        send(&mut s, &frames);
        let got = receive_all(&mut r, frames.len());
        assert_eq!(got.iter().map(|g| &g.data).collect::<Vec<_>>(), frames.iter().collect::<Vec<_>>());
        assert!(got.iter().all(|g| g.wire_len == g.data.len()));
    });
}

#[test]
fn devices_go_and_come_back() {
    inside("receiving::devices_go_and_come_back", || {
        pair();
        let open = || PacketSocket::open("vb", &PacketOptions::default());
        let mut r = open().unwrap();
        assert_eq!(r.check(), Ok(()));
        run("ip link set vb down");
        assert!(readable(r.fd(), LONG));
        assert_eq!(r.receive(9, |_| {}), 0);
        let down = r.check().unwrap_err();
        assert_eq!(down, DeviceError::Down { name: "vb".into() });
        assert_eq!(r.check(), Ok(()), "told once");
        assert!(!readable(r.fd(), 10));
        run("ip link set vb up");
        let mut s = PacketSender::open("va").unwrap();
        send(&mut s, &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive_all(&mut r, 1).len(), 1, "the same socket goes on");
        let old = r.index();
        run("ip link del vb");
        assert!(readable(r.fd(), LONG));
        assert!(matches!(r.check(), Err(DeviceError::Missing { .. } | DeviceError::Down { .. })));
        assert!(matches!(open(), Err(DeviceError::Missing { .. })));
        pair();
        let mut r = open().unwrap();
        assert_ne!(r.index(), old);
        send(&mut PacketSender::open("va").unwrap(), &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive_all(&mut r, 1).len(), 1);
        run("ip link set vb down");
        let mut r = open().unwrap();
        run("ip link set vb up");
        send(&mut PacketSender::open("va").unwrap(), &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive_all(&mut r, 1).len(), 1, "opened while it was down");
    });
}

#[test]
fn frames_are_told_at_once() {
    inside("receiving::frames_are_told_at_once", || {
        pair();
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        // A ring of version 3 collects frames in blocks, and would delay each frame by at least a millisecond. With
        // the ring used here, at least one of many frames is visible as soon as the send call returns, even on a busy
        // machine.
        let at_once = (0..1000).any(|_| {
            send(&mut s, &[frame(ALL, 0x88b5, 60)]);
            let there = readable(r.fd(), 0);
            while r.receive(1, |_| {}) == 0 {
                assert!(readable(r.fd(), LONG));
            }
            there
        });
        assert!(at_once);
    });
}

#[test]
fn a_shield_keeps_the_host_silent() {
    inside("receiving::a_shield_keeps_the_host_silent", || {
        pair();
        let host = Host::new();
        run(&format!("ip link set vb netns {}", host.id()));
        host.run("ip address add 10.3.0.2/24 dev vb");
        host.run("ip link set vb up");
        run("ip address add 10.3.0.1/24 dev va");
        host.run("ping -c 1 -W 60 10.3.0.1");
        let mut seen = PacketSocket::open("va", &PacketOptions::default()).unwrap();
        let first = match Shield::raise("va") {
            Ok(s) => s,
            Err(e @ DeviceError::Unsupported { .. }) => return println!("SKIP: {e}"),
            Err(e) => panic!("{e}"),
        };
        let second = Shield::raise("va").unwrap();
        host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
        assert!(!receive_all(&mut seen, 1).is_empty(), "packet sockets see what the host does not");
        drop(first);
        host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
        assert!(second.is_up_to_date());
        drop(second);
        host.run("ping -c 1 -W 60 10.3.0.1");
        assert!(matches!(Shield::raise("vx"), Err(DeviceError::Missing { .. })));
    });
}

const HOLDER: &str = "CASTANET_TEST_SHIELD";

#[test]
#[ignore = "run by another test, to be killed"]
fn a_process_with_a_shield() {
    if std::env::var_os(HOLDER).is_none() {
        return println!("SKIP: run by another test");
    }
    let _shield = Shield::raise("va").unwrap();
    println!("raised");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_process_takes_its_shield_with_it_or_leaves_its_name() {
    inside_with_bpf("receiving::a_killed_process_takes_its_shield_with_it_or_leaves_its_name", || {
        pair();
        let host = Host::new();
        run(&format!("ip link set vb netns {}", host.id()));
        host.run("ip address add 10.3.0.2/24 dev vb");
        host.run("ip link set vb up");
        run("ip address add 10.3.0.1/24 dev va");
        host.run("ping -c 1 -W 60 10.3.0.1");
        let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "receiving::a_process_with_a_shield", "--ignored", "--nocapture"])
            .env(HOLDER, "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(holder.stdout.take().unwrap()));
        assert!(lines.any(|l| l.unwrap().contains("raised")));
        host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
        let running = shield::found().unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        // `found` does not list TCX links. So an empty list means that the shield is a TCX link.
        if running.is_empty() {
            // The kernel removes the BPF program of the shield shortly after the process has ended.
            host.run("ping -c 1 -i 0.1 -w 60 10.3.0.1");
        } else {
            println!("SKIP: this process may make no TCX links, which end with it");
            assert_eq!(running.iter().map(|f| f.fate).collect::<Vec<_>>(), [Fate::Alive]);
            host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
            let left = shield::found().unwrap();
            assert_eq!(left.iter().map(|f| f.fate).collect::<Vec<_>>(), [Fate::Ended]);
            shield::remove(&left[0]).unwrap();
            host.run("ping -c 1 -W 60 10.3.0.1");
            assert!(!run("tc qdisc show dev va").contains("clsact"));
        }
    });
}
