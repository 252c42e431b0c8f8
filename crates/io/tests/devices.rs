// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices against the system's own: frames over a veth pair, and a TAP device whose other end is the host's stack.
#![allow(clippy::unwrap_used)]

#[path = "namespace/host.rs"]
mod host;
mod namespace;

use castanet_io::device::{
    DeviceError, FrameKind, Instruction, LIVE_FLOWS, LiveFrame, LiveSender, Outgoing, PacketOptions,
    PacketSender, PacketSocket, Refusal, Segments, Setup, Shield, Start, Tun, TunOptions, VnetHeader, all,
    complete, info, receive_by_napi, set_up,
};
use host::Host;
use namespace::{has_tun, inside, inside_of, pair, run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

fn readable(fd: impl AsFd, ms: i64) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: ms / 1000, tv_nsec: (ms % 1000) * 1_000_000 })).unwrap() > 0
}

/// What is compared of a frame.
#[derive(Clone, Debug, PartialEq)]
struct Got {
    data: Vec<u8>,
    wire_len: usize,
    kind: FrameKind,
    time_ns: i64,
    vnet: VnetHeader,
}

/// Frames until none comes any more for a while.
fn receive(s: &mut PacketSocket) -> Vec<Got> {
    let mut all = Vec::new();
    while readable(s.fd(), 100) {
        let n = s.receive(64, |f| {
            let mut data = vec![0; f.len()];
            assert!(f.copy_to(&mut data));
            all.push(Got { data, wire_len: f.wire_len(), kind: f.kind, time_ns: f.time_ns, vnet: f.vnet });
        });
        if n == 0 {
            break;
        }
    }
    all
}

fn frame(dst: [u8; 6], kind: u16, len: usize) -> Vec<u8> {
    let mut f = [&dst[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
    f.extend((f.len()..len).map(|i| i as u8));
    f
}

fn send(s: &mut PacketSender, frames: &[Vec<u8>]) {
    let sent = s.send(frames.iter().map(|f| Outgoing::plain(f)));
    assert_eq!((sent.count, sent.refusal), (frames.len(), None));
}

fn mac(name: &str) -> [u8; 6] {
    info(name).unwrap().ether.unwrap()
}

const ALL: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 9];

#[test]
fn frames_arrive_as_they_were_sent() {
    inside("frames_arrive_as_they_were_sent", || {
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
        let got = receive(&mut r);
        assert_eq!(got.iter().map(|g| &g.data).collect::<Vec<_>>(), sent.iter().collect::<Vec<_>>());
        let kinds: Vec<_> = got.iter().map(|g| g.kind).collect();
        assert_eq!(
            kinds,
            [FrameKind::Host, FrameKind::Broadcast, FrameKind::Multicast, FrameKind::OtherHost]
        );
        for g in &got {
            assert_eq!(g.wire_len, g.data.len());
            assert!(g.time_ns >= before && g.time_ns < before + 60_000_000_000);
        }
        // Against what the system counted on both ends.
        let (a, b) = (info("va").unwrap().statistics, info("vb").unwrap().statistics);
        assert_eq!((a.tx_packets, b.rx_packets, r.drops()), (4, 4, 0));
        assert_eq!(a.tx_bytes, sent.iter().map(|f| f.len() as u64).sum::<u64>());
    });
}

#[test]
fn many_frames_go_round_the_ring_in_order() {
    inside("many_frames_go_round_the_ring_in_order", || {
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
                assert!(readable(r.fd(), 1000));
                r.receive(7, |f| {
                    let mut data = vec![0; f.len()];
                    assert!(f.copy_to(&mut data));
                    got.push(data);
                });
            }
            assert_eq!(got, numbered);
        }
        // More than the ring holds: the first ones stay, the others are counted.
        let many: Vec<Vec<u8>> = (0..64).map(|_| frame(ALL, 0x88b5, 60)).collect();
        for _ in 0..(slots / 64 + 2) {
            send(&mut s, &many);
        }
        let (sent, got) = ((slots / 64 + 2) * 64, receive(&mut r).len());
        assert_eq!((got, r.drops()), (slots, (sent - slots) as u64));
        assert_eq!(r.drops(), (sent - slots) as u64, "the count does not start again");
    });
}

#[test]
fn live_frames_arrive_at_their_rate() {
    // In the first user namespace, if this process has the rights there.
    let rights = std::process::Command::new("unshare").args(["-n", "true"]).output();
    let flags = if rights.is_ok_and(|o| o.status.success()) { "-n" } else { "-Urn" };
    inside_of(flags, "live_frames_arrive_at_their_rate", || {
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
                return;
            }
        };
        // Without NAPI nothing arrives.
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let (_, sent) = sender.send(1000.0, Duration::from_millis(50), |_| ()).unwrap();
        assert!(sent > 0 && receive(&mut r).is_empty());
        receive_by_napi("vb").unwrap();
        let start = Instant::now();
        let (told, sent) = sender.send(10_000.0, Duration::from_millis(100), |sent| sent).unwrap();
        let most = start.elapsed().as_secs_f64() * 10_000.0 + 1.0;
        assert!(told > 0 && told <= sent && sent as f64 <= most, "{told} of {sent}, {most} at most");
        let got = receive(&mut r);
        // On a busy machine the device itself may have dropped some.
        assert!(!got.is_empty() && got.len() as u64 + r.drops() <= sent, "{} of {sent}", got.len());
        for g in got {
            let i = g.data[35];
            let mut want = bytes.clone();
            (want[35], want[43]) = (i, LIVE_FLOWS - 1 - i);
            assert_eq!((&g.data, g.wire_len, g.kind), (&want, 60, FrameKind::Host));
        }
        // As many as can be: more than the ring takes meanwhile.
        let (_, sent) = sender.send(0.0, Duration::from_millis(200), |_| ()).unwrap();
        assert!(sent > r.slots() as u64, "{sent}");
    });
}

#[test]
fn what_the_host_sends_is_seen_only_on_demand() {
    inside("what_the_host_sends_is_seen_only_on_demand", || {
        pair();
        let open =
            |outgoing| PacketSocket::open("va", &PacketOptions { outgoing, ..Default::default() }).unwrap();
        let (mut without, mut with) = (open(false), open(true));
        // Frames past the queueing discipline are not shown to other sockets, so the host's own stack sends these.
        run("ip address add 10.1.0.1/24 dev va");
        let socket = std::net::UdpSocket::bind("10.1.0.1:0").unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(b"hello", "10.1.0.255:9").unwrap();
        let got = receive(&mut with);
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
    inside("protocols_and_filters_choose", || {
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
            receive(&mut filtered).iter().map(|g| &g.data).collect::<Vec<_>>(),
            [&frames[1], &frames[3]]
        );
        assert_eq!(receive(&mut typed).iter().map(|g| &g.data).collect::<Vec<_>>(), [&frames[0]]);
        let bad =
            PacketOptions { filter: Some(vec![Instruction::new(0xffff, 0, 0, 0)]), ..Default::default() };
        assert!(PacketSocket::open("vb", &bad).unwrap_err().to_string().contains("attach the filter"));
    });
}

#[test]
fn vlan_tags_come_back() {
    inside("vlan_tags_come_back", || {
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
        let got = receive(&mut r);
        assert_eq!(got.iter().map(|g| &g.data).collect::<Vec<_>>(), frames.iter().collect::<Vec<_>>());
        assert!(got.iter().all(|g| g.wire_len == g.data.len()));
    });
}

#[test]
fn super_packets_pass_whole() {
    inside("super_packets_pass_whole", || {
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
        // A partial checksum: the sum of the pseudo header, addresses, protocol and length.
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
        let got = receive(&mut r);
        assert_eq!(got.len(), 4);
        assert_eq!((&got[0].data, &got[2].data), (&small, &small), "in order with the others");
        for g in [&got[1], &got[3]] {
            assert_eq!((g.data.len(), g.wire_len, g.vnet), (big.len(), big.len(), vnet));
            let segments = Segments::new(&g.data, &g.vnet, Start::Ethernet).unwrap();
            assert_eq!(segments.count(), 65_000usize.div_ceil(1460));
        }
        // The device of the other end segments for those who do not take super-packets: it agrees with ours.
        run("ethtool -K va tso off gso off tx off");
        assert_eq!(s.send([Outgoing { vnet, data: &big }].into_iter()).refusal, None);
        let segments = Segments::new(&big, &vnet, Start::Ethernet).unwrap();
        let mut joined = 0;
        for g in receive(&mut r) {
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
    inside("jumbo_frames_pass", || {
        pair();
        for mtu in [9000, 40_000] {
            run(&format!("ip link set va mtu {mtu}; ip link set vb mtu {mtu}"));
            let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
            let frames = [60, mtu + 14, 1000, mtu].map(|n| frame(ALL, 0x88b5, n));
            send(&mut PacketSender::open("va").unwrap(), &frames);
            let got = receive(&mut r);
            assert!(got.iter().map(|g| &g.data).eq(&frames), "{mtu}");
            assert!(r.slots() > 500);
        }
    });
}

#[test]
fn refusals_say_why() {
    inside("refusals_say_why", || {
        pair();
        let mut s = PacketSender::open("va").unwrap();
        let one = |s: &mut PacketSender, f: &[u8]| s.send([Outgoing::plain(f)].into_iter());
        assert_eq!(one(&mut s, &frame(ALL, 0x88b5, 1600)).refusal, Some(Refusal::TooLong));
        assert!(matches!(one(&mut s, &[1, 2, 3]).refusal, Some(Refusal::Refused(_))));
        // The ones before the bad one go.
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

#[test]
fn devices_go_and_come_back() {
    inside("devices_go_and_come_back", || {
        pair();
        let open = || PacketSocket::open("vb", &PacketOptions::default());
        let mut r = open().unwrap();
        assert_eq!(r.check(), Ok(()));
        run("ip link set vb down");
        assert!(readable(r.fd(), 1000));
        assert_eq!(r.receive(9, |_| {}), 0);
        let down = r.check().unwrap_err();
        assert_eq!(down, DeviceError::Down { name: "vb".into() });
        assert_eq!(r.check(), Ok(()), "told once");
        assert!(!readable(r.fd(), 10));
        run("ip link set vb up");
        let mut s = PacketSender::open("va").unwrap();
        send(&mut s, &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive(&mut r).len(), 1, "the same socket goes on");
        let old = r.index();
        run("ip link del vb");
        assert!(readable(r.fd(), 1000));
        assert!(r.check().unwrap_err().may_return());
        assert!(matches!(open(), Err(DeviceError::Missing { .. })));
        pair();
        let mut r = open().unwrap();
        assert_ne!(r.index(), old);
        send(&mut PacketSender::open("va").unwrap(), &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive(&mut r).len(), 1);
        run("ip link set vb down");
        let mut r = open().unwrap();
        run("ip link set vb up");
        send(&mut PacketSender::open("va").unwrap(), &[frame(ALL, 0x88b5, 60)]);
        assert_eq!(receive(&mut r).len(), 1, "opened while it was down");
    });
}

#[test]
fn frames_are_told_at_once() {
    inside("frames_are_told_at_once", || {
        pair();
        let mut r = PacketSocket::open("vb", &PacketOptions::default()).unwrap();
        let mut s = PacketSender::open("va").unwrap();
        let mut times: Vec<Duration> = (0..100)
            .map(|_| {
                let start = Instant::now();
                send(&mut s, &[frame(ALL, 0x88b5, 60)]);
                while r.receive(1, |_| {}) == 0 {
                    assert!(readable(r.fd(), 1000));
                }
                start.elapsed()
            })
            .collect();
        times.sort();
        // A ring that collects blocks would hold each frame for a millisecond at least.
        assert!(times[50] < Duration::from_micros(900), "{:?}", times[50]);
    });
}

#[test]
fn facts_are_those_of_the_ip_command() {
    inside("facts_are_those_of_the_ip_command", || {
        pair();
        let setup = Setup {
            ip: Some(([10, 2, 3, 4].into(), 20)),
            gateway: Some([10, 2, 0, 1].into()),
            mtu: Some(1300),
            ether: Some([2, 1, 1, 1, 1, 1]),
            up: Some(true),
        };
        set_up("va", &setup).unwrap();
        let a = info("va").unwrap();
        assert_eq!((a.ip, a.gateway, a.mtu), (setup.ip, setup.gateway, 1300));
        assert_eq!((a.ether, a.ether_broadcast), (setup.ether, Some(ALL)));
        assert_eq!(a.netmask().unwrap().to_string(), "255.255.240.0");
        assert_eq!(a.broadcast.unwrap().to_string(), "10.2.15.255");
        assert!(a.up && a.running);
        let shown = run("ip -o address show va; ip -o link show va; ip route");
        for word in
            ["10.2.3.4/20 brd 10.2.15.255", "mtu 1300", "02:01:01:01:01:01", "default via 10.2.0.1 dev va"]
        {
            assert!(shown.contains(word), "{word} in {shown}");
        }
        set_up("va", &Setup { up: Some(false), ..Setup::default() }).unwrap();
        assert!(!info("va").unwrap().up);
        assert_eq!(all().unwrap().len(), 3);
        let error = set_up("va", &Setup { mtu: Some(u32::MAX), ..Setup::default() }).unwrap_err();
        assert!(error.to_string().starts_with("va: cannot set its MTU"), "{error}");
    });
}

#[test]
fn a_tap_device_speaks_with_the_host() {
    inside("a_tap_device_speaks_with_the_host", || {
        if !has_tun() {
            return;
        }
        let options = TunOptions { name: Some("tap%d".into()), tap: true, queues: 2, ..Default::default() };
        let t = Tun::open(&options).unwrap();
        assert_eq!((t.name(), t.queues().len()), ("tap0", 2));
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/tap0/disable_ipv6", "1");
        let setup = Setup { ip: Some(([10, 9, 0, 1].into(), 24)), up: Some(true), ..Setup::default() };
        set_up("tap0", &setup).unwrap();
        run("ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev tap0");
        let udp = std::net::UdpSocket::bind("10.9.0.1:5000").unwrap();
        udp.send_to(b"to the program", "10.9.0.2:6000").unwrap();
        let mut buffer = [0; 2000];
        let (vnet, n) = (0..200)
            .find_map(|i| {
                std::thread::sleep(Duration::from_millis(5));
                t.receive(i % 2, &mut buffer).unwrap()
            })
            .unwrap();
        assert_eq!(vnet, VnetHeader::NONE, "without offloads the host completes checksums");
        assert_eq!(&buffer[42..n], b"to the program");
        let mut answer = Vec::new();
        let host = buffer[6..12].try_into().unwrap();
        etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], host)
            .ipv4([10, 9, 0, 2], [10, 9, 0, 1], 9)
            .udp(6000, 5000)
            .write(&mut answer, b"to the host")
            .unwrap();
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Ok(()));
        udp.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let n = udp.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"to the host");
        assert_eq!(t.receive(0, &mut buffer), Ok(None));
        run("ip link set tap0 down");
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Err(Refusal::Down));
        run("ip link del tap0");
        assert!(t.receive(0, &mut buffer).unwrap_err().may_return());
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Err(Refusal::Down));
    });
}

#[test]
fn tun_devices_stay_when_they_are_to() {
    inside("tun_devices_stay_when_they_are_to", || {
        if !has_tun() {
            return;
        }
        let options = TunOptions { name: Some("mine".into()), persistent: true, ..Default::default() };
        let t = Tun::open(&options).unwrap();
        assert!(!info("mine").unwrap().link.is_ethernet());
        assert_eq!(t.index(), Ok(info("mine").unwrap().index));
        drop(t);
        assert!(info("mine").is_ok());
        assert!(Tun::open(&TunOptions { tap: true, ..options.clone() }).is_err(), "it is of the other kind");
        let t = Tun::open(&TunOptions { persistent: false, ..options.clone() }).unwrap();
        t.forget().unwrap();
        drop(t);
        assert!(info("mine").is_err());
        for name in ["x".repeat(16), "a/b".into(), "a b".into()] {
            let bad = Tun::open(&TunOptions { name: Some(name), ..Default::default() }).unwrap_err();
            assert!(bad.to_string().contains("is no name for a device"), "{bad}");
        }
        pair();
        let bad = Tun::open(&TunOptions { name: Some("va".into()), ..Default::default() }).unwrap_err();
        assert!(bad.to_string().contains("no TUN or TAP device"), "{bad}");
    });
}

#[test]
fn a_shield_keeps_the_host_silent() {
    inside("a_shield_keeps_the_host_silent", || {
        pair();
        let host = Host::new();
        run(&format!("ip link set vb netns {}", host.id()));
        host.run("ip address add 10.3.0.2/24 dev vb");
        host.run("ip link set vb up");
        run("ip address add 10.3.0.1/24 dev va");
        host.run("ping -c 1 -W 2 10.3.0.1");
        let mut seen = PacketSocket::open("va", &PacketOptions::default()).unwrap();
        let first = match Shield::raise("va") {
            Ok(s) => s,
            Err(e @ DeviceError::Unsupported { .. }) => return println!("SKIP: {e}"),
            Err(e) => panic!("{e}"),
        };
        let second = Shield::raise("va").unwrap();
        host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
        assert!(!receive(&mut seen).is_empty(), "packet sockets see what the host does not");
        drop(first);
        host.run("sh -c '! ping -c 1 -W 1 10.3.0.1'");
        assert!(second.is_up_to_date());
        drop(second);
        host.run("ping -c 1 -W 2 10.3.0.1");
        assert!(matches!(Shield::raise("vx"), Err(DeviceError::Missing { .. })));
    });
}

#[test]
fn without_privileges_the_mend_is_told() {
    inside("without_privileges_the_mend_is_told", || {
        pair();
        let me = std::env::current_exe().unwrap();
        // The same program without capabilities.
        let out = run(&format!(
            "setpriv --bounding-set=-all --inh-caps=-all {} --exact privileges --nocapture --ignored 2>&1 || true",
            me.display()
        ));
        assert!(out.contains("help: run as root, or grant CAP_NET_RAW"), "{out}");
    });
}

#[test]
#[ignore = "run by another test, without privileges"]
fn privileges() {
    println!("{}", PacketSender::open("va").unwrap_err());
}
