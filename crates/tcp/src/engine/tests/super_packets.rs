// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets stand for the segments that are sent without them.

use super::*;
use castanet_element::packet::Offload;
use castanet_wire::ipv4::protocol;
use castanet_wire::tcp::flag;
use castanet_wire::{Be16, Be32, checksum};

/// The IP packets that a packet stands for, cut one at a time.
fn cut(p: &Packet) -> Vec<Vec<u8>> {
    let Some(Offload { checksum, segments }) = p.offload() else { return vec![p.data().to_vec()] };
    let (kind, size) = segments.unwrap();
    assert_eq!((kind, checksum), (1, Some((20, 16))));
    let ip = *Ipv4Header::checked(p.data(), true).unwrap();
    let (src, dst) = (ip.src.get(), ip.dst.get());
    assert_eq!(usize::from(ip.total_len.get()), p.len());
    let tcp = header(p.data());
    let length = (p.len() - 20) as u16;
    assert_eq!(tcp.checksum.get(), checksum::pseudo_header_sum(src, dst, protocol::TCP, length));
    let (head, data) = p.data().split_at(20 + tcp.header_len());
    let (last, mut all) = (data.len().div_ceil(usize::from(size)) - 1, Vec::new());
    for (i, part) in data.chunks(usize::from(size)).enumerate() {
        let mut packet = [head, part].concat();
        let length = packet.len() as u16;
        let ip = Ipv4Header::from_prefix_mut(&mut packet).unwrap();
        (ip.total_len, ip.id) = (Be16::new(length), Be16::new(ip.id.get().wrapping_add(i as u16)));
        ip.set_checksum20();
        let tcp = TcpHeader::from_prefix_mut(&mut packet[20..]).unwrap();
        tcp.seq = Be32::new(tcp.seq.get().wrapping_add(u32::from(size) * i as u32));
        if i < last {
            tcp.flags &= !flag::PSH;
        }
        tcp::set_checksum(src, dst, &mut packet[20..]);
        all.push(packet);
    }
    all
}

/// A transfer between two engines, of which the first one may send super-packets. Returns what it sent, cut, and the most
/// segments of a packet. A packet arrives in one piece, or cut.
fn transfer(super_packets: bool, in_one_piece: bool, data: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let users = [User::default(), User::default()];
    users[0].0.lock().write = data.to_vec();
    let mut ends = [0, 1].map(|n| {
        let settings = Settings { super_packets: super_packets && n == 0, ..settings(n) };
        engine(n, settings, users[n].clone())
    });
    let (mut now, mut sent, mut most) = (1_000_000_000_000, Vec::new(), 0);
    ends.iter_mut().for_each(|e| e.pass_time(now));
    ends[0].connect(None, SocketAddrV4::new(address(1), 80), 0, now).unwrap();
    for _ in 0..10_000 {
        now += 1_000_000;
        let packets: Vec<Packet> = ends[0].packets().collect();
        for p in packets {
            let segments = cut(&p);
            assert_eq!(p.segments().0, segments.len() as u64);
            most = most.max(segments.len());
            if in_one_piece && segments.len() > 1 {
                // The checksum is a partial one, which the element does not verify.
                let mut whole = p.data().to_vec();
                let ip = *Ipv4Header::checked(&whole, true).unwrap();
                tcp::set_checksum(ip.src.get(), ip.dst.get(), &mut whole[20..]);
                give(&mut ends[1], &whole, now).unwrap();
            } else {
                segments.iter().for_each(|s| give(&mut ends[1], s, now).unwrap());
            }
            sent.extend(segments);
        }
        let answers: Vec<Packet> = ends[1].packets().collect();
        answers.iter().for_each(|p| give(&mut ends[0], p.data(), now).unwrap());
        ends.iter_mut().for_each(|e| e.pass_time(now));
    }
    assert!(users[1].0.lock().read == data);
    (sent, most)
}

#[test]
fn super_packets_stand_for_the_segments() {
    for size in [0, 1, 1460, 1448 * 3 + 1, 100_000, 400_000] {
        let data = bytes(size, 5);
        let (sent, most) = transfer(true, false, &data);
        let (twin, one) = transfer(false, false, &data);
        assert_eq!(sent.len(), twin.len(), "{size}");
        for (a, b) in sent.iter().zip(&twin) {
            assert_eq!(a, b, "{size}");
        }
        assert_eq!(one, 1);
        assert!(size < 100_000 || most > 10, "{most} segments of {size} bytes");
    }
}

#[test]
fn super_packets_arrive_in_one_piece() {
    let data = bytes(400_000, 6);
    let (sent, most) = transfer(true, true, &data);
    assert!(most > 20, "{most} segments");
    assert!(sent.len() >= data.len() / 1448);
}
