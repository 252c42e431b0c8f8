// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of sending frames, and of refused frames.

use crate::{ALL, LONG, frame, mac, receive, receive_all, send};
use castanet_io::device::{
    DeviceError, FrameKind, LIVE_FLOWS, LiveFrame, LiveSender, Outgoing, PacketOptions, PacketSender,
    PacketSocket, Refusal, Segments, Start, VnetHeader, complete, receive_by_napi,
};
use castanet_testkit::namespace::{inside, inside_with_bpf, pair, run};
use rustix::event::PollFlags;
use std::time::{Duration, Instant};

#[test]
fn live_frames_arrive_at_their_rate() {
    inside_with_bpf("sending::live_frames_arrive_at_their_rate", || {
        pair();
        let bytes = frame(mac("vb"), 0x88b5, 60);
        let live = LiveFrame { bytes: bytes.clone(), flow: [35, 43] };
        let mut sender = match LiveSender::open("va", live) {
            Ok(sender) => sender,
            Err(DeviceError::Unsupported { what, .. }) => return println!("SKIP: no {what}"),
            Err(e) => {
                let text = e.to_string();
                assert!(matches!(e, DeviceError::NotPermitted { .. }), "{text}");
                assert!(text.contains("grant CAP_BPF and CAP_NET_ADMIN"), "{text}");
                return println!("SKIP: {text}");
            }
        };
        // A call sends for a fixed time, so several calls may be needed for enough frames on a busy machine.
        let send_some = |sender: &mut LiveSender, rate, enough: u64| {
            let mut all = 0;
            for _ in 0..1000 {
                all += sender.send(rate, Duration::from_millis(50), || (), |(), _| ()).unwrap().1;
                if all >= enough {
                    break;
                }
            }
            assert!(all >= enough, "{all} of {enough}");
            all
        };
        // No frame arrives unless the receiving device uses NAPI.
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        send_some(&mut sender, 1000.0, 1);
        assert_eq!(receive(&mut r), []);
        receive_by_napi("vb").unwrap();
        let time = Duration::from_millis(100);
        let at_end = |start: Instant, told| (start, start.elapsed(), told);
        let ((start, after, told), sent) = sender.send(10_000.0, time, Instant::now, at_end).unwrap();
        let due = |time: Duration| time.as_secs_f64() * 10_000.0 + 1.0;
        // The sender never sends more than the rate allows, even after a delay.
        assert!(told as f64 <= due(after) && told <= sent, "{told} in {after:?}");
        assert!(sent as f64 <= due(start.elapsed()), "{sent}");
        // On a busy machine the device may have dropped some frames.
        let first = receive(&mut r);
        assert!(first.len() as u64 + r.drops() <= sent, "{} of {sent}", first.len());
        let mut seen = first.len();
        for g in first {
            let i = g.data[35];
            let mut want = bytes.clone();
            (want[35], want[43]) = (i, LIVE_FLOWS - 1 - i);
            assert_eq!((&g.data, g.wire_len, g.kind), (&want, 60, FrameKind::Host));
        }
        for _ in 0..100 {
            if seen > 0 {
                break;
            }
            send_some(&mut sender, 10_000.0, 1);
            seen += receive(&mut r).len();
        }
        assert!(seen > 0, "frames arrive");
        // Send as fast as possible: more frames than the ring holds.
        send_some(&mut sender, 0.0, r.slots() as u64 + 1);
    });
}

#[test]
fn super_packets_pass_whole() {
    inside("sending::super_packets_pass_whole", || {
        pair();
        let mut r =
            PacketSocket::open("vb", &PacketOptions { promiscuous: true, ..Default::default() }).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let data: Vec<u8> = (0..65_000).map(|i| (i % 251) as u8).collect();
        let mut big = Vec::new();
        etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], mac("vb"))
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .tcp(1, 2, 3, 4)
            .write(&mut big, &data)
            .unwrap();
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            gso_type: VnetHeader::TCP4,
            header_len: 54,
            gso_size: 1460,
            checksum_start: 34,
            checksum_offset: 16,
        };
        // A partial checksum: the sum of the pseudo header, which consists of addresses, protocol and length.
        let words = big[26..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum = words.sum::<u32>() + 6 + (big.len() - 34) as u32;
        let sum = (sum & 0xffff) + (sum >> 16);
        big[50..52].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
        let small = frame(ALL, 0x88b5, 60);
        let frames = [
            Outgoing::plain(&small),
            Outgoing { vnet, data: &big },
            Outgoing::plain(&small),
            Outgoing { vnet, data: &big },
        ];
        assert_eq!(s.send(frames.into_iter()).refusal, None);
        let got = receive_all(&mut r, 4);
        assert_eq!(got.len(), 4);
        assert_eq!((&got[0].data, &got[2].data), (&small, &small), "in order with the others");
        for g in [&got[1], &got[3]] {
            assert_eq!((g.data.len(), g.wire_len, g.vnet), (big.len(), big.len(), vnet));
            let segments = Segments::new(&g.data, &g.vnet, Start::Ethernet).unwrap();
            assert_eq!(segments.count(), 65_000usize.div_ceil(1460));
        }
        // If the sending device does not support super-packets, the kernel segments them. The segments of the kernel
        // must equal those of `Segments`.
        run("ethtool -K va tso off gso off tx off");
        assert_eq!(s.send([Outgoing { vnet, data: &big }].into_iter()).refusal, None);
        let segments = Segments::new(&big, &vnet, Start::Ethernet).unwrap();
        let mut joined = 0;
        for g in receive_all(&mut r, segments.count()) {
            let mut data = g.data.clone();
            assert!(!g.vnet.is_super());
            complete(&mut data, &g.vnet).unwrap();
            let mut ours = vec![0; segments.len_of(joined)];
            assert!(segments.write(joined, &mut ours));
            assert!(ours == data, "segment {joined}: {:?} {:?}", &ours[..54], &data[..54]);
            joined += 1;
        }
        assert_eq!(joined, segments.count());
    });
}

#[test]
fn jumbo_frames_pass() {
    inside("sending::jumbo_frames_pass", || {
        pair();
        for mtu in [9000, 40_000] {
            run(&format!("ip link set va mtu {mtu}; ip link set vb mtu {mtu}"));
            let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
            let frames = [60, mtu + 14, 1000, mtu].map(|n| frame(ALL, 0x88b5, n));
            send(&mut PacketSender::open("va").unwrap(), &frames);
            let got = receive_all(&mut r, frames.len());
            assert!(got.iter().map(|g| &g.data).eq(&frames), "{mtu}");
            assert!(r.slots() > 500);
        }
    });
}

#[test]
fn refusals_say_why() {
    inside("sending::refusals_say_why", || {
        pair();
        let mut s = PacketSender::open("va").unwrap();
        let one = |s: &mut PacketSender, f: &[u8]| s.send([Outgoing::plain(f)].into_iter());
        assert_eq!(one(&mut s, &frame(ALL, 0x88b5, 1600)).refusal, Some(Refusal::TooLong));
        assert!(matches!(one(&mut s, &[1, 2, 3]).refusal, Some(Refusal::Refused(_))));
        // The frames before the bad one are sent.
        let frames = [60, 60, 1600, 60].map(|n| frame(ALL, 0x88b5, n));
        let sent = s.send(frames.iter().map(|f| Outgoing::plain(f)));
        assert_eq!((sent.count, sent.refusal), (2, Some(Refusal::TooLong)));
        run("ip link set va down");
        assert_eq!(one(&mut s, &frames[0]).refusal, Some(Refusal::Down));
        run("ip link set va up");
        assert_eq!(one(&mut s, &frames[0]).count, 1, "the same socket goes on when the device is up again");
        run("ip link del va");
        assert_eq!(one(&mut s, &frames[0]).refusal, Some(Refusal::Down));
        assert!(matches!(PacketSender::open("va"), Err(DeviceError::Missing { .. })));
    });
}

/// Sends frames of many lengths, some through the ring and some by sendmmsg. All must arrive in order.
#[test]
fn both_ways_keep_one_order() {
    inside("sending::both_ways_keep_one_order", || {
        pair();
        run("ip link set va mtu 9000; ip link set vb mtu 9000");
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize
        };
        for _ in 0..60 {
            let longest = [200, 1600, 8900][next() % 3];
            let frames: Vec<Vec<u8>> = (0..1 + next() % 64)
                .map(|_| {
                    let mut f = frame(ALL, 0x88b5, 60 + next() % longest);
                    f[14..18].copy_from_slice(&(next() as u32).to_be_bytes());
                    f
                })
                .collect();
            send(&mut s, &frames);
            assert!(receive_all(&mut r, frames.len()).iter().map(|g| &g.data).eq(&frames));
        }
    });
}

#[test]
fn partial_checksums_go_with_short_frames_too() {
    inside("sending::partial_checksums_go_with_short_frames_too", || {
        pair();
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let data = frame(ALL, 0x88b5, 100);
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            checksum_start: 34,
            checksum_offset: 6,
            ..VnetHeader::NONE
        };
        let frames = [Outgoing { vnet, data: &data }, Outgoing::plain(&data), Outgoing { vnet, data: &data }];
        assert_eq!(s.send(frames.into_iter()).count, 3);
        let got = receive_all(&mut r, 3);
        let told: Vec<_> =
            got.iter().map(|g| (g.vnet.flags & 1, g.vnet.checksum_start, g.data == data)).collect();
        assert_eq!(told, [(1, 34, true), (0, 0, true), (1, 34, true)]);
        // The checksum field of the second frame is outside of the frame. Sending stops at this frame, and later calls
        // send again.
        let bad = Outgoing { vnet: VnetHeader { checksum_start: 99, ..vnet }, data: &data };
        let sent = s.send([Outgoing::plain(&data), bad, Outgoing::plain(&data)].into_iter());
        assert!(sent.count == 1 && matches!(sent.refusal, Some(Refusal::Refused(_))), "{sent:?}");
        assert_eq!(s.send([Outgoing::plain(&data)].into_iter()).count, 1);
        assert_eq!(receive_all(&mut r, 2).len(), 2);
    });
}

#[test]
fn the_mtu_may_change() {
    inside("sending::the_mtu_may_change", || {
        pair();
        // The host itself may send frames when the MTU changes, so receive only frames of the test's Ethernet type.
        let only = PacketOptions { protocol: 0x88b5, ..Default::default() };
        let mut r = PacketSocket::open("vb", &only).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        // The MTU is read again after a few calls.
        let later = |s: &mut PacketSender, len| {
            for _ in 0..20 {
                send(s, &[frame(ALL, 0x88b5, 60)]);
            }
            let f = frame(ALL, 0x88b5, len);
            s.send([Outgoing::plain(&f)].into_iter()).refusal
        };
        assert_eq!(later(&mut s, 1514), None);
        run("ip link set va mtu 600");
        assert_eq!((later(&mut s, 614), later(&mut s, 615)), (None, Some(Refusal::TooLong)));
        run("ip link set va mtu 1500");
        assert_eq!(later(&mut s, 1514), None);
        assert_eq!(receive_all(&mut r, 3 + 4 * 20).len(), 3 + 4 * 20);
    });
}

#[test]
fn what_the_device_does_not_take_can_be_sent_again() {
    inside("sending::what_the_device_does_not_take_can_be_sent_again", || {
        pair();
        let mut s = PacketSender::open("va").unwrap();
        let frames: Vec<_> = (60..70).map(|n| frame(ALL, 0x88b5, n)).collect();
        // No carrier: the device is up, and drops all frames.
        run("ip link set vb down");
        for _ in 0..40 {
            let sent = s.send(frames.iter().map(|f| Outgoing::plain(f)));
            assert_eq!((sent.count, sent.refusal), (0, Some(Refusal::Congested)));
        }
        run("ip link set vb up");
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        // The kernel detects the carrier after a moment.
        let mut left = &frames[..];
        let deadline = Instant::now() + Duration::from_secs(100);
        while !left.is_empty() && Instant::now() < deadline {
            left = &left[s.send(left.iter().map(|f| Outgoing::plain(f))).count..];
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(receive_all(&mut r, frames.len()).iter().map(|g| &g.data).eq(&frames), "all, once, in order");
    });
}

#[test]
fn a_slow_device_holds_the_ring_and_tells_when_there_is_room() {
    inside("sending::a_slow_device_holds_the_ring_and_tells_when_there_is_room", || {
        pair();
        if !std::process::Command::new("sh")
            .args(["-c", "tc qdisc add dev va root tbf rate 8mbit burst 2k limit 1000k"])
            .output()
            .is_ok_and(|o| o.status.success())
        {
            return println!("SKIP: no queueing discipline tbf");
        }
        let only = PacketOptions { protocol: 0x88b5, ..Default::default() };
        let mut r = PacketSocket::open("vb", &only).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        // A super-packet that the device cannot segment ends the bypass of the queueing discipline for all
        // later frames.
        run("ethtool -K va tso off gso off tx off");
        let mut big = Vec::new();
        etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], mac("vb"))
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .tcp(1, 2, 3, 4)
            .write(&mut big, &[7; 2000])
            .unwrap();
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            gso_type: VnetHeader::TCP4,
            header_len: 54,
            gso_size: 1000,
            checksum_start: 34,
            checksum_offset: 16,
        };
        assert_eq!(s.send([Outgoing { vnet, data: &big }].into_iter()).refusal, None);
        let (mut sent, mut full, mut got) = (0u32, 0, Vec::new());
        while sent < 1000 {
            let frames: Vec<_> = (sent..sent + 50)
                .map(|i| {
                    let mut f = frame(ALL, 0x88b5, 100);
                    f[14..18].copy_from_slice(&i.to_be_bytes());
                    f
                })
                .collect();
            let done = s.send(frames.iter().map(|f| Outgoing::plain(f)));
            sent += done.count as u32;
            match done.refusal {
                None => {}
                Some(Refusal::Full) => {
                    full += 1;
                    assert!(crate::ready(s.fd(), PollFlags::OUT, LONG), "told of room");
                }
                other => panic!("{other:?}"),
            }
        }
        while got.len() < 1000 {
            let more = receive(&mut r);
            assert!(!more.is_empty() || crate::readable(r.fd(), LONG), "{} came", got.len());
            got.extend(more);
        }
        assert!(full > 0, "a thousand frames at a megabyte a second wait for room");
        let numbers: Vec<u32> =
            got.iter().map(|g| u32::from_be_bytes(g.data[14..18].try_into().unwrap())).collect();
        assert_eq!(numbers, (0..sent).collect::<Vec<_>>());
    });
}
