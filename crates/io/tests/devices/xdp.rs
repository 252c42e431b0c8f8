// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of AF_XDP against packet sockets at the other end of veth pairs.

use crate::{ALL, LONG, frame, mac, readable, receive_all, send};
use castanet_io::device::xdp::{HEADROOM, LostFrame, Share, XdpOptions, XdpReceiver, XdpSender, buffers};
use castanet_io::device::{DeviceError, PacketOptions, PacketSender, PacketSocket, Refusal};
use castanet_packet::Packet;
use castanet_testkit::namespace::{inside_with_bpf, pair, run};

fn options() -> XdpOptions {
    XdpOptions { promiscuous: false, share: Share::WHOLE, buffers: buffers(2, 2), busy_poll: false }
}

/// Runs a test if this process has the rights. Otherwise, checks that the error names the missing capabilities.
fn with_xdp(name: &str, body: impl FnOnce()) {
    inside_with_bpf(name, || {
        pair();
        match XdpReceiver::open("vb", &options()).map(drop) {
            Ok(()) => body(),
            Err(DeviceError::Unsupported { what, .. }) => println!("SKIP: no {what}"),
            Err(e) => {
                let text = e.to_string();
                assert!(matches!(e, DeviceError::NotPermitted { .. }), "{text}");
                assert!(text.contains("grant CAP_BPF and CAP_NET_ADMIN and CAP_NET_RAW"), "{text}");
                println!("SKIP: {text}");
            }
        }
    });
}

/// Waits for `expected` frames.
fn receive(r: &mut XdpReceiver, expected: usize) -> Vec<Packet> {
    let mut all = Vec::new();
    while all.len() < expected {
        let fd = r.fds().next().unwrap().clone();
        assert!(readable(&fd, LONG), "{} of {expected}", all.len());
        r.receive(64, |p| all.push(p.unwrap()));
    }
    all
}

/// Waits for `expected` frames at the other end, and returns them.
fn arrived(r: &mut PacketSocket, expected: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < expected {
        assert!(readable(r.fd(), LONG), "{} of {expected}", all.len());
        r.receive(64, |f| {
            let mut data = vec![0; f.len()];
            assert!(f.copy_to(&mut data));
            all.push(data);
        });
    }
    all
}

fn data(packets: &[Packet]) -> Vec<Vec<u8>> {
    packets.iter().map(|p| p.data().to_vec()).collect()
}

#[test]
fn frames_come_around_the_host() {
    with_xdp("xdp::frames_come_around_the_host", || {
        let mut r = XdpReceiver::open("vb", &options()).unwrap();
        let mut host = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let frames: Vec<_> = [60, 61, 590, 1514].map(|len| frame(mac("vb"), 0x88b5, len)).to_vec();
        // The host has the frames until the receiver starts.
        send(&mut s, &frames);
        assert_eq!(receive_all(&mut host, 4).len(), 4);
        r.start().unwrap();
        assert!(run("ip link show vb").contains("xdp"));
        send(&mut s, &frames);
        let got = receive(&mut r, 4);
        assert_eq!(data(&got), frames);
        assert!(got.iter().all(|p| p.headroom() == HEADROOM && (p.headroom() + 14) % 4 == 0));
        assert_eq!((receive_all(&mut host, 0).len(), r.drops(), r.check()), (0, 0, Ok(())));
        // A queue has one receiver.
        assert!(matches!(XdpReceiver::open("vb", &options()), Err(DeviceError::Busy { .. })));
        drop(r);
        assert!(!run("ip link show vb").contains("xdp"));
        send(&mut s, &frames);
        assert_eq!(receive_all(&mut host, 4).len(), 4);
    });
}

#[test]
fn packets_are_forwarded_without_a_copy() {
    with_xdp("xdp::packets_are_forwarded_without_a_copy", || {
        run("ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up");
        let mut from = XdpReceiver::open("vb", &options()).unwrap();
        let mut to = XdpSender::open("vc", &options()).unwrap();
        from.start().unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let mut r =
            PacketSocket::open("vd", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
        // Each ring is used several times.
        let rounds = 6000usize.div_ceil(32);
        let mut number = 0u32;
        for _ in 0..rounds {
            let frames: Vec<_> = (0..32)
                .map(|_| {
                    let mut f = frame(ALL, 0x88b5, 60 + number as usize % 1400);
                    f[14..18].copy_from_slice(&number.to_be_bytes());
                    number += 1;
                    f
                })
                .collect();
            send(&mut s, &frames);
            let mut got = receive(&mut from, frames.len());
            assert_eq!(data(&got), frames);
            let sent = to.send(&mut got);
            assert_eq!((sent.count, sent.refusal, got.len()), (32, None, 0));
            assert_eq!(arrived(&mut r, 32), frames);
        }
        assert_eq!((from.drops(), to.refused_by_kernel(), to.is_waiting()), (0, 0, false));
        assert_eq!(to.copied(), 0);
    });
}

#[test]
fn other_packets_are_copied_and_bad_ones_refused() {
    with_xdp("xdp::other_packets_are_copied_and_bad_ones_refused", || {
        let mut to = XdpSender::open("vb", &options()).unwrap();
        let mut r =
            PacketSocket::open("va", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
        let frames: Vec<_> = (0..70).map(|i| frame(ALL, 0x88b5, 60 + i)).collect();
        let mut packets: Vec<_> = frames.iter().map(|f| Packet::copy_of(f).unwrap()).collect();
        let clone = packets[3].share().unwrap();
        let sent = to.send(&mut packets);
        assert_eq!((sent.count, sent.refusal, packets.len()), (64, None, 6));
        // Too long for the device, between two good ones.
        packets.insert(1, Packet::copy_of(&frame(ALL, 0x88b5, 1519)).unwrap());
        let sent = to.send(&mut packets);
        assert_eq!((sent.count, sent.refusal, packets[0].len()), (1, Some(Refusal::TooLong), 1519));
        packets[0] = Packet::new(0).unwrap();
        let sent = to.send(&mut packets);
        assert!(matches!((sent.count, sent.refusal), (0, Some(Refusal::Refused(_)))));
        packets.remove(0);
        assert_eq!(to.send(&mut packets).count, 5);
        assert_eq!((arrived(&mut r, 70), clone.data()), (frames.clone(), &frames[3][..]));
        assert_eq!(to.copied(), 70);
        // A device that is down keeps the frames that are in the ring, and says so.
        run("ip link set vb down");
        let mut more = vec![Packet::copy_of(&frames[0]).unwrap()];
        assert_eq!(to.send(&mut more).refusal, Some(Refusal::Down));
        assert!(to.is_waiting() && more.is_empty());
        run("ip link set vb up");
        let sent = to.send(&mut more);
        assert_eq!((sent.count, sent.refusal, to.is_waiting()), (0, None, false));
        assert_eq!(receive_all(&mut r, 1).len(), 1);
    });
}

#[test]
fn long_frames_lie_in_several_buffers() {
    with_xdp("xdp::long_frames_lie_in_several_buffers", || {
        run("ip link set va mtu 9000 && ip link set vb mtu 9000");
        let mut r = XdpReceiver::open("vb", &options()).unwrap();
        if !r.way().whole {
            return println!("SKIP: no frames in several buffers (Linux 6.6)");
        }
        r.start().unwrap();
        let mut to = XdpSender::open("vb", &options()).unwrap();
        let mut other = PacketSender::open("va").unwrap();
        let mut back =
            PacketSocket::open("va", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
        let frames: Vec<_> =
            [1700, 1800, 2048, 2049, 60, 4096, 9014].map(|len| frame(mac("vb"), 0x88b5, len)).to_vec();
        send(&mut other, &frames);
        let mut got = receive(&mut r, frames.len());
        assert_eq!(data(&got), frames);
        let sent = to.send(&mut got);
        assert_eq!((sent.count, sent.refusal), (frames.len(), None));
        assert_eq!(arrived(&mut back, frames.len()), frames);
        assert_eq!((r.drops(), to.refused_by_kernel()), (0, 0));
    });
}

#[test]
fn a_device_that_goes_down_is_told() {
    with_xdp("xdp::a_device_that_goes_down_is_told", || {
        let mut r = XdpReceiver::open("vb", &options()).unwrap();
        r.start().unwrap();
        let witness = r.fds().last().unwrap().clone();
        run("ip link set vb down");
        assert!(readable(&witness, LONG));
        assert_eq!((r.check(), r.check()), (Err(DeviceError::Down { name: "vb".into() }), Ok(())));
        run("ip link set vb up");
        let frames = [frame(mac("vb"), 0x88b5, 60)];
        send(&mut PacketSender::open("va").unwrap(), &frames);
        assert_eq!(data(&receive(&mut r, 1)), frames);
        run("ip link del vb");
        assert!(readable(&witness, LONG) && r.check().is_err());
    });
}

#[test]
fn what_is_not_read_in_time_is_counted() {
    with_xdp("xdp::what_is_not_read_in_time_is_counted", || {
        let mut r = XdpReceiver::open("vb", &options()).unwrap();
        r.start().unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let frames: Vec<_> = (0..64).map(|i| frame(mac("vb"), 0x88b5, 60 + i)).collect();
        let mut sent = 0;
        while sent < 2 * r.slots() {
            send(&mut s, &frames);
            sent += frames.len();
        }
        let mut got = 0;
        loop {
            let n = r.receive(64, |p| assert_ne!(p.err(), Some(LostFrame::Invalid)));
            got += n;
            if n == 0 && got as u64 + r.drops() == sent as u64 {
                break;
            }
        }
        assert!(r.drops() > 0 && got >= r.slots(), "{got} of {sent}");
    });
}
